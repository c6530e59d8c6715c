"""One arrival outside a simulation: ``kernels.choice`` for the groups of a live campaign."""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import Lookup, Tables, pick, score_groups
from nextlabel.kernels.jit import jit


@jit
def choose(
    tables: Tables, lookup: Lookup, level: Ints, child: Ints, active: Ints, count: Ints, n: int, ell: int,
    k_draw: np.uint64, u: float, least: float, given: Floats, scores: Floats,
) -> int:  # fmt: skip
    """The state that the arrival gets; -1 if no task can be given a label, -2 if none is worth ``least``."""
    best = score_groups(tables, lookup, level, child, active, count, n, ell, 0, 0.0, k_draw, scores)
    if best == -np.inf:
        return -1
    if best < least:
        return -2
    return pick(active, scores, count, best, tables, lookup, given, ell, u)
