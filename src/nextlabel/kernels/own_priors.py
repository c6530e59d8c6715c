"""Replications when every task has its own prior: no groups to speak of, so an indexed heap holds the tasks by score.

========= ======== ==================== ==============================================================================
symbol    code     shape                meaning
========= ======== ==================== ==============================================================================
--        score    (classes, W+1, N)    score of [w, node] on the lattice of D labels
G         score    (classes, 1, N)      or: limit indices, nan until a task first gets there (``limit_index``)
R         facts    (classes, >= N, J)   facts[c, i, 0]: reward of deciding now
p_j       facts    (classes, >= N, J)   facts[c, i, 1 + j], j < J - 1: probability of an answer up to j
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
from nextlabel.kernels.jit import jit
from nextlabel.kernels.limit_index import Workspace, least_limit_index, new_workspace
from nextlabel.kernels.random import ARRIVAL, DURATION, LABEL, TIE, stream_key, uniform
from nextlabel.kernels.ties import TIED

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


@jit
def rollout_own_priors(
    tasks: OwnPriors, timing: Timing, budget: int, least: float, seed: int, first_rep: int, out: Floats
) -> None:
    """Replications from ``first_rep``: out[i] = (reward, labels given, most labels of one task, 0, arrivals).

    An arrival is turned away if no task has a score of at least ``least``.
    """
    first, child, facts, score, class_of, D, W = tasks
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
            c = class_of[x]
            node[x], level[x], flight[x] = 0, 0, 0
            lot[x] = -np.log(uniform(k_tie, x, 0))
            key[x] = score_of(first, child, facts[c], score[c], 0, 0, 0, room, ahead) - JITTER * lot[x]
        order = np.argsort(-key)
        for k in range(K):
            heap[k] = order[k]
            position[order[k]] = k
        size, ell, labels = 0, 0, 0
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
                next_arrival = arrival_after(now, -np.log(uniform(k_arrival, ell, 0)), timing.starts, timing.rates)
            elif size > 0:
                if times[0] > timing.horizon:
                    break
                x = waiting[0]
                size = pop(times, waiting, size)
                u, answer = uniform(k_label, x, level[x]), 0
                while answer < J - 1 and u >= facts[class_of[x], node[x], 1 + answer]:
                    answer += 1
                node[x] = child[node[x], answer]
                level[x] += 1
                flight[x] -= 1
                moved = x
            else:
                break
            if moved >= 0:
                c, w, m = class_of[moved], flight[moved], level[moved]
                lot[moved] = drawn - np.log(uniform(k_tie, moved, 2 * m + w))
                if w >= W or m + w >= D:
                    key[moved] = -np.inf
                else:
                    s = score_of(first, child, facts[c], score[c], m, node[moved], w, room, ahead)
                    key[moved] = s - JITTER * lot[moved]
                sift(moved, key, heap, position)
            if ell == budget and not timing.wait:
                break
        total, most = 0.0, 0
        for x in range(K):
            total += facts[class_of[x], node[x], 0]
            most = max(most, level[x] + flight[x])
        out[rep, 0], out[rep, 1], out[rep, 2], out[rep, 3], out[rep, 4] = total, labels, most, 0.0, ell
