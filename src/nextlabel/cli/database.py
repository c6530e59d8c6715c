"""The database that a command works on: its campaigns, and what the commands on campaigns share."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import typer

from nextlabel.cli.options import (
    ASSIGNED_COLUMN,
    DB,
    DUPLICATES,
    LABEL_COLUMN,
    POSITIVE,
    SUBMITTED_COLUMN,
    TASK_COLUMN,
    WORKER_COLUMN,
    argument,
    refuse_idle,
)
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.files.tables import NamedColumns

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.files.features import Features
    from nextlabel.files.labels import Gold, LabelTable
    from nextlabel.service.links import LinkSigner
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.store.sql import SqlStore

ID = argument("ID", "The campaign's id.")
#: Fields of a campaign's row that ``--json`` prints.
FIELDS = ("id", "tasks", "budget", "spent", "reserved", "left", "given", "kept", "late", "expired", "released", "seq")
CAMPAIGN = "campaign:"


def service_at(db: str, create: bool = False) -> closing[CampaignService]:
    """The service that runs commands on a database; a SQLite file that is not there is made only with ``create``."""
    needs_service()
    from nextlabel.application.service import CampaignService
    from nextlabel.store.sql import open_store

    return closing(CampaignService(open_store(db, create=create)))


def links_at(store: SqlStore, public_url: str | None) -> tuple[LinkSigner, ServiceSettings, str]:
    """What signs links, the settings that say how they begin, and what to warn whoever makes them of.

    They begin as asked for, else with the address by which the database was served last.
    """
    from nextlabel.service.app_state import link_warning
    from nextlabel.service.links import LinkSigner
    from nextlabel.service.settings import ADDRESS, ServiceSettings

    settings, last = ServiceSettings(public_url=public_url), store.get(ADDRESS)
    if not settings.public_url and last is not None:
        settings = ServiceSettings(public_url=last.decode())
    return LinkSigner.of(store, settings.key_file), settings, link_warning(settings.base_url)


def names_of(text: str) -> list[str]:
    """The names between commas."""
    return [name.strip() for name in text.split(",")]


def state_of(row: CampaignRow) -> str:
    """Open, paused or closed, with the reason why it is closed."""
    return row.state if row.closed_reason is None else f"{row.state} ({row.closed_reason})"


def fields_of(row: CampaignRow) -> dict[str, Any]:
    """What ``--json`` prints of a campaign."""
    from nextlabel.application.status import cost_of

    cost = cost_of(row)
    found = {name: getattr(row, name) for name in (*FIELDS, "state", "closed_reason")}
    return {**found, "name": row.config.name, "cost": None if cost is None else asdict(cost)}


@dataclass
class LabelFlags:
    """Where the labels of a table are, or of a campaign, and which count."""

    task_column: str = TASK_COLUMN
    worker_column: str = WORKER_COLUMN
    label_column: str = LABEL_COLUMN
    positive: str | None = POSITIVE
    duplicates: Literal["first", "keep"] = DUPLICATES
    db: str = DB

    def read(self, labels: str, context: typer.Context, **times: str) -> LabelTable:
        """The labels."""
        from nextlabel.files.labels import read_labels

        source = label_source(context, labels, self.db)
        return read_labels(source, positive=self.positive, duplicates=self.duplicates, **self.names, **times)

    @property
    def names(self) -> dict[str, str]:
        """The columns of tasks, workers and labels."""
        return {"task": self.task_column, "worker": self.worker_column, "label": self.label_column}

    def gold(self, path: str | None, labels: LabelTable) -> Gold | None:
        """The truths in another table, whose columns are called the same."""
        from nextlabel.files.labels import read_gold

        return None if path is None else read_gold(path, labels, task=self.task_column, label=self.label_column)

    def features(self, path: str | None) -> Features | None:
        """What a table knows of the tasks."""
        from nextlabel.files.features import read_features

        return None if path is None else read_features(path, task=self.task_column)


@dataclass
class TimedLabelFlags(LabelFlags):
    """The same where times are read too."""

    assigned_column: str = ASSIGNED_COLUMN
    submitted_column: str = SUBMITTED_COLUMN

    def read(self, labels: str, context: typer.Context, **times: str) -> LabelTable:
        """The labels with their times."""
        return super().read(labels, context, assigned_at=self.assigned_column, submitted_at=self.submitted_column)


def label_source(context: typer.Context, given: str | None, db: str) -> str | NamedColumns:
    """What ``read_labels`` takes: the path that was given, or the labels of the campaign that it names."""
    if given is None or not given.startswith(CAMPAIGN):
        refuse_idle(context, ["db"], "labels of a campaign, campaign:ID")
        return given or ""

    id = given.removeprefix(CAMPAIGN)
    with service_at(db) as service:
        service.store.row(id)
        found = list(service[id].labels())
    if not found:
        raise InputError(f"the campaign {id} has no labels yet.", "Come back when workers have answered.")
    return NamedColumns(
        given,
        task=[one.task for one in found],
        worker=[one.worker for one in found],
        label=[one.label for one in found],
        assigned_at=[one.started for one in found],
        submitted_at=[one.submitted for one in found],
    )
