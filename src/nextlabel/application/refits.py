"""Refits of the policy ``crowd`` in the background: nobody waits while workers and tasks are learnt anew.

    1. a short transaction writes ``refitting``: up to this event labels count
    2. outside of any transaction the model's shadow (``campaign.crowd_model``), a copy as of that event, learns and
       follows what has come in meanwhile
    3. a short transaction lets it follow the last events, writes ``refitted`` and puts it in the place of the model

Several processes: whoever sees that another has begun waits for that refit, for ``PATIENCE_S`` seconds at most, then
takes it over in the same way, from its own shadow. A process that is killed leaves a ``refitting`` event, which means
nothing by itself. Two who have begun nevertheless cannot both end: the second finds the other's ``refitted``.
After a refit the thread rests as long as it took, so that at most half of one core is spent on them.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, wait
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from nextlabel.application.jobs import Jobs
from nextlabel.application.table_cache import LONG_LOG, crowd_compiled
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.crowd_model import CrowdModel, adopted, new_model
from nextlabel.campaign.events import Event
from nextlabel.campaign.state import CampaignState
from nextlabel.errors import NextlabelError
from nextlabel.store.records import kept_name

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

#: Threads, seconds between two looks at a refit of another process, and seconds of rest after a failure.
THREADS, LOOK_S, AFTER_FAILURE_S = 2, 0.1, 1.0
#: Seconds that closing waits for a refit that is being made.
CLOSING_S = 600.0
#: A snapshot is kept again after this share of events more.
MORE_EVENTS = 0.1
_log = logging.getLogger("nextlabel.application")


class Begin(NamedTuple):
    """The model, the ``refitting`` event whose copy learns (None if another process has refitted), the outcome."""

    model: CrowdModel | None
    event: Event | None
    found: dict[str, Any]


#: Another process is at it.
WAITING = Begin(None, None, {})


class BackgroundRefits:
    """One refit of a campaign at a time; ``later`` begins one where it is due."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service, self._store = campaign_service, campaign_service.store
        self._jobs = Jobs("refits", THREADS)
        self._kept: dict[str, int] = {}  # the last event of the snapshot that was kept

    def later(self, id: str) -> Future[None]:
        """Refit the campaign if that is due; done when it is, or when it turns out not to be."""
        return self._jobs.submit(id, lambda _: self._work(id))

    def close(self) -> None:
        """End what is under way and begin nothing more."""
        self._jobs.close(CLOSING_S)

    def _work(self, id: str) -> None:
        """Refit until nothing is due."""
        closed = self._jobs.closed
        try:
            compiled = crowd_compiled()  # it may take a minute, or nobody needs it any more
            while not (closed.is_set() or compiled.done()):
                wait([compiled], LOOK_S)
            while not closed.is_set() and (rest := self._step(id)) is not None:
                closed.wait(rest)
        except BaseException as error:
            if not isinstance(error, NextlabelError):
                _log.warning("workers of %s were not learnt anew", id, exc_info=error)
            closed.wait(AFTER_FAILURE_S)
            raise

    def _step(self, id: str) -> float | None:
        """One refit, if one is due; returns the seconds after which to look again, None if there is nothing to do."""
        begun = perf_counter()
        begin = self.begin(id)
        if begin is None or begin is WAITING:
            return None if begin is None else LOOK_S
        self.publish(id, self.learn(id, begin), begin)
        return perf_counter() - begun

    def begin(self, id: str) -> Begin | None:
        """Say in the log that a refit has begun; None if none is due, ``WAITING`` if another process is at it."""
        while True:
            with self._store.transaction(id) as state:
                long = state.crowd is None and state.row.seq > LONG_LOG
            if long:  # it is read where nobody has to wait for it
                model = new_model(self._log(id))
                with self._store.transaction(id) as state:
                    state.crowd = model if state.crowd is None else state.crowd
            with self._store.transaction(id) as state:
                if state.crowd is not None or state.row.seq <= LONG_LOG:  # else it was given up for want of memory
                    return self._begin(state)

    def _begin(self, state: CampaignState) -> Begin | None:
        commands = self._commands(state)
        model = commands.crowd()
        if model.missed is not None:
            return Begin(model, None, {})
        event = commands.begin_refit()
        if event is not None:
            return Begin(model, event, {})
        if commands.wants_refit(model):
            return WAITING
        commands.settle()
        return None

    def learn(self, id: str, begin: Begin) -> CrowdModel:
        """The new model: learnt anew, or by another process and computed here again."""
        model, event, _ = begin
        assert model is not None
        if event is None:
            return adopted(model, self._log(id))
        log, shadow = self._log(id), model.shadow
        assert shadow is not None  # there is one from the first ``refitting`` on
        if shadow.seq > max(LONG_LOG, (1.0 + MORE_EVENTS) * self._kept.get(id, 0)):
            # What a long log says is kept before it is learnt from: other processes need not read it all.
            self._store.put(kept_name(id), shadow.dump(), replace=True)
            self._kept[id] = shadow.seq
        taught = shadow.taught(log, event.data)
        shadow.learn(log, event.data | taught)
        shadow.catch_up(self._log(id))
        begin.found.update(taught | shadow.found(self._log(id), event.data, model.history))
        return shadow

    def publish(self, id: str, new: CrowdModel, begin: Begin) -> bool:
        """Let the new model stand in for the old one; False if another refit was quicker."""
        with self._store.transaction(id) as state:
            commands, event = self._commands(state), begin.event
            new.catch_up(state)
            if event is not None and new.last_refit > event.seq:
                return False
            state.crowd = new
            if event is not None:
                commands.record("refitted", {**event.data, **begin.found, "upto": event.seq})
                commands.notice_all()
                commands.stop_at_target()
            commands.settle()
            return True

    def _log(self, id: str) -> CampaignState:
        with self._store.transaction(id) as state:
            return state.copy_for_reading()

    def _commands(self, state: CampaignState) -> Commands:
        return Commands(state, self._service.table_cache, self._service.clock())
