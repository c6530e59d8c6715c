"""A worker is here: which task, or none. The decision core of the policy ``crowd``.

====== ======== ============ ====================================================================================
symbol code     shape        meaning
====== ======== ============ ====================================================================================
p      grid     (G,)         the belief that stands for each bin: P(truth = 1) for two answers, else the largest
m      kind     --           the type of the worker: a number for workers of alike channels
--     wants    (plans, G)   the type that a task in the bin wants next under each plan, -1 for none
w      chance   (plans,)     cumulative weights of the plans: each task follows one of them
--     surplus  (G,)         tasks with more of it go first: V - R, what a task in the bin still has to gain
l_m    loss     (M, G)       V + c_m - E V(after a label of type m): what is lost by a label that is not the best
nu_m   refuse   (M,)         what is lost by turning a worker of the type away
--     first    (M + 1,)     ``order[first[m]:first[m + 1]]`` are the groups that want type m,
--     order    (plans G,)   the largest surplus first
--     spare    (M, G)       bins by loss, the smallest first
====== ======== ============ ====================================================================================

1. Of the tasks that want this type, the one with the largest surplus.
2. If none does, the task that loses least, if that is less than turning the worker away loses (``must``: whatever).
3. Otherwise none.

Work in flight is integrated out: tasks with labels in flight are in bins G + b of their own and come second, each with
its loss averaged over the answers to come. Beliefs of more than two answers are binned by the largest probability.
Guarantee: heuristic; the bound of ``solve.crowd`` says how good. Cost: a look at the groups that want the type, never
at the tasks, and at the labels of the tasks that the worker has had already; if no idle task wants the type, a few
tasks with labels in flight in each bin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_bins import IN_FLIGHT, History, TaskBins, has_had, put, take
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.random import TIE, stream_key, uniform

#: Outcomes of the labels in flight on one task that are enumerated; of more labels only the latest count.
MOST_OUTCOMES = 64
#: Labels in flight that are enumerated at most.
MOST_PENDING = 6
#: Tasks with labels in flight that are looked at in one group, and by how much one must be better than the last.
MOST_LOOKS, BETTER = 4, 1e-9
#: Successive shares of the golden ratio are spread evenly over [0, 1), however many are taken.
GOLDEN = 0.6180339887498949


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


class Beliefs(NamedTuple):
    """What is believed of tasks (K, C) and workers (W, C, C), and room for one belief (C,)."""

    belief: Floats
    channels: Floats
    after: Floats


@uncounted
def bin_of(grid: Floats, p: float) -> int:
    """The bin whose belief is nearest."""
    last: int = grid.shape[0] - 1
    k = int(np.searchsorted(grid, p))
    if k <= 0:
        return 0
    if k > last:
        return last
    return k if bool(grid[k] - p < p - grid[k - 1]) else k - 1


@uncounted
def belief_bin(grid: Floats, belief: Floats, certainty: float) -> int:
    """The bin of a belief (C,) whose largest probability is taken to be ``certainty``."""
    if belief.shape[0] == 2:
        return bin_of(grid, certainty if belief[1] >= 0.5 else 1.0 - certainty)
    return bin_of(grid, certainty)


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
def outcome(
    belief: Floats, channels: Floats, history: History, x: int, pending: int, code: int, after: Floats
) -> float:
    """``after`` (C,) gets the belief of task x after the answers in ``code``, the latest first; return their chance."""
    C = belief.shape[0]
    chance = 0.0
    for c in range(C):
        weight, rest, found, k = belief[c], code, 0, history.last[x]
        while found < pending:
            if history.answer[k] == IN_FLIGHT:
                weight *= channels[history.worker[k], c, rest % C]
                rest //= C
                found += 1
            k = history.earlier[k]
        after[c] = weight
        chance += weight
    if chance > 0.0:
        for c in range(C):
            after[c] /= chance
    return chance


@uncounted
def expected_certainty(
    belief: Floats, channels: Floats, history: History, x: int, pending: int, after: Floats
) -> float:
    """E[largest probability] once the labels in flight on task x are in; ``channels`` (W, C, C) of all workers."""
    total = 0.0
    for code in range(belief.shape[0] ** pending):
        chance = outcome(belief, channels, history, x, pending, code, after)
        total += chance * largest(after)
    return min(total, 1.0)


@uncounted
def expected_loss(
    plan: CrowdPlan, kind: int, belief: Floats, channels: Floats, history: History, x: int, after: Floats
) -> float:
    """What a label of type ``kind`` loses on task x, over the answers of the labels in flight."""
    pending = counted_pending(history, x, belief.shape[0])
    total = 0.0
    for code in range(belief.shape[0] ** pending):
        chance = outcome(belief, channels, history, x, pending, code, after)
        if chance > 0.0:
            total += chance * plan.loss[kind, belief_bin(plan.grid, after, largest(after))]
    return total


@uncounted
def rebin(bins: TaskBins, plan: CrowdPlan, x: int, bin_: int) -> None:
    """Move the open task x to another bin; it keeps its plan, and its turn if the bin is the same."""
    plans = plan.wants.shape[0]
    if bins.bin[x] != bin_:
        take(bins, x, plans)
        put(bins, x, bin_, bins.plan[x], plans)


@jit
def plan_start(seed: int, replication: int) -> float:
    """Where the sequence by which tasks draw their plans begins."""
    return uniform(stream_key(seed, replication, TIE), 0, 0)


@jit
def follow_plans(bins: TaskBins, plan: CrowdPlan, target: Ints, start: float) -> None:
    """Every open task goes to bin ``target[x]`` and draws a plan; within a bin the plans have their shares.

    Tasks in ascending order of bins take successive points of a sequence that is spread evenly, from ``start`` on.
    """
    plans, G = plan.wants.shape
    K = bins.bin.shape[0]
    count = np.zeros(2 * G + 1, dtype=np.int64)
    for x in range(K):
        if bins.bin[x] >= 0:
            count[target[x] + 1] += 1
    for g in range(2 * G):
        count[g + 1] += count[g]
    tasks = np.empty(count[2 * G], dtype=np.int64)
    for x in range(K):
        if bins.bin[x] >= 0:
            tasks[count[target[x]]] = x
            count[target[x]] += 1
    for k in range(tasks.shape[0]):
        take(bins, tasks[k], plans)
    u = start - math.floor(start)
    for k in range(tasks.shape[0]):
        u += GOLDEN
        if u >= 1.0:
            u -= 1.0
        put(bins, tasks[k], target[tasks[k]], min(np.searchsorted(plan.chance, u, side="right"), plans - 1), plans)


@uncounted
def first_new(bins: TaskBins, history: History, group: int, worker: int) -> int:
    """The first task of the group that the worker has not had, -1 for none."""
    x: int = bins.head[group]
    while x >= 0 and has_had(history, x, worker):
        x = bins.after[x]
    return x


@uncounted
def choose_task(
    bins: TaskBins, plan: CrowdPlan, history: History, tasks: Beliefs, kind: int, worker: int, must: bool
) -> int:
    """The task for a worker of type ``kind``, or -1: turn away.

    ``worker`` is who never gets a task twice (-1: nobody in particular); ``must``: the worker is not turned away as
    long as there is a task that they have not had.
    """
    for k in range(plan.first[kind], plan.first[kind + 1]):
        x = first_new(bins, history, plan.order[k], worker)
        if x >= 0:
            return x
    plans, G = plan.wants.shape
    best, least = -1, np.inf if must else plan.refuse[kind]
    for k in range(G):
        b = plan.spare[kind, k]
        if plan.loss[kind, b] >= least:
            break
        for route in range(plans):
            x = first_new(bins, history, b * plans + route, worker)
            if x >= 0:
                best, least = x, plan.loss[kind, b]
                break
        if best >= 0:
            break
    for k in range(G):  # tasks with labels in flight
        b = plan.spare[kind, k]
        for route in range(plans):
            x = first_new(bins, history, (G + b) * plans + route, worker)
            looks = 0
            while x >= 0 and looks < MOST_LOOKS:
                loss = expected_loss(plan, kind, tasks.belief[x], tasks.channels, history, x, tasks.after)
                if loss < least - BETTER:
                    best, least = x, loss
                looks += 1
                x = bins.after[x]
                while x >= 0 and has_had(history, x, worker):
                    x = bins.after[x]
    return best


@uncounted
def choose_among(
    bins: TaskBins,
    plan: CrowdPlan,
    history: History,
    tasks: Beliefs,
    kind: int,
    worker: int,
    must: bool,
    eligible: Ints,
    size: int,
) -> int:
    """``choose_task`` where only ``eligible[:size]`` may be given; the first of equals. Looks at each of them."""
    G = plan.wants.shape[1]
    best, surplus = -1, -np.inf
    spare, least = -1, np.inf
    for k in range(size):
        x = eligible[k]
        b = bins.bin[x]
        if b < 0 or has_had(history, x, worker):
            continue
        loss = 0.0
        if b >= G:
            loss = expected_loss(plan, kind, tasks.belief[x], tasks.channels, history, x, tasks.after)
        elif plan.wants[bins.plan[x], b] == kind:
            if plan.surplus[b] > surplus:
                best, surplus = x, plan.surplus[b]
            continue
        else:
            loss = plan.loss[kind, b]
        if loss < least:
            spare, least = x, loss
    if best >= 0:
        return best
    return spare if must or least < plan.refuse[kind] else -1
