"""What the sweeps of the single-task problem take, as NamedTuples of arrays: a kernel reads them like plain arguments.

============ ========== ================= =================================================================
tuple        field      shape             meaning
============ ========== ================= =================================================================
Lattices     first      (D+2,)            nodes of level m are first[m] .. first[m+1] - 1
--           child      (N, J)            node after answer j
--           reward     (B, N)            R: expected reward of deciding now
--           ceiling    (B, N)            expected reward if the truth were told
--           prob       (B, N, J)         p_j: predictive probability of answer j
--           node_of    (nodes,)          where a node of the priors' own lattice is here, where nodes may be lumped
Grid         C, W       --                labels that a task is given, and of them in flight, at most
--           off        (W+2,)            state (i, w) is number off[w] + i; off[W+1] counts the states
--           node,      (states,)         i and w of each state
             flight
--           up         (states,)         the same with one more label in flight; -1 on the edge, level + w = C or w = W
Steps        finite     --                whether there is a horizon; if not there is one layer
--           mu         --                completion rate
--           tau        (layers,)         time left
--           h, r       (layers,)         length and arrival rate of the step into layer k
Edge         value      (B, R, states)    worth of the states on the edge, by arrivals left: 1, 2, .. and the last for
                                          all larger n
--           labels     (B, R, states)    labels that they buy
============ ========== ================= =================================================================

The cost of a tuple is some microseconds at a call from Python, and nothing between kernels.

``fill_triangles`` fills binary beliefs from their last level: I(a,b) = p I(a+1,b) + (1-p) I(a,b+1).
The same for 1 - I, which is carried along so that small probabilities of either truth keep their digits.
Guarantee: convex combinations only, so the relative error of both is that of the last level.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


class Lattices(NamedTuple):
    """B belief lattices of one shape, made by ``model.lattice.stack_lattices``."""

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
        """Number of nodes N."""
        return int(self.first[-1])

    @property
    def spread(self) -> Floats:
        """(B,) the most that any number of labels can add to any node's reward."""
        return np.asarray((self.ceiling - self.reward).max(axis=1), dtype=np.float64)

    def one(self, b: int) -> Lattices:
        """Lattice b alone."""
        some = slice(b, b + 1)
        return self._replace(reward=self.reward[some], ceiling=self.ceiling[some], prob=self.prob[some])

    def ended(self) -> Lattices:
        """The same lattices where no label can follow the last level: what is known there is all that will be."""
        ceiling = self.ceiling.copy()
        ceiling[:, self.first[self.depth] :] = self.reward[:, self.first[self.depth] :]
        return self._replace(ceiling=ceiling)


class Grid(NamedTuple):
    """The states of a sweep: at most C labels given out, at most W of them in flight."""

    C: int
    W: int
    off: Ints
    node: Ints
    flight: Ints
    up: Ints

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.node)


class Steps(NamedTuple):
    """Rates, and the time steps between layers."""

    finite: bool
    mu: float
    tau: Floats
    h: Floats
    r: Floats


class Edge(NamedTuple):
    """What the states on the edge of the grid are worth and buy."""

    value: Floats
    labels: Floats


def make_grid(first: Ints, C: int, W: int) -> Grid:
    """Number the states: block w holds the nodes of level <= C - w."""
    many = first[C + 1 - np.arange(W + 1)]
    off, flight = np.append(0, np.cumsum(many)), np.repeat(np.arange(W + 1), many)
    node = np.arange(off[-1]) - off[flight]
    offered = (flight < W) & (node < first[C - flight])
    return Grid(C, W, off, node, flight, np.where(offered, off[np.minimum(flight + 1, W)] + node, -1))


#: The one tie tolerance: indices, scores and gains closer than this are tied, for policies, for the exact optimum and
#: for the index. Roots of the index are exact to 1e-9 and values of one task to about 1e-13, in the unit of the rewards
#: (``reward_unit``). A tolerance below that would break ties by rounding, and differently on different machines; one
#: far above it would tie what differs. 1e-9 of a task is less than any study could show.
TIED = 1e-9
#: The same for the values whose root an index is: the price at which the gain of a label, a difference of two values,
#: passes through 0, with a slope of 1/100 or more wherever it matters.
TIED_VALUES = TIED / 100.0


class SlackTime(NamedTuple):
    """A table's layers stand at -exp(-rate (time left - (arrivals left - 1) / arrivals)); rate 0: at the time left."""

    arrivals: float
    rate: float


#: Layers of a table, if it has several, are times left.
NO_SLACK_TIME = SlackTime(1.0, 0.0)


@jit
def place_in_time(slack_time: SlackTime, n: int, left: float) -> float:
    """Where n arrivals and so much time left stand among the layers of a table."""
    if slack_time.rate > 0.0:
        return -math.exp(min(slack_time.rate * ((n - 1) / slack_time.arrivals - left), 700.0))
    return left


@jit
def between(at: Floats, x: float) -> tuple[int, float]:
    """The last of the rising numbers not above x, but one at most, and how far x is on the way to the next: 0 to 1."""
    k = min(max(np.searchsorted(at, x, side="right") - 1, 0), at.shape[0] - 2)
    return k, min(max((x - at[k]) / (at[k + 1] - at[k]), 0.0), 1.0)


@jit
def layer_at(tau: Floats, slack_time: SlackTime, n: int, left: float) -> tuple[int, float]:
    """The layer at or below n arrivals and so much time left, and the share of the next one."""
    return between(tau, place_in_time(slack_time, n, left)) if tau.shape[0] > 1 else (0, 0.0)


@jit
def fill_triangles(
    alpha: Floats, beta: Floats, first: Ints, below: Floats, above: Floats, truth: Floats, prob: Floats,
) -> None:  # fmt: skip
    """``below`` and ``above`` (B, D+1) hold 1 - I and I on the last level and are used up; the others (B, N, 2)."""
    D = first.shape[0] - 2
    for c in range(alpha.shape[0]):
        for m in range(D, -1, -1):
            total = alpha[c] + beta[c] + m
            for a in range(m + 1):
                p = (alpha[c] + a) / total
                q = (beta[c] + m - a) / total
                i = first[m] + a
                prob[c, i, 0] = q
                prob[c, i, 1] = p
                if m < D:
                    above[c, a] = p * above[c, a + 1] + q * above[c, a]
                    below[c, a] = p * below[c, a + 1] + q * below[c, a]
                less, more = below[c, a], above[c, a]  # the smaller one has the digits, and both sum to 1
                truth[c, i, 0] = less if less < more else 1.0 - more
                truth[c, i, 1] = more if more <= less else 1.0 - less


@jit
def sum_last_level(alpha: Floats, beta: Floats, odds: Floats, term: Floats, above: Floats) -> None:
    """Fill between above[:, 0] and above[:, D] from the first difference, odds = d / (1 - d).

    The error of ``term`` is a factor common to all differences, which the known end takes out.
    """
    D = above.shape[1] - 1
    for c in range(alpha.shape[0]):
        t = term[c]
        start, end = above[c, 0], above[c, D]
        total = 0.0
        for a in range(D):
            total += t
            above[c, a + 1] = total
            t *= odds[c] * (beta[c] + D - a - 1.0) / (alpha[c] + a + 1.0)
        scale = (end - start) / total
        for a in range(1, D + 1):
            above[c, a] = min(start + scale * above[c, a], 1.0)
