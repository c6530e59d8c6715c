"""Results and labels of a campaign as data frames, for people who go on in pandas, Polars or Arrow.

Labels have crowd-kit's columns ``task``, ``worker`` and ``label``, and after them what nextlabel knows besides; moments
are moments in UTC. Results have the columns of the CSV download (``ResultTable``). Tasks or labels whose names are all
whole numbers are integers, so that they compare with the integers that they came from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.crowd.answers import Answer
from nextlabel.files.frames import Library, make_frame

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

MOMENTS = ("started", "submitted")

PLAIN: Final = (
    "task", "label", "probability", "labels", "in_flight", "closed", "closed_by", "closed_reason", "control", "source",
)  # fmt: skip
PAYLOAD: Final = "payload"

#: Names with a meaning of their own for readers of results.
_TAKEN: Final = frozenset((*PLAIN, PAYLOAD, "gold"))


def results_frame(service: CampaignService, id: str, library: Library) -> Any:
    """A row for each task: the most likely label, its probability, counts, and the columns that the task came with."""
    table = result_table(service, id)
    return make_frame(table.header, [table.cells(result) for result in service[id].results()], library)


def labels_frame(labels: Iterable[GivenLabel], library: Library) -> Any:
    """A row for each answer of a worker."""
    names = [field.name for field in fields(GivenLabel)]
    rows = [[getattr(label, name) for name in names] for label in labels]
    for row in rows:
        for place in map(names.index, MOMENTS):
            row[place] = row[place] and datetime.fromisoformat(row[place])
    return make_frame(names, rows, library)


class ResultTable:
    """The columns of a campaign's results, and a row of cells for each task."""

    def __init__(self, answers: Answer, payloads: Iterable[Any]) -> None:
        counts = [f"count_{label}" for label in answers.labels]
        probabilities = [f"p_{label}" for label in answers.labels]
        probabilities += [f"{end}_{name}".rstrip("_") for name in answers.ranges for end in ("low", "high")]
        columns: dict[str, None] = {}
        self._plain, self._ranges = False, answers.ranges
        for payload in payloads:
            if isinstance(payload, dict):
                columns.update(dict.fromkeys(payload))
            else:
                self._plain = True
        self._originals = list(columns)
        taken = {*_TAKEN, *counts, *probabilities}
        names = [f"original_{name}" if name in taken else name for name in self._originals]
        #: The columns that tasks came with.
        self.names = [*names, *([PAYLOAD] if self._plain else [])]
        self.header = [*PLAIN, *counts, *probabilities, *self.names]

    def cells(self, result: Result) -> list[Any]:
        """One row."""
        said: list[Any] = [*result.counts.values(), *(round(p, 6) for p in result.probabilities.values())]
        for name in self._ranges:
            ends = result.intervals.get(name) if name else result.interval
            said += [None, None] if ends is None else [round(end, 6) for end in ends]
        payload, plain = result.payload, [None] * self._plain
        if isinstance(payload, dict):
            own = [*(_cell(payload.get(name)) for name in self._originals), *plain]
        else:
            own = [*[None] * len(self._originals), _cell(payload)]
        return [*(getattr(result, name) for name in PLAIN), *said, *own]


def result_table(service: CampaignService, id: str) -> ResultTable:
    """The columns of a campaign's results."""
    payloads = (task.payload for tasks in service.task_chunks(id) for task in tasks)
    return ResultTable(service.store.row(id).config.answer_type, payloads)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else value
