"""Results and labels of a campaign as data frames, for people who go on in pandas or Polars.

Labels have crowd-kit's columns ``task``, ``worker`` and ``label``, and after them what nextlabel knows besides; moments
are moments in UTC. Results have the columns of the CSV download (``campaigns.result_table``). Neither library is needed
by nextlabel: it is imported when a frame is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from nextlabel.campaign.given_labels import GivenLabel
from nextlabel.campaigns.result_table import ResultTable
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

Library = Literal["pandas", "polars"]
MOMENTS = ("started", "submitted")


def results_frame(service: CampaignService, id: str, library: Library) -> Any:
    """A row for each task: the most likely label, its probability, counts, and the columns that the task came with."""
    make = frame_maker(library)
    table = ResultTable(service, id)
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
