"""The commands of a campaign: each reads the ledger, decides, and writes events (``campaign.recording``)."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

from nextlabel.campaign import scoring
from nextlabel.campaign.amendments import COUNTED, changes_of
from nextlabel.campaign.choice import choose
from nextlabel.campaign.clock import doubt_about
from nextlabel.campaign.comments import checked_comment, comment_data
from nextlabel.campaign.declaration import LONGEST_WORKER
from nextlabel.campaign.ids import lease_id
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.policy_tables import TableSource
from nextlabel.campaign.projection import apply_event
from nextlabel.campaign.rates import lease_seconds
from nextlabel.campaign.recording import Recording
from nextlabel.campaign.replies import Lease, NoTask, Told
from nextlabel.campaign.rows import LeaseRow, TaskRow
from nextlabel.campaign.shown_columns import check_columns, shown_payload
from nextlabel.campaign.states import Reason
from nextlabel.campaign.task_moves import get_lease
from nextlabel.campaign.transitions import LABELLED, LEASED, after
from nextlabel.campaign.worker_commands import check_may_undo, is_blocked
from nextlabel.errors import ConflictError, InputError

#: The seconds after which it is worth asking again.
RETRY_RANGE = (1.0, 30.0)
#: Tasks whose columns are looked at when others are to be shown.
SAMPLE = 20
_TABLES = (dict, list)


class Commands(Recording):
    """Commands on one campaign at one time, inside one transaction."""

    # Commands of workers

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker: the lease that is out, or the task where a label is worth most; else the reason."""
        checked_worker(worker)
        self.expire()
        for lease in self.ledger.open_leases(worker):
            return self._lease(lease, self.ledger.task(lease.task))
        row = self.ledger.row
        refused = self.refusal(worker)
        if refused is not None:
            return refused
        if row.left == 0:
            return self._refuse("all_leased")
        chosen = choose(self, worker)
        if isinstance(chosen, str):
            return self._refuse(chosen, soon=not self.ledger.search_ended())
        task, how = chosen
        until = self.now + lease_seconds(row)
        if row.deadline is not None:
            until = min(until, row.deadline)
        id = lease_id(row.id, row.given)
        self.reopen()  # a label may have become worth its price again
        self.record(
            "leased",
            {"lease": id, "task": task.number, "worker": worker, "expires_at": until, "state": list(task.group), **how},
        )
        return self._lease(get_lease(self.ledger, id), task)

    def refusal(self, worker: str) -> NoTask | None:
        """Why this worker, who holds nothing, gets no task whichever there are; None if there may be one."""
        reason = self._why_not(worker) or self.closing_reason()
        return None if reason is None else self._refuse(reason)

    def tell(self, id: str, label: object, worker: str | None = None, comment: str | None = None) -> Told:
        """The answer to a lease; a late one is kept, and counted if the budget allows."""
        answer, said = self.ledger.row.config.answer(label), comment_data(checked_comment(comment))
        self.expire()
        lease = self._own_lease(id, worker)
        status = after(lease.status, "tell")
        if status is None:
            if lease.label != answer:
                earlier = self.ledger.row.config.labels[lease.label or 0]
                raise ConflictError(
                    f"the lease was answered with {earlier!r} before.", "Undo that answer first, or leave it."
                )
            return self._told(lease)
        row, task = self.ledger.row, self.ledger.task(lease.task)
        most = row.rules.limits_of(task.number).most_labels
        if task.gold is not None:
            counted = (lease.free or row.spent < row.budget) and not is_blocked(self, lease.worker)
        elif status == LABELLED:
            # Its place may be gone: the budget may have been lowered, or an answer that did not count was taken back.
            counted = row.spent < row.budget and task.labels < most
        else:
            counted = row.left > 0 and task.labels + task.w < most and not is_blocked(self, lease.worker)
        last = counted and task.gold is None and task.labels + 1 >= most and task.closed_seq is None
        self.record(status, {"lease": id, "label": answer, "counted": counted, "last": last, **said})
        self.closing_reason()
        return self._told(get_lease(self.ledger, id))

    def release(self, id: str, worker: str | None = None, comment: str | None = None) -> Told:
        """The worker passes the task on; it does not come back to the same worker."""
        said = comment_data(checked_comment(comment))
        self.expire()
        lease = self._own_lease(id, worker)
        if after(lease.status, "release") is not None:
            self.record("released", {"lease": id, **said})
        return self._told(get_lease(self.ledger, id))

    def renew(self, id: str, worker: str | None = None) -> Told:
        """More time for a lease that is out."""
        self.expire()
        lease = self._own_lease(id, worker)
        after(lease.status, "renew")
        row = self.ledger.row
        until = self.now + lease_seconds(row)
        if row.deadline is not None:
            until = min(until, row.deadline)
        if until > lease.expires_at:
            self.record("renewed", {"lease": id, "expires_at": until})
        return self._told(get_lease(self.ledger, id))

    def told(self, id: str) -> Told:
        """What has become of a lease."""
        return self._told(get_lease(self.ledger, id))

    def undo(self, id: str, worker: str | None = None) -> Told:
        """Take an answer back while its lease would still be out; the worker has the task again."""
        self.expire()
        lease = self._own_lease(id, worker)
        if lease.status == LEASED:
            return self._told(lease)
        after(lease.status, "undo")
        check_may_undo(self, lease.worker, lease.dropped)
        self.trust_clock()
        if self.now >= lease.expires_at or self.past_deadline():
            raise ConflictError("the lease's time is over: its answer stays.", "Undo sooner after an answer.")
        self.record("undone", {"lease": id, "label": lease.label})
        self.reopen()
        return self._told(get_lease(self.ledger, id))

    # Commands of the requester

    def pause(self) -> None:
        """No new leases until ``resume``; those that are out go on."""
        self.expire()
        if not self.ledger.row.paused:
            self.record("paused", {})

    def resume(self) -> None:
        """New leases again."""
        self.expire()
        if self.ledger.row.paused:
            self.record("resumed", {})

    def change(self, **values: Any) -> None:
        """Other settings (``campaign.amendments``); None takes those away that need not be there."""
        self.expire()
        new = changes_of(self.ledger.row, values)
        if new.get("show") is not None:
            before = self.ledger.row.config.show or ()
            check_columns([name for name in new["show"] if name not in before], self._first_payloads())
        if new:
            self.record("changed", new)
            if not COUNTED.keys().isdisjoint(new):
                self.reopen()
                self.closing_reason()

    def _first_payloads(self) -> list[Any]:
        return [self.ledger.task(number).payload for number in range(min(self.ledger.row.tasks, SAMPLE))]

    def reconsider_deadline(self) -> None:
        """After the clock was set: expire what is over, and open a campaign that was closed before its deadline."""
        self.expire()
        if self.ledger.row.closed_reason == "deadline_passed" and not self.past_deadline():
            self.reopen()
        self.closing_reason()

    def _why_not(self, worker: str) -> Reason | None:
        """Why this worker gets no task although others may."""
        tally, most = self.ledger.find_worker(worker), self.ledger.row.config.most_labels_per_worker
        if tally is None:
            return None
        if tally.standing != "active":
            return "worker_blocked" if tally.standing == "blocked" else "worker_paused"
        return "quota_reached" if most is not None and tally.labels >= most else None

    def _refuse(self, reason: Reason, soon: bool = False) -> NoTask:
        """Why there is no task, and when to ask again; ``soon``: the search for one goes on then."""
        retry: float | None = None
        low, high = RETRY_RANGE
        if reason in ("all_leased", "below_price", "finished", "budget_spent"):
            expiry = self.ledger.next_expiry()
            if reason == "all_leased" or expiry is not None:
                retry = low if soon else min(max((expiry or self.now) - self.now, low), high)
        elif reason in ("paused", "worker_paused", "nothing_left_for_you", "preparing", "turned_away"):
            retry = high
        return NoTask(self.ledger.row.id, reason, retry and float(math.ceil(retry)))

    def _own_lease(self, id: str, worker: str | None) -> LeaseRow:
        """A lease, of that worker if one is named: another worker's lease does not exist for them."""
        lease = get_lease(self.ledger, id)
        if worker is not None and lease.worker != worker:
            return get_lease(self.ledger, "")
        return lease

    def _lease(self, lease: LeaseRow, task: TaskRow) -> Lease:
        # A store may remember the task: what a program does with its payload must not be seen by others.
        payload = _copied(shown_payload(self.ledger.row.config.show, task.payload))
        return Lease(
            lease.id, self.ledger.row.id, task.key, payload, lease.worker, lease.status, lease.leased_at,
            lease.expires_at,
        )  # fmt: skip

    def _told(self, lease: LeaseRow) -> Told:
        name = None if lease.label is None else self.ledger.row.config.labels[lease.label]
        until = lease.expires_at if lease.status in (LEASED, LABELLED) else None
        return Told(lease.id, self.ledger.task(lease.task).key, lease.status, name, lease.counted, until)


def _copied(payload: Any) -> Any:
    """The same payload; nearly all are a table without tables in it."""
    if isinstance(payload, dict) and not any(isinstance(value, _TABLES) for value in payload.values()):
        return dict(payload)
    return deepcopy(payload) if isinstance(payload, _TABLES) else payload


def accept_time(ledger: Ledger, tables: TableSource, now: float) -> bool:
    """Accept a time at which nothing could be written, and say so in the log; False if there is no doubt about it.

    If the campaign's last event is from a clock that was ahead, leases end as if they had been given out now.
    """
    row = ledger.row
    if doubt_about(row, now) is None:
        return False
    data = {"before": row.last_at}
    if now < row.last_at:
        data["expires_at"] = now + lease_seconds(row)
    apply_event(ledger, ledger.append(now, "clock_accepted", data), scoring.rank)
    Commands(ledger, tables, now).reconsider_deadline()
    return True


def checked_worker(worker: Any) -> str:
    """A worker's name."""
    if not isinstance(worker, str) or not 0 < len(worker.strip()) <= LONGEST_WORKER or "\x00" in worker:
        raise InputError(
            f"a worker's name is a text of 1 to {LONGEST_WORKER} characters.", "Give e.g. the platform's worker id."
        )
    return worker
