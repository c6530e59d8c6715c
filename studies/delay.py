"""Which policies stay good when many labels are in flight: r / mu from a fraction of a label to one for every task.

U = 3K, Beta(1, 1), mu = 0.4; r grows with K, so that r / (mu K), the labels in flight per task, is the same at every K.
Gaps are estimated by the martingale at the per-arrival prices; the gap to the scalar bound differs by a constant.
``resolve`` solves 60 times in each replication, so it is shown at 100 tasks, with fewer replications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.model.problem import Problem
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing, in_order, look
from nextlabel.simulation.study import PolicyResult, Study, simulate
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.progress import Progress, part
from studies.study import (
    ExperimentOutcome,
    Shared,
    StudyOptions,
    draw_line,
    legend_beside,
    names,
    pick,
    shared,
    values_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS, QUICK_TASKS = (100, 1000), (30,)

#: r / mu at 100 tasks.
RHOS, QUICK_RHOS = (0.25, 2.5, 25.0, 100.0), (2.5, 25.0)
REPLICATIONS, QUICK = 1000, 100
RATIO, MU = 3, 0.4

#: Most tasks at which the slow policies take part, and their replications.
SLOW_TASKS, SLOW_REPLICATIONS, SLOW_QUICK = 100, 40, 2


def problem(tasks: int, rho: float) -> Problem:
    """K tasks with the load of ``rho`` labels in flight at 100 tasks."""
    return Problem.identical(tasks, RATIO * tasks, arrival_rate=rho * tasks / 100 * MU, completion_rate=MU)


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """All policies at every load."""
    replications = config.count(REPLICATIONS, QUICK)
    tasks = QUICK_TASKS if config.quick else TASKS
    if config.tasks is not None:
        tasks = (config.tasks,)
    loads = [(K, rho) for K in tasks for rho in (QUICK_RHOS if config.quick else RHOS)]
    rows: list[Row] = []
    for k, (K, rho) in enumerate(loads):
        rows += _rows(K, rho, replications, config, part(progress, k, len(loads)))
    return ExperimentOutcome(rows, {"replications": replications})


def _rows(K: int, rho: float, replications: int, config: StudyOptions, progress: Progress | None) -> list[Row]:
    setting = problem(K, rho)
    scalar = upper_bound(setting)
    priced = upper_bound(setting, "per-arrival")
    index = Shared(make_policy("index"))
    groups = [(shared(names(), index), replications)]
    if K <= SLOW_TASKS:
        few = min(replications, SLOW_QUICK if config.quick else SLOW_REPLICATIONS)
        groups.append(([index, *(policy() for policy in POLICIES.values() if policy.solves_again)], few))
    out: list[Row] = []
    for k, (policies, count) in enumerate(groups):
        study = simulate(
            setting, policies, replications=count, seed=config.seed, engine=config.engine, bound=priced,
            progress=part(progress, k, len(groups)),
        )  # fmt: skip
        out += [_row(study, one, scalar) for one in study.results if k == 0 or one.name != "index"]
    return out


def _row(study: Study, result: PolicyResult, scalar: Bound) -> Row:
    """One policy at one load against both bounds and, paired, against the index policy."""
    assert result.gap is not None
    setting, priced = study.problem, study.bound
    ahead = study.difference(result.name, "index")
    return {
        "tasks": setting.tasks,
        "budget": setting.budget,
        "rho": setting.rho,
        "in_flight_per_task": setting.rho / setting.tasks,
        "policy": result.name,
        "mean": priced.per_task - result.gap.mean,
        "half_width": result.gap.half_width,
        "plain_mean": result.per_task.mean,
        "plain_half_width": result.per_task.half_width,
        "bound_scalar": scalar.per_task,
        "bound_per_arrival": priced.per_task,
        "gap_scalar_percent": 100.0 * (result.gap.mean + scalar.per_task - priced.per_task) / scalar.per_task,
        "gap_per_arrival_percent": 100.0 * result.gap.mean / priced.per_task,
        "gap_half_width": 100.0 * result.gap.half_width / priced.per_task,
        "minus_index": ahead.mean,
        "minus_index_half_width": ahead.half_width,
        "most_labels": result.most_labels,
        "replications": study.replications,
    }


def draw(rows: list[Row]) -> Figure:
    """Gap to the per-arrival bound against the labels in flight per task."""
    sizes = values_of(rows, "tasks")
    width = 4.0 + 3.6 * len(sizes)
    with drawing(1, len(sizes), figsize=(width, 5.2), squeeze=False, sharey=True) as (figure, panels):
        for axes, K in zip(panels[0], sizes, strict=True):
            some = pick(rows, tasks=K)
            for name in in_order(values_of(some, "policy")):
                one = pick(some, policy=name)
                draw_line(axes, one, "in_flight_per_task", "gap_per_arrival_percent", "gap_half_width", **look(name))
            loads = values_of(some, "in_flight_per_task")
            axes.set(xscale="log", yscale="log", xlabel="labels in flight per task, r/(μK)")
            axes.set_xticks(loads, [f"{load:g}\nr/μ = {K * load:g}" for load in loads])
            axes.set_xticks([], minor=True)
            axes.set_title(f"K = {K:,}, U = {some[0]['budget']:,}")
        panels[0, 0].set_ylabel("gap to the per-arrival bound, %")
        legend_beside(figure, panels[0])
    return figure
