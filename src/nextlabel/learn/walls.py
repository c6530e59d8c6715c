"""Parameters that a wall holds: a prior on a cap can move along it, not through it.

A direction is a change of a prior's weights alpha_j (or of a mixture's phi, see ``information``). Away from every wall
each weight moves on its own; on the cap of their sum only their ratios do; with an answer's share on its wall only
their sum does. Standard errors and refits are taken in the directions that are left.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.mixture import BetaMixture
from nextlabel.learn.evidence import LEAST_SHARE, LEAST_WEIGHT, MOST_WEIGHT

#: How near a wall is on it, relatively; the least weight of a component relative to another, as a logarithm.
NEAR, LIGHTEST = 1e-6, 9.0


def capped(weight: float) -> int:
    """1 on the upper cap of a weight, -1 on the lower, else 0."""
    return int(weight >= MOST_WEIGHT * (1.0 - NEAR)) - int(weight <= LEAST_WEIGHT * (1.0 + NEAR))


def on_edge(alpha: Floats) -> bool:
    """Whether an answer's share is on its wall."""
    return bool(alpha.min() <= LEAST_SHARE * alpha.max() * (1.0 + NEAR))


def free_weights(alpha: Floats) -> Floats:
    """(J, n) directions in which the weights of one prior are free."""
    J = len(alpha)
    ratios = np.eye(J)[:, 1:] - (alpha / alpha.sum())[1:]
    ratios = alpha[:, None] * ratios
    if on_edge(alpha):
        ratios = ratios[:, :0]
    return ratios if capped(float(alpha.sum())) else np.column_stack([alpha, ratios])


def free_parameters(mixture: BetaMixture) -> Floats:
    """(P, n) directions in which the parameters of a mixture are free."""
    k = len(mixture.weights)
    v = np.array(mixture.weights)
    held = v <= np.exp(-LIGHTEST) * v.max() * (1.0 + NEAR)
    blocks = [np.eye(k - 1)[:, ~held[:-1]]] if not held[-1] else [np.zeros((k - 1, 0))]
    blocks += [free_weights(np.array([c.alpha, c.beta])) for c in mixture.components]
    out = np.zeros((3 * k - 1, sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


def covariance(information: Floats, free: Floats) -> Floats | None:
    """Inverse of the information in the free directions, as a covariance of all parameters; None where it is flat."""
    if free.shape[1] == 0:
        return np.zeros_like(information)
    inner = free.T @ information @ free
    size = np.sqrt(np.abs(np.diag(inner)))
    if not (np.isfinite(inner).all() and size.min() > 0):
        return None
    inner = inner / np.outer(size, size)
    if not np.linalg.eigvalsh(inner).min() > 1e-9:
        return None
    step = free / size
    return np.asarray(step @ np.linalg.inv(inner) @ step.T, dtype=np.float64)
