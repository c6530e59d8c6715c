"""Arrival rates that vary in time: constant between given moments, repeated if they have a period.

====== ========= ============================================================
symbol code      meaning
====== ========= ============================================================
t      start     time from the start of the campaign at which a piece begins
r(t)   rate      workers per unit of time from then on
--     period    time after which the pieces start again (inf: never)
====== ========= ============================================================

Day and night: ``PiecewiseRate(((0, 2.0), (16, 0.2)), period=24)``. Solvers count time backwards, tau = T - t.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite
from numbers import Real
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError

HINT = "Give pairs of a time and a rate, the first at time 0, e.g. arrival_rate = [[0, 2.0], [16, 0.2]]."
#: Pieces up to the horizon.
MOST_PIECES = 10_000
#: A piece shorter than this share of the horizon is rounding of a period, and its neighbour takes it over.
SLIVER = 1e-12


@dataclass(frozen=True, slots=True)
class PiecewiseRate:
    """``pieces`` of (start, rate), the first from time 0 on."""

    pieces: tuple[tuple[float, float], ...]
    period: float = inf

    def __post_init__(self) -> None:
        pieces = []
        given: Any = self.pieces
        for piece in given:
            pair = tuple(piece) if isinstance(piece, list | tuple) else ()
            good = len(pair) == 2 and all(isinstance(x, Real) and not isinstance(x, bool) for x in pair)
            if not good or not all(isfinite(float(x)) for x in pair) or float(pair[1]) < 0:
                raise ProblemError(f"piece {piece!r} of the arrival rate is not a time and a rate.", HINT)
            pieces.append((float(pair[0]), float(pair[1])))
        starts = [start for start, _ in pieces]
        if not pieces or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
            raise ProblemError("the pieces of the arrival rate do not rise from time 0.", HINT)
        if not any(rate > 0 for _, rate in pieces):
            raise ProblemError("the arrival rate is 0 at all times, so no worker ever comes.", HINT)
        every: Any = self.period
        period = float(every) if not isinstance(every, bool) and isinstance(every, Real) else 0.0
        if not period > starts[-1]:
            raise ProblemError(
                f"the period {self.period!r} of the arrival rate ends before its last piece starts, at {starts[-1]:g}.",
                "Give a longer period, e.g. 24 for hours of a day, or leave it out.",
            )
        object.__setattr__(self, "pieces", tuple(pieces))
        object.__setattr__(self, "period", period)

    @property
    def peak(self) -> float:
        """The largest rate."""
        return max(rate for _, rate in self.pieces)

    def until(self, horizon: float) -> tuple[Floats, Floats]:
        """Starts and rates of the pieces up to a finite ``horizon``; neighbours of one rate are joined."""
        rounds = 1 if not isfinite(self.period) else int(np.ceil(horizon / self.period))
        if rounds * len(self.pieces) > MOST_PIECES:
            raise ProblemError(
                f"the arrival rate has {rounds * len(self.pieces):,} pieces up to the horizon.",
                f"Give a longer period or a shorter horizon; at most {MOST_PIECES:,} pieces are allowed.",
            )
        starts: list[float] = []
        rates: list[float] = []
        for k in range(rounds):
            for start, rate in self.pieces:
                at = start + (k * self.period if k > 0 else 0.0)
                if at >= horizon * (1.0 - SLIVER):
                    continue
                if starts and at - starts[-1] <= SLIVER * horizon:
                    at = starts.pop()
                    rates.pop()
                if not rates or rate != rates[-1]:
                    starts.append(at)
                    rates.append(rate)
        return np.array(starts), np.array(rates)

    def mean_arrivals(self, horizon: float) -> float:
        """Expected workers up to a finite ``horizon``."""
        starts, rates = self.until(horizon)
        return float(rates @ np.diff(np.append(starts, horizon)))

    def describe(self) -> str:
        """The rate in words."""
        every = "" if not isfinite(self.period) else f", every {self.period:g}"
        return f"arrival rate {', '.join(f'{rate:g} from {start:g}' for start, rate in self.pieces)}{every}"
