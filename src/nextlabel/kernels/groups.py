"""Tasks in the same state as one group: doubly linked lists, and a list of the groups that have members.

======== ============ ====================================================
code     shape        meaning
======== ============ ====================================================
head     (states,)    first task of a group, -1 for none
count    (states,)    members of a group
active   (groups,)    the groups that have members; the last entry counts them
position (states,)    where a group stands in ``active``
after    (K,)         next task of the same group, -1 at the end
before   (K,)         task before, -1 at the head
======== ============ ====================================================

Cost: O(1) per call.
"""

from __future__ import annotations

from nextlabel.arrays import Ints
from nextlabel.kernels.jit import uncounted


@uncounted
def unlink(x: int, s: int, head: Ints, after: Ints, before: Ints, count: Ints, active: Ints, position: Ints) -> None:
    """Take task x out of group s; a group that becomes empty leaves the list of active groups (active[-1] counts)."""
    if before[x] >= 0:
        after[before[x]] = after[x]
    else:
        head[s] = after[x]
    if after[x] >= 0:
        before[after[x]] = before[x]
    count[s] -= 1
    if count[s] == 0:
        last = active[-1] - 1
        active[-1] = last
        active[position[s]] = active[last]
        position[active[last]] = position[s]


@uncounted
def link(x: int, s: int, head: Ints, after: Ints, before: Ints, count: Ints, active: Ints, position: Ints) -> None:
    """Put task x into group s."""
    before[x] = -1
    after[x] = head[s]
    if head[s] >= 0:
        before[head[s]] = x
    head[s] = x
    if count[s] == 0:
        position[s] = active[-1]
        active[active[-1]] = s
        active[-1] += 1
    count[s] += 1
