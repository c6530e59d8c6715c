"""A campaign with workers who differ: tasks in bins by belief and plan, who gets which task, and what a label moves.

The policy ``crowd`` decides by it in simulator, replay and live campaign.

====== ======== ============ ====================================================================================
symbol code     shape        meaning
====== ======== ============ ====================================================================================
--     bin      (K,)         bin of each task, -1 for a task that is closed; bins G + b are for labels in flight
--     plan     (K,)         the single-task plan that the task follows
--     head     (groups,)    first task of group ``bin * plans + plan``, -1 for none; ``tail``: the last one
--     after    (K,)         next task of the same group, -1 at the end; ``before``: the task before it
--     last     (K,)         latest entry of the task in the history, -1 for none
--     earlier  (most,)      the entry before it on the same task, -1 for none
--     answer   (most,)      what came back; IN_FLIGHT, or GONE for work that is not expected any more
p      grid     (G,)         the belief that stands for each bin: P(truth = 1) for two answers, else the largest
m      kind     (W,)         the type of each worker: a number for workers of alike channels
--     wants    (plans, G)   the type that a task in the bin wants next under each plan, -1 for none
w      chance   (plans,)     cumulative weights of the plans: each task follows one of them
--     surplus  (G,)         tasks with more of it go first: V - R, what a task in the bin still has to gain
l_m    loss     (M, G)       V + c_m - E V(after a label of type m): what is lost by a label that is not the best
nu_m   refuse   (M,)         what is lost by turning a worker of the type away
--     first    (M + 1,)     ``order[first[m]:first[m + 1]]`` are the groups that want type m,
--     order    (plans G,)   the largest surplus first
--     spare    (M, G)       bins by loss, the smallest first
A      channels (W, C, C)    P(worker says y | truth c): known, or the posterior mean as it moves
--     given    (K,)         labels given to each task, ``worked`` (W,) to each worker, those in flight counted
--     named    (W,)         1 for a worker who gets a task at most once, 0 for many people under one name
--     options  (4,)         ``LEARNT``: channels are learnt; ``NAMED``: what ``named`` is at first; ``BY_COUNT``: the
                             bin is the number of labels given, not the belief; ``TRIAL``: a worker with fewer
                             labels than this is not turned away
====== ======== ============ ====================================================================================

1. Of the tasks that want the worker's type, the one with the largest surplus.
2. If none does, the task that loses least, if that is less than turning the worker away loses (``must_serve``:
   whatever it loses).
3. Otherwise none.

Labels in flight are integrated out: a task with some comes second, with its loss averaged over the answers to come. A
task that moves joins the end of its new group, so that the tasks of a group take turns. Beliefs of more than two
answers are binned by the largest probability.
Guarantee: heuristic; the bound of ``solve.crowd`` says how good. Cost: O(1) per move. A choice looks at the groups that
want the type, never at the tasks, and at the labels of the tasks that the worker has had already; if no idle task
wants the type, at a few tasks with labels in flight in each bin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_fit import CrowdState, channel_of, new_state, normalise, stream_label
from nextlabel.kernels.events import TIE, stream_key, uniform
from nextlabel.kernels.jit import jit, uncounted

IN_FLIGHT, GONE = -1, -2
LEARNT, NAMED, BY_COUNT, TRIAL = 0, 1, 2, 3
#: Outcomes of the labels in flight on one task that are enumerated; of more labels only the latest count.
MOST_OUTCOMES = 64
#: Labels in flight that are enumerated at most.
MOST_PENDING = 6
#: Tasks with labels in flight that are looked at in one group, and by how much one must be better than the last.
MOST_LOOKS, BETTER = 4, 1e-9
#: Successive shares of the golden ratio are spread evenly over [0, 1), however many are taken.
GOLDEN = 0.6180339887498949


class TaskBins(NamedTuple):
    """K tasks in groups, each a doubly linked list of ``members`` tasks."""

    bin: Ints
    plan: Ints
    head: Ints
    tail: Ints
    after: Ints
    before: Ints
    members: Ints


class History(NamedTuple):
    """The ``size`` (1,) tasks that were given out, and to whom, in the order of time."""

    last: Ints
    earlier: Ints
    task: Ints
    worker: Ints
    answer: Ints
    size: Ints


class CrowdPlan(NamedTuple):
    """What the relaxation says; replaced when it is solved again."""

    grid: Floats
    wants: Ints
    chance: Floats
    surplus: Floats
    loss: Floats
    refuse: Floats
    first: Ints
    order: Ints
    spare: Ints


class CrowdCampaign(NamedTuple):
    """Tasks, workers, what was given out, and how the rule bins tasks; ``after`` (C,) is scratch space."""

    state: CrowdState
    channels: Floats
    kind: Ints
    bins: TaskBins
    history: History
    given: Ints
    arrived: Ints
    worked: Ints
    named: Ints
    options: Ints
    after: Floats


@jit
def new_bins(tasks: int, groups: int) -> TaskBins:
    """All tasks closed."""
    return TaskBins(
        np.full(tasks, -1, dtype=np.int64),
        np.zeros(tasks, dtype=np.int64),
        np.full(groups, -1, dtype=np.int64),
        np.full(groups, -1, dtype=np.int64),
        np.full(tasks, -1, dtype=np.int64),
        np.full(tasks, -1, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
    )


@jit
def new_campaign(
    tasks: int, workers: int, most: int, groups: int, pseudo: Floats, share: Floats, hold: float, options: Ints
) -> CrowdCampaign:
    """All tasks closed, at the prior shares of the truths; every worker at the prior mean, learnt with ``hold``."""
    C = share.shape[0]
    state = new_state(tasks, workers, pseudo, share, hold)
    channels = np.empty((workers, C, C))
    for j in range(workers):
        channel_of(state, j, channels[j])
    return CrowdCampaign(
        state,
        channels,
        np.zeros(workers, dtype=np.int64),
        new_bins(tasks, groups),
        History(
            np.full(tasks, -1, dtype=np.int64),
            np.full(most, -1, dtype=np.int64),
            np.zeros(most, dtype=np.int64),
            np.zeros(most, dtype=np.int64),
            np.full(most, IN_FLIGHT, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        ),
        np.zeros(tasks, dtype=np.int64),
        np.zeros(workers, dtype=np.int64),
        np.zeros(workers, dtype=np.int64),
        np.full(workers, options[NAMED]),
        options,
        np.empty(C),
    )


@uncounted
def put(bins: TaskBins, x: int, bin_: int, plan: int, plans: int) -> None:
    """Put the closed task x at the end of a group."""
    g = bin_ * plans + plan
    bins.bin[x], bins.plan[x] = bin_, plan
    bins.before[x], bins.after[x] = bins.tail[g], -1
    if bins.tail[g] >= 0:
        bins.after[bins.tail[g]] = x
    else:
        bins.head[g] = x
    bins.tail[g] = x
    bins.members[g] += 1


@uncounted
def take(bins: TaskBins, x: int, plans: int) -> None:
    """Take task x out of its group: it is closed now."""
    g = bins.bin[x] * plans + bins.plan[x]
    if bins.before[x] >= 0:
        bins.after[bins.before[x]] = bins.after[x]
    else:
        bins.head[g] = bins.after[x]
    if bins.after[x] >= 0:
        bins.before[bins.after[x]] = bins.before[x]
    else:
        bins.tail[g] = bins.before[x]
    bins.members[g] -= 1
    bins.bin[x] = -1


@uncounted
def has_had(history: History, x: int, worker: int) -> bool:
    """Whether the worker was ever given task x; nobody (-1) never was."""
    if worker < 0:
        return False
    k = history.last[x]
    while k >= 0:
        if history.worker[k] == worker:
            return True
        k = history.earlier[k]
    return False


# The bin of a task


@uncounted
def belief_bin(grid: Floats, belief: Floats, certainty: float) -> int:
    """The bin nearest to a belief (C,) whose largest probability is taken to be ``certainty``."""
    p = 1.0 - certainty if belief.shape[0] == 2 and belief[1] < 0.5 else certainty
    last: int = grid.shape[0] - 1
    k = int(np.searchsorted(grid, p))
    if k <= 0:
        return 0
    if k > last:
        return last
    return k if bool(grid[k] - p < p - grid[k - 1]) else k - 1


@uncounted
def largest(belief: Floats) -> float:
    """The probability of the likeliest truth."""
    top: float = belief[0]
    for c in range(1, belief.shape[0]):
        top = max(top, belief[c])
    return top


@uncounted
def counted_pending(history: History, x: int, answers: int) -> int:
    """Labels in flight on task x, as many of the latest as are enumerated."""
    pending, outcomes = 0, 1
    k = history.last[x]
    while k >= 0 and pending < MOST_PENDING and outcomes * answers <= MOST_OUTCOMES:
        if history.answer[k] == IN_FLIGHT:
            pending += 1
            outcomes *= answers
        k = history.earlier[k]
    return pending


@uncounted
def outcome(campaign: CrowdCampaign, x: int, pending: int, code: int) -> float:
    """``campaign.after`` gets the belief of task x after the answers in ``code``, the latest first; their chance."""
    belief, history, after = campaign.state.belief[x], campaign.history, campaign.after
    C = belief.shape[0]
    chance = 0.0
    for c in range(C):
        weight, rest, counted, k = belief[c], code, 0, history.last[x]
        while counted < pending:
            if history.answer[k] == IN_FLIGHT:
                weight *= campaign.channels[history.worker[k], c, rest % C]
                rest //= C
                counted += 1
            k = history.earlier[k]
        after[c] = weight
        chance += weight
    if chance > 0.0:
        for c in range(C):
            after[c] /= chance
    return chance


@uncounted
def expected_loss(campaign: CrowdCampaign, plan: CrowdPlan, kind: int, x: int) -> float:
    """What a label of type ``kind`` loses on task x, over the answers of the labels in flight."""
    C, after, total = campaign.after.shape[0], campaign.after, 0.0
    pending = counted_pending(campaign.history, x, C)
    for code in range(C**pending):
        chance = outcome(campaign, x, pending, code)
        if chance > 0.0:
            total += chance * plan.loss[kind, belief_bin(plan.grid, after, largest(after))]
    return total


@jit
def task_bin(campaign: CrowdCampaign, grid: Floats, x: int) -> int:
    """The bin in which task x belongs now: by E[largest probability] once its labels in flight are in."""
    if campaign.options[BY_COUNT]:
        return int(min(campaign.given[x], grid.shape[0] - 1))
    belief = campaign.state.belief[x]
    pending = counted_pending(campaign.history, x, belief.shape[0])
    if pending == 0:
        return belief_bin(grid, belief, largest(belief))
    certainty = 0.0
    for code in range(belief.shape[0] ** pending):
        chance = outcome(campaign, x, pending, code)
        certainty += chance * largest(campaign.after)
    return int(grid.shape[0] + belief_bin(grid, belief, min(certainty, 1.0)))


@jit
def place_task(campaign: CrowdCampaign, plan: CrowdPlan, x: int, open_: bool) -> None:
    """Close task x, or open it in the bin of its belief; it keeps its plan, and its turn if the bin is the same."""
    bins, plans = campaign.bins, plan.wants.shape[0]
    bin_ = task_bin(campaign, plan.grid, x) if open_ else -1
    if bins.bin[x] != bin_:
        if bins.bin[x] >= 0:
            take(bins, x, plans)
        if open_:
            put(bins, x, bin_, bins.plan[x], plans)


@jit
def rebin_all(campaign: CrowdCampaign, plan: CrowdPlan) -> None:
    """After a refit: every open task goes to the bin of its new belief and keeps its plan."""
    for x in range(campaign.given.shape[0]):
        if campaign.bins.bin[x] >= 0:
            place_task(campaign, plan, x, True)


@jit
def open_tasks(bins: TaskBins, open_: Ints, plans: int) -> None:
    """Put the tasks whose ``open_`` (K,) is 1 into the first bin, in their order, and no others anywhere."""
    bins.head[:] = -1
    bins.tail[:] = -1
    bins.members[:] = 0
    bins.bin[:] = -1
    bins.plan[:] = 0
    for x in range(open_.shape[0]):
        if open_[x]:
            put(bins, x, 0, 0, plans)


@jit
def count_members(campaign: CrowdCampaign, grid: Floats, members: Floats) -> None:
    """``members`` (G,) gets the open tasks by belief, those with labels in flight by the beliefs that may follow."""
    members[:] = 0.0
    C, after = campaign.after.shape[0], campaign.after
    for x in range(campaign.given.shape[0]):
        if campaign.bins.bin[x] >= 0:
            pending = counted_pending(campaign.history, x, C)
            for code in range(C**pending):
                chance = outcome(campaign, x, pending, code)
                if chance > 0.0:
                    members[belief_bin(grid, after, largest(after))] += chance


# Plans


@jit
def plan_start(seed: int, replication: int) -> float:
    """Where the sequence by which tasks draw their plans begins."""
    return uniform(stream_key(seed, replication, TIE), 0, 0)


@jit
def follow_plans(campaign: CrowdCampaign, plan: CrowdPlan, start: float) -> None:
    """Every open task goes to the bin of its belief and draws a plan; within a bin the plans have their shares.

    Tasks in ascending order of bins take successive points of a sequence that is spread evenly, from ``start`` on.
    """
    bins, plans = campaign.bins, plan.wants.shape[0]
    tasks = np.flatnonzero(bins.bin >= 0)
    target = np.empty(tasks.shape[0], dtype=np.int64)
    for k in range(tasks.shape[0]):
        target[k] = task_bin(campaign, plan.grid, tasks[k])
        take(bins, tasks[k], plans)
    u = start - math.floor(start)
    for k in np.argsort(target, kind="mergesort"):
        u += GOLDEN
        if u >= 1.0:
            u -= 1.0
        put(bins, tasks[k], target[k], min(np.searchsorted(plan.chance, u, side="right"), plans - 1), plans)


# Who gets which task


@uncounted
def first_new(bins: TaskBins, history: History, x: int, worker: int) -> int:
    """Task x of a group or the first after it that the worker has not had, -1 for none."""
    while x >= 0 and has_had(history, x, worker):
        x = bins.after[x]
    return x


@uncounted
def choose_task(campaign: CrowdCampaign, plan: CrowdPlan, kind: int, worker: int, must_serve: bool) -> int:
    """The task for a worker of type ``kind``, or -1: turn away.

    ``worker`` is who never gets a task twice (-1: nobody in particular); ``must_serve``: the worker is not turned away
    as long as there is a task that they have not had.
    """
    bins, history = campaign.bins, campaign.history
    for k in range(plan.first[kind], plan.first[kind + 1]):
        x = first_new(bins, history, bins.head[plan.order[k]], worker)
        if x >= 0:
            return x
    plans, G = plan.wants.shape
    best, least = -1, np.inf if must_serve else plan.refuse[kind]
    for k in range(G):
        b = plan.spare[kind, k]
        if plan.loss[kind, b] >= least:
            break
        for route in range(plans):
            x = first_new(bins, history, bins.head[b * plans + route], worker)
            if x >= 0:
                best, least = x, plan.loss[kind, b]
                break
        if best >= 0:
            break
    for k in range(G):  # tasks with labels in flight
        b = plan.spare[kind, k]
        for route in range(plans):
            x = first_new(bins, history, bins.head[(G + b) * plans + route], worker)
            looks = 0
            while x >= 0 and looks < MOST_LOOKS:
                loss = expected_loss(campaign, plan, kind, x)
                if loss < least - BETTER:
                    best, least = x, loss
                looks += 1
                x = first_new(bins, history, bins.after[x], worker)
    return best


@jit
def next_task(campaign: CrowdCampaign, plan: CrowdPlan, worker: int, must_serve: bool) -> int:
    """The task for the worker who is here, or -1; nothing is noted. -1: for whoever comes, of one mixed type."""
    if worker < 0:
        return choose_task(campaign, plan, 0, -1, True)
    who = worker if campaign.named[worker] else -1
    served = must_serve or campaign.worked[worker] < campaign.options[TRIAL]
    return choose_task(campaign, plan, campaign.kind[worker], who, served)


@jit
def next_among(campaign: CrowdCampaign, plan: CrowdPlan, worker: int, must_serve: bool, eligible: Ints) -> int:
    """``next_task`` where only ``eligible`` tasks may be given; the first of equals. Looks at each of them."""
    bins, kind, G = campaign.bins, campaign.kind[worker], plan.wants.shape[1]
    who = worker if campaign.named[worker] else -1
    best, surplus = -1, -np.inf
    spare, least = -1, np.inf
    for x in eligible:
        b = bins.bin[x]
        if b < 0 or has_had(campaign.history, x, who):
            continue
        if b < G and plan.wants[bins.plan[x], b] == kind:
            if plan.surplus[b] > surplus:
                best, surplus = x, plan.surplus[b]
            continue
        loss = plan.loss[kind, b] if b < G else expected_loss(campaign, plan, kind, x)
        if loss < least:
            spare, least = x, loss
    if best >= 0:
        return best
    served = must_serve or campaign.worked[worker] < campaign.options[TRIAL]
    return spare if served or least < plan.refuse[kind] else -1


# What happens: ``open_`` says whether the task may be given out from then on


@jit
def assign(campaign: CrowdCampaign, plan: CrowdPlan, x: int, worker: int, open_: bool) -> int:
    """Task x is given to the worker; return the number of the history's entry."""
    history = campaign.history
    entry: int = history.size[0]
    history.size[0] = entry + 1
    history.task[entry], history.worker[entry] = x, worker
    history.earlier[entry], history.last[x] = history.last[x], entry
    _expect(campaign, entry)
    place_task(campaign, plan, x, open_)
    return entry


@jit
def complete(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, answer: int, open_: bool) -> None:
    """The label of an entry has come in, perhaps late, after it was gone."""
    history, state = campaign.history, campaign.state
    x, j = history.task[entry], history.worker[entry]
    if history.answer[entry] == GONE:
        _expect(campaign, entry)
    history.answer[entry] = answer
    if campaign.options[LEARNT]:
        stream_label(state, x, j, answer)
        channel_of(state, j, campaign.channels[j])
    else:
        for c in range(state.logp.shape[1]):
            said = campaign.channels[j, c, answer]
            state.logp[x, c] += math.log(said) if said > 0.0 else -700.0
        normalise(state.logp[x], state.belief[x])
    place_task(campaign, plan, x, open_)


@jit
def cancel(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, open_: bool) -> None:
    """The work of an entry in flight is not expected any more."""
    history = campaign.history
    x = history.task[entry]
    history.answer[entry] = GONE
    campaign.given[x] -= 1
    campaign.worked[history.worker[entry]] -= 1
    place_task(campaign, plan, x, open_)


@jit
def reopen(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, start: Floats, open_: bool) -> None:
    """An answer is taken back, or work that was gone is expected again: the worker has the task.

    ``start`` (C,) is the task's log belief without labels. The task's belief follows from its other labels by the
    channels as they are now; the next refit is exact again.
    """
    history, state = campaign.history, campaign.state
    x, j, answer = history.task[entry], history.worker[entry], history.answer[entry]
    if answer == GONE:
        _expect(campaign, entry)
    elif answer >= 0:
        C = start.shape[0]
        for c in range(C):
            less = state.counts[j, c, answer] - state.belief[x, c]
            state.counts[j, c, answer] = max(less, 1e-3 - state.pseudo[c, answer])
            state.logp[x, c] = start[c]
        channel_of(state, j, campaign.channels[j])
        history.answer[entry] = IN_FLIGHT
        k = history.last[x]
        while k >= 0:
            if history.answer[k] >= 0:
                for c in range(C):
                    state.logp[x, c] += math.log(campaign.channels[history.worker[k], c, history.answer[k]])
            k = history.earlier[k]
        normalise(state.logp[x], state.belief[x])
    place_task(campaign, plan, x, open_)


@jit
def _expect(campaign: CrowdCampaign, entry: int) -> None:
    """The label of an entry is in flight."""
    history = campaign.history
    history.answer[entry] = IN_FLIGHT
    campaign.given[history.task[entry]] += 1
    campaign.worked[history.worker[entry]] += 1
