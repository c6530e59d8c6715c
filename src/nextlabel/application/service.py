"""All commands on all campaigns of one store: what a program, the command line and the service have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any, TypeVar

from nextlabel.application.certificate import Certificate, Certificates
from nextlabel.application.deletions import Deletions
from nextlabel.application.guarantees import Guarantees
from nextlabel.application.imports import Imports, Progress
from nextlabel.application.predictions import add_predictions
from nextlabel.application.refits import BackgroundRefits
from nextlabel.application.table_cache import TableCache, crowd_compiled
from nextlabel.application.visits import PlatformVisits
from nextlabel.application.worker_reports import WorkerReports
from nextlabel.campaign.commands import Commands, accept_time, check_deadline, checked_worker, known_worker
from nextlabel.campaign.crowd_model import CrowdSnapshot
from nextlabel.campaign.external_answers import Skipped, follow_answer
from nextlabel.campaign.intake import add_tasks
from nextlabel.campaign.known_answers import adjudicate, answer_audit, draw_audit, set_gold, undo_adjudication
from nextlabel.campaign.new_tasks import NewTask, paired, read_tasks
from nextlabel.campaign.policy_tables import load_of
from nextlabel.campaign.profiles import (
    KNOWN,
    PROFILES,
    Profiles,
    add_known,
    forget,
    merged,
    name_hash,
    profiles_from_rows,
    read_profiles,
)
from nextlabel.campaign.records import taken_by_deleted
from nextlabel.campaign.replies import (
    Added,
    AddedFeatures,
    AddedPredictions,
    AuditItem,
    ChangedLabels,
    Lease,
    NoTask,
    Receipt,
)
from nextlabel.campaign.results import GivenLabel, Result, given_labels, results_of
from nextlabel.campaign.rows import (
    ERASED,
    LINK_SECRET,
    NOT_ANSWERED,
    CampaignRow,
    TaskRow,
    WorkerRow,
    campaign_of,
    checked_campaign_id,
    link_name,
    new_campaign_id,
)
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Standing
from nextlabel.campaign.worker_commands import LabelStep, drop_labels, erase_worker, restore_labels, set_standing
from nextlabel.errors import BusyError, ConflictError, GoneError, NotFoundError, TablesPendingError
from nextlabel.files.features import read_features
from nextlabel.model.prior import Prior
from nextlabel.policies.allocation import Group
from nextlabel.store.records import kept_name
from nextlabel.store.sql import SqlStore
from nextlabel.store.verify import Verification, verify

T = TypeVar("T")

#: Rows that are read at once, and bytes of their payloads.
CHUNK, CHUNK_BYTES = 10_000, 16 << 20

#: Tasks whose leases are read at once.
TASKS_WITH_LEASES = 1_000

#: The batch of the tasks that a campaign is created with.
FIRST_BATCH = "create"

#: Seconds that a request which only reads waits for what is still computed.
READ_PATIENCE_S = 20.0

#: Tasks, and characters of their payloads, that are added in one transaction; more of them are imported in steps.
AT_ONCE, AT_ONCE_SIZE = 2000, 1 << 21
Clock = Callable[[], float]


class CampaignService:
    """Commands by campaign; ``clock`` gives seconds since 1970, and is the store's if there is none."""

    def __init__(self, store: SqlStore, clock: Clock | None = None, table_cache: TableCache | None = None) -> None:
        self.store, self.clock = store, clock if clock is not None else store.clock
        self.table_cache = table_cache if table_cache is not None else TableCache(store)
        self.audits, self.certificates = Audits(self), Certificates(self)
        self.guarantees = Guarantees(self)
        self.worker_reports = WorkerReports(self)
        self.visits = PlatformVisits(self)
        self.imports = Imports(store, self.table_cache, self.clock)
        self.deletions = Deletions(store)

    def create(
        self,
        config: CampaignSettings,
        id: str | None = None,
        tasks: Iterable[Any] = (),
        progress: Progress | None = None,
        owner: str = "",
    ) -> CampaignRow:
        """A new campaign with its first tasks, or nothing; the same id with the same settings is the same campaign."""
        return self.create_with(config, id, read_tasks(config, tasks), progress, owner)[0]

    def create_with(
        self,
        config: CampaignSettings,
        id: str | None,
        tasks: Iterable[NewTask],
        progress: Progress | None = None,
        owner: str = "",
    ) -> tuple[CampaignRow, Added]:
        """The same, with tasks that have been checked; and what became of them."""
        name = new_campaign_id() if id is None else checked_campaign_id(id)
        if config.deadline is not None and not (id is not None and self._has_campaign(name)):
            check_deadline(config.deadline, self.clock())
        some, more = _first_tasks(paired(config, tasks, ()))
        if owner and not self.store.access.claim(name, owner):
            raise ConflictError(f"there is a campaign {name!r} already.", "Choose another id.")
        try:
            if more is None:
                with self.store.create(name, config, self.clock()) as state:
                    commands = Commands(state, self.table_cache, state.row.created_at)
                    commands.begin()
                    added = add_tasks(commands, some, FIRST_BATCH)
            elif self._has_campaign(name):
                raise ConflictError(f"there is a campaign {name!r} already.", "Choose another id.")
            elif self.store.deletions.find(name) is not None:
                raise taken_by_deleted(name)
            else:
                added = self.imports.create(config, name, chain(some, more), FIRST_BATCH, progress)
        except ConflictError as error:
            if not self._has_campaign(name):
                raise error from None  # it was about the tasks
            if CampaignSettings.from_log(self.store.events(name, 0, 1)[0].data["config"]) != config:
                raise ConflictError(
                    f"there is a campaign {name!r} with other settings.", "Choose another id, or change that one."
                ) from None
            added = self._add(name, some, more, FIRST_BATCH, progress)
        if config.known_workers and self.store.get(kept_name(name, KNOWN)) is None:
            known = self._known(config, self.store.access.owner(name))
            self.run(name, lambda commands: add_known(commands.state, known))
        self.warm(name)
        return self.store.row(name), added

    def _known(self, config: CampaignSettings, owner: str) -> Profiles:
        """What ended campaigns of an owner with the same labels have taught about workers."""
        owners = self.store.access.owners()
        ended = [
            row.id
            for row in self.store.campaigns()
            if row.config.labels == config.labels and owners.get(row.id, "") == owner
        ]
        return merged(read_profiles(self.store.get(kept_name(id, PROFILES))) for id in ended)

    def profiles(self, id: str) -> list[dict[str, Any]]:
        """What an ended campaign has taught about its workers: a row for each answer to a truth."""
        labels, kept = self.store.row(id).config.labels, read_profiles(self.store.get(kept_name(id, PROFILES)))
        return [
            {"worker": one.worker, "truth": labels[c], "answer": labels[y], "count": count}
            for one in self.store.workers(id)
            for c, row in enumerate(kept.get(name_hash(one.worker), ()))
            for y, count in enumerate(row)
        ]

    def add_profiles(self, id: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """Know workers by rows of ``profiles``, perhaps of another service; returns how many are known."""
        config = self.store.row(id).config
        if not config.known_workers:
            raise ConflictError(f"campaign {id!r} takes workers to be new.", "Create one with known_workers.")
        table = profiles_from_rows(rows, config.labels)
        return self.run(id, lambda commands: add_known(commands.state, table))

    def _has_campaign(self, id: str) -> bool:
        try:
            self.store.row(id)
        except NotFoundError:
            return False
        return True

    def run(self, id: str, command: Callable[[Commands], T], patience_s: float | None = None) -> T:
        """One command on one campaign, in a transaction of its own.

        What it needs may still be computed: it is waited for, or no longer than ``patience_s`` (TablesPendingError).
        """
        while True:
            try:
                with self.store.transaction(id) as state:
                    return command(Commands(state, self.table_cache, self.clock()))
            except TablesPendingError as pending:  # waited for here, where nobody else is kept waiting
                wait([pending.future], patience_s)
                if not pending.future.done():
                    raise
                pending.future.result()

    def add_tasks(
        self, id: str, tasks: Iterable[Any], batch: str | None = None, progress: Progress | None = None
    ) -> Added:
        """Tasks as tables (``campaign.new_tasks``), all of them or none; others are not kept waiting by many."""
        return self.add_checked(id, read_tasks(self.store.row(id).config, tasks), batch, progress)

    def add_checked(
        self, id: str, tasks: Iterable[NewTask], batch: str | None = None, progress: Progress | None = None
    ) -> Added:
        """The same, with tasks that have been checked."""
        there = (task.payload for tasks in self.task_chunks(id, CHUNK) for task in tasks)
        some, more = _first_tasks(paired(self.store.row(id).config, tasks, there))
        added = self._add(id, some, more, batch, progress)
        self.warm(id)
        return added

    def add_predictions(
        self,
        id: str,
        model: str,
        rows: Iterable[Any],
        cost: float = 0.0,
        task_column: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> AddedPredictions:
        """What a model predicts, as the labels of worker ``model:NAME`` (``campaign.predictions``)."""
        return add_predictions(self, id, model, rows, cost, task_column, progress)

    def add_features(self, id: str, features: Any, replace: bool = False) -> AddedFeatures:
        """Features of items, present or to come, beside those that are there; with ``replace`` in their place."""
        row = self.store.row(id)
        if not row.config.learns_from_features:
            noun = row.config.answer_type.noun
            what = f"asks for {noun}" if noun else f"has the policy {row.config.policy!r}"
            raise ConflictError(
                f"campaign {id!r} {what}, which does not learn from features.",
                "Use a campaign for labels or ratings with the policy crowd, which is the default.",
            )
        keys = [task.key for tasks in self.task_chunks(id, CHUNK) for task in tasks]
        read = read_features(features, keys)
        while True:
            before, all_of_them = self.store.row(id).rules.features, read
            old = self.store.get(kept_name(id, f"features-{before}")) if before and not replace else None
            if old is not None:
                all_of_them = read.then(read_features(old))
            data = all_of_them.dump()
            added = AddedFeatures(
                len(read), int((read.rows_of(keys) >= 0).sum()), read.numbers.shape[1], len(read.texts),
                sha256(data).hexdigest()[:32],
            )  # fmt: skip
            if self.run(id, partial(_keep_features, before=before, added=added, data=data)):
                return added

    def _add(
        self,
        id: str,
        some: list[NewTask],
        more: Iterator[NewTask] | None,
        batch: str | None,
        progress: Progress | None,
    ) -> Added:
        if more is not None:
            return self.imports.add(id, chain(some, more), batch, progress)
        try:
            return self.run(id, lambda commands: add_tasks(commands, some, batch))
        except BusyError:
            if not self.imports.recover(id):  # else the import that was in the way had lost its process
                raise
            return self._add(id, some, more, batch, progress)

    def ask(self, id: str, worker: str) -> Lease | NoTask:
        """A task for a worker."""
        return self.run(id, lambda commands: commands.ask(worker))

    def tell(self, lease: str, label: object, worker: str | None = None, comment: str | None = None) -> Receipt:
        """A worker's answer, perhaps with a comment."""
        return self.run(campaign_of(lease), lambda commands: commands.tell(lease, label, worker, comment))

    def release(self, lease: str, worker: str | None = None, comment: str | None = None) -> Receipt:
        """A worker passes a task on, perhaps with a comment."""
        return self.run(campaign_of(lease), lambda commands: commands.release(lease, worker, comment))

    def renew(self, lease: str, worker: str | None = None) -> Receipt:
        """A worker needs more time."""
        return self.run(campaign_of(lease), lambda commands: commands.renew(lease, worker))

    def undo(self, lease: str, worker: str | None = None) -> Receipt:
        """A worker takes an answer back."""
        return self.run(campaign_of(lease), lambda commands: commands.undo(lease, worker))

    def order(self, id: str) -> dict[str, Any]:
        """The items of a campaign for pairs, the best first, and the share of pairs expected in the wrong order."""
        if self.store.row(id).config.answer != "pair":
            raise ConflictError(f"campaign {id!r} does not compare items.", "Ask for its results.")
        pairs = self.run(id, lambda commands: commands.crowd_snapshot()).pairs
        return {} if pairs is None else {"items": list(pairs.tasks()), "discordant": pairs.discordant()}

    def set_answer(self, id: str, worker: str, task: str, answer: object | Skipped | None) -> Receipt | None:
        """Follow what another tool says a worker answered (``campaign.external_answers``)."""
        return self.run(id, lambda commands: follow_answer(commands, task, worker, answer))

    def pause(self, id: str) -> CampaignRow:
        """No new leases."""
        self.run(id, Commands.pause)
        return self.store.row(id)

    def resume(self, id: str) -> CampaignRow:
        """New leases again."""
        self.run(id, Commands.resume)
        return self.store.row(id)

    def change(self, id: str, values: Mapping[str, Any]) -> CampaignRow:
        """Other values of settings that may change (``campaign.settings``)."""
        self.run(id, lambda commands: commands.change(**values))
        return self.store.row(id)

    def delete(self, id: str, progress: Callable[[float], None] | None = None) -> int:
        """Delete a campaign with its tasks, labels, log and links, for good; returns how many rows were removed."""
        self.deletions.begin(id)
        return self.deletions.finish(progress)

    def set_standing(self, id: str, worker: str, standing: Standing, reason: object = "") -> WorkerRow:
        """Pause, block or restore a worker (``campaign.worker_commands``)."""

        def run(commands: Commands) -> WorkerRow:
            set_standing(commands, worker, standing, reason)
            return replace(known_worker(commands, worker))

        return self.run(id, run)

    def erase_worker(self, id: str, worker: str) -> WorkerRow:
        """Take a person's name and words out of a campaign: its log, visits, links; what they are called now."""
        name, _ = checked_worker(worker), self.store.row(id)
        known, owners = bool(self.store.visits.forget(id, name)), self.store.access.owners()
        for one in self.store.campaigns():  # what one campaign knows of somebody, others of the owner have copied
            if owners.get(one.id) == owners.get(id) and (one.config.known_workers or one.id == id):
                with nullcontext() if one.id == id else suppress(GoneError):
                    known = self.run(one.id, lambda commands: forget(commands.state, name)) or known

        def erase(commands: Commands) -> WorkerRow:
            forget(commands.state, name)  # it may have ended since
            return replace(erase_worker(commands, name))

        try:
            self.set_standing(id, name, "blocked")  # what they hold goes to others
            row = self.run(id, erase)
        except NotFoundError:  # they came, or were known, and had no task
            row = WorkerRow(ERASED)
            if not known:
                raise
        self.store.access.revoke_link(id, link_name(self.store.get(LINK_SECRET) or b"", id, name))
        self.worker_reports.forget(id)
        self.store.forget_pages()
        return row

    def drop_labels(self, id: str, worker: str, reason: object = "") -> ChangedLabels:
        """Leave the labels of a worker out of the results; they stay spent."""
        return self._in_steps(id, lambda commands, after: drop_labels(commands, worker, reason, after))

    def restore_labels(self, id: str, worker: str) -> ChangedLabels:
        """Take labels of a worker in again where their tasks have room for them."""
        return self._in_steps(id, lambda commands, after: restore_labels(commands, worker, after))

    def _in_steps(self, id: str, step: Callable[[Commands, int], LabelStep]) -> ChangedLabels:
        """Steps of some hundred labels, with as much time between them for others; one may be repeated."""
        changed = left = 0
        after: int | None = 0
        while after is not None:
            begun, start = time.monotonic(), after
            done = self.run(id, lambda commands: step(commands, start))  # noqa: B023
            changed, left, after = changed + done.changed, left + done.left, done.after
            if after is not None:
                time.sleep(time.monotonic() - begun)
        return ChangedLabels(changed, left)

    def set_gold(self, id: str, answers: Mapping[str, object]) -> int:
        """Make tasks control questions by their known answers; returns how many are new or corrected."""
        return self.run(id, lambda commands: set_gold(commands, answers))

    def adjudicate(self, id: str, answers: Mapping[str, object]) -> int:
        """Set the answers of tasks, which are final; returns how many are new or corrected."""
        return self.run(id, lambda commands: adjudicate(commands, answers))

    def undo_adjudication(self, id: str, tasks: Sequence[str]) -> int:
        """Let the labels decide about tasks again; returns about how many."""
        return self.run(id, lambda commands: undo_adjudication(commands, tasks))

    def accept_clock(self, id: str) -> bool:
        """Go on by the clock although it is far from the campaign's last event; False if it is not."""
        with self.store.transaction(id) as state:
            return accept_time(state, self.table_cache, self.clock())

    def results(self, id: str) -> Iterator[Result]:
        """Every task with what is known of it, in the order in which they came."""
        row, classes = self.store.row(id), self.store.classes(id)
        final = self.guarantees.final(row)
        for tasks in self.task_chunks(id, CHUNK):
            crowd = self.crowd(row)
            yield from results_of(row, classes, tasks, None if crowd is None else crowd.beliefs, final)

    def labels(self, id: str, unanswered: bool = False, dropped: bool = False) -> Iterator[GivenLabel]:
        """Every worker's answer, task by task; with ``unanswered`` also leases without one, with ``dropped`` all."""
        row = self.store.row(id)
        answers, models = row.config.answer_type, row.rules.dropped_models
        for tasks in self.task_chunks(id, TASKS_WITH_LEASES):
            leases = self.store.leases(id, [task.number for task in tasks])
            yield from given_labels(answers, tasks, leases, unanswered, dropped, models)

    def task_chunks(self, id: str, many: int) -> Iterator[list[TaskRow]]:
        """All tasks, so many at a time."""
        after = -1
        while tasks := self.store.tasks(id, after, many, CHUNK_BYTES):
            yield tasks
            after = tasks[-1].number

    def results_of(
        self, row: CampaignRow, classes: Sequence[Prior], tasks: Sequence[TaskRow], patience_s: float | None = None
    ) -> list[Result]:
        """What is known of some tasks."""
        crowd = self.crowd(row, patience_s)
        final = self.guarantees.final(row)
        return results_of(row, classes, tasks, None if crowd is None else crowd.beliefs, final)

    def groups(self, id: str) -> dict[Group, int]:
        """How many tasks but controls are in each state that has any."""
        return self.run(id, lambda commands: dict(commands.state.groups()))

    def audit_items(self, id: str, answers: Mapping[int, int | None]) -> list[AuditItem]:
        """Tasks by number that an expert is asked about, with the answers so far, as they are shown."""
        name, tasks = self.store.row(id).config.answer_type.name_of, self.store.tasks_by_number(id, answers)
        return [
            AuditItem(tasks[task].key, None if said is None else name(said), tasks[task].payload)
            for task, said in answers.items()
        ]

    def crowd(self, row: CampaignRow, patience_s: float | None = None) -> CrowdSnapshot | None:
        """What is believed of tasks and workers, None if the campaign's policy does not tell workers apart."""
        return self.run(row.id, Commands.crowd_snapshot, patience_s) if row.config.knows_workers else None

    def certificate(self, id: str, wait: bool = False) -> Certificate:
        """What the campaign is worth now, and what can come of the labels left; all of it if you ``wait``."""
        return self.certificates.of(id, wait)

    def verify(self, id: str, repair: bool = False, progress: Callable[[float], None] | None = None) -> Verification:
        """Hold everything but the events against them while the campaign goes on; ``repair`` writes what differs."""
        return verify(self.store, id, repair, progress)

    def rebuild(self, id: str, progress: Callable[[float], None] | None = None) -> CampaignRow:
        """Make everything but the events follow from them again."""
        self.verify(id, True, progress)
        return self.store.row(id)

    def refit_in_background(self) -> None:
        """From now on nobody waits while workers and tasks of a campaign are learnt anew (policy ``crowd``)."""
        if self.table_cache.refits is None:
            self.table_cache.refits = BackgroundRefits(self)

    def warm(self, id: str) -> None:
        """Have the policy's tables made in the background."""
        row = self.store.row(id)
        if row.config.knows_workers:
            crowd_compiled()
            if row.tasks:
                self.table_cache.refit_later(id)
        elif row.classes and not row.rules.ranked:
            self.table_cache.prepare(row.config, self.store.classes(id), load_of(row))

    def close(self) -> None:
        """Give back what is held open."""
        self.table_cache.close()
        self.store.close()


def _keep_features(commands: Commands, before: str, added: AddedFeatures, data: bytes) -> bool:
    """Whether nobody else has added features meanwhile."""
    state = commands.state
    if state.row.rules.features != before:
        return False
    if added.hash != before:
        state.source.keep(f"features-{added.hash}", data)
        commands.record("features_added", asdict(added))
        if before:
            state.source.drop(f"features-{before}")
    return True


def _first_tasks(tasks: Iterable[NewTask]) -> tuple[list[NewTask], Iterator[NewTask] | None]:
    """Tasks that are added in one transaction, or so many and an iterator over all others."""
    some: list[NewTask] = []
    rest, size = iter(tasks), 0
    for task in rest:
        some.append(task)
        size += task.size
        if len(some) > AT_ONCE or size > AT_ONCE_SIZE:
            return some, rest
    return some, None


class Audits:
    """The audits of all campaigns of a service."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service, self._store = campaign_service, campaign_service.store

    def draw(self, id: str, items: int, seed: int = 0) -> int:
        """Draw tasks at random for an audit; returns how many are drawn now."""
        return self._service.run(id, lambda commands: draw_audit(commands, items, seed))

    def answer(self, id: str, answers: Mapping[str, object]) -> int:
        """What an expert found of tasks that were drawn; returns how many answers are new or corrected."""
        return self._service.run(id, lambda commands: answer_audit(commands, answers))

    def items(self, id: str) -> list[AuditItem]:
        """The tasks that were drawn, with the answers so far; without what the campaign believes of them."""
        drawn = self._store.row(id).rules.audit
        return self._service.audit_items(id, {task: None if said == NOT_ANSWERED else said for task, said in drawn})
