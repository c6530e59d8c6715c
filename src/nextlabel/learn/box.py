"""Positive weights as points of a box: x = (log w, log alpha_1 / alpha_0, ..., log alpha_{J-1} / alpha_0), w their sum.

Its walls are the caps of ``evidence``, so that a climb in x needs no other constraint. With two answers in the order
(beta, alpha) the second coordinate is the logit of the mean.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.learn.evidence import LEAST_SHARE, LEAST_WEIGHT, MOST_WEIGHT


def corners(J: int) -> tuple[Floats, Floats]:
    """Low and high end of each coordinate."""
    edge = -np.log(LEAST_SHARE)
    return np.array([np.log(LEAST_WEIGHT)] + [-edge] * (J - 1)), np.array([np.log(MOST_WEIGHT)] + [edge] * (J - 1))


def to_box(alpha: Floats) -> Floats:
    """x of the weights."""
    return np.concatenate([[np.log(alpha.sum())], np.log(alpha[1:]) - np.log(alpha[0])])


def from_box(x: Floats) -> Floats:
    """The weights of x."""
    z = np.concatenate([[0.0], x[1:]])
    share = np.exp(z - z.max())
    return np.asarray(np.exp(x[0]) * share / share.sum(), dtype=np.float64)


def box_derivatives(alpha: Floats, gradient: Floats) -> tuple[Floats, Floats]:
    """(J, J) derivatives of the weights in x, and their second derivatives summed with the weights of ``gradient``.

    d alpha_j = alpha_j in log w and alpha_j (1{j = k} - p_k) in the ratio k, p the shares.
    """
    J, p = len(alpha), alpha / alpha.sum()
    away = np.eye(J)[:, 1:] - p[1:]
    first = alpha[:, None] * np.column_stack([np.ones(J), away])
    pull = gradient * alpha
    second = np.empty((J, J))
    second[0, 0] = pull.sum()
    second[0, 1:] = second[1:, 0] = pull @ away
    second[1:, 1:] = np.einsum("j,jk,jl->kl", pull, away, away) - pull.sum() * (np.diag(p[1:]) - np.outer(p[1:], p[1:]))
    return first, second
