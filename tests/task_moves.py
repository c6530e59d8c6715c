"""The moves of one task as pure functions: an oracle for what a campaign in memory does to its arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nextlabel.model.tasks import TaskState


def assign(state: TaskState) -> TaskState:
    """A worker starts on the task."""
    return TaskState(state.node, state.w + 1)


def complete(state: TaskState, answer: int, child: NDArray[np.int64]) -> TaskState:
    """A label in flight arrives with ``answer``; ``child`` is the lattice's table of next nodes."""
    return TaskState(int(child[state.node, answer]), state.w - 1)


def withdraw(state: TaskState) -> TaskState:
    """A label in flight is lost."""
    return TaskState(state.node, state.w - 1)


def take_back(state: TaskState, answer: int, counts: NDArray[np.int64]) -> TaskState:
    """A label that came in with ``answer`` is in flight again; ``counts`` (nodes, answers) are the lattice's."""
    before = counts[state.node].copy()
    before[answer] -= 1
    level = int(before.sum())
    low, high = _level(counts, level)
    place = int(np.flatnonzero((counts[low:high] == before).all(axis=1))[0])
    return TaskState(low + place, state.w + 1)


def _level(counts: NDArray[np.int64], level: int) -> tuple[int, int]:
    """First node of a level and of the next one."""
    totals = counts.sum(axis=1)
    return int(np.searchsorted(totals, level)), int(np.searchsorted(totals, level, side="right"))
