"""Replications when every task has its own prior: no groups to speak of, so an indexed heap holds the tasks by score.

========= ======== ==================== ======================================================
symbol    code     shape                meaning
========= ======== ==================== ======================================================
--        score    (classes, W+1, N)    score of [w, node] on the binary triangle of depth D
R         reward   (classes, N)         reward of deciding now
--        kind     (K,)                 class of each task
========= ======== ==================== ======================================================

Scores must not depend on the arrivals left, so that an event changes the key of one task only. Ties go by lot: each
task has a jitter of at most 1e-12 a replication. Randomness is that of ``rollout``, draw for draw.
Guarantee: exact simulation of the model with at most D labels a task, W in flight. Cost: O(log K) an event.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit
from nextlabel.kernels.random import ARRIVAL, DURATION, LABEL, TIE, stream_key, uniform
from nextlabel.kernels.rollout import pop, push

JITTER = 1e-12


@jit
def sift(x: int, key: Floats, heap: Ints, place: Ints) -> None:
    """Move task x to where its key belongs; the largest key is on top."""
    k = place[x]
    while k > 0:
        above = (k - 1) // 2
        if key[heap[above]] >= key[x]:
            break
        heap[k] = heap[above]
        place[heap[k]] = k
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
        place[heap[k]] = k
        k = below
    heap[k] = x
    place[x] = k


@jit
def rollout_many(
    alpha: Floats, beta: Floats, kind: Ints, level: Ints, reward: Floats, score: Floats, budget: int, r: float,
    mu: float, horizon: float, wait: bool, seed: int, first: int, out: Floats,
) -> None:  # fmt: skip
    """Replications first, first + 1, ...: out[i] = (reward, labels given, most labels of one task, 0, arrivals)."""
    K, W = kind.shape[0], score.shape[1] - 1
    D = level[-1]
    node = np.zeros(K, dtype=np.int64)
    flight = np.zeros(K, dtype=np.int64)
    key = np.zeros(K)
    heap = np.zeros(K, dtype=np.int64)
    place = np.zeros(K, dtype=np.int64)
    times = np.zeros(budget + 1)
    tasks = np.zeros(budget + 1, dtype=np.int64)
    for rep in range(out.shape[0]):
        k_label = stream_key(seed, first + rep, LABEL)
        k_arrival = stream_key(seed, first + rep, ARRIVAL)
        k_duration = stream_key(seed, first + rep, DURATION)
        k_tie = stream_key(seed, first + rep, TIE)
        for x in range(K):
            node[x], flight[x] = 0, 0
            key[x] = score[kind[x], 0, 0] + JITTER * uniform(k_tie, x, 0)
        order = np.argsort(-key)
        for k in range(K):
            heap[k] = order[k]
            place[order[k]] = k
        size, ell, labels = 0, 0, 0
        next_arrival = -np.log(uniform(k_arrival, 0, 0)) / r
        while True:
            if ell < budget and (size == 0 or next_arrival <= times[0]):
                now = next_arrival
                if now > horizon:
                    break
                x = heap[0]
                if key[x] > -np.inf:
                    flight[x] += 1
                    size = push(times, tasks, size, now - np.log(uniform(k_duration, ell, 0)) / mu, x)
                    labels += 1
                    moved = x
                else:
                    moved = -1
                ell += 1
                next_arrival = now - np.log(uniform(k_arrival, ell, 0)) / r
            elif size > 0:
                if times[0] > horizon:
                    break
                x = tasks[0]
                size = pop(times, tasks, size)
                m = level[node[x]]
                c = kind[x]
                ones = node[x] - m * (m + 1) // 2
                no = (beta[c] + m - ones) / (alpha[c] + beta[c] + m)
                node[x] += m + 1 + (1 if uniform(k_label, x, m) >= no else 0)
                flight[x] -= 1
                moved = x
            else:
                break
            if moved >= 0:
                if flight[moved] >= W or level[node[moved]] + flight[moved] >= D:
                    key[moved] = -np.inf
                else:
                    key[moved] = score[kind[moved], flight[moved], node[moved]] + JITTER * uniform(k_tie, moved, 0)
                sift(moved, key, heap, place)
            if ell == budget and not wait:
                break
        total, most = 0.0, 0
        for x in range(K):
            total += reward[kind[x], node[x]]
            most = max(most, level[node[x]] + flight[x])
        out[rep, 0], out[rep, 1], out[rep, 2], out[rep, 3], out[rep, 4] = total, labels, most, 0.0, ell
