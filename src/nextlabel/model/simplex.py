"""Counts of J answers as nodes of a lattice: level m holds all (c_0, ..., c_{J-1}) with sum m.

========== ========= ========= ==================================================================
symbol     code      shape     meaning
========== ========= ========= ==================================================================
c_j        counts    (N, J)    labels with answer j
--         child     (N, J)    node with one more label of answer j (0 on the last level)
========== ========= ========= ==================================================================

Within a level nodes are in lexicographic order of (c_{J-1}, ..., c_1), so that J = 2 is the binary triangle: node
m(m+1)/2 + a has seen a ones. With N(m, J) = C(m+J-1, J-1) count vectors of level m, the place in the level is

    place_J(c) = N(m, J) - N(m - c_{J-1}, J) + place_{J-1}(c_0, ..., c_{J-2}),      place_1 = 0.

Cost: N = C(D+J, J) nodes for D labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import binom

from nextlabel.arrays import Ints
from nextlabel.errors import TooLargeError

#: Nodes of one lattice with more than two answers; with two, a lattice has at most this depth.
MOST_NODES = 150_000
DEEPEST = 1024


def nodes_of(answers: int, depth: int) -> int:
    """Number of nodes up to level ``depth``."""
    return comb(depth + answers, answers)


def deepest(answers: int, most_nodes: int = MOST_NODES) -> int:
    """The last level of the largest lattice that is worth its time and room."""
    if answers <= 2:
        return DEEPEST
    depth = 1
    while nodes_of(answers, depth + 1) <= most_nodes:
        depth += 1
    return depth


def node_of_counts(counts: Sequence[int]) -> int:
    """Node of a state as people write it: (ones, zeros) for two answers, else labels of answer 0, 1, 2, ..."""
    row = np.array([counts[::-1] if len(counts) == 2 else counts], dtype=np.int64)
    m, J = int(row.sum()), row.shape[1]
    return comb(m - 1 + J, J) + int(_place(row)[0])


@lru_cache(maxsize=65536)
def counts_of_node(answers: int, node: int) -> tuple[int, ...]:
    """The inverse of ``node_of_counts``; needs no lattice, which many labels of many answers would make too large."""
    left = 0
    while nodes_of(answers, left) <= node:
        left += 1
    place, row = node - comb(left - 1 + answers, answers), []
    for J in range(answers, 1, -1):  # the greatest c_{J-1} with N(m, J) - N(m - c_{J-1}, J) at most the place
        here, c = comb(left + J - 1, J - 1), 0
        while c < left and here - comb(left - c + J - 2, J - 1) <= place:
            c += 1
        place -= here - comb(left - c + J - 1, J - 1)
        left -= c
        row.append(c)
    row.append(left)
    return tuple(row) if answers == 2 else tuple(row[::-1])


@lru_cache(maxsize=32)
def simplex(answers: int, depth: int) -> tuple[Ints, Ints, Ints]:
    """``first``, ``child`` and ``counts`` of the lattice of J = ``answers``; the arrays are shared and read-only."""
    if answers > 2 and nodes_of(answers, depth) > 8 * MOST_NODES:
        raise TooLargeError(
            f"{depth} labels with {answers} answers each make {nodes_of(answers, depth):,} beliefs.",
            f"Ask for at most {deepest(answers)} labels a task.",
        )
    first = np.array([comb(m - 1 + answers, answers) for m in range(depth + 2)], dtype=np.int64)
    counts = np.concatenate([_compositions(answers, m) for m in range(depth + 1)])
    child = np.zeros_like(counts)
    inner = int(first[depth])
    start = np.repeat(first[1:-1], np.diff(first)[:-1]) if depth > 0 else np.zeros(0, dtype=np.int64)
    for j in range(answers):
        more = counts[:inner].copy()
        more[:, j] += 1
        child[:inner, j] = start + _place(more)
    for array in (first, child, counts):
        array.setflags(write=False)
    return first, child, counts


def _place(counts: Ints) -> Ints:
    """Place of each row in its level."""
    left = counts.sum(axis=1)
    place = np.zeros(len(counts), dtype=np.int64)
    for J in range(counts.shape[1], 1, -1):
        rest = left - counts[:, J - 1]
        place += np.rint(binom(left + J - 1, J - 1) - binom(rest + J - 1, J - 1)).astype(np.int64)
        left = rest
    return place


@lru_cache(maxsize=512)
def _compositions(answers: int, total: int) -> Ints:
    """All count vectors with that sum, in order."""
    if answers == 1:
        return np.array([[total]], dtype=np.int64)
    parts = []
    for last in range(total + 1):
        head = _compositions(answers - 1, total - last)
        parts.append(np.column_stack([head, np.full(len(head), last, dtype=np.int64)]))
    return np.concatenate(parts)
