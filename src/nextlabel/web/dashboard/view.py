"""A campaign as the templates show it: its numbers, the points of its charts, and its log as sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nextlabel.beliefs.rewards import Accuracy
from nextlabel.campaign.declaration import LANGUAGES, kind, names, offer, spoken
from nextlabel.campaign.events import Event
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow, LeaseRow, TaskRow
from nextlabel.campaign.settings import SIDES, CampaignSettings, is_pair, shown_payload
from nextlabel.campaign.states import REASONS
from nextlabel.campaigns import service
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.guarantees import GuaranteeStatus
from nextlabel.campaigns.status import cost_of
from nextlabel.campaigns.worker_reports import report_of
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
    text = _TEXTS[event.kind](config, who, what, data)
    return LogLine(event.seq, event.at, event.kind, text, None if lease is None else lease.task)


def _merged(lines: Sequence[LogLine]) -> list[LogLine]:
    """Merge the many events of one batch or one import of tasks into one line."""
    out: list[LogLine] = []
    for line, later in zip(lines, [None, *lines], strict=False):
        same = later is not None and line.kind == later.kind and later.at - line.at <= MERGED_S.get(line.kind, -1.0)
        if not same:
            out.append(line)
    return out


def _label(config: CampaignSettings, data: Mapping[str, Any]) -> str:
    number: int = data["label"]
    return config.answer_type.name_of(number)


def _told(config: CampaignSettings, who: str, what: str, data: Mapping[str, Any]) -> str:
    counted = "" if data["counted"] else "; it does not count because the budget was spent"
    return f"{who} labelled {what} as {_label(config, data)}{counted}.{_said(data)}"


def _late(config: CampaignSettings, who: str, what: str, data: Mapping[str, Any]) -> str:
    kept = "counted" if data["counted"] else "kept but not counted"
    return f"{who} labelled {what} as {_label(config, data)} after the lease had expired; it was {kept}.{_said(data)}"


def _said(data: Mapping[str, Any]) -> str:
    """The beginning of a comment."""
    words = " ".join(data.get("comment", "").split())
    begun = words if len(words) <= LONGEST_COMMENT else words[: LONGEST_COMMENT - 1] + "…"
    return f" Comment: “{begun}”" if words else ""


def _changed(config: CampaignSettings, who: str, what: str, data: Mapping[str, Any]) -> str:
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


def _because(data: Mapping[str, Any]) -> str:
    return f": {data['reason'].rstrip('.')}." if data.get("reason") else "."


def _tuned(config: CampaignSettings, who: str, what: str, data: Mapping[str, Any]) -> str:
    arrivals = rate(data.get("arrival_rate"))
    return f"The policy was adapted to the workers: arrivals {arrivals}, {data['rho']:g} labels in flight on average."


def _refitted(config: CampaignSettings, who: str, what: str, data: Mapping[str, Any]) -> str:
    told = f"{count(data['labels'])} labels of {count(data['workers'])} workers"
    return f"Workers and items were learnt anew from {told} (version {data['version']})."


def _closed(config: CampaignSettings, who: str, what: str, data: Mapping[str, Any]) -> str:
    return f"The campaign closed: {REASONS.get(data['reason'], data['reason'])}"


_TEXTS: dict[str, Callable[[CampaignSettings, str, str, Mapping[str, Any]], str]] = {
    "created": lambda c, who, what, d: "The campaign was created.",
    "tasks_added": lambda c, who, what, d: "Tasks were added.",
    "tasks_published": lambda c, who, what, d: (
        f"An import of {count(d['tasks'])} tasks is complete: they can be given out."
    ),
    "batch_ended": lambda c, who, what, d: "Tasks were sent that were there already.",
    "leased": lambda c, who, what, d: f"{who} was given {what}.",
    "labelled": _told,
    "late": _late,
    "predicted": lambda c, who, what, d: f"{d['worker']} predicted {count(len(d['tasks']))} labels.",
    "features_added": lambda c, who, what, d: f"Features of {plural(d['items'], 'item')} were added.",
    "expired": lambda c, who, what, d: f"The lease of {who} on {what} expired.",
    "released": lambda c, who, what, d: f"{who} skipped {what}.{_said(d)}",
    "renewed": lambda c, who, what, d: f"{who} extended the lease on {what}.",
    "undone": lambda c, who, what, d: f"{who} undid the label {_label(c, d)} of {what}.",
    "self_assigned": lambda c, who, what, d: f"{who} took {what} without having been given it.",
    "withdrawn": lambda c, who, what, d: (
        f"The label {_label(c, d)} of {who} for {what} was deleted where it was given."
    ),
    "paused": lambda c, who, what, d: d.get("because", "The requester paused the campaign."),
    "resumed": lambda c, who, what, d: "The requester resumed the campaign.",
    "changed": _changed,
    "tuned": _tuned,
    "refitting": lambda c, who, what, d: f"Learning anew from {count(d['labels'])} labels began.",
    "refitted": _refitted,
    "turned_away": lambda c, who, what, d: (
        f"There was nothing for {d['worker']}: at present a label of theirs is not worth its price."
    ),
    "worker_paused": lambda c, who, what, d: f"The requester paused {d['worker']}{_because(d)}",
    "worker_blocked": lambda c, who, what, d: f"The requester blocked {d['worker']}{_because(d)}",
    "worker_restored": lambda c, who, what, d: f"The requester restored {d['worker']}.",
    "worker_erased": lambda c, who, what, d: f"The name of {d['worker']} was erased, and what they had written.",
    "audit_drawn": lambda c, who, what, d: f"{plural(len(d['tasks']), 'item')} drawn at random for an audit.",
    "audit_answered": lambda c, who, what, d: f"The audit has the answers of {plural(len(d['answers']), 'item')} more.",
    "gold_set": lambda c, who, what, d: f"The answers of {plural(len(d['answers']), 'control question')} were given.",
    "adjudicated": lambda c, who, what, d: f"The requester set the answers of {plural(len(d['answers']), 'item')}.",
    "adjudication_undone": lambda c, who, what, d: (
        f"The requester took back the answers of {plural(len(d['tasks']), 'item')}: labels decide again."
    ),
    "guarantee_drawn": lambda c, who, what, d: (
        f"The labels of {plural(d['items'], 'item')} were frozen, and {count(d['audits'][0])} drawn for an expert."
    ),
    "guarantee_answered": lambda c, who, what, d: (
        d["sentence"] if d.get("certified") else f"The expert answered {plural(len(d['answers']), 'item')}."
    ),
    "guarantee_looked": lambda c, who, what, d: f"{plural(len(d['asked']), 'item')} more drawn for the expert.",
    "guarantee_reopened": lambda c, who, what, d: (
        f"The labels were reopened{', and the certificate is void' if d['certified'] else ''}."
    ),
    "labels_dropped": lambda c, who, what, d: (
        f"The requester dropped {plural(len(d['leases']), 'label')} of {d['worker']}{_because(d)}"
    ),
    "labels_restored": lambda c, who, what, d: (
        f"The requester restored {plural(len(d['leases']), 'label')} of {d['worker']}."
    ),
    "predictions_dropped": lambda c, who, what, d: (
        f"The requester dropped {plural(d['labels'], 'label')} of {d['worker']}{_because(d)}"
    ),
    "predictions_restored": lambda c, who, what, d: (
        f"The requester restored {plural(d['labels'], 'label')} of {d['worker']}."
    ),
    "noticed": lambda c, who, what, d: " ".join(Notice(*one).text for one in d["new"]) or "A notice was taken back.",
    "closed": _closed,
    "reopened": lambda c, who, what, d: "The campaign reopened.",
    "rebuilt": lambda c, who, what, d: f"Rows of {d['table']} did not follow from the log and were rebuilt.",
    "clock_accepted": lambda c, who, what, d: f"The clock was accepted; the event before it is of {when(d['before'])}.",
}
