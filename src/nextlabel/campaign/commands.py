"""The commands of a campaign: each looks at its state, decides, and writes events, which the state follows.

Leases are judged by their times at the beginning of every command, so that nothing has to run in the background.
``now`` is given (seconds since 1970) and never taken to be behind the last event; nothing is written if it is far
from that (``doubt_about``). Which task a worker gets is the allocator's choice (``policies.allocation``); quotas,
blocks, pauses, control questions, deadlines and rates are decided here.

Turning away (policy ``crowd``, setting ``turn_away``). A worker is turned away if their answers are noise
(``crowd.noise``), or if no task wants a label of their type, and the task that would lose least by it loses more than
turning them away does. Nobody is

- before ``policies.crowd.allocator.TRIAL_LABELS`` labels, controls among them: before that nobody knows them,
- unless their answers are noise, before they have had ``FAIR_SHARE`` of an equal part of the budget, or where all
  others together have too few tasks left to spend it,
- while they hold a task: that is theirs, and is asked for first,
- if no more asks are expected than labels are left (``rates.expected_asks``),
- if others have been waited for in vain: for ``PATIENCE_S`` seconds after somebody was turned away nobody got a task.
  Then everybody gets one until the next refit, so that a campaign ends as long as anybody comes.
"""

from __future__ import annotations

import math
import unicodedata
from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.campaign.controls import choose_control
from nextlabel.campaign.crowd_model import CrowdModel, CrowdSnapshot, adopted, new_model
from nextlabel.campaign.declaration import LONGEST_COMMENT, LONGEST_WORKER
from nextlabel.campaign.events import Event
from nextlabel.campaign.notices import GROWN, Notice, current_notices, nobody_can_label
from nextlabel.campaign.policy_tables import TableSource, load_of
from nextlabel.campaign.profiles import keep_profiles, profile_of
from nextlabel.campaign.rates import (
    RATE_MEMORY,
    arrival_rate,
    completion_rate,
    expected_asks,
    labels_before_deadline,
    lease_seconds,
    wanted_rho,
)
from nextlabel.campaign.replies import Lease, NoTask, Receipt
from nextlabel.campaign.results import truths
from nextlabel.campaign.rows import ERASED, CampaignRow, LeaseRow, WorkerRow, lease_id
from nextlabel.campaign.settings import DECIDING, changes_of, check_columns, shown_payload
from nextlabel.campaign.state import CampaignState
from nextlabel.campaign.states import Reason
from nextlabel.campaign.transitions import LABELLED, LEASED, after
from nextlabel.crowd.audit import Audit, audited_accuracy
from nextlabel.errors import ClockError, ConflictError, InputError, NotFoundError, TablesPendingError
from nextlabel.policies.allocation import Allocator, Outlook, Refusal, starting_place
from nextlabel.policies.ordered import OrderedPool
from nextlabel.wording import counted, is_text, iso

#: Leases that one command expires at most.
MOST_EXPIRED = 1000

#: The seconds after which it is worth asking again.
RETRY_RANGE = (1.0, 30.0)

#: Seconds for which better workers are waited for.
PATIENCE_S = 600.0

#: How often a campaign without a model of workers looks whether it has reached ``stop_at``.
STOPS = 100

#: Share of an equal part of the budget that a worker gets before they are turned away for others who are better.
FAIR_SHARE = 0.5

#: Tasks whose columns are looked at when others are to be shown.
SAMPLE = 20

#: A task and what the log says about its choice, or why there is none.
Choice = tuple[int, dict[str, Any]] | Reason

#: Seconds that a clock may be behind the last event, as another machine's clock or a corrected one is.
MOST_BEHIND_S = 60.0

#: Seconds that may pass between two events.
MOST_AHEAD_S = 30 * 86_400.0


class Commands:
    """Commands on one campaign at one time, inside one transaction."""

    def __init__(self, state: CampaignState, tables: TableSource, now: float) -> None:
        self.state, self.tables = state, tables
        self.now = max(now, state.row.last_at)
        self._reading, self._doubt = now, doubt_about(state.row, now)

    # Commands of workers

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker: the lease that is out, or the task where a label is worth most; else the reason."""
        worker = coming_worker(worker)
        self.expire()
        for lease in self.state.open_leases(worker):
            return self._lease(lease)
        row = self.state.row
        refused = self.refusal(worker)
        if refused is not None:
            self.notice_nobody()
            return refused
        if row.left == 0:
            return self._refuse("all_leased")
        chosen = self._choose(worker)
        if isinstance(chosen, str):
            self.notice_nobody()
            return self._refuse(chosen)
        task, how = chosen
        until = self._until()
        id = lease_id(row.id, row.given)
        self.reopen()  # a label may have become worth its price again
        state = list(self.state.group_of(task))
        profile = {} if not row.config.known_workers or worker in self.state.numbers else profile_of(self.state, worker)
        data = {"lease": id, "task": task, "worker": worker, "expires_at": until, "state": state, **how, **profile}
        self.record("leased", data)
        return self._lease(self.state.lease_row(row.given - 1))

    def refusal(self, worker: str) -> NoTask | None:
        """Why this worker, who holds nothing, gets no task whichever there are; None if there may be one."""
        reason = self._why_not(worker) or self.closing_reason()
        return None if reason is None else self._refuse(reason)

    def tell(self, id: str, label: object, worker: str | None = None, comment: str | None = None) -> Receipt:
        """The answer to a lease; a late one is kept, and counted if the budget allows."""
        answer, said = self.state.row.config.answer_type.number_of(label), comment_data(comment)
        self.expire()
        lease = self._own_lease(id, worker)
        status = after(lease.status, "tell")
        row = self.state.row
        if status is None:
            if lease.label != answer:
                earlier = row.config.answer_type.name_of(lease.label or 0)
                raise ConflictError(
                    f"the lease was answered with {earlier!r} before.", "Undo that answer first, or leave it."
                )
            return self._receipt(lease)
        pool, task, control = self.state.pool, lease.task, self.state.is_control(lease.task)
        adjudicated = self.state.is_adjudicated(task)
        labels = self.state.counted_labels(task) if adjudicated else int(pool.tasks.labels[task])
        most = pool.most_labels
        if control and not adjudicated:
            counted = (lease.free or row.spent < row.budget) and not self.is_blocked(lease.worker)
        elif status == LABELLED:
            # Its place may be gone: the budget may have been lowered, or an answer that did not count was taken back.
            counted = row.spent < row.budget and labels < most
        else:
            counted = row.left > 0 and labels + int(pool.tasks.w[task]) < most and not self.is_blocked(lease.worker)
        last = counted and not control and labels + 1 >= most and not self.state.is_full(task)
        self.record(status, {"lease": id, "label": answer, "counted": counted, "last": last, **said})
        if counted and not row.config.knows_workers and row.spent % max(1, row.budget // STOPS) == 0:
            self.stop_at_target()
        self._judge(lease.worker)
        self.closing_reason()
        return self._receipt(self.state.lease_row(lease.number))

    def release(self, id: str, worker: str | None = None, comment: str | None = None) -> Receipt:
        """The worker passes the task on; it does not come back to the same worker."""
        said = comment_data(comment)
        self.expire()
        lease = self._own_lease(id, worker)
        if after(lease.status, "release") is not None:
            self.record("released", {"lease": id, **said})
            self._judge(lease.worker)
        return self.receipt(id)

    def renew(self, id: str, worker: str | None = None) -> Receipt:
        """More time for a lease that is out."""
        self.expire()
        lease = self._own_lease(id, worker)
        after(lease.status, "renew")
        until = self._until()
        if until > lease.expires_at:
            self.record("renewed", {"lease": id, "expires_at": until})
        return self.receipt(id)

    def receipt(self, id: str) -> Receipt:
        """What has become of a lease."""
        return self._receipt(self.state.get_lease(id))

    def undo(self, id: str, worker: str | None = None) -> Receipt:
        """Take an answer back while its lease would still be out; the worker has the task again."""
        self.expire()
        lease = self._own_lease(id, worker)
        if lease.status == LEASED:
            return self._receipt(lease)
        after(lease.status, "undo")
        if lease.dropped:
            raise ConflictError("the label was dropped by the requester: it cannot be undone.", "Leave it as it is.")
        if self.is_blocked(lease.worker):
            raise ConflictError("the worker is blocked: the answer stays.", "Ask the requester to restore the worker.")
        self.trust_clock()
        if self.now >= lease.expires_at or self.past_deadline():
            raise ConflictError("the lease's time is over: its answer stays.", "Undo sooner after an answer.")
        self.record("undone", {"lease": id, "label": lease.label})
        self.reopen()
        return self.receipt(id)

    # Commands of the requester

    def pause(self) -> None:
        """No new leases until ``resume``; those that are out go on."""
        self.expire()
        if not self.state.row.paused:
            self.record("paused", {})

    def resume(self) -> None:
        """New leases again."""
        self.expire()
        if self.state.row.paused:
            self.record("resumed", {})

    def change(self, **values: Any) -> None:
        """Other settings (``campaign.settings``); None takes those away that need not be there."""
        self.expire()
        row = self.state.row
        new = changes_of(row, values)
        if new.get("deadline") is not None:
            check_deadline(new["deadline"], self.now)
        if new.get("show") is not None:
            before = row.config.show or ()
            payloads = [self.state.text(number)[1] for number in range(min(row.tasks, SAMPLE))]
            check_columns([name for name in new["show"] if name not in before], payloads)
        if new:
            self.record("changed", new)
            if not DECIDING.isdisjoint(new):
                self.reopen()
                self.closing_reason()

    # Which task a worker gets

    def _choose(self, worker: str) -> Choice:
        """The task and what it was chosen by, or why there is none."""
        state, row = self.state, self.state.row
        n, asks = labels_before_deadline(row, self.now), expected_asks(row, self.now)
        tested = self.qualifies(worker) is None
        control = choose_control(self, worker, tested) if row.controls else None
        if tested and control is None:
            return "preparing"
        if control is not None:
            return control, {"left": n, "control": True, "free": not row.config.gold_in_budget}
        allocator, how = self._allocator()
        waited = (
            row.config.turn_away
            and state.crowd is not None
            and (state.crowd.serves_all or self.now - (state.crowd.nobody_since or self.now) > PATIENCE_S)
        )
        start = starting_place(row.config.seed, row.given)
        must_serve = asks is None or asks <= row.left or waited
        if not must_serve and not self._answers_at_random(worker):
            must_serve = self._is_owed_labels(worker) or self._others_cannot_spend(worker)
        outlook = Outlook(row.given, n, row.spent + row.reserved, start, must_serve)
        task: int | Refusal = "turned_away"
        if must_serve or not self._answers_at_random(worker):
            task = allocator.choose(state.numbers.get(worker, -1), outlook)
        if isinstance(task, str) and state.crowd is not None and state.crowd.crowd.tasks < row.tasks:
            model = self.refit(wait=True)  # there are tasks that it does not know yet
            task, how = model.crowd.choose(state.numbers.get(worker, -1), outlook), {"model": model.version}
        number = state.numbers.get(worker, -1)
        if task == "turned_away" and state.crowd is not None and state.crowd.turned_by.get(number) != how["model"]:
            self.record("turned_away", {"worker": worker, "model": how["model"], "left": n, "arrivals": asks})
        if task == "below_price" and row.reserved == 0:
            return self.close("below_price")
        if isinstance(task, str):
            return task
        return task, {"left": n, **how, **({"waited": True} if waited else {})}

    def qualifies(self, worker: str) -> bool | None:
        """Whether a worker has passed the qualification or failed it; None while they are at it.

        It is the first tasks that they have, all of them control questions, in as many attempts as there are
        questions for. Who has had more tasks was let in.
        """
        config, row = self.state.row.config, self.state.row
        n, tally = config.qualification or 0, self.state.find_worker(worker)
        attempts = max(min(config.attempts, (row.controls - len(row.adjudicated)) // max(n, 1)), 1)
        if n == 0 or (tally is not None and tally.given > n * attempts):
            return True
        right = self.state.first_right(worker, n * attempts)
        for first in range(0, n * attempts, n):
            if len(right) < first + n:
                return None
            if right[first : first + n].mean() >= config.pass_mark - 1e-9:
                return True
        return False

    def _judge(self, worker: str) -> None:
        """Block a worker who has failed the qualification; whoever is restored after that is not judged again."""
        if (
            self.state.row.config.qualification is None
            or self.is_blocked(worker)
            or self.qualifies(worker) is not False
        ):
            return
        if not self.state.open_leases(worker):
            reason = "Failed the qualification."
            self.record("worker_blocked", {"worker": worker, "reason": reason, "leases": []})
            self.notice_nobody()

    def _answers_at_random(self, worker: str) -> bool:
        """Whether the worker has had a trial, and the model is sure enough that their answers are noise."""
        state = self.state
        number = state.numbers.get(worker, -1)
        return (
            state.crowd is not None
            and number >= 0
            and state.crowd.answers_at_random(number, state.workers[number].labels)
        )

    def _is_owed_labels(self, worker: str) -> bool:
        """Whether the worker has had less than ``FAIR_SHARE`` of an equal share of the budget."""
        state = self.state
        assert state.crowd is not None
        number, people = state.numbers.get(worker, -1), state.crowd.people_who_came(state.workers)
        given = state.workers[number].given if number >= 0 else 0
        return given < FAIR_SHARE * state.row.config.budget / max(people, 1)

    def _others_cannot_spend(self, worker: str) -> bool:
        """Whether all others who are not turned away, taken together, have too few tasks left for the budget."""
        state, row = self.state, self.state.row
        assert state.crowd is not None
        left = row.left
        for number, one in enumerate(state.workers):
            if one.given and one.worker != worker and state.crowd.turned_by.get(number) != state.crowd.version:
                left -= max(row.tasks - one.given, 0)
                if left <= 0:
                    return False
        return True

    def _allocator(self) -> tuple[Allocator, dict[str, Any]]:
        """What chooses the next task, and what the log says of it: the load of its tables or the version of a model."""
        state, row = self.state, self.state.row
        if row.config.knows_workers:
            model = self.crowd()
            if model.is_due(row):
                model = self.refit(wait=model.version == 0)
            return model.crowd, {"model": model.version}
        assert isinstance(state.pool, OrderedPool)
        if state.pool.scores is not None:
            return state.pool, {}
        rho = wanted_rho(row)
        if rho != row.rho and self.tables.has(row.config, state.classes, load_of(row, self.now, rho)):
            rates = {"arrival_rate": arrival_rate(row), "completion_rate": completion_rate(row)}
            self.record("tuned", {"rho": rho, **rates})
        tables = self.tables.ready(row.config, state.classes, load_of(row, self.now))
        state.pool.choose_group = tables.choose
        return state.pool, {"rho": tables.load.rho} if tables.load.tasks == 0 else tables.load._asdict()

    # Writing events

    def begin(self) -> None:
        """Open the log of a new campaign."""
        config = self.state.row.config.to_dict()
        self.record("created", {"config": config, "rate_memory": RATE_MEMORY})

    def settle(self) -> None:
        """Expire what is over and close the campaign if nothing more can happen."""
        self.expire()
        self.closing_reason()

    def record(self, kind: str, data: dict[str, Any]) -> Event:
        """Write an event; the state follows it, and so does what is known of the crowd."""
        self.trust_clock()
        return self.state.record(self.now, kind, data)

    def trust_clock(self) -> None:
        """Refuse to go on by a clock that is far from the last event."""
        if self._doubt is not None:
            raise self._doubt

    def expire(self) -> None:
        """Leases whose time is over give their reservation back; after the deadline it is over for all of them."""
        over = math.inf if self.past_deadline() else self.now
        for lease in self.state.expired(over, MOST_EXPIRED):
            self.record("expired", {"lease": lease.id})
            self._judge(lease.worker)

    def closing_reason(self) -> Reason | None:
        """Why nobody can get a task, None if somebody can; a lasting reason closes the campaign, in the log too."""
        row = self.state.row
        if self.past_deadline():
            return self.close("deadline_passed")
        if row.spent >= row.budget:
            return self.close("budget_spent")
        if row.tasks == 0:
            return "preparing"
        if row.full >= row.tasks - row.controls:
            return self.close("finished") if row.reserved == 0 else "finished"
        return "paused" if row.paused else None

    def past_deadline(self) -> bool:
        """Whether the campaign's deadline is over."""
        deadline = self.state.row.deadline
        return deadline is not None and self.now >= deadline

    def close(self, reason: Reason) -> Reason:
        """Close the campaign, if it is not closed for that reason; returns the reason that stands."""
        before = self.state.row.closed_reason
        if before is not None and self._doubt is not None:
            if before == "deadline_passed" and self._reading < (self.state.row.deadline or 0.0):
                raise self._doubt  # it was closed by a clock that was ahead
            return before
        if before != reason:
            try:
                self._learn_all()
            except TablesPendingError:
                return reason  # the next command closes it
            keep_profiles(self.state)
            self.record("closed", {"reason": reason})
        return reason

    def reopen(self) -> None:
        """Open a campaign that was closed."""
        if self.state.row.closed_seq is not None:
            self.record("reopened", {})

    def notice_nobody(self) -> None:
        """Say in the log that nobody can label more, if that is so and not said yet."""
        noticed = self.state.row.noticed
        if self.state.crowd is not None:
            self.state.crowd.catch_up(self.state)
        if all(one.kind != "nobody_can_label" for one in noticed) and nobody_can_label(self.state):
            new = Notice("nobody_can_label", None, self.state.row.left)
            self.record("noticed", {"notices": [list(one) for one in (*noticed, new)], "new": [list(new)]})

    def notice_all(self) -> None:
        """Say in the log who answers at random by the last refit, if others do than before."""
        before, now = self.state.row.noticed, current_notices(self.state)
        labels = {one[:2]: one.labels for one in before}
        grown = any(one.worker and one.labels > GROWN * labels.get(one[:2], one.labels) for one in now)
        if grown or {one[:2] for one in now} != labels.keys():
            new = [list(one) for one in now if one[:2] not in labels]
            self.record("noticed", {"notices": [list(one) for one in now], "new": new})

    def stop_at_target(self) -> None:
        """Pause the campaign if the expected accuracy, audited where there is an audit, has reached ``stop_at``."""
        row = self.state.row
        target, answers = row.config.stop_at, row.config.answer_type
        if target is None or not row.kept or row.state != "open":
            return
        asked, audit = self.state.pool.tasks.gold[: row.tasks] < 0, self.audited()
        if not asked.any():
            return
        expected = float(answers.certainty(self.beliefs()[asked]).mean())
        name = "The workers' agreement (no audit has corrected it)"
        if audit is not None:
            expected, name = audit.accuracy, f"The audited accuracy ({counted(audit.audited, 'item')})"
        elif self.state.crowd is not None:
            expected = min(expected, self.state.crowd.history[-1][1]) if self.state.crowd.history else expected
        if expected >= target:
            because = f"{name} has reached {expected:.1%}, and the campaign was to stop at {target:.1%}."
            self.record("paused", {"because": because})

    def audited(self) -> Audit | None:
        """What the audit says of the tasks that were there when it was drawn; None without an answer."""
        row, of = self.state.row, self.state.row.audit_of
        audited = {task: answer for task, answer in row.audited.items() if task < of}
        if not audited:
            return None
        gold = np.asarray(self.state.pool.tasks.gold[:of])
        return audited_accuracy(self.beliefs()[:of], audited, gold, row.config.answer_type)

    # What is learnt of the crowd

    def crowd(self) -> CrowdModel:
        """What is known of tasks and workers, up to the last event."""
        state = self.state
        if state.crowd is None:
            self.tables.crowd_ready(state.row)
            state.crowd = new_model(state)
        state.crowd.catch_up(state)
        if state.crowd.missed is not None and self.tables.refit_later(state.row.id) is None:
            state.crowd = adopted(state.crowd, state)
        return state.crowd

    def crowd_snapshot(self) -> CrowdSnapshot:
        """What is believed of tasks and workers now (policy crowd); once the campaign is over, from all labels."""
        model, row = self.crowd(), self.state.row
        if self._doubt is None and row.tasks and self._is_over and model.has_news(row):
            later = self.tables.refit_later(row.id)
            if later is not None:
                raise TablesPendingError(later)
        return model.snapshot(self.state)

    def beliefs(self) -> Floats:
        """(K, C) what is believed of each task now."""
        state, row = self.state, self.state.row
        if row.config.knows_workers:
            return self.crowd_snapshot().beliefs[: row.tasks]
        tasks, n = state.pool.tasks, row.tasks
        columns = (tasks.class_id[:n], tasks.node[:n], tasks.labels[:n])
        return truths(row.config, state.classes, *(np.asarray(column, dtype=np.int64) for column in columns))

    def refit(self, wait: bool = False) -> CrowdModel:
        """Learn workers and tasks anew, and say so in the log; with ``wait`` nothing can go on before.

        Where refits are made in the background, that begins now (``TablesPendingError`` if it must be waited for).
        """
        self.trust_clock()
        later = self.tables.refit_later(self.state.row.id)
        if later is None:
            self.record("refitted", self.crowd().refit(self.state, self.now))
            self.notice_all()
            self.stop_at_target()
        elif wait:
            raise TablesPendingError(later)
        return self.crowd()

    def begin_refit(self) -> Event | None:
        """Say in the log that a refit is begun, if one is wanted and nobody else is at it."""
        model = self.crowd()
        if not self.wants_refit(model) or model.missed is not None or model.waits_for_others(self.now):
            return None
        return self.record("refitting", model.begin_refit(self.state.row, self.now))

    def wants_refit(self, model: CrowdModel) -> bool:
        """Whether the model is behind: for the next choice, or because the campaign is over."""
        row = self.state.row
        return row.tasks > 0 and (model.is_due(row) or (self._is_over and model.has_news(row)))

    @property
    def _is_over(self) -> bool:
        row = self.state.row
        return row.spent >= row.budget or row.full >= row.tasks or self.past_deadline()

    def _learn_all(self) -> None:
        """Final results rest on all labels."""
        row = self.state.row
        if row.config.knows_workers and row.tasks and self.crowd().has_news(row):
            self.refit(wait=True)

    def learn_if_over(self) -> None:
        """Results of a campaign that is closed rest on what became known after its end, too."""
        if self.state.row.closed_seq is not None:
            with suppress(TablesPendingError):  # where refits are made in the background, whoever reads waits for it
                self._learn_all()

    # Workers and leases

    def is_blocked(self, worker: str) -> bool:
        """Whether a worker gets no task, and no answer of theirs counts."""
        found = self.state.find_worker(worker)
        return found is not None and found.standing == "blocked"

    def _why_not(self, worker: str) -> Reason | None:
        """Why this worker gets no task although others may."""
        tally, most = self.state.find_worker(worker), self.state.row.config.most_labels_per_worker
        if tally is None:
            return None
        if tally.standing != "active":
            return "worker_blocked" if tally.standing == "blocked" else "worker_paused"
        return "quota_reached" if most is not None and tally.labels >= most else None

    def _refuse(self, reason: Reason) -> NoTask:
        """Why there is no task, and when to ask again."""
        retry: float | None = None
        low, high = RETRY_RANGE
        if reason in ("all_leased", "below_price", "finished", "budget_spent"):
            expiry = self.state.next_expiry()
            if reason == "all_leased" or expiry is not None:
                retry = min(max((expiry or self.now) - self.now, low), high)
        elif reason in ("paused", "worker_paused", "nothing_left_for_you", "preparing", "turned_away"):
            retry = high
        return NoTask(self.state.row.id, reason, retry and float(math.ceil(retry)))

    def _until(self) -> float:
        """When a lease that is given now expires."""
        row = self.state.row
        until = self.now + lease_seconds(row)
        return until if row.deadline is None else min(until, row.deadline)

    def _own_lease(self, id: str, worker: str | None) -> LeaseRow:
        """A lease, of that worker if one is named: another worker's lease does not exist for them."""
        lease = self.state.get_lease(id)
        if worker is not None and lease.worker != checked_worker(worker):
            return self.state.get_lease("")
        return lease

    def _lease(self, lease: LeaseRow) -> Lease:
        key, payload = self.state.text(lease.task)
        # A store may remember the task: what a program does with its payload must not be seen by others.
        shown = deepcopy(shown_payload(self.state.row.config.show, payload))
        return Lease(
            lease.id, self.state.row.id, key, shown, lease.worker, lease.status, lease.leased_at, lease.expires_at
        )

    def _receipt(self, lease: LeaseRow) -> Receipt:
        name = None if lease.label is None else self.state.row.config.answer_type.name_of(lease.label)
        until = lease.expires_at if lease.status in (LEASED, LABELLED) else None
        return Receipt(lease.id, self.state.text(lease.task)[0], lease.status, name, lease.counted, until)


def known_worker(campaign: Commands, worker: str) -> WorkerRow:
    """The tally of a worker who has had a task, or a NotFoundError."""
    found = campaign.state.find_worker(checked_worker(worker))
    if found is None:
        raise NotFoundError(
            f"worker {worker[:60]!r} has had no task of campaign {campaign.state.row.id!r}.",
            "See nextlabel campaign workers for those who have.",
        )
    return found


def accept_time(state: CampaignState, tables: TableSource, now: float) -> bool:
    """Accept a time at which nothing could be written, and say so in the log; False if there is no doubt about it.

    If the campaign's last event is from a clock that was ahead, leases end as if they had been given out now.
    """
    row = state.row
    if doubt_about(row, now) is None:
        return False
    data = {"before": row.last_at}
    if now < row.last_at:
        data["expires_at"] = now + lease_seconds(row)
    state.record(now, "clock_accepted", data)
    campaign = Commands(state, tables, now)
    campaign.expire()
    if row.closed_reason == "deadline_passed" and not campaign.past_deadline():
        campaign.reopen()
    campaign.closing_reason()
    return True


def checked_worker(worker: Any) -> str:
    """A worker's name without spaces around it, each letter in one form: two that look alike are one worker."""
    name = unicodedata.normalize("NFC", worker.strip()) if isinstance(worker, str) else ""
    if not 0 < len(name) <= LONGEST_WORKER or not name.isprintable():
        raise InputError(
            f"a worker's name is a text of 1 to {LONGEST_WORKER} visible characters in one line.",
            "Give e.g. the platform's worker id.",
        )
    return name


def coming_worker(worker: Any) -> str:
    """The name of somebody who comes to work."""
    name = checked_worker(worker)
    if name.startswith(ERASED):
        raise InputError(f"no worker may be called {name[:60]!r}.", f"Names that begin with {ERASED} are not given.")
    return name


def doubt_about(row: CampaignRow, now: float) -> ClockError | None:
    """Why nothing may be written at ``now``; None if it may."""
    if row.seq == 0 or row.last_at - MOST_BEHIND_S <= now <= row.last_at + MOST_AHEAD_S:
        return None
    return ClockError(
        f"the clock says {iso(now)}, {_apart(row.last_at, now)} the last event of campaign {row.id!r} "
        f"({iso(row.last_at)}).",
        f"Set the clock right. If it is right, accept it: nextlabel campaign change {row.id} --accept-clock.",
    )


def _apart(last: float, now: float) -> str:
    seconds = abs(now - last)
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit} {'after' if now > last else 'before'}"
    return f"{seconds:.0f} seconds {'after' if now > last else 'before'}"


def check_deadline(deadline: float, now: float) -> None:
    """Refuse one that is over."""
    if deadline <= now:
        raise InputError(
            f"the deadline {iso(deadline)} is in the past: it is {iso(now)} (UTC).",
            "Give a later time, with its time zone; to hand out no more tasks, pause the campaign.",
        )


def comment_data(comment: Any) -> dict[str, str]:
    """What an event says about a comment: nothing if there is none. Lines end as Unix ends them."""
    given = "" if comment is None else comment
    text = given.replace("\r\n", "\n").replace("\r", "\n").strip() if isinstance(given, str) else None
    if text is None or len(text) > LONGEST_COMMENT or not is_text(text):
        raise InputError(f"a comment is a text of at most {LONGEST_COMMENT} characters.", "Give a shorter text.")
    return {"comment": text} if text else {}
