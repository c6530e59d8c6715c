"""The database that a command works on: its campaigns, and what the commands on campaigns share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.options import (
    DB,
    AssignedColumn,
    Db,
    Duplicates,
    Flag,
    LabelColumn,
    Positive,
    SubmittedColumn,
    TaskColumn,
    WorkerColumn,
    parse_number,
    refuse_idle,
)
from nextlabel.cli.output import say
from nextlabel.cli.serve import needs_service
from nextlabel.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService
    from nextlabel.campaign.records import ImportRow
    from nextlabel.campaign.replies import Added
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.campaign.settings import CampaignSettings
    from nextlabel.files.features import Features
    from nextlabel.files.labels import Gold, LabelTable
    from nextlabel.files.tables import NamedColumns
    from nextlabel.files.tasks import TaskReader
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.store.sql import SqlStore

Id = Annotated[str, typer.Argument(metavar="ID", help="The campaign's id.")]
TASKS_FILE = typer.Argument(metavar="TASKS", help="A file of tasks: CSV, TSV, JSON lines, JSON or Parquet.")
#: The flag --task-column of files of tasks, and what such flags go with.
ID_COLUMN = ("NAME", "The column with the tasks. Default: id.")
A_FILE = ("a file of TASKS", lambda typed: typed["tasks"] is not None)
ScoreColumn = Annotated[
    str | None, Flag("NAME", "The column with a model's scores, to start from. Default: none.", needs=A_FILE)
]

GoldColumn = Annotated[
    str | None, Flag("NAME", "The column with the answers that are known. Default: gold.", needs=A_FILE)
]

#: Fields of a campaign's row that ``--json`` prints.
FIELDS = ("id", "tasks", "budget", "spent", "reserved", "left", "given", "kept", "late", "expired", "released", "seq")
CAMPAIGN = "campaign:"


@contextmanager
def opened_store(db: str, create: bool = False) -> Iterator[SqlStore]:
    """The store at an address; one that is not there is made only with ``create``."""
    needs_service()
    from nextlabel.store.sql import open_store

    store = open_store(db, create=create)
    try:
        yield store
    finally:
        store.close()


def settings_at(store: SqlStore, public_url: str | None) -> ServiceSettings:
    """The settings for links: they begin as asked for, else with the address by which the database was served last."""
    from nextlabel.service.settings import ADDRESS, ServiceSettings

    settings, last = ServiceSettings(public_url=public_url), store.get(ADDRESS)
    return settings if settings.public_url or last is None else ServiceSettings(public_url=last.decode())


@contextmanager
def service_at(db: str, create: bool = False) -> Iterator[CampaignService]:
    """The service that runs commands on a database; a SQLite file that is not there is made only with ``create``."""
    with opened_store(db, create) as store:
        from nextlabel.application.service import CampaignService

        service = CampaignService(store)
        try:
            yield service
        finally:
            service.close()


def number_of(name: str, text: str) -> float:
    """The number that was typed."""
    return parse_number(name, text, "Give a number.")


def names_of(text: str) -> list[str]:
    """The names between commas."""
    return [name.strip() for name in text.split(",")]


def text_of(flag: str, path: str) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{flag}: cannot read {path}: {error.strerror or error}.", "Give a text file.") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{flag}: {path} is not a text in UTF-8.", "Save it as UTF-8.") from None


def state_of(row: CampaignRow) -> str:
    """Open, paused or closed, with the reason why it is closed."""
    return row.state if row.closed_reason is None else f"{row.state} ({row.closed_reason})"


def fields_of(row: CampaignRow) -> dict[str, Any]:
    """What ``--json`` prints of a campaign."""
    from dataclasses import asdict

    from nextlabel.application.status import cost_of

    cost = cost_of(row)
    found = {name: getattr(row, name) for name in (*FIELDS, "state", "closed_reason")}
    return {**found, "name": row.config.name, "cost": None if cost is None else asdict(cost)}


#: The share of an import that reading and checking the tasks is, for the bar.
READING = 0.4


def import_bar(reader: TaskReader | None, progress: Callable[[float], None]) -> Callable[[ImportRow, int], None]:
    """Shows how far an import has got: first tasks are read, then published."""

    def show(row: ImportRow, published: int) -> None:
        if row.state == "staging":
            progress(READING * (0.0 if reader is None else reader.share_read()))
        else:
            progress(READING + (1.0 - READING) * published / max(row.added, 1))

    return show


def say_columns(config: CampaignSettings, tasks: TaskReader, score_column: str | None, added: Added) -> list[str]:
    """Tell on stderr which columns workers are not shown, that a score was not used, and which tasks are alike."""
    from nextlabel.campaign.settings import columns_notes

    notes = [*columns_notes(config.show, tasks.columns, score_column), *added.notes()]
    for note in notes:
        say(note)
    return notes


@contextmanager
def opened_tasks(
    path: str, id_column: str | None, score_column: str | None, gold_column: str | None = None
) -> Iterator[TaskReader]:
    """The tasks of a file, one after the other."""
    from nextlabel.files.tasks import open_tasks

    with open_tasks(path, id_column=id_column, score_column=score_column, gold_column=gold_column) as reader:
        yield reader


@dataclass
class LabelFlags:
    """Where the labels of a table are, or of a campaign, and which count."""

    task_column: TaskColumn = "task"
    worker_column: WorkerColumn = "worker"
    label_column: LabelColumn = "label"
    positive: Positive = None
    duplicates: Duplicates = "first"
    db: Db = DB

    def read(self, labels: str, context: typer.Context) -> LabelTable:
        """The labels."""
        from nextlabel.files.labels import read_labels

        source = label_source(context, labels, self.db)
        return read_labels(source, positive=self.positive, duplicates=self.duplicates, **self.names, **self.times)

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

    @property
    def times(self) -> dict[str, Any]:
        """The columns of times."""
        return {}


@dataclass
class TimedLabelFlags(LabelFlags):
    """The same where times are read too."""

    assigned_column: AssignedColumn = "assigned_at"
    submitted_column: SubmittedColumn = "submitted_at"

    @property
    def times(self) -> dict[str, Any]:
        """The columns of times."""
        return {"assigned_at": self.assigned_column, "submitted_at": self.submitted_column}


def label_source(context: typer.Context, given: str | None, db: str) -> str | NamedColumns:
    """What ``read_labels`` takes: the path that was given, or the labels of the campaign that it names."""
    if given is None or not given.startswith(CAMPAIGN):
        refuse_idle(context, ["db"], "labels of a campaign, campaign:ID")
        return given or ""
    from nextlabel.files.tables import NamedColumns

    id = given.removeprefix(CAMPAIGN)
    with service_at(db) as service:
        service.store.row(id)
        found = list(service.labels(id))
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
