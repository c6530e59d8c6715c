"""A convex function of a price, known at some prices: the lines S(lam) + lam N, and their least value for every N.

========= ======= ==================================================================================
symbol    code    meaning
========= ======= ==================================================================================
lam       prices  prices at which S is known, falling, the last one 0
S(lam)    sums[0] convex, not increasing
L(lam)    sums[1] -dS/dlam
e(lam)    sums[2] S may be too high by that much
========= ======= ==================================================================================

    min over lam of S(lam) + lam N   is between   the tangents' crossing at N (less e)   and   the least line at N.

Guarantee: ``value`` is never below the minimum, ``lower`` never above it. Cost: ``trace`` asks for a grid of prices,
for the corners at which neighbouring tangents meet, then for some five more around the minimum at one N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nextlabel.arrays import Floats

#: The lowest price of the grid as a share of the highest, without and with a guess; rounds of the search at one N.
LOWEST, LOWEST_OF_GUESS, ROUNDS = 1e-5, 1e-3, 12
#: Prices close around a guess: so many, and how far they go as a share of it.
AROUND, REACH = 12, 0.1
#: Corners are refined where that may lower the curve by at least this share.
CORNER = 1e-6


class Sums(Protocol):
    """What is traced: S, L and e at prices that fall; nobody buys above ``top``."""

    top: float
    tasks: int

    def at(self, prices: Floats) -> Floats:
        """(3, P) S, L and e."""
        ...


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

    def price(self, N: float) -> float:
        """The price of the least line at N: of several the lowest, the slope of the curve to the right of N."""
        lines = self.sums[0] + self.prices * N
        return float(self.prices[lines <= lines.min() + 1e-12 * self.scale][-1])

    def lower(self, N: float) -> float:
        """A lower bound on the minimum at N."""
        left, right = self._bracket(N)
        return self._crossing(N)[1] - float(max(self.sums[2, left], self.sums[2, right]))

    def excess(self, N: float) -> float:
        """How much too high S may be where it counts at N."""
        left, right = self._bracket(N)
        return float(max(self.sums[2, left], self.sums[2, right]))

    def more(self, prices: Floats, sums: Floats) -> PriceLines:
        """The same with more lines."""
        all_prices = np.concatenate([self.prices, prices])
        falling = np.argsort(-all_prices, kind="stable")
        return PriceLines(all_prices[falling], np.concatenate([self.sums, sums], axis=1)[:, falling], self.scale)

    def corners(self) -> Floats:
        """Prices at which neighbouring tangents meet far enough below the lines that are known."""
        S, L, lam = self.sums[0], self.sums[1], self.prices
        bend = L[1:] - L[:-1]
        step = lam[:-1] - lam[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (S[:-1] - S[1:] + L[:-1] * lam[:-1] - L[1:] * lam[1:]) / (L[:-1] - L[1:])
            depth = bend * (lam[:-1] - at) * (at - lam[1:]) / step  # of the crossing below the chord
        good = (bend > 0) & (step > 0) & (depth > CORNER * self.scale)
        return np.asarray(np.clip(at[good], lam[1:][good], lam[:-1][good]), dtype=np.float64)

    def next_prices(self, N: float, tolerance: float) -> Floats:
        """Prices to try for a better minimum at N; none when it is good enough."""
        left, right = self._bracket(N)
        hi, lo = float(self.prices[right]), float(self.prices[left])
        meet, height = self._crossing(N)
        best = float((self.sums[0] + self.prices * N).min())
        enough = tolerance * self.scale
        if best - height > enough and hi - lo > 1e-14 * hi:
            near = 0.02 * (hi - lo)
            wanted = {meet, max(meet - near, 0.5 * (lo + meet)), min(meet + near, 0.5 * (hi + meet))}
        elif self.sums[2, left] > enough and lo < 0.98 * meet:
            wanted = {0.98 * meet}  # a tangent far to the left, where lattices are too shallow, proves nothing
        else:
            wanted = set()
        return np.array(sorted((p for p in wanted if lo < p < hi), reverse=True))

    def _bracket(self, N: float) -> tuple[int, int]:
        """Lines around the minimum at N: the first price that wants more than N labels, and the one above it."""
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


def trace(sums: Sums, N: float, count: int, tolerance: float, refinements: int, guess: float = 0.0) -> PriceLines:
    """Lines at a grid of ``count`` prices (and around ``guess``), at its corners, and around the minimum at N."""
    lowest = LOWEST if guess == 0.0 else min(LOWEST_OF_GUESS, 0.1 * guess / sums.top)
    grid = np.append(sums.top * np.geomspace(1.0, lowest, count), 0.0) if sums.top > 0 else np.zeros(1)
    if guess > 0:
        close = guess * (1.0 + REACH * np.linspace(-1.0, 1.0, AROUND) ** 3)
        grid = np.sort(np.concatenate([grid, close]))[::-1]
    first = sums.at(grid)
    lines = PriceLines(grid, first, max(float(np.abs(first[0]).min()), sums.top * sums.tasks))
    for _ in range(refinements):
        lines = _with(lines, sums, lines.corners())
    for _ in range(ROUNDS):
        wanted = lines.next_prices(N, tolerance)
        if len(wanted) == 0:
            break
        lines = _with(lines, sums, wanted)
    return lines


def _with(lines: PriceLines, sums: Sums, prices: Floats) -> PriceLines:
    return lines.more(prices, sums.at(prices)) if len(prices) else lines
