"""The one search over a common price: minimise S(lam) + lam N, convex in lam, by tangents.

========= ======= ==================================================================================
symbol    code    meaning
========= ======= ==================================================================================
lam       prices  prices at which S is known, falling
S(lam)    sums[0] sum over tasks of single-task values: convex, not increasing
L(lam)    sums[1] labels bought, -dS/dlam
e(lam)    sums[2] S may be too high by that much, from truncation
N         N       labels that may be bought: E[arrivals], or what is left
========= ======= ==================================================================================

Every evaluation gives a tangent. Around the minimum at N lie the highest price that buys more than N labels and the
next one above it. Their tangents cross at a point that (a) is below the minimum by convexity and (b) is the value of a
feasible occupation measure: the mixture of the two maximising policies that buys N labels in all. So the search carries
its own primal side, and the lines it has found bound the minimum for every other N as well.

    min over lam of S(lam) + lam N   is between   the tangents' crossing at N (less e)   and   the least line at N.

Each round evaluates some prices in one pass over the classes: where the tangents cross, and around it.
Guarantee: ``value`` is never below the minimum, ``lower`` never above it, whatever prices are tried.
Cost: from a coarse grid about 5 rounds of 5 prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.solve.progress import Progress

#: Rounds at most.
ROUNDS = 16
#: The first prices, as shares of the highest price or of a guess.
COARSE = np.array([1.0, 0.4, 0.15, 0.06, 0.02, 0.0])
NEAR = np.array([1.02, 1.0, 0.98])
#: Fine grids: the lowest price as a share of the highest, without and with a guess; prices around the guess, and how
#: far they go as a share of it.
LOWEST, LOWEST_OF_GUESS = 1e-5, 1e-3
AROUND, REACH = 12, 0.1


class PriceFunction(Protocol):
    """What is searched: S, L and e at prices that fall; nobody buys above ``top``."""

    top: float
    tasks: int

    def at(self, prices: Floats, progress: Progress | None = None) -> Floats:
        """(3, P) S, L and e."""
        ...


@dataclass(frozen=True, slots=True)
class Optimum:
    """Best price found, the value there, a lower bound on the minimum, and the truncation that both rest on."""

    price: float
    value: float
    lower: float
    slack: float


@dataclass(frozen=True, slots=True)
class PriceLines:
    """S at some prices; ``scale`` is what tolerances are shares of."""

    prices: Floats
    sums: Floats
    scale: float

    def value(self, N: Floats) -> Floats:
        """The least line at each N."""
        lines = self.sums[0][:, None] + self.prices[:, None] * N.ravel()
        return np.asarray(lines.min(axis=0).reshape(N.shape), dtype=np.float64)

    def price(self, N: Floats) -> Floats:
        """The price of the least line at each N: of several the lowest, the slope of the curve to the right of N."""
        lines = self.sums[0][:, None] + self.prices[:, None] * N.ravel()
        least = lines <= lines.min(axis=0) + 1e-12 * self.scale
        return np.asarray(np.where(least, self.prices[:, None], np.inf).min(axis=0).reshape(N.shape), dtype=np.float64)

    def optimum(self, N: float) -> Optimum:
        """The minimum at N as far as it is known."""
        heights = self.sums[0] + self.prices * N
        best = int(np.argmin(heights))
        left, right = self._bracket(N)
        value = float(heights[best])
        slack = float(self.sums[2, [best, left, right]].max())
        return Optimum(float(self.prices[best]), value, min(self._crossing(N)[1], value), slack)

    def more(self, prices: Floats, sums: Floats) -> PriceLines:
        """The same with more lines."""
        all_prices = np.concatenate([self.prices, prices])
        falling = np.argsort(-all_prices, kind="stable")
        return PriceLines(all_prices[falling], np.concatenate([self.sums, sums], axis=1)[:, falling], self.scale)

    def corners(self, least: float) -> Floats:
        """Prices at which neighbouring tangents cross deeper than this share below the lines that are known."""
        S, L, lam = self.sums[0], self.sums[1], self.prices
        bend = L[1:] - L[:-1]
        step = lam[:-1] - lam[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (S[:-1] - S[1:] + L[:-1] * lam[:-1] - L[1:] * lam[1:]) / (L[:-1] - L[1:])
            depth = bend * (lam[:-1] - at) * (at - lam[1:]) / step  # of the crossing below the chord
        good = (bend > 1e-12) & (step > 0) & (depth > least * self.scale)
        return np.asarray(np.clip(at[good], lam[1:][good], lam[:-1][good]), dtype=np.float64)

    def next_prices(self, N: float, tolerance: float, top: float, reach: float) -> Floats:
        """Prices to try for a better minimum at N; none when it is good enough. ``reach``: how far to look for it."""
        left, right = self._bracket(N)
        lo, hi = float(self.prices[left]), float(self.prices[right])
        if left == right:
            if self.sums[1, left] > N:  # every price tried is too low
                return np.array([min(top, lo * (1.0 + reach) + 1e-3 * reach * top)]) if lo < top else np.empty(0)
            return np.array([lo * max(0.0, 1.0 - reach)]) if lo > 0.0 else np.empty(0)
        meet, height = self._crossing(N)
        enough = tolerance * self.scale
        if float((self.sums[0] + self.prices * N).min()) - height > enough and hi - lo > 1e-14 * hi:
            return _around(lo, hi, meet)
        if self.sums[2, left] > enough and lo < 0.98 * meet:
            return np.array([0.98 * meet])  # a tangent far to the left, where lattices are too shallow, proves nothing
        return np.empty(0)

    def _bracket(self, N: float) -> tuple[int, int]:
        """Lines around the minimum at N: the first price that buys more than N labels, and the one above it.

        One and the same line if all prices buy more than N (the highest) or none does (the lowest).
        """
        more = np.flatnonzero(self.sums[1] > N)
        left = int(more[0]) if len(more) else len(self.prices) - 1
        return left, max(left - 1, 0) if len(more) else left

    def _crossing(self, N: float) -> tuple[float, float]:
        """Price and height at which the two tangents around the minimum cross."""
        left, right = self._bracket(N)
        lam, S, L = self.prices, self.sums[0], self.sums[1]
        bend = float(L[left] - L[right])
        if left == right or bend <= 0.0:
            return float(lam[left]), float(S[left] + lam[left] * N)
        at = float((S[left] + L[left] * lam[left] - S[right] - L[right] * lam[right]) / bend)
        at = min(max(at, float(lam[left])), float(lam[right]))
        return at, float(S[left] + lam[left] * N + (N - L[left]) * (at - lam[left]))


def minimise(
    function: PriceFunction, N: float, first: Floats, tolerance: float, progress: Progress | None = None
) -> PriceLines:
    """Lines at the ``first`` prices, which fall, and at others until the minimum at N is known to the tolerance.

    ``tolerance`` is a share of the value, or of all that labels could add if that is more.
    """
    return refine(function, N, trace(function, first, _part(progress, 0)), tolerance, progress)


def trace(function: PriceFunction, first: Floats, progress: Progress | None = None) -> PriceLines:
    """Lines at these prices, which fall."""
    sums = function.at(first, progress)
    return PriceLines(first, sums, max(float(np.abs(sums[0]).min()), function.top * function.tasks))


def refine_corners(function: PriceFunction, lines: PriceLines, rounds: int, least: float) -> PriceLines:
    """More lines where neighbouring tangents cross: S is piecewise linear, and there it has a corner, or nearly."""
    for _ in range(rounds):
        lines = _with(lines, function, lines.corners(least), None)
    return lines


def refine(
    function: PriceFunction, N: float, lines: PriceLines, tolerance: float, progress: Progress | None = None
) -> PriceLines:
    """More lines around the minimum at N, until it is known to the tolerance."""
    reach = REACH
    for step in range(1, ROUNDS):
        left, right = lines._bracket(N)
        wanted = lines.next_prices(N, tolerance, function.top, reach)
        if len(wanted) == 0:
            break
        reach *= 4.0 if left == right else 1.0
        lines = _with(lines, function, wanted, _part(progress, step))
    if progress is not None:
        progress(1.0)
    return lines


def first_prices(top: float, guess: float | None = None) -> Floats:
    """A few prices to begin with: over the whole range, or close around a guess."""
    return top * COARSE if guess is None else guess * NEAR


def fine_prices(top: float, count: int, guess: float = 0.0) -> Floats:
    """``count`` prices evenly spaced in their logarithm, 0, and some around a guess."""
    if top <= 0:
        return np.zeros(1)
    lowest = LOWEST if guess == 0.0 else min(LOWEST_OF_GUESS, 0.1 * guess / top)
    grid = np.append(top * np.geomspace(1.0, lowest, count), 0.0)
    if guess > 0:
        grid = np.sort(np.concatenate([grid, guess * (1.0 + REACH * np.linspace(-1.0, 1.0, AROUND) ** 3)]))[::-1]
    return grid


def _with(lines: PriceLines, function: PriceFunction, prices: Floats, progress: Progress | None) -> PriceLines:
    return lines.more(prices, function.at(prices, progress)) if len(prices) else lines


def _part(progress: Progress | None, step: int) -> Progress | None:
    """Progress within round ``step`` as a share that always moves towards 1."""
    if progress is None:
        return None
    return lambda fraction: progress(1.0 - 0.5 ** (step + fraction))


def _around(lo: float, hi: float, meet: float) -> Floats:
    """The crossing; while the bracket is wide also two prices close around it and two that halve what lies beyond."""
    if hi - lo <= 0.05 * hi and lo < meet < hi:
        return np.array([meet])
    near = 0.02 * (hi - lo)
    around = (max(meet - near, 0.5 * (lo + meet)), min(meet + near, 0.5 * (hi + meet)))
    wanted = {meet, *around, 0.5 * (lo + meet), 0.5 * (hi + meet)}
    return np.array(sorted((p for p in wanted if lo < p < hi), reverse=True) or [0.5 * (lo + hi)])
