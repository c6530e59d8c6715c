"""One price per arrival or batch of arrivals: minimise B(lam) = sum_x V_x(lam) + sum_l lam_l m_l, convex in the prices.

========= ========= ==================================================================================
symbol    code      meaning
========= ========= ==================================================================================
lam_l     prices    price of arrival or batch l, the next one first
m_l       come      workers of the batch, or P(arrival l comes)
eps       eps       smoothing of the max; the smoothed B is differentiable, at most eps per decision below B
y_l       given     expected labels given to l; dB/dlam_l = m_l - y_l
========= ========= ==================================================================================

Smoothing splits ties smoothly (docs/theory.md, section 4): B_eps is minimised by projected L-BFGS (``descend``) for
falling eps and rising number of knots between which prices lie on lines. Its gradient, the forward sweep, is at the
same time a randomised policy, which made exactly feasible (modes 1 and 2 of ``forward``) is the primal side. In a
campaign that runs, the smoothing at the end is always the same: from the prices of a moment ago a few steps lead to the
minimum.

Batches are short where prices move, within the time of a few labels from now and from the end, and longer in between.
With a deadline workers come at their mean rate until then, and labels that are still in flight are lost. For many
arrivals the first prices come from batches, from few of them and much smoothing to more and less.

*While a campaign runs* it makes one ``PriceSolver`` and calls ``solve`` as often as it likes, with the number of tasks
in each state, the labels left and the last result: a tenth of a second for the first result, milliseconds from the last
one. Tasks are counted by state and arrivals come in some dozens of batches, so that a sweep takes a tenth of a
millisecond whatever the number of tasks and labels. Tasks with more labels, or more of them in flight, than a sweep
looks at are worth what they are without delay at most, and without another label at least (``OutsideTasks``).

Our own L-BFGS stays: with the same steps it takes a fifth to a third of the time of SciPy's L-BFGS-B on these small
vectors, keeps its memory from round to round, and gives the same bits on every CPU (docs/decisions/0003).
Guarantee: the bound is evaluated without smoothing, so any prices give a valid one; ``lower`` is the value of a
feasible occupation measure (for a finite horizon: on the chain of ``kernels.priced``; in batches: of the problem whose
workers come in batches). Cost: two sweeps per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log1p
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.errors import ProblemError, TooLargeError
from nextlabel.kernels.inputs import Edge, Grid, Lattices, Steps, make_grid
from nextlabel.kernels.priced import Batches, Plan, backward, forward
from nextlabel.model.lattice import after_labels
from nextlabel.model.problem import Problem, in_units, refuse_workers
from nextlabel.model.tasks import Groups, check_groups, counts_of, stack_classes, whole
from nextlabel.solve.progress import Progress
from nextlabel.solve.relaxed import no_delay_edge, no_delay_values
from nextlabel.solve.truncation import Cut, Timeline, arrival_chances, differences, make_cut

#: Steps remembered; the least decrease, as a share of what the slope promises, that is taken; halvings at most.
MEMORY, LEAST_DECREASE, HALVINGS = 30, 1e-4, 20
#: The descent ends when a step lowers the function by less than this share of it.
STALLED = 1e-14

#: What a step changed: the prices, the gradient, and the product of the two.
Step = tuple[Floats, Floats, float]


def descend(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    iterations: int,
    memory: list[Step] | None = None,
) -> Floats:
    """The best point found from ``start`` >= 0; ``objective`` returns the value and the gradient.

    ``memory`` has the last steps of a descent on the same function, and gets those of this one.
    """
    x = start
    value, gradient = objective(x)
    steps: list[Step] = [] if memory is None else list(memory)
    for _ in range(iterations):
        free = (x > 0.0) | (gradient < 0.0)
        direction = np.where(free, -_inverse_hessian(steps, np.where(free, gradient, 0.0), free), 0.0)
        if _dot(gradient, direction) >= 0.0:
            steps, direction = [], np.where(free, -gradient, 0.0)
        length = 1.0 if steps else 1.0 / max(np.sqrt(_dot(direction, direction)), 1e-300)
        for _ in range(HALVINGS):
            trial = np.maximum(x + length * direction, 0.0)
            trial_value, trial_gradient = objective(trial)
            promised = _dot(gradient, trial - x)
            if trial_value <= value + LEAST_DECREASE * promised:
                break
            # The parabola through both values and the slope has its minimum here.
            curvature = 2.0 * (trial_value - value - promised)
            length *= min(max(-promised / curvature, 0.1), 0.5) if curvature > 0.0 else 0.5
        else:
            break
        fallen = value - trial_value
        step, change = trial - x, trial_gradient - gradient
        curve = _dot(step, change)
        if curve > 0.0:
            steps = [*steps[-MEMORY + 1 :], (step, change, curve)]
        x, value, gradient = trial, trial_value, trial_gradient
        if fallen <= STALLED * abs(value):
            break
    if memory is not None:
        memory[:] = steps
    return x


def _inverse_hessian(steps: list[Step], gradient: Floats, free: Bools) -> Floats:
    """The inverse Hessian that the steps tell of, times the gradient, over the free prices: the two loops of L-BFGS."""
    out = gradient.copy()
    used = []
    all_free = bool(free.all())
    for s, y, curve in reversed(steps):
        if not all_free:
            s, y = np.where(free, s, 0.0), np.where(free, y, 0.0)
            curve = _dot(s, y)
        if curve > 0.0:
            by = _dot(s, out) / curve
            out -= by * y
            used.append((s, y, curve, by))
    if used:
        _, y, curve, _ = used[0]
        out *= curve / _dot(y, y)
    for s, y, curve, by in reversed(used):
        out += (by - _dot(y, out) / curve) * s
    return out


def _dot(a: Floats, b: Floats) -> float:
    return float((a * b).sum())


#: Batches at most; fewer arrivals are a batch each.
BATCHES = 96
#: Lifetimes of a label after which it has come in.
LONG = 700.0


def batch_sizes(left: int, rho: float, most: int = BATCHES) -> Ints:
    """Arrivals of each of at most ``most`` batches, short near both ends."""
    if left <= most:
        return np.ones(left, dtype=np.int64)
    span = left / rho
    total = 2.0 * log1p(0.5 * span)
    # In lifetimes of a label x from the nearer end a batch is as long as 1 + x: equal steps of log(1 + x).
    u = np.linspace(0.0, total, most + 1)
    ends = np.where(u <= 0.5 * total, np.expm1(u), span - np.expm1(total - u)) * rho
    ends[0], ends[-1] = 0.0, left
    return np.asarray(np.diff(np.unique(np.rint(ends))), dtype=np.int64)


def make_batches(problem: Problem, left: int, time_left: float, most: int) -> Batches:
    """Batches of the arrivals that are expected, and how far labels come in before each of them."""
    if not time_left > 0:
        raise ProblemError(f"time left {time_left!r} is not above 0.", "Give the time until the deadline.")
    mu = problem.completion_rate
    if time_left == inf:
        size = batch_sizes(left, problem.rho, most)
        return Batches(size.astype(float), left - np.cumsum(size) + size, _odds(size, problem.rho), inf)
    starts, rates = problem.rate_pieces
    now = max(problem.horizon - time_left, 0.0) if problem.finite else 0.0
    knots = np.append(np.append(now, starts[starts > now]), now + time_left)
    speed = rates[np.searchsorted(starts, knots[:-1], side="right") - 1]
    come = np.append(0.0, np.cumsum(speed * np.diff(knots)))
    n = max(1, min(left, int(come[-1])))
    size = batch_sizes(n, max(come[-1], 1.0) / (mu * time_left), most)
    ends = np.interp(np.append(0.0, np.cumsum(size)), come, knots)
    after = max(now + time_left - float(ends[-1]), 0.0)
    busy = np.expm1(np.minimum(mu * np.diff(ends), LONG))
    return Batches(size.astype(float), n - np.cumsum(size) + size, busy, float(np.expm1(min(mu * after, LONG))))


def _odds(size: Ints, rho: float) -> Floats:
    """Chance that a label comes in while so many workers come, by the chance that it does not."""
    return np.asarray(np.expm1(np.minimum(size * log1p(1.0 / rho), LONG)), dtype=np.float64)


#: Smoothing at the end of a search, as a share of what labels can add, and on the way there when no prices are known.
SMOOTHING = 6e-5
COLD = ((2e-3, 60), (6e-4, 60), (2e-4, 60), (SMOOTHING, 60))
#: Steps of a round from known prices, and rounds at most.
STEPS, ROUNDS = 8, 4
#: Prices are raised by these shares in search of a plan: if they are a little too high, labels are left over and go to
#: the tasks that are next; if they are too low, the last tasks find none.
RAISES = (0.0, 0.001, 0.002, 0.004, 0.01, 0.02, 0.04)
#: Halvings of the interval in which one price for all is looked for.
BISECTIONS = 20
#: No record of the plan is wanted; and there is no deadline.
NO_RECORD = np.empty((0, 0, 0))
NO_DEADLINE = Steps(False, 0.0, np.array([inf]), np.zeros(1), np.zeros(1))


class Sweeps(NamedTuple):
    """What sweeps over any batches take: lattices and grid, cost of a label, the most that labels add to a task."""

    lattices: Lattices
    grid: Grid
    cost: float
    spread: float
    closed: bool = False  # states on the edge are offered no label

    def edge(self, lowest: float) -> Edge:
        """States on the edge of the grid at the lowest price, its cost included."""
        if self.closed:
            nothing = np.full((len(self.lattices.reward), 1, self.grid.states), -inf)
            return Edge(nothing, nothing)
        return no_delay_edge(self.lattices, self.grid, lowest)


def make_sweeps(problem: Problem, cut: Cut, stack: Lattices, closed: bool = False) -> Sweeps:
    """Sweeps over the lattices of a problem's classes."""
    grid = make_grid(stack.first, cut.cap, cut.flight)
    return Sweeps(stack, grid, problem.label_cost, float(stack.spread.max()), closed)


class PricedTasks:
    """Tasks, ``tasks`` (classes, states) of them, at prices of batches: their values, and what each batch is given."""

    def __init__(self, sweeps: Sweeps, batches: Batches, tasks: Floats, steps: Steps = NO_DEADLINE) -> None:
        self.sweeps, self.batches, self.tasks, self.steps = sweeps, batches, tasks, steps
        self.come, self.given, self.evaluations = batches.size, np.zeros(len(batches.size)), 0
        self.V = np.empty((len(tasks), len(batches.size) + 1, len(steps.tau), sweeps.grid.states))

    def backward(self, prices: Floats, eps: float = 0.0) -> float:
        """sum_x V_x at ``prices`` and the cost of a label (smoothed if eps > 0); fills V."""
        self.evaluations += 1
        paid = prices + self.sweeps.cost
        edge = self.sweeps.edge(float(paid.min()))
        backward(self.sweeps.lattices, self.sweeps.grid, self.batches, self.steps, paid, eps, edge, self.V)
        return float((self.tasks * self.V[:, -1, -1]).sum())

    def forward(self, prices: Floats, eps: float, mode: int, record: Floats = NO_RECORD) -> float:
        """Follow the decisions that V implies; fills given; return what that is worth.

        Mode 0 follows the prices: what it gives is the gradient. Mode 1 never gives a batch more labels than it has
        workers, in expectation. Mode 2 does not either, and gives all by the largest advantage.
        """
        cost = self.sweeps.cost
        paid = prices + cost if mode < 2 else np.full(len(prices), inf)
        x = np.zeros(self.V[:, 0].shape)
        x[:, -1] = self.tasks
        lost = forward(
            self.sweeps.lattices, self.sweeps.grid, self.batches, self.steps, paid, cost, eps, mode > 0, self.V,
            Plan(x, self.given, record),
        )  # fmt: skip
        return float(lost + (x * self.V[:, 0]).sum() - cost * self.given.sum())

    def measure(self, prices: Floats, eps: float, mode: int) -> Floats:
        """(classes, batches, states) tasks that each batch gives a label to, in each state; without a deadline."""
        self.backward(prices, eps)
        act = np.zeros((len(self.tasks), len(self.come), self.sweeps.grid.states))
        self.forward(prices, eps, mode, act)
        return act


#: Values kept at once (8 bytes each).
MOST_NUMBERS = 500_000_000


class PricedProblem(PricedTasks):
    """The tasks of a problem with a price for each arrival; ``line`` has layers of time if there is a deadline."""

    def __init__(
        self, problem: Problem, cut: Cut, line: Timeline, initial: Floats | None = None, stack: Lattices | None = None
    ) -> None:
        """``initial`` (classes, states) is where the tasks are now, as shares (fresh if not given), on ``stack``."""
        self.stack = stack_classes(problem.classes, cut.depth, problem.budget) if stack is None else stack
        sweeps, self.counts = make_sweeps(problem, cut, self.stack), counts_of(problem.classes)
        states = sweeps.grid.states
        numbers = len(self.counts) * (line.arrivals + 1) * line.layers * states
        if numbers > MOST_NUMBERS:
            raise TooLargeError(
                f"prices per arrival need {numbers:,} values in memory; at most {MOST_NUMBERS:,} are allowed.",
                "Use --prices scalar, a smaller --cap or fewer kinds of tasks.",
            )
        if initial is None:
            initial = np.zeros((len(self.counts), states))
            initial[:, 0] = 1.0
        batches = make_batches(problem, line.arrivals, inf, line.arrivals)._replace(size=arrival_chances(problem))
        steps = line.steps(problem.completion_rate)
        super().__init__(sweeps, batches, self.counts[:, None] * initial, steps)


def lower_prices(
    priced: PricedTasks,
    prices: Floats,
    eps: float,
    steps: int,
    memory: list[Step] | None = None,
    knots: int = 0,
    progress: Callable[[], None] | None = None,
) -> Floats:
    """Prices after so many steps down the smoothed B, as a hat-function interpolation of ``knots`` (0: none)."""
    hats = HatBasis(len(prices), knots) if 0 < knots < len(prices) else None
    come = priced.come if hats is None else np.maximum(hats.adjoint(priced.come), 1e-12)
    scale = 1.0 / np.sqrt(np.maximum(come, 1e-12))

    def objective(u: Floats) -> tuple[float, Floats]:
        lam = u * scale if hats is None else hats.spread_out(u * scale)
        value = priced.backward(lam, eps) + float((lam * priced.come).sum())
        priced.forward(lam, eps, 0)
        if progress is not None:
            progress()
        slope = priced.come - priced.given
        return value, scale * (slope if hats is None else hats.adjoint(slope))

    found = descend(objective, (prices if hats is None else hats.sample(prices)) / scale, steps, memory) * scale
    return found if hats is None else hats.spread_out(found)


#: (knots, smoothing as a share of the spread, iterations): coarse and smooth first, since there the problem is well
#: conditioned; 0 knots means a price of its own for every arrival.
SCHEDULE = (
    (8, 2e-3, 30), (16, 2e-3, 60), (32, 2e-3, 60), (32, 6e-4, 100), (64, 2e-4, 100), (128, 2e-4, 100),
    (256, 6e-5, 100), (256, 2e-5, 100), (0, 2e-5, 100), (0, 6e-6, 100), (0, 2e-6, 100),
)  # fmt: skip
#: Where the last digits do not matter yet, and what is left to do from prices that are nearly right.
ROUGH, FINISH = SCHEDULE[:8], SCHEDULE[7:]
#: From prices that were found in batches (``prices_from_batches``).
FROM_BATCHES = ((128, 2e-4, 60), (256, 6e-5, 80), (0, 6e-5, 40), (0, 1.5e-5, 60))


class PriceSearch:
    """The best prices so far with the bound there, and the best feasible plan; ``spread``: what labels add at most."""

    def __init__(self, priced: PricedTasks, spread: float) -> None:
        self.priced, self.spread = priced, spread
        self.prices, self.value, self.lower = np.zeros(len(priced.come)), inf, -inf
        #: Prices, smoothing and mode with which ``PricedTasks.measure`` makes the best plan again.
        self.plan = (self.prices, 0.0, 2)

    def is_near(self, tolerance: float) -> bool:
        """Whether bound and plan are as close as this share of the value, or of all that labels could add."""
        scale = max(abs(self.value), self.spread * float(self.priced.tasks.sum()))
        return self.value - self.lower <= tolerance * scale

    def account(self, prices: Floats, eps: float, raises: Sequence[float], enough: float = -inf) -> bool:
        """The bound without smoothing, and feasible plans until one is near ``enough`` to it; whether one is."""
        value = self.priced.backward(prices) + float((prices * self.priced.come).sum())
        if value < self.value:
            self.value, self.prices = value, prices
        if enough == -inf:
            self._try(prices, 0.0, 2)
        for more in raises:
            raised = prices * (1.0 + more)
            self.priced.backward(raised, eps)
            self._try(raised, eps, 1)
            if self.is_near(enough):
                return True
        return False

    def _try(self, *plan: Any) -> None:
        worth = self.priced.forward(*plan)
        if worth > self.lower:
            self.lower, self.plan = worth, plan

    def common_price(self) -> float:
        """The price at which the tasks together want as many labels as there are, if it is one for all."""
        low, high = 0.0, self.spread
        for _ in range(BISECTIONS):
            price = 0.5 * (low + high)
            prices = np.full(len(self.prices), price)
            self.priced.backward(prices)
            self.priced.forward(prices, 0.0, 0)
            low, high = (price, high) if self.priced.given.sum() > self.priced.come.sum() else (low, price)
        return high

    def begin(self, price: float) -> None:
        """From one price for all, smooth at first."""
        prices = np.full(len(self.prices), max(price, 0.0))
        for smoothing, steps in COLD:
            prices = lower_prices(self.priced, prices, smoothing * self.spread, steps)
        self.follow(prices)

    def follow(self, prices: Floats) -> None:
        """From prices that are nearly right."""
        eps = SMOOTHING * self.spread
        memory: list[Step] = []
        for _ in range(ROUNDS):
            prices = lower_prices(self.priced, prices, eps, STEPS, memory)
            if self.account(prices, eps, RAISES, TOLERANCE):
                break


def optimise_prices(
    priced: PricedTasks,
    start: Floats,
    spread: float,
    tolerance: float,
    max_evaluations: int,
    progress: Progress | None = None,
    schedule: Sequence[tuple[int, float, int]] = SCHEDULE,
) -> PriceSearch:
    """Start from given prices; stop when value - lower is within the tolerance or the evaluations are used up.

    ``tolerance`` is a share of the value, or of all that labels could add if that is more.
    """

    def told() -> None:
        if progress is not None:
            progress(min(1.0, priced.evaluations / max_evaluations))

    search, trial = PriceSearch(priced, spread), start
    search.account(start, spread * schedule[0][1], RAISES[:1])
    for stage, (size, smoothing, iterations) in enumerate(schedule, start=1):
        if search.is_near(tolerance) or priced.evaluations >= max_evaluations:
            break
        eps = spread * smoothing
        left = max_evaluations - priced.evaluations
        trial = lower_prices(priced, trial, eps, min(iterations, left), knots=size, progress=told)
        search.account(trial, eps, RAISES if stage > len(schedule) - 2 else RAISES[:1])
    if progress is not None:
        progress(1.0)
    search.lower = min(search.lower, search.value)
    return search


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


#: (batches, smoothing as a share of what labels can add, steps)
BATCH_SCHEDULE = ((12, 2e-3, 40), (24, 2e-3, 40), (48, 6e-4, 60), (96, 2e-4, 80), (192, 2e-4, 60))


def prices_from_batches(problem: Problem, cut: Cut, price: float) -> Floats:
    """(U,) prices, the first arrival first; ``price``: the best one for all."""
    U = problem.budget
    sweeps = make_sweeps(problem, cut, stack_classes(problem.classes, cut.depth, U))
    tasks = np.zeros((len(problem.classes), sweeps.grid.states))
    tasks[:, 0] = counts_of(problem.classes)
    at, lam = np.array([1.0, U]), np.full(2, price)
    for most, smoothing, steps in BATCH_SCHEDULE:
        batches = make_batches(problem, U, inf, most)
        middle = batches.left - 0.5 * (batches.size - 1.0)
        search = PricedTasks(sweeps, batches, tasks)
        lam = lower_prices(search, np.interp(middle, at, lam), smoothing * sweeps.spread, steps)[::-1]
        at = middle[::-1]
    return np.asarray(np.interp(np.arange(U, 0, -1.0), at, lam), dtype=np.float64)


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
            kept = self._lattices[c] = stack_classes([self.problem.classes[c]], max(depth, self.depth), lumped=False)
        return kept


#: No further round is made when ``gap`` is at most this share of the value, or of all that labels could add.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class BatchPrices:
    """Prices of the arrivals to come, the next batch first, and the proof of how good they are.

    ``advantage`` (classes, states) and ``planned`` (classes, batches, states) are over the states of the solver's
    sweep (``state_columns``). ``planned`` are the labels that the feasible plan of value ``lower`` gives to tasks in
    each state, batch by batch.
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
        self.stack = stack_classes(self.problem.classes, self.cut.depth)
        self.sweeps = make_sweeps(self.problem, self.cut, self.stack, closed)
        self.outside = OutsideTasks(self.problem, self.cut.depth)

    def solve(
        self,
        groups: Sequence[Any],
        left: int,
        start: float | BatchPrices | None = None,
        *,
        time_left: float | None = None,
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
            search.follow(start.at(batches.left - 0.5 * (batches.size - 1.0)) / self.unit)
        else:
            search.begin(search.common_price() if start is None else start / self.unit)
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
            advantage=self.unit * differences(after, self.sweeps.grid),
            planned=planned,
            outside=outside.tasks,
            evaluations=priced.evaluations,
            seconds=perf_counter() - begin,
        )

    def place(self, groups: Groups) -> tuple[Floats, Groups]:
        """(classes, states) tasks in each state of the sweep, and the groups past it."""
        grid = self.sweeps.grid
        inside = (groups.w <= grid.W) & (groups.levels(self.problem.answers) + groups.w <= grid.C)
        tasks = np.zeros((len(self.problem.classes), grid.states))
        state = grid.off[groups.w[inside]] + self.stack.node_of[groups.node[inside]]
        np.add.at(tasks, (groups.entry[inside], state), groups.members[inside])
        return tasks, Groups(*(column[~inside] for column in groups))
