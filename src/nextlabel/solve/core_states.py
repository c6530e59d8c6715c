"""From the states of a sweep to the states of a task: tables over (w in flight, node of the class's own lattice).

A sweep numbers its states off[w] + i on a lattice that may be lumped and ends at the cap; simulation, policies and
campaigns number them [w, node] on the class's own lattice, whose ``first`` is called ``own`` here. ``core`` is the map;
-1 where the sweep offers no label.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import level_of
from nextlabel.kernels.inputs import make_grid


def core_columns(first: Ints, node_of: Ints, cap: int, in_flight: int, flight: int, own: Ints) -> Ints:
    """(flight + 1, nodes) number of state [w, node] in a sweep with that cap and ``in_flight`` at most."""
    level = level_of(own)
    off = make_grid(first, cap, in_flight).off
    out = np.full((flight + 1, len(level)), -1, dtype=np.int64)
    for w in range(min(in_flight, flight + 1)):
        inside = np.flatnonzero(level < cap - w)
        out[w, inside] = off[w] + node_of[inside]
    return out


def all_columns(first: Ints, node_of: Ints, cap: int, in_flight: int, flight: int, own: Ints) -> Ints:
    """As ``core_columns``, the states on the edge included."""
    level = level_of(own)
    off = make_grid(first, cap, in_flight).off
    out = np.full((flight + 1, len(level)), -1, dtype=np.int64)
    for w in range(min(in_flight, flight) + 1):
        inside = np.flatnonzero(level <= cap - w)
        out[w, inside] = off[w] + node_of[inside]
    return out


def differences(V: Floats, first: Ints, cap: int, in_flight: int) -> Floats:
    """V(i, w+1) - V(i, w) along the last axis of a sweep's values; 0 on the edge."""
    off = make_grid(first, cap, in_flight).off
    A = np.zeros_like(V)
    for w in range(in_flight):
        m, o, up = int(first[cap - w]), int(off[w]), int(off[w + 1])
        A[..., o : o + m] = V[..., up : up + m] - V[..., o : o + m]
    return A


def over_own_lattice(table: Floats, first: Ints, node_of: Ints, flight: int, own: Ints) -> Floats:
    """(flight + 1, nodes) from a table (w, lumped nodes); its last row serves larger w, 0 below its last level."""
    level = level_of(own)
    known = np.flatnonzero(level <= len(first) - 2)
    rows = np.minimum(np.arange(flight + 1), len(table) - 1)
    out = np.zeros((flight + 1, len(level)))
    out[:, known] = table[np.ix_(rows, node_of[known])]
    return out
