"""One price per arrival: minimise B(lam) = sum_x V_x(lam) + sum_l lam_l P(l arrives), convex in U prices.

========= ========= ==================================================================================
symbol    code      meaning
========= ========= ==================================================================================
lam_l     prices    price of arrival l, here a hat-function interpolation of ``knots`` prices
eps       eps       smoothing of the max; the smoothed B is differentiable, at most eps per decision below B
y_l       given     expected tasks given to arrival l; dB/dlam_l = P(l arrives) - y_l
========= ========= ==================================================================================

Every kink of B is a tie between 'assign' and 'wait', and at the optimum nearly all useful states tie. Smoothing splits
ties smoothly: B_eps is minimised by projected L-BFGS (``descent``) for falling eps and rising number of knots, and its
gradient, the forward sweep, is at the same time a randomised policy that gives each arrival one task in the mean. That
policy, made exactly feasible (``forward`` modes 1 and 2), is the primal side.
Guarantee: the bound is evaluated without smoothing, so any prices give a valid one; ``lower`` is the value of a
feasible occupation measure (for a finite horizon: on the chain of ``backward``). Cost: two sweeps per evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.lattice import LatticeStack
from nextlabel.errors import TooLargeError
from nextlabel.kernels.backward import backward
from nextlabel.kernels.batches import Plan, batch_backward, batch_forward
from nextlabel.kernels.forward import Measure, forward
from nextlabel.kernels.inputs import make_grid
from nextlabel.problem.problem import Problem
from nextlabel.solve.batched.search import RAISES
from nextlabel.solve.batched.sizes import make_batches
from nextlabel.solve.descent import descend
from nextlabel.solve.progress import Progress
from nextlabel.solve.relaxed import counts_of, no_delay_edge, stack_classes
from nextlabel.solve.timeline import Timeline
from nextlabel.solve.truncation import Cut, arrival_chances, late_tail

#: (knots, smoothing as a share of the spread, iterations): coarse and smooth first, since there the problem is well
#: conditioned; 0 knots means a price of its own for every arrival.
SCHEDULE = (
    (8, 2e-3, 30), (16, 2e-3, 60), (32, 2e-3, 60), (32, 6e-4, 100), (64, 2e-4, 100), (128, 2e-4, 100),
    (256, 6e-5, 100), (256, 2e-5, 100), (0, 2e-5, 100), (0, 6e-6, 100), (0, 2e-6, 100),
)  # fmt: skip
#: Where the last digits do not matter yet, and what is left to do from prices that are nearly right.
ROUGH, FINISH = SCHEDULE[:8], SCHEDULE[7:]
#: From prices that were found in batches (``batched.first_prices``).
FROM_BATCHES = ((128, 2e-4, 60), (256, 6e-5, 80), (0, 6e-5, 40), (0, 1.5e-5, 60))
#: No record of the measure is wanted.
NO_MEASURE = np.empty((0, 0, 0))
#: Values kept at once (8 bytes each).
MOST_NUMBERS = 500_000_000


@dataclass(frozen=True, slots=True)
class PriceOptimum:
    """Best prices found, B there, and the value of a feasible occupation measure, which ``plan`` makes again.

    ``plan`` are prices, smoothing and mode for ``PricedProblem.measure``.
    """

    prices: Floats
    value: float
    lower: float
    plan: tuple[Floats, float, int]
    evaluations: int


class PricedProblem:
    """Sweeps of all classes at given prices, with the arrays they need."""

    def __init__(
        self,
        problem: Problem,
        cut: Cut,
        line: Timeline,
        initial: Floats | None = None,
        stack: LatticeStack | None = None,
    ) -> None:
        """``initial`` (classes, states) is where the tasks are now, as shares (fresh if not given), on ``stack``."""
        self.problem, self.cut, self.line = problem, cut, line
        self.stack = stack_classes(problem.classes, cut.depth, problem.budget) if stack is None else stack
        self.counts = counts_of(problem.classes)
        self.grid = make_grid(self.stack.first, cut.cap, cut.flight)
        self.steps = line.steps(problem.completion_rate)
        self.states = self.grid.states
        classes = len(self.counts)
        numbers = classes * (line.arrivals + 1) * line.layers * self.states
        if numbers > MOST_NUMBERS:
            raise TooLargeError(
                f"prices per arrival need {numbers:,} values in memory; at most {MOST_NUMBERS:,} are allowed.",
                "Use --prices scalar, a smaller --cap or fewer kinds of tasks.",
            )
        self.V = np.empty((classes, line.arrivals + 1, line.layers, self.states))
        self.initial = np.zeros((classes, self.states)) if initial is None else initial
        if initial is None:
            self.initial[:, 0] = 1.0
        self.given = np.zeros(line.arrivals)
        self.come = arrival_chances(problem)
        self.evaluations = 0
        self._tail = late_tail(problem, cut.depth)
        self._single = None if line.finite else make_batches(problem, line.arrivals, inf, line.arrivals)

    def backward(self, prices: Floats, eps: float = 0.0) -> float:
        """sum_x V_x at ``prices`` and the cost of a label (smoothed if eps > 0); fills V."""
        self.evaluations += 1
        paid = prices + self.problem.label_cost
        lattices = self.stack.arrays
        never = np.full(len(self.counts), np.inf)
        edge = no_delay_edge(lattices, self.grid, float(paid.min()), self._tail)
        if self._single is not None:
            batch_backward(lattices, self.grid, self._single, paid, eps, edge, self.V[:, :, 0])
        else:
            backward(lattices, self.grid, self.steps, paid, eps, False, edge, never, self.V, self.V[:0])
        return float((self.counts[:, None] * self.initial * self.V[:, self.line.arrivals, -1]).sum())

    def measure(self, prices: Floats, eps: float, mode: int) -> Floats:
        """(classes, U, states) share of a class's tasks that each arrival is given in each state, by that plan."""
        self.backward(prices, eps)
        act = np.zeros((len(self.counts), self.line.arrivals, self.states))
        self.forward(prices, eps, mode, act)
        return act

    def forward(self, prices: Floats, eps: float, mode: int, act: Floats = NO_MEASURE) -> float:
        """Occupation measure of the decisions that V implies; fills given; returns the reward earned."""
        cost = self.problem.label_cost
        if self._single is not None:
            paid = prices + cost if mode < 2 else np.full(len(prices), np.inf)
            plan = Plan(self.counts[:, None] * self.initial, self.given, act)
            lattices, V = self.stack.arrays, self.V[:, :, 0]
            batch_forward(lattices, self.grid, self._single, paid, cost, eps, mode > 0, V, plan)
            act /= self.counts[:, None, None] if len(act) else 1.0
            return float((plan.x * V[:, 0]).sum() - cost * self.given.sum())
        x = np.zeros((len(self.counts), self.line.layers, self.states))
        x[:, -1] = self.initial
        out = Measure(x, self.given, self.come, act)
        lost = forward(
            self.stack.arrays, self.grid, self.steps, self.counts, prices + cost, cost, eps, mode, self.V, out
        )
        return float(lost - cost * self.given.sum() + (self.counts[:, None, None] * x * self.V[:, 0]).sum())


def optimise_prices(
    priced: PricedProblem,
    start: Floats,
    spread: float,
    tolerance: float,
    max_evaluations: int,
    progress: Progress | None = None,
    schedule: Sequence[tuple[int, float, int]] = SCHEDULE,
) -> PriceOptimum:
    """Start from given prices; stop when value - lower is within the tolerance or the evaluations are used up.

    ``tolerance`` is a share of the value, or of all that labels could add if that is more.
    """
    U = priced.line.arrivals
    prices = start
    come = priced.come
    best, best_value, lower = prices, np.inf, -np.inf
    plan = (prices, 0.0, 2)

    def account(candidate: Floats, eps: float, raises: Sequence[float]) -> None:
        nonlocal best, best_value, lower, plan
        value = priced.backward(candidate) + float((candidate * come).sum())
        if value < best_value:
            best, best_value = candidate, value
        plans = [(candidate, 0.0, 2)]
        plans += [(candidate * (1.0 + more), eps, 1) for more in raises]
        for trial in plans:
            if trial is not plans[0]:
                priced.backward(trial[0], eps)
            worth = priced.forward(*trial)
            if worth > lower:
                lower, plan = worth, trial

    def done() -> bool:
        scale = max(abs(best_value), spread * float(priced.counts.sum()))
        return best_value - lower <= tolerance * scale or priced.evaluations >= max_evaluations

    account(prices, spread * schedule[0][1], RAISES[:1])
    trial = prices
    for stage, (size, smoothing, iterations) in enumerate(schedule, start=1):
        if done():
            break
        hats = HatBasis(U, min(size, U) if size > 0 else U)
        scale = 1.0 / np.sqrt(np.maximum(hats.adjoint(come), 1e-12))
        eps = spread * smoothing

        def objective(
            u: Floats, hats: HatBasis = hats, scale: Floats = scale, eps: float = eps
        ) -> tuple[float, Floats]:
            prices = hats.spread_out(u * scale)
            value = priced.backward(prices, eps) + float((prices * come).sum())
            priced.forward(prices, eps, 0)
            if progress is not None:
                progress(min(1.0, priced.evaluations / max_evaluations))
            return value, scale * hats.adjoint(come - priced.given)

        found = descend(objective, hats.sample(trial) / scale, min(iterations, max_evaluations - priced.evaluations))
        trial = hats.spread_out(found * scale)
        account(trial, eps, RAISES if stage > len(schedule) - 2 else RAISES[:1])
    if progress is not None:
        progress(1.0)
    return PriceOptimum(best, best_value, min(lower, best_value), plan, priced.evaluations)


class HatBasis:
    """Piecewise linear interpolation of G knots over U arrivals, and its adjoint, without a matrix."""

    def __init__(self, U: int, G: int) -> None:
        at = np.linspace(0.0, G - 1.0, U) if U > 1 else np.zeros(1)
        self.size = G
        self._left = np.minimum(at.astype(np.int64), max(G - 2, 0))
        self._right = np.minimum(self._left + 1, G - 1)
        self._share = at - self._left

    def spread_out(self, knots: Floats) -> Floats:
        """Prices of all arrivals from those of the knots."""
        return np.asarray(knots[self._left] * (1.0 - self._share) + knots[self._right] * self._share, dtype=np.float64)

    def adjoint(self, gradient: Floats) -> Floats:
        """Gradient with respect to the knots."""
        left = np.bincount(self._left, gradient * (1.0 - self._share), minlength=self.size)
        return np.asarray(
            left + np.bincount(self._right, gradient * self._share, minlength=self.size), dtype=np.float64
        )

    def sample(self, prices: Floats) -> Floats:
        """Knots that reproduce ``prices`` at the knots."""
        return np.interp(np.linspace(0.0, len(prices) - 1.0, self.size), np.arange(len(prices)), prices)
