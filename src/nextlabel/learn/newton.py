"""The last climb of a mixture: Newton's method in all its parameters at once, because EM is slow where kinds overlap.

x = (log v_1 / v_k, ..., log v_{k-1} / v_k), then ``box`` coordinates of each component. Guarantee: that of ``climb``.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.mixture import BetaMixture
from nextlabel.learn.box import box_derivatives, corners, from_box, to_box
from nextlabel.learn.climb import climb
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.information import derivatives
from nextlabel.learn.walls import LIGHTEST

#: Gradient per task at which the climb ends, and its most steps.
TOLERANCE, MOST_STEPS = 1e-9, 100


def climb_mixture(counts: LabelCounts, start: BetaMixture) -> tuple[BetaMixture, bool, int]:
    """The mixture on top, whether it converged, and the steps it took."""
    k = len(start.weights)
    low, high = corners(2)
    low = np.concatenate([np.full(k - 1, -LIGHTEST), np.tile(low, k)])
    high = np.concatenate([np.full(k - 1, LIGHTEST), np.tile(high, k)])
    found = climb(lambda x: _evaluate(counts, x, k), _pack(start), low, high, TOLERANCE * len(counts), MOST_STEPS)
    return _unpack(found.x, k), found.converged, found.steps


def _pack(prior: BetaMixture) -> Floats:
    v = np.array(prior.weights)
    parts = [to_box(np.array([c.beta, c.alpha])) for c in prior.components]
    return np.concatenate([np.log(v[:-1] / v[-1]), *parts])


def _unpack(x: Floats, k: int) -> BetaMixture:
    v = from_box(np.concatenate([[0.0], x[: k - 1]]))
    parts = [from_box(pair) for pair in x[k - 1 :].reshape(k, 2)]
    return BetaMixture((*v[1:].tolist(), float(v[0])), tuple(Beta(float(a), float(b)) for b, a in parts))


def _evaluate(counts: LabelCounts, x: Floats, k: int) -> tuple[float, Floats, Floats]:
    prior = _unpack(x, k)
    value, gradient, hessian = derivatives(prior, counts.ones, counts.labels, counts.tasks)
    P = 3 * k - 1
    first, second = np.zeros((P, P)), np.zeros((P, P))
    v = np.array([prior.weights[-1], *prior.weights[:-1]])
    head = slice(0, k - 1)
    # the last weight is what the others leave: its gradient is in theirs
    in_weights = box_derivatives(v, np.concatenate([[0.0], gradient[head]]))
    first[head, head], second[head, head] = in_weights[0][1:, 1:], in_weights[1][1:, 1:]
    for i, c in enumerate(prior.components):
        here = slice(k - 1 + 2 * i, k + 1 + 2 * i)
        # phi has alpha before beta, the box beta before alpha
        slope, bend = box_derivatives(np.array([c.beta, c.alpha]), gradient[here][::-1])
        first[here, here], second[here, here] = slope[::-1], bend
    return value, first.T @ gradient, first.T @ hessian @ first + second
