"""Tasks by time, earliest first, such as the completions to come: a binary heap in two arrays, times and tasks.

``size`` counts the entries and is handed on by the caller: a kernel holds it as a local number.
Cost: O(log size) per call.
"""

from __future__ import annotations

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import uncounted


@uncounted
def push(times: Floats, tasks: Ints, size: int, time: float, task: int) -> int:
    """Add a task to the heap; the earliest is on top; return the new size."""
    k = size
    while k > 0:
        above = (k - 1) // 2
        if times[above] <= time:
            break
        times[k], tasks[k] = times[above], tasks[above]
        k = above
    times[k], tasks[k] = time, task
    return size + 1


@uncounted
def pop(times: Floats, tasks: Ints, size: int) -> int:
    """Remove the top of the heap; return the new size."""
    size -= 1
    time, task = times[size], tasks[size]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= size:
            break
        if below + 1 < size and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[k], tasks[k] = times[below], tasks[below]
        k = below
    times[k], tasks[k] = time, task
    return size
