"""Who was given which task and what they answered, one row for each lease: what studies of a crowd read.

The columns have the names that every reader of labels knows (``files.columns.USUAL``); moments are ISO 8601 in UTC. A
lease without an answer has no label, so that readers leave it out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from nextlabel.campaign.ids import is_prediction
from nextlabel.campaign.rows import LeaseRow, TaskRow
from nextlabel.campaign.transitions import LeaseStatus


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """One worker's answer to one task.

    ``state`` is that of the lease: ``labelled``, ``late``, or without an answer ``leased``, ``expired``, ``released``.
    ``counted`` says whether the label was bought: late ones may find the budget spent. ``dropped`` ones were bought,
    and the requester has left them out of the results. A model's labels are not bought and have no times.
    ``comment`` is what the worker said with the answer or, without one, with the skip.
    """

    task: str
    worker: str
    label: str | None
    started: str | None
    submitted: str | None
    state: LeaseStatus
    counted: bool
    dropped: bool = False
    comment: str | None = None


def given_labels(
    names: Sequence[str],
    tasks: Iterable[TaskRow],
    leases: Iterable[LeaseRow],
    unanswered: bool = False,
    dropped: bool = False,
    dropped_models: Collection[str] = (),
) -> list[GivenLabel]:
    """The answers to some tasks in the order in which they were given out.

    With ``unanswered`` also leases without an answer, with ``dropped`` also labels that were dropped.
    """
    keys = {task.number: task.key for task in tasks}
    return [
        GivenLabel(
            task=keys[lease.task],
            worker=lease.worker,
            label=None if lease.label is None else names[lease.label],
            started=None if predicted else moment(lease.leased_at),
            submitted=None if predicted or lease.label is None or lease.ended_at is None else moment(lease.ended_at),
            state=lease.status,
            counted=bool(lease.counted),
            dropped=left_out,
            comment=lease.comment,
        )
        for lease, predicted, left_out in _marked(leases, dropped_models)
        if (unanswered or lease.label is not None) and (dropped or not left_out)
    ]


def _marked(leases: Iterable[LeaseRow], dropped_models: Collection[str]) -> Iterator[tuple[LeaseRow, bool, bool]]:
    """Leases, each with whether it is a prediction and whether its label was dropped."""
    for lease in leases:
        predicted = is_prediction(lease.id)
        yield lease, predicted, lease.dropped or (predicted and lease.worker in dropped_models)


def moment(seconds: float) -> str:
    """A time in UTC, e.g. 2026-07-01T12:00:00.000Z."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
