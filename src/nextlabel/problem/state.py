"""A task's state and the two pure moves that change it; simulator and live campaigns share them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TaskState(NamedTuple):
    """``node`` of the task's belief lattice and ``w`` labels in flight."""

    node: int
    w: int


def assign(state: TaskState) -> TaskState:
    """A worker starts on the task."""
    return TaskState(state.node, state.w + 1)


def complete(state: TaskState, answer: int, child: NDArray[np.int64]) -> TaskState:
    """A label in flight arrives with ``answer``; ``child`` is the lattice's table of next nodes."""
    return TaskState(int(child[state.node, answer]), state.w - 1)


def withdraw(state: TaskState) -> TaskState:
    """A label in flight is lost."""
    return TaskState(state.node, state.w - 1)
