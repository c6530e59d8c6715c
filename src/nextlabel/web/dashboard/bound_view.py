"""What no way of going on can be expected to exceed, with the budget that is left and with more of it.

The numbers are those of ``solve.standing.bound``, from the counts of tasks in each state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.rates import arrival_rate
from nextlabel.campaign.rows import CampaignRow, Group
from nextlabel.solve.standing.bound import standing_bound

#: Points of the curve below the budget and above it.
BELOW, ABOVE = 16, 48


@dataclass(frozen=True, slots=True)
class BoundView:
    """A task is worth ``now``, in the end at most ``upper``; ``curve`` is (labels more than the budget, at most)."""

    now: float
    upper: float
    price: float
    ceiling: float
    arrivals: float | None
    curve: tuple[tuple[int, float], ...]

    def gain(self, labels: int) -> float:
        """What so many more labels can add at most, a task."""
        x, y = zip(*self.curve, strict=True)
        return max(float(np.interp(labels, x, y)) - self.upper, 0.0)

    @property
    def most(self) -> int:
        """The largest number of more labels on the curve."""
        return self.curve[-1][0]


def make_bound_view(
    row: CampaignRow, classes: Sequence[Prior], groups: dict[Group, int], now: float
) -> BoundView | None:
    """None for a campaign without tasks."""
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    if not len(table):
        return None
    arrivals = expected_arrivals(row, now)
    bound = standing_bound(
        [row.config.class_of(prior) for prior in classes],
        tuple(table.T),
        row.left,
        label_cost=row.config.label_cost,
        mean_arrivals=math.inf if arrivals is None else arrivals,
    )
    extra = _points(row)
    uppers = bound.curve(extra.astype(np.float64))
    curve = tuple((int(x), float(y)) for x, y in zip(extra, uppers, strict=True))
    return BoundView(bound.now, bound.upper, bound.price, bound.ceiling, arrivals, curve)


def expected_arrivals(row: CampaignRow, now: float) -> float | None:
    """Workers expected before the deadline; None where none is set or their rate is not known."""
    if row.deadline is None:
        return None
    if now >= row.deadline:
        return 0.0
    rate = arrival_rate(row)
    return None if rate is None else rate * (row.deadline - now)


def most_extra(row: CampaignRow) -> int:
    """As many more labels as are looked at: about twice the budget, a round number."""
    wanted = max(row.budget, 1000)
    unit = 10 ** (len(str(wanted)) - 1)
    return int(math.ceil(wanted / unit) * unit)


def _points(row: CampaignRow) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """More labels, closer together near the budget, where people look."""
    below = -np.linspace(0, 1, BELOW + 1)[::-1] * row.left
    above = np.linspace(0, 1, ABOVE + 1) ** 2 * most_extra(row)
    return np.unique(np.round(np.concatenate([below, above])).astype(np.int64))
