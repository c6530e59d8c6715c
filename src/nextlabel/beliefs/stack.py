"""Many lattices of one shape, stacked so that a kernel call serves a whole chunk of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta, beta_triangles
from nextlabel.beliefs.lattice import Lattice, lump, triangle


@dataclass(frozen=True, slots=True)
class LatticeStack:
    """B lattices that share ``first`` and ``child``; the other arrays have a leading axis of length B.

    ``node_of`` maps a node of the priors' own lattice to its row here (they differ when nodes were lumped).
    """

    first: Ints
    child: Ints
    reward: Floats
    ceiling: Floats
    prob: Floats
    node_of: Ints

    @property
    def depth(self) -> int:
        """The last level D."""
        return len(self.first) - 2

    @property
    def nodes(self) -> int:
        """Number of nodes of each lattice."""
        return int(self.first[-1])

    @property
    def spread(self) -> Floats:
        """(B,) the most that any amount of labels can add to any node's reward."""
        return np.asarray(self.ceiling.max(axis=1) - self.reward.min(axis=1), dtype=np.float64)

    def ended(self) -> LatticeStack:
        """The same lattices where no label can follow the last level: what is known there is all that will be."""
        ceiling = self.ceiling.copy()
        ceiling[:, self.first[self.depth] :] = self.reward[:, self.first[self.depth] :]
        return replace(self, ceiling=ceiling)


def stack_lattices(priors: Sequence[Beta], thresholds: Sequence[float], depth: int) -> LatticeStack:
    """The lattices of several priors; a single one is lumped, which halves a symmetric problem."""
    if len(priors) == 1:
        lattice, node_of = lump(priors[0].lattice(thresholds[0], depth))
        return _stack_of(lattice, node_of)
    first, child = triangle(depth)
    alpha = np.array([p.alpha for p in priors])
    beta = np.array([p.beta for p in priors])
    reward, prob = beta_triangles(alpha, beta, np.asarray(thresholds, dtype=np.float64), depth)
    return LatticeStack(first, child, reward, np.ones_like(reward), prob, np.arange(first[-1], dtype=np.int64))


def _stack_of(lattice: Lattice, node_of: Ints) -> LatticeStack:
    return LatticeStack(
        lattice.first, lattice.child, lattice.reward[None], lattice.ceiling[None], lattice.prob[None], node_of
    )
