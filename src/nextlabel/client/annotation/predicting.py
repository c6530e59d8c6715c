"""A function labels all tasks, the least certain first, or buys its labels one by one like a person.

Predictions are sent some at a time: a sending is charged in whole labels, rounded up, so that its size is chosen to
lose next to nothing to rounding. The function is not called for tasks that the budget cannot pay for. Whatever was
answered is sent before the run ends, also after Ctrl-C; tasks that the model has answered in an earlier run are left
out, so that a run that was broken off is finished by running it again.

A model asks for tasks one by one and tells its labels, each of them bought from the budget like a person's.

The campaign chooses the tasks as for any worker, and the lease keeps a second run from doing the same work. The lease
is given back when the function fails, returns nothing or is interrupted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from nextlabel.campaign.predictions import checked_cost, checked_model, workers_of
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import shown_payload
from nextlabel.campaign.states import PREFIX, Reason
from nextlabel.campaigns.status import CampaignStatus
from nextlabel.client.annotation.calls import Answer, ModelCalls, Sleep
from nextlabel.client.annotation.campaign import AnnotatedCampaign, Outcome, check_annotatable
from nextlabel.errors import ConflictError

#: Predictions that are sent together, about; and seconds after which free ones are sent although they are fewer.
TOGETHER: Final = 100
PATIENCE_S: Final = 20.0
INTERRUPTED: Final = "Stopped on request; what was answered is saved, and the same command goes on."

#: Reasons after which asking again is of use; after all others the run ends.
WAITED_OUT: Final[tuple[Reason, ...]] = ("all_leased", "paused", "preparing", "worker_paused", "turned_away")

#: Seconds between two asks where the campaign does not say.
USUAL_WAIT_S: Final = 10.0


class _Task(NamedTuple):
    """A task, and the part of it that workers are shown."""

    id: str
    payload: Any


def predict_tasks(
    campaign: AnnotatedCampaign,
    model: str,
    calls: ModelCalls,
    *,
    cost: float = 0.0,
    most: int | None = None,
    batch: int = 1,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Outcome:
    """Have the function label every task that it has not labelled yet, at most ``most`` of them."""
    name, price = checked_model(model), checked_cost(cost)
    status = campaign.status()
    check_annotatable(status)
    todo, known = _tasks_to_do(campaign, name, status)
    limited = most is not None and most < len(todo)
    todo = todo if most is None else todo[:most]
    sending = _Sending(campaign, name, price, status.settings.labels)
    passed, ended = 0, "The function has seen every task."
    if limited:
        ended = f"The function has seen the {most:,} tasks of --most."
    done = 0
    try:
        while done < len(todo):
            some = todo[done : done + _affordable(campaign.status().left, price)]
            if not some:
                ended = "The budget does not pay for another prediction."
                break
            for part in _parts(some, batch):
                answers = calls.answers([task.id for task in part], [task.payload for task in part])
                passed += sum(answer is None for answer in answers)
                sending.add(part, answers)
                done += len(part)
                progress(done / len(todo))
            if not sending.send():
                ended = "The budget was spent by others before all predictions were paid for."
                break
    except KeyboardInterrupt:
        ended = INTERRUPTED
        sending.send()
    except BaseException:
        sending.send()
        raise
    return Outcome(name, sending.sent, ended, known, calls.failed, passed - calls.failed, sending.charged)


def together(cost: float) -> int:
    """How many predictions are sent together: about ``TOGETHER``, costing as near to whole labels as can be."""
    if cost == 0.0:
        return TOGETHER
    whole = max(1, math.ceil(TOGETHER * cost - 1e-9))
    return max(1, math.floor(whole / cost + 1e-9))


def _affordable(left: int, cost: float) -> int:
    """How many predictions to make next."""
    return together(cost) if cost == 0.0 else min(together(cost), math.floor(left / cost + 1e-9))


def _tasks_to_do(campaign: AnnotatedCampaign, model: str, status: CampaignStatus) -> tuple[list[_Task], int]:
    """Tasks that the model has not labelled, in the order in which it should, and how many it has labelled."""
    names = set(workers_of(model))
    done = {one.task for one in campaign.labels() if one.worker in names}
    found = sorted(
        (not one.control, one.probability, number, one.task, shown_payload(status.settings.show, one.payload))
        for number, one in enumerate(campaign.results())
        if one.task not in done
    )
    return [_Task(task, payload) for *_, task, payload in found], len(done)


def _parts(tasks: list[_Task], size: int) -> Iterator[list[_Task]]:
    return (tasks[k : k + size] for k in range(0, len(tasks), size))


@dataclass(slots=True)
class _Sending:
    """Answers that wait to be sent, and what became of those that were."""

    campaign: AnnotatedCampaign
    model: str
    cost: float
    labels: tuple[str, ...]
    sent: int = 0
    charged: int = 0
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _last: float = field(default_factory=time.monotonic)

    def add(self, tasks: list[_Task], answers: list[Answer | None]) -> None:
        """Keep answers; free ones are sent when they have waited for long."""
        found = zip(tasks, answers, strict=True)
        self._rows += [answer.row(task.id, self.labels) for task, answer in found if answer is not None]
        if self.cost == 0.0 and time.monotonic() - self._last > PATIENCE_S:
            self.send()

    def send(self) -> bool:
        """Send what waits; False if the budget could not pay for all of it."""
        for rows in ([r for r in self._rows if "label" in r], [r for r in self._rows if "label" not in r]):
            if rows and not self._send(rows):
                self._rows = []
                return False
        self._rows, self._last = [], time.monotonic()
        return True

    def _send(self, rows: list[dict[str, Any]]) -> bool:
        """All rows have the same columns. People may have spent the budget meanwhile: then as many as it pays for."""
        while rows:
            left = math.inf if self.cost == 0.0 else math.floor(self.campaign.status().left / self.cost + 1e-9)
            paid = rows if left >= len(rows) else rows[: int(left)]
            if not paid:
                return False
            try:
                added = self.campaign.add_predictions(self.model, paid, cost=self.cost)
            except ConflictError:
                if self.cost == 0.0 or self.campaign.status().left >= math.ceil(self.cost * len(paid) - 1e-9):
                    raise  # not for want of budget
                continue
            self.sent, self.charged = self.sent + added.added, self.charged + added.charged
            return len(paid) == len(rows)
        return True


def buy_labels(
    campaign: AnnotatedCampaign,
    model: str,
    calls: ModelCalls,
    *,
    most: int | None = None,
    progress: Callable[[float], None] = lambda fraction: None,
    sleep: Sleep = time.sleep,
) -> Outcome:
    """Ask and tell until the campaign has no task for the model, or ``most`` labels were given."""
    name = checked_model(model)
    status = campaign.status()
    check_annotatable(status)
    wanted = min(most or status.left, status.left)
    given, passed, ended = 0, 0, f"The model has given the {most or 0:,} labels of --most."
    try:
        while most is None or given < most:
            lease = campaign.ask(PREFIX + name)
            if not isinstance(lease, Lease):
                if lease.reason not in WAITED_OUT:
                    ended = lease.sentence
                    break
                sleep(lease.retry_after or USUAL_WAIT_S)
                continue
            answer = _answer(campaign, calls, lease)
            if answer is None:
                passed += 1
                continue
            campaign.tell(lease, answer.label)
            given += 1
            progress(given / max(wanted, given))
    except KeyboardInterrupt:
        ended = INTERRUPTED
    return Outcome(name, given, ended, failed=calls.failed, passed=passed - calls.failed, charged=given)


def _answer(campaign: AnnotatedCampaign, calls: ModelCalls, lease: Lease) -> Answer | None:
    """The function's answer; without one, and whatever goes wrong, the task is given back."""
    try:
        (answer,) = calls.answers([lease.task], [lease.payload])
    except BaseException:
        campaign.release(lease)
        raise
    if answer is None:
        campaign.release(lease)
    return answer
