"""A campaign's certificate: what it is worth now, and what can come of the labels left.

========= =========================================================================================
field     meaning
========= =========================================================================================
now       expected reward of a task if the campaign stopped here (accuracy, unless another reward is set)
low, high 95% interval of the accuracy that is expected now (policy ``crowd``)
rests_on  what the number rests on, in a sentence
audit     the accuracy as audited items correct it, with an interval that holds whatever the model; None without any
forecast  expected at the end of the budget, with its 90% range forecast_low to forecast_high (policy ``crowd``)
assumes   what ``upper`` assumes, in a sentence
history   (labels, accuracy expected then, ends of its interval), for a plot (policy ``crowd``)
upper     at most this in the end, whatever is asked next: budget left, deadline (``campaigns.deadline_bounds``)
gap       upper - now
price     what one more label can add at most, summed over the tasks
ceiling   the value if all truths were known
more      what more budget could buy at most, per task
curve     (labels more than the budget, at most so much per task), for a plot
========= =========================================================================================

With the policy ``crowd`` everything comes from the learnt model of workers and tasks; the price is that of the policy's
plan, the curve is the forecast by budget, and ceiling and slack are None. ``upper`` is the bound for these workers
(``solve.crowd.from_labels``), which takes a minute: it is computed after the rest, for small campaigns, and None until
then. A bound for workers who are alike would be none for a policy that tells them apart.

Guarantee: that of ``solve.standing``; with a deadline it is as good as the rates. Cost: some hundred sweeps over
lattices, 0.05 s to seconds. The API, the dashboard, the command line and Python share one class and one cache,
``CampaignService.certificates``, so that they cannot disagree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_snapshot import CrowdSnapshot
from nextlabel.campaign.rates import expected_arrivals, labels_in_time
from nextlabel.campaign.rows import CampaignRow, Group
from nextlabel.campaigns.audited_accuracy import AuditedAccuracy, audited_accuracy, audited_by_state
from nextlabel.campaigns.crowd_outlook import crowd_outlook
from nextlabel.campaigns.deadline_bounds import IF_ALIKE, bound_before_deadline
from nextlabel.errors import ConflictError
from nextlabel.notebook import facts_html
from nextlabel.solve.standing import standing_bound

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

#: Numbers of labels in ``Certificate.more``, beside a tenth of the budget.
MORE = (100, 500)
#: Points of the curve below the budget and above it.
BELOW, ABOVE = 16, 48
#: What the expected accuracy of the policy crowd rests on; the second part is for campaigns that have labels.
BY_LABELS = (
    "This rests on the labels alone: how good each worker is was learnt from how they agree with each other. Where "
    "workers make the same mistakes it is too high, on recorded crowds by 2 to 6 points; an audit of random items "
    "corrects it."
)
NO_LABELS = "There are no labels yet: this is what guessing would get right."


@dataclass(frozen=True, slots=True)
class More:
    """With ``labels`` more, a task is worth at most ``upper``, which is ``gain`` more than without."""

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
    upper: float | None
    gap: float | None
    price: float | None
    ceiling: float | None
    slack: float | None
    arrivals: float | None
    more: tuple[More, ...]
    seconds: float
    low: float | None = None
    high: float | None = None
    rests_on: str = IF_ALIKE
    audit: AuditedAccuracy | None = None
    forecast: float | None = None
    forecast_low: float | None = None
    forecast_high: float | None = None
    assumes: str = IF_ALIKE
    history: tuple[tuple[int, float, float, float], ...] = field(repr=False, default=())
    curve: tuple[tuple[int, float], ...] = field(repr=False, default=())

    def gain(self, labels: int) -> float:
        """The most that so many more labels can add per task, between the points of the curve."""
        if self.upper is None:
            return 0.0
        x, y = zip(*self.curve, strict=True)
        return max(float(np.interp(labels, x, y)) - self.upper, 0.0)

    def _repr_html_(self) -> str:
        def share(value: float | None, low: float | None = None, high: float | None = None) -> str:
            ends = "" if low is None or high is None else f" [{low:.1%}, {high:.1%}]"
            return "not known" if value is None else f"{value:.1%}{ends}"

        facts: list[tuple[str, object]] = [
            ("labels spent", f"{self.spent:,} of {self.budget:,}, {self.in_flight:,} being answered"),
            ("expected right now", share(self.now, self.low, self.high)),
        ]
        if self.audit is not None:
            one = self.audit
            facts.append((f"as {one.audited:,} audited items say", share(one.accuracy, one.low, one.high)))
        if self.forecast is not None:
            facts.append(("forecast for the end", share(self.forecast, self.forecast_low, self.forecast_high)))
        if self.upper is not None:
            facts.append(("at most, in the end", share(self.upper)))
        notes = dict.fromkeys([self.rests_on, *([] if self.upper is None else [f"At most: {self.assumes}"])])
        return facts_html(f"Campaign {self.campaign}: {self.tasks:,} tasks", facts, list(notes))

    @property
    def most(self) -> int:
        """The largest number of additional labels on the curve."""
        return self.curve[-1][0] if self.curve else 0


def compute_certificate(campaign_service: CampaignService, id: str) -> Certificate:
    """The certificate of a campaign as it stands."""
    if campaign_service.store.row(id).config.knows_workers:
        return _learnt_certificate(campaign_service, id)

    def look(commands: Commands) -> tuple[float, CampaignRow, dict[Group, int], tuple[Prior, ...]]:
        commands.settle()
        ledger = commands.ledger
        return commands.now, replace(ledger.row), dict(ledger.groups()), tuple(ledger.classes())

    at, row, groups, priors = campaign_service.run(id, look)
    if not groups:
        raise ConflictError("the campaign has no tasks.", "Add tasks first.")
    arrivals, in_time = expected_arrivals(row, at), labels_in_time(row, at)
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    bound = standing_bound(
        [row.config.class_of(prior) for prior in priors],
        tuple(table.T),
        row.left,
        label_cost=row.config.label_cost,
        mean_arrivals=math.inf if in_time is None else in_time,
    )
    timed = bound_before_deadline(row, at, priors, tuple(table.T))
    most = timed.combined(bound)
    extra = (*MORE, max(math.ceil(row.budget / 10), 1))
    uppers = most.curve(np.array(extra))
    more = tuple(More(n, float(u), max(float(u) - most.upper, 0.0)) for n, u in zip(extra, uppers, strict=True))
    points = _points(row)
    curve = zip(points.tolist(), most.curve(points).tolist(), strict=True)
    return Certificate(
        id, row.seq, at, row.tasks, row.budget, row.spent, row.reserved, row.left, bound.now, most.upper,
        most.upper - bound.now, most.price, bound.ceiling, most.slack, arrivals, more, bound.seconds + timed.seconds,
        assumes=most.assumes, curve=tuple(curve),
        audit=audited_by_state(row.config, priors, groups, campaign_service.audits.tasks(id)),
    )  # fmt: skip


def _learnt_certificate(campaign_service: CampaignService, id: str) -> Certificate:
    """What the campaign is worth now and in the end, by the learnt model of its workers."""
    begin = perf_counter()

    def look(commands: Commands) -> tuple[float, CampaignRow, CrowdSnapshot | None]:
        commands.settle()
        row = replace(commands.ledger.row)
        return commands.now, row, commands.crowd_snapshot() if row.tasks else None

    at, row, crowd = campaign_service.run(id, look)
    if crowd is None:
        raise ConflictError("the campaign has no tasks.", "Add tasks first.")
    arrivals, in_time = expected_arrivals(row, at), labels_in_time(row, at)
    left = row.left if in_time is None else min(row.left, math.ceil(in_time))
    outlook = crowd_outlook(crowd, left + row.reserved, row.budget)
    audited = campaign_service.audits.truths(id)
    certificates = campaign_service.certificates
    bound = certificates.bounds.last(id, row.budget)
    upper = None if bound is None or bound.upper is None else max(bound.upper, outlook.mean, crowd.expected.mean)
    if certificates.watched:
        certificates.bounds.order(id, row.budget, left + row.reserved, crowd, in_time)
    return Certificate(
        id, row.seq, at, row.tasks, row.budget, row.spent, row.reserved, row.left, crowd.expected.mean, upper,
        None if upper is None else upper - crowd.expected.mean, outlook.price, None, None, arrivals, (),
        perf_counter() - begin,
        low=crowd.expected.low,
        high=crowd.expected.high,
        rests_on=BY_LABELS if crowd.labels.sum() else NO_LABELS,
        audit=audited_accuracy(crowd.beliefs, audited, crowd.gold),
        forecast=outlook.mean,
        forecast_low=outlook.low,
        forecast_high=outlook.high,
        assumes="" if bound is None else bound.assumes,
        history=(*crowd.history, (row.spent, *crowd.expected[:3])),
        curve=outlook.curve,
    )  # fmt: skip


def most_extra(row: CampaignRow) -> int:
    """How many more labels the curve shows: as many as the budget and at least 1000, a round number."""
    wanted = max(row.budget, 1000)
    unit = 10 ** (len(str(wanted)) - 1)
    return int(math.ceil(wanted / unit) * unit)


def _points(row: CampaignRow) -> Ints:
    """Numbers of additional labels, closer together near the budget, where people look."""
    below = -np.linspace(0, 1, BELOW + 1)[::-1] * row.left
    above = np.linspace(0, 1, ABOVE + 1) ** 2 * most_extra(row)
    return np.unique(np.round(np.concatenate([below, above])).astype(np.int64))
