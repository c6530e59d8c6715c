"""When the next worker comes, for an arrival rate that is constant between given moments.

====== ======= ====== =========================================================
symbol code    shape  meaning
====== ======= ====== =========================================================
--     starts  (P,)   times at which the pieces of the rate begin, the first 0
r(t)   rates   (P,)   rate from then on, the last one for ever
====== ======= ====== =========================================================

Time change: for E ~ Exp(1) the t with integral of r from now to t = E is the next arrival of a Poisson process of rate
r(t).
Guarantee: exact; with one piece t = now + E / r, digit for digit. Cost: the pieces passed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.jit import uncounted


class Timing(NamedTuple):
    """When workers arrive, how long labels take, and when the campaign ends."""

    starts: Floats  # of the pieces of constant arrival rate
    rates: Floats
    mu: float
    horizon: float
    wait: bool  # for the labels in flight when the budget is spent


@uncounted
def arrival_after(now: float, amount: float, starts: Floats, rates: Floats) -> float:
    """The time t with integral of r from ``now`` to t = ``amount``; inf if there is none."""
    pieces = rates.shape[0]
    k = np.searchsorted(starts, now, side="right") - 1 if pieces > 1 else 0
    while k < pieces - 1:
        here = rates[k] * (starts[k + 1] - now)
        if here >= amount and rates[k] > 0.0:
            break
        k += 1
        now, amount = starts[k], amount - here
    return now + amount / rates[k] if rates[k] > 0.0 else np.inf


@uncounted
def arrivals_between(now: float, timing: Timing) -> float:
    """Workers expected from now to the horizon."""
    total = 0.0
    for k in range(timing.starts.shape[0]):
        end = timing.starts[k + 1] if k + 1 < timing.starts.shape[0] else timing.horizon
        total += timing.rates[k] * max(min(end, timing.horizon) - max(timing.starts[k], now), 0.0)
    return total
