"""What an arrival lost against the best it could have done: one term of the Lagrangian martingale.

    term = sum over all tasks of what one more label could add at best, minus A - lam of the label given (plus lam if
           none was)

with A the advantage of one more label and lam the price of this arrival (``solve.advantage``).
Cost: a visit to each non-empty group.
"""

from __future__ import annotations

from typing import NamedTuple

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.timed_gap import TimedGap
from nextlabel.kernels.uncounted import uncounted


class GapTables(NamedTuple):
    """Tables of ``solve.advantage`` for the martingale estimate of the gap; no prices and no layers switch it off."""

    best: Floats  # (R, core)
    gain: Floats
    core: Ints  # (W + 1, nodes)
    past_best: Floats  # (2, W + 1, nodes)
    past_gain: Floats
    price: Floats  # (U,)
    timed: TimedGap  # before a deadline, in place of the rest


@uncounted
def lagrangian_loss(
    gap: GapTables, node: Ints, flight: Ints, active: Ints, count: Ints, n: int, price: float, chosen: int
) -> float:
    """sum over all tasks of what the arrival could add at best, minus A - lam of the label given; lam if none was."""
    loss = price if chosen < 0 else 0.0
    row = min(n, gap.best.shape[0]) - 1
    more = 0 if n == 1 else 1
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        c = gap.core[w, i]
        best = gap.best[row, c] if c >= 0 else gap.past_best[more, w, i]
        loss += count[s] * best
        if s == chosen:
            loss -= (gap.gain[row, c] if c >= 0 else gap.past_gain[more, w, i]) - price
    return loss
