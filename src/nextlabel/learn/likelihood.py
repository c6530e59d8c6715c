"""The most likely Beta or Dirichlet prior of recorded labels: maximum likelihood of the Dirichlet-multinomial.

======== ========= ========= ==================================================================
symbol   code      shape     meaning
======== ========= ========= ==================================================================
alpha_j  alpha     (J,)      prior weights, that of answer 0 first; with two answers (beta, alpha)
w        weight    --        sum_j alpha_j, kept inside [LEAST_WEIGHT, MOST_WEIGHT]
T_jr     more      (J, R)    tasks with more than r labels of answer j
M_r      any_more  (R,)      tasks with more than r labels
======== ========= ========= ==================================================================

Up to the multinomial coefficients, the log likelihood of all tasks is [Min00]

    sum_j sum_r T_jr log(alpha_j + r)  -  sum_r M_r log(w + r),

R the most labels of a task: neither special functions nor the number of tasks matter. The climb is Newton's in
(log w, log alpha_j / alpha_0), where a cap on the weight is a wall of a box. It starts from the moments.
Guarantee: the likelihood never falls; ``converged`` says that its gradient is zero inside the box. The function need
not be concave; other starts have led to the same maximum on all data tried (tests). Cost: J R multiply-adds a step,
about ten steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.learn.box import box_derivatives, corners, from_box, to_box
from nextlabel.learn.climb import climb
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.moments import moment_weights

#: Gradient a label at which a climb ends.
TOLERANCE, MOST_STEPS = 1e-10, 200


class Tails(NamedTuple):
    """Numbers of tasks, possibly in fractions, with more than r labels."""

    more: Floats
    any_more: Floats


class Weights(NamedTuple):
    """Weights of a prior, and how the climb to them ended."""

    alpha: Floats
    converged: bool
    steps: int


def tails_of(counts: Ints, tasks: Floats | Ints) -> Tails:
    """The tails of tasks with these counts."""
    labels = counts.sum(axis=1)
    R = int(labels.max())

    def tail(n: Ints) -> Floats:
        return np.cumsum(np.bincount(n, tasks, R + 1)[::-1], dtype=np.float64)[-2::-1]

    return Tails(np.stack([tail(column) for column in counts.T]), tail(labels))


def most_likely(counts: LabelCounts) -> Weights:
    """The most likely weights of a Beta or Dirichlet prior."""
    return climb_weights(tails_of(counts.counts, counts.tasks), moment_weights(counts)[0])


def climb_weights(tails: Tails, start: Floats, most_steps: int = MOST_STEPS) -> Weights:
    """From the weights ``start`` upwards."""
    low, high = corners(len(start))
    tolerance = TOLERANCE * max(float(tails.any_more.sum()), 1.0)
    found = climb(lambda x: _in_box(tails, x), to_box(start), low, high, tolerance, most_steps)
    return Weights(from_box(found.x), found.converged, found.steps)


def likelihood(tails: Tails, alpha: Floats) -> tuple[float, Floats, Floats]:
    """Log likelihood less its constant, gradient (J,) and Hessian (J, J) in the weights."""
    r = np.arange(len(tails.any_more))
    at, weight = alpha[:, None] + r, alpha.sum() + r
    value = float((tails.more * np.log(at)).sum() - tails.any_more @ np.log(weight))
    gradient = (tails.more / at).sum(axis=1) - (tails.any_more / weight).sum()
    hessian = np.diag(-(tails.more / at**2).sum(axis=1)) + (tails.any_more / weight**2).sum()
    return value, gradient, hessian


def _in_box(tails: Tails, x: Floats) -> tuple[float, Floats, Floats]:
    """``likelihood`` as a function of log weight and log ratios, by the chain rule."""
    alpha = from_box(x)
    value, gradient, hessian = likelihood(tails, alpha)
    first, second = box_derivatives(alpha, gradient)
    return value, first.T @ gradient, first.T @ hessian @ first + second
