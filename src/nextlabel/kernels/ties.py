"""The one tie tolerance: what differs by less is the same, for policies, for the exact optimum and for the index.

Roots of the index are exact to 1e-9 and values of one task to about 1e-13, in the unit of the rewards
(``reward_unit``). A tolerance below that would break ties by rounding, and differently on different machines; one far
above it would tie what differs. 1e-9 of a task is less than any study could show.

An index is the price at which the gain of a label, a difference of two values, passes through 0, with a slope of 1/100
or more wherever it matters. So prices that are tied belong to gains that differ by TIED / 100, and that is what counts
as a tie between 'assign' and 'wait' in the search for roots.
"""

from __future__ import annotations

#: Indices, scores and gains closer than this are tied.
TIED = 1e-9
#: The same tolerance for the values whose root an index is.
TIED_VALUES = TIED / 100.0
