"""The best common price: minimise B(lam) = sum_x V_x(lam) + lam E[arrivals], convex in lam.

Every evaluation gives a value and a slope B' = E[arrivals] - N(lam), hence a tangent. The two tangents around the
minimum meet at a point that (a) is below min B by convexity and (b) is the value of a feasible occupation measure: the
mixture of the two maximising policies that buys E[arrivals] labels in all. So the search carries its own primal side.
Each round evaluates several prices in one pass over the classes: where the tangents meet, and around it.
Guarantee: any price gives a valid bound; ``lower`` <= min B <= ``value``. Cost: about 5 rounds of 5 prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from nextlabel.solve.progress import Progress
from nextlabel.solve.relaxed import RelaxedProblem

ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Tangent:
    """B at one price and its slope there."""

    price: float
    value: float
    slope: float
    slack: float

    def at(self, price: float) -> float:
        """Height of the tangent over ``price``."""
        return self.value + self.slope * (price - self.price)


@dataclass(frozen=True, slots=True)
class ScalarOptimum:
    """Best price found, B there, a lower bound on min B, and the truncation slack of the prices it rests on."""

    price: float
    value: float
    lower: float
    slack: float


def minimise(
    relaxed: RelaxedProblem,
    charged: float,
    top: float,
    tolerance: float,
    guess: float | None = None,
    progress: Progress | None = None,
) -> ScalarOptimum:
    """Search [0, top]; stop when value - lower is within the tolerance. ``guess`` is a price near the best one.

    ``tolerance`` is a share of the value, or of all that labels could add if that is more.
    """
    left: Tangent | None = None
    right: Tangent | None = None
    best: Tangent | None = None
    lower = -inf
    floor = top * relaxed.problem.tasks
    if guess is None:
        prices = [top * x for x in (0.0, 0.02, 0.06, 0.15, 0.4, 1.0)]
    else:
        prices = [guess * x for x in (0.98, 1.0, 1.02)]
    reach = 0.1
    for step in range(ROUNDS):
        sums = relaxed.at(prices, _part(progress, step))
        for p, price in enumerate(prices):
            height = float(sums.value[p]) + price * charged
            tangent = Tangent(price, height, charged - float(sums.labels[p]), float(sums.slack[p]))
            if best is None or tangent.value < best.value:
                best = tangent
            if tangent.slope < 0 and (left is None or price > left.price):
                left = tangent
            if tangent.slope >= 0 and (right is None or price < right.price):
                right = tangent
        assert best is not None
        if right is None:
            assert left is not None
            prices = [min(top, left.price * (1.0 + reach) + 1e-3 * reach * top)]
            reach *= 4.0
            continue
        if left is None:
            if right.price == 0.0:  # labels are free and still fewer are wanted than arrive
                lower = best.value
                break
            prices = [right.price * max(0.0, 1.0 - reach)]
            reach *= 4.0
            continue
        meet = _meet(left, right)
        lower = min(left.at(meet), best.value)
        if best.value - lower <= tolerance * max(abs(best.value), floor) or right.price - left.price <= 1e-15 * top:
            if left.slack <= tolerance * max(abs(best.value), floor) or left.price >= 0.98 * meet:
                break
            prices = [0.98 * meet]  # a tangent too far to the left, where lattices are too shallow, proves nothing
            continue
        prices = _next_prices(left.price, right.price, meet)
    assert best is not None
    if progress is not None:
        progress(1.0)
    slack = max(t.slack for t in (best, left, right) if t is not None)
    return ScalarOptimum(best.price, best.value, lower, slack)


def _part(progress: Progress | None, step: int) -> Progress | None:
    """Progress within round ``step`` as a share that always moves towards 1."""
    if progress is None:
        return None
    return lambda fraction: progress(1.0 - 0.5 ** (step + fraction))


def _meet(left: Tangent, right: Tangent) -> float:
    """Price at which two tangents cross, kept inside their bracket."""
    rise = right.slope - left.slope
    cross = (left.value - left.slope * left.price - right.value + right.slope * right.price) / rise
    return min(max(cross, left.price), right.price)


def _next_prices(lo: float, hi: float, meet: float) -> list[float]:
    """The crossing; while the bracket is wide also two prices close around it and two that halve what lies beyond."""
    if hi - lo <= 0.05 * hi and lo < meet < hi:
        return [meet]
    near = 0.02 * (hi - lo)
    around = (max(meet - near, 0.5 * (lo + meet)), min(meet + near, 0.5 * (hi + meet)))
    grid = {meet, *around, 0.5 * (lo + meet), 0.5 * (hi + meet)}
    return sorted(p for p in grid if lo < p < hi) or [0.5 * (lo + hi)]
