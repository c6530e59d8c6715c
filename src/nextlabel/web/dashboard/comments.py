"""Comments of workers, as the dashboard lists them."""

from __future__ import annotations

from typing import NamedTuple

from nextlabel.campaign.overview import Overview
from nextlabel.campaign.rows import CampaignRow


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
