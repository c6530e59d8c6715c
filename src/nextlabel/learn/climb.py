"""Maximise a smooth function of a few variables inside a box: Newton's method, damped and projected.

Guarantee: the value never falls from step to step, which EM relies on. Converged means that the gradient, without what
points out of the box, is below a tolerance, or that its Newton step promises less than rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats

#: Value, gradient (n,) and Hessian (n, n).
Evaluate = Callable[[Floats], tuple[float, Floats, Floats]]

#: Longest step of one variable; relative size of eigenvalues that are taken for zero; rounding of a value; how near to
#: a wall is on it, since a hair's breadth of freedom would shorten every step.
LONGEST, FLAT, ROUNDING, HAIR = 2.0, 1e-12, 1e-13, 1e-9


class Climbed(NamedTuple):
    """Where the climb ended."""

    x: Floats
    value: float
    converged: bool
    steps: int


def climb(evaluate: Evaluate, x: Floats, low: Floats, high: Floats, tolerance: float, most_steps: int) -> Climbed:
    """From ``x`` upwards, until the gradient is below ``tolerance``."""
    x = _inside(x, low, high)
    value, gradient, hessian = evaluate(x)
    for step in range(most_steps + 1):
        free = ~(((x <= low) & (gradient < 0)) | ((x >= high) & (gradient > 0)))
        if not free.any() or np.abs(gradient[free]).max() <= tolerance:
            return Climbed(x, value, True, step)
        if step == most_steps:
            break
        direction = np.zeros_like(x)
        direction[free] = _newton(gradient[free], hessian[np.ix_(free, free)])
        promise = float(gradient @ direction)
        size = min(1.0, LONGEST / float(np.abs(direction).max()))
        while True:
            new = _inside(x + size * direction, low, high)
            found = evaluate(new)
            if found[0] > value + 1e-4 * float(gradient @ (new - x)):
                break
            size *= 0.5
            if size < 1e-12 or size * promise < ROUNDING * abs(value):
                return Climbed(x, value, promise <= 1e3 * ROUNDING * abs(value), step)
        x, (value, gradient, hessian) = new, found
    return Climbed(x, value, False, most_steps)


def _inside(x: Floats, low: Floats, high: Floats) -> Floats:
    """The nearest point of the box."""
    return np.where(x < low + HAIR, low, np.where(x > high - HAIR, high, x))


def _newton(gradient: Floats, hessian: Floats) -> Floats:
    """The step to the top of the quadratic, its upward curvatures turned down so that it always leads up."""
    curvature, basis = np.linalg.eigh(-hessian)
    size = np.abs(curvature)
    size = np.maximum(size, max(FLAT * float(size.max()), 1e-300))
    return np.asarray(basis @ ((basis.T @ gradient) / size), dtype=np.float64)
