"""Replications when every task has its own prior: no groups to speak of, so an indexed heap holds the tasks by score.

========= ======== ==================== ==============================================================================
symbol    code     shape                meaning
========= ======== ==================== ==============================================================================
--        score    (classes, W+1, N)    score of [w, node] on the lattice of D labels
G         score    (classes, 1, N)      or: limit indices, nan until a task first gets there (``limit_index``)
R         facts    (classes, >= N, J)   facts[c, i, 0]: reward of deciding now
p_j       facts    (classes, >= N, J)   facts[c, i, 1 + j], j < J - 1: probability of an answer up to j
--        own      (K, 2)               a task's own prior, where its class is one that is near: see ``first_answer``
--        share    (K,)                 the score of a task is this share of its class's, and the rest of the next one's
========= ======== ==================== ==============================================================================

Scores must not depend on the arrivals left, so that an event changes the key of one task only.

Ties go by lot: the key is the score less JITTER (V + E), with E ~ Exp(1) new whenever a task's state changes and V
that of the last task that won a tie. Such a race is without memory: every tied task is as likely to be next, also the
one that has just been served.
Guarantee: exact simulation of the model with at most D labels per task, W in flight. Randomness is that of ``rollout``,
draw for draw, but for ties. Cost: O(log K) per event, and a limit index for each state met for the first time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.arrivals import Timing, arrival_after
from nextlabel.kernels.heap import pop, push
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.jit import jit
from nextlabel.kernels.limit_index import Workspace, least_limit_index, new_workspace
from nextlabel.kernels.random import ARRIVAL, DURATION, LABEL, TIE, stream_key, uniform

#: What a lot takes off a score: far below TIED.
JITTER = 1e-12


@jit
def sift(x: int, key: Floats, heap: Ints, position: Ints) -> None:
    """Move task x to where its key belongs; the largest key is on top."""
    k = position[x]
    while k > 0:
        above = (k - 1) // 2
        if key[heap[above]] >= key[x]:
            break
        heap[k] = heap[above]
        position[heap[k]] = k
        k = above
    while True:
        below = 2 * k + 1
        if below >= heap.shape[0]:
            break
        if below + 1 < heap.shape[0] and key[heap[below + 1]] > key[heap[below]]:
            below += 1
        if key[heap[below]] <= key[x]:
            break
        heap[k] = heap[below]
        position[heap[k]] = k
        k = below
    heap[k] = x
    position[x] = k


@jit
def score_of(
    first: Ints, child: Ints, facts: Floats, score: Floats, m: int, node: int, w: int, room: Workspace, ahead: Ints
) -> float:
    """Score of one class in [w, node], level m: looked up, or the limit index, which is then kept in ``score``."""
    if score.shape[0] > 1:
        found: float = score[w, node]
    else:
        found = least_limit_index(first, child, facts, m, node, w, room, ahead, score[0])
    return found


#: Where a task's answers come from: the tables of its class, or a prior of its own with two answers.
OF_CLASS, OWN_BETA, OWN_COIN = 0, 1, 2


@jit
def first_answer(law: int, own: Floats, ones: int, labels: int) -> float:
    """Probability of answer 0 after ``ones`` among ``labels``.

    ``own`` is (alpha, beta) of a Beta prior, or the log-odds of truth 1 and of an answer that is right.
    """
    zero: float = (own[1] + labels - ones) / (own[0] + own[1] + labels)
    if law == OWN_BETA:
        return zero
    lead = 2 * ones - labels
    odds = own[0] + lead * own[1] if lead != 0 else own[0]
    truth, right = 1.0 / (1.0 + np.exp(-odds)), 1.0 / (1.0 + np.exp(-own[1]))
    zero = right + truth * (1.0 - 2.0 * right)
    return zero


@jit
def tied(key: Floats, heap: Ints) -> bool:
    """Whether the task on top has to draw lots with another one."""
    ahead: float = np.inf
    for k in range(1, min(3, heap.shape[0])):
        ahead = min(ahead, key[heap[0]] - key[heap[k]])
    return ahead < TIED


class OwnPriors(NamedTuple):
    """Tasks that have priors of their own, and their scores."""

    first: Ints
    child: Ints
    facts: Floats
    score: Floats
    class_of: Ints  # (K,) class of each task
    D: int  # labels that a task is given at most
    W: int  # and of them in flight
    share: Floats  # (K,), or (0,) if a task has the score of its class
    law: int  # OF_CLASS, OWN_BETA or OWN_COIN
    own: Floats  # (K, 2), or (0, 2) with OF_CLASS


class Snapshots(NamedTuple):
    """Where tasks stood when so many workers had come; ``due`` labels were in flight and would be in in time."""

    budgets: Ints  # (B,)
    node: Ints  # (B, K)
    due: Ints  # (B, K)
    labels: Ints  # (B, 2) labels given, and workers who came


@jit
def take_snapshot(
    taken: Snapshots, k: int, node: Ints, times: Floats, waiting: Ints, size: int, horizon: float, labels: int, ell: int
) -> None:
    """Fill row k."""
    for x in range(node.shape[0]):
        taken.node[k, x] = node[x]
        taken.due[k, x] = 0
    for i in range(size):
        if times[i] <= horizon:
            taken.due[k, waiting[i]] += 1
    taken.labels[k, 0], taken.labels[k, 1] = labels, ell


@jit
def task_score(tasks: OwnPriors, x: int, m: int, node: int, w: int, room: Workspace, ahead: Ints) -> float:
    """Score of task x in [w, node], level m."""
    c = tasks.class_of[x]
    s = score_of(tasks.first, tasks.child, tasks.facts[c], tasks.score[c], m, node, w, room, ahead)
    if tasks.share.shape[0] > 0 and tasks.share[x] < 1.0:
        t, c = tasks.share[x], c + 1
        next_one = score_of(tasks.first, tasks.child, tasks.facts[c], tasks.score[c], m, node, w, room, ahead)
        s = t * s + (1.0 - t) * next_one
    return s


@jit
def rollout_own_priors(
    tasks: OwnPriors,
    timing: Timing,
    budget: int,
    least: float,
    seed: int,
    first_rep: int,
    taken: Snapshots,
    ends: Ints,
    out: Floats,
) -> None:
    """Replications from ``first_rep``: out[i] = (reward, labels given, most labels of one task, 0, arrivals).

    An arrival is turned away if no task has a score of at least ``least``. ``ends``: the last nodes (K,) of the last
    replication, or (0,); with priors of their own the reward is left to the caller, who finds it by them. ``taken`` is
    of the last replication too.
    """
    first, child, facts, class_of, D, W = tasks.first, tasks.child, tasks.facts, tasks.class_of, tasks.D, tasks.W
    K, J = class_of.shape[0], child.shape[1]
    node = np.zeros(K, dtype=np.int64)
    level = np.zeros(K, dtype=np.int64)
    flight = np.zeros(K, dtype=np.int64)
    lot = np.zeros(K)
    key = np.zeros(K)
    heap = np.zeros(K, dtype=np.int64)
    position = np.zeros(K, dtype=np.int64)
    times = np.zeros(budget + 1)
    waiting = np.zeros(budget + 1, dtype=np.int64)
    room = new_workspace(first[-1], J)
    ahead = np.zeros(first[W + 1], dtype=np.int64)
    for rep in range(out.shape[0]):
        k_label = stream_key(seed, first_rep + rep, LABEL)
        k_arrival = stream_key(seed, first_rep + rep, ARRIVAL)
        k_duration = stream_key(seed, first_rep + rep, DURATION)
        k_tie = stream_key(seed, first_rep + rep, TIE)
        for x in range(K):
            node[x], level[x], flight[x] = 0, 0, 0
            lot[x] = -np.log(uniform(k_tie, x, 0))
            key[x] = task_score(tasks, x, 0, 0, 0, room, ahead) - JITTER * lot[x]
        order = np.argsort(-key)
        for k in range(K):
            heap[k] = order[k]
            position[order[k]] = k
        size, ell, labels, seen = 0, 0, 0, 0
        while seen < taken.budgets.shape[0] and taken.budgets[seen] == 0:
            take_snapshot(taken, seen, node, times, waiting, size, timing.horizon, labels, ell)
            seen += 1
        drawn = 0.0
        next_arrival = arrival_after(0.0, -np.log(uniform(k_arrival, 0, 0)), timing.starts, timing.rates)
        while True:
            if ell < budget and (size == 0 or next_arrival <= times[0]):
                now = next_arrival
                if now > timing.horizon:
                    break
                x = heap[0]
                if key[x] > -np.inf and key[x] >= least:
                    if tied(key, heap):
                        drawn = max(drawn, lot[x])
                    flight[x] += 1
                    size = push(times, waiting, size, now - np.log(uniform(k_duration, ell, 0)) / timing.mu, x)
                    labels += 1
                    moved = x
                else:
                    moved = -1
                ell += 1
                if seen < taken.budgets.shape[0] and taken.budgets[seen] == ell:
                    take_snapshot(taken, seen, node, times, waiting, size, timing.horizon, labels, ell)
                    seen += 1
                next_arrival = arrival_after(now, -np.log(uniform(k_arrival, ell, 0)), timing.starts, timing.rates)
            elif size > 0:
                if times[0] > timing.horizon:
                    break
                x = waiting[0]
                size = pop(times, waiting, size)
                u, answer = uniform(k_label, x, level[x]), 0
                if tasks.law == OF_CLASS:
                    while answer < J - 1 and u >= facts[class_of[x], node[x], 1 + answer]:
                        answer += 1
                elif u >= first_answer(tasks.law, tasks.own[x], node[x] - first[level[x]], level[x]):
                    answer = 1
                node[x] = child[node[x], answer]
                level[x] += 1
                flight[x] -= 1
                moved = x
            else:
                break
            if moved >= 0:
                w, m = flight[moved], level[moved]
                lot[moved] = drawn - np.log(uniform(k_tie, moved, 2 * m + w))
                if w >= W or m + w >= D:
                    key[moved] = -np.inf
                else:
                    s = task_score(tasks, moved, m, node[moved], w, room, ahead)
                    key[moved] = s - JITTER * lot[moved]
                sift(moved, key, heap, position)
            if ell == budget and not timing.wait:
                break
        for k in range(seen, taken.budgets.shape[0]):  # fewer workers came than these budgets allow
            take_snapshot(taken, k, node, times, waiting, 0, timing.horizon, labels, ell)
        total, most = 0.0, 0
        for x in range(K):
            if tasks.law == OF_CLASS:
                total += facts[class_of[x], node[x], 0]
            if ends.shape[0] > 0:
                ends[x] = node[x]
            most = max(most, level[x] + flight[x])
        out[rep, 0], out[rep, 1], out[rep, 2], out[rep, 3], out[rep, 4] = total, labels, most, 0.0, ell
