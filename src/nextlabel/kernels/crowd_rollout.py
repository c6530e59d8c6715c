"""The event loop of a campaign with workers who differ: arrivals, completions, and the decision core of ``crowd``.

======== ========= ============ ==============================================================================
symbol   code      shape        meaning
======== ========= ============ ==============================================================================
j        order     (n,)         the worker of each arrival, in the order in which they come
z        truth     (K,)         truth of each task
A        channels  (T, C, C)    true channels by type
--       kind      (W,)         true type of each worker
p        exact     (K, C)       beliefs under the true channels, for the score
V        grid,     (G,)         any function of the belief: its martingale differences are taken off the reward
         value     (G,)
======== ========= ============ ==============================================================================

*Drawn answers*: label n of task x is drawn with the uniform of (x, n), the truth with that of (x, 0), the times of
arrival l and of its completion with those of l: the same under every policy.

    reward = sum_x p_x[decision]  -  sum over labels of ( V(p after) - E V(p after) )

The second sum has mean zero whatever V is; with V near the worth of a task it takes most of the noise away.

*Recorded answers* (``RecordedCrowd``) come in at once, each at most once. Task first: the policy names a task, and the
next recorded label of that task comes in with its worker. Worker first: a worker arrives; the policy picks one of the
tasks that this worker labelled in the record and has not been given yet, or turns the worker away.
Guarantee: exact simulation; a replay is deterministic. Cost: that of the decisions, O(log in flight) per completion;
worker first also a look at the recorded labels of the worker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_campaign import CrowdCampaign, CrowdPlan, assign, complete, largest, next_among, next_task
from nextlabel.kernels.events import (
    ARRIVAL,
    DURATION,
    LABEL,
    ORDER,
    Timing,
    answer_of,
    arrival_after,
    pop,
    push,
    stream_key,
    uniform,
    uniforms,
)
from nextlabel.kernels.inputs import between
from nextlabel.kernels.jit import jit

#: What ``CrowdRun.counters`` count.
WAITING, ARRIVED, GIVEN, TURNED_AWAY = 0, 1, 2, 3


class RecordedCrowd(NamedTuple):
    """Recorded labels, by task and by worker; none at all where answers are drawn."""

    task: Ints  # (n,) task of each recorded label, as the campaign numbers it
    worker: Ints  # (n,) who gave it
    answer: Ints  # (n,) what they said
    order: Ints  # (K, most) task first: labels of each task in the order in which they come in, -1 past the last
    own: Ints  # (n,) recorded labels of each worker: those of worker j are own[start[j]:start[j + 1]]
    start: Ints
    used: Ints  # (n,) 1 for a recorded label that was given
    row: Ints  # (budget,) the recorded label of each entry of the history


_NONE = np.zeros(0, dtype=np.int64)
#: Answers are drawn.
NO_RECORD = RecordedCrowd(_NONE, _NONE, _NONE, np.zeros((0, 0), dtype=np.int64), _NONE, _NONE, _NONE, _NONE)


class CrowdWorld(NamedTuple):
    """What is so, whatever the policy knows of it."""

    truth: Ints
    order: Ints
    channels: Floats
    kind: Ints
    grid: Floats
    value: Floats
    budget: int
    timing: Timing
    record: RecordedCrowd


class CrowdRun(NamedTuple):
    """A replication under way: the heap of completions, beliefs under the true channels, counters and clock."""

    times: Floats
    entries: Ints
    exact: Floats
    counters: Ints
    clock: Floats  # next arrival, martingale so far


@jit
def draw_order(workers: Ints, seed: int, replication: int) -> Ints:
    """The arrivals in random order (Fisher and Yates)."""
    order, u = workers.copy(), uniforms(seed, replication, ORDER, workers.shape[0], 0)
    for k in range(order.shape[0] - 1, 0, -1):
        other = int(u[k] * (k + 1))
        order[k], order[other] = order[other], order[k]
    return order


def draw_arrivals(labels: int, seed: int, replication: int) -> Ints:
    """The recorded labels in the random order in which their workers arrive."""
    return np.argsort(uniforms(seed, replication, ARRIVAL, labels, 0))


def draw_types(chance: Floats, first: Ints, arrivals: int, seed: int, replication: int) -> Ints:
    """The person of each arrival: a type by its cumulative probability, then one of its people.

    People ``first[m] .. first[m + 1] - 1`` are of type m.
    """
    u, v = (uniforms(seed, replication, ORDER, arrivals, j) for j in range(2))
    m = np.minimum(np.searchsorted(chance, u, side="right"), len(chance) - 1)
    return np.asarray(first[m] + (v * (first[m + 1] - first[m])).astype(np.int64))


def draw_truths(priors: Floats, seed: int, replication: int) -> Ints:
    """(K,) truths from the tasks' priors (K, C)."""
    u = uniforms(seed, replication, LABEL, len(priors), 0)
    truth, further = np.zeros(len(priors), dtype=np.int64), np.ones(len(priors), dtype=np.bool_)
    for law in priors.T[:-1]:
        further &= u >= law
        truth, u = truth + further, u - law
    return truth


@jit
def new_crowd_run(world: CrowdWorld, priors: Floats, seed: int, replication: int) -> CrowdRun:
    """Nothing given out; the first arrival drawn."""
    most = world.budget + 1
    clock = np.zeros(2)
    amount = -np.log(uniform(stream_key(seed, replication, ARRIVAL), 0, 0))
    clock[0] = arrival_after(0.0, amount, world.timing.starts, world.timing.rates)
    return CrowdRun(np.zeros(most), np.zeros(most, dtype=np.int64), priors.copy(), np.zeros(4, dtype=np.int64), clock)


@jit
def worth(world: CrowdWorld, belief: Floats) -> float:
    """V at a belief, linear between grid points."""
    u = belief[1] if belief.shape[0] == 2 else largest(belief)
    k, share = between(world.grid, u)
    value: float = world.value[k] + share * (world.value[k + 1] - world.value[k])
    return value


@jit
def exact_after(world: CrowdWorld, run: CrowdRun, x: int, m: int, answer: int, after: Floats) -> float:
    """``after`` = the exact belief of task x after a label of true type m; its chance."""
    chance = 0.0
    for c in range(after.shape[0]):
        after[c] = run.exact[x, c] * world.channels[m, c, answer]
        chance += after[c]
    for c in range(after.shape[0] if chance > 0.0 else 0):
        after[c] /= chance
    return chance


@jit
def take_label(world: CrowdWorld, run: CrowdRun, x: int, m: int, answer: int, after: Floats) -> None:
    """Move the exact belief of task x by a label of true type m, and the martingale with it."""
    expected, came = 0.0, 0.0
    for y in range(after.shape[0]):
        chance = exact_after(world, run, x, m, y, after)
        there = worth(world, after) if chance > 0.0 else 0.0
        expected += chance * there
        if y == answer:
            came = there
    run.clock[1] += came - expected
    exact_after(world, run, x, m, answer, after)
    run.exact[x] = after


@jit
def eligible_rows(record: RecordedCrowd, worker: int, tasks: Ints, rows: Ints) -> int:
    """The recorded labels of the worker that were not given yet, and their tasks; return how many there are."""
    size = 0
    for k in range(record.start[worker], record.start[worker + 1]):
        row = record.own[k]
        if record.used[row] == 0:
            tasks[size], rows[size] = record.task[row], row
            size += 1
    return size


@jit
def drawn_answer(world: CrowdWorld, campaign: CrowdCampaign, entry: int, key: np.uint64) -> int:
    """What the worker of that entry says: the draw of the task and of how many labels of it were given before."""
    history = campaign.history
    x, m = history.task[entry], world.kind[history.worker[entry]]
    order, k = 1, history.earlier[entry]
    while k >= 0:
        order += 1
        k = history.earlier[k]
    return answer_of(world.channels[m, world.truth[x]], uniform(key, x, order))


@jit
def play_crowd(
    world: CrowdWorld,
    run: CrowdRun,
    campaign: CrowdCampaign,
    plan: CrowdPlan,
    turn_away: bool,
    seed: int,
    replication: int,
    until: int,
) -> bool:
    """Play events until ``until`` labels were given out, or to the end; True if the campaign is over.

    Nobody is turned away once as few arrivals as labels of the budget are left.
    """
    k_label, k_arrival = stream_key(seed, replication, LABEL), stream_key(seed, replication, ARRIVAL)
    k_duration = stream_key(seed, replication, DURATION)
    timing, counters, record, history = world.timing, run.counters, world.record, campaign.history
    recorded, task_first = record.task.shape[0] > 0, record.order.shape[0] > 0
    after = np.empty(run.exact.shape[1])
    arrivals, most = world.order.shape[0], 0
    for j in range(record.start.shape[0] - 1):
        most = max(most, record.start[j + 1] - record.start[j])
    tasks, rows = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    while True:
        coming = counters[ARRIVED] < arrivals and counters[GIVEN] < world.budget
        if coming and (counters[WAITING] == 0 or run.clock[0] <= run.times[0]):
            if counters[GIVEN] >= until:
                return False
            now = run.clock[0]
            if now > timing.horizon:
                return True
            ell = counters[ARRIVED]
            j, row = world.order[ell], -1
            left = float(arrivals - ell)
            if timing.horizon < np.inf:
                left = min(left, timing.rates[-1] * (timing.horizon - now))
            must_serve = not turn_away or left <= world.budget - counters[GIVEN]
            if task_first:
                x = next_task(campaign, plan, -1, True)
                if x >= 0:
                    row = record.order[x, campaign.given[x]]
                    j = record.worker[row]
            elif recorded:
                size = eligible_rows(record, j, tasks, rows)
                x = next_among(campaign, plan, j, must_serve, tasks[:size])
                for k in range(size):
                    if tasks[k] == x:
                        row = rows[k]
            else:
                x = next_task(campaign, plan, j, must_serve)
            if not task_first:
                campaign.arrived[j] += 1
            counters[ARRIVED] += 1
            if x >= 0:
                entry = assign(campaign, plan, x, j, True)
                if row >= 0:
                    record.used[row], record.row[entry] = 1, row
                counters[GIVEN] += 1
                done = now - np.log(uniform(k_duration, ell, 0)) / timing.mu
                counters[WAITING] = push(run.times, run.entries, counters[WAITING], done, entry)
            else:
                counters[TURNED_AWAY] += 1
            amount = -np.log(uniform(k_arrival, ell + 1, 0))
            run.clock[0] = arrival_after(now, amount, timing.starts, timing.rates)
        elif counters[WAITING] > 0:
            if run.times[0] > timing.horizon or not (coming or timing.wait):
                return True
            entry = run.entries[0]
            counters[WAITING] = pop(run.times, run.entries, counters[WAITING])
            x = history.task[entry]
            if recorded:
                n = campaign.given[x]
                no_more = task_first and (n == record.order.shape[1] or record.order[x, n] < 0)
                complete(campaign, plan, entry, record.answer[record.row[entry]], not no_more)
            else:
                answer = drawn_answer(world, campaign, entry, k_label)
                take_label(world, run, x, world.kind[history.worker[entry]], answer, after)
                complete(campaign, plan, entry, answer, True)
        else:
            return True


@jit
def score_crowd(world: CrowdWorld, run: CrowdRun, campaign: CrowdCampaign, out: Floats) -> None:
    """out = (reward, reward less the martingale, labels given, most labels of one task, arrivals, decisions right)."""
    K, C = run.exact.shape
    total, right, most = 0.0, 0.0, 0
    for x in range(K):
        best = 0
        for c in range(1, C):
            if campaign.state.belief[x, c] > campaign.state.belief[x, best]:
                best = c
        total += run.exact[x, best]
        right += 1.0 if best == world.truth[x] else 0.0
        most = max(most, campaign.given[x])
    out[0], out[1], out[2] = total, total - run.clock[1], run.counters[GIVEN]
    out[3], out[4], out[5] = most, run.counters[ARRIVED], right
