"""What a campaign can come to before its deadline at most, and what that rests on, in a sentence.

Two bounds hold: the one of ``solve.standing``, which counts the labels that are expected to come in, and the one
of ``solve.deadline``, which also knows when they come. The second takes a second or two, needs both rates, and
is computed for tasks of at most 16 kinds. The certificate has the smaller of the two, at every budget of its curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.rates import completion_rate, rate_before_deadline
from nextlabel.campaign.rows import CampaignRow
from nextlabel.problem.problem import Problem
from nextlabel.problem.rates import PiecewiseRate
from nextlabel.solve.deadline import MOST_CLASSES, DeadlineBound, deadline_bound
from nextlabel.solve.standing import Standing

#: What certificates of policies that do not tell workers apart rest on.
IF_ALIKE = "This holds if workers are alike and the prior is right."
#: With a deadline, before the rates are known.
UNKNOWN = "The deadline is not counted, because how often workers come is known after about 20 labels."


@dataclass(frozen=True, slots=True)
class MostBefore:
    """The smaller of both bounds, per task."""

    plain: Standing
    timed: DeadlineBound | None
    assumes: str

    @property
    def _is_timed(self) -> bool:
        return self.timed is not None and self.timed.upper < self.plain.upper

    @property
    def upper(self) -> float:
        """At most this in the end."""
        return self.plain.upper if self.timed is None else min(self.plain.upper, self.timed.upper)

    @property
    def price(self) -> float:
        """What one more label can add at most, over all tasks."""
        if self.timed is None or not self._is_timed:
            return self.plain.price
        return float(np.diff(self.timed.curve([0, 1]))[0]) * self.timed.tasks

    @property
    def slack(self) -> float:
        """What better prices could still take off; an estimate where the deadline is counted."""
        return self.timed.slack if self.timed is not None and self._is_timed else self.plain.slack

    def curve(self, extra: Any) -> Floats:
        """``upper`` with so many more labels to give out."""
        plain = self.plain.curve(np.asarray(extra, dtype=np.float64))
        return plain if self.timed is None else np.minimum(plain, self.timed.curve(extra))


@dataclass(frozen=True, slots=True)
class TimedBound:
    """The bound that knows the deadline, if there is one, and what a certificate with it or without it assumes."""

    bound: DeadlineBound | None
    assumes: str

    @property
    def seconds(self) -> float:
        """Time that it took."""
        return 0.0 if self.bound is None else self.bound.seconds

    def combined(self, plain: Standing) -> MostBefore:
        """The smaller of both bounds."""
        return MostBefore(plain, self.bound, self.assumes)


def bound_before_deadline(row: CampaignRow, now: float, priors: Sequence[Prior], groups: Sequence[Any]) -> TimedBound:
    """From where the tasks stand in ``groups`` (class, node, labels in flight, tasks)."""
    if row.deadline is None or now >= row.deadline:
        return TimedBound(None, IF_ALIKE)
    r, mu = rate_before_deadline(row, now), completion_rate(row)
    if r is None:
        return TimedBound(None, f"{IF_ALIKE} {UNKNOWN}")
    kinds, rests = len(np.unique(groups[0])), f"{IF_ALIKE} {_rates(r, mu, row.deadline - now)}"
    if mu is None or kinds > MOST_CLASSES:
        why = "how long labels take is not known yet" if mu is None else f"the tasks have {kinds:,} different priors"
        return TimedBound(
            None,
            f"{rests} What is in flight at the deadline is not counted as lost, because {why}: the "
            "true limit is lower.",
        )
    classes = [row.config.class_of(prior) for prior in priors]
    problem = Problem(tuple(classes), 1, r, mu, row.deadline - now, row.config.label_cost)
    found = deadline_bound(problem, groups, row.left)
    return TimedBound(
        found,
        f"{rests} What is in flight at the deadline is lost, and no label lapses.",
    )


def _rates(r: float | PiecewiseRate, mu: float | None, time: float) -> str:
    """The rates that a bound rests on."""
    hourly = " on average, by the hour of the day" if isinstance(r, PiecewiseRate) else ""
    mean = r.mean_arrivals(time) / time if isinstance(r, PiecewiseRate) else r
    takes = "" if mu is None else f"{',' if hourly else ''} and take {_seconds(1.0 / mu)} for a label"
    return f"It takes workers to come as they have, {3600.0 * mean:.3g} an hour{hourly}{takes}."


def _seconds(time: float) -> str:
    """A length of time that people can read."""
    for unit, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if time >= 2.0 * unit:
            return f"{time / unit:.3g} {name}"
    return f"{time:.3g} seconds"
