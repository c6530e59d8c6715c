"""What a requester does about one worker: pause, block, restore; leave their labels out, and take them in again.

========== =============================================================================================
standing   what happens
========== =============================================================================================
active     gets tasks
paused     gets no new task; an item that they hold is theirs to finish, and its label counts
blocked    gets no task; an item that they hold goes to others, and an answer to it is kept but does not count
========== =============================================================================================

Labels are dropped and restored independently of that, some at a time, so that nobody waits while there are many.
Dropped labels have been paid for and stay spent; their tasks may get other labels while the budget lasts. A label that
is restored takes its old place, unless its task has as many labels as it can have by then.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from nextlabel.campaign.commands import Commands, known_worker
from nextlabel.campaign.predictions import drop_predictions, restore_predictions
from nextlabel.campaign.rows import ERASED, WorkerRow
from nextlabel.campaign.states import PREFIX, Standing, checked_reason
from nextlabel.errors import InputError

#: Labels that one command drops or restores.
AT_ONCE: Final = 500


class LabelStep(NamedTuple):
    """How many labels a command has changed or had to leave as they are, and after which lease the next one begins."""

    changed: int
    left: int
    after: int | None


def set_standing(campaign: Commands, worker: str, standing: Standing, reason: object = "") -> None:
    """Pause, block or restore a worker; to the same standing with the same reason, nothing happens."""
    said = checked_reason(reason)
    campaign.expire()
    tally = known_worker(campaign, worker)
    if standing == "active":
        if tally.standing != "active":
            campaign.record("worker_restored", {"worker": worker})
        return
    if (tally.standing, tally.reason) == (standing, said):
        return
    data: dict[str, Any] = {"worker": worker, "reason": said}
    if standing == "paused":
        campaign.record("worker_paused", data)
        campaign.notice_nobody()
        return
    held = [lease.id for lease in campaign.state.open_leases(worker)]
    campaign.record("worker_blocked", {**data, "leases": held})
    campaign.settle()
    campaign.notice_nobody()


def erase_worker(campaign: Commands, worker: str) -> WorkerRow:
    """Take a worker's name and all that they have written out of the campaign, its log included; their labels stay."""
    tally, state = known_worker(campaign, worker), campaign.state
    if tally.worker.startswith((PREFIX, ERASED)):
        raise InputError(f"{tally.worker[:60]} is not the name of a person.", "See nextlabel campaign workers.")
    number, name = state.numbers[tally.worker], f"{ERASED}{state.numbers[tally.worker]}"
    state.source.erase(number, state.leases.worker)
    campaign.record("worker_erased", {"worker": name})
    return state.workers[number]


def drop_labels(campaign: Commands, worker: str, reason: object = "", after: int = 0) -> LabelStep:
    """Leave labels of a worker out of the results, those of leases given out after event ``after``."""
    said = checked_reason(reason)
    campaign.expire()
    known_worker(campaign, worker)
    found = campaign.state.labels_of(worker, dropped=False, after=after, limit=AT_ONCE)
    if not found:
        return LabelStep(drop_predictions(campaign, worker, said), 0, None)
    leases = [[lease.id, lease.label] for lease in found]
    campaign.record("labels_dropped", {"worker": worker, "reason": said, "leases": leases})
    if campaign.state.row.closed_reason in ("finished", "below_price"):
        campaign.reopen()  # tasks that lack a label may get one
    campaign.closing_reason()
    return LabelStep(len(found), 0, found[-1].seq if len(found) == AT_ONCE else None)


def restore_labels(campaign: Commands, worker: str, after: int = 0) -> LabelStep:
    """Take labels of a worker in again, where their tasks have room for them."""
    campaign.expire()
    known_worker(campaign, worker)
    state = campaign.state
    pool, tasks = state.pool, state.pool.tasks
    found = state.labels_of(worker, dropped=True, after=after, limit=AT_ONCE)
    if not found:
        return LabelStep(restore_predictions(campaign, worker), 0, None)
    fitting = []
    for lease in found:  # a worker has each task once, so that one label never takes another's place
        task = lease.task
        if state.is_control(task) or tasks.labels[task] + tasks.w[task] < pool.most_labels:
            fitting.append([lease.id, lease.label])
    if fitting:
        campaign.record("labels_restored", {"worker": worker, "leases": fitting})
        campaign.closing_reason()
    more = found[-1].seq if len(found) == AT_ONCE else None
    return LabelStep(len(fitting), len(found) - len(fitting), more)
