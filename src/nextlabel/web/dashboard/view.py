"""A campaign as the templates show it: its numbers, the points of its charts, and its log as sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import Formatter
from typing import Any, NamedTuple

from nextlabel.application import service
from nextlabel.application.certificate import Certificate
from nextlabel.application.guarantees import GuaranteeStatus
from nextlabel.application.status import cost_of
from nextlabel.application.worker_reports import report_of
from nextlabel.campaign.declaration import LANGUAGES, kind, names, offer, spoken
from nextlabel.campaign.events import Event
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow, LeaseRow, TaskRow
from nextlabel.campaign.settings import SIDES, CampaignSettings, is_pair, shown_payload
from nextlabel.campaign.states import REASONS
from nextlabel.model.rewards import Accuracy
from nextlabel.prose import joined, listed
from nextlabel.service.auth import Rights
from nextlabel.store.sql import SqlStore
from nextlabel.web.dashboard.forecasts import ForecastView
from nextlabel.web.dashboard.formatting import (
    count,
    duration,
    percent,
    plural,
    points,
    rate,
    reason_of,
    shortly,
    title_of,
    when,
)
from nextlabel.web.dashboard.state import MOST_WORKERS, DashboardState
from nextlabel.web.dashboard.summaries import BINS, StateSummary
from nextlabel.web.render import render

ITEMS_SHOWN, HARD_SHOWN, LEASES_SHOWN, COMMENTS_SHOWN, LOG_LINES = 20, 10, 10, 10, 20

#: Numbers of additional labels in the table.
STEPS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
LONGEST_SUMMARY = 140

#: The parts of the page that are updated while a campaign runs.
PARTS = (
    "status",
    "guarantee",
    "imports",
    "notices",
    "tiles",
    "certificate",
    "by_spent",
    "flow",
    "order",
    "hardest",
    "workers",
    "leases",
    "comments",
    "log",
    "by_labels",
    "by_probability",
    "more",
)

#: Parts in which workers are named.
PARTS_WITH_WORKERS = frozenset({"workers", "leases", "comments", "log"})

#: Characters of a comment that a line shows.
LONGEST_COMMENT = 140

#: Seconds between two events of such a kind that are one line.
MERGED_S = {"tasks_added": 2.0, "predicted": 2.0}


def campaign_view(
    dashboard: DashboardState, row: CampaignRow, rights: Rights, before: int | None = None
) -> dict[str, Any]:
    """Everything that the page of a campaign shows to somebody with these rights."""
    summary, certificate = dashboard.summary(row), dashboard.certificate(row)
    forecast = _forecast(dashboard, row, certificate)
    accuracy = row.config.reward == Accuracy()
    return {
        "row": row,
        "rights": rights,
        "now": dashboard.now(),
        "title": title_of(row),
        "state": row.state,
        "reason": reason_of(row),
        "summary": summary,
        "certificate": certificate,
        "forecast": forecast,
        "worth": percent if accuracy else shortly,
        "more_worth": points if accuracy else _plain_gain,
        "is_accuracy": accuracy,
        "spent_share": row.spent / row.budget,
        "reserved_share": min(row.reserved, row.budget - row.spent) / row.budget,
        "arrivals": arrival_rate(row),
        "completions": completion_rate(row),
        "lease_s": lease_seconds(row),
        "guarantee": _guarantee(dashboard, row),
        "hardest": [] if summary is None else _hardest(dashboard, row, summary, rights),
        "order": dashboard.app.campaign_service.order(row.id) if row.config.answer == "pair" and row.tasks else {},
        "shown": ITEMS_SHOWN,
        "adjudicated": _adjudicated(dashboard, row) if rights.changes else [],
        "workers": _workers(dashboard, row) if rights.sees_workers else [],
        "agreement": dashboard.app.campaign_service.worker_reports.known_agreement(row.id),
        "leases": _leases(dashboard, row) if rights.sees_workers else [],
        "comments": _comments(dashboard, row) if rights.sees_workers else [],
        "log": log_page(dashboard.store, row.id, row.config, before, LOG_LINES),
        "before": before,
        "by_labels": _by_labels(summary),
        "by_probability": _by_probability(summary),
        "more": _more(certificate),
        "cost": cost_of(row),
        "imports": dashboard.imports(row),
        "notices": [one for one in row.rules.noticed if rights.sees_workers or one.worker is None],
    }


def chart_data(view: dict[str, Any]) -> dict[str, Any]:
    """The numbers behind the charts."""
    row: CampaignRow = view["row"]
    certificate: Certificate | None = view["certificate"]
    forecast = view["forecast"]
    return {
        "labels": [count for _, count in view["by_labels"]],
        "labelNames": [name for name, _ in view["by_labels"]],
        "probability": [count for _, count in view["by_probability"]],
        "accuracy": view["is_accuracy"],
        "budget": row.budget,
        "spent": row.spent,
        "now": _expected_now(view["summary"], certificate),
        "forecast": None if forecast is None else forecast.mean,
        "upper": None if certificate is None else certificate.upper,
        "curve": [] if certificate is None else [[row.budget + x, y] for x, y in certificate.curve],
        "history": [] if certificate is None else [list(point) for point in certificate.history],
        "learnt": row.config.knows_workers,
    }


def _expected_now(summary: StateSummary | None, certificate: Certificate | None) -> float | None:
    """As the tile has it where workers are learnt: a certificate may be a minute old."""
    if summary is not None and summary.low is not None:
        return summary.accuracy
    return None if certificate is None else certificate.now


def render_parts(view: dict[str, Any]) -> dict[str, str]:
    """The parts of the page that are updated while a campaign runs, as HTML."""
    shown = [name for name in PARTS if view["rights"].sees_workers or name not in PARTS_WITH_WORKERS]
    return {name: render(f"dashboard/parts/{name}.html", **view) for name in shown}


def fingerprints(parts: dict[str, str], charts: dict[str, Any]) -> dict[str, str]:
    """A short hash of each part, to tell which have changed."""
    texts = {**parts, "charts": json.dumps(charts, sort_keys=True)}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:10] for name, text in texts.items()}


def payload_summary(payload: Any, key: str = "") -> str:
    """The beginning of what workers see of a payload: its text, or all of its columns but the one with the id."""
    texts = [payload]
    if isinstance(payload, dict) and payload:
        if is_pair(payload):
            return " | ".join(payload_summary(payload[side]) for side in SIDES)
        texts = [payload["text"]] if "text" in payload else [one for one in payload.values() if str(one) != key]
    words = " ".join(
        " ".join((one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)).split()) for one in texts
    )
    return words if len(words) <= LONGEST_SUMMARY else words[: LONGEST_SUMMARY - 1] + "…"


def _forecast(dashboard: DashboardState, row: CampaignRow, certificate: Certificate | None) -> ForecastView | None:
    """By the certificate where workers are told apart, else by simulation."""
    if not row.config.knows_workers or row.closed_seq is not None or not row.tasks:
        return _capped(dashboard.forecast(row), certificate)
    if certificate is None or certificate.forecast is None:
        return None if certificate is None else ForecastView(why=certificate.withheld)
    low, high = certificate.forecast_low or 0.0, certificate.forecast_high or 1.0
    return ForecastView(certificate.forecast, 0.0, low, high)


def _capped(forecast: ForecastView | None, certificate: Certificate | None) -> ForecastView | None:
    """The simulated forecast, but no more than the proved bound: beyond it is only chance."""
    if forecast is None or forecast.mean is None or certificate is None or certificate.upper is None:
        return forecast
    return replace(forecast, mean=min(forecast.mean, certificate.upper))


def _plain_gain(gain: float) -> str:
    return f"+{gain:.3g}"


def _guarantee(dashboard: DashboardState, row: CampaignRow) -> GuaranteeStatus | None:
    promised = row.config.at_most_wrong is not None or row.rules.guarantee
    return dashboard.app.campaign_service.guarantees.status(row.id) if promised else None


def _adjudicated(dashboard: DashboardState, row: CampaignRow) -> list[TaskRow]:
    """The items whose answers were set last."""
    numbers = row.rules.adjudicated[: -HARD_SHOWN - 1 : -1]
    found = dashboard.store.tasks_by_number(row.id, numbers)
    return [found[number] for number in numbers]


def _hardest(
    dashboard: DashboardState, row: CampaignRow, summary: StateSummary, rights: Rights
) -> list[dict[str, Any]]:
    numbers = list(summary.hardest[:HARD_SHOWN])
    found = dashboard.store.tasks_by_number(row.id, numbers)
    tasks = [found[number] for number in numbers if number in found]
    results = dashboard.app.campaign_service.results_of(row, dashboard.classes(row), tasks, service.READ_PATIENCE_S)
    said: dict[int, list[LeaseRow]] = {}
    for lease in dashboard.store.leases(row.id, numbers) if rights.sees_workers else []:
        if lease.label is not None:
            said.setdefault(lease.task, []).append(lease)
    return [
        {
            "number": task.number, "result": result,
            "summary": payload_summary(shown_payload(row.config.show, task.payload), task.key),
            "said": said.get(task.number, []),
        }
        for task, result in zip(tasks, results, strict=True)
        if result.source != "audited"
    ]  # fmt: skip


def _workers(dashboard: DashboardState, row: CampaignRow) -> list[dict[str, Any]]:
    known = dashboard.workers(row) or {}
    shown = []
    for one in dashboard.store.workers(row.id, MOST_WORKERS):
        report, median = known.get(one.worker, (None, None))
        shown.append({"row": one, "mean_s": report_of(one).mean_seconds, "report": report, "median_s": median})
    return shown


def _comments(dashboard: DashboardState, row: CampaignRow) -> list[CommentLine]:
    return comment_lines(dashboard.store, row, None, COMMENTS_SHOWN)


def _leases(dashboard: DashboardState, row: CampaignRow) -> list[dict[str, Any]]:
    out = dashboard.store.leases(row.id, open=True, limit=LEASES_SHOWN) if row.reserved else []
    tasks = dashboard.store.tasks_by_number(row.id, [lease.task for lease in out])
    return [{"row": lease, "key": tasks[lease.task].key} for lease in out if lease.task in tasks]


def _by_labels(summary: StateSummary | None) -> list[tuple[str, int]]:
    """Tasks by their number of labels; twelve and more together."""
    if summary is None:
        return []
    counts = list(summary.by_labels)
    head = [(str(n), count) for n, count in enumerate(counts[:12])]
    return [*head, ("12+", sum(counts[12:]))] if len(counts) > 12 else head


def _by_probability(summary: StateSummary | None) -> list[tuple[str, int]]:
    if summary is None:
        return []
    width = 100 // BINS
    return [(f"{width * n}–{width * (n + 1)}%", count) for n, count in enumerate(summary.by_probability)]


def _more(certificate: Certificate | None) -> list[tuple[int, float, float]]:
    """(additional labels, upper bound, gain) for some round numbers."""
    if certificate is None or certificate.upper is None or certificate.history:
        return []
    steps = [n for n in STEPS if n <= certificate.most]
    return [
        (n, certificate.upper + certificate.gain(n), certificate.gain(n)) for n in (steps[-5:] or [certificate.most])
    ]


class CommentLine(NamedTuple):
    """One comment; ``label`` is None if the worker passed the task on."""

    task: int
    key: str
    worker: str
    label: str | None
    text: str
    at: float


def comment_lines(store: SqlStore, row: CampaignRow, worker: str | None, limit: int) -> list[CommentLine]:
    """The last comments on a campaign's tasks, of one worker or of all."""
    leases = store.leases(row.id, commented=True, worker=worker, limit=limit)
    tasks = store.tasks_by_number(row.id, [lease.task for lease in leases])
    return [
        CommentLine(
            lease.task, tasks[lease.task].key if lease.task in tasks else str(lease.task), lease.worker,
            None if lease.label is None else row.config.answer_type.name_of(lease.label), lease.comment or "",
            lease.ended_at or lease.leased_at,
        )
        for lease in leases
    ]  # fmt: skip


class LogLine(NamedTuple):
    """One line of the log; ``task`` is the number of its task, if it is about one."""

    seq: int
    at: float
    kind: str
    text: str
    task: int | None = None


class LogPage(NamedTuple):
    """Lines, newest first; ``before`` is the cursor of the next page, None at the end."""

    lines: list[LogLine]
    before: int | None


def log_page(store: SqlStore, id: str, config: CampaignSettings, before: int | None, limit: int) -> LogPage:
    """One page of a campaign's log."""
    events = store.light_events(id, limit, before=before)
    named = [e.data["lease"] for e in events if "lease" in e.data]
    leases = {lease.id: lease for lease in store.leases(id, ids=named)}
    tasks = store.tasks_by_number(id, [lease.task for lease in leases.values()])
    lines = [_line(config, event, leases, tasks) for event in events]
    return LogPage(_merged(lines), events[-1].seq if len(events) == limit and events[-1].seq > 1 else None)


def _line(
    config: CampaignSettings, event: Event, leases: Mapping[str, LeaseRow], tasks: Mapping[int, TaskRow]
) -> LogLine:
    data = event.data
    lease = leases.get(data.get("lease", ""))
    task = tasks.get(lease.task) if lease is not None else None
    who = lease.worker if lease is not None else "Somebody"
    what = task.key if task is not None else "a task"
    text = _TEXTS[event.kind]
    if not isinstance(text, str):
        text = text(data)
    else:
        text = _Words().vformat(text, (), {**data, **_parts(config, data), "who": who, "what": what})
    return LogLine(event.seq, event.at, event.kind, text, None if lease is None else lease.task)


def _merged(lines: Sequence[LogLine]) -> list[LogLine]:
    """Merge the many events of one batch or one import of tasks into one line."""
    out: list[LogLine] = []
    for line, later in zip(lines, [None, *lines], strict=False):
        same = later is not None and line.kind == later.kind and later.at - line.at <= MERGED_S.get(line.kind, -1.0)
        if not same:
            out.append(line)
    return out


class _Words(Formatter):
    """Fills a text in: ``{n:count}`` is a number, ``{n:item}`` so many items; of a list its length."""

    def format_field(self, value: Any, spec: str) -> str:
        """A number with its noun."""
        if not spec:
            return str(value)
        number = value if isinstance(value, int) else len(value)
        return count(number) if spec == "count" else plural(number, spec)


def _parts(config: CampaignSettings, data: Mapping[str, Any]) -> dict[str, str]:
    """What texts hold beside the event's own data: the label, whether it counts, a comment, a reason."""
    words, reason = " ".join(data.get("comment", "").split()), data.get("reason")
    begun = words if len(words) <= LONGEST_COMMENT else words[: LONGEST_COMMENT - 1] + "…"
    return {
        "label": config.answer_type.name_of(data["label"]) if "label" in data else "",
        "uncounted": "" if data.get("counted") else "; it does not count because the budget was spent",
        "kept": "counted" if data.get("counted") else "kept but not counted",
        "said": f" Comment: “{begun}”" if words else "",
        "because": f": {reason.rstrip('.')}." if reason else ".",
    }


def _changed(data: Mapping[str, Any]) -> str:
    return f"The requester changed {joined([_change(name, data[name]) for name in names() if name in data])}."


def _change(name: str, new: Any) -> str:
    """The new value of a setting, in words."""
    if name == "instructions" and new:
        return "the instructions"
    formats: dict[str, Callable[[Any], str]] = {
        "budget": lambda labels: f"{count(labels)} labels", "deadline": when, "lease_seconds": duration,
        "language": lambda code: LANGUAGES[code],
    }  # fmt: skip
    kinds: dict[type, Callable[[Any], str]] = {
        bool: lambda on: "on" if on else "off", float: lambda number: f"{number:g}", int: count, tuple: listed,
        str: lambda text: f"“{text}”",
    }  # fmt: skip
    said = offer(name).none if new is None or new == "" else formats.get(name, kinds[kind(name)])(new)
    return f"the {spoken(name)} to {said}"


def _tuned(data: Mapping[str, Any]) -> str:
    arrivals = rate(data.get("arrival_rate"))
    return f"The policy was adapted to the workers: arrivals {arrivals}, {data['rho']:g} labels in flight on average."


#: What a line says, by the kind of its event.
_TEXTS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    "created": "The campaign was created.",
    "tasks_added": "Tasks were added.",
    "tasks_published": "An import of {tasks:count} tasks is complete: they can be given out.",
    "batch_ended": "Tasks were sent that were there already.",
    "leased": "{who} was given {what}.",
    "labelled": "{who} labelled {what} as {label}{uncounted}.{said}",
    "late": "{who} labelled {what} as {label} after the lease had expired; it was {kept}.{said}",
    "predicted": "{worker} predicted {tasks:count} labels.",
    "features_added": "Features of {items:item} were added.",
    "expired": "The lease of {who} on {what} expired.",
    "released": "{who} skipped {what}.{said}",
    "renewed": "{who} extended the lease on {what}.",
    "undone": "{who} undid the label {label} of {what}.",
    "self_assigned": "{who} took {what} without having been given it.",
    "withdrawn": "The label {label} of {who} for {what} was deleted where it was given.",
    "paused": lambda d: d.get("because", "The requester paused the campaign."),
    "resumed": "The requester resumed the campaign.",
    "changed": _changed,
    "tuned": _tuned,
    "refitting": "Learning anew from {labels:count} labels began.",
    "refitted": (
        "Workers and items were learnt anew from {labels:count} labels of {workers:count} workers (version {version})."
    ),
    "turned_away": "There was nothing for {worker}: at present a label of theirs is not worth its price.",
    "worker_paused": "The requester paused {worker}{because}",
    "worker_blocked": "The requester blocked {worker}{because}",
    "worker_restored": "The requester restored {worker}.",
    "worker_erased": "The name of {worker} was erased, and what they had written.",
    "audit_drawn": "{tasks:item} drawn at random for an audit.",
    "audit_answered": "The audit has the answers of {answers:item} more.",
    "gold_set": "The answers of {answers:control question} were given.",
    "adjudicated": "The requester set the answers of {answers:item}.",
    "adjudication_undone": "The requester took back the answers of {tasks:item}: labels decide again.",
    "guarantee_drawn": "The labels of {items:item} were frozen, and {audits[0]:count} drawn for an expert.",
    "guarantee_answered": lambda d: (
        d["sentence"] if d.get("certified") else f"The expert answered {plural(len(d['answers']), 'item')}."
    ),
    "guarantee_looked": "{asked:item} more drawn for the expert.",
    "guarantee_reopened": lambda d: (
        f"The labels were reopened{', and the certificate is void' if d['certified'] else ''}."
    ),
    "labels_dropped": "The requester dropped {leases:label} of {worker}{because}",
    "labels_restored": "The requester restored {leases:label} of {worker}.",
    "predictions_dropped": "The requester dropped {labels:label} of {worker}{because}",
    "predictions_restored": "The requester restored {labels:label} of {worker}.",
    "noticed": lambda d: " ".join(Notice(*one).text for one in d["new"]) or "A notice was taken back.",
    "closed": lambda d: f"The campaign closed: {REASONS.get(d['reason'], d['reason'])}",
    "reopened": "The campaign reopened.",
    "rebuilt": "Rows of {table} did not follow from the log and were rebuilt.",
    "clock_accepted": lambda d: f"The clock was accepted; the event before it is of {when(d['before'])}.",
}
