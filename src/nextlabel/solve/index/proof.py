"""Proof that no greater root was missed: every price above the roots is ruled out, interval by interval.

The search for roots looks at some prices. A state whose 'assign' is optimal only between two of them, at a price above
the root that was found, would be missed. V is convex in the price, so that values and slopes at both ends of an
interval bound g inside (``kernels.index.rule_out``); intervals that are not ruled out are cut in PARTS and looked at
again, until they are ruled out or narrower than the tolerance.
Guarantee: if complete, no state is better off by more than TIED with 'assign' at any price more than the tolerance
above its root. Without a horizon only, where V is exact. Cost: one sweep per price, about as many as the search itself
took; it is done where that is at most PROOF_WORK state updates. Elsewhere only rows with few arrivals left are looked
at, where several roots are most often met: greater ones that were missed are found, and nothing is proved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.index import Openings, rule_out

if TYPE_CHECKING:
    from nextlabel.solve.index.roots import IndexWork

#: State updates that a proof may cost; prices of its first pass; parts into which an open interval is cut.
PROOF_WORK = 4_000_000
FIRST_PRICES, PARTS = 257, 4
#: Where that is not enough for all rows: rows that are looked at, and what it may cost.
PART_ROWS, PART_WORK = 64, 20_000_000


def look_above(work: IndexWork, at: Ints, root: Floats, tolerance: float) -> tuple[Floats, bool]:
    """Prices above the roots at which 'assign' is better (0: none was seen), and whether all others are ruled out."""
    higher = np.zeros(root.shape)
    if work.line.finite:
        return higher, False
    known, left = len(at), PROOF_WORK // (int(at[-1]) * work.states)
    if left < FIRST_PRICES:  # too dear for all rows: those with few arrivals left have several roots most often
        known = int(np.searchsorted(at, PART_ROWS, side="right"))
        left = PART_WORK // (int(at[known - 1]) * work.states)
    some = at[:known]
    prices = work.top * np.linspace(1.0, 0.0, FIRST_PRICES) ** 2
    linked = np.ones(len(prices), dtype=bool)
    room = np.zeros((4, int(some[-1]), work.states, 1))
    while len(prices) <= left:
        left -= len(prices)
        found = Openings(np.zeros(len(prices), dtype=bool), higher[:known])
        work.call(rule_out, prices, linked, some, root[:known], tolerance, room, found)
        wide = [int(p) for p in np.flatnonzero(found.open_) if prices[p - 1] - prices[p] > tolerance]
        if not wide:
            return higher, known == len(at)
        prices, linked = _cut(prices, wide)
    return higher, False


def _cut(prices: Floats, wide: list[int]) -> tuple[Floats, np.ndarray]:
    """The intervals in parts: prices, and whether each price ends a part."""
    out: list[float] = []
    linked: list[bool] = []
    for p in wide:
        parts = np.linspace(prices[p - 1], prices[p], PARTS + 1).tolist()
        if not out or out[-1] != parts[0]:
            out.append(parts[0])
            linked.append(False)
        out += parts[1:]
        linked += [True] * PARTS
    return np.array(out), np.array(linked)
