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
withheld  why ``upper`` is not shown although there is a bound; empty otherwise. Where known truths contradict the
          model, neither are forecast and price, and ``now`` is the share of known items that their labels get right
possible  how many of the labels left can be given, by who can still label what (policy ``crowd``)
as_of_labels labels that count in all of this but ``upper``
upper_as_of labels that count in ``upper`` (policy ``crowd``): it is worked out in the background
history   (labels, accuracy expected then, ends of its interval), for a plot (policy ``crowd``)
worth     with utilities and the policy ``crowd``: what an item is worth (``Worth``); all else counts right answers
upper     at most this in the end, whatever is asked next: budget left, deadline (``bound_before_deadline``)
gap       upper - now
price     what one more label can add at most, summed over the tasks
ceiling   the value if all truths were known
more      what more budget could buy at most, per task
curve     (labels more than the budget, at most so much per task), for a plot
========= =========================================================================================

With the policy ``crowd`` everything comes from the learnt model of workers and tasks; the price is the slope of the
forecast, the curve is the forecast by budget, and ceiling and slack are None. ``upper`` is the bound for these workers
(``solve.crowd.from_labels``), which takes some seconds: it is computed after the rest, and None until then. A bound for
workers who are alike would be none for a policy that tells them apart.

Guarantee: that of ``solve.present_bound``; with a deadline it is as good as the rates. Cost: some hundred sweeps over
lattices, 0.05 s to seconds. The API, the dashboard, the command line and Python share one class and one cache,
``CampaignService.certificates``, so that they cannot disagree.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.application.jobs import Jobs, finished
from nextlabel.arrays import Floats, Ints
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import CrowdSnapshot
from nextlabel.campaign.declaration import MOST_IN_FLIGHT
from nextlabel.campaign.notices import Supply, supply_of
from nextlabel.campaign.rates import (
    completion_rate,
    expected_arrivals,
    expected_asks,
    labels_in_time,
    rate_before_deadline,
)
from nextlabel.campaign.rows import CampaignRow
from nextlabel.crowd.answers import Choice, Number
from nextlabel.crowd.audit import Audit
from nextlabel.crowd.number_draws import draw_numbers, part_of
from nextlabel.errors import ConflictError, InputError, UnavailableError
from nextlabel.model.prior import Prior
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.notebook import facts_html
from nextlabel.policies.allocation import Group
from nextlabel.policies.crowd.policies import LEARNT_GAP, Chain, group_workers, solve_relaxation
from nextlabel.policies.crowd.valued import numbers_of
from nextlabel.solve.crowd.from_labels import CONFIDENCE, CROWDS, CrowdSupply, bound_crowds, upper_limit
from nextlabel.solve.crowd.posterior import CrowdPosterior
from nextlabel.solve.deadline import MOST_CLASSES, DeadlineBound, deadline_bound
from nextlabel.solve.numbers import poured
from nextlabel.solve.present_bound import present_bound

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

#: Numbers of labels in ``Certificate.more``, beside a tenth of the budget.
MORE = (100, 500)

#: Points of the curve below the budget and above it; the second pair for workers who are learnt.
BELOW, ABOVE, CURVE_BELOW, CURVE_ABOVE = 17, 49, 5, 6

#: What the expected accuracy of the policy crowd rests on; the second part is for campaigns that have labels.
BY_LABELS = (
    "This rests on the labels alone: how good each worker is was learnt from how they agree with each other. Where "
    "workers make the same mistakes it is too high, on recorded crowds that chose labels by 3 to 11 points; an audit "
    "of random items corrects it."
)
CONTRADICTED = "The labels contradict the bound's assumptions, so it is not shown."
TOO_FEW, TOO_FEW_NUMBERS = "It is known after 30 labels.", "It is known after three labels for every item."
NO_BOUND = {
    "rating": "There is none for ratings.",
    "multi": "There is none for several labels.",
    "pair": "There is none for the order of items.",
}
BY_UTILITY = "Of right answers there is none: see what an item is worth."
BY_KNOWN = "What is shown is how many known items would be right by their labels alone, were their truth not known."
#: Added where a learner of the items' features says something; the first part is how much.
BY_LEARNER = (
    " A learner of the items' features adds {bits:.2f} bits per item: the labels' log loss is {with:.3f} per item with "
    "it and {without:.3f} without. This assumes that people's mistakes do not follow the features."
)
NO_LABELS = "There are no labels yet: this is what guessing would get right."

#: The share of the budget that the value of the next label looks ahead at least.
AHEAD = 0.05

#: Two-sided 90%, of the forecast's range.
RANGE = 1.645

#: What certificates of policies that do not tell workers apart rest on.
IF_ALIKE = "This holds if workers are alike and the prior is right."

#: With a deadline, before the rates are known.
UNKNOWN = "The deadline is not counted, because how often workers ask is known after about 20 labels."

#: A certificate that took t seconds is used for PATIENCE t seconds although labels came in, but not longer than for
#: OLDEST_S seconds (the first one may have waited for the compiler), and of an open campaign alone. After as long, one
#: that could not be computed is tried again.
PATIENCE, OLDEST_S = 10.0, 60.0
#: How far bounds step back behind other threads.
NICE = 10
_log = logging.getLogger("nextlabel.application")

#: The fewest labels that a bound for workers who differ is made from.
FEWEST_LABELS = 30

#: The level of the interval.
LEVEL = 0.95


def _outlook(found: _Crowd) -> dict[str, Any]:
    """The forecast at the end of the budget with its 90% range, the price of a label, and the forecast by budget.

    Of n labels no more than ``possible`` of n can be given, by the workers who can still label and by newcomers. The
    price is what a label adds on average, over those left and ``AHEAD`` of the budget at least.
    """
    crowd, left, budget, possible = found.crowd, found.to_come, found.row.budget, found.possible
    people = [j for j, name in enumerate(crowd.workers) if crowd.labels[j] and name in found.supply.workers]
    tasks, now, after = max(int((crowd.gold < 0).sum()), 1), crowd.expected.mean, crowd.after

    def sure(labels: int) -> float:
        sds = _sds_after(crowd, people, possible(labels))
        return float(crowd.kind.certainty(np.stack([sds, sds], axis=1)).mean()) if len(sds) else 1.0

    def numbers_solved(labels: int) -> float:
        """The share of numbers that are expected to be right after so many labels more of these workers."""
        return min(now + sure(labels) - sure(0), 1.0)

    if crowd.kind.name == "number":
        solved: Callable[[int], float] = numbers_solved
    elif crowd.kind.name == "multi":
        solved = lambda labels: now if after is None else min(now + after(possible(labels)), 1.0)  # noqa: E731
    else:
        solved = _solved(crowd, people, possible)
    mean, ahead = solved(left), max(left, math.ceil(AHEAD * budget))
    curve = [(int(extra), solved(left + int(extra))) for extra in _points(left, budget, CURVE_BELOW, CURVE_ABOVE)]
    values = np.maximum.accumulate([value for _, value in curve])
    wrong = (1.0 - mean) / max(1.0 - now, 1e-9)
    spread = RANGE * float(np.sqrt(mean * (1.0 - mean) / tasks + crowd.expected.learnt * wrong**2))
    return {
        "forecast": mean, "forecast_low": max(mean - spread, 0.0), "forecast_high": min(mean + spread, 1.0),
        "price": (solved(ahead) - now) * tasks / ahead,
        "curve": tuple((extra, float(value)) for (extra, _), value in zip(curve, values, strict=True)),
    }  # fmt: skip


def _solved(crowd: CrowdSnapshot, people: Sequence[int], possible: Callable[[int], int]) -> Callable[[int], float]:
    """The expected accuracy after so many labels more of these workers: that of the relaxation."""
    channels = crowd.channels[people] if people else crowd.stranger[None]
    types = group_workers(channels, crowd.labels[people].astype(np.float64) if people else np.ones(1))
    chain = Chain(types.channels)
    free, beliefs = np.zeros(len(types.share)), crowd.beliefs[crowd.gold < 0]
    # Tasks by the grid belief that is nearest. Rounding is the same before and after: what is gained is what counts.
    shown = beliefs[:, 1] if beliefs.shape[1] == 2 else beliefs.max(axis=1)
    nearest = np.searchsorted(0.5 * (chain.grid[1:] + chain.grid[:-1]), shown)
    members = np.bincount(nearest, minlength=len(chain.grid)).astype(np.float64)
    tasks, now = max(int(members.sum()), 1), crowd.expected.mean
    begin = float(members @ chain.reward) / tasks

    def solved(labels: int) -> float:
        labels = possible(labels)
        if labels <= 0:
            return now
        supply = types.share * labels
        found = solve_relaxation(chain.tables, chain.reward, free, members, float(labels), supply, LEARNT_GAP)
        return min(now + max(found.value / tasks - begin, 0.0), 1.0)

    return solved


def _sds_after(crowd: CrowdSnapshot, people: Sequence[int], labels: int) -> Floats:
    """(K,) standard deviations of numbers after so many labels more, given where least is known."""
    precision = np.maximum(crowd.beliefs[crowd.gold < 0, 1], 1e-9) ** -2.0
    fit = crowd.fit
    if fit is None:
        return np.asarray(precision**-0.5)
    who = np.array(people if people else [-1], dtype=np.int64)
    each = np.average(fit.precisions(who), weights=crowd.labels[who] if people else None) / fit.scale[3] ** 2
    return np.asarray(poured(precision, labels * float(each)) ** -0.5)


def _error_said(crowd: CrowdSnapshot, left: int) -> str:
    """What is expected of numbers, in a sentence."""
    assert isinstance(crowd.kind, Number)
    people = np.flatnonzero(crowd.labels).tolist()
    now, later = (float(np.sqrt((_sds_after(crowd, people, n) ** 2).mean())) for n in (0, left))
    return (
        f"A number is right if it is within {crowd.kind.tolerance:g} of the truth. The root mean squared error is "
        f"expected to be {now:.3g} now and {later:.3g} at the end of the budget, by the model's own word; an audit of "
        "random items corrects the share that is right."
    )


def _points(left: int, most: int, many_below: int, many_above: int) -> Ints:
    """Numbers of labels more than the budget, and fewer; closer together near the budget, where people look."""
    below = -np.linspace(0, 1, many_below)[::-1] * left
    above = np.linspace(0, 1, many_above) ** 2 * most
    return np.unique(np.round(np.concatenate([below, above])).astype(np.int64))


def bound_before_deadline(
    row: CampaignRow, now: float, priors: Sequence[Prior], groups: Sequence[Any]
) -> tuple[DeadlineBound | None, str]:
    """The bound that knows the deadline, if there is one, and what a certificate with it or without it assumes.

    It is from where the tasks stand in ``groups`` (class, node, labels in flight, tasks).
    """
    if row.deadline is None or now >= row.deadline:
        return None, IF_ALIKE
    r, mu = rate_before_deadline(row, now), completion_rate(row)
    if r is None:
        return None, f"{IF_ALIKE} {UNKNOWN}"
    kinds, rests = len(np.unique(groups[0])), f"{IF_ALIKE} {_rates(r, mu, row.deadline - now)}"
    if mu is None or kinds > MOST_CLASSES:
        why = "how long labels take is not known yet" if mu is None else f"the tasks have {kinds:,} different priors"
        lost = f"What is in flight at the deadline is not counted as lost, because {why}: the true limit is lower."
        return None, f"{rests} {lost}"
    classes = [row.config.class_of(prior) for prior in priors]
    problem = Problem(tuple(classes), 1, r, mu, row.deadline - now, row.config.label_cost)
    bound = deadline_bound(problem, groups, row.left)
    return bound, f"{rests} What is in flight at the deadline is lost; labels whose lease has lapsed may still come."


def _rates(r: float | PiecewiseRate, mu: float | None, time: float) -> str:
    """The rates that a bound rests on."""
    hourly = " on average, by the hour of the day" if isinstance(r, PiecewiseRate) else ""
    mean = r.mean_arrivals(time) / time if isinstance(r, PiecewiseRate) else r
    takes = "" if mu is None else f"{',' if hourly else ''} and take {_seconds(1.0 / mu)} for a label"
    return f"It takes workers to ask as they have, {3600.0 * mean:.3g} times an hour{hourly}{takes}."


def _seconds(time: float) -> str:
    """A length of time that people can read."""
    for unit, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if time >= 2.0 * unit:
            return f"{time / unit:.3g} {name}"
    return f"{time:.3g} seconds"


@dataclass(frozen=True, slots=True)
class More:
    """With ``labels`` more, a task is worth at most ``upper``, which is ``gain`` more than without."""

    labels: int
    upper: float
    gain: float


@dataclass(frozen=True, slots=True)
class Worth:
    """What an item is worth on average: ``now``, ``upper`` at most in the end, and the ``ceiling`` of known truths."""

    now: float
    upper: float | None
    ceiling: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of a campaign as it was after event ``seq``; workers are expected to ask ``arrivals`` times in time."""

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
    audit: Audit | None = None
    forecast: float | None = None
    forecast_low: float | None = None
    forecast_high: float | None = None
    assumes: str = IF_ALIKE
    withheld: str = ""
    possible: int | None = None
    as_of_labels: int = 0
    upper_as_of: int | None = None
    worth: Worth | None = None
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
            facts += [(f"{name}, audited", share(q.accuracy, q.low, q.high)) for name, q in one.questions.items()]
        if self.forecast is not None:
            facts.append(("forecast for the end", share(self.forecast, self.forecast_low, self.forecast_high)))
        if self.upper is not None:
            facts.append(("at most, in the end", share(self.upper)))
        if self.worth is not None:
            most = "" if self.worth.upper is None else f", at most {self.worth.upper:.4g} in the end"
            facts.append(("an item is worth", f"{self.worth.now:.4g} on average{most}"))
        notes = dict.fromkeys([self.rests_on, *([] if self.upper_as_of is None else [f"At most: {self.assumes}"])])
        return facts_html(f"Campaign {self.campaign}: {self.tasks:,} tasks", facts, list(notes))

    @property
    def most(self) -> int:
        """The largest number of additional labels on the curve."""
        return self.curve[-1][0] if self.curve else 0


def compute_certificate(campaign_service: CampaignService, id: str, wait: bool = False) -> Certificate:
    """The certificate of a campaign as it stands; with ``wait`` the slow bound of the policy ``crowd`` as well."""
    if campaign_service.store.row(id).config.knows_workers:
        return _learnt_certificate(campaign_service, id, wait)

    def look(commands: Commands) -> tuple[Any, ...]:
        commands.settle()
        state = commands.state
        lapsed = Counter(state.pool.entries.task[state.unanswered()[1]].tolist())
        late = Counter[Group]()  # an answer that may still come is as good as one in flight, at most
        for task, labels in lapsed.items():
            class_id, node, w = state.group_of(task)
            if class_id >= 0:
                late[class_id, node, w] -= 1
                late[class_id, node, min(w + labels, MOST_IN_FLIGHT)] += 1
        row, groups = replace(state.row), dict(state.groups())
        return commands.now, row, groups, tuple(state.classes), late, commands.audited()

    at, row, groups, priors, late, audit = campaign_service.run(id, look)
    if not groups:
        raise ConflictError("the campaign has no tasks.", "Add tasks first.")
    arrivals, in_time = expected_arrivals(row, at), labels_in_time(row, at)
    if in_time is not None:  # without a deadline what comes late takes a place of the labels left
        groups = {group: groups.get(group, 0) + late[group] for group in groups.keys() | late.keys()}
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    bound = present_bound(
        [row.config.class_of(prior) for prior in priors],
        tuple(table.T),
        row.left,
        label_cost=row.config.label_cost,
        mean_arrivals=math.inf if in_time is None else in_time,
    )
    timed, assumes = bound_before_deadline(row, at, priors, tuple(table.T))
    upper, price, slack, seconds = bound.upper, bound.price, bound.slack, bound.seconds
    wanted = max(row.budget, 1000)
    unit = 10 ** (len(str(wanted)) - 1)
    points = _points(row.left, math.ceil(wanted / unit) * unit, BELOW, ABOVE)  # a round number
    extra = (*MORE, max(math.ceil(row.budget / 10), 1))
    labels = np.array([*extra, *points], dtype=np.float64)
    uppers = bound.curve(labels)
    if timed is not None:  # the smaller of both
        seconds, uppers = seconds + timed.seconds, np.minimum(uppers, timed.curve(labels))
        if timed.upper < upper:
            upper, slack = timed.upper, timed.slack
            price = float(np.diff(timed.curve([0, 1]))[0]) * timed.tasks
    more = tuple(More(n, float(u), max(float(u) - upper, 0.0)) for n, u in zip(extra, uppers, strict=False))
    curve = zip(points.tolist(), uppers[len(extra) :].tolist(), strict=True)
    return Certificate(
        id, row.seq, at, row.tasks, row.budget, row.spent, row.reserved, row.left, bound.now, upper,
        upper - bound.now, price, bound.ceiling, slack, arrivals, more, seconds,
        assumes=assumes, curve=tuple(curve), as_of_labels=row.spent, audit=audit,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Crowd:
    """What a learnt certificate is made from: the campaign at one moment, and its bound's ``terms``.

    A bound is void when they change: tasks, budget, rules, who may label and whose labels are dropped.
    """

    at: float
    row: CampaignRow
    crowd: CrowdSnapshot
    audit: Audit | None
    supply: Supply
    terms: tuple[object, ...]

    @classmethod
    def of(cls, commands: Commands) -> _Crowd:
        """Of a campaign now."""
        commands.settle()
        state = commands.state
        if not state.row.tasks:
            raise ConflictError("the campaign has no tasks.", "Add tasks first.")
        crowd, row = commands.crowd_snapshot(), replace(state.row)
        changed = frozenset(
            (one.worker, one.standing, one.dropped, one.given == 0 and one.labels)
            for one in state.workers
            if one.standing != "active" or one.dropped or not one.given
        )
        rules = row.config.turn_away, row.config.most_labels_per_worker
        terms = (row.budget, row.tasks, row.controls, row.deadline, *rules, changed)
        return cls(commands.now, row, crowd, commands.audited(), supply_of(state), terms)

    @property
    def to_come(self) -> int:
        """Labels that will be given out, before the deadline if there is one, and those in flight."""
        in_time = labels_in_time(self.row, self.at)
        return self.row.reserved + (self.row.left if in_time is None else min(self.row.left, math.ceil(in_time)))

    def possible(self, labels: int) -> int:
        """How many of so many labels can come, those in flight included."""
        return min(labels, self.row.reserved) + self.supply.of(max(labels - self.row.reserved, 0))


def _learnt_certificate(campaign_service: CampaignService, id: str, wait: bool) -> Certificate:
    """What the campaign is worth now and in the end, by the learnt model of its workers."""
    begin = perf_counter()
    found: _Crowd = campaign_service.run(id, _Crowd.of)
    row, crowd = found.row, found.crowd
    outlook = _outlook(found)
    bound = campaign_service.certificates.bounds.current(id, found, wait)
    upper, worth = None if bound is None else bound.upper, None
    if isinstance(crowd.kind, Choice) and crowd.kind.utility is not None:
        asked = crowd.beliefs[crowd.gold < 0]
        now, lost = float(crowd.kind.worth(asked).max(axis=1).mean()), float(crowd.kind.lost(asked).mean())
        believed = crowd.contradiction is None and upper is not None and upper >= now
        worth, upper = Worth(now, upper if believed else None, now + lost), None
    contradicted = upper is not None and upper < max(outlook["forecast"], crowd.expected.mean)
    shown = crowd.contradiction is None and crowd.kind.name != "pair" and worth is None
    upper = upper if shown and not contradicted else None
    rests_on = BY_LABELS if crowd.labels.sum() else NO_LABELS
    if crowd.kind.name == "number" and crowd.labels.sum():
        rests_on = _error_said(crowd, found.possible(found.to_come))
    withheld = CONTRADICTED if contradicted and shown else _why_none(row)
    if worth is not None:
        withheld = BY_UTILITY
        rests_on += (
            " The answer that is expected to be worth most is read out, which need not be the likeliest one: an item "
            f"is worth {worth.now:.3g} on average, and {worth.ceiling:.3g} if the truths were known."
        )
    if crowd.learner is not None:
        rests_on += BY_LEARNER.format(**crowd.learner)
    if crowd.contradiction is not None:
        why = crowd.contradiction.sentences()
        withheld, rests_on = why[0], " ".join([*why, BY_KNOWN])
    return Certificate(
        id, row.seq, found.at, row.tasks, row.budget, row.spent, row.reserved, row.left, crowd.expected.mean, upper,
        None if upper is None else upper - crowd.expected.mean, ceiling=None, slack=None,
        arrivals=expected_arrivals(row, found.at), more=(), seconds=perf_counter() - begin,
        low=crowd.expected.low,
        high=crowd.expected.high,
        rests_on=rests_on,
        audit=found.audit,
        assumes="" if bound is None else bound.assumes,
        withheld=withheld,
        possible=found.supply.of(row.left),
        as_of_labels=row.spent,
        upper_as_of=None if bound is None or (upper if worth is None else worth.upper) is None else bound.labels,
        worth=worth,
        history=(*crowd.history, (row.spent, *crowd.expected[:3])),
        **(outlook if shown else {"price": None}),
    )  # fmt: skip


class Certificates:
    """The last certificate of each campaign, computed anew when it no longer holds; one at a time."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._campaign_service = campaign_service
        self._last: dict[str, Certificate] = {}
        self._known: dict[str, int] = {}  # labels that the bound knew which the last one was made with
        self._failed: dict[str, tuple[int, float]] = {}  # the event after which it could not be computed, and when
        self._lock = Lock()
        self.jobs = Jobs("certificates")
        self.bounds = CrowdBounds()

    def of(self, id: str, wait: bool = False) -> Certificate:
        """A campaign's certificate, computed here if none holds; while another is computed, the last one.

        With ``wait`` all of it, the bound included, is of the labels that are there now, or of more.
        """
        labels = self._campaign_service.store.row(id).spent if wait else 0
        last, holds = self._check(id, wait)
        if last is not None and not wait and (holds or self._lock.locked()):
            return last
        with self._lock:
            last, holds = self._check(id, wait)
            if last is None or not holds or last.as_of_labels < labels:
                known = self.bounds.knows(id)
                last = self._last[id] = compute_certificate(self._campaign_service, id, wait)
                self._known[id] = max(known, last.upper_as_of or -1)
        return last

    def look(self, id: str) -> Certificate | None:
        """The last certificate, at once; if it no longer holds, the next one is computed in the background."""
        last, holds = self._check(id)
        row = self._campaign_service.store.row(id)
        seq, at = self._failed.get(id, (-1, 0.0))  # nothing may have happened since it could not be computed
        if not holds and row.tasks and (seq != row.seq or monotonic() - at >= OLDEST_S):
            self.jobs.submit((id, False), lambda _: self._tried(id, False))
        return last

    def soon(self, id: str, wait: bool = False) -> Future[Certificate]:
        """As ``of``, computed in the background: whoever waits may give up, and ask again later."""
        last, holds = self._check(id, wait)
        if last is None or not (holds or (self._lock.locked() and not wait)):
            return self.jobs.submit((id, wait), lambda _: self._tried(id, wait))
        return finished(last)

    def last(self, id: str) -> Certificate | None:
        """The last certificate, whether it holds or not."""
        return self._last.get(id)

    def _tried(self, id: str, wait: bool) -> Certificate:
        seq = self._campaign_service.store.row(id).seq
        try:
            return self.of(id, wait)
        except UnavailableError:
            raise  # the next request tries again
        except Exception as error:
            if not isinstance(error, InputError):
                _log.warning("no certificate for %s", id, exc_info=error)
            self._failed[id] = seq, monotonic()
            raise

    def _check(self, id: str, wait: bool = False) -> tuple[Certificate | None, bool]:
        """The last certificate and whether it still holds, for somebody who waits for all of it."""
        last, row = self._last.get(id), self._campaign_service.store.row(id)
        if last is None or last.budget != row.budget or last.tasks != row.tasks:
            return None, False
        if wait:
            bounded = not _needs_bound(row) or self.bounds.knows(id) == row.spent
            return last, last.seq == row.seq and bounded
        if self.bounds.knows(id) > self._known.get(id, -1):
            return last, False
        age = self._campaign_service.clock() - last.at
        if row.seq == last.seq:
            return last, row.deadline is None or age <= OLDEST_S  # it has come nearer
        return last, row.closed_seq is None and age < min(PATIENCE * last.seconds, OLDEST_S)


@dataclass(frozen=True, slots=True)
class CrowdBound:
    """At most so much per task on these ``terms``, as of ``labels`` labels; None if it could not be computed."""

    terms: tuple[object, ...]
    labels: int
    upper: float | None
    assumes: str
    seconds: float
    made: float


def _why_none(row: CampaignRow) -> str:
    """Why there is no bound for workers who differ, if that is known: raters have no channels."""
    if row.config.answer == "number" and row.spent < 3 * row.tasks:
        return TOO_FEW_NUMBERS
    return NO_BOUND.get(row.config.answer, TOO_FEW if row.spent < FEWEST_LABELS else "")


def _needs_bound(row: CampaignRow) -> bool:
    """Whether there is a slow bound to wait for: workers differ, some are known a little, and labels can come."""
    return row.config.knows_workers and not _why_none(row) and row.left + row.reserved > 0


class CrowdBounds:
    """The last bound of each campaign with the policy ``crowd``."""

    def __init__(self) -> None:
        self._last: dict[str, CrowdBound] = {}
        self._jobs = Jobs("bounds", nice=NICE)

    def current(self, id: str, found: _Crowd, wait: bool) -> CrowdBound | None:
        """The last bound that holds; a newer one is begun in the background, or with ``wait`` made before.

        Making it takes a small share of the time, whatever the number of labels that come meanwhile.
        """
        if not _needs_bound(found.row):
            return None
        labels, last = found.row.spent, self._last.get(id)
        if last is not None and (last.terms != found.terms or last.labels > labels):
            last = None
        if last is None or last.labels < labels:
            if wait:
                last = self._made(id, found)
            elif last is None or monotonic() - last.made > PATIENCE * last.seconds:
                # One at a time, for all campaigns: others are begun with their next certificate.
                self._jobs.submit("bound", lambda _: self._made(id, found))
        return None if last is None or last.upper is None else last

    def knows(self, id: str) -> int:
        """The labels that the last bound knows, -1 without one."""
        last = self._last.get(id)
        return -1 if last is None else last.labels

    def _made(self, id: str, found: _Crowd) -> CrowdBound:
        begin, upper, says = perf_counter(), None, ""
        try:
            upper, says = crowd_bound(found)
        except Exception as error:
            _log.warning("no bound for %s", id, exc_info=error)
        made = CrowdBound(found.terms, found.row.spent, upper, says, perf_counter() - begin, monotonic())
        self._last[id] = made
        return made


def labels_to_come(found: _Crowd) -> tuple[int, float, CrowdSupply]:
    """The labels that a bound counts on: in all, asks by workers until then, and labels by each of them."""
    row, config, crowd = found.row, found.row.config, found.crowd
    labels, late = found.to_come, 0 if row.deadline is None else found.supply.lapsed
    asks = max(expected_asks(row, found.at) or 0.0, float(labels))
    labels = min(labels + late, row.budget - row.spent)
    if config.gold_in_budget and row.spent:
        labels = math.ceil(labels * float((crowd.gold[crowd.answers.task] < 0).mean()))
    each, newcomers, people = found.supply.expected(asks)
    return labels, asks, CrowdSupply(each[: len(crowd.workers)], newcomers, people)


def number_bound(crowd: CrowdSnapshot, supply: CrowdSupply, labels: int) -> float:
    """The bound of a campaign for numbers: the most precise ``labels`` of the supply, poured over the items.

    A normal belief of precision p holds the truth within c with probability erf(c sqrt(p / 2)), which is concave in p:
    no other way of spreading a precision gets more items right. Of many items a part has its share of the labels.
    """
    fit, kind, values = crowd.fit, crowd.kind, list[float]()
    if fit is None or not isinstance(kind, Number):
        return 1.0
    asked = crowd.gold < 0
    part = part_of(fit, numbers_of(kind, crowd.answers), asked)
    each = np.append(supply.labels, np.full(supply.people, supply.newcomers / max(supply.people, 1)))
    share = len(part.items) / max(int(asked.sum()), 1)
    for one in draw_numbers(fit, part, CROWDS, supply.people):
        own = np.append(one.own, one.new)
        best = np.argsort(-own)
        taken = share * np.diff(np.minimum(np.cumsum(each[best]), labels), prepend=0.0)
        sds = one.scale / np.sqrt(poured(one.total, float(taken @ own[best])))
        values.append(float(kind.certainty(np.stack([sds, sds], axis=1)).mean()))
    return upper_limit(np.array(values))


def crowd_bound(found: _Crowd) -> tuple[float, str]:
    """The bound of a campaign per item that is not a control, and what it assumes, in a sentence."""
    crowd, (labels, asks, supply) = found.crowd, labels_to_come(found)
    counts = crowd.gold < 0
    if crowd.kind.name == "number":
        limit, how = number_bound(crowd, supply, labels), ", off by a normal error of a bias and a spread of their own"
    else:
        posterior = CrowdPosterior(crowd.answers, crowd.prior, crowd.gold, crowd.prior_offset, counts)
        utility = None if crowd.kind.utility is None else np.array(crowd.kind.utility)
        limit, how = bound_crowds(posterior, supply, labels, int(counts.sum()), utility=utility).limit, ""
    before = "" if found.row.deadline is None else f" Before the deadline {labels:,} more labels are expected."
    return limit, (
        f"No rule can be expected to do better ({CONFIDENCE:.0%} sure) if each worker answers in a way of their own, "
        f"independently of the others{how}, the crowd is what the labels and a weak first idea of people say, and "
        f"those who can still label ask as often as they did, {asks:,.0f} times in all, newcomers as often as they "
        f"came; as of {found.row.spent:,} labels. Real crowds are not quite so, and an audit does not correct it."
        f"{before}"
    )
