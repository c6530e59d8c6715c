"""Create a campaign from a file and a form: with all its tasks, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any

from nextlabel.campaign.declaration import declared
from nextlabel.campaign.new_tasks import LONGEST_KEY, NewTask, read_task
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.shown_columns import is_shown
from nextlabel.campaigns.imports import Progress
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import InputError
from nextlabel.files.columns import with_point
from nextlabel.files.delimited import DelimitedTable
from nextlabel.files.tasks import guess_columns
from nextlabel.store.disk_keys import KeysOnDisk
from nextlabel.web.dashboard.uploads import UploadedFile

#: Labels per task in the suggested budget; rows whose ids are compared with the earlier ones at once.
LABELS_PER_TASK, ROWS = 3, 1000
#: The policy of a campaign whose labels have a cost: the usual one spends its budget.
PRICED_POLICY = "index"
#: The column of known answers, which make tasks control questions.
GOLD = "gold"


@dataclass(frozen=True, slots=True)
class CampaignForm:
    """The fields of the form, as text; checked by ``settings`` and ``check_columns``."""

    name: str = ""
    question: str = ""
    instructions: str = ""
    labels: str = declared("labels").example.replace(",", "\n")
    language: str = ""
    budget: str = ""
    shown: tuple[str, ...] = ()
    id_column: str = ""
    score_column: str = ""
    deadline: str = ""
    label_cost: str = ""
    turn_away: str = ""

    @classmethod
    def read(cls, fields: Mapping[str, Any], shown: Sequence[str]) -> CampaignForm:
        """Read a submitted form."""
        names = (
            "name",
            "question",
            "instructions",
            "labels",
            "language",
            "budget",
            "id_column",
            "score_column",
            "deadline",
            "label_cost",
            "turn_away",
        )
        return cls(shown=tuple(shown), **{name: str(fields.get(name, "")) for name in names})

    @classmethod
    def suggested(cls, upload: UploadedFile) -> CampaignForm:
        """A suggestion for a file, with columns recognised by their names."""
        id_column = guess_columns(upload.columns)[0]
        shown = tuple(name for name in upload.columns if name not in (id_column, GOLD) and is_shown(None, name))
        title = upload.name.removesuffix(".csv").replace("_", " ").replace("-", " ").strip()
        return cls(
            name=title[:1].upper() + title[1:], budget=str(LABELS_PER_TASK * upload.rows), shown=shown,
            id_column=id_column,
        )  # fmt: skip

    def settings(self, now: float) -> CampaignSettings:
        """The campaign's settings."""
        labels = [line.strip() for line in self.labels.splitlines() if line.strip()]
        deadline = read_time(self.deadline)
        if deadline is not None and deadline <= now:
            raise InputError("the deadline is in the past.", "Give a later one, or leave it empty.")
        cost = _cost(self.label_cost)
        return CampaignSettings(
            budget=read_budget(self.budget), labels=tuple(labels), name=self.name, question=self.question,
            instructions=self.instructions, show=self.shown or None, language=self.language or None,
            deadline=deadline, label_cost=cost,
            policy=PRICED_POLICY if cost > 0 else declared("policy").default, turn_away=self.turn_away == "on",
        )  # fmt: skip

    def check_columns(self, upload: UploadedFile) -> None:
        """Refuse columns that the file does not have, and a form that shows workers nothing."""
        for name in (*self.shown, self.id_column, self.score_column):
            if name and name not in upload.columns:
                raise InputError(f"the file has no column {name[:60]!r}.", "Choose one of its columns.")
        if not self.shown:
            raise InputError("no column is shown to workers.", "Tick at least one.")


def create_campaign(
    campaign_service: CampaignService,
    upload: UploadedFile,
    file: IO[bytes],
    form: CampaignForm,
    progress: Progress | None = None,
) -> str:
    """Create the campaign and return its id."""
    now = campaign_service.clock()
    config = form.settings(now)
    form.check_columns(upload)
    if form.score_column and config.answers != 2:
        raise InputError("a model's score needs two labels.", "Choose no score, or give two labels.")
    return campaign_service.create_with(config, None, _tasks(config, file, form), progress).id


def read_budget(text: str, what: str = "budget") -> int:
    """A whole number, with or without separators."""
    plain = text.replace(",", "").replace(" ", "").replace("\u202f", "").strip()
    if not plain.isdecimal() or len(plain) > 15:
        raise InputError(f"{what} {text[:40]!r} is not a whole number.", "Give the number of labels, e.g. 1200.")
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
    rows, with_id = iter(table), form.id_column
    with KeysOnDisk() as seen:
        while some := list(islice(rows, ROWS)):
            keys = [cells[place[with_id]].strip() for _, cells in some] if with_id else []
            earlier = {key: int(row) for key, row in seen.find(keys).items()}
            new: dict[str, int] = {}
            for number, (row, cells) in enumerate(some):
                given: dict[str, Any] = {"payload": dict(zip(table.columns, cells, strict=True))}
                if GOLD in place and GOLD not in form.shown:
                    given["gold"] = given["payload"].pop(GOLD)
                if with_id:
                    key = keys[number]
                    _check_key(key, row, earlier.get(key, new.get(key)))
                    given["id"], new[key] = key, row
                if form.score_column:
                    given["score"] = with_point(cells[place[form.score_column]])
                yield _read_row(config, given, row)
            seen.add([(key, str(row).encode()) for key, row in new.items()])


def _check_key(key: str, row: int, earlier: int | None) -> None:
    if not 0 < len(key) <= LONGEST_KEY:
        raise InputError(f"row {row:,} has no id, or one of more than {LONGEST_KEY} characters.", "Correct it.")
    if earlier is not None:
        raise InputError(f"row {row:,} has the id {key[:60]!r} of row {earlier:,}.", "Give each its own.")


def _read_row(config: CampaignSettings, given: dict[str, Any], row: int) -> NewTask:
    try:
        return read_task(config, given, row)
    except InputError as error:
        message = error.message.replace(f"task {row}", f"row {row:,}")
        raise InputError(message, error.hint) from None
