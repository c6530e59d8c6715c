"""Replay recorded labels: what a policy would have made of a crowd that really answered.

========= ========= ============ ==================================================================
symbol    code      shape        meaning
========= ========= ============ ==================================================================
--        labels    (N, most)    recorded labels of each task in the order of the file, -1 past its last
--        counts    (N,)         how many there are
--        gold      (N,)         the truth, -1 where it is not known
I         --        --           P(theta > d) after the labels that came in; the decision is 1{I > 1/2}
========= ========= ============ ==================================================================

A replication draws K of the N tasks and their order, and the order of each task's labels, from the uniforms of (seed,
replication, task, label): every policy meets the same tasks and the same labels in the same order, whatever the chunks.
Labels are used without replacement; a task that has none left is no longer offered. Arrivals and durations are those of
the model. Budgets for which a policy has the same tables are played in one pass (``kernels.replay``); it changes no
digit. Guarantee: accuracy against gold on this data set, with the interval of the replay's own randomness only; it
is no estimate for another crowd, and the bound of the model is no bound for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.beliefs.prior import Prior
from nextlabel.errors import InputError
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.policy import BY_DEFICIT, BY_LEVELS, PolicyArrays
from nextlabel.kernels.recorded import FILE, RANDOM, REVERSED
from nextlabel.kernels.replay import Ends, RecordedLabels, replay_budgets
from nextlabel.kernels.rollout import ProblemArrays
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import make_policy_arrays, make_problem_arrays, no_gap
from nextlabel.problem.estimate import Estimate
from nextlabel.problem.problem import Problem, TaskClass, whole
from nextlabel.simulation.engine import NOTHING, Engine, run_chunks
from nextlabel.solve.progress import Progress, part

ORDERS = {"random": RANDOM, "file": FILE, "reversed": REVERSED}
#: What a task counts for whose posterior is a coin flip: half a task, or as if it were decided one way.
TIES = {"half": -1, "positive": 1, "negative": 0}


@dataclass(frozen=True)
class Recorded:
    """Tasks with the labels they were given, the truth where it is known, and who gave each label, if that is known."""

    tasks: tuple[str, ...]
    labels: Ints
    counts: Ints
    gold: Ints
    workers: Ints | None = None
    answers: int = 2

    def __len__(self) -> int:
        return len(self.tasks)

    def subset(self, rows: Ints) -> Recorded:
        """The tasks in ``rows``, in that order."""
        who = None if self.workers is None else self.workers[rows]
        names = tuple(self.tasks[i] for i in rows)
        return Recorded(names, self.labels[rows], self.counts[rows], self.gold[rows], who, self.answers)

    def shares(self) -> Floats:
        """Share of positive labels of each task."""
        return np.asarray((self.labels == 1).sum(axis=1) / self.counts, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One policy on recorded labels with one budget."""

    name: str
    budget: int
    accuracy: Estimate
    accuracies: Floats
    labels_used: float
    most_labels: int


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """What all campaigns on the same recorded labels have in common; ``seed`` decides what is drawn."""

    recorded: Recorded
    prior: Prior = field(default_factory=lambda: Beta(1, 1))
    threshold: float = 0.5
    arrival_rate: float = 0.1
    completion_rate: float = 0.4
    order: str = "random"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BudgetSweep:
    """One policy and the budgets, rising, that it plays in one pass; ``arrays`` has the last of them."""

    arrays: ProblemArrays
    tables: PolicyArrays
    records: RecordedLabels
    budgets: tuple[int, ...]

    def ends(self, nodes: int, keep: bool, seed: int, first: int, count: int) -> Ends:
        """Replications first .. first + count - 1, on lattices of ``nodes``; ``keep`` the labels of each task."""
        out = no_ends(count, len(self.budgets), nodes, len(self.arrays.root) if keep else 0)
        arrays = self.arrays._replace(root=np.zeros_like(self.arrays.root))
        budgets = np.array(self.budgets, dtype=np.int64)
        replay_budgets(arrays, self.tables, no_gap(), self.records, budgets, seed, first, out)
        return out


def no_ends(count: int, budgets: int, nodes: int, tasks: int) -> Ends:
    """Room for what a replay counts."""
    shapes = (count, budgets, nodes, 2), (count, budgets), (count, budgets), (count, budgets, tasks)
    return Ends(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


def replay(
    setup: ReplaySetup,
    policies: Sequence[Policy | str],
    *,
    budget: int | Sequence[int],
    tasks: int | None = None,
    ties: str = "half",
    replications: int = 1000,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> list[Replayed]:
    """Every policy with every budget, on ``tasks`` tasks drawn anew in each replication (all of them if not given).

    One entry for each policy and budget: all budgets of the first policy as they were given, then those of the next.
    """
    recorded, seed = setup.recorded, setup.seed
    K = len(recorded) if tasks is None else whole("number of tasks", tasks, 1, "Give at least one task.")
    wanted = budget if isinstance(budget, Sequence) else [budget]
    budgets = [whole("budget", b, 0, "Give the number of labels to buy, e.g. --budget 1200.") for b in wanted]
    _check(recorded, K, budgets, setup.order, ties)
    whole("seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    count = whole("replications", replications, 1, "Give at least one replication, e.g. --replications 1000.")
    kinds, classes = _classes(setup, K)
    most = int(kinds[-1])
    problems = [Problem(classes, b, setup.arrival_rate, setup.completion_rate) for b in sorted(set(budgets))]
    settings = [Setting.of(problem, most, most) for problem in problems]
    depth = max(setting.depth for setting in settings)  # nodes are numbered alike, however deep the lattice
    credit = credits(decisions_of(setup.prior, setup.threshold, depth), ties)
    out = []
    for k, given in enumerate(policies):
        policy = make_policy(given)
        sweeps = budget_sweeps(policy, settings, setup, kinds, K)
        found: dict[int, Floats] = {}
        for c, one in enumerate(sweeps):
            mine = part(part(progress, k, len(policies)), c, len(sweeps))
            result, _ = run_chunks(engine or Engine(), partial(replay_chunk, one, credit, seed), count, mine)
            found.update((b, result[:, at]) for at, b in enumerate(one.budgets))
        out += [_replayed(policy.name, b, found[b]) for b in budgets]
    return out


def replay_chunk(sweep: BudgetSweep, credit: Floats, seed: int, first: int, count: int) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1: accuracy, labels used, most labels of one task for each budget."""
    ends = sweep.ends(len(credit), False, seed, first, count)
    return np.stack([accuracy_of_ends(ends.tasks, credit), ends.used, ends.most], axis=-1), NOTHING


def budget_sweeps(
    policy: Policy, settings: Sequence[Setting], setup: ReplaySetup, kinds: Ints, K: int
) -> list[BudgetSweep]:
    """Neighbouring budgets, a setting each, with the same tables are one sweep; ``kinds``: labels that tasks have."""
    out: list[BudgetSweep] = []
    for setting in settings:
        tables = make_policy_arrays(setting, policy)
        arrays = make_problem_arrays(setting, True, np.minimum(kinds, setting.depth))
        budgets: tuple[int, ...] = (setting.problem.budget,)
        if out and same_choices(out[-1].tables, tables):
            budgets = out.pop().budgets + budgets
        records = recorded_labels(setup, kinds, [view.nodes for view in setting.views])
        out.append(BudgetSweep(arrays._replace(root=np.zeros(K, dtype=np.int64)), tables, records, budgets))
    return out


def recorded_labels(setup: ReplaySetup, kinds: Ints, sizes: Sequence[int]) -> RecordedLabels:
    """Labels, truth, and where a task with so many labels starts; ``kinds`` are the numbers that count."""
    recorded = setup.recorded
    start = np.zeros(int(recorded.counts.max()) + 1, dtype=np.int64)
    begin = np.cumsum([0, *sizes[:-1]])
    start[recorded.counts] = begin[np.searchsorted(kinds, np.minimum(recorded.counts, kinds[-1]))]
    return RecordedLabels(recorded.labels, recorded.counts, recorded.gold, start, ORDERS[setup.order])


def same_choices(small: PolicyArrays, large: PolicyArrays) -> bool:
    """Whether two budgets' tables say the same wherever arrivals so far and arrivals left are the same."""
    if small.mode in (BY_DEFICIT, BY_LEVELS) or small.mode != large.mode:
        return False
    pairs = [(getattr(small, name), getattr(large, name)) for name in ("static", "rows", "core", "facts", "quantiles")]
    pairs.append((small.price, large.price[: len(small.price)]))
    return all(np.array_equal(a, b) for a, b in pairs)


def _replayed(name: str, budget: int, found: Floats) -> Replayed:
    accuracies, used, most = found[:, 0].copy(), found[:, 1], found[:, 2]
    return Replayed(name, budget, Estimate.of(accuracies), accuracies, float(used.mean()), int(most.max()))


def _check(recorded: Recorded, K: int, budgets: Sequence[int], order: str, ties: str) -> None:
    if order not in ORDERS:
        raise InputError(f"order {order!r} is not known.", f"Use one of {', '.join(ORDERS)}.")
    if ties not in TIES:
        raise InputError(f"ties {ties!r} is not known.", f"Use one of {', '.join(TIES)}.")
    if len(recorded) < K:
        raise InputError(f"{K} tasks are asked for, but {len(recorded)} are recorded.", "Ask for fewer tasks.")
    if not budgets:
        raise InputError("no budget is given.", "Give at least one number of labels.")


def _classes(setup: ReplaySetup, K: int) -> tuple[Ints, tuple[TaskClass, ...]]:
    """Numbers of labels that occur, and a class of tasks for each, in the proportions of the data."""
    kinds, many = np.unique(setup.recorded.counts, return_counts=True)
    counts = np.maximum(1, np.round(many * (K / len(setup.recorded)))).astype(np.int64)
    return kinds, tuple(TaskClass(int(c), setup.prior, setup.threshold) for c in counts)


def decisions_of(prior: Prior, threshold: float, depth: int) -> Ints:
    """1{I > 1/2} at every node of a class, -1 where I is 1/2."""
    level, ones = triangle_counts(depth)
    return decide(prior.above(threshold, level, ones))


def decide(above: Floats) -> Ints:
    """1{I > 1/2}, -1 where I is 1/2."""
    return np.where(np.abs(above - 0.5) < TIED, -1, (above > 0.5).astype(np.int64))


def credits(decision: Ints, ties: str) -> Floats:
    """(..., 2) what a task is worth that is decided so, if its truth is 0 or 1."""
    said = np.where(decision < 0, TIES[ties], decision)
    return np.where(said[..., None] < 0, 0.5, said[..., None] == np.arange(2))


def accuracy_of_ends(ends: Ints, credit: Floats) -> Floats:
    """Accuracy from (..., nodes, 2) counts of ends."""
    known = ends.sum(axis=(-2, -1))
    right = np.einsum("...nt,nt->...", ends, credit)
    return np.asarray(right / np.where(known > 0, known, np.nan), dtype=np.float64)
