"""Writing to a campaign's log: events in order, leases that expire on the way, when a campaign closes and opens again.

Leases are judged by their times at the beginning of every command, so that nothing has to run in the background.
``now`` is given (seconds since 1970) and never taken to be behind the last event; nothing is written if it is far
from that (``campaign.clock``).
"""

from __future__ import annotations

import math
from typing import Any

from nextlabel.campaign import scoring
from nextlabel.campaign.clock import doubt_about
from nextlabel.campaign.crowd_model import CrowdModel, adopted, new_model
from nextlabel.campaign.crowd_snapshot import CrowdSnapshot
from nextlabel.campaign.crowd_start import CORE_LABELS
from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.policy_tables import TableSource
from nextlabel.campaign.projection import apply_event
from nextlabel.campaign.rates import RATE_MEMORY, expected_asks, labels_before_deadline
from nextlabel.campaign.states import Reason
from nextlabel.errors import TablesPendingError

#: Leases that one command expires at most.
MOST_EXPIRED = 1000


class Recording:
    """One campaign at one time, inside one transaction."""

    def __init__(self, ledger: Ledger, tables: TableSource, now: float) -> None:
        self.ledger, self.tables = ledger, tables
        self.now = max(now, ledger.row.last_at)
        self._reading, self._doubt = now, doubt_about(ledger.row, now)

    def begin(self) -> None:
        """Open the log of a new campaign."""
        row = self.ledger.row
        self.record("created", {"config": row.config.to_dict(), "rate_memory": RATE_MEMORY, "core": CORE_LABELS})

    def settle(self) -> None:
        """Expire what is over and close the campaign if nothing more can happen."""
        self.expire()
        self.closing_reason()

    def record(self, kind: str, data: dict[str, Any]) -> Event:
        """Write an event; the rows follow it, and so does what is known of the crowd."""
        self.trust_clock()
        event = self.ledger.append(self.now, kind, data)
        apply_event(self.ledger, event, scoring.rank)
        model = self.ledger.crowd
        if model is not None and model.seq == event.seq - 1:
            model.apply(self.ledger, event)
        return event

    def trust_clock(self) -> None:
        """Refuse to go on by a clock that is far from the last event."""
        if self._doubt is not None:
            raise self._doubt

    def expire(self) -> None:
        """Leases whose time is over give their reservation back; after the deadline it is over for all of them."""
        over = math.inf if self.past_deadline() else self.now
        for lease in self.ledger.expired(over, MOST_EXPIRED):
            self.record("expired", {"lease": lease.id})

    def closing_reason(self) -> Reason | None:
        """Why nobody can get a task, None if somebody can; a lasting reason closes the campaign, in the log too."""
        row = self.ledger.row
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
        deadline = self.ledger.row.deadline
        return deadline is not None and self.now >= deadline

    def close(self, reason: Reason) -> Reason:
        """Close the campaign, if it is not closed for that reason; returns the reason that stands."""
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
            self.record("closed", {"reason": reason})
        return reason

    def reopen(self) -> None:
        """Open a campaign that was closed."""
        if self.ledger.row.closed_seq is not None:
            self.record("reopened", {})

    def crowd(self) -> CrowdModel:
        """What is known of tasks and workers, up to the last event."""
        ledger = self.ledger
        if ledger.crowd is None:
            self.tables.crowd_ready()
            self.tables.crowd_loaded(ledger.row)
            ledger.crowd = new_model(ledger.row)
        ledger.crowd.catch_up(ledger)
        if ledger.crowd.missed is not None and self.tables.refit_later(ledger.row.id) is None:
            model = adopted(ledger.crowd, ledger)
            model.take_turns(ledger.crowd)
            ledger.crowd = model
        return ledger.crowd

    def crowd_snapshot(self) -> CrowdSnapshot:
        """What is believed of tasks and workers now (policy crowd); once the campaign is over, from all labels."""
        model, row = self.crowd(), self.ledger.row
        if self._doubt is None and row.tasks and self._is_over and model.has_news(row):
            later = self.tables.refit_later(row.id)
            if later is not None:
                raise TablesPendingError(later)
        return model.snapshot(self.ledger)

    def refit(self, wait: bool = False) -> CrowdModel:
        """Learn workers and tasks anew, and say so in the log; with ``wait`` nothing can go on before.

        Where refits are made in the background, that begins now (``TablesPendingError`` if it must be waited for).
        """
        self.trust_clock()
        later = self.tables.refit_later(self.ledger.row.id)
        if later is None:
            self.record("refitted", self.crowd().refit(self.ledger, self._labels_to_come, self._asks_to_come))
        elif wait:
            raise TablesPendingError(later)
        return self.crowd()

    def begin_refit(self) -> Event | None:
        """Say in the log that a refit is begun, if one is wanted and nobody else is at it."""
        model = self.crowd()
        if not self.wants_refit(model) or model.missed is not None or model.waits_for_others(self.now):
            return None
        return self.record("refitting", model.begin_refit(self.ledger.row, self._labels_to_come, self._asks_to_come))

    def wants_refit(self, model: CrowdModel) -> bool:
        """Whether the model is behind: for the next choice, or because the campaign is over."""
        row = self.ledger.row
        return row.tasks > 0 and (model.is_due(row) or (self._is_over and model.has_news(row)))

    @property
    def _is_over(self) -> bool:
        row = self.ledger.row
        return row.spent >= row.budget or row.full >= row.tasks or self.past_deadline()

    @property
    def _labels_to_come(self) -> int:
        return labels_before_deadline(self.ledger.row, self.now)

    @property
    def _asks_to_come(self) -> float | None:
        return expected_asks(self.ledger.row, self.now)

    def _learn_all(self) -> None:
        """Final results rest on all labels."""
        row = self.ledger.row
        if row.config.knows_workers and row.tasks and self.crowd().has_news(row):
            self.refit(wait=True)
