"""A model's predictions are taken in: all of them are checked first, then written in steps that keep nobody waiting.

Predictions are compared one by one with those of the same model that are there: the same again changes nothing, another
label for a task is a conflict, and nothing of the upload is written. So an upload that was broken off is finished by
sending it again. A few are written in one transaction; of many, every step counts as soon as it is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.predictions import (
    CHUNK,
    charge_for,
    check_policy,
    checked_cost,
    checked_model,
    record_predictions,
    worker_of,
    workers_of,
)
from nextlabel.campaign.replies import AddedPredictions
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import ConflictError, FileFormatError, NotFoundError
from nextlabel.files.predictions import Prediction, read_predictions

if TYPE_CHECKING:
    from collections.abc import Callable

    from nextlabel.campaigns.service import CampaignService

#: Predictions that are written in one transaction; more of them are written in steps of ``CHUNK``.
AT_ONCE = 2000


class _Checked(NamedTuple):
    """What a model says of a task by number."""

    task: int
    worker: str
    label: int


def add_predictions(
    service: CampaignService,
    id: str,
    model: str,
    rows: Iterable[object],
    cost: float = 0.0,
    task_column: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> AddedPredictions:
    """Take predictions in; ``rows`` have the columns of ``files.predictions``."""
    name, price = checked_model(model), checked_cost(cost)
    row = service.store.row(id)
    check_policy(row)
    checked = _checked(service, row, name, read_predictions(rows, row.config.labels, task_column))
    while True:
        seen = service.store.row(id).rules.predicted
        new = list(_without_known(service, id, name, checked))
        if not new:
            return AddedPredictions(name, 0, len(checked), 0)
        charged = _write(service, id, new, price, seen, progress)
        if charged is not None:
            service.run(id, _learn)
            return AddedPredictions(name, len(new), len(checked) - len(new), charged)


def _write(
    service: CampaignService,
    id: str,
    new: list[_Checked],
    cost: float,
    seen: int,
    progress: Callable[[float], None] | None,
) -> int | None:
    """Write predictions and return what they cost; None if others have written some meanwhile."""
    new.sort(key=lambda one: one.worker)  # an event has one worker; sorting keeps the order of the file
    step, done, charged = len(new) if len(new) <= AT_ONCE else CHUNK, 0, 0
    while done < len(new):
        some = new[done : done + step]
        begun = time.monotonic()

        def command(commands: Commands, some: list[_Checked] = some, done: int = done) -> int | None:
            row = commands.state.row
            if row.rules.predicted != seen + done:
                return None
            commands.settle()
            paid = charge_for(row, cost, len(new)) if done == 0 else 0
            due = paid
            for part in _by_worker(some):
                tasks, labels = [one.task for one in part], [one.label for one in part]
                record_predictions(commands, part[0].worker, tasks, labels, cost, due)
                due = 0
            commands.closing_reason()
            return paid

        paid = service.run(id, command)
        if paid is None:
            return None
        charged += paid
        done += len(some)
        if progress is not None:
            progress(done / len(new))
        if done < len(new):
            time.sleep(time.monotonic() - begun)  # others have the lock for at least as long
    return charged


def _learn(commands: Commands) -> None:
    """Results follow the predictions at once, not only when somebody asks for a task."""
    if commands.crowd().is_due(commands.state.row):
        commands.refit()


def _checked(
    service: CampaignService, row: CampaignRow, model: str, predictions: Iterator[Prediction]
) -> list[_Checked]:
    """Predictions with the numbers of their tasks, one for each task."""
    found: dict[int, _Checked] = {}
    while some := list(islice(predictions, CHUNK)):
        tasks = service.store.tasks_by_key(row.id, [one.task for one in some])
        for one in some:
            task = tasks.get(one.task)
            if task is None:
                raise NotFoundError(
                    f"there is no task {one.task[:60]!r} in campaign {row.id!r}.",
                    "Give the ids of the campaign's tasks, or add the task first.",
                )
            new = _Checked(task.number, worker_of(model, one.confidence), one.label)
            if found.setdefault(task.number, new) != new:
                raise FileFormatError(f"there are two predictions for task {one.task[:60]!r}.", "Give one per task.")
    if not found:
        raise FileFormatError("there are no predictions.", "Give at least one, in rows below the header.")
    return list(found.values())


def _without_known(service: CampaignService, id: str, model: str, checked: list[_Checked]) -> Iterator[_Checked]:
    """Those that are new; ConflictError if the model said something else before."""
    names, rest = set(workers_of(model)), iter(checked)
    while some := list(islice(rest, CHUNK)):
        leases = service.store.leases(id, [one.task for one in some])
        there = {lease.task: lease for lease in leases if lease.worker in names}
        for one in some:
            before = there.get(one.task)
            if before is None:
                yield one
            elif (before.worker, before.label) != (one.worker, one.label):
                key = service.store.tasks(id, one.task - 1, 1)[0].key
                raise ConflictError(
                    f"the model {model!r} has another prediction for task {key[:60]!r}.",
                    "Give the new version of the model a name of its own.",
                )


def _by_worker(some: list[_Checked]) -> Iterator[list[_Checked]]:
    """Parts of one worker each, as many as one event holds."""
    part: list[_Checked] = []
    for one in some:
        if part and (part[0].worker != one.worker or len(part) == CHUNK):
            yield part
            part = []
        part.append(one)
    yield part
