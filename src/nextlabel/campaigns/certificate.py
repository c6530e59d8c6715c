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
withheld  why ``upper`` is not shown although there is a bound; empty otherwise
possible  how many of the labels left can be given, by who can still label what (policy ``crowd``)
as_of_labels labels that count in all of this but ``upper``, whose own number is in ``assumes``
history   (labels, accuracy expected then, ends of its interval), for a plot (policy ``crowd``)
upper     at most this in the end, whatever is asked next: budget left, deadline (``bound_before_deadline``)
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

Guarantee: that of ``solve.present_bound``; with a deadline it is as good as the rates. Cost: some hundred sweeps over
lattices, 0.05 s to seconds. The API, the dashboard, the command line and Python share one class and one cache,
``CampaignService.certificates``, so that they cannot disagree.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Lock
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import CrowdSnapshot
from nextlabel.campaign.notices import Supply, supply_of
from nextlabel.campaign.rates import completion_rate, expected_arrivals, labels_in_time, rate_before_deadline
from nextlabel.campaign.results import levels, truths
from nextlabel.campaign.rows import CampaignRow, TaskRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.jobs import Jobs
from nextlabel.crowd.audit import estimate
from nextlabel.errors import ConflictError, InputError, UnavailableError
from nextlabel.notebook import facts_html
from nextlabel.policies.allocation import Group
from nextlabel.policies.crowd.policies import LEARNT_GAP, Chain, RelaxationSolver, group_workers
from nextlabel.problem.problem import PiecewiseRate, Problem
from nextlabel.solve.crowd.from_labels import bound_from_crowd_labels
from nextlabel.solve.deadline import MOST_CLASSES, DeadlineBound, deadline_bound
from nextlabel.solve.present_bound import PresentBound, present_bound

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

#: Numbers of labels in ``Certificate.more``, beside a tenth of the budget.
MORE = (100, 500)

#: Points of the curve below the budget and above it.
BELOW, ABOVE = 16, 48

#: What the expected accuracy of the policy crowd rests on; the second part is for campaigns that have labels.
BY_LABELS = (
    "This rests on the labels alone: how good each worker is was learnt from how they agree with each other. Where "
    "workers make the same mistakes it is too high, on recorded crowds by 3 to 11 points; an audit of random items "
    "corrects it."
)
CONTRADICTED = "The labels contradict the bound's assumptions, so it is not shown."
NO_LABELS = "There are no labels yet: this is what guessing would get right."

#: Points of the curve below the budget and above it.
CURVE_BELOW, CURVE_ABOVE = 5, 6

#: Two-sided 90%, of the forecast's range.
RANGE = 1.645

#: What certificates of policies that do not tell workers apart rest on.
IF_ALIKE = "This holds if workers are alike and the prior is right."

#: With a deadline, before the rates are known.
UNKNOWN = "The deadline is not counted, because how often workers come is known after about 20 labels."

#: A certificate that took t seconds is used for PATIENCE t seconds although labels came in, but not longer than for
#: OLDEST_S seconds (the first one may have waited for the compiler), and of an open campaign alone. After as long, one
#: that could not be computed is tried again.
PATIENCE, OLDEST_S = 10.0, 60.0
_log = logging.getLogger("nextlabel.campaigns")

#: The largest campaign that is bounded: tasks, labels, workers. The fewest labels that a bound is made from.
MOST_TASKS, MOST_LABELS, MOST_WORKERS, FEWEST_LABELS = 1000, 5000, 100, 30

#: One crowd in so many of the sample is bounded.
EVERY = 10

#: A bound is made again after this share of labels more.
AGAIN = 0.2

#: The level of the interval.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class CrowdOutlook:
    """The forecast at the end of the budget with its 90% range, the price of a label, and the forecast by budget."""

    mean: float
    low: float
    high: float
    price: float
    curve: tuple[tuple[int, float], ...]


def crowd_outlook(crowd: CrowdSnapshot, left: int, most_extra: int, possible: int, can: Container[str]) -> CrowdOutlook:
    """The outlook with ``left`` labels to come, and with fewer or with up to ``most_extra`` more of them.

    Of all of them no more than ``possible`` can be given, by the workers who ``can`` and by newcomers.
    """
    people = [j for j, name in enumerate(crowd.workers) if crowd.labels[j] and name in can]
    channels = crowd.channels[people] if people else crowd.stranger[None]
    types = group_workers(channels, crowd.labels[people].astype(np.float64) if people else np.ones(1))
    chain = Chain(types.channels)
    free = np.zeros(len(types.share))
    members = _members(crowd.beliefs, chain.grid)
    tasks, now = len(crowd.beliefs), crowd.expected.mean
    # Rounding to the grid is the same before and after: what is gained is what counts.
    begin = float(members @ chain.reward) / tasks

    def solved(labels: int) -> tuple[float, float]:
        labels = min(labels, possible)
        if labels <= 0:
            return now, 0.0
        solver = RelaxationSolver(chain.tables, chain.reward, free)
        found = solver.solve(members, float(labels), types.share * labels, LEARNT_GAP)
        return min(now + max(found.value / tasks - begin, 0.0), 1.0), found.price + float(types.share @ found.extra)

    mean, price = solved(max(left, 1))
    mean = mean if left else now
    curve = [(int(extra), solved(left + int(extra))[0]) for extra in _extras(left, most_extra)]
    values = np.maximum.accumulate([value for _, value in curve])
    wrong = (1.0 - mean) / max(1.0 - now, 1e-9)
    spread = RANGE * float(np.sqrt(mean * (1.0 - mean) / tasks + crowd.expected.learnt * wrong**2))
    return CrowdOutlook(
        mean, max(mean - spread, 0.0), min(mean + spread, 1.0), price,
        tuple((extra, float(value)) for (extra, _), value in zip(curve, values, strict=True)),
    )  # fmt: skip


def _members(beliefs: Floats, grid: Floats) -> Floats:
    """(G,) tasks by the grid belief that is nearest."""
    shown = beliefs[:, 1] if beliefs.shape[1] == 2 else beliefs.max(axis=1)
    middle = 0.5 * (grid[1:] + grid[:-1])
    found: Floats = np.bincount(np.searchsorted(middle, shown), minlength=len(grid)).astype(np.float64)
    return found


def _extras(left: int, most: int) -> Ints:
    """Numbers of labels more than the budget, those below it included."""
    below = -np.linspace(0, 1, CURVE_BELOW)[::-1] * left
    above = np.linspace(0, 1, CURVE_ABOVE) ** 2 * most
    return np.unique(np.round(np.concatenate([below, above])).astype(np.int64))


@dataclass(frozen=True, slots=True)
class MostBefore:
    """The smaller of both bounds, per task."""

    plain: PresentBound
    timed: DeadlineBound | None

    @property
    def seconds(self) -> float:
        """Time that they took."""
        return self.plain.seconds + (0.0 if self.timed is None else self.timed.seconds)

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
    return bound, f"{rests} What is in flight at the deadline is lost, and no label lapses."


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


@dataclass(frozen=True, slots=True)
class AuditedAccuracy:
    """``right`` of ``audited`` random items were right: so many of all items are, with a 95% interval."""

    accuracy: float
    low: float
    high: float
    audited: int
    right: int


def audited_accuracy(
    beliefs: Floats, audited: Mapping[int, int], gold: Ints | None = None, config: CampaignSettings | None = None
) -> AuditedAccuracy | None:
    """The accuracy of all tasks, from the true answers of some that were drawn at random: task number to answer.

    Control questions (``gold`` is not negative) are left out: their truth was not found by labels.
    """
    if gold is not None and (gold >= 0).any():
        asked = gold < 0
        number = np.cumsum(asked) - 1
        audited = {int(number[task]): answer for task, answer in audited.items() if asked[task]}
        beliefs = beliefs[asked]
    if not audited:
        return None
    tasks = np.fromiter(audited, dtype=np.int64, count=len(audited))
    truth = np.fromiter(audited.values(), dtype=np.int64, count=len(audited))
    known = np.zeros(len(beliefs), dtype=np.bool_)
    known[tasks] = True
    best = beliefs.argmax(axis=1) if config is None else config.best(beliefs)
    right = best[tasks] == truth
    return _estimated(np.take_along_axis(beliefs, best[:, None], axis=1)[:, 0], known, right[np.argsort(tasks)])


def audited_by_state(
    config: CampaignSettings,
    classes: Sequence[Prior],
    groups: Mapping[Group, int],
    audited: Sequence[tuple[TaskRow, int]],
) -> AuditedAccuracy | None:
    """The same where workers are taken to be alike: tasks by state, and audited tasks with their true answers."""
    found = [(task, answer) for task, answer in audited if task.gold is None]
    if not found:
        return None
    others = Counter({group: count for group, count in groups.items() if group[0] >= 0})
    others.subtract(task.group for task, _ in found)
    states = [task.group for task, _ in found] + list(others)
    many = np.array([1] * len(found) + [max(count, 0) for count in others.values()], dtype=np.int64)
    klass, node, _ = np.array(states, dtype=np.int64).T
    truth = truths(config, classes, klass, node, levels(config, node))
    right = config.best(truth[: len(found)]) == np.array([answer for _, answer in found])
    known = np.arange(int(many.sum())) < len(found)
    return _estimated(np.repeat(config.certainty(truth), many), known, right)


def _estimated(expected: Floats, known: Bools, right: Bools) -> AuditedAccuracy:
    found = estimate(expected, known, right, LEVEL)
    return AuditedAccuracy(found.accuracy, found.low, found.high, found.audited, found.right)


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
    withheld: str = ""
    possible: int | None = None
    as_of_labels: int = 0
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
        state = commands.state
        return commands.now, replace(state.row), dict(state.groups()), tuple(state.classes)

    at, row, groups, priors = campaign_service.run(id, look)
    if not groups:
        raise ConflictError("the campaign has no tasks.", "Add tasks first.")
    arrivals, in_time = expected_arrivals(row, at), labels_in_time(row, at)
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    bound = present_bound(
        [row.config.class_of(prior) for prior in priors],
        tuple(table.T),
        row.left,
        label_cost=row.config.label_cost,
        mean_arrivals=math.inf if in_time is None else in_time,
    )
    timed, assumes = bound_before_deadline(row, at, priors, tuple(table.T))
    most = MostBefore(bound, timed)
    extra = (*MORE, max(math.ceil(row.budget / 10), 1))
    uppers = most.curve(np.array(extra))
    more = tuple(More(n, float(u), max(float(u) - most.upper, 0.0)) for n, u in zip(extra, uppers, strict=True))
    points = _points(row)
    curve = zip(points.tolist(), most.curve(points).tolist(), strict=True)
    return Certificate(
        id, row.seq, at, row.tasks, row.budget, row.spent, row.reserved, row.left, bound.now, most.upper,
        most.upper - bound.now, most.price, bound.ceiling, most.slack, arrivals, more, most.seconds,
        assumes=assumes, curve=tuple(curve), as_of_labels=row.spent,
        audit=audited_by_state(row.config, priors, groups, campaign_service.audits.tasks(id)),
    )  # fmt: skip


def _learnt_certificate(campaign_service: CampaignService, id: str) -> Certificate:
    """What the campaign is worth now and in the end, by the learnt model of its workers."""
    begin = perf_counter()

    def look(commands: Commands) -> tuple[float, CampaignRow, CrowdSnapshot | None, Supply]:
        commands.settle()
        row = replace(commands.state.row)
        crowd = commands.crowd_snapshot() if row.tasks else None
        return commands.now, row, crowd, supply_of(commands.state)

    at, row, crowd, supply = campaign_service.run(id, look)
    if crowd is None:
        raise ConflictError("the campaign has no tasks.", "Add tasks first.")
    arrivals, in_time = expected_arrivals(row, at), labels_in_time(row, at)
    left = row.left if in_time is None else min(row.left, math.ceil(in_time))
    possible = supply.of(row.left)
    outlook = crowd_outlook(crowd, left + row.reserved, row.budget, possible + row.reserved, supply.workers)
    audited = campaign_service.audits.truths(id)
    certificates = campaign_service.certificates
    bound = certificates.bounds.last(id, row.budget)
    upper = None if bound is None else bound.upper
    contradicted = upper is not None and upper < max(outlook.mean, crowd.expected.mean)
    upper = None if contradicted else upper
    if certificates.watched:
        certificates.bounds.order(id, row.budget, left + row.reserved, crowd, in_time)
    return Certificate(
        id, row.seq, at, row.tasks, row.budget, row.spent, row.reserved, row.left, crowd.expected.mean, upper,
        None if upper is None else upper - crowd.expected.mean, outlook.price, None, None, arrivals, (),
        perf_counter() - begin,
        low=crowd.expected.low,
        high=crowd.expected.high,
        rests_on=BY_LABELS if crowd.labels.sum() else NO_LABELS,
        audit=audited_accuracy(crowd.beliefs, audited, crowd.gold, row.config),
        forecast=outlook.mean,
        forecast_low=outlook.low,
        forecast_high=outlook.high,
        assumes="" if bound is None else bound.assumes,
        withheld=CONTRADICTED if contradicted else "",
        possible=possible,
        as_of_labels=row.spent,
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


class Certificates:
    """The last certificate of each campaign, computed anew when it no longer holds; one at a time."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._campaign_service = campaign_service
        self._last: dict[str, Certificate] = {}
        self._failed: dict[str, tuple[int, float]] = {}  # the event after which it could not be computed, and when
        self._lock = Lock()
        self.jobs = Jobs("certificates")
        self.bounds = CrowdBounds()
        #: Whether somebody looks at certificates again and again, so that slow bounds are worth their time.
        self.watched = False

    def of(self, id: str) -> Certificate:
        """A campaign's certificate, computed here if none holds; while another is computed, the last one."""
        last, holds = self._check(id)
        if last is not None and (holds or self._lock.locked()):
            return last
        with self._lock:
            last, holds = self._check(id)
            if last is None or not holds:
                last = self._last[id] = compute_certificate(self._campaign_service, id)
        return last

    def look(self, id: str) -> Certificate | None:
        """The last certificate, at once; if it no longer holds, the next one is computed in the background."""
        self.watched = True
        last, holds = self._check(id)
        row = self._campaign_service.store.row(id)
        if not holds and row.tasks and not self._has_just_failed(id, row.seq):
            self._begin(id)
        return last

    def soon(self, id: str) -> Future[Certificate]:
        """As ``of``, computed in the background: whoever waits may give up, and ask again later."""
        last, holds = self._check(id)
        if last is None or not (holds or self._lock.locked()):
            return self._begin(id)
        there: Future[Certificate] = Future()
        there.set_result(last)
        return there

    def _begin(self, id: str) -> Future[Certificate]:
        return self.jobs.submit(id, lambda _: self._tried(id))

    def _tried(self, id: str) -> Certificate:
        seq = self._campaign_service.store.row(id).seq
        try:
            return self.of(id)
        except UnavailableError:
            raise  # the next request tries again
        except Exception as error:
            if not isinstance(error, InputError):
                _log.warning("no certificate for %s", id, exc_info=error)
            self._failed[id] = seq, monotonic()
            raise

    def _has_just_failed(self, id: str, seq: int) -> bool:
        """Whether it could not be computed a moment ago, and nothing has happened since."""
        failed, at = self._failed.get(id, (-1, 0.0))
        return failed == seq and monotonic() - at < OLDEST_S

    def _check(self, id: str) -> tuple[Certificate | None, bool]:
        """The last certificate and whether it still holds."""
        last, row = self._last.get(id), self._campaign_service.store.row(id)
        if last is None or last.budget != row.budget or last.tasks != row.tasks:
            return None, False
        bound = self.bounds.last(id, row.budget)
        if bound is not None and bound.assumes != last.assumes:
            return last, False
        age = self._campaign_service.clock() - last.at
        if row.seq == last.seq:
            return last, row.deadline is None or age <= OLDEST_S  # it has come nearer
        return last, row.closed_seq is None and age < min(PATIENCE * last.seconds, OLDEST_S)


@dataclass(frozen=True, slots=True)
class CrowdBound:
    """At most so much per task with that budget, as of ``labels`` labels; None if the chains did not agree."""

    budget: int
    labels: int
    upper: float | None
    in_time: float | None = None  # labels that are expected to come in before the deadline

    @property
    def assumes(self) -> str:
        """What it assumes, in a sentence."""
        before = ""
        if self.in_time is not None:
            before = f" Before the deadline {self.in_time:,.0f} more labels were expected to come in."
        return (
            "No rule can be expected to do better if each worker answers in a way of their own, independently of the "
            f"others, and the same workers keep coming as often as they did; as of {self.labels:,} labels. Real crowds "
            f"are not quite so, and an audit does not correct it.{before}"
        )


class CrowdBounds:
    """The last bound of each campaign."""

    def __init__(self) -> None:
        self._last: dict[str, CrowdBound] = {}
        self._jobs = Jobs("bounds")

    def last(self, id: str, budget: int) -> CrowdBound | None:
        """The last bound for that budget."""
        found = self._last.get(id)
        return found if found is not None and found.budget == budget and found.upper is not None else None

    def order(self, id: str, budget: int, left: int, crowd: CrowdSnapshot, in_time: float | None = None) -> None:
        """Have a bound computed, if the campaign is small and the last one is old.

        ``in_time``: labels that are expected to come in before the deadline, which ``left`` knows of already.
        """
        labels, last = int(crowd.labels.sum()), self._last.get(id)
        if left < 1 or not FEWEST_LABELS <= labels <= MOST_LABELS:
            return
        if len(crowd.beliefs) > MOST_TASKS or len(crowd.workers) > MOST_WORKERS:
            return
        if last is not None and last.budget == budget and labels < last.labels * (1.0 + AGAIN):
            return
        # One at a time, for all campaigns: others are ordered again with their next certificate.
        self._jobs.submit("bound", lambda _: self._compute(id, budget, left, crowd, in_time))

    def _compute(self, id: str, budget: int, left: int, crowd: CrowdSnapshot, in_time: float | None) -> None:
        try:
            labels, unknown = crowd.answers, np.full(len(crowd.beliefs), -1, dtype=np.int64)
            found = bound_from_crowd_labels(labels, unknown, left, arrivals=left, every=EVERY)
            upper = found.per_task if found.converged else None
            self._last[id] = CrowdBound(budget, len(labels.task), upper, in_time)
        except Exception as error:
            _log.warning("no bound for %s", id, exc_info=error)
            self._last[id] = CrowdBound(budget, int(crowd.labels.sum()), None)
