"""Recorded labels replayed under a policy or a fixed overlap: how many tasks end with which labels.

========= ========= ==================== ===========================================================
symbol    code      shape                meaning
========= ========= ==================== ===========================================================
--        ends      (reps, B, nodes, 2)  tasks whose truth is 0 or 1, by their labels at the end
--        used      (reps, B)            labels given
--        taken     (some, B, K)         labels of each task, for read-outs that ask who gave them
========= ========= ==================== ===========================================================

The draws are those of ``simulation.replay``: every policy and every overlap meets the same tasks and labels in the same
order. A task can be given MOST_A_TASK labels, of which a few are in flight at once. Guarantee: see ``kernels.replay``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.replay import Ends
from nextlabel.kernels.replay import replay_overlaps as count_overlaps
from nextlabel.policies.base import MOST_IN_FLIGHT, Policy, Setting
from nextlabel.policies.index import Index
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.simulation.replay import BudgetSweep, ReplaySetup, budget_sweeps, no_ends, recorded_labels
from nextlabel.solve.index import index_table
from nextlabel.solve.progress import Progress, part

#: Labels that one task can be given, and of them in flight when labels come back at once.
MOST_A_TASK, AT_ONCE = 32, 3
#: Labels of one task that the index models in full, and its accuracy; less of both when many labels are in flight.
CAP, TOLERANCE = 12, 1e-6
MANY_IN_FLIGHT, SMALLER_CAP, LOOSER = 5.0, 6, 1e-4
#: The name of fixed overlaps among tallies; the policy ``overlap`` is the dynamic one.
FIXED = "fixed overlap"
#: How fast labels come back when they come 'at once': of ten million arrivals one finds the last label not in.
ARRIVALS, AT_ONCE_RATE = 1.0, 1e7


@dataclass(frozen=True, slots=True)
class BacktestSetup(ReplaySetup):
    """What every campaign of a backtest has in common."""

    @property
    def depth(self) -> int:
        """Labels that a task can be given."""
        return min(MOST_A_TASK, int(self.recorded.counts.max()))

    @property
    def nodes(self) -> int:
        """Nodes of the triangle of (labels, ones)."""
        return (self.depth + 1) * (self.depth + 2) // 2

    @property
    def most_labels(self) -> int:
        """Labels that can be given in all."""
        return int(np.minimum(self.recorded.counts, self.depth).sum())

    def problem(self, budget: int) -> Problem:
        """One class of tasks for each number of labels that tasks have."""
        many = np.unique(np.minimum(self.recorded.counts, self.depth), return_counts=True)[1]
        classes = tuple(TaskClass(int(c), self.prior, self.threshold) for c in many)
        return Problem(classes, budget, self.arrival_rate, self.completion_rate)

    def lattices(self, budget: int) -> Setting:
        """Lattices for that budget."""
        problem = self.problem(budget)
        return Setting.of(problem, self.depth, AT_ONCE if problem.rho < 1e-3 else MOST_IN_FLIGHT)


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeCounts:
    """One rule over rising budgets (for overlaps: over rising numbers of labels per task)."""

    name: str
    budgets: Ints
    ends: Ints
    used: Ints
    taken: Ints


def replay_policy(
    setting: BacktestSetup,
    given: Policy,
    budgets: Sequence[int],
    replications: int,
    *,
    keep: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> OutcomeCounts:
    """One policy over rising ``budgets``; ``keep`` replications also say how many labels each task got."""
    policy = given
    if isinstance(given, Index) and given.table is None:
        policy = index_for_budgets(setting, int(budgets[-1]))
    lattices = [setting.lattices(budget) for budget in budgets]
    kinds = np.unique(np.minimum(setting.recorded.counts, setting.depth))
    sweeps = budget_sweeps(policy, lattices, setting, kinds, len(setting.recorded))
    found, kept = [], []
    for c, sweep in enumerate(sweeps):
        chunk = partial(policy_chunk, sweep, setting.nodes, setting.seed, False)
        found.append(run_chunks(engine or Engine(), chunk, replications, part(progress, c, len(sweeps)))[1])
        kept.append(policy_chunk(sweep, setting.nodes, setting.seed, True, 0, keep)[1] if keep else None)
    return _outcomes(given.name, np.array(budgets), setting, np.concatenate(found, axis=1), kept)


def replay_overlaps(
    setting: BacktestSetup, overlaps: Sequence[int], replications: int, *, keep: int = 0, engine: Engine | None = None
) -> OutcomeCounts:
    """Fixed overlaps, rising."""
    chunk = partial(overlap_chunk, setting, tuple(overlaps), False)
    found = run_chunks(engine or Engine(), chunk, replications, None)[1]
    kept = [overlap_chunk(setting, tuple(overlaps), True, 0, keep)[1] if keep else None]
    return _outcomes(FIXED, np.array(overlaps), setting, found, kept)


def index_for_budgets(setting: BacktestSetup, budget: int) -> Index:
    """The index policy for every budget up to that one: tasks differ in how many labels they have, not in the table."""
    one = Problem.identical(
        len(setting.recorded), budget, setting.prior, setting.threshold,
        arrival_rate=setting.arrival_rate, completion_rate=setting.completion_rate,
    )  # fmt: skip
    many = one.rho >= MANY_IN_FLIGHT
    table = index_table(
        one, cap=min(setting.depth, SMALLER_CAP if many else CAP), tolerance=LOOSER if many else TOLERANCE
    )
    return Index(replace(table, classes=table.classes * len(setting.problem(budget).classes)))


def policy_chunk(
    sweep: BudgetSweep, nodes: int, seed: int, keep: bool, first: int, count: int
) -> tuple[np.ndarray, Ints]:
    """Replications first .. first + count - 1; one row per budget: ends, labels used, labels of each task."""
    return np.zeros((count, 0)), _packed(sweep.ends(nodes, keep, seed, first, count))


def overlap_chunk(
    setting: BacktestSetup, overlaps: tuple[int, ...], keep: bool, first: int, count: int
) -> tuple[np.ndarray, Ints]:
    """The same for overlaps."""
    out = no_ends(count, len(overlaps), setting.nodes, len(setting.recorded) if keep else 0)
    records = recorded_labels(setting, np.array([setting.depth]), [0])
    count_overlaps(records, np.array(overlaps, dtype=np.int64), setting.seed, first, out)
    return np.zeros((count, 0)), _packed(out)


def _packed(ends: Ends) -> Ints:
    count, B = ends.used.shape
    return np.concatenate([ends.tasks.reshape(count, B, -1), ends.used[:, :, None], ends.taken], axis=2)


def _outcomes(
    name: str, budgets: Ints, setting: BacktestSetup, found: Ints, kept: Sequence[Ints | None]
) -> OutcomeCounts:
    cells = 2 * setting.nodes
    ends = found[:, :, :cells].reshape(*found.shape[:2], setting.nodes, 2)
    known = [k[:, :, cells + 1 :] for k in kept if k is not None]
    taken = np.concatenate(known, axis=1) if known else np.zeros((0, len(budgets), 0), dtype=np.int64)
    return OutcomeCounts(name, budgets, ends, found[:, :, cells], taken)
