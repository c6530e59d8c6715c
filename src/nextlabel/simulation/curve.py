"""A policy's value as a function of the budget, from one campaign per replication.

Guarantee: for each budget the mean of the policy with exactly that budget, unbiased, 95% normal intervals; the budgets
share their arrivals, durations and labels, so the curve is smooth and differences along it are paired.
Cost: one index table (of the largest budget) and one campaign of the largest budget per replication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.policies.base import Policy
from nextlabel.policies.budget_rollout import BudgetRollout
from nextlabel.policies.own_priors import FEW_CLASSES
from nextlabel.policies.registry import make_policy
from nextlabel.problem.estimate import Z95
from nextlabel.problem.problem import Problem, whole
from nextlabel.simulation.engine import NOTHING, Engine, run_chunks
from nextlabel.simulation.own_budgets import OwnBudgets
from nextlabel.solve.progress import Progress


@dataclass(frozen=True, slots=True)
class ValueCurve:
    """Values per task, net of what labels cost, for each budget; ``sample`` has one row per replication."""

    budgets: Ints
    mean: Floats
    half_width: Floats
    labels_used: Floats
    sample: Floats


def value_curve(
    problem: Problem,
    policy: Policy | str,
    budgets: Sequence[int],
    *,
    replications: int = 200,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> ValueCurve:
    """The value of ``policy`` with each of the ``budgets`` (rising), everything else as ``problem`` has it."""
    wanted = np.array([whole("budget", b, 0, "Give numbers of labels.") for b in budgets], dtype=np.int64)
    if len(wanted) == 0 or np.any(np.diff(wanted) <= 0):
        raise InputError("the budgets do not rise.", "Give different numbers of labels, the smallest first.")
    count = whole("replications", replications, 2, "Give at least two replications, e.g. --replications 200.")
    kind = OwnBudgets if len(problem.classes) > FEW_CLASSES else BudgetRollout
    chunk = partial(curve_chunk, kind.of(problem, make_policy(policy), wanted), seed)
    out, _ = run_chunks(engine or Engine(), chunk, count, progress)
    values = (out[:, :, 0] - problem.label_cost * out[:, :, 1]) / problem.tasks
    half = Z95 * values.std(axis=0, ddof=1) / np.sqrt(count)
    return ValueCurve(wanted, values.mean(axis=0), half, out[:, :, 1].mean(axis=0), values)


def curve_chunk(rollout: BudgetRollout | OwnBudgets, seed: int, first: int, count: int) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1; module level, so that a cluster's workers can import it."""
    return rollout.run(seed, first, count), NOTHING
