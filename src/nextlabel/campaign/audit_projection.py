"""What events about an audit change: the drawn tasks with their answers, which are among the campaign's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rules import NOT_ANSWERED
from nextlabel.campaign.task_moves import Projection, Rank


def _drawn(ledger: Ledger, event: Event, rank: Rank) -> None:
    row = ledger.row
    row.rules = replace(row.rules, audit=(*row.rules.audit, *((task, NOT_ANSWERED) for task in event.data["tasks"])))


def _answered(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, said = ledger.row, dict(event.data["answers"])
    row.rules = replace(row.rules, audit=tuple((task, said.get(task, old)) for task, old in row.rules.audit))


AUDIT_PROJECTIONS: Final[dict[str, Projection]] = {"audit_drawn": _drawn, "audit_answered": _answered}
