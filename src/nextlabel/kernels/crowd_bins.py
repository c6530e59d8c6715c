"""Tasks in bins by belief and plan, and who has been given which task: what a decision looks at instead of all tasks.

======== ============ ==============================================================================
code     shape        meaning
======== ============ ==============================================================================
bin      (K,)         bin of each task, -1 for a task that is closed
plan     (K,)         the single-task plan that the task follows (``kernels.crowd_choice``)
head     (groups,)    first task of group ``bin * plans + plan``, -1 for none
tail     (groups,)    last task of the group
after    (K,)         next task of the same group, -1 at the end
before   (K,)         task before, -1 at the head
members  (groups,)    number of tasks in the group
last     (K,)         latest entry of the task in the history, -1 for none
earlier  (most,)      the entry before it on the same task, -1 for none
task     (most,)      task of each entry, in the order in which they were given out
worker   (most,)      and to whom
answer   (most,)      what came back; IN_FLIGHT, or GONE for work that was never handed in
size     (1,)         number of entries
======== ============ ==============================================================================

A task that moves joins the end of its new group, so that the tasks of a group take turns.
Cost: O(1) per move; a look at the labels of one task to know whether a worker has had it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.jit import jit, uncounted

IN_FLIGHT, GONE = -1, -2


class TaskBins(NamedTuple):
    """K tasks in groups, each a doubly linked list."""

    bin: Ints
    plan: Ints
    head: Ints
    tail: Ints
    after: Ints
    before: Ints
    members: Ints


class History(NamedTuple):
    """Everything that was given out, by task."""

    last: Ints
    earlier: Ints
    task: Ints
    worker: Ints
    answer: Ints
    size: Ints


@jit
def new_bins(tasks: int, groups: int) -> TaskBins:
    """All tasks closed."""
    return TaskBins(
        np.full(tasks, -1, dtype=np.int64),
        np.zeros(tasks, dtype=np.int64),
        np.full(groups, -1, dtype=np.int64),
        np.full(groups, -1, dtype=np.int64),
        np.full(tasks, -1, dtype=np.int64),
        np.full(tasks, -1, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
    )


@jit
def new_history(tasks: int, most: int) -> History:
    """Nothing given out yet; there is room for ``most`` labels."""
    return History(
        np.full(tasks, -1, dtype=np.int64),
        np.full(most, -1, dtype=np.int64),
        np.zeros(most, dtype=np.int64),
        np.zeros(most, dtype=np.int64),
        np.full(most, IN_FLIGHT, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@uncounted
def put(bins: TaskBins, x: int, bin_: int, plan: int, plans: int) -> None:
    """Put the closed task x at the end of a group."""
    g = bin_ * plans + plan
    bins.bin[x], bins.plan[x] = bin_, plan
    bins.before[x], bins.after[x] = bins.tail[g], -1
    if bins.tail[g] >= 0:
        bins.after[bins.tail[g]] = x
    else:
        bins.head[g] = x
    bins.tail[g] = x
    bins.members[g] += 1


@uncounted
def take(bins: TaskBins, x: int, plans: int) -> None:
    """Take task x out of its group: it is closed now."""
    g = bins.bin[x] * plans + bins.plan[x]
    if bins.before[x] >= 0:
        bins.after[bins.before[x]] = bins.after[x]
    else:
        bins.head[g] = bins.after[x]
    if bins.after[x] >= 0:
        bins.before[bins.after[x]] = bins.before[x]
    else:
        bins.tail[g] = bins.before[x]
    bins.members[g] -= 1
    bins.bin[x] = -1


@uncounted
def give_out(history: History, x: int, worker: int) -> int:
    """Note that the worker was given task x; return the number of the entry."""
    k: int = history.size[0]
    history.size[0] = k + 1
    history.task[k], history.worker[k], history.answer[k] = x, worker, IN_FLIGHT
    history.earlier[k] = history.last[x]
    history.last[x] = k
    return k


@uncounted
def has_had(history: History, x: int, worker: int) -> bool:
    """Whether the worker was ever given task x; nobody (-1) never was."""
    if worker < 0:
        return False
    k = history.last[x]
    while k >= 0:
        if history.worker[k] == worker:
            return True
        k = history.earlier[k]
    return False
