"""A model's predictions are taken in: all of them are checked first, then written in steps that keep nobody waiting.

Predictions are compared one by one with those of the same model that are there: the same again changes nothing, another
label for a task is a conflict, and nothing of the upload is written. So an upload that was broken off is finished by
sending it again. A few are written in one transaction; of many, every step counts as soon as it is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby, islice
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

    from nextlabel.application.service import CampaignService

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
    number_of = row.config.answer_type.number_of if row.config.answer in ("number", "multi") else None
    checked = _checked(service, row, name, read_predictions(rows, row.config.labels, task_column, number_of))

    def seen_and_known(commands: Commands) -> tuple[int, dict[int, tuple[str, int]]]:
        """How many predictions there are, and those of the model by task."""
        return commands.state.row.predicted, commands.state.predictions_of(workers_of(name))

    def learn(commands: Commands) -> None:
        """Results follow the predictions at once, not only when somebody asks for a task."""
        if commands.crowd().is_due(commands.state.row):
            commands.refit()

    while True:
        seen, known = service.run(id, seen_and_known)
        new = [one for one in checked if one.task not in known]
        other = next((one for one in checked if known.get(one.task, one[1:]) != one[1:]), None)
        if other is not None:
            key = service.store.tasks_by_number(id, [other.task])[other.task].key
            raise ConflictError(
                f"the model {name!r} has another prediction for task {key[:60]!r}.",
                "Give the new version of the model a name of its own.",
            )
        if not new:
            return AddedPredictions(name, 0, len(checked), 0)
        charged = _write(service, id, new, price, seen, progress)
        if charged is not None:
            service.run(id, learn)
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
    parts = [
        part[k : k + CHUNK]
        for part in (list(group) for _, group in groupby(new, lambda one: one.worker))
        for k in range(0, len(part), CHUNK)
    ]
    done = charged = 0

    def command(commands: Commands, step: list[list[_Checked]]) -> int | None:
        row = commands.state.row
        if row.predicted != seen + done:
            return None
        commands.settle()
        due = paid = charge_for(row, cost, len(new)) if done == 0 else 0
        for part in step:
            tasks, labels = [one.task for one in part], [one.label for one in part]
            record_predictions(commands, part[0].worker, tasks, labels, cost, due)
            due = 0
        commands.closing_reason()
        return paid

    for step in [parts] if len(new) <= AT_ONCE else [[part] for part in parts]:
        begun = time.monotonic()
        paid = service.run(id, partial(command, step=step))
        if paid is None:
            return None
        charged += paid
        done += sum(map(len, step))
        if progress is not None:
            progress(done / len(new))
        if done < len(new):
            time.sleep(time.monotonic() - begun)  # others have the lock for at least as long
    return charged


def _checked(
    service: CampaignService, row: CampaignRow, model: str, predictions: Iterator[Prediction]
) -> list[_Checked]:
    """Predictions with the numbers of their tasks, one for each task."""
    checked: dict[int, _Checked] = {}
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
            if checked.setdefault(task.number, new) != new:
                raise FileFormatError(f"there are two predictions for task {one.task[:60]!r}.", "Give one per task.")
    if not checked:
        raise FileFormatError("there are no predictions.", "Give at least one, in rows below the header.")
    return list(checked.values())
