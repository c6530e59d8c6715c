"""The joint problem of all tasks, layer by layer: multisets of single-task states, listed, hashed and stepped back.

A layer (g, c) holds every multiset with g labels given out and c of them come in: g - c are in flight, so that the rate
of the next event is one number for the whole layer.

====== ========= ================= =======================================================================
symbol code      shape             meaning
====== ========= ================= =======================================================================
x      id        (I,)              state (class, node, w) of one task that was given at least one label;
                                   ``fresh[k]`` is the id of class k's untouched state
s, m   size,     (I,)              labels given out and labels come in of a task in state x; w = s - m
       level
--     rows      (S, P)            multisets: ids of the touched tasks in non-decreasing order, padded with -1
--     keys      (S,)              sum of ``salt[id]`` over a row: key(s - e_x + e_y) = key(s) - salt(x) + salt(y)
n      first     --                arrivals left; column j of a value array is n = first + j
H      end       (I, M)            expected reward of a task when no arrival is left
R      now       (I,)              reward of a task decided now
V      value     (S, n, M)         joint value; M = 1 (T infinite) or time points tau_0 .. tau_m
====== ========= ================= =======================================================================

    G = r max{ V(s, n-1), max_x V(s + e_x, n-1) - price } + mu sum_x w_x sum_j p_j V(s - e_x + e_child(x,j), n)
    T infinite: V = G / q, q = r + mu (g - c).     T finite: dV/dtau = G - q V, by the trapezoidal rule.

The arrival rate is constant over a step, but may jump from one to the next: both ends of a step take the step's own.
Guarantee: every multiset is listed once, so two equal keys are a collision, which ``build_table`` reports; without one
every lookup is exact. T infinite exact; T finite second order in the step.
Cost: O(P) per multiset to list (the search has no dead ends), O(1) expected to look one up, O(S M) times the distinct
states in a row to step back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import TIED, Steps
from nextlabel.kernels.jit import jit


class TaskStates(NamedTuple):
    """Single-task states of all classes by class, then size and level falling; the fresh states come last."""

    tasks: Ints
    fresh: Ints
    enter: Ints  # (classes, U + 1) first id of size at most s; of size 0 the end of the class
    cls: Ints
    size: Ints
    level: Ints
    skip: Ints
    up: Ints
    child: Ints
    prob: Floats
    salt: Ints
    node: Ints  # of the class's lattice


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
    last, n_ids = len(tasks) - 1, int(states.enter[-1, 0])
    width = rows.shape[1]
    part = np.empty(width, dtype=np.int64)
    taken = np.zeros(len(tasks), dtype=np.int64)
    found = depth = i = key = 0
    while True:
        while g > 0 and i < n_ids:
            k = cls[i]
            s, m = size[i], level[i]
            if taken[k] == tasks[k]:
                i = states.enter[k, 0]
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


#: Rules by which an arrival is placed: the best choice, or the largest index with one of three ways with ties.
BEST, RANDOM, GROUPS, FIRST = 0, 1, 2, 3


class Rule(NamedTuple):
    """How an arrival is placed. ``score`` (n, I, M), the index, and ``order`` (I,) are read by index rules only."""

    kind: int
    decline: bool
    price: float
    score: Floats
    order: Ints


@jit
def arrival_value(rule: Rule, col: int, ids: Ints, mult: Ints, n_ids: int, offer: Floats, out: Floats) -> None:
    """Value of an arrival at each time from ``offer[j]``, the value of giving it to a task in state ``ids[j]``.

    ``col`` is the row of ``rule.score`` for the arrivals left.

    An index rule turns the arrival away, written as -inf, if it may decline and the largest index is below the price.
    """
    for t in range(len(out)):
        if rule.kind == BEST:
            best = offer[0, t]
            for j in range(1, n_ids):
                best = max(best, offer[j, t])
            out[t] = best - rule.price
            continue
        top = rule.score[col, ids[0], t]
        for j in range(1, n_ids):
            top = max(top, rule.score[col, ids[j], t])
        if rule.decline and top < rule.price - TIED:
            out[t] = -np.inf
            continue
        total = weight = 0.0
        lowest = -1
        for j in range(n_ids):
            if rule.score[col, ids[j], t] < top - TIED:
                continue
            if rule.kind == FIRST:
                if lowest < 0 or rule.order[ids[j]] < lowest:
                    lowest, total, weight = rule.order[ids[j]], offer[j, t], 1.0
            else:
                share = float(mult[j]) if rule.kind == RANDOM else 1.0
                total += share * offer[j, t]
                weight += share
        out[t] = total / weight - rule.price


@jit
def solve_layer(
    states: TaskStates, rule: Rule, steps: Steps, rows: Ints, keys: Ints, in_flight: int, end: Floats, now: Floats,
    above: Layer, right: Layer, first: int, out: Floats,
) -> None:  # fmt: skip
    """Values of a layer from ``above`` (one more label given out) and ``right`` (one more come in)."""
    n_rows, n_cols, times = out.shape
    width, classes, answers = rows.shape[1], len(states.tasks), states.prob.shape[1]
    room = width + classes
    ids, mult, above_row = np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(room, np.int64)
    right_row = np.zeros((width, answers), np.int64)
    offer = np.empty((room, times))
    base, arrival, come_in = np.empty(times), np.empty(times), np.empty(times)
    free = np.empty(classes, np.int64)
    busy = steps.mu * in_flight
    n_max = first + n_cols - 1
    for row in range(n_rows):
        # The row as distinct states with multiplicities: touched ones first, then the fresh ones.
        touched = 0
        for k in range(classes):
            free[k] = states.tasks[k]
        for j in range(width):
            x = rows[row, j]
            if x < 0:
                break
            free[states.cls[x]] -= 1
            if touched > 0 and ids[touched - 1] == x:
                mult[touched - 1] += 1
            else:
                ids[touched] = x
                mult[touched] = 1
                touched += 1
        n_ids = touched
        for k in range(classes):
            if free[k] > 0:
                ids[n_ids] = states.fresh[k]
                mult[n_ids] = free[k]
                n_ids += 1
        start = 0.0
        for t in range(times):
            base[t] = 0.0
        for j in range(n_ids):
            x = ids[j]
            start += mult[j] * now[x]
            for t in range(times):
                base[t] += mult[j] * end[x, t]
            if n_max > 1:
                above_row[j] = find(above, keys[row] - states.salt[x] + states.salt[states.up[x]])
            if j < touched and states.size[x] > states.level[x]:
                for a in range(answers):
                    right_row[j, a] = find(right, keys[row] - states.salt[x] + states.salt[states.child[x, a]])
        for col in range(n_cols):
            n = first + col
            for j in range(n_ids):
                x = ids[j]
                if n == 1:
                    for t in range(times):
                        offer[j, t] = base[t] + (end[states.up[x], t] - end[x, t])
                else:
                    for t in range(times):
                        offer[j, t] = above.value[above_row[j], n - 1 - above.first, t]
            arrival_value(rule, col, ids, mult, n_ids, offer, arrival)
            if rule.decline:
                for t in range(times):
                    if rule.kind == BEST or arrival[t] == -np.inf:
                        arrival[t] = max(arrival[t], base[t] if n == 1 else out[row, col - 1, t])
            for t in range(times):
                come_in[t] = 0.0
            for j in range(touched):
                x = ids[j]
                w = states.size[x] - states.level[x]
                if w > 0:
                    for a in range(answers):
                        rate = steps.mu * mult[j] * w * states.prob[x, a]
                        for t in range(times):
                            come_in[t] += rate * right.value[right_row[j, a], col, t]
            if not steps.finite:
                out[row, col, 0] = (steps.r[0] * arrival[0] + come_in[0]) / (steps.r[0] + busy)
            else:
                out[row, col, 0] = start
                for t in range(1, times):
                    pace, q = 2.0 / steps.h[t], steps.r[t] + busy
                    gain = steps.r[t] * (arrival[t - 1] + arrival[t]) + come_in[t - 1] + come_in[t]
                    out[row, col, t] = ((pace - q) * out[row, col, t - 1] + gain) / (pace + q)
