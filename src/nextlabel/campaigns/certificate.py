"""A campaign's certificate: what it is worth now, and what no policy can get it to with the labels that are left.

========= =========================================================================================
field     meaning
========= =========================================================================================
now       expected reward of a task if the campaign stopped here (accuracy, unless another reward is set)
upper     at most this in the end, whatever is asked next: budget left, deadline through the learnt arrival rate
gap       upper - now
price     what one more label can add at most, summed over the tasks
ceiling   were all truths known
more      what more budget could buy at most, a task
========= =========================================================================================

Guarantee: that of ``solve.standing``; with a deadline it is as good as the arrival rate. Cost: some hundred sweeps over
lattices, 0.05 s to seconds; ``Certificates`` keeps the last one of each campaign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rates import arrival_rate
from nextlabel.campaign.rows import CampaignRow, Group
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import ConflictError
from nextlabel.solve.standing.bound import standing_bound

#: More labels that the certificate tells about, beside a tenth of the budget.
MORE = (100, 500)
#: A certificate that took t seconds is good for PATIENCE t seconds although labels came in, and for so long although
#: the deadline came nearer.
PATIENCE, DEADLINE_S = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class More:
    """With ``labels`` more a task is worth at most ``upper``, ``gain`` more than without."""

    labels: int
    upper: float
    gain: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of a campaign as it was after event ``seq``; ``arrivals`` workers are expected before the deadline, if any."""

    campaign: str
    seq: int
    at: float
    tasks: int
    budget: int
    spent: int
    in_flight: int
    left: int
    now: float
    upper: float
    gap: float
    slack: float
    price: float
    ceiling: float
    arrivals: float | None
    more: tuple[More, ...]
    seconds: float


def certificate(campaign_service: CampaignService, id: str) -> Certificate:
    """Work it out."""

    def look(commands: Commands) -> tuple[float, CampaignRow, dict[Group, int], tuple[Prior, ...]]:
        commands.settle()
        ledger = commands.ledger
        return commands.now, replace(ledger.row), dict(ledger.groups()), tuple(ledger.classes())

    at, row, groups, priors = campaign_service.run(id, look)
    if not groups:
        raise ConflictError("the campaign has no tasks.", "Add tasks first.")
    arrivals = _arrivals(row, at)
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    bound = standing_bound(
        [row.config.class_of(prior) for prior in priors],
        tuple(table.T),
        row.left,
        label_cost=row.config.label_cost,
        mean_arrivals=math.inf if arrivals is None else arrivals,
    )
    extra = (*MORE, max(math.ceil(row.budget / 10), 1))
    uppers = bound.curve(np.array(extra, dtype=np.float64))
    more = tuple(More(n, float(u), max(float(u) - bound.upper, 0.0)) for n, u in zip(extra, uppers, strict=True))
    return Certificate(
        id, row.seq, at, row.tasks, row.budget, row.spent, row.reserved, row.left, bound.now, bound.upper, bound.gap,
        bound.slack, bound.price, bound.ceiling, arrivals, more, bound.seconds,
    )  # fmt: skip


def _arrivals(row: CampaignRow, now: float) -> float | None:
    """Workers expected before the deadline, None where none is set or their rate is not known."""
    rate = arrival_rate(row)
    if row.deadline is None:
        return None
    if now >= row.deadline:
        return 0.0
    return None if rate is None else rate * (row.deadline - now)


class Certificates:
    """The last certificate of each campaign, worked out anew when it no longer holds; one at a time."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._office = campaign_service
        self._known: dict[str, Certificate] = {}
        self._lock = Lock()

    def of(self, id: str) -> Certificate:
        """A campaign's certificate."""
        last, holds = self._last(id)
        if last is not None and (holds or self._lock.locked()):  # rather a little old than waited for
            return last
        with self._lock:
            last, holds = self._last(id)
            if last is None or not holds:
                last = self._known[id] = certificate(self._office, id)
        return last

    def _last(self, id: str) -> tuple[Certificate | None, bool]:
        """The last one and whether it still holds."""
        last, row = self._known.get(id), self._office.store.row(id)
        if last is None or last.budget != row.budget or last.tasks != row.tasks:
            return None, False
        age = self._office.clock() - last.at
        if row.deadline is not None and age > DEADLINE_S:
            return last, False
        return last, row.seq == last.seq or age < PATIENCE * last.seconds
