"""How far an import of tasks has got, as Python users, the client and the API see it."""

from __future__ import annotations

from dataclasses import dataclass

from nextlabel.campaign.imports import ImportRow, ImportState
from nextlabel.campaign.ledger import Store
from nextlabel.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """One import (``campaign.imports``): ``rows`` tasks were read, and ``published`` of the new ones are in the log."""

    id: str
    campaign: str
    batch: str | None
    state: ImportState
    rows: int
    published: int
    added: int
    known: int
    error: str | None
    started_at: float
    updated_at: float


def import_status(store: Store, row: ImportRow) -> ImportStatus:
    """The status of an import."""
    published = row.added if row.state in ("ranking", "done") else 0
    if row.state == "publishing":
        try:
            campaign = store.row(row.campaign)
        except NotFoundError:  # it is about to be created
            published = 0
        else:
            published = row.added if campaign.tasks > row.first else campaign.rules.hidden
    return ImportStatus(
        row.id, row.campaign, row.batch, row.state, row.rows, published, row.added, row.known, row.error,
        row.started_at, row.beat_at,
    )  # fmt: skip


def imports_of(store: Store, campaign: str, limit: int = 20) -> list[ImportStatus]:
    """The last imports into a campaign, newest first."""
    return [import_status(store, row) for row in store.imports.of_campaign(campaign, limit)]


def find_import(store: Store, campaign: str, id: str) -> ImportStatus:
    """An import into a campaign by its id."""
    row = store.imports.find(id)
    if row is None or row.campaign != campaign:
        raise NotFoundError("there is no such import.", "Imports are remembered for a day after they have ended.")
    return import_status(store, row)
