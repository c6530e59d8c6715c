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
the model. Guarantee: accuracy against gold on this data set, with the interval of the replay's own randomness only; it
is no estimate for another crowd, and the bound of the model is no bound for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.errors import InputError
from nextlabel.kernels.recorded import FILE, RANDOM, REVERSED, draw_recorded
from nextlabel.kernels.rollout import Tables, World
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import Problem, TaskClass, whole
from nextlabel.simulate.engine import CHUNKS_A_WORKER, Engine, run_chunk
from nextlabel.simulate.study import Estimate
from nextlabel.simulate.world import make_tables, make_world, no_gap
from nextlabel.solve.progress import Progress, part

ORDERS = {"random": RANDOM, "file": FILE, "reversed": REVERSED}
#: What a task counts for whose posterior is a coin flip: half a task, or as if it were decided one way.
TIES = ("half", "positive", "negative")
EVEN = 1e-9


@dataclass(frozen=True)
class Recorded:
    """Tasks with the labels they were given, and the truth where it is known."""

    tasks: tuple[str, ...]
    labels: Ints
    counts: Ints
    gold: Ints

    def __len__(self) -> int:
        return len(self.tasks)

    def subset(self, rows: Ints) -> Recorded:
        """The tasks in ``rows``, in that order."""
        return Recorded(tuple(self.tasks[i] for i in rows), self.labels[rows], self.counts[rows], self.gold[rows])

    def shares(self) -> Floats:
        """Share of positive labels of each task."""
        return np.asarray((self.labels == 1).sum(axis=1) / self.counts, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One policy on recorded labels."""

    name: str
    accuracy: Estimate
    accuracies: Floats
    labels_used: float
    most_labels: int


@dataclass(frozen=True)
class _Crowd:
    """What a chunk of replications needs."""

    world: World
    tables: Tables
    recorded: Recorded
    root: Ints  # where a task with that many labels starts
    order: int
    decision: Floats  # (nodes,) 1, 0, or -1 for a tie
    tie: int  # what a tie is decided as, -1 for half


def replay(
    recorded: Recorded,
    policies: Sequence[Policy | str],
    *,
    budget: int,
    tasks: int | None = None,
    prior: Beta | None = None,
    threshold: float = 0.5,
    order: str = "random",
    ties: str = "half",
    replications: int = 1000,
    seed: int = 0,
    arrival_rate: float = 0.1,
    completion_rate: float = 0.4,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> list[Replayed]:
    """Every policy on ``tasks`` tasks drawn anew in each replication (all of them if not given), ``budget`` labels."""
    K = len(recorded) if tasks is None else whole("number of tasks", tasks, 1, "Give at least one task.")
    _check(recorded, K, order, ties)
    whole("seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    count = whole("replications", replications, 1, "Give at least one replication, e.g. --replications 1000.")
    kinds, classes = _classes(recorded, K, prior or Beta(1, 1), threshold)
    problem = Problem(classes, budget, arrival_rate, completion_rate)
    setting = Setting.of(problem, int(kinds[-1]), int(kinds[-1]))
    world = make_world(setting, True, np.minimum(kinds, setting.depth))
    starts = np.unique(world.root)
    root = np.zeros(int(kinds[-1]) + 1, dtype=np.int64)
    root[kinds] = starts
    decision = np.concatenate([_decisions(entry, setting.depth) for entry in classes])
    engine = engine or Engine()
    out = []
    for k, given in enumerate(policies):
        policy = make_policy(given) if isinstance(given, str) else given
        tables = make_tables(setting, policy)
        tie = {"half": -1, "positive": 1, "negative": 0}[ties]
        crowd = _Crowd(world, tables, recorded, root, ORDERS[order], decision, tie)
        found = _run(engine, crowd, K, count, seed, part(progress, k, len(policies)))
        out.append(
            Replayed(policy.name, Estimate.of(found[:, 0]), found[:, 0], found[:, 1].mean(), int(found[:, 2].max()))
        )
    return out


def replay_chunk(crowd: _Crowd, K: int, seed: int, first: int, count: int) -> Floats:
    """Replications first .. first + count - 1: accuracy, labels used, most labels of one task."""
    recorded = crowd.recorded
    labels = np.zeros((K, recorded.labels.shape[1]), dtype=np.int64)
    rows = np.zeros(K, dtype=np.int64)
    out = np.zeros((count, 3))
    for i in range(count):
        draw_recorded(recorded.labels, recorded.counts, seed, first + i, crowd.order, rows, labels)
        world = crowd.world._replace(root=crowd.root[recorded.counts[rows]])
        done, final = run_chunk(world, crowd.tables, no_gap(), labels, seed, first + i, 1, True)
        out[i] = _accuracy(crowd, recorded.gold[rows], final[0]), done[0, 1], done[0, 2]
    return out


def _accuracy(crowd: _Crowd, gold: Ints, final: Ints) -> float:
    known = gold >= 0
    said = crowd.decision[final[known]]
    if crowd.tie >= 0:
        said = np.where(said < 0, float(crowd.tie), said)
    right = np.where(said < 0, 0.5, said == gold[known])
    return float(right.mean()) if len(right) else float("nan")


def _run(engine: Engine, crowd: _Crowd, K: int, count: int, seed: int, progress: Progress | None) -> Floats:
    from joblib import Parallel, delayed

    size = max(1, -(-count // (CHUNKS_A_WORKER * engine.jobs)))
    starts = range(0, count, size)
    calls = (delayed(replay_chunk)(crowd, K, seed, first, min(size, count - first)) for first in starts)
    done: list[Floats] = []
    for piece in Parallel(n_jobs=engine.jobs, backend="threading", return_as="generator")(calls):
        done.append(piece)
        if progress is not None:
            progress(len(done) / len(starts))
    return np.concatenate(done)


def _check(recorded: Recorded, K: int, order: str, ties: str) -> None:
    if order not in ORDERS:
        raise InputError(f"order {order!r} is not known.", f"Use one of {', '.join(ORDERS)}.")
    if ties not in TIES:
        raise InputError(f"ties {ties!r} is not known.", f"Use one of {', '.join(TIES)}.")
    if len(recorded) < K:
        raise InputError(f"{K} tasks are asked for, but {len(recorded)} are recorded.", "Ask for fewer tasks.")


def _classes(recorded: Recorded, K: int, prior: Beta, threshold: float) -> tuple[Ints, tuple[TaskClass, ...]]:
    """Numbers of labels that occur, and a class of tasks for each, in the proportions of the data."""
    kinds, many = np.unique(recorded.counts, return_counts=True)
    counts = np.maximum(1, np.round(many * (K / len(recorded)))).astype(np.int64)
    return kinds, tuple(TaskClass(int(c), prior, threshold) for c in counts)


def _decisions(entry: TaskClass, depth: int) -> Floats:
    """1{I > 1/2} at every node of a class, -1 where I is 1/2."""
    level, ones = triangle_counts(depth)
    above = betainc(entry.prior.beta + level - ones, entry.prior.alpha + ones, 1.0 - entry.threshold)
    return np.where(np.abs(above - 0.5) < EVEN, -1.0, (above > 0.5).astype(np.float64))
