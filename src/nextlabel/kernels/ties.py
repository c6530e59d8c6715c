"""The one tie tolerance: what differs by less is the same, for the index, for policies and for the exact optimum.

Values of one task are exact to about 1e-13 and roots of the index to 1e-9, in the unit of the rewards
(``problem.units``). A tolerance below that would break ties by rounding, and differently on different machines; one far
above it would tie what differs. 1e-9 of a task is less than any study could show.
"""

from __future__ import annotations

#: Values, indices and scores closer than this are tied.
TIED = 1e-9
