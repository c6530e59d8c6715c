"""Small problems solved exactly: the optimum, both bounds, and every policy's exact value.

A policy that is a table of scores is evaluated over the joint states; one that counts, draws or plans (its choice is no
function of the task's own state) is simulated, with an interval. Beta(1, 1), d = 1/2, mu = 0.4, labels awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.model.problem import Problem
from nextlabel.policies.base import Policy
from nextlabel.policies.exact_value import policy_value
from nextlabel.policies.registry import make_policy
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing, in_order, look
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.progress import Progress
from studies.study import ExperimentOutcome, StudyOptions, legend_beside, names, pick, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: K, U, r.
PROBLEMS = (
    (2, 5, 0.1), (2, 5, 1.0), (3, 4, 0.1), (3, 6, 1.0), (3, 6, 10.0), (4, 8, 0.1), (4, 8, 1.0), (5, 6, 0.1),
    (5, 7, 1.0), (10, 12, 0.1),
)  # fmt: skip
QUICK_PROBLEMS = PROBLEMS[:4]
REPLICATIONS, QUICK = 100_000, 2_000


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Every policy on every problem."""
    replications = config.count(REPLICATIONS, QUICK)
    problems = QUICK_PROBLEMS if config.quick else PROBLEMS
    everyone = names()
    rows: list[Row] = []
    for k, (K, U, r) in enumerate(problems):
        setting = Problem.identical(K, U, arrival_rate=r)
        best = exact_value(setting)
        known: Row = {
            "tasks": K,
            "budget": U,
            "arrival_rate": r,
            "optimum": best.value,
            "bound_scalar": upper_bound(setting).value,
            "bound_per_arrival": upper_bound(setting, "per-arrival").value,
        }
        for p, name in enumerate(everyone):
            value, half = _value(setting, make_policy(name), replications, config)
            how = {"value": value, "half_width": half, "how": "exact" if half is None else "simulated"}
            rows.append({**known, "policy": name, **how, "loss_percent": 100.0 * (1.0 - value / best.value)})
            progress((k + (p + 1) / len(everyone)) / len(problems))
    return ExperimentOutcome(rows, {"replications": replications})


def _value(problem: Problem, policy: Policy, replications: int, config: StudyOptions) -> tuple[float, float | None]:
    """The policy's value, and the half-width of its interval if it had to be simulated."""
    if policy.by_table:
        return policy_value(problem, policy).value, None
    study = simulate(problem, [policy], replications=replications, seed=config.seed, engine=config.engine)
    gap = study.results[0].gap
    assert gap is not None
    return study.bound.value - problem.tasks * gap.mean, problem.tasks * gap.half_width


def draw(rows: list[Row]) -> Figure:
    """Loss of every policy against the optimum of each small problem."""
    problems = list(dict.fromkeys((row["tasks"], row["budget"], row["arrival_rate"]) for row in rows))
    policies = in_order(values_of(rows, "policy"))
    with drawing(figsize=(10, 1.6 + 0.42 * len(problems))) as (figure, axes):
        for k, name in enumerate(policies):
            some = pick(rows, policy=name)
            y = [
                -problems.index((r["tasks"], r["budget"], r["arrival_rate"])) + 0.38 - 0.76 * k / len(policies)
                for r in some
            ]
            loss = [max(row["loss_percent"], 0.0) for row in some]
            error = [100.0 * (row["half_width"] or 0.0) / row["optimum"] for row in some]
            style = {**look(name), "linestyle": "none"}
            axes.errorbar(loss, y, xerr=error, elinewidth=1, **style)
        for k in range(len(problems) - 1):
            axes.axhline(-k - 0.5, color="#c3cad2", linewidth=0.8)
        axes.set_yticks([-k for k in range(len(problems))], [f"K={K}, U={U}, r/μ={r / 0.4:g}" for K, U, r in problems])
        axes.set_xscale("symlog", linthresh=0.01, linscale=0.4)
        axes.set_xlim(left=-0.0005)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("loss against the exact optimum, % (linear below 0.01)")
        axes.set_title("Small problems: what each policy loses")
        legend_beside(figure, [axes])
    return figure
