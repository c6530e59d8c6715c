"""The events of the log as sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nextlabel.campaign.declaration import LANGUAGES
from nextlabel.campaign.events import Event
from nextlabel.campaign.overview import LARGE, Overview
from nextlabel.campaign.rows import LeaseRow, TaskRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import REASONS
from nextlabel.prose import joined, listed
from nextlabel.web.dashboard.formatting import count, duration, plural, rate, when

#: Characters of a comment that a line shows.
LONGEST_COMMENT = 140
#: Seconds between two events of such a kind that are one line.
MERGED_S = {LARGE: 2.0, "tasks_ranked": 2.0, "predicted": 2.0}


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


def log_page(overview: Overview, id: str, config: CampaignSettings, before: int | None, limit: int) -> LogPage:
    """One page of a campaign's log."""
    events = overview.events_before(id, before, limit)
    leases = overview.leases_named(id, [e.data["lease"] for e in events if "lease" in e.data])
    tasks = overview.tasks_numbered(id, [lease.task for lease in leases.values()])
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
    return config.labels[number]


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
    parts = []
    if "budget" in data:
        parts.append(f"the budget to {count(data['budget'])} labels")
    if "deadline" in data:
        deadline = data["deadline"]
        parts.append("the deadline to none" if deadline is None else f"the deadline to {when(deadline)}")
    if "lease_seconds" in data:
        lease = data["lease_seconds"]
        parts.append("the lease time to the learnt one" if lease is None else f"the lease time to {duration(lease)}")
    if "pay_per_label" in data:
        parts.append(f"the pay per label to {data['pay_per_label']:g}")
    if "most_labels_per_worker" in data:
        most = data["most_labels_per_worker"]
        parts.append(f"the limit per worker to {'none' if most is None else count(most) + ' labels'}")
    if "turn_away" in data:
        parts.append(f"turning workers away to {'on' if data['turn_away'] else 'off'}")
    parts += [text(data[name]) for name, text in _PAGE_TEXTS.items() if name in data]
    return f"The requester changed {joined(parts)}."


#: Changes to what workers see.
_PAGE_TEXTS: dict[str, Callable[[Any], str]] = {
    "name": lambda new: f"the name to “{new}”" if new else "the name to its id",
    "question": lambda new: f"the question to “{new}”" if new else "the question to the usual one",
    "display_names": lambda new: (
        "what workers read to the labels themselves" if new is None else f"what workers read to {' / '.join(new)}"
    ),
    "instructions": lambda new: "the instructions" if new else "the instructions to none",
    "language": lambda new: f"the language to {LANGUAGES.get(new, 'that of each browser')}",
    "completion_code": lambda new: f"the completion code to {new}" if new else "the completion code to none",
    "show": lambda new: "the columns to the usual ones" if new is None else f"the columns to {listed(new)}",
}


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
    "tasks_ranked": lambda c, who, what, d: f"Tasks were ranked, up to number {d['until']:,}.",
    "batch_ended": lambda c, who, what, d: "Tasks were sent that were there already.",
    "leased": lambda c, who, what, d: f"{who} was given {what}.",
    "labelled": _told,
    "late": _late,
    "predicted": lambda c, who, what, d: f"{d['worker']} predicted {count(len(d['tasks']))} labels.",
    "expired": lambda c, who, what, d: f"The lease of {who} on {what} expired.",
    "released": lambda c, who, what, d: f"{who} skipped {what}.{_said(d)}",
    "renewed": lambda c, who, what, d: f"{who} extended the lease on {what}.",
    "undone": lambda c, who, what, d: f"{who} undid the label {_label(c, d)} of {what}.",
    "unasked": lambda c, who, what, d: f"{who} took {what} without having been given it.",
    "withdrawn": lambda c, who, what, d: (
        f"The label {_label(c, d)} of {who} for {what} was deleted where it was given."
    ),
    "paused": lambda c, who, what, d: "The requester paused the campaign.",
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
    "audit_drawn": lambda c, who, what, d: f"{plural(len(d['tasks']), 'item')} drawn at random for an audit.",
    "audit_answered": lambda c, who, what, d: f"The audit has the answers of {plural(len(d['answers']), 'item')} more.",
    "gold_set": lambda c, who, what, d: f"The answers of {plural(len(d['answers']), 'control question')} were given.",
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
    "closed": _closed,
    "reopened": lambda c, who, what, d: "The campaign reopened.",
    "rebuilt": lambda c, who, what, d: f"Rows of {d['table']} did not follow from the log and were rebuilt.",
    "clock_accepted": lambda c, who, what, d: f"The clock was accepted; the event before it is of {when(d['before'])}.",
}
