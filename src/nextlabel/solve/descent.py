"""Descent on a smooth convex function of prices that must not be negative: projected L-BFGS.

Guarantee: every step lowers the function, and the same input gives the same bits on every CPU: sums are NumPy's own,
added in a fixed order, while the order in which a BLAS library adds depends on the CPU.
Cost: one evaluation per iteration, rarely two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nextlabel.arrays import Bools, Floats

#: Steps remembered; the least decrease, as a share of what the slope promises, that is taken; halvings at most.
MEMORY, LEAST_DECREASE, HALVINGS = 30, 1e-4, 20
#: The descent ends when a step lowers the function by less than this share of it.
STALLED = 1e-14

#: What a step changed: the prices, the gradient, and the product of the two.
Step = tuple[Floats, Floats, float]


def descend(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    iterations: int,
    memory: list[Step] | None = None,
) -> Floats:
    """The best point found from ``start`` >= 0; ``objective`` returns the value and the gradient.

    ``memory`` has the last steps of a descent on the same function, and gets those of this one.
    """
    x = start
    value, gradient = objective(x)
    steps: list[Step] = [] if memory is None else list(memory)
    for _ in range(iterations):
        free = (x > 0.0) | (gradient < 0.0)
        direction = np.where(free, -_inverse_hessian(steps, np.where(free, gradient, 0.0), free), 0.0)
        if _dot(gradient, direction) >= 0.0:
            steps, direction = [], np.where(free, -gradient, 0.0)
        length = 1.0 if steps else 1.0 / max(np.sqrt(_dot(direction, direction)), 1e-300)
        for _ in range(HALVINGS):
            trial = np.maximum(x + length * direction, 0.0)
            trial_value, trial_gradient = objective(trial)
            promised = _dot(gradient, trial - x)
            if trial_value <= value + LEAST_DECREASE * promised:
                break
            # The parabola through both values and the slope has its minimum here.
            curvature = 2.0 * (trial_value - value - promised)
            length *= min(max(-promised / curvature, 0.1), 0.5) if curvature > 0.0 else 0.5
        else:
            break
        fallen = value - trial_value
        step, change = trial - x, trial_gradient - gradient
        curve = _dot(step, change)
        if curve > 0.0:
            steps = [*steps[-MEMORY + 1 :], (step, change, curve)]
        x, value, gradient = trial, trial_value, trial_gradient
        if fallen <= STALLED * abs(value):
            break
    if memory is not None:
        memory[:] = steps
    return x


def _inverse_hessian(steps: list[Step], gradient: Floats, free: Bools) -> Floats:
    """The inverse Hessian that the steps tell of, times the gradient, over the free prices: the two loops of L-BFGS."""
    out = gradient.copy()
    used = []
    all_free = bool(free.all())
    for s, y, curve in reversed(steps):
        if not all_free:
            s, y = np.where(free, s, 0.0), np.where(free, y, 0.0)
            curve = _dot(s, y)
        if curve > 0.0:
            by = _dot(s, out) / curve
            out -= by * y
            used.append((s, y, curve, by))
    if used:
        _, y, curve, _ = used[0]
        out *= curve / _dot(y, y)
    for s, y, curve, by in reversed(used):
        out += (by - _dot(y, out) / curve) * s
    return out


def _dot(a: Floats, b: Floats) -> float:
    return float((a * b).sum())
