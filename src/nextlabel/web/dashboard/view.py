"""A campaign as the templates show it: words and small tables, and the same numbers for the charts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from nextlabel.beliefs.rewards import Accuracy
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.results import results_of
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaigns.certificate import Certificate
from nextlabel.web.dashboard.forecast_view import ForecastView
from nextlabel.web.dashboard.formatting import percent, points, reason_of, shortly, title_of
from nextlabel.web.dashboard.log_sentences import log_page
from nextlabel.web.dashboard.state import DashboardState
from nextlabel.web.dashboard.state_summary import BINS, StateSummary
from nextlabel.web.dashboard.worker_summaries import MOST_WORKERS
from nextlabel.web.render import rendered

HARD_SHOWN, LEASES_SHOWN, LOG_LINES = 10, 10, 20
#: More labels that the table tells about.
STEPS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
LONGEST_SUMMARY = 140
#: Pieces of the page that follow a campaign as it runs.
PARTS = (
    "status",
    "tiles",
    "certificate",
    "flow",
    "hardest",
    "workers",
    "leases",
    "log",
    "by_labels",
    "by_chance",
    "more",
)


def campaign_view(room: DashboardState, row: CampaignRow, before: int | None = None) -> dict[str, Any]:
    """All that the page of a campaign shows."""
    found, certificate = room.figures(row), room.certificate(row)
    heading = _proved(room.heading(row), certificate)
    accuracy = row.config.reward == Accuracy()
    return {
        "row": row,
        "now": room.now(),
        "title": title_of(row),
        "state": row.state,
        "reason": reason_of(row),
        "figures": found,
        "certificate": certificate,
        "heading": heading,
        "worth": percent if accuracy else shortly,
        "more_worth": points if accuracy else _plain_more,
        "is_accuracy": accuracy,
        "spent_share": row.spent / row.budget,
        "reserved_share": min(row.reserved, row.budget - row.spent) / row.budget,
        "arrivals": arrival_rate(row),
        "completions": completion_rate(row),
        "lease_s": lease_seconds(row),
        "hardest": [] if found is None else _hardest(room, row, found),
        "workers": _workers(room, row),
        "leases": _leases(room, row),
        "log": log_page(room.overview, row.id, row.config, before, LOG_LINES),
        "before": before,
        "by_labels": _by_labels(found),
        "by_chance": _by_chance(found),
        "more": _more(certificate),
    }


def charts_of(view: dict[str, Any]) -> dict[str, Any]:
    """The numbers behind the charts."""
    row: CampaignRow = view["row"]
    certificate: Certificate | None = view["certificate"]
    heading = view["heading"]
    return {
        "labels": [count for _, count in view["by_labels"]],
        "labelNames": [name for name, _ in view["by_labels"]],
        "chance": [count for _, count in view["by_chance"]],
        "accuracy": view["is_accuracy"],
        "budget": row.budget,
        "spent": row.spent,
        "now": None if certificate is None else certificate.now,
        "heading": None if heading is None else heading.mean,
        "upper": None if certificate is None else certificate.upper,
        "curve": [] if certificate is None else [[row.budget + x, y] for x, y in certificate.curve],
    }


def parts_of(view: dict[str, Any]) -> dict[str, str]:
    """The pieces of the page that follow a campaign, as HTML."""
    return {name: rendered(f"dashboard/parts/{name}.html", **view) for name in PARTS}


def marks_of(parts: dict[str, str], charts: dict[str, Any]) -> dict[str, str]:
    """A short mark of each piece, to tell which have changed."""
    texts = {**parts, "charts": json.dumps(charts, sort_keys=True)}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:10] for name, text in texts.items()}


def summary(payload: Any) -> str:
    """The beginning of what workers are shown."""
    text = payload.get("text", next(iter(payload.values()))) if isinstance(payload, dict) and payload else payload
    words = " ".join((text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)).split())
    return words if len(words) <= LONGEST_SUMMARY else words[: LONGEST_SUMMARY - 1] + "…"


def _proved(heading: ForecastView | None, certificate: Certificate | None) -> ForecastView | None:
    """What was simulated, no more than what is proved: the difference would be chance."""
    if heading is None or certificate is None or heading.mean is None:
        return heading
    return replace(heading, mean=min(heading.mean, certificate.upper))


def _plain_more(gain: float) -> str:
    return f"+{gain:.3g}"


def _hardest(room: DashboardState, row: CampaignRow, found: StateSummary) -> list[dict[str, Any]]:
    tasks = room.overview.tasks_in(row.id, found.hardest, HARD_SHOWN)
    results = results_of(row, room.classes(row), tasks)
    return [
        {"number": task.number, "summary": summary(task.payload), "result": result}
        for task, result in zip(tasks, results, strict=True)
    ]


def _workers(room: DashboardState, row: CampaignRow) -> list[dict[str, Any]]:
    team = room.team(row)
    shown = []
    for one in room.store.workers(row.id, MOST_WORKERS):
        in_time = one.labels - one.late
        shown.append(
            {
                "row": one,
                "mean_s": one.seconds / in_time if in_time > 0 else None,
                "pace": None if team is None else team.get(one.worker),
            }
        )
    return shown


def _leases(room: DashboardState, row: CampaignRow) -> list[dict[str, Any]]:
    out = room.overview.open_leases(row.id, LEASES_SHOWN) if row.reserved else []
    tasks = room.overview.tasks_numbered(row.id, [lease.task for lease in out])
    return [{"row": lease, "key": tasks[lease.task].key} for lease in out if lease.task in tasks]


def _by_labels(found: StateSummary | None) -> list[tuple[str, int]]:
    """Tasks by their labels; from twelve on together."""
    if found is None:
        return []
    counts = list(found.by_labels)
    head = [(str(n), count) for n, count in enumerate(counts[:12])]
    return [*head, ("12+", sum(counts[12:]))] if len(counts) > 12 else head


def _by_chance(found: StateSummary | None) -> list[tuple[str, int]]:
    if found is None:
        return []
    width = 100 // BINS
    return [(f"{width * n}–{width * (n + 1)}%", count) for n, count in enumerate(found.by_chance)]


def _more(certificate: Certificate | None) -> list[tuple[int, float, float]]:
    """(more labels, at most, gain) for some round numbers."""
    if certificate is None:
        return []
    steps = [n for n in STEPS if n <= certificate.most]
    return [
        (n, certificate.upper + certificate.gain(n), certificate.gain(n)) for n in (steps[-5:] or [certificate.most])
    ]
