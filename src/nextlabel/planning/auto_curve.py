"""The curve of the policy ``auto`` that a plan shows: a campaign of its own for each budget, on a coarser grid.

The price that clears depends on the budget from the first label on, so that no campaign passes through several budgets.
All budgets meet the same arrivals, durations and labels, so that the curve is smooth and differences along it are
paired. With more than 64 kinds of tasks ``auto`` is the index policy, and so is its curve.
Guarantee: unbiased for each budget, 95% normal intervals. Cost: tables and some campaigns for each of 12 budgets.
"""

from __future__ import annotations

import numpy as np

from nextlabel.policies.auto import Auto
from nextlabel.policies.base import Setting
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays, no_gap
from nextlabel.problem.estimate import Z95
from nextlabel.problem.problem import Problem, whole
from nextlabel.simulation.curve import ValueCurve
from nextlabel.simulation.engine import Engine, run
from nextlabel.solve.curve import overlap_values
from nextlabel.solve.progress import Progress, part

#: Budgets of the curve above 0.
POINTS = 12
#: A task is simulated so often in all, whatever the number of replications; replications at least and at most.
TASKS_SEEN, LEAST_REPLICATIONS, MOST_REPLICATIONS = 100_000, 10, 500


def auto_replications(tasks: int) -> int:
    """Campaigns of each budget, where the user does not say how many."""
    return int(np.clip(TASKS_SEEN // tasks, LEAST_REPLICATIONS, MOST_REPLICATIONS))


def auto_curve(
    problem: Problem,
    largest: int,
    count: int,
    seed: int,
    engine: Engine | None,
    progress: Progress | None = None,
    *,
    largest_alone: bool = False,
) -> ValueCurve:
    """The value of ``auto`` at budgets up to ``largest``, or there alone."""
    count = whole("replications", count, 2, "Give at least two replications, e.g. --replications 200.")
    shares = np.array([1.0]) if largest_alone else np.arange(1, POINTS + 1) / POINTS
    budgets = np.unique(np.maximum(np.round(largest * shares).astype(np.int64), 1))
    rewards, labels = np.empty((2, count, len(budgets)))
    for k, budget in enumerate(budgets):
        setting = Setting.of(problem.with_budget(int(budget)))
        arrays, tables = make_problem_arrays(setting, True), make_policy_arrays(setting, Auto())
        out, _ = run(
            engine or Engine(), arrays, tables, no_gap(), count, seed, progress=part(progress, k, len(budgets))
        )
        rewards[:, k], labels[:, k] = out[:, 0], out[:, 1]
    sample = (rewards - problem.label_cost * labels) / problem.tasks
    mean, used = sample.mean(axis=0), labels.mean(axis=0)
    half = Z95 * sample.std(axis=0, ddof=1) / np.sqrt(count)
    if largest_alone:
        return ValueCurve(budgets, mean, half, used, sample)
    nothing = float(overlap_values(problem, np.array([0]))[0])
    return ValueCurve(
        np.append(0, budgets), np.append(nothing, mean), np.append(0.0, half), np.append(0.0, used),
        np.column_stack([np.full(len(sample), nothing), sample]),
    )  # fmt: skip
