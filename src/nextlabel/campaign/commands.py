"""The commands of a campaign. Each reads the ledger, decides, and writes events; ``apply_event`` makes the rows follow.

Leases are judged by their times at the beginning of every command, so that nothing has to run in the background.
``now`` is given (seconds since 1970) and never taken to be behind the last event; nothing is written if it is far
from that (``campaign.clock``). Chance is drawn from streams that are numbered by lease.
"""

from __future__ import annotations

import math
from typing import Any

from nextlabel.campaign import scoring
from nextlabel.campaign.chance import PLACES, chance, starting_place
from nextlabel.campaign.clock import doubt_about
from nextlabel.campaign.crowd_model import CrowdModel, CrowdSnapshot
from nextlabel.campaign.declaration import LONGEST_WORKER
from nextlabel.campaign.events import Event
from nextlabel.campaign.ids import lease_id
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.policy_tables import BELOW_PRICE, NO_ROOM, TableSource
from nextlabel.campaign.projection import apply_event, get_lease
from nextlabel.campaign.rates import (
    RATE_MEMORY,
    arrival_rate,
    completion_rate,
    labels_before_deadline,
    lease_seconds,
    wanted_rho,
)
from nextlabel.campaign.replies import Lease, NoTask, Told
from nextlabel.campaign.rows import Group, LeaseRow, TaskRow
from nextlabel.campaign.settings import checked_budget, checked_deadline, checked_lease_seconds
from nextlabel.campaign.states import Reason
from nextlabel.campaign.transitions import LABELLED, LEASED, after
from nextlabel.errors import ConflictError, InputError, TablesPendingError

#: Leases that one command expires at most, and the seconds after which it is worth asking again.
MOST_EXPIRED, RETRY_RANGE = 1000, (1.0, 30.0)


class Commands:
    """Commands on one campaign at one time, inside one transaction."""

    def __init__(self, ledger: Ledger, tables: TableSource, now: float) -> None:
        self.ledger, self.tables = ledger, tables
        self.now = max(now, ledger.row.last_at)
        self._reading, self._doubt = now, doubt_about(ledger.row, now)

    # Commands of workers

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker: the lease that is out, or the task where a label is worth most; else the reason."""
        checked_worker(worker)
        self._expire()
        for lease in self.ledger.open_leases(worker):
            return self._lease(lease, self.ledger.task(lease.task))
        row = self.ledger.row
        reason = self._closing_reason()
        if reason is not None:
            return self._refuse(reason)
        if row.left == 0:
            return self._refuse("all_leased")
        self._tune()
        chosen = self._choose(worker)
        if isinstance(chosen, str):
            return self._refuse(chosen)
        task, how = chosen
        until = self.now + lease_seconds(row)
        if row.deadline is not None:
            until = min(until, row.deadline)
        id = lease_id(row.id, row.given)
        self._reopen()  # a label may have become worth its price again
        self._record(
            "leased",
            {"lease": id, "task": task.number, "worker": worker, "expires_at": until, "state": list(task.group), **how},
        )
        return self._lease(get_lease(self.ledger, id), task)

    def tell(self, id: str, label: object, worker: str | None = None) -> Told:
        """The answer to a lease; a late one is kept, and counted if the budget allows."""
        answer = self.ledger.row.config.answer(label)
        self._expire()
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
        if status == LABELLED:
            # Its place may be gone: the budget may have been lowered, or an answer that did not count was taken back.
            counted = row.spent < row.budget and task.labels < most
        else:
            counted = row.left > 0 and task.labels + task.w < most
        last = counted and task.labels + 1 >= most and task.closed_seq is None
        self._record(status, {"lease": id, "label": answer, "counted": counted, "last": last})
        self._closing_reason()
        return self._told(get_lease(self.ledger, id))

    def release(self, id: str, worker: str | None = None) -> Told:
        """The worker passes the task on; it does not come back to the same worker."""
        self._expire()
        lease = self._own_lease(id, worker)
        if after(lease.status, "release") is not None:
            self._record("released", {"lease": id})
        return self._told(get_lease(self.ledger, id))

    def renew(self, id: str, worker: str | None = None) -> Told:
        """More time for a lease that is out."""
        self._expire()
        lease = self._own_lease(id, worker)
        after(lease.status, "renew")
        row = self.ledger.row
        until = self.now + lease_seconds(row)
        if row.deadline is not None:
            until = min(until, row.deadline)
        if until > lease.expires_at:
            self._record("renewed", {"lease": id, "expires_at": until})
        return self._told(get_lease(self.ledger, id))

    def undo(self, id: str, worker: str | None = None) -> Told:
        """Take an answer back while its lease would still be out; the worker has the task again."""
        self._expire()
        lease = self._own_lease(id, worker)
        if lease.status == LEASED:
            return self._told(lease)
        after(lease.status, "undo")
        self._trust_clock()
        if self.now >= lease.expires_at or self._past_deadline():
            raise ConflictError("the lease's time is over: its answer stays.", "Undo sooner after an answer.")
        self._record("undone", {"lease": id, "label": lease.label})
        self._reopen()
        return self._told(get_lease(self.ledger, id))

    # Commands of the requester

    def pause(self) -> None:
        """No new leases until ``resume``; those that are out go on."""
        self._expire()
        if not self.ledger.row.paused:
            self._record("paused", {})

    def resume(self) -> None:
        """New leases again."""
        self._expire()
        if self.ledger.row.paused:
            self._record("resumed", {})

    def change(self, **values: Any) -> None:
        """Another ``budget``, ``deadline`` or ``lease_seconds``; None takes the last two away."""
        checks = {"budget": checked_budget, "deadline": checked_deadline, "lease_seconds": checked_lease_seconds}
        self._expire()
        row = self.ledger.row
        new: dict[str, Any] = {}
        for name, value in values.items():
            if name not in checks:
                raise InputError(f"{name!r} cannot be changed.", f"It can be {', '.join(checks)}.")
            checked: Any = checks[name](value)
            if checked != getattr(row, name):
                new[name] = checked
        if new.get("budget", row.budget) < row.spent:
            raise ConflictError(
                f"{row.spent} labels have been bought already, more than a budget of {new['budget']}.",
                f"Give at least {row.spent}.",
            )
        if new:
            self._record("changed", new)
            self._reopen()
            self._closing_reason()

    # Parts of commands

    def begin(self) -> None:
        """Open the log of a new campaign."""
        row = self.ledger.row
        self._record("created", {"config": row.config.to_dict(), "rate_memory": RATE_MEMORY})

    def settle(self) -> None:
        """Expire what is over and close the campaign if nothing more can happen."""
        self._expire()
        self._closing_reason()

    def reconsider_deadline(self) -> None:
        """After the clock was set: expire what is over, and open a campaign that was closed before its deadline."""
        self._expire()
        if self.ledger.row.closed_reason == "deadline_passed" and not self._past_deadline():
            self._reopen()
        self._closing_reason()

    def record_tasks(
        self, tasks: list[list[Any]], priors: list[Any], ranked: bool, batch: str | None, digest: str | None
    ) -> None:
        """Add tasks [key, payload, class] that ``intake`` has checked, with the priors that are new."""
        row = self.ledger.row
        limits = scoring.limits_for(row.config, row.tasks, ranked)
        places = [chance(row.config.seed, PLACES, number) for number in range(row.tasks, row.tasks + len(tasks))]
        self._record(
            "tasks_added",
            {
                "first": row.tasks, "tasks": tasks, "classes": priors, "batch": batch, "digest": digest,
                "places": places,
                "most_labels": limits.most_labels, "most_in_flight": limits.most_in_flight, "ranked": ranked,
            },
        )  # fmt: skip
        self._reopen()

    def record_hidden_tasks(self, tasks: list[list[Any]], total: int) -> None:
        """Put tasks of an import of ``total`` new ones into the log, to be published when all of them are there.

        Their places follow one another in an interval of their own: the index of places grows at its end, and asks
        search it from a random place on.
        """
        row = self.ledger.row
        hidden, segment = row.rules.hidden, row.rules.segments
        first = row.tasks + hidden
        places = [segment + (hidden + k + 0.5) / total for k in range(len(tasks))]
        self._record("tasks_added", {"first": first, "tasks": tasks, "places": places, "hidden": True})

    def publish_tasks(
        self, priors: list[Any], counts: list[list[int]], ranked: bool, batch: str | None, digest: str | None
    ) -> None:
        """All tasks of an import are in the log: from now on they are there."""
        self.settle()
        row = self.ledger.row
        limits = scoring.limits_for(row.config, row.tasks, ranked)
        self._record(
            "tasks_published",
            {
                "first": row.tasks, "tasks": row.rules.hidden, "classes": priors, "counts": counts, "batch": batch,
                "digest": digest, "most_labels": limits.most_labels, "most_in_flight": limits.most_in_flight,
                "ranked": ranked,
            },
        )  # fmt: skip
        self._reopen()

    def rank_tasks(self, many: int) -> bool:
        """Give some tasks of an import their scores; False if all have theirs."""
        row = self.ledger.row
        if row.rules.unranked_from is None:
            return False
        self._record("tasks_ranked", {"until": min(row.rules.unranked_from + many, row.tasks)})
        return row.rules.unranked_from is not None

    def record_batch(self, batch: str, digest: str) -> None:
        """A batch has ended with tasks that were there already."""
        self._record("batch_ended", {"batch": batch, "digest": digest})

    def _record(self, kind: str, data: dict[str, Any]) -> Event:
        self._trust_clock()
        event = self.ledger.append(self.now, kind, data)
        apply_event(self.ledger, event, scoring.rank)
        model = self.ledger.crowd
        if model is not None and model.seq == event.seq - 1:
            model.apply(self.ledger, event)
        return event

    def _trust_clock(self) -> None:
        if self._doubt is not None:
            raise self._doubt

    def _expire(self) -> None:
        """Leases whose time is over give their reservation back; after the deadline it is over for all of them."""
        over = math.inf if self._past_deadline() else self.now
        for lease in self.ledger.expired(over, MOST_EXPIRED):
            self._record("expired", {"lease": lease.id})

    def _closing_reason(self) -> Reason | None:
        """Why nobody can get a task, None if somebody can; a lasting reason closes the campaign, in the log too."""
        row = self.ledger.row
        if self._past_deadline():
            return self._close("deadline_passed")
        if row.spent >= row.budget:
            return self._close("budget_spent")
        if row.tasks == 0:
            return "preparing"
        if row.full >= row.tasks:
            return self._close("finished") if row.reserved == 0 else "finished"
        return "paused" if row.paused else None

    def _past_deadline(self) -> bool:
        deadline = self.ledger.row.deadline
        return deadline is not None and self.now >= deadline

    def _close(self, reason: Reason) -> Reason:
        before = self.ledger.row.closed_reason
        if before is not None and self._doubt is not None:
            if before == "deadline_passed" and self._reading < (self.ledger.row.deadline or 0.0):
                raise self._doubt  # it was closed by a clock that was ahead
            return before
        if before != reason:
            try:
                self._learn_all()
            except TablesPendingError:
                return reason  # the next command closes it
            self._record("closed", {"reason": reason})
        return reason

    def _reopen(self) -> None:
        if self.ledger.row.closed_seq is not None:
            self._record("reopened", {})

    def _tune(self) -> None:
        """Use tables for the learnt rates, as soon as they are there."""
        ledger, row = self.ledger, self.ledger.row
        if row.config.knows_workers or row.rules.ranked:
            return
        rho = wanted_rho(row)
        if rho == row.rho or not self.tables.has(row.config, ledger.classes(), rho):
            return
        rates = {"arrival_rate": arrival_rate(row), "completion_rate": completion_rate(row)}
        self._record("tuned", {"rho": rho, **rates})

    def _choose(self, worker: str) -> tuple[TaskRow, dict[str, Any]] | Reason:
        """The task and what it was chosen by, or why there is none."""
        row = self.ledger.row
        n = labels_before_deadline(row, self.now)
        if row.config.knows_workers:
            return self._choose_for(worker, n)
        if row.rules.ranked:
            return self._choose_by_score(worker, n)
        tables = self.tables.ready(row.config, self.ledger.classes(), row.rho)
        start = starting_place(row.config.seed, row.given, row.rules.segments)
        barred: list[Group] = []
        while True:
            group = tables.choose(self.ledger.groups(), barred, n, row.spent + row.reserved, row.config.seed, row.given)
            if group == BELOW_PRICE:
                return "nothing_left_for_you" if barred else self._below_price()
            if group == NO_ROOM:
                return "nothing_left_for_you" if barred else "all_leased"
            task = self.ledger.pick(group, worker, start)
            if task is not None:
                return task, {"left": n, "rho": tables.rho}
            if self.ledger.held_all(worker):
                return "nothing_left_for_you"  # as it would be when all groups have been tried
            barred.append(group)

    def _choose_for(self, worker: str, n: int) -> tuple[TaskRow, dict[str, Any]] | Reason:
        """The task that is best for this worker, by what is known of them and of all tasks."""
        row, model = self.ledger.row, self._crowd()
        if model.is_due(row):
            self._refit()
        task = model.choose(worker)
        if task is None and model.crowd.tasks < row.tasks:
            self._refit()
            task = model.choose(worker)
        if task is None:
            return "nothing_left_for_you" if model.crowd.any_open else "all_leased"
        return self.ledger.task(task), {"left": n, "model": model.version}

    def _crowd(self) -> CrowdModel:
        """What is known of tasks and workers, up to the last event."""
        if self.ledger.crowd is None:
            self.tables.crowd_ready()
            self.ledger.crowd = CrowdModel(self.ledger.row.config)
        self.ledger.crowd.catch_up(self.ledger)
        return self.ledger.crowd

    def crowd_snapshot(self) -> CrowdSnapshot:
        """What is believed of tasks and workers now (policy crowd)."""
        return self._crowd().snapshot(self.ledger)

    def _refit(self) -> None:
        """Learn workers and tasks anew, and say so in the log."""
        self._trust_clock()
        data = self._crowd().refit(self.ledger, labels_before_deadline(self.ledger.row, self.now))
        self._record("refitted", data)

    def _learn_all(self) -> None:
        """Final results rest on all labels."""
        row = self.ledger.row
        if row.config.knows_workers and row.tasks and self._crowd().has_news(row):
            self._refit()

    def _choose_by_score(self, worker: str, n: int) -> tuple[TaskRow, dict[str, Any]] | Reason:
        row = self.ledger.row
        task = self.ledger.best(worker)
        if task is None:
            return "nothing_left_for_you" if self.ledger.any_score() else "all_leased"
        if row.config.label_cost > 0 and (task.score or 0.0) < row.config.label_cost - scoring.TIED:
            return self._below_price()
        return task, {"left": n}

    def _below_price(self) -> Reason:
        return self._close("below_price") if self.ledger.row.reserved == 0 else "below_price"

    def _refuse(self, reason: Reason) -> NoTask:
        retry: float | None = None
        low, high = RETRY_RANGE
        if reason in ("all_leased", "below_price", "finished", "budget_spent"):
            expiry = self.ledger.next_expiry()
            if reason == "all_leased" or expiry is not None:
                retry = min(max((expiry or self.now) - self.now, low), high)
        elif reason in ("paused", "nothing_left_for_you", "preparing"):
            retry = high
        return NoTask(self.ledger.row.id, reason, retry and float(math.ceil(retry)))

    def _own_lease(self, id: str, worker: str | None) -> LeaseRow:
        """A lease, of that worker if one is named: another worker's lease does not exist for them."""
        lease = get_lease(self.ledger, id)
        if worker is not None and lease.worker != worker:
            return get_lease(self.ledger, "")
        return lease

    def _lease(self, lease: LeaseRow, task: TaskRow) -> Lease:
        return Lease(
            lease.id, self.ledger.row.id, task.key, task.payload, lease.worker, lease.status, lease.leased_at,
            lease.expires_at,
        )  # fmt: skip

    def _told(self, lease: LeaseRow) -> Told:
        name = None if lease.label is None else self.ledger.row.config.labels[lease.label]
        until = lease.expires_at if lease.status in (LEASED, LABELLED) else None
        return Told(lease.id, self.ledger.task(lease.task).key, lease.status, name, lease.counted, until)


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
