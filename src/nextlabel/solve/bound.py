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
--          error_budget      what rounding can have taken off, already added to the value (``error_budget``)
=========== ================= ==================================================================

Guarantee: upper bound, whatever the cap, the prices or the time step (docs/theory.md). Cost: see the modules called.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.prior import EPS
from nextlabel.errors import ProblemError
from nextlabel.notebook import facts_html
from nextlabel.problem.problem import Problem, in_units
from nextlabel.solve.bound_search import MANY_TOLERANCE, SCALAR_TOLERANCE, BoundSearch
from nextlabel.solve.error_budget import CERTIFIED, error_budget
from nextlabel.solve.grouping.grouped import group
from nextlabel.solve.price_search import Optimum
from nextlabel.solve.progress import Progress, part
from nextlabel.solve.relaxed import ENDLESS, chunks, counts_of, stack_classes
from nextlabel.solve.truncation import Cut, check_prices, expected_arrivals

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
    #: Where crowds were drawn: the confidence with which the value holds.
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
    if problem.budget == 0:
        best, cut, lam, off, scale, groups = _nothing_to_buy(problem)
    else:
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


#: Best price and value, the truncation, prices, the error budget, its scale, and priors after grouping (0: none).
Searched = tuple[Optimum, Cut, Floats, float, float, int]


def _search(
    problem: Problem, prices: str, charge_all: bool, cap: int | None, flight: int | None, progress: Progress | None
) -> Searched:
    grouped = group(problem)
    if grouped is None:
        return *_search_one(problem, prices, charge_all, cap, flight, progress), 0
    rest = (prices, charge_all, cap, flight)
    best, cut, lam, off, scale = _search_one(grouped.upper, *rest, part(progress, 0, 2), MANY_TOLERANCE)
    low, _, _, _, _ = _search_one(grouped.lower, *rest, part(progress, 1, 2), MANY_TOLERANCE)
    value = best.value + grouped.above
    best = Optimum(best.price, value, min(low.lower - grouped.below, value), best.slack)
    return best, cut, lam, off, scale, grouped.priors


def _search_one(
    problem: Problem,
    prices: str,
    charge_all: bool,
    cap: int | None,
    flight: int | None,
    progress: Progress | None,
    tolerance: float = SCALAR_TOLERANCE,
) -> tuple[Optimum, Cut, Floats, float, float]:
    search = BoundSearch(problem, charge_all, cap, flight, progress, tolerance)
    best, cut, lam = search.run(prices)
    off = error_budget(problem, cut.depth, search.steps) + 8.0 * EPS * abs(best.value)
    return best, cut, lam, off, search.scale(best.value)


def _holds(value: float, lower: float, price: float, prices: Floats) -> bool:
    """Whether the theorem covers the result: numbers throughout, no price below 0, no feasible plan above the bound."""
    paid = np.append(prices, price)
    return bool(np.isfinite([value, lower]).all() and np.all((paid >= 0.0) & np.isfinite(paid)) and lower <= value)


def _nothing_to_buy(problem: Problem) -> Searched:
    roots = ((counts_of(some), stack_classes(some, 1, ENDLESS).reward[:, 0]) for some in chunks(problem.classes))
    value = sum(float(counts @ reward) for counts, reward in roots)
    off = error_budget(problem, 0, 0) + 8.0 * EPS * abs(value)
    return Optimum(0.0, value, value, 0.0), Cut(1, 1, 1), np.zeros(0), off, abs(value), 0
