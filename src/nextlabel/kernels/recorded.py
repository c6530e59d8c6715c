"""One replication's draw from recorded labels: which tasks, in which order, and each task's labels in which order.

A task's place in the draw comes from the uniform of (task, 0), its label j's place from that of (task, j + 1): neither
depends on the policy, the number of tasks asked for or the chunk that the replication is in.
Cost: O(N + K log N + K most^2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.heap import pop, push
from nextlabel.kernels.jit import jit
from nextlabel.kernels.random import ORDER, stream_key, uniform

RANDOM, FILE, REVERSED = 0, 1, 2


class RecordedLabels(NamedTuple):
    """Recorded labels of N tasks; no tasks at all where labels are drawn from the model."""

    labels: Ints  # (N, most)
    counts: Ints  # (N,)
    start: Ints  # (most + 1,) node at which a task with that many labels starts
    order: int


@jit
def draw_recorded(labels: Ints, counts: Ints, seed: int, replication: int, order: int, rows: Ints, out: Ints) -> None:
    """``rows`` (K,) gets the tasks, ``out`` (K, most) their labels in the order in which they will come in."""
    N, most = labels.shape
    key = stream_key(seed, replication, ORDER)
    key_of, tasks = np.zeros(N), np.zeros(N, dtype=np.int64)
    size = 0
    for x in range(N):
        size = push(key_of, tasks, size, uniform(key, x, 0), x)
    draws = np.zeros(most)
    for k in range(rows.shape[0]):
        x = tasks[0]
        size = pop(key_of, tasks, size)
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
