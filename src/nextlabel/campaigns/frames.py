"""Results and labels of a campaign as data frames, for people who go on in pandas or Polars.

Labels have crowd-kit's columns ``task``, ``worker`` and ``label``, and after them what nextlabel knows besides; moments
are moments in UTC. Results have the columns of the CSV download (``ResultTable``). Neither library is needed
by nextlabel: it is imported when a frame is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

Library = Literal["pandas", "polars"]
MOMENTS = ("started", "submitted")

#: Tasks that are read at once.
CHUNK = 10_000

PLAIN: Final = (
    "task",
    "label",
    "probability",
    "labels",
    "in_flight",
    "closed",
    "closed_by",
    "closed_reason",
    "control",
)
PAYLOAD: Final = "payload"

#: Names with a meaning of their own for readers of results.
_TAKEN: Final = frozenset((*PLAIN, PAYLOAD, "gold"))


def results_frame(service: CampaignService, id: str, library: Library) -> Any:
    """A row for each task: the most likely label, its probability, counts, and the columns that the task came with."""
    make = frame_maker(library)
    table = result_table(service, id)
    return make(table.header, (table.cells(result) for result in service.results(id)))


def labels_frame(labels: Iterable[GivenLabel], library: Library) -> Any:
    """A row for each answer of a worker."""
    make = frame_maker(library)
    names = [field.name for field in fields(GivenLabel)]
    return make(names, ([_value(label, name) for name in names] for label in labels))


def frame_maker(library: str) -> Any:
    """What makes a data frame of the library from names of columns and rows."""
    if library not in get_args(Library):
        raise InputError(f"library {library!r} is not known.", "Use pandas or polars.")
    try:
        module = import_module(library)
    except ImportError as error:
        raise InputError(f"a data frame needs the package {library}.", f"pip install {library}.") from error

    def make(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
        columns = {name: list(cells) for name, cells in zip(names, _columns(names, rows), strict=True)}
        if library == "polars":
            return module.DataFrame(columns, strict=False)
        return module.DataFrame(columns)

    return make


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) or [[] for _ in names]


def _value(label: GivenLabel, name: str) -> Any:
    value = getattr(label, name)
    return datetime.fromisoformat(value) if name in MOMENTS and value is not None else value


class ResultTable:
    """The columns of a campaign's results, and a row of cells for each task."""

    def __init__(self, labels: Sequence[str], payloads: Iterable[Any]) -> None:
        counts = [f"count_{label}" for label in labels]
        self._originals, plain_payloads = _payload_columns(payloads)
        taken = {*_TAKEN, *counts}
        names = [f"original_{name}" if name in taken else name for name in self._originals]
        #: The columns that tasks came with.
        self.names = [*names, *([PAYLOAD] if plain_payloads else [])]
        self.header = [*PLAIN, *counts, *self.names]
        self._plain = plain_payloads

    def cells(self, result: Result) -> list[Any]:
        """One row."""
        return [*(getattr(result, name) for name in PLAIN), *result.counts.values(), *self.originals(result)]

    def originals(self, result: Result) -> list[Any]:
        """The cells of the columns that the task came with."""
        payload = result.payload
        if not isinstance(payload, dict):
            return [*[None] * len(self._originals), _cell(payload)]
        found = [_cell(payload.get(name)) for name in self._originals]
        return [*found, None] if self._plain else found


def result_table(service: CampaignService, id: str) -> ResultTable:
    """The columns of a campaign's results."""
    payloads = (task.payload for tasks in service.task_chunks(id, CHUNK) for task in tasks)
    return ResultTable(service.store.row(id).config.labels, payloads)


def _payload_columns(payloads: Iterable[Any]) -> tuple[Sequence[str], bool]:
    """All columns that tasks have, and whether some have a payload without columns."""
    names: dict[str, None] = {}
    plain = False
    for payload in payloads:
        if isinstance(payload, dict):
            names.update(dict.fromkeys(payload))
        else:
            plain = True
    return list(names), plain


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else value
