"""Replay recorded labels: what a policy would have made of a crowd that really answered.

========= ========= ==================== ==================================================================
symbol    code      shape                meaning
========= ========= ==================== ==================================================================
--        said      (N, most)            recorded labels of each task in the order of the file, -1 past its last
--        counts    (N,)                 how many there are
--        gold      (N,)                 the truth, -1 where it is not known
--        worth     (V, nodes, 2)        what a task counts for by its labels at the end, if its truth is 0 or 1
--        ends      (some, B, N)         where each task ends: m (m + 1) / 2 + ones after m labels; -1: not drawn
I         --        --                   P(theta > d) after the labels that came in; the decision is 1{I > 1/2}
========= ========= ==================== ==================================================================

A replication draws K of the N tasks and their order, and the order of each task's labels, from the uniforms of (seed,
replication, task, label): every policy meets the same tasks and the same labels in the same order, whatever the chunks.
Labels are used without replacement; a task that has none left is no longer offered. Arrivals and durations are those of
the model. Budgets for which a policy has the same tables are played in one pass (``kernels.rollout``); it changes no
digit. Guarantee: accuracy against gold on this data set, with the interval of the replay's own randomness only; it
is no estimate for another crowd, and the bound of the model is no bound for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError, TooLargeError, refuse
from nextlabel.files.labels import Gold, LabelTable
from nextlabel.kernels.choice import BY_DEFICIT, BY_LEVELS, PolicyArrays
from nextlabel.kernels.events import FILE, RANDOM, REVERSED, RecordedLabels, draw_recorded
from nextlabel.kernels.inputs import TIED
from nextlabel.model.beta import Beta
from nextlabel.model.lattice import triangle_counts
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.base import MOST_IN_FLIGHT, Policy, Setting
from nextlabel.policies.rollout_arrays import Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.policies.uniform import Uniform
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.solve.progress import Progress, part
from nextlabel.wording import listed

ORDERS = {"random": RANDOM, "file": FILE, "reversed": REVERSED}
#: What a task counts for whose posterior is a coin flip: half a task, or as if it were decided one way.
TIES = {"half": -1, "positive": 1, "negative": 0}
#: Labels that one task can be given, and of them in flight when labels come back at once.
MOST_A_TASK, AT_ONCE = 32, 3
#: How fast labels come back when they come 'at once': of ten million arrivals one finds the last label not in.
ARRIVALS, AT_ONCE_RATE = 1.0, 1e7
#: Cells of the table of recorded labels, one for each task and label of the task with most labels.
MOST_CELLS = 500_000_000
#: Ends of tasks that are held at once.
MOST_ENDS = 20_000_000
#: The name of fixed overlaps; the policy ``overlap`` is the dynamic one.
FIXED = "fixed overlap"


@dataclass(frozen=True, eq=False)
class CrowdRecord:
    """Recorded labels with their workers.

    ========= ======= ===========================================================================
    code      shape   meaning
    ========= ======= ===========================================================================
    labels    n       task, worker and answer of each label, in the order of the file
    gold      (K,)    the truth, -1 where it is not known; no policy ever sees it
    started   (n,)    seconds at which each label was begun; None if the times are not known
    submitted (n,)    seconds at which it was handed in
    batch     (n,)    number of the batch that the label belongs to; None: all are one batch
    ========= ======= ===========================================================================

    Where workers are not ``named``, each label is a stranger's.
    """

    labels: CrowdLabels
    gold: Ints
    tasks: tuple[Any, ...] = ()
    workers: tuple[Any, ...] = ()
    started: Floats | None = None
    submitted: Floats | None = None
    batch: Ints | None = None
    named: bool = True

    def __post_init__(self) -> None:
        n, K = len(self.labels.task), self.labels.tasks
        refuse(
            (n == 0, "no label is recorded.", "Give at least one label."),
            (
                len(self.gold) != K,
                f"gold has {len(self.gold)} entries for {K} tasks.",
                "Give one for each task, -1: unknown.",
            ),
            *(
                (len(column) != n, f"{name} has {len(column)} entries for {n} labels.", "Give one for each label.")
                for name in ("started", "submitted", "batch")
                if (column := getattr(self, name)) is not None
            ),
            (self.labels.answers < 2, "every label says the same.", "Nothing is to decide: give labels that differ."),
        )

    @classmethod
    def from_table(cls, table: LabelTable, gold: Ints | None = None, *, named: bool = True) -> CrowdRecord:
        """The labels of a table, its times if it has them; a label without a worker is that of a stranger.

        Tables without workers are refused unless they need not be ``named``.
        """
        if named and table.worker is None:
            raise InputError(
                "the labels have no column of workers.",
                "Name it with --worker-column, or replay without workers: --policy index.",
            )
        worker = np.full(len(table), -1, dtype=np.int64) if table.worker is None else table.worker.copy()
        nobody = np.flatnonzero(worker < 0)
        worker[nobody] = len(table.workers) + np.arange(len(nobody))
        names = table.workers + tuple(f"(blank {k + 1})" for k in range(len(nobody)))
        labels = CrowdLabels(table.task, worker, table.label, len(table.tasks), len(names), len(table.labels))
        known = np.full(len(table.tasks), -1, dtype=np.int64) if gold is None else np.asarray(gold, dtype=np.int64)
        times = table.assigned_at, table.submitted_at, table.batch
        return cls(labels, known, table.tasks, names, *times, bool(table.workers))

    def __len__(self) -> int:
        return len(self.labels.task)

    @cached_property
    def counts(self) -> Ints:
        """(K,) labels of each task."""
        return np.bincount(self.labels.task, minlength=self.labels.tasks).astype(np.int64)

    @cached_property
    def rows(self) -> Ints:
        """(K, most) the labels of each task in the order of the file, -1 past the last."""
        counts = self.counts
        out = np.full((len(counts), int(counts.max())), -1, dtype=np.int64)
        order = np.argsort(self.labels.task, kind="stable")
        place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[self.labels.task[order], place] = order
        return out

    @cached_property
    def said(self) -> Ints:
        """(K, most) what they say, -1 past the last."""
        return np.where(self.rows >= 0, self.labels.answer[self.rows], -1)

    def some(self, rows: Ints) -> CrowdLabels:
        """Some of the labels."""
        task, worker, answer = (column[rows] for column in self.labels[:3])
        return CrowdLabels(task, worker, answer, *self.labels[3:])

    def subset(self, tasks: Ints) -> CrowdRecord:
        """Some of the tasks, in that order and with the workers who labelled them, without times."""
        if np.array_equal(tasks, np.arange(len(self.gold))):
            return self
        rows = self.rows[tasks]
        some = self.some(rows[rows >= 0])
        known, worker = np.unique(some.worker, return_inverse=True)
        task = np.repeat(np.arange(len(tasks)), self.counts[tasks])
        labels = some._replace(task=task, worker=worker.reshape(-1), tasks=len(tasks), workers=len(known))
        names = tuple(self.workers[k] for k in known) if self.workers else ()
        return CrowdRecord(labels, self.gold[tasks], tuple(self.tasks[k] for k in tasks), names, named=self.named)

    def shares(self) -> Floats:
        """Share of positive labels of each task."""
        return np.asarray((self.said == 1).sum(axis=1) / self.counts, dtype=np.float64)


def to_recorded(table: LabelTable, gold: Gold | None = None, *, any_answers: bool = False) -> CrowdRecord:
    """Labels of each task in the order of the file, with the truth where it is known, whether workers are or not.

    Most rules count two answers; ``any_answers`` takes more.
    """
    if len(table.labels) != 2 and not any_answers:
        raise InputError(
            f"the labels are {listed(list(table.labels))}; a replay has two.",
            "Name the one that counts as 1 with --positive.",
        )
    N, most = len(table.tasks), int(table.per_task.max())
    if N * most > MOST_CELLS:
        raise TooLargeError(
            f"a task has {most:,} labels, and a table of {N:,} tasks with as many does not fit.",
            "Leave that task out.",
        )
    return CrowdRecord.from_table(table, None if gold is None else gold.label, named=False)


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """What all campaigns on the same recorded labels have in common; ``seed`` decides what is drawn."""

    recorded: CrowdRecord
    prior: Prior = field(default_factory=lambda: Beta(1, 1))
    threshold: float = 0.5
    arrival_rate: float = 0.1
    completion_rate: float = 0.4
    order: str = "random"
    seed: int = 0

    @property
    def depth(self) -> int:
        """Labels that a task can be given."""
        return min(MOST_A_TASK, int(self.recorded.counts.max()))

    @property
    def most_labels(self) -> int:
        """Labels that can be given in all."""
        return int(np.minimum(self.recorded.counts, self.depth).sum())

    @property
    def kinds(self) -> Ints:
        """Numbers of labels that tasks have, rising: there is a class of tasks for each."""
        return np.unique(np.minimum(self.recorded.counts, self.depth))

    def problem(self, budget: int, tasks: int | None = None) -> Problem:
        """One class of tasks for each number of labels that tasks have, in the proportions of the data."""
        many = np.unique(np.minimum(self.recorded.counts, self.depth), return_counts=True)[1]
        share = 1.0 if tasks is None else tasks / len(self.recorded.gold)
        counts = np.maximum(1, np.round(many * share)).astype(np.int64)
        classes = tuple(TaskClass(int(c), self.prior, self.threshold) for c in counts)
        return Problem(classes, budget, self.arrival_rate, self.completion_rate)

    def lattices(self, budget: int, tasks: int | None = None) -> Setting:
        """Lattices for that budget."""
        problem = self.problem(budget, tasks)
        return Setting.of(problem, self.depth, AT_ONCE if problem.rho < 1e-3 else MOST_IN_FLIGHT)

    def drawn(self, replication: int) -> Ints:
        """(N, most) which of a task's labels comes first, second ... in a replication; -1 past the task's last."""
        N, most = self.recorded.said.shape
        rows, places = np.zeros(N, dtype=np.int64), np.zeros((N, most), dtype=np.int64)
        which, order = np.tile(np.arange(most), (N, 1)), ORDERS[self.order]
        draw_recorded(which, self.recorded.counts, self.seed, replication, order, rows, places)
        out = np.empty_like(places)
        out[rows] = places
        return out


class Outcomes(NamedTuple):
    """One rule over rising budgets (for overlaps: over rising numbers of labels per task)."""

    name: str
    budgets: Ints
    #: (reps, B, V) the mean of each table over the tasks whose truth is known.
    worth: Floats
    used: Ints
    most: Ints
    #: (some, B, N) where each task ends, in the replications whose tasks are followed.
    ends: Ints


def labels_at(ends: Ints) -> Ints:
    """Labels of tasks that end there."""
    return np.asarray((np.sqrt(8 * ends + 1).astype(np.int64) - 1) // 2)


def replay_policy(
    setup: ReplaySetup,
    policy: Policy,
    budgets: Sequence[int],
    replications: int,
    worth: Floats,
    *,
    tasks: int | None = None,
    keep: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Outcomes:
    """One policy over rising ``budgets``; in ``keep`` replications the tasks are followed one by one."""
    sweeps, parts = budget_sweeps(setup, policy, budgets, tasks), []
    for c, sweep in enumerate(sweeps):
        chunk, mine = partial(replay_chunk, setup, sweep, worth, keep), part(progress, c, len(sweeps))
        parts.append(run_chunks(engine or Engine(), chunk, replications, mine))
    return Outcomes(policy.name, np.array(budgets), *(np.concatenate(one, axis=1) for one in zip(*parts, strict=True)))


def replay_overlaps(
    setup: ReplaySetup, overlaps: Sequence[int], replications: int, worth: Floats, *, keep: int = 0,
    engine: Engine | None = None,
) -> Outcomes:  # fmt: skip
    """The same draws with a fixed number of labels for every task, or all of a task that has fewer.

    That is what ``uniform`` gives with as many labels as these are.
    """
    budgets = [int(np.minimum(setup.recorded.counts, k).sum()) for k in overlaps]
    played = replay_policy(setup, Uniform(), budgets, replications, worth, keep=keep, engine=engine)
    return played._replace(name=FIXED, budgets=np.array(overlaps))


def budget_sweeps(
    setup: ReplaySetup, policy: Policy, budgets: Sequence[int], tasks: int | None = None
) -> list[Rollout]:
    """Neighbouring budgets with the same tables are one rollout."""
    out, recorded = list[Rollout](), setup.recorded
    kinds, K = setup.kinds, len(recorded.gold) if tasks is None else tasks
    start = np.zeros(int(recorded.counts.max()) + 1, dtype=np.int64)  # where a task with so many labels starts
    for budget in budgets:
        setting = setup.lattices(budget, tasks)
        together: tuple[int, ...] = (int(budget),)
        tables = make_policy_arrays(setting, policy)
        arrays = make_problem_arrays(setting, True, np.minimum(kinds, setting.depth))
        if out and same_choices(out[-1].policy, tables):
            together = out.pop().budgets + together
        begin = np.cumsum([0, *(view.nodes for view in setting.views[:-1])])
        start[recorded.counts] = begin[np.searchsorted(kinds, np.minimum(recorded.counts, kinds[-1]))]
        labels = RecordedLabels(recorded.said, recorded.counts, start.copy(), ORDERS[setup.order])
        arrays = arrays._replace(root=np.zeros(K, dtype=np.int64))
        out.append(Rollout(arrays, tables, together, recorded=labels))
    return out


def replay_chunk(
    setup: ReplaySetup, sweep: Rollout, worth: Floats, keep: int, first: int, count: int
) -> tuple[Floats, Ints, Ints, Ints]:
    """Replications first .. first + count - 1: worth, labels used, most labels of one task, ends of those kept."""
    gold, nodes, B, parts = setup.recorded.gold, worth.shape[1], len(sweep.budgets), []
    known, size = np.flatnonzero(gold >= 0), max(1, MOST_ENDS // (len(gold) * B))
    for at in range(first, first + count, size):
        some = min(size, first + count - at)
        out, ends = sweep.play(setup.seed, at, some, len(gold))
        where = (np.arange(some * B).reshape(some, B, 1) * nodes + ends[:, :, known]) * 2 + gold[known]
        tally = np.bincount(where[ends[:, :, known] >= 0], minlength=some * B * nodes * 2).reshape(some, B, nodes, 2)
        many = tally.sum(axis=(2, 3))[:, :, None]
        mean = np.einsum("rbnt,vnt->rbv", tally, worth) / np.where(many > 0, many, np.nan)
        used, most = out[:, :, 1].astype(np.int64), out[:, :, 2].astype(np.int64)
        parts.append((mean, used, most, ends[: max(keep - at, 0)]))
    mean, used, most, ends = (np.concatenate(one) for one in zip(*parts, strict=True))
    return mean, used, most, ends


def same_choices(small: PolicyArrays, large: PolicyArrays) -> bool:
    """Whether two budgets' tables say the same wherever arrivals so far and arrivals left are the same."""
    if small.mode in (BY_DEFICIT, BY_LEVELS) or small.mode != large.mode:
        return False
    pairs = [(getattr(small, name), getattr(large, name)) for name in ("static", "rows", "core", "facts", "quantiles")]
    pairs.append((small.price, large.price[: len(small.price)]))
    return all(np.array_equal(a, b) for a, b in pairs)


def decisions_of(prior: Prior, threshold: float, depth: int) -> Ints:
    """1{I > 1/2} at every node of a class, -1 where I is 1/2."""
    above = prior.above(threshold, *triangle_counts(depth))
    return np.where(np.abs(above - 0.5) < TIED, -1, (above > 0.5).astype(np.int64))


def credits(decision: Ints, ties: str) -> Floats:
    """(..., 2) what a task is worth that is decided so, if its truth is 0 or 1."""
    said = np.where(decision < 0, TIES[ties], decision)
    return np.where(said[..., None] < 0, 0.5, said[..., None] == np.arange(2))
