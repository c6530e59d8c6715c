"""A campaign as the templates show it, and the numbers for its charts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any, NamedTuple

from nextlabel.beliefs.rewards import Accuracy
from nextlabel.campaign.overview import Overview
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaigns import service
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.crowd_bounds import FEWEST_LABELS, MOST_TASKS
from nextlabel.service.auth import Rights
from nextlabel.web.dashboard.forecasts import ForecastView
from nextlabel.web.dashboard.formatting import percent, points, reason_of, shortly, title_of
from nextlabel.web.dashboard.log_sentences import log_page
from nextlabel.web.dashboard.state import DashboardState
from nextlabel.web.dashboard.summaries import BINS, MOST_WORKERS, StateSummary
from nextlabel.web.render import render

HARD_SHOWN, LEASES_SHOWN, COMMENTS_SHOWN, LOG_LINES = 10, 10, 10, 20

#: Numbers of additional labels in the table.
STEPS = (100, 500, 1000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
LONGEST_SUMMARY = 140

#: The parts of the page that are updated while a campaign runs.
PARTS = (
    "status",
    "imports",
    "tiles",
    "certificate",
    "by_spent",
    "flow",
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
        "hardest": [] if summary is None else _hardest(dashboard, row, summary),
        "workers": _workers(dashboard, row) if rights.sees_workers else [],
        "leases": _leases(dashboard, row) if rights.sees_workers else [],
        "comments": _comments(dashboard, row) if rights.sees_workers else [],
        "log": log_page(dashboard.overview, row.id, row.config, before, LOG_LINES),
        "before": before,
        "by_labels": _by_labels(summary),
        "by_probability": _by_probability(summary),
        "more": _more(certificate),
        "imports": dashboard.imports(row),
        "bounds": {"tasks": MOST_TASKS, "fewest": FEWEST_LABELS},
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


def payload_summary(payload: Any) -> str:
    """The beginning of what workers see."""
    text = payload.get("text", next(iter(payload.values()))) if isinstance(payload, dict) and payload else payload
    words = " ".join((text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)).split())
    return words if len(words) <= LONGEST_SUMMARY else words[: LONGEST_SUMMARY - 1] + "…"


def _forecast(dashboard: DashboardState, row: CampaignRow, certificate: Certificate | None) -> ForecastView | None:
    """By the certificate where workers are told apart, else by simulation."""
    if not row.config.knows_workers or row.closed_seq is not None or not row.tasks:
        return _capped(dashboard.forecast(row), certificate)
    if certificate is None or certificate.forecast is None:
        return None
    low, high = certificate.forecast_low or 0.0, certificate.forecast_high or 1.0
    return ForecastView(certificate.forecast, 0.0, low, high)


def _capped(forecast: ForecastView | None, certificate: Certificate | None) -> ForecastView | None:
    """The simulated forecast, but no more than the proved bound: beyond it is only chance."""
    if forecast is None or forecast.mean is None or certificate is None or certificate.upper is None:
        return forecast
    return replace(forecast, mean=min(forecast.mean, certificate.upper))


def _plain_gain(gain: float) -> str:
    return f"+{gain:.3g}"


def _hardest(dashboard: DashboardState, row: CampaignRow, summary: StateSummary) -> list[dict[str, Any]]:
    if summary.hard_tasks is None:
        tasks = dashboard.overview.tasks_in(row.id, summary.hardest, HARD_SHOWN)
    else:
        found = dashboard.overview.tasks_numbered(row.id, summary.hard_tasks[:HARD_SHOWN])
        tasks = [found[number] for number in summary.hard_tasks if number in found]
    results = dashboard.app.campaign_service.results_of(row, dashboard.classes(row), tasks, service.READ_PATIENCE_S)
    return [
        {"number": task.number, "summary": payload_summary(task.payload), "result": result}
        for task, result in zip(tasks, results, strict=True)
    ]


def _workers(dashboard: DashboardState, row: CampaignRow) -> list[dict[str, Any]]:
    summaries = dashboard.worker_summaries(row)
    workers = []
    for one in dashboard.store.workers(row.id, MOST_WORKERS):
        in_time = one.labels - one.late
        workers.append(
            {
                "row": one,
                "mean_s": one.seconds / in_time if in_time > 0 else None,
                "summary": None if summaries is None else summaries.get(one.worker),
            }
        )
    return workers


def _comments(dashboard: DashboardState, row: CampaignRow) -> list[CommentLine]:
    return comment_lines(dashboard.overview, row, None, COMMENTS_SHOWN)


def _leases(dashboard: DashboardState, row: CampaignRow) -> list[dict[str, Any]]:
    out = dashboard.overview.open_leases(row.id, LEASES_SHOWN) if row.reserved else []
    tasks = dashboard.overview.tasks_numbered(row.id, [lease.task for lease in out])
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


def comment_lines(overview: Overview, row: CampaignRow, worker: str | None, limit: int) -> list[CommentLine]:
    """The last comments on a campaign's tasks, of one worker or of all."""
    leases = overview.comments(row.id, worker, limit)
    tasks = overview.tasks_numbered(row.id, [lease.task for lease in leases])
    return [
        CommentLine(
            lease.task, tasks[lease.task].key if lease.task in tasks else str(lease.task), lease.worker,
            None if lease.label is None else row.config.labels[lease.label], lease.comment or "",
            lease.ended_at or lease.leased_at,
        )
        for lease in leases
    ]  # fmt: skip
