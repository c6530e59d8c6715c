"""Is the user's own problem indexable? As the price grows, the states that take a label must only become fewer.

Checked by sweeps on a grid of prices, every state and number of arrivals left: a state that clearly waits at a lower
price and clearly takes a label at a higher one is a violation. Only states whose whole look-ahead fits below the cap
are judged, so that truncation cannot cause one. No violation on the grid is evidence, not a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

import numpy as np

from nextlabel.beliefs.simplex import counts_of_node, deepest
from nextlabel.kernels.index import count_reopenings
from nextlabel.problem.problem import Problem, in_units
from nextlabel.problem.workers import refuse_workers
from nextlabel.solve.index.roots import IndexWork
from nextlabel.solve.index.table import index_timeline
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import make_cut

PRICES = 400
#: Labels a task, in flight or not, and arrivals left up to which states are checked.
DEPTH = 24
#: Beliefs of one task up to which that depth is kept.
MOST_NODES = 1000


@dataclass(frozen=True, slots=True)
class Violation:
    """A state that waits at a lower price than one at which it takes a label."""

    task_class: int
    node: int
    in_flight: int
    left: int
    time_left: float
    price: float
    answers: int = 2

    def __str__(self) -> str:
        counts = counts_of_node(self.answers, self.node)
        seen = f"{counts[0]} ones and {counts[1]} zeros" if self.answers == 2 else f"labels {counts}"
        when = "" if isinf(self.time_left) else f", time left {self.time_left:g}"
        return (
            f"class {self.task_class}, {seen} seen, {self.in_flight} in flight, "
            f"{self.left} arrivals left{when}, price {self.price:.3g}"
        )


@dataclass(frozen=True, slots=True)
class IndexabilityReport:
    """Outcome of the check over ``prices_checked`` prices and ``states_checked`` states."""

    indexable: bool
    prices_checked: int
    states_checked: int
    violations: int
    first_violation: Violation | None


def check_indexability(
    problem: Problem,
    *,
    cap: int | None = None,
    flight: int | None = None,
    prices: int = PRICES,
    progress: Progress | None = None,
) -> IndexabilityReport:
    """Look for states whose decision reopens as the price grows."""
    refuse_workers(problem, "a check of indexability")
    problem, unit = in_units(problem)
    top = min(max(problem.budget, 1), DEPTH, deepest(problem.answers, MOST_NODES))
    cut = make_cut(problem, top if cap is None else cap, top if flight is None else flight)
    rows = cut.cap
    line = index_timeline(problem, cut, rows, 1e-5)
    violations = states = 0
    first: Violation | None = None
    for c, entry in enumerate(problem.classes):
        work = IndexWork(problem, entry, cut, line)
        grid = work.top * np.linspace(0.0, 1.0, prices + 1)[1:] ** 2
        shape = (rows, work.states, line.layers)
        where = np.zeros(4, dtype=np.int64)
        found = work.call(
            count_reopenings, grid, np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_), where
        )
        if found and first is None:
            n, s, k, p = (int(x) for x in where)
            w = int(np.searchsorted(work.off, s, side="right")) - 1
            node = int(np.flatnonzero(work.stack.node_of == s - work.off[w])[0])
            first = Violation(c, node, w, n + 1, float(line.tau[k]), unit * float(grid[p]), entry.answers)
        violations += found
        first_node = work.stack.first
        judged = sum(
            int(first_node[max(cut.cap - w - n, 0)]) for n in range(rows) for w in range(max(cut.flight - n, 0))
        )
        states += judged * line.layers
        if progress is not None:
            progress((c + 1) / len(problem.classes))
    return IndexabilityReport(violations == 0, prices, states, violations, first)
