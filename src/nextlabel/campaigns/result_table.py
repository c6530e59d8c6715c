"""Results as a table: what is known of each task, and then the columns that the task came with.

A column that has the name of one of ours is called ``original_NAME``; values that are lists or tables are written as
JSON, and so is, under ``payload``, a payload that has no columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from nextlabel.campaign.results import Result

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

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


class ResultTable:
    """The columns of a campaign's results, and a row of cells for each task."""

    def __init__(self, service: CampaignService, id: str) -> None:
        counts = [f"count_{label}" for label in service.store.row(id).config.labels]
        self._originals, plain_payloads = _payload_columns(service, id)
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


def _payload_columns(service: CampaignService, id: str) -> tuple[Sequence[str], bool]:
    """All columns that tasks of the campaign have, and whether some have a payload without columns."""
    names: dict[str, None] = {}
    plain = False
    for tasks in service.task_chunks(id, CHUNK):
        for task in tasks:
            if isinstance(task.payload, dict):
                names.update(dict.fromkeys(task.payload))
            else:
                plain = True
    return list(names), plain


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else value
