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

from nextlabel.campaign.predictions import drop_predictions, restore_predictions
from nextlabel.campaign.recording import Recording
from nextlabel.campaign.rows import WorkerRow
from nextlabel.campaign.standing import Standing, checked_reason
from nextlabel.errors import ConflictError, NotFoundError

#: Labels that one command drops or restores.
AT_ONCE: Final = 500


class LabelStep(NamedTuple):
    """How many labels a command has changed or had to leave as they are, and after which lease the next one begins."""

    changed: int
    left: int
    after: int | None


def set_standing(campaign: Recording, worker: str, standing: Standing, reason: object = "") -> None:
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
        return
    held = [lease.id for lease in campaign.ledger.open_leases(worker)]
    campaign.record("worker_blocked", {**data, "leases": held})
    campaign.settle()


def drop_labels(campaign: Recording, worker: str, reason: object = "", after: int = 0) -> LabelStep:
    """Leave labels of a worker out of the results, those of leases given out after event ``after``."""
    said = checked_reason(reason)
    campaign.expire()
    known_worker(campaign, worker)
    found = campaign.ledger.labels_of(worker, dropped=False, after=after, limit=AT_ONCE)
    if not found:
        return LabelStep(drop_predictions(campaign, worker, said), 0, None)
    leases = [[lease.id, lease.label] for lease in found]
    campaign.record("labels_dropped", {"worker": worker, "reason": said, "leases": leases})
    _reconsider(campaign)
    return LabelStep(len(found), 0, found[-1].seq if len(found) == AT_ONCE else None)


def restore_labels(campaign: Recording, worker: str, after: int = 0) -> LabelStep:
    """Take labels of a worker in again, where their tasks have room for them."""
    campaign.expire()
    known_worker(campaign, worker)
    ledger = campaign.ledger
    found = ledger.labels_of(worker, dropped=True, after=after, limit=AT_ONCE)
    if not found:
        return LabelStep(restore_predictions(campaign, worker), 0, None)
    fitting = []
    for lease in found:  # a worker has each task once, so that one label never takes another's place
        task = ledger.task(lease.task)
        if task.gold is not None or task.labels + task.w < ledger.row.rules.limits_of(task.number).most_labels:
            fitting.append([lease.id, lease.label])
    if fitting:
        campaign.record("labels_restored", {"worker": worker, "leases": fitting})
        campaign.closing_reason()
    more = found[-1].seq if len(found) == AT_ONCE else None
    return LabelStep(len(fitting), len(found) - len(fitting), more)


def known_worker(campaign: Recording, worker: str) -> WorkerRow:
    """The tally of a worker who has had a task, or a NotFoundError."""
    found = campaign.ledger.find_worker(worker)
    if found is None:
        raise NotFoundError(
            f"worker {worker[:60]!r} has had no task of campaign {campaign.ledger.row.id!r}.",
            "See nextlabel campaign workers for those who have.",
        )
    return found


def is_blocked(campaign: Recording, worker: str) -> bool:
    """Whether a worker gets no task, and no answer of theirs counts."""
    found = campaign.ledger.find_worker(worker)
    return found is not None and found.standing == "blocked"


def check_may_undo(campaign: Recording, worker: str, dropped: bool) -> None:
    """Refuse to give an item back to somebody who is blocked, or to undo a label that was dropped."""
    if dropped:
        raise ConflictError("the label was dropped by the requester: it cannot be undone.", "Leave it as it is.")
    if is_blocked(campaign, worker):
        raise ConflictError("the worker is blocked: the answer stays.", "Ask the requester to restore the worker.")


def _reconsider(campaign: Recording) -> None:
    """Tasks that lack a label may get one: a campaign that closed because none did is open again."""
    if campaign.ledger.row.closed_reason in ("finished", "below_price"):
        campaign.reopen()
    campaign.closing_reason()
