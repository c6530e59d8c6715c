"""What a plan says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.problem.problem import Problem

#: Values that differ by less are equal.
ROUNDING = 1e-9
#: What the bound takes for granted where nothing is said about workers, and where types of them are given.
ALIKE, OF_TYPES = "workers are alike", "workers are of these types"


@dataclass(frozen=True, slots=True)
class Money:
    """What labels cost, what right tasks earn, and where to stop.

    net(U) = value K index(U) - cost E[labels used with budget U]; with a deadline fewer than U may be used.
    """

    label_cost: float
    value: float
    best_budget: int
    best_net: float
    best_value: float
    #: The policy that turns workers away when no task is worth the cost: labels it buys, its net value.
    stopping_labels: float
    stopping_net: float
    stopping_half_width: float
    #: If workers are alike, no policy with a budget up to the curve's last nets more.
    most_net: float


class LabelsNeeded(NamedTuple):
    """Labels that the ``target`` takes: with the policy, at the ends of its interval, and with any policy, at least."""

    target: float | None = None
    needed: int | None = None
    needed_low: int | None = None
    needed_high: int | None = None
    needed_by_any: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The curve and the answers.

    ``value`` is the simulated value of the ``policy``, but no more than the bound: what the simulation had above it
    (``simulated``) was chance.
    """

    problem: Problem
    budgets: Ints = field(repr=False)
    value: Floats = field(repr=False)
    half_width: Floats = field(repr=False)
    bound: Floats = field(repr=False)
    price: Floats = field(repr=False)
    labels_used: Floats = field(repr=False)
    overlaps: tuple[int, ...]
    overlap: Floats
    #: The share of tasks to get right, if one was given, and the labels with which the policy reaches it, with the ends
    #: of their interval; None if the curve does not get there. No policy reaches it with fewer than ``needed_by_any``.
    target: float | None
    needed: int | None
    needed_low: int | None
    needed_high: int | None
    needed_by_any: int | None
    money: Money | None
    replications: int
    seed: int
    seconds: float
    simulated: Floats = field(repr=False)
    #: The policy that was simulated; what the bound takes for granted, in a few words and in full.
    policy: str = "index"
    model: str = ALIKE
    assumes: str = ""
    #: With workers who differ: what a label of each type is worth beyond the price of a label, at each budget.
    supply_prices: Floats | None = field(default=None, repr=False)
    #: Every so manyth task was simulated, in the order of their scores, with as many labels and workers per task.
    sample: int = 1

    def __str__(self) -> str:
        from nextlabel.planning.report import plan_report

        return plan_report(self).text()

    def _repr_html_(self) -> str:
        from nextlabel.planning.report import plan_report

        return plan_report(self).notebook()

    @property
    def above_bound(self) -> int:
        """Budgets at which the simulation came out above the bound, by more than rounding."""
        return int((self.simulated > self.bound + ROUNDING).sum())

    def value_at(self, budget: float) -> float:
        """The policy's value per task, interpolated."""
        return float(np.interp(budget, self.budgets, self.value))

    def next_labels(self, budget: int, more: int = 100) -> float | None:
        """What ``more`` labels add to ``budget`` under the policy; None if the curve ends before."""
        if budget + more > self.budgets[-1]:
            return None
        return self.problem.tasks * (self.value_at(budget + more) - self.value_at(budget))

    def budget_like(self, overlap: int) -> int | None:
        """The budget at which the policy is as good as that overlap; None if the curve does not get there."""
        value = self.overlap[self.overlaps.index(overlap)]
        return crossing(self.budgets, self.value, float(value))


def crossing(budgets: Ints, values: Floats, target: float) -> int | None:
    """The first budget at which the curve, made monotone and linear in between, reaches the target."""
    rising = np.maximum.accumulate(values)
    if rising[-1] < target:
        return None
    k = int(np.argmax(rising >= target))
    if k == 0:
        return int(budgets[0])
    share = (target - rising[k - 1]) / (rising[k] - rising[k - 1])
    return int(np.ceil(budgets[k - 1] + share * (budgets[k] - budgets[k - 1]) - 1e-9))


def needed_labels(
    budgets: Ints,
    values: tuple[Floats, Floats],
    half_width: Floats,
    target: float | None,
    needed_by_any: int | None,
) -> LabelsNeeded:
    """Where the curve reaches the target, between the ends of its interval; what is proved narrows it.

    ``values`` are the simulated ones, and those that are shown, which are not above the bound.
    """
    if target is None:
        return LabelsNeeded()
    simulated, shown = values
    found = [crossing(budgets, ends, target) for ends in (simulated + half_width, shown, shown - half_width)]
    if needed_by_any is not None:
        found = [None if x is None else max(x, needed_by_any) for x in found]
    low, needed, high = found
    return LabelsNeeded(target, needed, low, high, needed_by_any)
