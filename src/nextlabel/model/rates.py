"""Rates from recorded times: how often workers come, how fast they are, and how far both are from the model's.

======== ============= ==========================================================================================
symbol   code          meaning
======== ============= ==========================================================================================
lambda   arrivals      workers who take a task, per unit of time: from the gaps between moments of assignment
mu       durations     labels that come in per unit of time and task in flight: from submitted_at - assigned_at
--       active        lambda without the pauses
--       pauses        gaps longer than (median gap / ln 2) ln(gaps / PAUSE): nights, weekends, an empty account
======== ============= ==========================================================================================

Of exponential gaps one in a set would count as a pause with chance PAUSE; the median keeps pauses from hiding
themselves. Only labels that count are arrivals: a skipped task or a second answer is none. Where moments of assignment
are not known those of submission stand in for them: in the long run they come at the same rate. Labels still out at the
end are not in the file, so that durations as long as the whole campaign are missed.

How well times are exponential: the rate, its intervals, and the distance from the fitted curve.

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

from dataclasses import asdict, dataclass
from math import log
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import chdtri

from nextlabel.arrays import Floats
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable, as_label_table
from nextlabel.wording import counted, percent, tallied

DRAWS, TESTED = 999, 2000
#: Units of time by their names: how many seconds they are, and the word for one. Clocks are seen to have these steps.
Unit = Literal["s", "min", "hour", "day"]
UNITS = {"s": (1.0, "second"), "min": (60.0, "minute"), "hour": (3600.0, "hour"), "day": (86400.0, "day")}
#: How close to a step of the clock a time has to be, and the chance that an exponential gap counts as a pause.
CLOSE, PAUSE = 1e-3, 0.01
#: Fewer arrivals than this say nothing.
LEAST = 3
HINT = "Name the columns with --assigned-column and --submitted-column."
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
    for step, _ in reversed(UNITS.values()):
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


@dataclass(frozen=True, slots=True)
class Pauses:
    """Gaps that are too long to be chance, in the user's unit; ``share``: of the time from first to last arrival."""

    count: int
    longer_than: float
    longest: float
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Arrival and completion rate per ``unit``, how well they fit, and what could not be used."""

    unit: Unit
    arrivals: ExponentialFit
    arrivals_from: Literal["assigned_at", "submitted_at"]
    pauses: Pauses
    active: ExponentialFit | None
    durations: ExponentialFit | None
    without_time: int
    backwards: int

    @property
    def arrival_rate(self) -> float:
        """Workers per unit of time, pauses included."""
        return self.arrivals.rate

    @property
    def completion_rate(self) -> float | None:
        """Labels per unit of time and task in flight; None where durations are not known."""
        return None if self.durations is None else self.durations.rate

    def sentences(self) -> list[str]:
        """Rates, fits and what was left out, in plain English."""
        out = [f"Arrivals: {self._rate(self.arrivals)}, from {counted(len(self.arrivals), 'gap')}."]
        if self.arrivals_from == "submitted_at":
            out.append("Arrivals are counted when labels came in, because it is not known when tasks were assigned.")
        out += self._fit("Gaps between arrivals", self.arrivals)
        out += self._pauses()
        if self.durations is None:
            out.append("The completion rate cannot be told: it needs the times of assignment and of submission.")
        else:
            out.append(f"Completions: {self._rate(self.durations)}, from {counted(len(self.durations), 'duration')}.")
            out += self._fit("Durations", self.durations)
        return out + tallied(
            (self.backwards, "label", "submitted before it was assigned left out of the durations."),
            (self.without_time, "label", "without these times left out."),
        )

    def as_dict(self) -> dict[str, Any]:
        """The numbers, without the times."""
        return {
            "unit": self.unit,
            "arrival_rate": self.arrival_rate,
            "completion_rate": self.completion_rate,
            "arrivals_from": self.arrivals_from,
            "arrivals": self.arrivals.as_dict(),
            "active": None if self.active is None else self.active.as_dict(),
            "durations": None if self.durations is None else self.durations.as_dict(),
            "pauses": {"share_of_time" if key == "share" else key: x for key, x in asdict(self.pauses).items()},
            "labels_without_time": self.without_time,
            "submitted_before_assigned": self.backwards,
        }

    def _rate(self, fit: ExponentialFit) -> str:
        lower, upper = fit.robust if fit.doubtful else (fit.lower, fit.upper)
        whatever = ", whatever their distribution" if fit.doubtful else ""
        return f"{fit.rate:.4g} per {UNITS[self.unit][1]} (95% interval {lower:.4g} to {upper:.4g}{whatever})"

    def _fit(self, what: str, fit: ExponentialFit) -> list[str]:
        out = [fit.sentence(what)]
        if fit.grid > 0:
            step = next(name for step, name in UNITS.values() if abs(step / UNITS[self.unit][0] - fit.grid) < 1e-9)
            out.append(f"{what} are in whole {step}s, which the test takes into account.")
        elif fit.zeros > 0:
            out.append(f"{percent(fit.zeros)} of them are 0: several labels of one moment, as batches have them.")
        return out

    def _pauses(self) -> list[str]:
        if self.active is None:
            return []
        name = UNITS[self.unit][1]
        return [
            f"{counted(self.pauses.count, 'gap')} longer than {self.pauses.longer_than:.3g} {name}s (the longest "
            f"{self.pauses.longest:.3g}) {'holds' if self.pauses.count == 1 else 'hold'} {percent(self.pauses.share)} "
            f"of the time, as nights would; between them arrivals are {self._rate(self.active)}.",
            *self._fit("Gaps between arrivals, pauses left out,", self.active),
        ]


def estimate_rates(labels: Any, *, unit: Unit = "s", seed: int = 0, draws: int = DRAWS) -> Rates:
    """Arrival and completion rate of ``labels`` with times (a path, a data frame or a table), per ``unit`` of time."""
    table = as_label_table(labels)
    if unit not in get_args(Unit):
        raise InputError(f"unit {unit!r} is not known.", f"Use one of {', '.join(get_args(Unit))}.")
    if table.report.times_unread:
        raise InputError(table.report.times_unread, HINT)
    scale = UNITS[unit][0]
    source, times = _moments(table)
    gaps = np.diff(np.sort(times))
    if not (gaps > 0).any():
        raise InputError("all labels have the same time.", HINT)
    limit = float(np.median(gaps[gaps > 0])) / log(2.0) * log(len(gaps) / PAUSE)
    long = gaps > limit
    pauses = Pauses(int(long.sum()), limit / scale, float(gaps.max()) / scale, float(gaps[long].sum() / gaps.sum()))
    some = bool(long.any()) and int((gaps[~long] > 0).sum()) >= LEAST
    took, backwards = _durations(table)
    return Rates(
        unit=unit,
        arrivals=fit_exponential(gaps, scale, seed, draws, in_a_row=True),
        arrivals_from=source,
        pauses=pauses,
        active=fit_exponential(gaps[~long], scale, seed, draws, in_a_row=True) if some else None,
        durations=None if took is None else fit_exponential(took, scale, seed + 1, draws),
        without_time=len(table) - len(times),
        backwards=backwards,
    )


def _moments(table: LabelTable) -> tuple[Literal["assigned_at", "submitted_at"], Floats]:
    """Moments of arrival: of the assignments, unless more submissions are known."""
    assigned, submitted = (
        np.empty(0) if times is None else times[np.isfinite(times)] for times in (table.assigned_at, table.submitted_at)
    )
    known = max(len(assigned), len(submitted))
    if known < LEAST:
        raise InputError(f"{known} of {counted(len(table), 'label')} have a time, and rates need {LEAST}.", HINT)
    return ("assigned_at", assigned) if len(assigned) == known else ("submitted_at", submitted)


def _durations(table: LabelTable) -> tuple[Floats | None, int]:
    """How long each label took, and how many came in before they were asked for; None where too few are known."""
    if table.assigned_at is None or table.submitted_at is None:
        return None, 0
    took = table.submitted_at - table.assigned_at
    took = took[np.isfinite(took)]
    good = took[took >= 0]
    enough = len(good) >= LEAST and bool((good > 0).any())
    return (good if enough else None), len(took) - len(good)
