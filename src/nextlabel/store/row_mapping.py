"""Rows of a database as the campaign's dataclasses, and back."""

from __future__ import annotations

import json
from functools import lru_cache
from operator import attrgetter
from typing import Any

from nextlabel.campaign.amendments import amend
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import CampaignRow, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.rules import rules_from_json, rules_to_json
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.payloads import payload_from
from nextlabel.store.prepared import Row
from nextlabel.store.statements import FIXED
from nextlabel.store.tables import campaigns

_NAMES = tuple(column.name for column in campaigns.c)
_CHANGING = tuple(name for name in _NAMES if name not in FIXED)
_RULES, SEQ = _CHANGING.index("rules"), _NAMES.index("seq")
ID, NUMBER = _NAMES.index("id"), _NAMES.index("number")
_changing = attrgetter(*_CHANGING)


@lru_cache(maxsize=1024)
def _config(text: str) -> CampaignSettings:
    return CampaignSettings.from_log(json.loads(text))


def campaign_from(row: Row) -> tuple[int, CampaignRow]:
    """A row of ``campaigns``: the campaign's number in the database, and the rest."""
    values = dict(zip(_NAMES, row, strict=True))
    number = int(values.pop("number"))
    values["config"] = amend(_config(values["config"]), values["amended"])
    values["paused"] = bool(values["paused"])
    values["rules"] = rules_from_json(values["rules"])
    return number, CampaignRow(**values)


def campaign_values(row: CampaignRow) -> dict[str, Any]:
    """The inverse, without the number."""
    return {"id": row.id, "config": row.config.to_json(), "created_at": row.created_at, **changing_values(row)}


def changing_values(row: CampaignRow) -> dict[str, Any]:
    """What may change in the life of a campaign."""
    return {**{name: getattr(row, name) for name in _CHANGING}, "rules": rules_to_json(row.rules)}


def changing_columns(row: CampaignRow) -> tuple[Any, ...]:
    """The values of the same, in the same order."""
    values = _changing(row)
    return (*values[:_RULES], rules_to_json(row.rules), *values[_RULES + 1 :])


def event_from(row: Row) -> Event:
    """A row of ``events`` that has no payloads; those that may have are read by ``store.payloads``."""
    seq, at, kind, data = row
    return Event(seq, at, kind, json.loads(data))


def task_from(row: Row) -> TaskRow:
    """A row of ``tasks``, columns as in ``statements.TASK``."""
    number, key, payload, klass, *rest = row
    return TaskRow(number, key, payload_from(payload, number), class_of(klass), *rest)


def class_of(klass: int) -> int:
    """The class of a task from what is stored, which is negative for control questions (``TaskRow.group``)."""
    return klass if klass >= 0 else ~klass


def task_values(campaign: int, task: TaskRow) -> dict[str, Any]:
    """The inverse, without the payload, which is stored apart."""
    return {
        "campaign": campaign, "number": task.number, "key": task.key,
        "klass": task.group[0], "lot": task.place, "node": task.node, "w": task.w, "labels": task.labels,
        "score": task.score, "last_seq": task.last_seq, "closed_seq": task.closed_seq, "gold": task.gold,
    }  # fmt: skip


def lease_from(row: Row) -> LeaseRow:
    """A row of ``leases``, columns as in ``statements.LEASE``."""
    lease = LeaseRow(*row)
    if lease.counted is not None:
        lease.counted = bool(lease.counted)
    lease.dropped, lease.free = bool(lease.dropped), bool(lease.free)
    return lease


def worker_from(row: Row) -> WorkerRow:
    """A row of ``workers``, columns as in ``statements.WORKER``."""
    return WorkerRow(*row)
