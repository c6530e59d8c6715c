"""Prices from where the tasks stand now, in milliseconds: arrivals in batches, and the last prices to start from.

=========== ============= ======================================================================================
symbol      code          meaning
=========== ============= ======================================================================================
n           left          arrivals that may still be given a task
m_b         size          arrivals of batch b, the next batch first
lam_b       prices        price of a label in batch b
y_b         given         labels that the feasible plan takes from batch b
A(i, w)     advantage     V(i, w+1) - V(i, w) after the next batch: what one more label is worth to a task now
=========== ============= ======================================================================================

A campaign makes one ``PriceSolver`` and calls ``solve`` as often as it likes, with the number of tasks in each state,
the labels left and the last result:

    solver = PriceSolver(problem)
    found = solver.solve(fresh_groups(problem.classes), problem.budget)         # a tenth of a second
    ...                                                                         # a hundred labels later
    found = solver.solve(groups, left, found)                                   # a few milliseconds
    found.price, found.gap, found.advantage, found.planned

Tasks are counted by state and arrivals come in some dozens of batches, so that a sweep takes a tenth of a millisecond
whatever the number of tasks and labels. More labels, more tasks or another deadline are no more than other numbers in
the next call. Tasks with more labels, or more of them in flight, than a sweep looks at are worth what they are without
delay at most, and without another label at least (``OutsideTasks``).

Guarantee: for the problem whose workers come in these batches no policy earns more than ``value``, and the relaxed
problem is worth at least ``lower``, so that ``gap`` is all that other prices could take off. Where every arrival is a
batch of its own (``BatchPrices.exact``) and there is no deadline that problem is the one asked for. Otherwise the
batches move the value by their error; ``exact_bound`` is the proved bound at these prices, arrival by arrival, in the
time of one sweep over all of them.
Cost: two sweeps over batches and states for each step, some ten steps from prices of a moment ago.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.kernels.inputs import Lattices, make_grid
from nextlabel.kernels.sweep import fill_edges, new_block, no_deadline, sweep_rows
from nextlabel.problem.problem import Problem, in_units
from nextlabel.problem.tasks import Groups, check_groups, whole
from nextlabel.problem.workers import refuse_workers
from nextlabel.solve.per_arrival import BATCHES, PricedTasks, PriceSearch, Sweeps, make_batches
from nextlabel.solve.relaxed import ENDLESS, after_labels, no_delay_values, plain_lattices, stack_classes
from nextlabel.solve.truncation import differences, make_cut, state_columns


class OutsideTasks:
    """What they are worth; lattices that were needed once are kept."""

    def __init__(self, problem: Problem, depth: int) -> None:
        self.problem, self.depth = problem, depth
        self._lattices: dict[int, Lattices] = {}

    def worth(self, groups: Groups, lowest: float) -> tuple[float, float]:
        """At most, going on without delay at the lowest price, and at least, without another label."""
        above = below = 0.0
        for c in np.unique(groups.entry):
            some = Groups(*(column[groups.entry == c] for column in groups))
            own = self._lattice(int(c), int((some.levels(self.problem.answers) + some.w).max()))
            most = int(some.w.max())
            high = after_labels(own, no_delay_values(own, lowest), most)
            low = after_labels(own, own.reward[0], 0 if self.problem.finite else most)
            above += float(some.members @ high[some.w, some.node])
            below += float(some.members @ low[np.minimum(some.w, len(low) - 1), some.node])
        return above, below

    def _lattice(self, c: int, depth: int) -> Lattices:
        """The lattice of a class, at least so deep."""
        kept = self._lattices.get(c)
        if kept is None or len(kept.first) - 2 < depth:
            kept = self._lattices[c] = plain_lattices([self.problem.classes[c]], max(depth, self.depth))
        return kept


#: No further round is made when ``gap`` is at most this share of the value, or of all that labels could add.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class BatchPrices:
    """Prices of the arrivals to come, the next batch first, and the proof of how good they are.

    ``advantage`` (classes, states) and ``planned`` (classes, batches, states) are over the states of the solver's
    sweep: ``PriceSolver.columns`` tells which state of a task is which of them. ``planned`` are the labels that the
    feasible plan of value ``lower`` gives to tasks in each state, batch by batch.
    """

    size: Ints
    prices: Floats
    value: float
    lower: float
    given: Floats
    advantage: Floats
    planned: Floats
    #: Tasks past the sweep, with more labels or more of them in flight: nothing is planned for them.
    outside: int
    evaluations: int
    seconds: float

    @property
    def price(self) -> float:
        """Price of the next label."""
        return float(self.prices[0])

    @property
    def left(self) -> int:
        """Arrivals that were planned for."""
        return int(self.size.sum())

    @property
    def gap(self) -> float:
        """What other prices could take off ``value`` at most."""
        return max(self.value - self.lower, 0.0)

    @property
    def exact(self) -> bool:
        """Whether every arrival is a batch of its own."""
        return len(self.size) == self.left

    def at(self, left: Any) -> Floats:
        """Price of the arrival that finds so many left, itself included; on lines between the middles of batches."""
        middle = self.left - np.cumsum(self.size) + 0.5 * (self.size + 1)
        return np.interp(np.asarray(left, dtype=np.float64), middle[::-1], self.prices[::-1])


class PriceSolver:
    """Solves for prices again and again while a campaign runs; what does not change is made once.

    ``problem`` gives classes, rates, deadline and the cost of a label. Its budget and its numbers of tasks set the
    truncation; the numbers that a solve is about come with each call. ``closed``: a task is given no more labels than
    the truncation has, so that ``value`` is no bound. Near a deadline labels cost next to nothing, and an edge that
    does not know of it makes them dear.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        cap: int | None = None,
        flight: int | None = None,
        batches: int = BATCHES,
        closed: bool = False,
    ) -> None:
        refuse_workers(problem, "a price from the present state")
        if problem.budget < 1:
            raise ProblemError("a budget of 0 has no labels to price.", "Give --budget of at least 1.")
        self.problem, self.unit = in_units(problem)
        self.cut = make_cut(self.problem, cap, flight)
        self.batches = whole("number of batches", batches, 1, "Give at least one, e.g. 96.")
        self.stack = stack_classes(self.problem.classes, self.cut.depth, ENDLESS)
        self.sweeps = Sweeps(
            self.stack,
            make_grid(self.stack.first, self.cut.cap, self.cut.flight),
            self.problem.label_cost,
            float(self.stack.spread.max()),
            closed,
        )
        self.outside = OutsideTasks(self.problem, self.cut.depth)

    def solve(
        self,
        groups: Sequence[Any],
        left: int,
        start: float | BatchPrices | None = None,
        *,
        time_left: float | None = None,
        tolerance: float = TOLERANCE,
    ) -> BatchPrices:
        """Prices for ``left`` arrivals with tasks in ``groups`` (class, node, labels in flight, number of tasks).

        ``start``: the last result, or one price for all. Without it that price is looked for first; from one price the
        search takes thirty times as long as from a result. ``time_left`` until the deadline: if it is not given, the
        whole horizon of the problem.
        """
        begin = perf_counter()
        n = whole("arrivals left", left, 1, "Give the number of labels that may still be given out.")
        tasks, outside = self.place(check_groups(groups, self.problem.classes))
        time = self.problem.horizon if time_left is None else time_left
        batches = make_batches(self.problem, n, time, self.batches)
        priced = PricedTasks(self.sweeps, batches, tasks)
        search = PriceSearch(priced, self.sweeps.spread)
        if isinstance(start, BatchPrices):
            search.follow(start.at(batches.left - 0.5 * (batches.size - 1.0)) / self.unit, tolerance)
        else:
            search.begin(search.common_price() if start is None else start / self.unit, tolerance)
        planned = priced.measure(*search.plan)
        given = priced.given.copy()
        priced.backward(search.prices)
        after = priced.V[:, len(search.prices) - 1, 0]
        above, below = self.outside.worth(outside, float(search.prices.min()) + self.problem.label_cost)
        return BatchPrices(
            size=batches.size.astype(np.int64),
            prices=self.unit * search.prices,
            value=self.unit * (search.value + above),
            lower=self.unit * (search.lower + below),
            given=given,
            advantage=self.unit * differences(after, self.stack.first, self.sweeps.grid),
            planned=planned,
            outside=outside.tasks,
            evaluations=priced.evaluations,
            seconds=perf_counter() - begin,
        )

    def columns(self, flight: int, own: Ints) -> Ints:
        """(flight + 1, nodes) state of the sweep of [w, node] over a class's own lattice; -1 past the sweep."""
        return state_columns(self.sweeps.grid, self.stack.node_of, flight, own, edge=True)

    def exact_bound(self, groups: Sequence[Any], found: BatchPrices) -> float:
        """No policy earns more from these states on: B at these prices, arrival by arrival, without a deadline."""
        if self.problem.finite:
            raise ProblemError("a sweep arrival by arrival knows no deadline.", "Use upper_bound.")
        tasks, outside = self.place(check_groups(groups, self.problem.classes))
        lam = found.at(np.arange(found.left, 0, -1.0)) / self.unit
        paid = lam + self.problem.label_cost
        lowest = float(paid.min())
        grid, last = self.sweeps.grid, np.array([found.left])
        steps = no_deadline(self.problem.peak_rate, self.problem.completion_rate, grid.W)
        total, _ = self.outside.worth(outside, lowest)
        for b, here in enumerate(tasks):
            one, block = self.stack.one(b), new_block(grid.states, 1, 1)
            V, N = np.empty((2, 1, grid.states, 1))
            fill_edges(one, grid, np.array([lowest]), block)
            sweep_rows(one, grid, steps, np.ascontiguousarray(paid[::-1, None]), last, False, block, V, N)
            total += float(here @ V[0, :, 0])
        return self.unit * (total + float(lam.sum()))

    def place(self, groups: Groups) -> tuple[Floats, Groups]:
        """(classes, states) tasks in each state of the sweep, and the groups past it."""
        grid = self.sweeps.grid
        inside = (groups.w <= grid.W) & (groups.levels(self.problem.answers) + groups.w <= grid.C)
        tasks = np.zeros((len(self.problem.classes), grid.states))
        state = grid.off[groups.w[inside]] + self.stack.node_of[groups.node[inside]]
        np.add.at(tasks, (groups.entry[inside], state), groups.members[inside])
        return tasks, Groups(*(column[~inside] for column in groups))
