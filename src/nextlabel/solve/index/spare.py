"""Index tables with a deadline that comes after the last arrival: layers of time to spare instead of time left.

========= ======== ================================================================================
symbol    code     meaning
========= ======== ================================================================================
y         --       tau - (n - 1) / r: time to spare, once the arrivals that are left have come
y_lo      least    a campaign that starts with all its time comes below it with chance LATE
x         late     e^{-mu y}: the chance that a label given to the last arrival is not back in time
========= ======== ================================================================================

Time left and arrivals left fall together, and time to spare stays about where it was. So a campaign meets only a strip
of the pairs (n, tau), along which indices hardly change: what is lost at the deadline is in proportion to x. The table
has a few layers of x, from that of y_lo down to 0, no deadline at all, and is linear in x between them.
Guarantee: the table's ``error`` is the largest change of an advantage, over a few prices, when there are twice as many
layers, and of the line between them, at pairs that a campaign meets; roots are searched for to TOLERANCE. Pairs below
y_lo are not in the table; all pairs with more time to spare are.
Cost: that of a table without a deadline, one and a half times for each layer (``kernels.spare_block``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf

import numpy as np
from scipy.special import gammaincinv

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.kernels.index import Brackets, narrow_spare
from nextlabel.kernels.price_block import BlockRoom, fill_edges
from nextlabel.kernels.spare_block import SpareSteps, last_row, make_spare_room, next_spare_row
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.solve.core_states import differences
from nextlabel.solve.index.roots import IndexWork
from nextlabel.solve.timeline import make_timeline
from nextlabel.solve.truncation import Cut

#: Chance that a campaign has less time to spare, at its last arrival, than the table knows.
LATE = 1e-9
#: Layers at first and at most; doubled, less one, until the error fits.
FIRST_LAYERS, MOST_LAYERS = 3, 17
#: Labels in flight from which x is nearly a martingale, and the largest x of a table.
LEAST_RHO, MOST_LATE = 5.0, 0.02
#: Prices, as shares of the largest index, at which the error is judged; and shares of what a deadline takes from it.
JUDGED, JUDGED_NEAR = (0.6, 0.4, 0.2, 0.1, 0.05), (0.2, 0.5, 0.8)
#: Roots are not searched for more accurately than that.
TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Spare:
    """How the layers of a table stand for arrivals and time left: at -x = -exp(-rate (tau - (n - 1) / arrivals))."""

    arrivals: float
    rate: float

    def at(self, n: int, tau: float) -> float:
        """-x with n arrivals and time tau left."""
        return -exp(min(-self.rate * (tau - (n - 1) / self.arrivals), 700.0))


def least_time_to_spare(problem: Problem) -> float:
    """y at the last arrival, which is below it with chance LATE."""
    return problem.horizon - float(gammaincinv(problem.budget, 1.0 - LATE)) / problem.peak_rate


def most_late(problem: Problem, rows: int) -> Floats:
    """(rows,) x with 1, 2, .. arrivals left, which a campaign exceeds with chance LATE."""
    n = np.arange(1, rows + 1)
    spent = gammaincinv(problem.budget - n + 1, 1.0 - LATE) / problem.peak_rate
    spare = problem.horizon - spent - (n - 1) / problem.peak_rate
    return np.asarray(np.exp(-problem.completion_rate * spare), dtype=np.float64)


def spare_layers(problem: Problem) -> Floats | None:
    """FIRST_LAYERS values of x, falling to 0; None if the deadline may come before the last labels are back."""
    if not problem.finite or len(problem.rate_pieces[1]) > 1 or problem.rho < LEAST_RHO:
        return None
    most = exp(-problem.completion_rate * max(least_time_to_spare(problem), 0.0))
    if most > MOST_LATE:
        return None
    return most * np.linspace(1.0, 0.0, FIRST_LAYERS) ** 2


def finer(x: Floats) -> Floats:
    """The layers and as many between them."""
    return np.asarray(x[0] * np.linspace(1.0, 0.0, 2 * len(x) - 1) ** 2)


def spare_steps(problem: Problem, flight: int, x: Floats) -> SpareSteps:
    """Weights of the stencils: exact for 1, x and x^2."""
    r, mu, power = problem.peak_rate, problem.completion_rate, np.arange(3)
    start = np.clip(np.arange(len(x)) - 1, 0, len(x) - 3)
    through = np.linalg.inv([np.vander(x[j : j + 3], 3, increasing=True).T for j in start])
    arrived, returned = np.zeros((2, flight + 1, len(x), 3))
    for w in range(flight + 1):
        q = r + mu * w
        mean = x[:, None] ** power * q / (q - power * mu)
        arrived[w] = r / q * np.einsum("kgj,kj->kg", through, mean * np.exp(-power * mu / r))
        returned[w] = mu * w / q * np.einsum("kgj,kj->kg", through, mean)
    return SpareSteps(x, start.astype(np.int64), arrived, returned)


class SpareWork(IndexWork):
    """Sweeps over layers of time to spare."""

    def __init__(self, problem: Problem, entry: TaskClass, cut: Cut, x: Floats) -> None:
        endless = replace(problem, horizon=inf)
        super().__init__(endless, entry, cut, make_timeline(endless))
        self.timed = problem
        self.layers, self.x = len(x), x
        self.steps = spare_steps(problem, cut.flight, x)

    def _sweep(self, prices: Floats, at: Ints, out: Brackets) -> None:
        room = make_spare_room(self.stack.nodes, self.states, self.layers, len(prices))
        narrow_spare(self.stack.arrays, self.grid, self.steps, prices, at, room, out)

    def look_above(self, at: Ints, root: Floats, tolerance: float) -> tuple[Floats, bool]:
        """Greater roots are not looked for."""
        return np.zeros(root.shape), False

    def time_error(self, rows: int) -> float:
        """Largest change of an advantage when there are twice as many layers, where a campaign comes."""
        prices, near = self._judged_prices()
        both = [self, SpareWork(self.timed, self.entry, self.cut, finer(self.x))]
        met = both[1].x <= most_late(self.timed, rows)[:, None] * (1.0 + 1e-9)
        rooms = [make_spare_room(w.stack.nodes, w.states, w.layers, len(prices)) for w in both]
        for work, room in zip(both, rooms, strict=True):
            fill_edges(work.stack.arrays, work.grid, prices, room)
            last_row(work.stack.arrays, work.grid, work.x, len(prices), room)
        worst = 0.0
        for n in range(rows):
            few, many = (work._advantages(room, n, len(prices)) for work, room in zip(both, rooms, strict=True))
            share = ((both[1].x[1::2] - self.x[1:]) / (self.x[:-1] - self.x[1:]))[:, None, None]
            many[::2] -= few
            many[1::2] -= share * few[:-1] + (1.0 - share) * few[1:]
            many[1::2, near] = 0.0
            worst = max(worst, float(np.abs(many[met[n]]).max()))
            for work, room in zip(both, rooms, strict=True):
                next_spare_row(work.stack.arrays, work.grid, work.steps, prices, n + 1, room)
        return worst

    def _judged_prices(self) -> tuple[Floats, Bools]:
        """Falling prices at which the error is judged, and which of them take the first label of a task in time only.

        There what a task is worth has a kink between two layers, which says nothing about the line between their roots.
        """
        stack = self.stack
        gain = float(stack.prob[0, 0] @ stack.reward[0, stack.child[0]] - stack.reward[0, 0])
        near = gain * (1.0 - self.x[0] * np.array(JUDGED_NEAR))
        prices = np.concatenate([self.top * np.array(JUDGED), near])
        falling = np.argsort(-prices)
        return prices[falling], falling >= len(JUDGED)

    def _advantages(self, room: BlockRoom, n: int, prices: int) -> Floats:
        """(layers, P, states) V(w+1) - V(w) of the row that was swept last."""
        V = room.V[n % 2].reshape(self.states, self.layers, prices)
        return differences(np.moveaxis(V, 0, 2), self.stack.first, self.cut.cap, self.cut.flight)


def make_layers(problem: Problem, cut: Cut, x: Floats, rows: int, tolerance: float) -> Floats:
    """Layers fine enough for the tolerance (judged by the first class), as far as there may be so many."""
    while 2 * len(x) - 1 <= MOST_LAYERS and SpareWork(problem, problem.classes[0], cut, x).time_error(rows) > tolerance:
        x = finer(x)
    return x
