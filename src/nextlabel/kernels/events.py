"""What happens to a campaign whatever the policy does: when workers come, which label comes in next, recorded labels.

====== ======= ====== ===================================================================================
symbol code    shape  meaning
====== ======= ====== ===================================================================================
--     starts  (P,)   times at which the pieces of the arrival rate begin, the first 0
r(t)   rates   (P,)   rate from then on, the last one for ever
--     times,  (n,)   a binary heap of the completions to come, the earliest on top; the caller holds its size
       tasks
====== ======= ====== ===================================================================================

*Arrivals*: for E ~ Exp(1) the t with integral of r from now to t = E is the next arrival of a Poisson process of rate
r(t). *Recorded labels*: a task's place in the draw comes from the uniform of (task, 0), its label j's place from that
of (task, j + 1): neither depends on the policy, the number of tasks asked for or the chunk of the replication.
Guarantee: exact; with one piece t = now + E / r, digit for digit. Cost: the pieces passed; O(log size) for a
completion; O(N log N + K most^2) for a draw from a record.

Uniforms are counter-based: a draw depends on its key alone, so that it is the same under every policy and in every
chunk.

    u(seed, replication, stream, i, j) = mix(...mix(mix(seed) ^ replication)... ^ j) / 2^64

with the finaliser of SplitMix64 as mix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit, uncounted

LABEL, ARRIVAL, DURATION, TIE, ORDER, DRAW = 1, 2, 3, 4, 5, 6

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@jit
def mix(x: np.uint64) -> np.uint64:
    """SplitMix64: add the golden ratio, then scramble."""
    z = x + _GOLDEN
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)


@jit
def stream_key(seed: int, replication: int, stream: int) -> np.uint64:
    """Key of one stream of one replication."""
    return mix(mix(mix(np.uint64(seed)) ^ np.uint64(replication)) ^ np.uint64(stream))


@jit
def uniform(key: np.uint64, i: int, j: int) -> float:
    """Uniform on (0, 1), never 0 or 1."""
    bits = mix(mix(key ^ np.uint64(i)) ^ np.uint64(j))
    return (float(bits >> _11) + 0.5) * (1.0 / 9007199254740992.0)


@jit
def uniforms(seed: int, replication: int, stream: int, most: int, j: int) -> Floats:
    """(most,) the uniform numbers of (i, j), i = 0, 1, ..."""
    key, out = stream_key(seed, replication, stream), np.empty(most)
    for i in range(most):
        out[i] = uniform(key, i, j)
    return out


@uncounted
def answer_of(law: Floats, u: float) -> int:
    """The answer that the uniform number u draws from its probabilities."""
    j = 0
    while j < law.shape[0] - 1 and u >= law[j]:
        u -= law[j]
        j += 1
    return j


#: Orders in which recorded labels come in.
RANDOM, FILE, REVERSED = 0, 1, 2


class Timing(NamedTuple):
    """When workers arrive, how long labels take, and when the campaign ends."""

    starts: Floats  # of the pieces of constant arrival rate
    rates: Floats
    mu: float
    horizon: float
    wait: bool  # for the labels in flight when the budget is spent


@uncounted
def arrival_after(now: float, amount: float, starts: Floats, rates: Floats) -> float:
    """The time t with integral of r from ``now`` to t = ``amount``; inf if there is none."""
    pieces = rates.shape[0]
    k = np.searchsorted(starts, now, side="right") - 1 if pieces > 1 else 0
    while k < pieces - 1:
        here = rates[k] * (starts[k + 1] - now)
        if here >= amount and rates[k] > 0.0:
            break
        k += 1
        now, amount = starts[k], amount - here
    return now + amount / rates[k] if rates[k] > 0.0 else np.inf


@uncounted
def arrivals_between(now: float, timing: Timing) -> float:
    """Workers expected from now to the horizon."""
    total = 0.0
    for k in range(timing.starts.shape[0]):
        end = timing.starts[k + 1] if k + 1 < timing.starts.shape[0] else timing.horizon
        total += timing.rates[k] * max(min(end, timing.horizon) - max(timing.starts[k], now), 0.0)
    return total


@uncounted
def push(times: Floats, tasks: Ints, size: int, time: float, task: int) -> int:
    """Add a task to the heap; the earliest is on top; return the new size."""
    k = size
    while k > 0:
        above = (k - 1) // 2
        if times[above] <= time:
            break
        times[k], tasks[k] = times[above], tasks[above]
        k = above
    times[k], tasks[k] = time, task
    return size + 1


@uncounted
def pop(times: Floats, tasks: Ints, size: int) -> int:
    """Remove the top of the heap; return the new size."""
    size -= 1
    time, task = times[size], tasks[size]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= size:
            break
        if below + 1 < size and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[k], tasks[k] = times[below], tasks[below]
        k = below
    times[k], tasks[k] = time, task
    return size


class RecordedLabels(NamedTuple):
    """Recorded labels of N tasks; no tasks at all where labels are drawn from the model."""

    labels: Ints  # (N, most)
    counts: Ints  # (N,)
    start: Ints  # (most + 1,) node at which a task with that many labels starts
    order: int


#: Labels are drawn from the model.
NONE_RECORDED = RecordedLabels(
    np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), RANDOM
)  # fmt: skip


@jit
def draw_recorded(labels: Ints, counts: Ints, seed: int, replication: int, order: int, rows: Ints, out: Ints) -> None:
    """``rows`` (K,) gets the tasks, ``out`` (K, most) their labels in the order in which they will come in."""
    N, most = labels.shape
    key = stream_key(seed, replication, ORDER)
    tasks = np.argsort(uniforms(seed, replication, ORDER, N, 0))
    draws = np.zeros(most)
    for k in range(rows.shape[0]):
        x = tasks[k]
        rows[k] = x
        m = counts[x]
        for j in range(m):
            if order == FILE:
                out[k, j] = labels[x, j]
            elif order == REVERSED:
                out[k, j] = labels[x, m - 1 - j]
            else:
                u = uniform(key, x, j + 1)
                at = j
                while at > 0 and draws[at - 1] > u:
                    draws[at] = draws[at - 1]
                    out[k, at] = out[k, at - 1]
                    at -= 1
                draws[at] = u
                out[k, at] = labels[x, j]
        for j in range(m, most):
            out[k, j] = -1
