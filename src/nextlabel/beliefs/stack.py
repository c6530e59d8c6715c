"""Many lattices of one shape, stacked so that a kernel call serves a whole chunk of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import Lattice, Levels, lump
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.rewards import Accuracy, Reward
from nextlabel.beliefs.simplex import simplex
from nextlabel.kernels.inputs import Lattices

ACCURACY = Accuracy()


@dataclass(frozen=True, slots=True)
class LatticeStack(Levels):
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
    def spread(self) -> Floats:
        """(B,) the most that any number of labels can add to any node's reward."""
        return np.asarray((self.ceiling - self.reward).max(axis=1), dtype=np.float64)

    @property
    def arrays(self) -> Lattices:
        """What the kernels take."""
        return self.some(slice(None))

    def some(self, which: slice) -> Lattices:
        """The arrays of some of the lattices."""
        return Lattices(self.first, self.child, self.reward[which], self.ceiling[which], self.prob[which])

    def ended(self) -> LatticeStack:
        """The same lattices where no label can follow the last level: what is known there is all that will be."""
        ceiling = self.ceiling.copy()
        ceiling[:, self.first[self.depth] :] = self.reward[:, self.first[self.depth] :]
        return replace(self, ceiling=ceiling)


def stack_lattices(
    priors: Sequence[Prior], thresholds: Sequence[float], rewards: Sequence[Reward], depth: int
) -> LatticeStack:
    """The lattices of several priors with as many answers; a single one is lumped, which halves a symmetric problem."""
    if len(priors) == 1:
        lattice, node_of = lump(make_lattice(priors[0], thresholds[0], depth, rewards[0]))
        return LatticeStack(
            lattice.first, lattice.child, lattice.reward[None], lattice.ceiling[None], lattice.prob[None], node_of
        )
    first, child, _ = simplex(priors[0].answers, depth)
    reward, ceiling, prob = _arrays(priors, np.asarray(thresholds, dtype=np.float64), rewards, depth)
    return LatticeStack(first, child, reward, ceiling, prob, np.arange(first[-1], dtype=np.int64))


def make_lattice(prior: Prior, threshold: float, depth: int, reward: Reward = ACCURACY) -> Lattice:
    """The belief lattice of one task, not lumped."""
    first, child, counts = simplex(prior.answers, depth)
    worth, ceiling, prob = _arrays([prior], np.array([threshold]), [reward], depth)
    key = prior.symmetry(threshold, counts) if reward.symmetric else None
    return Lattice(first, worth[0], ceiling[0], prob[0], child, None if key is None else _numbered(key))


def _numbered(key: Floats) -> Ints:
    """Equal numbers for equal rows within a level, where the sum of a row is known: of two columns one says it all."""
    rows, axis = (key[:, 0], None) if key.shape[1] == 2 else (key, 0)
    return np.asarray(np.unique(rows, axis=axis, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def _arrays(
    priors: Sequence[Prior], thresholds: Floats, rewards: Sequence[Reward], depth: int
) -> tuple[Floats, Floats, Floats]:
    """reward, ceiling (B, N) and prob (B, N, J); priors of one kind with one reward are made together."""
    together: dict[tuple[type[Prior], Reward], list[int]] = {}
    for k, (prior, reward) in enumerate(zip(priors, rewards, strict=True)):
        together.setdefault((type(prior), reward), []).append(k)
    done: list[tuple[Floats, Floats, Floats]] = []
    for (kind, reward), rows in together.items():
        deep = depth + reward.ahead
        first, child, _ = simplex(priors[rows[0]].answers, deep)
        prob, truth = kind.believe_all([priors[k] for k in rows], thresholds[rows], deep)
        worth, ceiling = reward.values(prob, truth, first, child)
        done.append((worth, ceiling, prob[:, : worth.shape[1]]))
    if len(done) == 1:
        return done[0][0], done[0][1], np.ascontiguousarray(done[0][2])
    back = np.argsort(np.concatenate([np.array(rows) for rows in together.values()]))
    reward_all, ceiling_all, prob_all = (np.concatenate(part)[back] for part in zip(*done, strict=True))
    return reward_all, ceiling_all, prob_all
