"""Imports of any number of tasks, into campaigns that go on meanwhile.

1. *Staging.* Tasks are read and checked one chunk after the other, and set aside in tables of their own. No campaign
   is locked and its log does not change, so that an error in the last row leaves nothing behind.
2. *Publishing.* The chunks go into the log, each in a short transaction of its own, as tasks that are hidden. When all
   are there, one event publishes them: from then on they are counted, and workers get them.

Between two chunks commands of workers have the campaign for at least as long as the chunk had it. Memory holds one
chunk, and the different priors. A process that ends during the first step leaves chunks that nobody will publish:
``recover`` throws them away. One that ends later leaves an import that is known to be right: ``recover`` carries on
with it, and so does whoever adds tasks to the campaign next. Chunks are published by the number of tasks that the
campaign's log has already, so that two processes that take the same import for an orphan do no harm.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Lock
from typing import Any, TypeVar

from nextlabel.application.table_cache import TableCache
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.intake import (
    Intake,
    being_imported,
    check_repeated,
    chunks,
    publication,
    publish_tasks,
    record_batch,
    record_tasks,
    will_rank,
)
from nextlabel.campaign.new_tasks import NewTask
from nextlabel.campaign.records import ACTIVE, ImportRow, ImportState
from nextlabel.campaign.replies import Added
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import ConflictError, NextlabelError, NotFoundError, StorageFullError, UnavailableError
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_from
from nextlabel.store.sql import SqlStore

#: Seconds between two signs of life.
BEAT_S = 1.0

#: Tasks that are published at once; chunks of staged tasks that are thrown away at once.
STEP, CLEARED = 250, 40

#: Seconds that an import waits for a busy database, and for the tables of new priors, before it goes on or gives up.
PATIENCE_S, TABLES_S = 60.0, 30.0

#: Seconds for which imports that have ended are remembered.
REMEMBERED_S = 86_400.0
T = TypeVar("T")
_log = logging.getLogger("nextlabel.application")

#: Called with the import, and with the number of its tasks that are in the log.
Progress = Callable[[ImportRow, int], None]

#: Seconds after which a process that was not heard of has lost its import.
SILENT_S = 60.0

#: Imports that threads of this process are at work on, in whatever store.
_OWN: set[str] = set()
_OWN_LOCK = Lock()


class Imports:
    """All imports into the campaigns of one store."""

    def __init__(self, store: SqlStore, tables: TableCache, clock: Callable[[], float]) -> None:
        self._store, self._tables, self._clock = store, tables, clock
        self._stopping = Event()

    def stop(self) -> None:
        """Imports that are under way end at the next chunk, with an UnavailableError."""
        self._stopping.set()

    def add(
        self, id: str, tasks: Iterable[NewTask], batch: str | None = None, progress: Progress | None = None
    ) -> Added:
        """Add tasks to a campaign."""
        row = self._begin(id, batch, None)
        with self._owned(row):
            with self._store.transaction(id) as state:  # no other tasks are being added from here on
                before = None if batch is None else state.batches.get(batch)
                campaign, classes = replace(state.row), list(state.classes)
            if before is not None:
                check_repeated(str(row.batch), tasks, before)
                row.known = before.tasks
                self._save(row, "done")
                return Added(0, before.tasks, campaign.tasks)
            row.first = campaign.tasks
            self._stage(row, campaign.config, campaign.ranked, classes, tasks, progress)
            return self._publish(row, progress)

    def create(
        self, config: CampaignSettings, id: str, tasks: Iterable[NewTask], batch: str, progress: Progress | None = None
    ) -> Added:
        """Add the first tasks of a campaign, which is created when all of them have been checked."""
        row = self._begin(id, batch, config)
        with self._owned(row):
            self._stage(row, config, False, [], tasks, progress)
            return self._publish(row, progress)

    def recover(self, campaign: str | None = None) -> list[ImportRow]:
        """Finish or throw away the imports (into one campaign, or all) that have lost their process; returns them."""
        taken = []
        for row in self._store.records.find(ImportRow, state=ACTIVE):
            if campaign in (None, row.campaign) and self._take_over(row):
                taken.append(row)
                with self._owned(row):
                    if row.state == "staging":
                        self._fail(row, "The process that read the tasks has ended. Send them again.")
                    elif self._store.records.deleted_at(row.campaign) is not None:
                        self._fail(row, "The campaign was deleted.")
                    else:
                        self._publish(row, None)
                _log.info("import %s into %s recovered: %s", row.id, row.campaign, row.state)
        self._store.records.forget(ImportRow, self._store.clock() - REMEMBERED_S)
        return taken

    def _begin(self, campaign: str, batch: str | None, config: CampaignSettings | None) -> ImportRow:
        self.recover(campaign)
        now, text = self._store.clock(), None if config is None else config.to_json()
        row = ImportRow(secrets.token_hex(8), campaign, batch, "staging", this_process(), now, now, config=text)
        _OWN.add(row.id)
        if not self._store.records.add(row):
            _OWN.discard(row.id)
            raise being_imported(campaign)
        return row

    def _take_over(self, row: ImportRow) -> bool:
        """Make an import that has lost its process this thread's; False if somebody is at work on it."""
        with _OWN_LOCK:
            silent = not row.owner or self._store.clock() > row.beat_at + SILENT_S
            if row.id in _OWN or not (silent or _has_ended(row.owner)):
                return False
            owner, now = this_process(), self._store.clock()
            mine, same = {"owner": owner, "beat_at": now}, {"owner": row.owner, "beat_at": row.beat_at}
            if not self._store.records.change(ImportRow, mine, id=row.id, **same):
                return False  # somebody else was faster
            row.owner, row.beat_at = owner, now
            _OWN.add(row.id)
            return True

    def _stage(
        self,
        row: ImportRow,
        config: CampaignSettings,
        ranked: bool,
        classes: list[Prior],
        tasks: Iterable[NewTask],
        progress: Progress | None,
    ) -> None:
        """Check all tasks and set the new ones aside."""
        priors: list[Any] = []
        find = partial(self._store.tasks_by_key, row.campaign)
        with Intake(classes, row.first, find, row.batch is not None) as intake:
            for chunk in chunks(tasks, STEP):
                self._go_on()
                first = intake.added
                new = intake.number(chunk)
                priors += new.priors
                row.rows += len(chunk)
                if new.tasks:
                    row.beat_at = self._store.clock()
                    self._patiently(partial(self._store.records.stage, row, first, json.dumps(new.tasks)))
                else:
                    self._beat(row)
                if progress is not None:
                    progress(row, 0)
            will_rank(config, ranked, len(intake.classes))
            row.added, row.known, row.alike, row.digest = intake.added, intake.known, intake.alike, intake.digest
        row.priors = json.dumps(priors)
        self._save(row, "publishing")

    def _publish(self, row: ImportRow, progress: Progress | None) -> Added:
        """Bring tasks that were set aside into the log, and publish them; carries on wherever it was left."""
        self._patiently(lambda: self._make_campaign(row))
        campaign, priors = self._store.row(row.campaign), [prior_from(prior) for prior in json.loads(row.priors)]
        tables, published = None, 0
        if priors and not campaign.config.knows_workers and campaign.tasks == row.first:
            classes = [*self._store.classes(row.campaign), *priors]
            if not will_rank(campaign.config, campaign.ranked, len(classes)):
                tables = self._tables.prepare(campaign.config, classes, campaign.rho)
        while row.state == "publishing":
            self._go_on()
            campaign = self._store.row(row.campaign)
            hidden = campaign.hidden
            if campaign.tasks != row.first:
                self._save(row, "done")
            elif hidden < row.added:
                self._patiently(partial(self._publish_chunk, row, hidden))
                published += 1
                if published % CLEARED == 0:
                    self._patiently(partial(self._store.records.clear_staged, row.id, hidden, CLEARED))
                self._beat(row)
                if progress is not None:
                    progress(row, hidden)
            else:
                end = time.monotonic() + TABLES_S  # so that no worker has to wait for the tables of new priors
                while tables is not None and not tables.done() and time.monotonic() < end:
                    self._go_on()
                    time.sleep(0.05)
                self._patiently(lambda: self._publish_all(row))
                self._save(row, "done")
        self._clear(row)
        return Added(row.added, row.known, self._store.row(row.campaign).tasks, row.alike)

    def _make_campaign(self, row: ImportRow) -> None:
        if row.config is None:
            return
        config = CampaignSettings.from_log(json.loads(row.config))
        with suppress(NotFoundError):
            there = self._store.row(row.campaign)
            created = CampaignSettings.from_log(self._store.events(row.campaign, 0, 1)[0].data["config"])
            if created != config or there.tasks not in (0, row.added):
                self._fail(row, "A campaign of that id was created meanwhile.")
                raise ConflictError(f"there is a campaign {row.campaign!r} already.", "Choose another id.")
            return
        with self._store.create(row.campaign, config, self._clock()) as state:
            Commands(state, self._tables, state.row.created_at).begin()

    def _publish_chunk(self, row: ImportRow, hidden: int) -> None:
        data = self._store.records.staged(row.id, hidden)
        if data is None:
            if self._store.row(row.campaign).hidden == hidden:  # else another process has published it meanwhile
                raise ConflictError(f"tasks of import {row.id} are missing.", "Restore the database from a backup.")
            return
        tasks = json.loads(data)
        begun = time.monotonic()
        with self._store.transaction(row.campaign) as state:
            if state.row.hidden == hidden and state.row.tasks == row.first:
                record_tasks(Commands(state, self._tables, self._clock()), tasks, None)
        time.sleep(time.monotonic() - begun)  # others have the lock for at least as long

    def _publish_all(self, row: ImportRow) -> None:
        with self._store.transaction(row.campaign) as state:
            if state.row.tasks != row.first or state.row.hidden != row.added:
                return
            campaign = Commands(state, self._tables, self._clock())
            if row.added == 0:
                if row.batch is not None and row.batch not in state.batches:
                    record_batch(campaign, row.batch, str(row.digest))
                return
            priors = json.loads(row.priors)
            ranked = will_rank(state.row.config, state.row.ranked, state.row.classes + len(priors))
            publish_tasks(campaign, publication(priors, ranked, row.batch, row.digest))

    @contextmanager
    def _owned(self, row: ImportRow) -> Iterator[None]:
        """This thread is at work on the import; one that has to stop leaves it to others, an error ends it."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            with suppress(Exception):  # the first error is the one to tell
                if row.state == "staging":
                    self._fail(row, str(error) if isinstance(error, NextlabelError) else "It was broken off.")
                elif row.active:
                    row.owner = ""
                    self._store.records.save(row)
            raise
        finally:
            _OWN.discard(row.id)

    def _fail(self, row: ImportRow, why: str) -> None:
        row.error = why
        self._save(row, "failed")
        self._clear(row)

    def _clear(self, row: ImportRow) -> None:
        """Throw away what was set aside, in steps that keep nobody waiting."""
        while self._store.records.clear_staged(row.id, 2**62, CLEARED) == CLEARED:
            time.sleep(0.002)

    def _beat(self, row: ImportRow) -> None:
        """A sign of life, once a second."""
        if self._store.clock() > row.beat_at + BEAT_S:
            self._save(row, row.state)

    def _save(self, row: ImportRow, state: ImportState) -> None:
        row.state, row.beat_at = state, self._store.clock()
        self._patiently(lambda: self._store.records.save(row))

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise UnavailableError("the service is stopping.", "Send the tasks again in a moment.")

    def _patiently(self, step: Callable[[], T]) -> T:
        """The result of a step that may be repeated, tried for a while if the database is busy."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return step()
            except StorageFullError:  # it will not be less full in a moment
                raise
            except UnavailableError:
                self._go_on()
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)


def this_process() -> str:
    """The name under which this process owns imports."""
    return f"{_machine()}/{os.getpid()}"


def _machine() -> str:
    """This machine, or the container in which processes have numbers of their own."""
    names = ""
    with suppress(OSError):
        names = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{names}"


def _has_ended(owner: str) -> bool:
    """Whether an owner is known to run no more; elsewhere that shows when it has been silent for long."""
    machine, _, process = owner.rpartition("/")
    own = process == str(os.getpid())  # ``_OWN`` says which imports of this process are under way
    if machine != _machine() or own or os.name != "posix":
        return machine == _machine() and own
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """One import (``campaign.records``): ``rows`` tasks were read, and ``published`` of the new ones are in the log."""

    id: str
    campaign: str
    batch: str | None
    state: ImportState
    rows: int
    published: int
    added: int
    known: int
    alike: int
    error: str | None
    started_at: float
    updated_at: float


def import_status(store: SqlStore, row: ImportRow) -> ImportStatus:
    """The status of an import."""
    published = row.added if row.state == "done" else 0
    if row.state == "publishing":
        try:
            campaign = store.row(row.campaign)
        except NotFoundError:  # it is about to be created
            published = 0
        else:
            published = row.added if campaign.tasks > row.first else campaign.hidden
    return ImportStatus(
        row.id, row.campaign, row.batch, row.state, row.rows, published, row.added, row.known, row.alike,
        row.error, row.started_at, row.beat_at,
    )  # fmt: skip


def imports_of(store: SqlStore, campaign: str, limit: int = 20) -> list[ImportStatus]:
    """The last imports into a campaign, newest first."""
    return [import_status(store, row) for row in store.records.find(ImportRow, campaign=campaign, limit=limit)]


def find_import(store: SqlStore, campaign: str, id: str) -> ImportStatus:
    """An import into a campaign by its id."""
    row = next(iter(store.records.find(ImportRow, id=id)), None)
    if row is None or row.campaign != campaign:
        raise NotFoundError("there is no such import.", "Imports are remembered for a day after they have ended.")
    return import_status(store, row)
