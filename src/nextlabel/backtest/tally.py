"""Campaigns on recorded labels as counts of where their tasks end, for policies and for fixed overlaps.

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
from nextlabel.kernels.replay import Ends, RecordedLabels, replay_overlaps
from nextlabel.policies.base import MOST_IN_FLIGHT, Policy, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.simulation.replay import ReplayCampaign, ReplaySetup, no_ends, recorded_labels, same_choices
from nextlabel.solve.index.table import index_table
from nextlabel.solve.progress import Progress

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
class BudgetStage(ReplaySetup):
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

    def setting(self, budget: int) -> Setting:
        """Lattices for that budget."""
        problem = self.problem(budget)
        return Setting.of(problem, self.depth, AT_ONCE if problem.rho < 1e-3 else MOST_IN_FLIGHT)

    def records(self, setting: Setting | None = None) -> RecordedLabels:
        """Labels, truth and where the tasks start, on the lattices of ``setting`` or all at node 0."""
        kinds = np.unique(np.minimum(self.recorded.counts, self.depth))
        return recorded_labels(self, kinds, [0] * len(kinds) if setting is None else [v.nodes for v in setting.views])


@dataclass(frozen=True, slots=True, eq=False)
class EndCounts:
    """One rule over rising budgets (for overlaps: over rising numbers of labels a task)."""

    name: str
    budgets: Ints
    ends: Ints
    used: Ints
    taken: Ints


def tally_policy(
    stage: BudgetStage,
    name: str,
    budgets: Sequence[int],
    replications: int,
    *,
    keep: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> EndCounts:
    """One policy over rising ``budgets``; ``keep`` replications also say how many labels each task got."""
    policy = usual_index(stage, int(budgets[-1])) if name == Index.name else make_policy(name)
    campaigns = _campaigns(stage, policy, budgets)
    found, kept = [], []
    for c, campaign in enumerate(campaigns):
        chunk = partial(policy_chunk, campaign, stage.nodes, stage.seed, False)

        def mine(share: float, c: int = c) -> None:
            if progress is not None:
                progress((c + share) / len(campaigns))

        found.append(run_chunks(engine or Engine(), chunk, replications, mine)[1])
        kept.append(policy_chunk(campaign, stage.nodes, stage.seed, True, 0, keep)[1] if keep else None)
    return _tally(name, np.array(budgets), stage, np.concatenate(found, axis=1), kept)


def tally_overlap(
    stage: BudgetStage, overlaps: Sequence[int], replications: int, *, keep: int = 0, engine: Engine | None = None
) -> EndCounts:
    """Fixed overlaps, rising."""
    chunk = partial(overlap_chunk, stage, tuple(overlaps), False)
    found = run_chunks(engine or Engine(), chunk, replications, None)[1]
    kept = [overlap_chunk(stage, tuple(overlaps), True, 0, keep)[1] if keep else None]
    return _tally(FIXED, np.array(overlaps), stage, found, kept)


def usual_index(stage: BudgetStage, budget: int) -> Index:
    """The index policy for every budget up to that one: tasks differ in how many labels they have, not in the table."""
    one = Problem.identical(
        len(stage.recorded), budget, stage.prior, stage.threshold,
        arrival_rate=stage.arrival_rate, completion_rate=stage.completion_rate,
    )  # fmt: skip
    many = one.rho >= MANY_IN_FLIGHT
    table = index_table(
        one, cap=min(stage.depth, SMALLER_CAP if many else CAP), tolerance=LOOSER if many else TOLERANCE
    )
    return Index(replace(table, classes=table.classes * len(stage.problem(budget).classes)))


def policy_chunk(
    campaign: ReplayCampaign, nodes: int, seed: int, keep: bool, first: int, count: int
) -> tuple[np.ndarray, Ints]:
    """Replications first .. first + count - 1; a row for each budget: ends, labels used, labels of each task."""
    return np.zeros((count, 0)), _packed(campaign.ends(nodes, keep, seed, first, count))


def overlap_chunk(
    stage: BudgetStage, overlaps: tuple[int, ...], keep: bool, first: int, count: int
) -> tuple[np.ndarray, Ints]:
    """The same for overlaps."""
    out = no_ends(count, len(overlaps), stage.nodes, len(stage.recorded) if keep else 0)
    replay_overlaps(stage.records(), np.array(overlaps, dtype=np.int64), stage.seed, first, out)
    return np.zeros((count, 0)), _packed(out)


def _campaigns(stage: BudgetStage, policy: Policy, budgets: Sequence[int]) -> list[ReplayCampaign]:
    """Neighbouring budgets with the same tables are one campaign."""
    kinds = np.unique(np.minimum(stage.recorded.counts, stage.depth))
    out: list[ReplayCampaign] = []
    for budget in budgets:
        setting = stage.setting(budget)
        tables = make_policy_arrays(setting, policy)
        arrays = make_problem_arrays(setting, True, np.minimum(kinds, setting.depth))
        together: tuple[int, ...] = (budget,)
        if out and same_choices(out[-1].tables, tables):
            together = out.pop().budgets + together
        out.append(ReplayCampaign(arrays, tables, stage.records(setting), together))
    return out


def _packed(ends: Ends) -> Ints:
    count, B = ends.used.shape
    return np.concatenate([ends.tasks.reshape(count, B, -1), ends.used[:, :, None], ends.taken], axis=2)


def _tally(name: str, budgets: Ints, stage: BudgetStage, found: Ints, kept: Sequence[Ints | None]) -> EndCounts:
    cells = 2 * stage.nodes
    ends = found[:, :, :cells].reshape(*found.shape[:2], stage.nodes, 2)
    known = [k[:, :, cells + 1 :] for k in kept if k is not None]
    taken = np.concatenate(known, axis=1) if known else np.zeros((0, len(budgets), 0), dtype=np.int64)
    return EndCounts(name, budgets, ends, found[:, :, cells], taken)
