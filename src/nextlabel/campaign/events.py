"""What the log of a campaign says: append-only, numbered from 1, and all that a campaign is can be rebuilt from it.

============ ===================================================================================================
kind         data
============ ===================================================================================================
created      config
tasks_added  first (number), tasks [[key, payload, class], ...], classes [prior, ...] new ones, batch (key, if any)
leased       lease, task, worker, expires_at, state [class, node, w], left (labels), rho of the tables
labelled     lease, label, counted
late         lease, label, counted
expired      lease
released     lease
renewed      lease, expires_at
undone       lease, label
paused       --
resumed      --
changed      budget, deadline or lease_seconds: the new value of each that changed
tuned        rho, arrival_rate, completion_rate: tables follow the rates that were learnt
closed       reason: why no task of the campaign gets another label
reopened     --
============ ===================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

KINDS: Final = (
    "created", "tasks_added", "leased", "labelled", "late", "expired", "released", "renewed", "undone", "paused",
    "resumed", "changed", "tuned", "closed", "reopened",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Number ``seq`` of a campaign's log, written at ``at`` (seconds since 1970)."""

    seq: int
    at: float
    kind: str
    data: dict[str, Any]
