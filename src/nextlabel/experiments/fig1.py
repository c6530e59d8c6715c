"""The paper's first experiment [HF16]: K tasks, 1.2 K labels, Beta(1, 1), r = 0.1, mu = 0.4, with both stop rules.

``discard`` stops at the last arrival, as published; ``wait`` lets the labels in flight come in.
"""

from __future__ import annotations

from nextlabel.experiments.roster import index_for, names, shared
from nextlabel.experiments.study import ExperimentOutcome, StudyOptions
from nextlabel.policies.base import Policy
from nextlabel.problem.problem import Problem
from nextlabel.reporting.tables import Row
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.progress import Progress, part

TASKS = (10, 100, 1000)
RATIO = 1.2
#: The optimum is computed up to this many tasks.
EXACT_TASKS = 10
REPLICATIONS, QUICK = 5000, 100
#: Read off the paper's figure: (policy, K) -> mean, half-width of its 95% interval where it can be read.
PAPER: dict[tuple[str, int], tuple[float, float | None]] = {
    ("index", 10): (0.74704, 0.0005),
    ("index", 100): (0.75838, 0.0001),
    ("index", 1000): (0.75928, 0.00004),
    ("okg", 10): (0.74301, 0.0006),
    ("okg", 100): (0.75807, None),
    ("okg", 1000): (0.75914, None),
}


def problem(tasks: int) -> Problem:
    """The paper's setting."""
    return Problem.identical(tasks, round(RATIO * tasks))


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """All policies at every K under both stop rules."""
    replications = config.count(REPLICATIONS, QUICK)
    policies = shared(names(planned=not config.quick), index_for(problem(TASKS[-1])))
    rows: list[Row] = []
    for k, tasks in enumerate(TASKS):
        for s, stop in enumerate(("wait", "discard")):
            piece = part(progress, 2 * k + s, 2 * len(TASKS))
            rows += _rows(tasks, stop, policies, replications, config, piece)
    return ExperimentOutcome(rows, {"replications": replications})


def _rows(
    tasks: int, stop: str, policies: list[Policy], replications: int, config: StudyOptions, progress: Progress | None
) -> list[Row]:
    setting = problem(tasks)
    bound = upper_bound(setting)
    study = simulate(
        setting, policies, replications=replications, seed=config.seed, engine=config.engine, pending=stop,
        bound=bound, progress=progress,
    )  # fmt: skip
    head: Row = {"stop": stop, "tasks": tasks, "budget": setting.budget}
    out = []
    for result in study.results:
        ahead = study.difference(result.name, "index")
        paper, paper_half = PAPER.get((result.name, tasks), (None, None)) if stop == "discard" else (None, None)
        out.append(
            {
                **head,
                "policy": result.name,
                "mean": result.per_task.mean,
                "half_width": result.per_task.half_width,
                "minus_index": ahead.mean,
                "minus_index_half_width": ahead.half_width,
                "bound": bound.per_task,
                "gap_percent": result.gap_percent.mean if result.gap_percent else None,
                "gap_half_width": result.gap_percent.half_width if result.gap_percent else None,
                "labels_used": result.labels_used,
                "most_labels": result.most_labels,
                "replications": replications,
                "paper": paper,
                "paper_half_width": paper_half,
            }
        )
    if tasks <= EXACT_TASKS:
        best = exact_value(setting, pending=stop)
        blank: Row = dict.fromkeys(out[0])
        gap = 100.0 * (1.0 - best.value / bound.value) if stop == "wait" else None
        known = {"policy": "optimum", "mean": best.per_task, "bound": bound.per_task, "gap_percent": gap}
        out.append({**blank, **head, **known})
    return out
