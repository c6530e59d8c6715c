"""How well times are exponential: the rate, its intervals, and the distance from the fitted curve.

======== ========= ======== ======================================================================================
symbol   code      shape    meaning
======== ========= ======== ======================================================================================
x        values    (n,)     times between events, or how long something took, rising
r        rate      --       n / sum x, the rate of most likelihood
cv       cv        --       standard deviation over mean; 1 for an exponential, 0 for a clock
D        distance  --       sup |F_n(x) - F(x)|, F(x) = 1 - exp(-r x): Kolmogorov and Smirnov's
g        grid      --       the clock's step (a second, a minute ...) if all times are whole numbers of it, else 0
======== ========= ======== ======================================================================================

Under the model 2 r sum x is chi-square with 2n degrees of freedom: (lower, upper) is exact. The second interval,
r exp(-+ 1.96 cv / sqrt n), holds for large n whatever the distribution, as long as the times are independent.
A clock that shows whole steps g turns x into k g, and D is then measured from what it makes of an exponential,

    P(k' <= k) = 1 - (exp(-q k) - exp(-q (k + 1))) / q,     q = r g,

where the first of the two readings is anywhere between two steps. The p-value is Lilliefors': the rate is estimated, so
D is compared with that of samples drawn from the fitted exponential, each with its own rate, and read off the same
clock; gaps ``in_a_row`` share its readings. Guarantee: exact up to the Monte Carlo error, sqrt(p (1 - p) / draws); of
more than TESTED times as many are drawn without replacement for the test, because with a million of them the smallest
difference is 'significant'. Distance and cv are those of all times.
Cost: a sort of the times; draws sorts of at most TESTED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from nextlabel.arrays import Floats
from nextlabel.prose import percent

DRAWS, TESTED = 999, 2000
#: Steps that clocks are seen to have, in seconds, and how close to one a time has to be.
GRIDS, CLOSE = (86400.0, 3600.0, 60.0, 1.0), 1e-3
#: A fit is called into doubt below this p-value.
DOUBT = 0.05
NORMAL = 1.959963984540054


@dataclass(frozen=True, slots=True, eq=False)
class ExponentialFit:
    """An exponential and the times it was fitted to, in the user's unit."""

    values: Floats
    rate: float
    lower: float
    upper: float
    robust: tuple[float, float]
    cv: float
    distance: float
    p_value: float
    tested: int
    grid: float

    def __len__(self) -> int:
        return len(self.values)

    @property
    def doubtful(self) -> bool:
        """Whether an exponential is unlikely to have made these times."""
        return self.p_value < DOUBT

    @property
    def zeros(self) -> float:
        """Share of times that are 0."""
        return float((self.values <= 0).mean())

    def sentence(self, what: str) -> str:
        """How well it fits ``what``, a plural, in plain English."""
        apart = f"the curves are at most {percent(self.distance)} apart, p {shown_p(self.p_value)}"
        if not self.doubtful:
            return f"{what} look exponential: cv {self.cv:.2f} (exponential: 1), {apart}."
        # of exponential times the cv has a standard error of 1 / sqrt n
        sure = 2.0 / np.sqrt(len(self))
        if abs(self.cv - 1.0) <= sure:
            return f"{what} are as spread as exponential ones but not shaped like them: cv {self.cv:.2f}, {apart}."
        how = "less" if self.cv < 1.0 else "more"
        return f"{what} are {how} spread than exponential: cv {self.cv:.2f} (exponential: 1), {apart}."

    def as_dict(self) -> dict[str, Any]:
        """The numbers, without the times."""
        return {
            "count": len(self),
            "rate": self.rate,
            "interval": [self.lower, self.upper],
            "robust_interval": list(self.robust),
            "mean": 1.0 / self.rate,
            "cv": self.cv,
            "ks_distance": self.distance,
            "p_value": self.p_value,
            "tested": self.tested,
            "share_of_zeros": self.zeros,
            "exponential": not self.doubtful,
        }


def fit_exponential(
    seconds: Floats, unit: float = 1.0, seed: int = 0, draws: int = DRAWS, *, in_a_row: bool = False
) -> ExponentialFit:
    """Fit at least two times, in seconds and not all 0; rates are per ``unit`` seconds."""
    x = np.sort(np.asarray(seconds, dtype=np.float64)) / unit
    n, total = len(x), float(x.sum())
    rate = n / total
    cv = float(x.std(ddof=1) / x.mean())
    wide = float(np.exp(NORMAL * cv / np.sqrt(n)))
    grid = grid_of(seconds) / unit
    rng = np.random.default_rng(seed)
    part = x if n <= TESTED else np.sort(rng.choice(x, TESTED, replace=False))
    if part[-1] <= 0:
        part = x[-TESTED:]  # hardly a time is not 0
    step = grid / float(part.mean())
    D = float(distances(part[None], grid)[0])
    drawn = distances(_draw(rng, draws, len(part), step, in_a_row and n <= TESTED), step)
    return ExponentialFit(
        values=x,
        rate=rate,
        lower=float(chdtri(2 * n, 0.975)) / (2 * total),
        upper=float(chdtri(2 * n, 0.025)) / (2 * total),
        robust=(rate / wide, rate * wide),
        cv=cv,
        distance=float(distances(x[None], grid)[0]),
        p_value=float((1 + (drawn >= D * (1 - 1e-12)).sum()) / (1 + draws)),
        tested=len(part),
        grid=grid,
    )


def distances(x: Floats, grid: float = 0.0) -> Floats:
    """D of each row of rising times, on a clock with this step; 1 where all of them are 0."""
    n = x.shape[1]
    mean = x.mean(axis=1, keepdims=True)
    scale = np.where(mean > 0, mean, 1.0)
    if grid > 0:
        k = np.rint(x / grid)
        at, before = _on_clock(k, grid / scale), _on_clock(k - 1.0, grid / scale)
    else:
        at = before = -np.expm1(-x / scale)
    i = np.arange(n)
    D = np.maximum((i + 1) / n - at, before - i / n).max(axis=1)
    return np.asarray(np.where(mean[:, 0] > 0, D, 1.0))


def _on_clock(k: Floats, q: Floats) -> Floats:
    """P(k' <= k) of the docstring."""
    return np.asarray(np.where(k < 0, 0.0, 1.0 + np.exp(-q * np.maximum(k, 0.0)) * np.expm1(-q) / q))


def grid_of(seconds: Floats) -> float:
    """The largest step of a clock that all times are whole numbers of, 0 if there is none."""
    for step in GRIDS:
        if np.abs(seconds / step - np.rint(seconds / step)).max() * step < CLOSE:
            return step
    return 0.0


def shown_p(p: float) -> str:
    """A p-value, never below one over the number of draws."""
    return "≤ 0.001" if p <= 0.001 else f"= {p:.3f}"


def _draw(rng: np.random.Generator, draws: int, n: int, grid: float, in_a_row: bool) -> Floats:
    """Rows of n rising exponential times of mean 1, as a clock with this step shows them."""
    x = rng.exponential(size=(draws, n))
    if grid > 0 and in_a_row:
        x = np.diff(np.floor(np.cumsum(x, axis=1) / grid), axis=1, prepend=0.0) * grid
    elif grid > 0:
        # read at two moments, the first anywhere between two steps of the clock
        x = np.floor(rng.random((draws, n)) + x / grid) * grid
    x.sort(axis=1)
    return x
