"""Belief lattice: everything the solvers know about how labels teach.

A task's belief after m labels is a *node* of level m. The kernels see these arrays and nothing else, so that a new kind
of prior, label or reward is a new lattice and never a new solver; a task's state is (node, w labels in flight).

========== =========== ========= ======================================================================
symbol     code        shape     meaning
========== =========== ========= ======================================================================
m          level       --        labels seen; nodes of level m are ``first[m] .. first[m+1]-1``
R          reward      (N,)      expected reward of deciding now
R_inf      ceiling     (N,)      expected reward if the truth were told: R <= any continuation <= ceiling
p_j        prob        (N, J)    predictive probability of answer j
i -> i'    child       (N, J)    node after answer j (0 on the last level, where there is none)
========== =========== ========= ======================================================================

Guarantee: exact (the lattice is the model). Cost: N (2 + 2 J) numbers; ``simplex`` says how many nodes N there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import simplex

#: Rewards or probabilities closer than this are one number when nodes are compared.
LUMP_GAP = 1e-11


class Levels:
    """Nodes by level: those of level m are ``first[m] .. first[m+1]-1``."""

    __slots__ = ()
    first: Ints

    @property
    def depth(self) -> int:
        """The last level D."""
        return len(self.first) - 2

    @property
    def nodes(self) -> int:
        """Number of nodes N."""
        return int(self.first[-1])


@dataclass(frozen=True, slots=True)
class Lattice(Levels):
    """Nodes by level, with rewards, predictive probabilities and children."""

    first: Ints
    reward: Floats
    ceiling: Floats
    prob: Floats
    child: Ints

    @property
    def answers(self) -> int:
        """Number of possible answers J."""
        return int(self.prob.shape[1])

    def truncated(self, depth: int) -> Lattice:
        """The same lattice with its levels above ``depth`` cut off."""
        n, inner = int(self.first[depth + 1]), int(self.first[depth])
        child = self.child[:n].copy()
        child[inner:] = 0
        return Lattice(self.first[: depth + 2], self.reward[:n], self.ceiling[:n], self.prob[:n], child)


def lump(lattice: Lattice) -> tuple[Lattice, Ints]:
    """Merge nodes whose future is the same in law; return the smaller lattice and the map old node -> new node.

    Two nodes of one level are equal when their rewards agree and their (probability, lumped child) pairs agree as a
    multiset: with a symmetric prior and threshold 1/2, (a, b) and (b, a). Values, bounds and indices are unchanged.
    """
    D, J = lattice.depth, lattice.answers
    to_new = np.zeros(lattice.nodes, dtype=np.int64)
    keep: list[Ints] = []
    local_of_next = np.zeros(0, dtype=np.int64)
    for m in range(D, -1, -1):
        lo, hi = int(lattice.first[m]), int(lattice.first[m + 1])
        prob = _cluster(lattice.prob[lo:hi])
        kids = local_of_next[lattice.child[lo:hi] - hi] if m < D else np.zeros((hi - lo, J), dtype=np.int64)
        order = np.lexsort((prob, kids), axis=1)
        rows = np.column_stack(
            [
                _cluster(lattice.reward[lo:hi]),
                _cluster(lattice.ceiling[lo:hi]),
                np.take_along_axis(kids, order, axis=1),
                np.take_along_axis(prob, order, axis=1),
            ]
        )
        _, representative, local = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        local_of_next = np.asarray(local, dtype=np.int64).reshape(-1)
        to_new[lo:hi] = local_of_next
        keep.append(lo + representative)
    keep.reverse()
    first = np.concatenate([[0], np.cumsum([len(k) for k in keep])]).astype(np.int64)
    for m in range(D + 1):
        to_new[int(lattice.first[m]) : int(lattice.first[m + 1])] += first[m]
    rows_kept = np.concatenate(keep)
    child = to_new[lattice.child[rows_kept]]
    child[int(first[D]) :] = 0
    first.setflags(write=False)  # as ``simplex`` has them: compiled kernels tell the two kinds of array apart
    child.setflags(write=False)
    lumped = Lattice(first, lattice.reward[rows_kept], lattice.ceiling[rows_kept], lattice.prob[rows_kept], child)
    return lumped, to_new


def _cluster(values: Floats) -> Ints:
    """Number the values so that neighbours within LUMP_GAP share a number (rounding would split some of them)."""
    flat = values.ravel()
    order = np.argsort(flat, kind="stable")
    number = np.empty(len(flat), dtype=np.int64)
    number[order] = np.cumsum(np.diff(flat[order], prepend=flat[order[:1]]) > LUMP_GAP)
    return number.reshape(values.shape)


def level_of(first: Ints) -> Ints:
    """Level of each node."""
    return np.repeat(np.arange(len(first) - 1, dtype=np.int64), np.diff(first))


def triangle(depth: int) -> tuple[Ints, Ints]:
    """``first`` and ``child`` of the binary lattice: node m(m+1)/2 + a has seen a ones among m labels."""
    first, child, _ = simplex(2, depth)
    return first, child


def triangle_node(a: int, b: int) -> int:
    """Node of the binary lattice with ``a`` ones and ``b`` zeros."""
    m = a + b
    return m * (m + 1) // 2 + a


def triangle_counts(depth: int) -> tuple[Ints, Ints]:
    """For each node of the binary lattice: labels seen, and ones among them."""
    _, _, counts = simplex(2, depth)
    return counts.sum(axis=1), counts[:, 1]
