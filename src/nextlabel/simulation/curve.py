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
from nextlabel.kernels.budgets import rollout_budgets
from nextlabel.kernels.policy import BY_DEFICIT, PolicyArrays
from nextlabel.kernels.rollout import ProblemArrays
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays, no_gap
from nextlabel.problem.estimate import Z95
from nextlabel.problem.problem import Problem, whole
from nextlabel.simulation.engine import NOTHING, Engine, run_chunks
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
    largest = problem.with_budget(max(int(wanted[-1]), 1))
    setting = Setting.of(largest)
    rule = make_policy(policy)
    tables = make_policy_arrays(setting, rule)
    if tables.mode == BY_DEFICIT:
        raise InputError(
            f"policy {rule.name!r} plans for one budget and has no curve.", "Use index, okg-pending or another rule."
        )
    arrays = make_problem_arrays(setting, True)
    worth = _worth(setting)
    chunk = partial(curve_chunk, arrays, tables, worth, wanted, seed)
    out, _ = run_chunks(engine or Engine(), chunk, count, progress)
    values = (out[:, :, 0] - problem.label_cost * out[:, :, 1]) / problem.tasks
    half = Z95 * values.std(axis=0, ddof=1) / np.sqrt(count)
    return ValueCurve(wanted, values.mean(axis=0), half, out[:, :, 1].mean(axis=0), values)


def curve_chunk(
    arrays: ProblemArrays, tables: PolicyArrays, worth: Floats, budgets: Ints, seed: int, first: int, count: int
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1."""
    out = np.zeros((count, len(budgets), 3))
    rollout_budgets(arrays, tables, no_gap(), NOTHING, worth, budgets, seed, first, out)
    return out, NOTHING


def _worth(setting: Setting) -> Floats:
    """Of each state w * nodes + i: E[R after the labels in flight], or R if a horizon may cut them off."""
    rows = [
        view.whatever_in_flight(view.lattice.reward)
        if setting.problem.finite
        else view.after_flight(view.lattice.reward)
        for view in setting.views
    ]
    return np.ascontiguousarray(np.concatenate(rows, axis=1)).ravel()
