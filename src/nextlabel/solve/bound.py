"""The certified upper bound on the value of every policy.

    V* <= sum_x V_x(root, U; c + lam) + sum_l lam_l P(worker l arrives before T)        for all prices lam >= 0,

where c is the cost of a label (0 unless the problem has one).

=========== ================= ==================================================================
symbol      code              meaning
=========== ================= ==================================================================
lam         price, prices     one price for all arrivals (``scalar``) or one for each (``per-arrival``)
E[arrivals] expected_arrivals sum_l P(worker l arrives before T); U when T is infinite
--          lower             value of a feasible occupation measure; with a finite horizon integrated, not proved
--          gap               what better prices, or deeper truncation, could still take off
--          error_budget      what rounding can have taken off, already added to the value
A           magnitude         bound on E[sum_q abs(u[a][q]) P_q] for the best decision a, whatever labels come
delta       relative          relative error of beliefs (``Prior.belief_error``); ``absolute`` comes on top
n_ops       operations        rounded operations along the longest chain of a recursion
=========== ================= ==================================================================

``BoundSearch`` chooses depth, cap and time step and searches the prices. Without a horizon one task is swept arrival by
arrival, or solved without delay where that is the same to 1e-11. With one, prices are searched on an accurate sweep and
the value is then that of a supersolution (``kernels.horizon``).

*Error budget* (docs/theory.md, section 3). Per task

    exact - computed <= (delta + n_ops eps) A + absolute * J max abs(u),      A = 2 sum_q P_q max_a u[a][q]^+ - R

before the first label; of the squared error delta_p s + n_ops eps abs(R), with delta_p = ``Prior.chance_error``. Merged
nodes (proved symmetries), caps, depth, arrivals swept and time steps err upwards by construction.

Guarantee: upper bound, whatever the cap, the prices or the time step (docs/theory.md); the error budget is of first
order in eps, operations counted generously. Cost: see the modules called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError
from nextlabel.kernels.horizon import backward_above
from nextlabel.kernels.inputs import make_grid
from nextlabel.model.prior import EPS, Prior
from nextlabel.model.problem import Problem, in_units
from nextlabel.model.simplex import deepest, nodes_of
from nextlabel.model.tasks import TaskClass, counts_of, many_lattices, stack_classes
from nextlabel.notebook import facts_html
from nextlabel.solve.grouping import MANY_CLASSES, group
from nextlabel.solve.per_arrival import (
    FINISH,
    FROM_BATCHES,
    ROUGH,
    SCHEDULE,
    PricedProblem,
    PriceSearch,
    optimise_prices,
    prices_from_batches,
)
from nextlabel.solve.price_search import Optimum, first_prices, minimise
from nextlabel.solve.progress import Progress, part
from nextlabel.solve.relaxed import RelaxedProblem, highest_price, no_delay_edge
from nextlabel.solve.truncation import (
    CAP_TOLERANCE,
    CAPS,
    Cut,
    Timeline,
    arrival_chances,
    check_prices,
    enough_time,
    expected_arrivals,
    halve_steps,
    make_cut,
    make_timeline,
    swept_arrivals,
)

#: Rounded operations per answer and per step of a recursion over labels, arrivals and time layers, with room to spare.
PER_ANSWER, PER_STEP, AT_ROOT = 2, 24, 16
#: A bound is certified if its error budget is at most this share of its scale: the value, or what labels can add.
CERTIFIED = 1e-9


def error_budget(problem: Problem, depth: int, steps: int) -> float:
    """The most that inexact beliefs and rounding can have taken off the sum of the single-task values.

    ``depth`` is that of the lattices, ``steps`` the arrivals and time layers that were swept.
    """
    operations = AT_ROOT + (PER_ANSWER * problem.answers + PER_STEP) * (depth + steps)
    together: dict[type[Prior], list[TaskClass]] = {}
    for c in problem.classes:
        together.setdefault(type(c.prior), []).append(c)
    total = 0.0
    for kind, classes in together.items():
        _, truth = kind.believe_all([c.prior for c in classes], np.array([c.threshold for c in classes]), 0)
        reward = stack_classes(classes, 0).reward[:, 0]
        for c, P, R in zip(classes, truth[:, 0], reward, strict=True):
            magnitude = c.reward.magnitude(P, float(R))
            if c.reward.of_chances:
                off = c.prior.chance_error(depth + c.reward.ahead) * c.reward.largest
            else:
                relative, absolute = c.prior.belief_error(depth)
                off = relative * magnitude + absolute * problem.answers * c.reward.largest
            total += c.count * (off + operations * EPS * magnitude)
    return total


#: The scalar search stops when it is this close to the best price's bound, as a share of the value.
SCALAR_TOLERANCE = 1e-10
#: Likewise for one price per arrival, where the last digits are dear: evaluations as many as fit, between these.
PER_ARRIVAL_TOLERANCE = 2e-6
PER_ARRIVAL_EVALUATIONS = (600, 3000)
PER_ARRIVAL_WORK = 600_000_000
#: Arrivals from which prices are searched for in batches first.
MANY_ARRIVALS = 384
#: State updates one sweep may cost before the cap is no longer raised.
SWEEP_WORK = 40_000_000
#: Lattice nodes, over all classes, that one price may visit before the lattices are no longer deepened.
LATTICE_WORK = 900_000_000
#: With many classes the price and the depth are learnt from a sample, and the last digits are left.
SAMPLE = 1024
MANY_TOLERANCE = 1e-6
#: Time steps are doubled until the certified value moves by less than this share.
STEP_TOLERANCE = 1e-7
#: ... and it is within this share of the value that a sharper integration without a proof gives.
STEP_DISTANCE = 1e-4
FIRST_STEPS, MOST_STEPS = 100, 10_000
#: With a finite horizon the prices are searched on a chain of second order: as many steps as fit, between these, and
#: once more with every step halved. Nearer than this share of the value the chain itself is not.
CHAIN_STEPS = (24, 96)
CHAIN_WORK = 500_000
CHAIN_TOLERANCE = 1e-5


class Searched(NamedTuple):
    """Best price and value, truncation, prices, error budget and its scale; priors after grouping (0: none)."""

    best: Optimum
    cut: Cut
    prices: Floats
    off: float
    scale: float
    groups: int = 0


class BoundSearch:
    """One bound: choose depth, cap and time step, search the prices, certify the result."""

    def __init__(
        self,
        problem: Problem,
        charge_all: bool,
        cap: int | None,
        flight: int | None,
        progress: Progress | None,
        tolerance: float = SCALAR_TOLERANCE,
    ) -> None:
        self.asked = problem
        self.problem, self.too_late = enough_time(problem)
        self.charge_all = charge_all
        self.charged = float(problem.budget) if charge_all else expected_arrivals(problem)
        self.given_cap, self.given_flight = cap, flight
        self.progress = progress
        self.steps = 0  # arrivals and time layers swept for the value that is shown
        self.top = highest_price(problem.classes)
        self.classes = len(problem.classes)
        self.many = self.classes > 4 * SAMPLE
        self.tolerance = max(tolerance, MANY_TOLERANCE) if self.many else tolerance
        self.line = make_timeline(self.problem, FIRST_STEPS, "graded")
        self.cut = make_cut(self.problem, cap, flight)
        # Lower a cap that the user did not ask for until one sweep fits.
        while cap is None and self.cut.cap > CAPS[0] and self._sweep_work(self.cut, self.line) > SWEEP_WORK:
            lower = max(c for c in CAPS if c < self.cut.cap)
            self.cut = replace(self.cut, cap=lower, flight=min(self.cut.flight, lower))

    def run(self, prices: str) -> Searched:
        """The best prices, the truncation used and what rounding can have taken off."""
        best, lam = self._priced(prices)
        if self.too_late > 0:  # ``lower`` is of a problem with more time, or less
            best = replace(best, lower=best.lower - self.too_late * self.problem.tasks * self.top)
        off = error_budget(self.asked, self.cut.depth, self.steps) + 8.0 * EPS * abs(best.value)
        return Searched(best, self.cut, lam, off, self.scale(best.value))

    def _priced(self, prices: str) -> tuple[Optimum, Floats]:
        scalar, finite = self.scalar(), self.problem.finite
        if prices == "scalar" and not finite:
            return scalar, np.zeros(0)
        lam = np.full(self.line.arrivals, scalar.price)
        if prices == "scalar":
            return self._certified_scalar(scalar, lam), np.zeros(0)
        best, own = self._chain_prices(scalar) if finite else self._prices(scalar)
        if best.value <= scalar.value:
            lam = own
        else:  # the search did not reach the common price
            one = self._certified_scalar(scalar, lam) if finite else scalar
            lam = lam if one.value <= best.value else own
            value = min(best.value, one.value)
            best = replace(best, value=value, lower=min(max(best.lower, one.lower), value))
        return best, np.concatenate([lam, np.zeros(self.problem.budget - len(lam))])

    def scalar(self) -> Optimum:
        """The best common price, for which depth and cap are chosen."""
        guess = None
        if self.many:  # price and depth from a spread-out sample of the classes, with the budget scaled to it
            some = self.problem.classes[:: self.classes // SAMPLE]
            share = sum(c.count for c in some) / self.problem.tasks
            sample = replace(self.problem, classes=some)
            guess = self._deepened(sample, share * self.charged, None, 0.3 * MANY_TOLERANCE, None)[0].price
        best, swept = self._deepened(self.problem, self.charged, guess, self.tolerance, self.progress)
        if not swept:
            return replace(best, lower=best.lower - best.slack)
        self.steps = self.line.arrivals + self.line.layers
        return self._with_cap(best)

    def _deepened(
        self, problem: Problem, charged: float, guess: float | None, tolerance: float, progress: Progress | None
    ) -> tuple[Optimum, bool]:
        """The best price on lattices that are deep enough, and whether any class was swept."""
        while True:
            relaxed = RelaxedProblem(problem, self.cut, self.line, top=self.top)
            best = self._best_price(relaxed, charged, guess, progress)
            depth = min(3 * self.cut.depth // 2, self.problem.budget, deepest(self.problem.answers))
            fits = self.classes * nodes_of(self.problem.answers, depth) <= LATTICE_WORK and depth != self.cut.depth
            if relaxed.swept > 0 or best.slack <= tolerance * self.scale(best.value) or not fits:
                return best, relaxed.swept > 0
            self.cut, guess = replace(self.cut, depth=depth), best.price

    def _best_price(
        self, relaxed: RelaxedProblem, charged: float, guess: float | None, progress: Progress | None = None
    ) -> Optimum:
        lines = minimise(relaxed, charged, first_prices(self.top, guess), self.tolerance, progress)
        return lines.optimum(charged)

    def scale(self, value: float) -> float:
        """What tolerances are shares of: the value, or all that labels could add if that is more."""
        return max(abs(value), self.top * self.problem.tasks)

    def _with_cap(self, best: Optimum) -> Optimum:
        """Raise the cap until forbidding more labels costs next to nothing; the forbidding value is the primal side."""
        while True:
            closed = RelaxedProblem(self.problem, self.cut, self.line, forbid=True, top=self.top)
            lower = self._best_price(closed, self.charged, best.price).lower
            best = replace(best, lower=min(lower, best.value))
            near = best.value - lower <= CAP_TOLERANCE * self.scale(best.value)
            if self.given_cap is not None or near or not self._raise_cap(self.line):
                return best
            open_ = RelaxedProblem(self.problem, self.cut, self.line, top=self.top)
            best = self._best_price(open_, self.charged, best.price)

    def _raise_cap(self, line: Timeline) -> bool:
        """Whether there is a next cap with which a sweep fits; it is taken."""
        cap = next((c for c in CAPS if c > self.cut.cap), self.cut.cap)
        higher = make_cut(self.problem, cap, self.given_flight)
        higher = replace(higher, depth=max(higher.depth, self.cut.depth))
        if higher.cap <= self.cut.cap or self._sweep_work(higher, line) > SWEEP_WORK:
            return False
        self.cut = higher
        return True

    def _sweep_work(self, cut: Cut, line: Timeline) -> int:
        first = stack_classes(self.problem.classes[:1], cut.cap).first
        return self.classes * make_grid(first, cut.cap, cut.flight).states * line.arrivals * line.layers

    def _charge(self, lam: Floats) -> float:
        """sum_l lam_l P(l arrives), or sum_l lam_l in the paper's form; a common price is charged to all U arrivals."""
        if float(np.ptp(lam)) == 0.0:
            return float(lam[0]) * self.charged
        return float(lam.sum() if self.charge_all else lam @ arrival_chances(self.asked)[: len(lam)])

    def _prices(self, scalar: Optimum) -> tuple[Optimum, Floats]:
        """One price per arrival without a horizon."""
        line = make_timeline(self.problem)
        self.steps = line.arrivals
        start: float | Floats = scalar.price
        schedule: Sequence[tuple[int, float, int]] = SCHEDULE
        if line.arrivals > MANY_ARRIVALS:
            start = prices_from_batches(self.problem, self.cut, scalar.price)
            schedule = FROM_BATCHES
        found = self._search_prices(line, start, PER_ARRIVAL_TOLERANCE, schedule)
        return Optimum(scalar.price, found.value, found.lower, 0.0), found.prices

    def _chain_prices(self, scalar: Optimum) -> tuple[Optimum, Floats]:
        """One price per arrival with a horizon: on a chain, on ones of half and a quarter of its step, then certified.

        The error of the chain falls like the square of its step, so that what halving it changes is three times what is
        left. The cap is raised as long as it, and not the search, keeps the two sides apart.
        """
        least, most = CHAIN_STEPS
        layers = CHAIN_WORK // self._sweep_work(self.cut, make_timeline(self.problem, least, "graded")) * least
        line = make_timeline(self.problem, max(min(max(layers, least), most) // 2, least // 2), "graded")
        half = halve_steps(self.problem, line)
        rough = self._search_prices(line, scalar.price, CHAIN_TOLERANCE, ROUGH)
        while rough.value - rough.lower > CHAIN_TOLERANCE * self.scale(rough.value):
            if self.given_cap is not None or not self._raise_cap(half):
                break
            rough = self._search_prices(line, rough.prices, CHAIN_TOLERANCE, FINISH)
        rough = self._search_prices(half, rough.prices, CHAIN_TOLERANCE, FINISH)
        fine = self._search_prices(halve_steps(self.problem, half), rough.prices, CHAIN_TOLERANCE, FINISH)
        value = self._certified(fine.prices, PER_ARRIVAL_TOLERANCE, fine.value)
        lower = min(fine.lower - abs(fine.value - rough.value), value)
        return Optimum(scalar.price, value, lower, 0.0), fine.prices

    def _search_prices(
        self, line: Timeline, start: float | Floats, tolerance: float, schedule: Sequence[tuple[int, float, int]]
    ) -> PriceSearch:
        least, most = PER_ARRIVAL_EVALUATIONS
        evaluations = min(max(PER_ARRIVAL_WORK // self._sweep_work(self.cut, line), least), most)
        priced = PricedProblem(self.problem, self.cut, line)
        prices = np.zeros(line.arrivals) + start
        return optimise_prices(priced, prices, self.top, tolerance, evaluations, self.progress, schedule)

    def _certified_scalar(self, best: Optimum, lam: Floats) -> Optimum:
        """The common price's bound by a supersolution instead of integration."""
        value, price = self._certified(lam, STEP_TOLERANCE, best.value), best.price
        if len(self.problem.rate_pieces[1]) == 1:  # without a horizon the rate has to be constant
            # The same arrivals, all of whose labels are awaited.
            rest = (self.charge_all, self.given_cap, self.given_flight, None)
            patient = BoundSearch(replace(self.problem, horizon=inf), *rest)
            patient.charged = self.charged
            found = patient.scalar()
            value, price = min((value, price), (found.value, found.price))
        # ``lower`` was integrated, not bounded: allow it the distance between the integrated and the certified value.
        return replace(best, price=price, value=value, lower=min(best.lower, value) - abs(value - best.value))

    def _certified(self, lam: Floats, tolerance: float, integrated: float) -> float:
        """B by a supersolution, halving the time step until it stops falling near the ``integrated`` value."""
        problem, cut = self.problem, self.cut
        counts, paid = counts_of(problem.classes), lam + problem.label_cost
        stack = stack_classes(problem.classes, cut.depth, problem.budget)
        grid = make_grid(stack.first, cut.cap, cut.flight)
        edge = no_delay_edge(stack, grid, float(paid.min())).value
        _, more = swept_arrivals(problem)
        missed = float(counts @ stack.spread) * (more + self.too_late)
        charge = self._charge(lam)
        line, value = make_timeline(problem, FIRST_STEPS, "layered"), inf
        while True:
            out = np.empty(len(counts))
            backward_above(stack, grid, line.steps(problem.completion_rate), paid, edge, out)
            trial = float(counts @ out) + charge + missed
            value, before = min(value, trial), value
            # A step that is far too long can leave the value where it was, so that standing still is no proof.
            near = value - integrated <= STEP_DISTANCE * self.scale(value)
            too_fine = line.layers > MOST_STEPS or self._sweep_work(cut, line) > 4 * SWEEP_WORK
            if (near and before - value <= tolerance * self.scale(value)) or too_fine:
                self.steps = max(self.steps, line.arrivals + line.layers)
                return value
            line = halve_steps(problem, line)


ALIKE = "Workers are alike: whoever gives a task's labels, they follow the task's own prior."


@dataclass(frozen=True, slots=True)
class Bound:
    """Under the problem's model no policy earns more than ``value`` in expectation.

    ``certified``: the theorem's conditions hold for it.
    """

    value: float
    per_task: float
    price: float | None
    prices: Floats | None
    expected_arrivals: float
    lower: float
    gap: float
    error_budget: float
    certified: bool
    cap: int
    flight: int
    method: str
    charge: str
    seconds: float
    #: Under which model of the workers no policy earns more.
    assumes: str = ALIKE
    #: With workers who differ: what a label of each type costs on top of the price.
    supply_prices: Floats | None = None
    #: Where crowds were drawn: the confidence of the value, an estimate (``solve.crowd.bound``).
    confidence: float | None = None
    #: Priors that stood for those of the tasks, where these were too many (``solve.grouping``); 0 if none did. The gap
    #: then has the error of it in it.
    groups: int = 0

    def _repr_html_(self) -> str:
        return facts_html(
            "The most that any policy can expect, if the model below holds",
            [
                ("per task, at most", f"{self.per_task:.6f}"),
                ("in all, at most", f"{self.value:,.4f}"),
                ("better prices could take off", f"{self.gap:.2g}"),
                ("one more label is worth", "prices by arrival" if self.price is None else f"{self.price:.6f}"),
                ("certified", "yes" if self.certified else "no"),
            ],
            [self.assumes],
        )


def upper_bound(
    problem: Problem,
    prices: str = "scalar",
    *,
    cap: int | None = None,
    flight: int | None = None,
    charge: str = "arrivals",
    progress: Progress | None = None,
) -> Bound:
    """Bound the value of every policy of ``problem``.

    ``cap`` and ``flight`` truncate the sweep (chosen by themselves when not given) and never break the bound.
    ``charge="all"`` is the paper's own form, which pays for workers who never come: valid, looser for finite T.
    With workers who differ the result has a price for each type of them (``solve.crowd.bound``).
    """
    check_prices(prices)
    if problem.workers:
        from nextlabel.solve.crowd.bound import crowd_bound

        if prices != "scalar" or charge != "arrivals" or cap is not None or flight is not None:
            raise ProblemError(
                "with workers who differ labels have one price and one more for each type.",
                "Leave out the kind of prices, what is charged, the cap and the labels in flight.",
            )
        return crowd_bound(problem, progress=progress)
    if charge not in ("arrivals", "all"):
        raise ProblemError(f"charge {charge!r} is not known.", "Use arrivals, or all for the paper's own form.")
    begin = perf_counter()
    problem, unit = in_units(problem)
    best, cut, lam, off, scale, groups = _search(problem, prices, charge == "all", cap, flight, progress)
    value, lower = unit * (best.value + off), unit * best.lower
    return Bound(
        value=value,
        per_task=value / problem.tasks,
        price=unit * best.price if prices == "scalar" else None,
        prices=unit * lam if prices == "per-arrival" else None,
        expected_arrivals=expected_arrivals(problem),
        lower=lower,
        gap=unit * max(0.0, best.value - best.lower),
        error_budget=unit * off,
        certified=off <= CERTIFIED * scale and _holds(value, lower, best.price, lam),
        cap=cut.cap,
        flight=cut.flight,
        method=prices,
        charge=charge,
        seconds=perf_counter() - begin,
        groups=groups,
    )


def _search(
    problem: Problem, prices: str, charge_all: bool, cap: int | None, flight: int | None, progress: Progress | None
) -> Searched:
    if problem.budget == 0:
        value = sum(float(counts @ roots.reward[:, 0]) for counts, roots in many_lattices(problem.classes, 0))
        off = error_budget(problem, 0, 0) + 8.0 * EPS * abs(value)
        return Searched(Optimum(0.0, value, value, 0.0), Cut(1, 1, 1), np.zeros(0), off, abs(value))
    rest = (charge_all, cap, flight)
    grouped = group(problem) if len(problem.classes) > MANY_CLASSES else None
    if grouped is None:
        return BoundSearch(problem, *rest, progress).run(prices)
    high, low = (
        BoundSearch(replace(problem, classes=classes), *rest, part(progress, k, 2), MANY_TOLERANCE).run(prices)
        for k, classes in enumerate((grouped.upper, grouped.lower))
    )
    value = high.best.value + grouped.above
    best = replace(high.best, value=value, lower=min(low.best.lower - grouped.below, value))
    return high._replace(best=best, groups=grouped.priors)


def _holds(value: float, lower: float, price: float, prices: Floats) -> bool:
    """Whether the theorem covers the result: numbers throughout, no price below 0, no feasible plan above the bound."""
    paid = np.append(prices, price)
    return bool(np.isfinite([value, lower]).all() and np.all((paid >= 0.0) & np.isfinite(paid)) and lower <= value)
