"""What the model of a crowd (``campaign.crowd_model``) reads of a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import CampaignRow


class CrowdLog(Protocol):
    """What a model reads: a ledger inside a transaction, or the store outside of one."""

    @property
    def row(self) -> CampaignRow:
        """The campaign."""
        ...

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number."""
        ...

    def last_event(self, kind: str) -> int | None:
        """The number of the last event of a kind."""
        ...

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The class of each task from number ``first`` to before ``end``."""
        ...

    def classes(self) -> Sequence[Prior]:
        """The different priors of the tasks."""
        ...


def limits_between(row: CampaignRow, first: int, end: int) -> tuple[Ints, Ints]:
    """Most labels, and most labels in flight, of the tasks from ``first`` to before ``end``."""
    limits = row.rules.limits
    place = np.searchsorted([one.first for one in limits], np.arange(first, end), side="right") - 1
    return (
        np.array([one.most_labels for one in limits], dtype=np.int64)[place],
        np.array([one.most_in_flight for one in limits], dtype=np.int64)[place],
    )
