"""Crowds that several tests use: channels, and the relaxation of tasks that begin at one belief."""

from __future__ import annotations

from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.solve.crowd.relaxation import Relaxation, Types, relax


def coin(accuracy: float, answers: int = 2) -> Floats:
    """A worker right with that probability, every wrong answer alike."""
    channel = np.full((answers, answers), (1.0 - accuracy) / (answers - 1))
    np.fill_diagonal(channel, accuracy)
    return channel


def two_coins(one_if_one: float, one_if_zero: float) -> Floats:
    """P(says 1 | truth 1) and P(says 1 | truth 0)."""
    return np.array([[1.0 - one_if_zero, one_if_zero], [1.0 - one_if_one, one_if_one]])


def relax_alike(
    tasks: int,
    budget: float,
    channels: list[Floats],
    supply: list[float],
    p: Floats | None = None,
    cost: float = 0.0,
    **rest: Any,
) -> Relaxation:
    """The relaxation of tasks at one belief, all truths alike unless told otherwise."""
    C = len(channels[0])
    belief = np.full((1, C), 1.0 / C) if p is None else p[None, :]
    types = Types(np.array(channels), np.array(supply, dtype=float), np.full(len(channels), cost))
    return relax(belief, np.array([float(tasks)]), types, budget, **rest)
