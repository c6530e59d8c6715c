"""The beliefs of one task as a chain of grid points, and where a label of each type of worker leads.

====== ======= ========== =====================================================================================
symbol code    shape      meaning
====== ======= ========== =====================================================================================
C      answers --         number of answers
p      grid    (G,)       two answers: P(truth = 1). More: u, the probability of the likeliest truth
A      channel (M, C, C)  P(a worker of type m says y | truth c)
a      right   (M,)       more than two answers: the accuracy of the worker who tells truths apart as well
--     to      (M, G, E)  grid points after a label, and
--     weight  (M, G, E)  with which probability
====== ======= ========== =====================================================================================

Two answers: log-odds evenly spaced, p' = p A[1, y] / P(y) shared between its two neighbours.

More answers: the belief outside the likeliest truth is taken to be spread evenly, and a worker to be right with
probability a and wrong in every way alike, with the mean Bhattacharyya coefficient of the channel's pairs of rows:

    mean over c < d of sum_y sqrt(A[c, y] A[d, y])  =  2 sqrt(a e) + (C - 2) e,        e = (1 - a) / (C - 1).

The likeliest truth is named with probability u a + (1 - u) e, another one otherwise. This is a bucketing of the beliefs
by their largest probability: it decides who gets what, and claims nothing.
Guarantee: none for more than two answers; for two, the grid's. Cost: M G E.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nextlabel.arrays import Floats, Ints

#: Largest log-odds of the grid, and the distance of its points.
REACH, STEP = 8.0, 0.05


@dataclass(frozen=True, eq=False)
class Chain:
    """Grid beliefs of a task with ``answers`` answers, and the labels of M types of workers on it."""

    channels: Floats

    @property
    def answers(self) -> int:
        """C, the number of answers."""
        return int(self.channels.shape[1])

    @cached_property
    def grid(self) -> Floats:
        """(G,) beliefs, rising."""
        return belief_grid(self.answers)

    @cached_property
    def reward(self) -> Floats:
        """(G,) probability of the likeliest truth."""
        return np.maximum(self.grid, 1.0 - self.grid) if self.answers == 2 else self.grid

    @cached_property
    def tables(self) -> tuple[Ints, Floats]:
        """``to`` and ``weight``, (M, G, 4) each: two outcomes of a label, each shared between two grid points."""
        after, chance = self._two_answers() if self.answers == 2 else self._more_answers()
        return _shared(self.grid, after, chance)

    def mixed(self, shares: Floats) -> tuple[Ints, Floats]:
        """``to`` and ``weight``, (1, G, 4 M), of a label by whoever comes: type m with probability ``shares[m]``."""
        to, weight = self.tables
        M, G, E = to.shape
        part = weight * (shares / shares.sum())[:, None, None]
        return (
            np.ascontiguousarray(np.moveaxis(to, 0, 1).reshape(1, G, M * E)),
            np.ascontiguousarray(np.moveaxis(part, 0, 1).reshape(1, G, M * E)),
        )

    def _two_answers(self) -> tuple[Floats, Floats]:
        p, A = self.grid[None, :, None], self.channels[:, None, :, :]
        one, zero = p * A[:, :, 1, :], (1.0 - p) * A[:, :, 0, :]
        chance = one + zero
        return np.divide(one, chance, out=np.full_like(chance, 0.5), where=chance > 0), chance

    def _more_answers(self) -> tuple[Floats, Floats]:
        C, u = self.answers, self.grid[None, :]
        a = np.array([matched_accuracy(channel) for channel in self.channels])[:, None]
        e, rest = (1.0 - a) / (C - 1), (1.0 - u) / (C - 1)
        named = u * a + (1.0 - u) * e
        other = 1.0 - named
        # Another truth is named: it, or still the likeliest one, or any of the rest is then the likeliest.
        top = np.maximum(np.maximum(rest * a, u * e), rest * e)
        after = np.stack([u * a / named, np.divide((C - 1) * top, other, out=np.ones_like(top), where=other > 0)], -1)
        return np.clip(after, 1.0 / C, 1.0), np.stack([named, other], -1)


def belief_grid(answers: int) -> Floats:
    """(G,) grid beliefs: p for two answers, the largest probability (from 1 / answers) for more."""
    low = -REACH if answers == 2 else -float(np.log(answers - 1.0))
    points = np.linspace(low, REACH, int(np.ceil((REACH - low) / STEP)) + 1)
    return np.asarray(1.0 / (1.0 + np.exp(-points)))


def matched_accuracy(channel: Floats) -> float:
    """a of the even worker with the same mean Bhattacharyya coefficient between truths, by bisection."""
    C = len(channel)
    root = np.sqrt(channel)
    overlap = root @ root.T
    wanted = float((overlap.sum() - np.trace(overlap)) / (C * (C - 1)))
    low, high = 1.0 / C, 1.0
    for _ in range(60):
        a = 0.5 * (low + high)
        e = (1.0 - a) / (C - 1)
        if 2.0 * np.sqrt(a * e) + (C - 2) * e > wanted:
            low = a
        else:
            high = a
    return 0.5 * (low + high)


def _shared(grid: Floats, after: Floats, chance: Floats) -> tuple[Ints, Floats]:
    """Beliefs (M, G, Y) shared between their neighbours on the grid, so that the mean stays."""
    inside = np.clip(after, grid[0], grid[-1])
    k = np.clip(np.searchsorted(grid, inside, side="right") - 1, 0, len(grid) - 2)
    upper = (inside - grid[k]) / (grid[k + 1] - grid[k])
    to = np.concatenate([k, k + 1], axis=-1)
    return to, np.concatenate([chance * (1.0 - upper), chance * upper], axis=-1)
