"""The multisets of single-task states in one layer of the joint problem: list them, hash them, look them up.

A layer (g, c) holds every multiset of single-task states with g labels given out and c of them come in.

====== ========= ================= =======================================================================
symbol code      shape             meaning
====== ========= ================= =======================================================================
x      id        (I,)              state (class, node, w) of one task that was given at least one label;
                                   ``fresh[k]`` is the id of class k's untouched state
s, m   size,     (I,)              labels given out and labels come in of a task in state x; w = s - m
       level
--     rows      (S, P)            ids of the touched tasks in non-decreasing order, padded with -1
--     keys      (S,)              sum of ``salt[id]`` over a row: a move changes it in O(1)
====== ========= ================= =======================================================================

    key(s - e_x + e_y) = key(s) - salt(x) + salt(y)

Guarantee: every multiset is listed once, so two equal keys are a collision, which ``build_table`` reports; without one
every lookup is exact. Cost: O(P) per multiset to list (the search has no dead ends), O(1) expected to look one up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


class TaskStates(NamedTuple):
    """Single-task states of all classes by class, then size and level falling; the fresh states come last."""

    tasks: Ints
    fresh: Ints
    enter: Ints
    end_of_class: Ints
    cls: Ints
    size: Ints
    level: Ints
    skip: Ints
    up: Ints
    child: Ints
    prob: Floats
    salt: Ints


class Layer(NamedTuple):
    """A solved layer: open-addressing table (slot -> key, position) and values."""

    slot_key: Ints
    slot_row: Ints
    first: int
    value: Floats


@jit
def list_layer(states: TaskStates, g: int, c: int, rows: Ints, keys: Ints) -> int:
    """All multisets of layer (g, c) by depth-first search without dead ends; returns their number."""
    tasks, cls, size, level, skip = states.tasks, states.cls, states.size, states.level, states.skip
    last, n_ids = len(tasks) - 1, int(states.end_of_class[-1])
    width = rows.shape[1]
    part = np.empty(width, dtype=np.int64)
    taken = np.zeros(len(tasks), dtype=np.int64)
    found = depth = i = key = 0
    while True:
        while g > 0 and i < n_ids:
            k = cls[i]
            s, m = size[i], level[i]
            if taken[k] == tasks[k]:
                i = states.end_of_class[k]
            elif s > g:
                i = states.enter[k, g]
            elif m > c or s - m > g - c:
                i = skip[i]
            elif k < last:
                break  # one task of the last class can take all that remains
            else:
                # What remains must fit into the free tasks with states of the same (s, m) or after it.
                free, rest = tasks[k] - taken[k] - 1, g - s
                full = max(0, rest - free * (s - 1))
                if rest > free * s:
                    i = n_ids
                elif c - m > rest - full * (s - m):
                    i = skip[i]
                else:
                    break
        if g > 0 and i < n_ids:
            part[depth] = i
            taken[cls[i]] += 1
            g -= size[i]
            c -= level[i]
            key += states.salt[i]
            depth += 1
            continue
        if g == 0:
            for j in range(width):
                rows[found, j] = part[j] if j < depth else -1
            keys[found] = key
            found += 1
        if depth == 0:
            return found
        depth -= 1
        i = part[depth]
        taken[cls[i]] -= 1
        g += size[i]
        c += level[i]
        key -= states.salt[i]
        i += 1


@jit
def build_table(keys: Ints, slot_key: Ints, slot_row: Ints) -> bool:
    """Fill an open-addressing table (its length a power of two, ``slot_row`` all -1); False if two keys are equal."""
    mask = len(slot_key) - 1
    for row in range(len(keys)):
        slot = keys[row] & mask
        while slot_row[slot] >= 0:
            if slot_key[slot] == keys[row]:
                return False
            slot = (slot + 1) & mask
        slot_key[slot] = keys[row]
        slot_row[slot] = row
    return True


@jit
def find(layer: Layer, key: int) -> int:
    """Row of a key that is in the table."""
    mask = len(layer.slot_key) - 1
    slot = key & mask
    while layer.slot_key[slot] != key or layer.slot_row[slot] < 0:
        slot = (slot + 1) & mask
    return int(layer.slot_row[slot])
