"""Small problems solved exactly: the optimum, both bounds, and every policy's exact value.

A policy that is a table of scores is evaluated over the joint states; one that counts, draws or plans (its choice is no
function of the task's own state) is simulated, with an interval. Beta(1, 1), d = 1/2, mu = 0.4, labels awaited.
"""

from __future__ import annotations

from nextlabel.experiments.roster import names
from nextlabel.experiments.study import ExperimentOutcome, StudyOptions
from nextlabel.policies.base import Policy
from nextlabel.policies.exact_value import policy_value
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import Problem
from nextlabel.reporting.tables import Row
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.progress import Progress

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
