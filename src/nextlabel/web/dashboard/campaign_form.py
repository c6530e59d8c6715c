"""Create a campaign from a file and a form, in one transaction: with all its tasks, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.declaration import declared
from nextlabel.campaign.ids import new_campaign_id
from nextlabel.campaign.intake import LONGEST_KEY, NewTask, add_tasks, read_task
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import InputError
from nextlabel.files.delimited import DelimitedTable
from nextlabel.files.numbers import with_point
from nextlabel.files.tasks import guess_columns
from nextlabel.web.dashboard.uploads import UploadedFile

#: Labels per task in the suggested budget.
LABELS_PER_TASK = 3


@dataclass(frozen=True, slots=True)
class CampaignForm:
    """The fields of the form, as text; checked by ``settings`` and ``check_columns``."""

    name: str = ""
    question: str = ""
    labels: str = declared("labels").example.replace(",", "\n")
    budget: str = ""
    shown: tuple[str, ...] = ()
    id_column: str = ""
    score_column: str = ""
    deadline: str = ""
    label_cost: str = ""

    @classmethod
    def read(cls, fields: Mapping[str, Any], shown: Sequence[str]) -> CampaignForm:
        """Read a submitted form."""
        names = ("name", "question", "labels", "budget", "id_column", "score_column", "deadline", "label_cost")
        return cls(shown=tuple(shown), **{name: str(fields.get(name, "")) for name in names})

    @classmethod
    def suggested(cls, upload: UploadedFile) -> CampaignForm:
        """A suggestion for a file, with columns recognised by their names."""
        id_column, score = guess_columns(upload.columns)
        shown = tuple(name for name in upload.columns if name not in (id_column, score)) or tuple(upload.columns)
        title = upload.name.removesuffix(".csv").replace("_", " ").replace("-", " ").strip()
        return cls(
            name=title[:1].upper() + title[1:], budget=str(LABELS_PER_TASK * upload.rows), shown=shown,
            id_column=id_column, score_column=score,
        )  # fmt: skip

    def settings(self, now: float) -> CampaignSettings:
        """The campaign's settings."""
        labels = [line.strip() for line in self.labels.splitlines() if line.strip()]
        deadline = read_time(self.deadline)
        if deadline is not None and deadline <= now:
            raise InputError("the deadline is in the past.", "Give a later one, or leave it empty.")
        return CampaignSettings(
            budget=read_budget(self.budget), labels=tuple(labels), name=self.name, question=self.question,
            deadline=deadline, label_cost=_cost(self.label_cost),
        )  # fmt: skip

    def check_columns(self, upload: UploadedFile) -> None:
        """Refuse columns that the file does not have, and a form that shows workers nothing."""
        for name in (*self.shown, self.id_column, self.score_column):
            if name and name not in upload.columns:
                raise InputError(f"the file has no column {name[:60]!r}.", "Choose one of its columns.")
        if not self.shown:
            raise InputError("no column is shown to workers.", "Tick at least one.")


def create_campaign(
    campaign_service: CampaignService, upload: UploadedFile, file: IO[bytes], form: CampaignForm
) -> str:
    """Create the campaign and return its id."""
    now = campaign_service.clock()
    config = form.settings(now)
    form.check_columns(upload)
    if form.score_column and config.answers != 2:
        raise InputError("a model's score needs two labels.", "Choose no score, or give two labels.")
    id = new_campaign_id()
    with campaign_service.store.create(id, config, now) as ledger:
        commands = Commands(ledger, campaign_service.table_cache, now)
        commands.begin()
        add_tasks(commands, _tasks(config, file, form))
    campaign_service.warm(id)
    return id


def read_budget(text: str) -> int:
    """A whole number, with or without separators."""
    plain = text.replace(",", "").replace(" ", "").replace("\u202f", "").strip()
    if not plain.isdecimal() or len(plain) > 15:
        raise InputError(f"budget {text[:40]!r} is not a whole number.", "Give the number of labels, e.g. 1200.")
    return int(plain)


def read_time(text: str) -> float | None:
    """A time in UTC; None if the field is empty."""
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"deadline {text[:40]!r} is not a time.", "Give e.g. 2026-07-01T12:00.") from None


def _cost(text: str) -> Any:
    """A share of what a correct task is worth: at 1 or more no label would be bought."""
    try:
        cost = float(text) if text.strip() else declared("label_cost").default
    except ValueError:
        cost = math.nan
    if not 0 <= cost < 1:
        raise InputError(f"label cost {text[:40]!r} is not a number from 0 to 1.", "Give e.g. 0.02, or leave it empty.")
    return cost


def _tasks(config: CampaignSettings, file: IO[bytes], form: CampaignForm) -> Iterator[NewTask]:
    table = DelimitedTable(file, "the file")
    place = {name: n for n, name in enumerate(table.columns)}
    seen: dict[str, int] = {}
    for row, cells in table:
        given: dict[str, Any] = {"payload": {name: cells[place[name]] for name in form.shown}}
        if form.id_column:
            key = cells[place[form.id_column]].strip()
            if not 0 < len(key) <= LONGEST_KEY:
                raise InputError(f"row {row:,} has no id, or one of more than {LONGEST_KEY} characters.", "Correct it.")
            if key in seen:
                raise InputError(f"row {row:,} has the id {key[:60]!r} of row {seen[key]:,}.", "Give each its own.")
            seen[key] = row
            given["id"] = key
        if form.score_column:
            given["score"] = with_point(cells[place[form.score_column]])
        try:
            yield read_task(config, given, row)
        except InputError as error:
            message = error.message.replace(f"task {row}", f"row {row:,}")
            raise InputError(message, error.hint) from None
