"""Near-equal workers share a type: two coins rounded to more informative ones, which keeps a bound a bound.

====== ======== ==================================================================
symbol code     meaning
====== ======== ==================================================================
s      --       P(says 1 | truth 1)
t      --       P(says 0 | truth 0)
h      step     s and t are rounded to multiples of it, away from s + t = 1
====== ======== ==================================================================

With s + t >= 1 both coins go up, with s + t < 1 both go down: the given worker is then the rounded one with some
answers changed by lot (docs/theory_workers.md, section 7), so that the bound with the rounded one is at least as high.
Coins only move away from the line s + t = 1, so that nobody is rounded across it.

Guarantee: an upper bound for labels to come. Beliefs from labels that have been given must keep the channels as they
are. Cost: the bound rises by about what a worker better by h is worth.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.solve.crowd.relaxation import Types

#: The first step tried; it grows by half until the types are few enough.
FIRST_STEP = 0.002


def fewer_types(types: Types, most: int) -> tuple[Types, Ints]:
    """At most about ``most`` types of two coins, and the type that each given one has become."""
    names = np.arange(len(types.supply))
    step = FIRST_STEP
    rounded = types
    while len(rounded.supply) > most and step < 0.5:
        rounded, names = round_types(types, step)
        step *= 1.5
    return rounded, names


def round_types(types: Types, step: float) -> tuple[Types, Ints]:
    """Types whose coins are multiples of ``step``; equal ones of one cost are one, with the supply of all."""
    s, t = types.channel[:, 1, 1], types.channel[:, 0, 0]
    up = s + t >= 1.0
    coins = [np.where(up, np.ceil(x / step - 1e-9), np.floor(x / step + 1e-9)) * step for x in (s, t)]
    s, t = (np.where(up, np.clip(r, x, 1.0), np.clip(r, 0.0, x)) for r, x in zip(coins, (s, t), strict=True))
    rows, first, names = np.unique(np.column_stack([s, t, types.cost]), axis=0, return_index=True, return_inverse=True)
    names = names.ravel()
    supply = np.zeros(len(rows))
    np.add.at(supply, names, types.supply)
    channel = np.empty((len(rows), 2, 2))
    channel[:, 1, 1], channel[:, 1, 0] = s[first], 1.0 - s[first]
    channel[:, 0, 0], channel[:, 0, 1] = t[first], 1.0 - t[first]
    return Types(channel, supply, types.cost[first]), names
