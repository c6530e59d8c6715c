"""The backward sweep over the layers (g, c) of the joint problem, and its extrapolation to a vanishing time step.

====== ======= =================================================
symbol code    meaning
====== ======= =================================================
tau_k  tau     time left, k T / m; the one value inf if T is
h      --      T / m
B(h)   --      value by the trapezoidal rule with step h
====== ======= =================================================

    value = (4 B(h/2) - B(h)) / 3,  error = |value - the same from the step twice as long|

If the arrival rate varies, each piece of constant rate has equal steps of its own, all halved together.

Guarantee: fourth order where the best choice does not change with tau, second order in general; m doubles until the
error is below ``TOLERANCE`` or the work or memory allowed is used up. Cost: states x m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import SolverError, TooLargeError
from nextlabel.kernels.joint import BEST, Clock, Rule, solve_layer
from nextlabel.kernels.multisets import Layer, build_table, list_layer
from nextlabel.problem.problem import Problem
from nextlabel.solve.joint.rule import index_by_id, tie_order
from nextlabel.solve.joint.states import TaskGroup, number_states, value_at_end, value_now
from nextlabel.solve.progress import Progress
from nextlabel.solve.timeline import Timeline, halve_steps, make_timeline

TOLERANCE = 2e-10
LEAST_STEPS = 64
#: Limits: numbers held at once (8 bytes each), states x time points of a sweep, time points of a sweep.
MOST_NUMBERS = 250_000_000
MOST_WORK = 400_000_000
MOST_STEPS = 2**17
#: An index is asked for at every time point and arrival, in Python, and may jump in tau: no use in going further.
MOST_INDEX_STEPS = 2**11
SALTS = 5


class CollisionError(Exception):
    """Two multisets of one layer have one key."""


class JointSweep:
    """One problem, ready to be swept with any time points."""

    def __init__(
        self,
        problem: Problem,
        groups: Sequence[TaskGroup],
        layers: Floats,
        kind: int,
        index: Callable[[int, int, float], Floats] | None,
        price: float,
        *,
        wait: bool,
        progress: Progress | None,
    ) -> None:
        self.problem = problem
        self._groups = groups
        self._layers = layers
        self._kind = kind
        self._index = index
        self._price = price
        self._wait = wait
        self._progress = progress
        U = problem.budget
        self._columns = np.arange(U, -1, -1) if price > 0 else np.ones(U + 1)
        rows = layers[:U].sum(axis=1) * self._columns[:U]
        self.work = max(1.0, float(rows.sum()))
        self.peak = float((rows + np.append(rows[1:], 0.0)).max(initial=1.0))
        self.most_steps = MOST_STEPS if index is None else MOST_INDEX_STEPS

    def run(self, line: Timeline) -> float:
        """V at the start."""
        for seed in range(SALTS):
            try:
                return self._run(line, seed)
            except CollisionError:
                continue
        raise SolverError(f"{SALTS} random numberings of the states all collided.", "Report this as a bug.")

    def _run(self, line: Timeline, seed: int) -> float:
        problem, U, taus = self.problem, self.problem.budget, line.tau
        numbering = number_states(self._groups, U, seed)
        tables = numbering.tables
        now = value_now(self._groups, numbering)
        if self._wait:
            end = value_at_end(self._groups, numbering, problem.completion_rate, taus)
        else:
            end = np.repeat(now[:, None], len(taus), axis=1)
        if U == 0:
            return float(tables.tasks @ end[tables.fresh, -1])
        clock = Clock(line.r, problem.completion_rate, line.h if problem.finite else np.zeros(0))
        decline = self._price > 0
        width = min(U, problem.tasks)
        order = tie_order(numbering)
        score = np.zeros((1, 1, 1))
        empty = Layer(np.zeros(1, np.int64), np.full(1, -1, np.int64), 0, np.zeros((1, 1, len(taus))))
        above: list[Layer] = []
        done, total = 0, int(self._layers[:U].sum())
        for g in range(U - 1, -1, -1):
            first = 1 if decline else U - g
            columns = U - first - g + 1
            if self._kind != BEST and self._index is not None:
                left = range(first, first + columns)
                score = np.stack([index_by_id(self._groups, numbering, self._index, n, g, taus) for n in left])
            rule = Rule(self._kind, decline, self._price, score, order)
            row: list[Layer] = [empty] * (g + 1)
            right = empty
            for c in range(g, -1, -1):
                size = int(self._layers[g, c])
                rows, keys = np.empty((size, width), np.int64), np.empty(size, np.int64)
                if list_layer(tables, g, c, rows, keys) != size:
                    raise SolverError(f"layer ({g}, {c}) does not have {size} states.", "Report this as a bug.")
                value = np.empty((size, columns, len(taus)))
                solve_layer(
                    tables, rule, clock, rows, keys, g - c, end, now, above[c] if above else empty, right, first, value
                )
                if above:
                    above[c] = empty
                slots = 1 << (2 * size - 1).bit_length()
                slot_key, slot_row = np.zeros(slots, np.int64), np.full(slots, -1, np.int64)
                if not build_table(keys, slot_key, slot_row):
                    raise CollisionError
                right = row[c] = Layer(slot_key, slot_row, first, value)
                done += size
                if self._progress is not None:
                    self._progress(done / total)
            above = row
        return float(above[0].value[0, -1, -1])


def extrapolate(sweep: JointSweep) -> tuple[float, float]:
    """Value with finite T, and its estimated error."""
    problem = sweep.problem
    T, U = problem.horizon, problem.budget
    fastest = problem.peak_rate + problem.completion_rate * U
    line = make_timeline(problem, max(LEAST_STEPS, math.ceil(T * fastest / 2)))
    m = line.layers - 1
    if 4 * m * sweep.peak > MOST_NUMBERS:
        raise TooLargeError(
            f"the exact solution with horizon {T:g} needs {4 * m * sweep.peak:,.0f} numbers in memory; "
            f"at most {MOST_NUMBERS:,} are allowed.",
            "Take fewer tasks, a smaller budget or a shorter horizon, or use `nextlabel bound` for an upper bound.",
            states=int(sweep.work),
        )
    coarse = [sweep.run(line)]
    for _ in range(2):
        line = halve_steps(problem, line)
        coarse.append(sweep.run(line))
    m *= 4
    before, value = ((4 * b - a) / 3 for a, b in pairwise(coarse))
    last = coarse[-1]
    most = min(MOST_NUMBERS / sweep.peak, MOST_WORK / sweep.work, sweep.most_steps)
    while abs(value - before) > TOLERANCE and 2 * m <= most:
        m *= 2
        line = halve_steps(problem, line)
        finer = sweep.run(line)
        before, value, last = value, (4 * finer - last) / 3, finer
    return value, abs(value - before)
