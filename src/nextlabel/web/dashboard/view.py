"""A campaign as the templates show it: its numbers, the points of its charts, and its log as sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from string import Formatter
from typing import Any, NamedTuple

from nextlabel.application import service
from nextlabel.application.certificate import Certificate
from nextlabel.application.status import cost_of
from nextlabel.application.worker_reports import report_of
from nextlabel.campaign.declaration import LANGUAGES, kind, names, offer, spoken
from nextlabel.campaign.events import Event
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow, LeaseRow, TaskRow
from nextlabel.campaign.settings import SIDES, CampaignSettings, is_pair, shown_payload
from nextlabel.campaign.states import REASONS
from nextlabel.service.auth import Rights
from nextlabel.store.sql import SqlStore
from nextlabel.web.dashboard.forecasts import ForecastView
from nextlabel.web.dashboard.formatting import (
    count,
    duration,
    percent,
    points,
    rate,
    reason_of,
    shortly,
    title_of,
    when,
)
from nextlabel.web.dashboard.state import DashboardState, StateSummary
from nextlabel.web.render import render
from nextlabel.wording import counted, joined, listed

MOST_WORKERS, ITEMS_SHOWN, HARD_SHOWN, LEASES_SHOWN, COMMENTS_SHOWN, LOG_LINES = 50, 20, 10, 10, 10, 20

#: Numbers of additional labels in the table.
STEPS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
#: Characters of an item, or of a comment, that a line shows.
LONGEST = 140

#: The parts of the page that are updated while a campaign runs; those in which workers are named come first.
PARTS = (
    "workers", "leases", "comments", "log", "status", "guarantee", "imports", "notices", "tiles", "certificate",
    "by_spent", "flow", "order", "hardest", "by_labels", "by_probability", "more",
)  # fmt: skip
WITH_WORKERS = 4

#: Seconds between two events of such a kind that are one line.
MERGED_S = {"tasks_added": 2.0, "predicted": 2.0}


def campaign_view(
    dashboard: DashboardState, row: CampaignRow, rights: Rights, before: int | None = None
) -> dict[str, Any]:
    """Everything that the page of a campaign shows to somebody with these rights."""
    summary, certificate = dashboard.summary(row), dashboard.service.certificates.look(row.id)
    accuracy, store = row.config.counts_right, dashboard.store
    promised = row.config.at_most_wrong is not None or row.guarantee
    log, older = log_page(store, row.id, row.config, before, LOG_LINES)
    view = {
        "row": row,
        "rights": rights,
        "now": dashboard.service.clock(),
        "title": title_of(row),
        "state": row.state,
        "reason": reason_of(row),
        "summary": summary,
        "certificate": certificate,
        "forecast": _forecast(dashboard, row, certificate),
        "worth": percent if accuracy else shortly,
        "more_worth": points if accuracy else "+{:.3g}".format,
        "is_accuracy": accuracy,
        "spent_share": row.spent / row.budget,
        "reserved_share": min(row.reserved, row.budget - row.spent) / row.budget,
        "arrivals": arrival_rate(row),
        "completions": completion_rate(row),
        "lease_s": lease_seconds(row),
        "guarantee": dashboard.service[row.id].guarantee() if promised else None,
        "hardest": [] if summary is None else _hardest(dashboard, row, summary, rights),
        "order": dashboard.service[row.id].order() if row.config.answer == "pair" and row.tasks else {},
        "shown": ITEMS_SHOWN,
        "adjudicated": _tasks(store, row, row.adjudicated[: -HARD_SHOWN - 1 : -1]) if rights.changes else [],
        "workers": [], "leases": [], "comments": [],
        "log": log,
        "older": older,
        "before": before,
        "more": _more(certificate),
        "cost": cost_of(row),
        "imports": dashboard.imports(row),
        "notices": [one for one in row.noticed if rights.sees_workers or one.worker is None],
    }  # fmt: skip
    if rights.sees_workers:
        learnt, medians = dashboard.workers(row)
        rows = store.workers(row.id, MOST_WORKERS)
        reports = [report_of(one, row.config.pay_per_label, learnt.skills.get(one.worker)) for one in rows]
        view["workers"] = [(one, medians.get(one.worker)) for one in reports]
        view["agreement"] = learnt.agreement
        out = store.leases(row.id, open=True, limit=LEASES_SHOWN) if row.reserved else []
        view["leases"] = with_tasks(store, row, out)
        view["comments"] = with_tasks(store, row, store.leases(row.id, commented=True, limit=COMMENTS_SHOWN))
    return view


def render_parts(view: dict[str, Any]) -> dict[str, str]:
    """The parts of the page that are updated while a campaign runs, as HTML."""
    shown = PARTS if view["rights"].sees_workers else PARTS[WITH_WORKERS:]
    return {name: render(f"dashboard/parts/{name}.html", **view) for name in shown}


def chart_data(view: dict[str, Any]) -> dict[str, Any]:
    """The numbers behind the charts."""
    row: CampaignRow = view["row"]
    certificate: Certificate | None = view["certificate"]
    summary: StateSummary | None = view["summary"]
    labels, likely = ((), ()) if summary is None else (summary.by_labels, summary.by_probability)
    # Where workers are learnt as the tile has it: a certificate may be a minute old.
    fresh = summary if summary is not None and summary.low is not None else None
    now = fresh.accuracy if fresh is not None else None if certificate is None else certificate.now
    return {
        "labels": [count for _, count in labels],
        "labelNames": [name for name, _ in labels],
        "probability": [count for _, count in likely],
        "accuracy": view["is_accuracy"],
        "budget": row.budget,
        "spent": row.spent,
        "now": now,
        "forecast": None if view["forecast"] is None else view["forecast"].mean,
        "upper": None if certificate is None else certificate.upper,
        "curve": [] if certificate is None else [[row.budget + x, y] for x, y in certificate.curve],
        "history": [] if certificate is None else [list(point) for point in certificate.history],
        "learnt": row.config.knows_workers,
    }


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
    return _begun(" ".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in texts))


def _begun(text: str) -> str:
    """The beginning of a text, in one line."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def _forecast(dashboard: DashboardState, row: CampaignRow, certificate: Certificate | None) -> ForecastView | None:
    """By the certificate where workers are told apart, else by simulation.

    That shows no more than the proved bound: beyond it is only chance.
    """
    if row.config.knows_workers and row.closed_seq is None and row.tasks:
        if certificate is None or certificate.forecast is None:
            return None if certificate is None else ForecastView(why=certificate.withheld)
        return ForecastView(certificate.forecast, certificate.forecast_low or 0.0, certificate.forecast_high or 1.0)
    found = dashboard.forecast(row)
    if found is None or found.mean is None or certificate is None or certificate.upper is None:
        return found
    return replace(found, mean=min(found.mean, certificate.upper))


def _tasks(store: SqlStore, row: CampaignRow, numbers: Iterable[int]) -> list[TaskRow]:
    """Tasks by number, in this order."""
    wanted = list(numbers)
    found = store.tasks_by_number(row.id, wanted)
    return [found[number] for number in wanted if number in found]


def _hardest(
    dashboard: DashboardState, row: CampaignRow, summary: StateSummary, rights: Rights
) -> list[dict[str, Any]]:
    tasks = _tasks(dashboard.store, row, summary.hardest[:HARD_SHOWN])
    results = dashboard.service.results_of(row, dashboard.classes(row), tasks, service.READ_PATIENCE_S)
    numbers = [task.number for task in tasks]
    leases = dashboard.store.leases(row.id, numbers) if rights.sees_workers else []
    return [
        {
            "number": task.number, "result": result,
            "summary": payload_summary(shown_payload(row.config.show, task.payload), task.key),
            "said": [one for one in leases if one.task == task.number and one.label is not None],
        }
        for task, result in zip(tasks, results, strict=True)
        if result.source != "audited"
    ]  # fmt: skip


def _more(certificate: Certificate | None) -> list[tuple[int, float, float]]:
    """(additional labels, upper bound, gain) for some round numbers."""
    if certificate is None or certificate.upper is None or certificate.history:
        return []
    steps = [n for n in STEPS if n <= certificate.most][-5:] or [certificate.most]
    return [(n, certificate.upper + gain, gain) for n, gain in ((n, certificate.gain(n)) for n in steps)]


def with_tasks(store: SqlStore, row: CampaignRow, leases: Sequence[LeaseRow]) -> list[tuple[LeaseRow, str]]:
    """Leases with the ids of their tasks."""
    tasks = store.tasks_by_number(row.id, [lease.task for lease in leases])
    return [(lease, tasks[lease.task].key) for lease in leases if lease.task in tasks]


class LogLine(NamedTuple):
    """One line of the log; ``task`` is the number of its task, if it is about one."""

    seq: int
    at: float
    kind: str
    text: str
    task: int | None = None


def log_page(
    store: SqlStore, id: str, config: CampaignSettings, before: int | None, limit: int
) -> tuple[list[LogLine], int | None]:
    """One page of a campaign's log, newest first, and the cursor of the next page.

    The many events of one batch or one import of tasks are one line.
    """
    events = store.light_events(id, limit, before=before)
    leases = {one.id: one for one in store.leases(id, ids=[e.data["lease"] for e in events if "lease" in e.data])}
    tasks = store.tasks_by_number(id, [lease.task for lease in leases.values()])
    lines: list[LogLine] = []
    for event, later in zip(events, [None, *events], strict=False):
        if later is None or later.kind != event.kind or later.at - event.at > MERGED_S.get(event.kind, -1.0):
            lease = leases.get(event.data.get("lease", ""))
            task = None if lease is None else tasks.get(lease.task)
            said = _said(config, event, "Somebody" if lease is None else lease.worker, task.key if task else "a task")
            lines.append(LogLine(event.seq, event.at, event.kind, said, None if lease is None else lease.task))
    return lines, events[-1].seq if len(events) == limit and events[-1].seq > 1 else None


def _said(config: CampaignSettings, event: Event, who: str, what: str) -> str:
    """The sentence of an event."""
    text, data = _TEXTS[event.kind], event.data
    if not isinstance(text, str):
        return text(data)
    return _Words().vformat(text, (), {**data, **_parts(config, data), "who": who, "what": what})


class _Words(Formatter):
    """Fills a text in: ``{n:count}`` is a number, ``{n:item}`` so many items; of a list its length."""

    def format_field(self, value: Any, spec: str) -> str:
        """A number with its noun."""
        if not spec:
            return str(value)
        number = value if isinstance(value, int) else len(value)
        return count(number) if spec == "count" else counted(number, spec)


def _parts(config: CampaignSettings, data: Mapping[str, Any]) -> dict[str, str]:
    """What texts hold beside the event's own data: the label, whether it counts, a comment, a reason."""
    begun, reason = _begun(data.get("comment", "")), data.get("reason")
    return {
        "label": config.answer_type.shown(data["label"]) if "label" in data else "",
        "uncounted": "" if data.get("counted") else "; it does not count because the budget was spent",
        "kept": "counted" if data.get("counted") else "kept but not counted",
        "said": f" Comment: “{begun}”" if begun else "",
        "because": f": {reason.rstrip('.')}." if reason else ".",
    }


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
    "changed": lambda d: f"The requester changed {joined([_change(name, d[name]) for name in names() if name in d])}.",
    "tuned": lambda d: (
        f"The policy was adapted to the workers: arrivals {rate(d.get('arrival_rate'))}, {d['rho']:g} labels in flight "
        "on average."
    ),
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
        d["sentence"] if d.get("certified") else f"The expert answered {counted(len(d['answers']), 'item')}."
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
