"""Replay recorded labels with the workers who gave them: what ``crowd`` would have made of a crowd that did answer.

============= =========================================================================================
task first    the policy names a task; its next recorded label comes in, with its worker (random order)
worker first  the recorded labels' workers arrive; the policy picks a task of the worker's own record
timed         arrivals, durations and workers as they were, batch by batch (``play_timed``)
============= =========================================================================================

Draws are keyed by (seed, replication): every policy meets the same orders, and task first these are the orders of
``simulation.replay``, so that policies for equal workers can be compared on them. Tasks are numbered in random order,
so that nothing depends on their order in the file. A policy sees labels and workers, never gold. When the budget is
spent, all labels given are read out together:

========= =================================================================================================
workers   all labels are fitted from the votes on until the evidence bound rests (``crowd.fit``); the answer is
          the likeliest truth
majority  the answer that most of a task's labels give
crowdlab  with features of the tasks: CROWDLAB's weighted mean of people and of what a learner says (``crowd.crowdlab``)
========= =================================================================================================

A tie counts as the share of its answers that are right; a task without labels is a tie of all answers.
Guarantee: deterministic; a recorded label is used at most once; the budget is spent to the last label unless the record
runs out. It is accuracy against gold on this record, no estimate for another crowd. Cost: a refit after every
``REFIT_SHARE`` labels per task, each some nanoseconds per label and sweep, and the relaxations that ``crowd`` solves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.crowdlab import activelab, crowdlab
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.learner import expected_jointly, learn_jointly
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError, one_of, refuse
from nextlabel.files.features import Features
from nextlabel.kernels.crowd_campaign import new_bins, put
from nextlabel.kernels.crowd_rollout import (
    ARRIVED,
    TURNED_AWAY,
    CrowdWorld,
    RecordedCrowd,
    draw_arrivals,
    new_crowd_run,
    play_crowd,
)
from nextlabel.kernels.events import RANDOM, Timing, draw_recorded
from nextlabel.kernels.inputs import TIED
from nextlabel.model.estimate import Estimate
from nextlabel.model.tasks import whole
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.policies import MOST_PLANS, ActiveLab
from nextlabel.policies.registry import make_policy
from nextlabel.simulation.replay import ARRIVALS, AT_ONCE_RATE, CrowdRecord, ReplaySetup, budget_sweeps, labels_at
from nextlabel.solve.progress import Progress

#: How recorded labels are replayed.
REPLAYS = ("task-first", "worker-first", "timed")
#: Labels per task after which everything is fitted anew; with real times per task of a batch.
REFIT_SHARE, TIMED_REFIT_SHARE = 0.03, 0.1
#: Labels per task after which a learner of the tasks' features is taught anew.
TAUGHT_SHARE = 0.125
#: How many times the relaxation is solved again while the budget is spent; refits in between move the beliefs.
RESOLVES = 10


def learnt_beliefs(
    labels: CrowdLabels,
    prior: CrowdPrior | None = None,
    features: Features | None = None,
    tasks: Sequence[Any] = (),
) -> tuple[dict[str, Floats], float]:
    """(K, C) by read-out, and the share of the answers of "workers" that is right by the model's own word.

    With ``features`` of the ``tasks`` "workers" learns from them too, beside "crowdlab".
    """
    if features is None:
        beliefs = fit_crowd(labels, prior=prior).beliefs
        return {"workers": beliefs}, float(beliefs.max(axis=1).mean())
    none = np.full(labels.tasks, -1)
    fit, taught = learn_jointly(labels, none, features, tasks, prior=prior)
    chance = np.where(np.isfinite(taught.chance), taught.chance, fit.share)
    expected = float(fit.beliefs.max(axis=1).mean())
    if taught.prior is not None:
        expected = expected_jointly(fit.beliefs, fit.share, taught.prior, taught.bits, none).mean
    return {"workers": fit.beliefs, "crowdlab": crowdlab(labels, chance)}, expected


def votes_of(labels: CrowdLabels) -> Floats:
    """(K, C) votes for each answer."""
    out = np.zeros((labels.tasks, labels.answers))
    np.add.at(out, (labels.task, labels.answer), 1.0)
    return out


def best_answers(scores: Floats) -> Bools:
    """(K, C) the answers with the highest score of their task; several of them are a tie."""
    return np.asarray(scores >= scores.max(axis=1, keepdims=True) - TIED)


def share_right(scores: Floats, gold: Ints) -> Floats:
    """(K,) 1 where the gold answer alone has the highest score, its share of a tie, nan where gold is not known."""
    best = best_answers(scores)
    out = np.full(len(gold), np.nan)
    known = np.flatnonzero(gold >= 0)
    out[known] = best[known, gold[known]] / best[known].sum(axis=1)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class CrowdReplayed:
    """One policy on a record with one budget; ``right[readout]`` is (replications, K), nan where gold is not known."""

    policy: str
    budget: int
    replay: str
    turn_away: bool
    right: dict[str, Floats]
    expected: Floats
    labels_used: Ints
    turned_away: Ints

    def accuracies(self, readout: str = "workers") -> Floats:
        """(replications,) share of the tasks with gold that are right."""
        return np.asarray(np.nanmean(self.right[readout], axis=1), dtype=np.float64)

    def accuracy(self, readout: str = "workers") -> Estimate:
        """The mean over the orders, with an interval for the orders alone."""
        return Estimate.of(self.accuracies(readout))


@dataclass(frozen=True, slots=True)
class CrowdReplaySetup:
    """What all campaigns on one record have in common."""

    record: CrowdRecord
    replay: str = "task-first"
    turn_away: bool = False
    seed: int = 0
    prior: CrowdPrior | None = None
    expert: float = 0.0
    features: Features | None = None


def replay_crowd(
    record: CrowdRecord,
    policies: Sequence[str | Policy],
    budgets: Sequence[int],
    *,
    replay: str = "task-first",
    turn_away: bool = False,
    replications: int = 50,
    seed: int = 0,
    prior: CrowdPrior | None = None,
    features: Features | None = None,
    progress: Progress | None = None,
) -> list[CrowdReplayed]:
    """Every policy with every budget (labels in all): the budgets of the first policy as given, then the next policy's.

    ``policies`` are ``crowd``, ``crowd-uncertainty`` (least certain first), ``uniform`` (fewest labels first) or one of
    your own that knows workers; task first and with two answers also those for equal workers (``index``, ``okg`` ...).
    ``activelab`` learns from features, task first. ``turn_away`` lets a policy send an arriving worker away, which
    costs nothing. A timed replay leaves nothing to chance and is made once. ``features`` of the record's tasks are
    learnt from as labels come in, by ``crowd`` and ``crowd-uncertainty`` and in the read-out.
    """
    setup = CrowdReplaySetup(record, replay, turn_away, seed, prior, features=features)
    count = _checked(setup, budgets, replications)
    count = 1 if replay == "timed" else count  # nothing is left to chance
    rising = sorted(set(budgets))
    out = []
    for k, policy in enumerate(map(make_policy, policies)):
        found: dict[int, list[tuple[dict[str, Floats], float, int, int]]] = {budget: [] for budget in rising}
        for replication in range(count):
            for budget, given, turned in labels_given(setup, policy, rising, replication):
                beliefs, expected = learnt_beliefs(given, prior, features, record.tasks)
                scores = {**beliefs, "majority": votes_of(given)}
                right = {name: share_right(some, record.gold) for name, some in scores.items()}
                found[budget].append((right, expected, len(given.task), turned))
            if progress is not None:
                progress((k + (replication + 1) / count) / len(policies))
        for budget in budgets:
            rights, *numbers = zip(*found[budget], strict=True)
            by_readout = {name: np.array([one[name] for one in rights]) for name in rights[0]}
            out.append(CrowdReplayed(policy.name, budget, replay, turn_away, by_readout, *map(np.array, numbers)))
    return out


def labels_given(
    setup: CrowdReplaySetup, rule: str | Policy, budgets: Sequence[int], replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """(budget, labels given, arrivals turned away) of one replication, for rising budgets."""
    policy = make_policy(rule)
    if not policy.knows_workers:
        what = f"policy {policy.name!r} takes workers as equal and is replayed task-first only."
        refuse((setup.replay != "task-first", what, "Use crowd, crowd-uncertainty or uniform."))
        yield from labels_by_equal_workers(setup.record, policy, budgets, setup.seed, replication)
    elif isinstance(policy, ActiveLab):
        yield from labels_by_activelab(setup, budgets, replication)
    elif setup.replay == "timed":
        for budget in budgets:
            yield play_timed(setup, policy, budget)
    elif not policy.planned_ahead and not (setup.turn_away and setup.replay == "worker-first"):
        yield from play_orders(setup, policy, budgets, replication)
    else:
        for budget in budgets:
            yield from play_orders(setup, policy, [budget], replication)


def _checked(setup: CrowdReplaySetup, budgets: Sequence[int], replications: int) -> int:
    record = setup.record
    one_of("replay", setup.replay, REPLAYS)
    refuse(
        (
            setup.turn_away and setup.replay == "task-first",
            "task first, nobody can be turned away: the task is chosen before it is known who comes.",
            "Replay worker-first, or leave out --turn-away.",
        ),
        (not budgets, "no budget is given.", "Give at least one number of labels."),
    )
    for budget in budgets:
        whole("budget", budget, 1, "Give the number of labels to buy, e.g. --budget 1200.")
        what = f"the budget is {budget:,} and {len(record):,} labels are recorded."
        refuse((budget > len(record), what, "Give a smaller one."))
    pairs = record.labels.task * record.labels.workers + record.labels.worker
    refuse((
        len(np.unique(pairs)) < len(record),
        "a worker has labelled a task more than once.",
        "Keep the first label of each worker on each task.",
    ))  # fmt: skip
    if setup.replay == "timed":
        Schedule.of(record, max(budgets))  # refuses a record without times
    whole("seed", setup.seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    return whole("replications", replications, 1, "Give at least one replication, e.g. --replications 50.")


def new_allocator(
    setup: CrowdReplaySetup, rule: Policy, budget: int, replication: int = 0, expert: float = 0.0
) -> CrowdAllocator:
    """An allocator of all tasks, which learns the workers."""
    labels, task_first = setup.record.labels, setup.replay == "task-first"
    settings = CrowdSettings(rule, setup.turn_away, task_first, resolves=RESOLVES, seed=setup.seed, expert=expert)
    return CrowdAllocator(
        np.full((labels.tasks, labels.answers), 1.0 / labels.answers), budget, settings,
        workers=labels.workers, prior=setup.prior, arrivals=len(setup.record), replication=replication,
    )  # fmt: skip


def play_orders(
    setup: CrowdReplaySetup, rule: Policy, budgets: Sequence[int], replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """Labels in random order: the policy's decisions between two refits are one kernel call.

    Yields (budget, labels given, arrivals turned away) for the rising ``budgets`` of one campaign.
    """
    task_first, K = setup.replay == "task-first", setup.record.labels.tasks
    rows, world = _recorded_world(setup, budgets[-1], replication)
    policy = new_allocator(setup, rule, budgets[-1], replication, setup.expert)
    run = new_crowd_run(world, np.zeros((0, setup.record.labels.answers)), setup.seed, replication)
    step, lesson = max(1, int(REFIT_SHARE * K)), max(1, int(TAUGHT_SHARE * K))
    next_fit, next_lesson, next_solve, over = step, K // 8, 0, False
    for budget in budgets:
        while not over and policy.given < budget:
            over = play_crowd(
                world, run, policy.campaign, policy.plan, setup.turn_away, setup.seed, replication,
                min(budget, next_fit),
            )  # fmt: skip
            policy.given = int(policy.campaign.history.size[0])
            if not task_first:
                policy.arrivals = float(len(setup.record) - run.counters[ARRIVED])
            if policy.given >= next_fit:
                next_fit = policy.given + step
                if setup.features is not None and policy.given >= next_lesson:
                    next_lesson = policy.given + lesson
                    policy.hear(policy.labels(K), setup.features, [setup.record.tasks[x] for x in rows])
                policy.refit()
                # Task first everybody is the same mixture of workers: the plan moves slowly, and ten are enough.
                if policy.due and (not task_first or policy.given >= next_solve):
                    policy.resolve()
                    next_solve = policy.given + budgets[-1] // RESOLVES
                else:
                    policy.rebin()
        given = policy.labels(K)
        yield budget, given._replace(task=rows[given.task]), 0 if task_first else int(run.counters[TURNED_AWAY])


def _recorded_world(setup: CrowdReplaySetup, budget: int, replication: int) -> tuple[Ints, CrowdWorld]:
    """The tasks in random order, and the record with tasks numbered by it, labels and workers in random order."""
    record, labels, seed = setup.record, setup.record.labels, setup.seed
    place, none = record.rows, np.zeros(0, dtype=np.int64)
    rows, order = np.zeros(labels.tasks, dtype=np.int64), np.zeros_like(place)
    draw_recorded(place, record.counts, seed, replication, RANDOM, rows, order)
    rank = np.argsort(rows)
    own = np.argsort(labels.worker, kind="stable")
    start = np.searchsorted(labels.worker[own], np.arange(labels.workers + 1)).astype(np.int64)
    if setup.replay != "task-first":
        order = order[:0]
    drawn = RecordedCrowd(
        rank[labels.task], labels.worker, labels.answer, order, own, start, np.zeros(len(record), dtype=np.int64),
        np.zeros(budget, dtype=np.int64),
    )  # fmt: skip
    arrivals = labels.worker[draw_arrivals(len(record), seed, replication)]
    at_once = Timing(np.zeros(1), np.ones(1), np.inf, np.inf, True)
    channels, nowhere = np.zeros((0, labels.answers, labels.answers)), np.zeros(0)
    return rows, CrowdWorld(none, arrivals, channels, none, nowhere, nowhere, budget, at_once, drawn)


def labels_by_equal_workers(
    record: CrowdRecord, policy: Policy, budgets: Sequence[int], seed: int, replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """Which labels a policy for equal workers takes, task first, at once; Beta(1, 1) and the threshold 1/2.

    The draws are those of ``simulation.replay``: what the policy decides there is how many labels each task gets, and
    these are the first of the task's drawn order. So its labels can be read out with the workers who gave them.
    """
    labels = record.labels
    what = f"policy {policy.name!r} is for two answers, and the labels have {labels.answers}."
    refuse((labels.answers != 2, what, "Use crowd, crowd-uncertainty or uniform."))
    place, setup = record.rows, ReplaySetup(record, arrival_rate=ARRIVALS, completion_rate=AT_ONCE_RATE, seed=seed)
    drawn = setup.drawn(replication)
    by_task = np.where(drawn >= 0, np.take_along_axis(place, np.maximum(drawn, 0), axis=1), -1)
    for sweep in budget_sweeps(setup, policy, budgets):
        _, ends = sweep.play(seed, replication, 1, labels.tasks)
        for budget, taken in zip(sweep.budgets, labels_at(ends[0]), strict=True):
            yield budget, record.some(by_task[np.arange(place.shape[1])[None, :] < taken[:, None]]), 0


def labels_by_activelab(
    setup: CrowdReplaySetup, budgets: Sequence[int], replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """Which labels ActiveLab takes, task first: after every lesson one label each for the items of the lowest score."""
    record, features = setup.record, setup.features
    if setup.replay != "task-first" or features is None:
        raise InputError(
            "activelab chooses among items with features, task first.", "Give --features, and no --replay."
        )
    K, place, counts = record.labels.tasks, record.rows, record.counts
    rows, order = np.zeros(K, dtype=np.int64), np.zeros_like(place)
    draw_recorded(place, counts, setup.seed, replication, RANDOM, rows, order)
    taken, score, some = np.zeros(K, dtype=np.int64), np.zeros(K), np.zeros(0, dtype=np.int64)  # by the drawn order
    lesson = max(1, int(TAUGHT_SHARE * K))
    for budget in budgets:
        while len(some) < budget:
            open_ = np.flatnonzero(taken < counts[rows])
            taken[open_[np.argsort(score[open_], kind="stable")[: min(lesson, budget - len(some))]]] += 1
            some = order[np.arange(order.shape[1])[None, :] < taken[:, None]]
            given = record.some(some)
            fit, taught = learn_jointly(given, np.full(K, -1), features, record.tasks, prior=setup.prior)
            score = activelab(given, np.where(np.isfinite(taught.chance), taught.chance, fit.share))[rows]
        yield budget, given, 0


class Schedule(NamedTuple):
    """Arrivals of a record by their times: rows of the record, the batch of each row, and each batch's budget."""

    arrivals: Ints
    batch: Ints
    seconds: Floats
    budgets: Ints

    @classmethod
    def of(cls, record: CrowdRecord, budget: int) -> Schedule:
        """From the record's own times; ``budget`` is shared out by the batches' tasks."""
        if record.started is None or record.submitted is None:
            raise InputError(
                "the labels have no times at which they were begun and handed in.",
                "Name the columns with --assigned-column and --submitted-column, or replay worker-first.",
            )
        seconds = record.submitted - record.started
        unknown = int(np.count_nonzero(~np.isfinite(seconds) | (seconds < 0)))
        what = f"{unknown:,} of {len(record):,} labels lack a time or were handed in before they were begun."
        refuse((unknown, what, "Leave these labels out, or replay worker-first."))
        batch = np.zeros(len(record), dtype=np.int64)
        if record.batch is not None:
            batch = np.unique(record.batch, return_inverse=True)[1].astype(np.int64)
        pairs = np.unique(np.stack([batch, record.labels.task], axis=1), axis=0)
        tasks = np.bincount(pairs[:, 0])
        order = np.argsort(record.started, kind="stable").astype(np.int64)
        return cls(order, batch, seconds, shared_out(budget, tasks, np.bincount(batch)))


def shared_out(budget: int, tasks: Ints, most: Ints) -> Ints:
    """Whole numbers in proportion to ``tasks``, at most ``most`` each, that sum to ``budget``."""
    out = np.zeros(len(tasks), dtype=np.int64)
    while out.sum() < budget:
        open_ = out < most
        exact = (budget - out.sum()) * tasks * open_ / (tasks * open_).sum()
        more = np.floor(exact).astype(np.int64)
        left = int(budget - out.sum() - more.sum())
        more[np.argsort(-(exact - more), kind="stable")[:left]] += 1
        out = np.minimum(out + more * open_, most)
    return out


def play_timed(setup: CrowdReplaySetup, rule: Policy, budget: int) -> tuple[int, CrowdLabels, int]:
    """Recorded labels with their own times: budget, labels given, arrivals turned away, by one policy over all batches.

    ========= =====================================================================================================
    arrival   each recorded label is one: its worker asks at the moment at which they began it
    eligible  tasks of the arrival's batch that this worker labelled in it and has not been given yet
    answer    the recorded one; it comes in as long after the arrival as the recorded label took
    batch     a batch has its own tasks, its share of the budget and its own prices; workers are learnt across batches
    ========= =====================================================================================================

    The budget is shared out among the batches by their numbers of tasks. A policy knows how many arrivals a batch still
    has, but not whose. Without turning workers away every arrival is served until the batch's budget is gone. Batches
    may overlap in time; labels in flight are integrated out (``kernels.crowd_campaign``).
    Guarantee: deterministic, no chance at all; no answer is used before it was handed in.
    """
    record, labels, schedule = setup.record, setup.record.labels, Schedule.of(setup.record, budget)
    whole_campaign, left, turned = new_allocator(setup, rule, budget), np.bincount(schedule.batch), 0
    rows, views = defaultdict[tuple[int, int], list[int]](list), dict[int, CrowdAllocator]()
    for row, key in enumerate(zip(labels.worker.tolist(), schedule.batch.tolist(), strict=True)):
        rows[key].append(row)
    pending, step, next_fit = list[tuple[float, int, int, int]](), 1, 1
    assert record.started is not None
    arrivals = [(float(record.started[row]), row) for row in schedule.arrivals.tolist()]
    for now, arrival in [*arrivals, (np.inf, -1)]:
        while pending and pending[0][0] <= now:
            _, entry, row, batch = heappop(pending)
            view, next_fit = views.get(batch, whole_campaign), next_fit - 1
            view.complete(entry, int(labels.answer[row]))
            if next_fit <= 0:
                next_fit = step
                view.refit()
                for other in views.values():
                    (other.resolve if other.due else other.rebin)()
        if arrival < 0:
            break
        batch, worker = int(schedule.batch[arrival]), int(labels.worker[arrival])
        if batch not in views:
            views[batch], step = _open(whole_campaign, labels, schedule, batch)
        view, mine = views[batch], rows[worker, batch]
        if view.given < view.budget:
            tasks = labels.task[mine]
            outlook = view.outlook(tasks)
            x = view.choose(worker, outlook)
            view.arrived(worker)
            if isinstance(x, str):
                turned += 1
            else:
                row, entry = mine.pop(int(np.flatnonzero(tasks == x)[0])), outlook.lease
                view.assign(entry, x, worker)
                heappush(pending, (now + float(schedule.seconds[row]), entry, row, batch))
        left[batch] -= 1
        if left[batch] == 0:
            del views[batch]
    return budget, whole_campaign.labels(labels.tasks), turned


def _open(campaign: CrowdAllocator, labels: CrowdLabels, schedule: Schedule, batch: int) -> tuple[CrowdAllocator, int]:
    """A view of the campaign that has the batch's tasks alone, and the labels after which all is fitted anew."""
    view, rows = copy(campaign), np.flatnonzero(schedule.batch == batch)
    tasks = np.unique(labels.task[rows])
    bins = new_bins(labels.tasks, len(campaign.campaign.bins.head))
    for x in tasks:
        put(bins, x, 0, 0, MOST_PLANS)
    view.campaign = campaign.campaign._replace(bins=bins, kind=np.zeros_like(campaign.campaign.kind))
    view.budget, view.given, view.arrivals = int(schedule.budgets[batch]), 0, float(len(rows))
    view.resolve()
    return view, max(1, int(TIMED_REFIT_SHARE * len(tasks)))
