"""Campaigns inside a program: ``CampaignService`` has those of one store, ``Campaign`` is one of them.

The rules are the same as over HTTP, without a server:

>>> import nextlabel as nl
>>> campaign = nl.Campaign.create("memory:", tasks=["is a whale a fish?", "is a bat a bird?"], budget=4)
>>> lease = campaign.ask(worker="ann")
>>> if lease:
...     campaign.tell(lease, label=1).status
'labelled'
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any, Final, NamedTuple, Self, TypeVar, Unpack

from nextlabel.application.certificate import Certificate, Certificates
from nextlabel.application.deletions import Deletions
from nextlabel.application.frames import labels_frame, results_frame
from nextlabel.application.guarantees import (
    GuaranteeStatus,
    final_answers,
    guarantee_record,
    guarantee_status,
    live_guarantee,
)
from nextlabel.application.imports import Imports, ImportStatus, Progress, imports_of
from nextlabel.application.predictions import add_predictions
from nextlabel.application.refits import BackgroundRefits
from nextlabel.application.status import CampaignStatus, status_of
from nextlabel.application.table_cache import TableCache, crowd_compiled
from nextlabel.application.visits import PlatformVisits
from nextlabel.application.webhooks import Webhooks
from nextlabel.application.worker_reports import WorkerReport, WorkerReports, report_of
from nextlabel.campaign import guarantee as live
from nextlabel.campaign import known_answers
from nextlabel.campaign.commands import Commands, accept_time, check_deadline, checked_worker, known_worker
from nextlabel.campaign.crowd_model import CrowdSnapshot
from nextlabel.campaign.declaration import ChangeOptions, SettingOptions, spells_settings
from nextlabel.campaign.events import Event
from nextlabel.campaign.external_answers import Skipped, follow_answer
from nextlabel.campaign.intake import add_tasks
from nextlabel.campaign.new_tasks import NewTask, paired, read_tasks, row_tables, task_tables
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
    lease_id_of,
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
from nextlabel.campaign.webhooks import Webhook
from nextlabel.campaign.worker_commands import LabelStep, drop_labels, erase_worker, restore_labels, set_standing
from nextlabel.errors import BusyError, ConflictError, GoneError, NotFoundError, TablesPendingError
from nextlabel.files.features import read_features
from nextlabel.files.frames import Library
from nextlabel.model.prior import Prior
from nextlabel.policies.allocation import Group
from nextlabel.store.records import kept_name
from nextlabel.store.sql import SqlStore, open_store
from nextlabel.store.verify import Verification, verify
from nextlabel.wording import without_passwords

T = TypeVar("T")

#: Rows that are read at once, and bytes of their payloads.
CHUNK, CHUNK_BYTES = 10_000, 16 << 20
#: Events that are read at once.
PAGE = 1_000

#: Tasks whose leases are read at once.
TASKS_WITH_LEASES = 1_000

#: The batch of the tasks that a campaign is created with.
FIRST_BATCH = "create"

#: Seconds that a request which only reads waits for what is still computed.
READ_PATIENCE_S = 20.0

#: Tasks, and characters of their payloads, that are added in one transaction; more of them are imported in steps.
AT_ONCE, AT_ONCE_SIZE = 2000, 1 << 21
Clock = Callable[[], float]


class Created(NamedTuple):
    """The id of a campaign, and what became of its first tasks."""

    id: str
    added: Added


class CampaignService:
    """Commands by campaign; ``clock`` gives seconds since 1970, and is the store's if there is none."""

    def __init__(self, store: SqlStore, clock: Clock | None = None, table_cache: TableCache | None = None) -> None:
        self.store, self.clock = store, clock if clock is not None else store.clock
        self.table_cache = table_cache if table_cache is not None else TableCache(store)
        self.certificates = Certificates(self)
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
    ) -> Created:
        """A new campaign with its first tasks, or nothing; the same id with the same settings is the same campaign."""
        name = new_campaign_id() if id is None else checked_campaign_id(id)
        if config.deadline is not None and not (id is not None and self._has_campaign(name)):
            check_deadline(config.deadline, self.clock())
        some, more = _first_tasks(paired(config, read_tasks(config, tasks), ()))
        if owner and not self.store.records.claim(name, owner):
            raise ConflictError(f"there is a campaign {name!r} already.", "Choose another id.")
        try:
            if more is None:
                with self.store.create(name, config, self.clock()) as state:
                    commands = Commands(state, self.table_cache, state.row.created_at)
                    commands.begin()
                    added = add_tasks(commands, some, FIRST_BATCH)
            elif self._has_campaign(name):
                raise ConflictError(f"there is a campaign {name!r} already.", "Choose another id.")
            elif self.store.records.deleted_at(name) is not None:
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
            known = self._known(config, self.store.records.owner(name))
            self.run(name, lambda commands: add_known(commands.state, known))
        self.warm(name)
        return Created(name, added)

    def _known(self, config: CampaignSettings, owner: str) -> Profiles:
        """What ended campaigns of an owner with the same labels have taught about workers."""
        owners = self.store.records.owners()
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

    def __getitem__(self, id: str) -> Campaign:
        """The campaign with this id, or the one that the lease with this id is of."""
        return Campaign(self, campaign_of(id))

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
        """Tasks as tables (``campaign.new_tasks``), or checked ones, all or none; many keep nobody else waiting."""
        there, config = (task.payload for tasks in self.task_chunks(id) for task in tasks), self.store.row(id).config
        some, more = _first_tasks(paired(config, read_tasks(config, tasks), there))
        added = self._add(id, some, more, batch, progress)
        self.warm(id)
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

    def delete(self, id: str, progress: Callable[[float], None] | None = None) -> int:
        """Delete a campaign with its tasks, labels, log and links, for good; returns how many rows were removed."""
        self.deletions.begin(id)
        return self.deletions.finish(progress)

    def task_chunks(self, id: str, many: int = CHUNK) -> Iterator[list[TaskRow]]:
        """All tasks, so many at a time."""
        after = -1
        while tasks := self.store.tasks(id, after, many, CHUNK_BYTES):
            yield tasks
            after = tasks[-1].number

    def keys(self, id: str) -> list[str]:
        """The ids of all tasks in their order."""
        return [task.key for tasks in self.task_chunks(id) for task in tasks]

    def results_of(
        self, row: CampaignRow, classes: Sequence[Prior], tasks: Sequence[TaskRow], patience_s: float | None = None
    ) -> list[Result]:
        """What is known of some tasks."""
        crowd = self.crowd(row, patience_s)
        final = final_answers(self, row)
        return results_of(row, classes, tasks, None if crowd is None else crowd.beliefs, final)

    def groups(self, id: str) -> dict[Group, int]:
        """How many tasks but controls are in each state that has any."""
        return self.run(id, lambda commands: dict(commands.state.groups()))

    def crowd(self, row: CampaignRow, patience_s: float | None = None) -> CrowdSnapshot | None:
        """What is believed of tasks and workers, None if the campaign's policy does not tell workers apart."""
        return self.run(row.id, Commands.crowd_snapshot, patience_s) if row.config.knows_workers else None

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
        elif row.classes and not row.ranked:
            self.table_cache.prepare(row.config, self.store.classes(id), load_of(row))

    def close(self) -> None:
        """Give back what is held open."""
        self.table_cache.close()
        self.store.close()


class Campaign:
    """A campaign in the store at an address (``store.engine``); several programs and services may use it at once."""

    def __init__(self, campaign_service: CampaignService, id: str) -> None:
        self._service, self.id = campaign_service, id

    @classmethod
    @spells_settings()
    def create(
        cls,
        url: str,
        tasks: Any = (),
        *,
        id: str | None = None,
        clock: Clock | None = None,
        score_column: str | None = None,
        **settings: Unpack[SettingOptions],
    ) -> Self:
        """Create a campaign; ``budget`` is required, the other settings have defaults (``campaign.declaration``).

        ``tasks`` are texts, tables with the keys of ``campaign.new_tasks``, or a data frame with one row per task;
        its column ``score_column`` has a model's scores to start from.
        """
        with ExitStack() as ends:
            service = CampaignService(open_store(url), clock)
            ends.callback(service.close)
            config = CampaignSettings.from_dict(settings)
            made = cls(service, service.create(config, id, task_tables(tasks, score_column)).id)
            ends.pop_all()
        return made

    @classmethod
    def open(cls, url: str, id: str | None = None, *, clock: Clock | None = None) -> Self:
        """Open a campaign that exists; without ``id``, the only one."""
        with ExitStack() as ends:
            service = CampaignService(open_store(url, create=False), clock)
            ends.callback(service.close)
            there = service.store.campaigns() if id is None else [service.store.row(id)]
            if len(there) != 1:
                raise NotFoundError(
                    f"there are {len(there)} campaigns at {without_passwords(url)}.",
                    f"Name one of {', '.join(row.id for row in there)}." if there else "Create one first.",
                )
            ends.pop_all()
        return cls(service, there[0].id)

    def add_tasks(self, tasks: Any, *, score_column: str | None = None, key: str = "") -> Added:
        """Add tasks, all of them or none; tasks that were added under the same ``key`` are not added again."""
        return self._service.add_tasks(self.id, task_tables(tasks, score_column), key or None)

    def add_predictions(self, model: str, predictions: Any, *, cost: float = 0.0) -> AddedPredictions:
        """Add what a model predicts as labels of worker ``model:NAME``: tables with task and label or probabilities.

        ``cost`` is what one prediction costs in labels of the budget.
        """
        return add_predictions(self._service, self.id, model, row_tables(predictions), cost)

    def add_features(self, features: Any, *, replace: bool = False) -> AddedFeatures:
        """Add what is known of items beside their labels, in a form of ``files.features``: labels then teach more.

        Items may come later than their features, and some may have none. An item's features may be given anew; all
        have the same columns, unless ``replace`` takes away those that are there.
        """
        row = self._row()
        if not row.config.learns_from_features:
            noun = row.config.answer_type.noun
            what = f"asks for {noun}" if noun else f"has the policy {row.config.policy!r}"
            raise ConflictError(
                f"campaign {self.id!r} {what}, which does not learn from features.",
                "Use a campaign for labels or ratings with the policy crowd, which is the default.",
            )
        keys = self._service.keys(self.id)
        read = read_features(features, keys)
        while True:
            before, all_of_them = self._row().features, read
            old = self._service.store.get(kept_name(self.id, f"features-{before}")) if before and not replace else None
            if old is not None:
                all_of_them = read.then(read_features(old))
            data = all_of_them.dump()
            added = AddedFeatures(
                len(read), int((read.rows_of(keys) >= 0).sum()), read.numbers.shape[1], len(read.texts),
                sha256(data).hexdigest()[:32],
            )  # fmt: skip
            if self._run(partial(_keep_features, before=before, added=added, data=data)):
                return added

    def imports(self) -> list[ImportStatus]:
        """The last imports of many tasks, and how far each has got."""
        self._row()  # a campaign that is not there has none
        return imports_of(self._service.store, self.id)

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why there is none; ``if lease:`` tells them apart."""
        return self._run(lambda commands: commands.ask(worker))

    def tell(self, lease: Lease | str, label: object, comment: str | None = None) -> Receipt:
        """Record the worker's answer to a lease, and a comment on the task if there is one."""
        return self._on_lease(lease, lambda commands, id: commands.tell(id, label, comment=comment))

    def release(self, lease: Lease | str, comment: str | None = None) -> Receipt:
        """The worker passes the task on, perhaps with a comment; it does not come back to the same worker."""
        return self._on_lease(lease, lambda commands, id: commands.release(id, comment=comment))

    def renew(self, lease: Lease | str) -> Receipt:
        """Give the worker more time."""
        return self._on_lease(lease, Commands.renew)

    def undo(self, lease: Lease | str) -> Receipt:
        """Take the worker's answer back."""
        return self._on_lease(lease, Commands.undo)

    def set_answer(self, worker: str, task: str, answer: object | Skipped | None) -> Receipt | None:
        """Make a worker's answer to a task what another tool says it is, with or without a lease.

        ``None``: the tool has no answer (any more); ``Skipped()``: the worker passed the task on.
        """
        return self._run(lambda commands: follow_answer(commands, task, worker, answer))

    def pause(self) -> CampaignStatus:
        """Hand out no tasks until ``resume``."""
        self._run(Commands.pause)
        return self.status()

    def resume(self) -> CampaignStatus:
        """Hand out tasks again."""
        self._run(Commands.resume)
        return self.status()

    @spells_settings(changing=True)
    def change(self, **values: Unpack[ChangeOptions]) -> CampaignStatus:
        """Change settings that may change (``campaign.declaration``); None removes those that need not be there."""
        self._run(lambda commands: commands.change(**values))
        return self.status()

    def delete(self) -> None:
        """Delete the campaign with its tasks, labels, log and links, for good; its id is not given out again."""
        self._service.delete(self.id)

    def workers(self) -> list[WorkerReport]:
        """What each worker did, is owed and is worth, those with the most labels first."""
        return self._service.worker_reports.of(self.id)

    def agreement(self) -> dict[str, Any]:
        """Krippendorff's alpha, Fleiss' and Cohen's kappa of the labels that count, with 95% intervals."""
        found = self._service.worker_reports.learnt(self.id).agreement
        return {} if found is None else found.as_dict()

    def order(self) -> dict[str, Any]:
        """The ``items`` of a campaign for pairs, the best first: item, rank, score, its sd, comparisons."""
        if self._row().config.answer != "pair":
            raise ConflictError(f"campaign {self.id!r} does not compare items.", "Ask for its results.")
        pairs = self._run(Commands.crowd_snapshot).pairs
        return {} if pairs is None else {"items": list(pairs.tasks()), "discordant": pairs.discordant()}

    def set_standing(self, worker: str, standing: Standing, reason: str = "") -> WorkerReport:
        """Pause, block or restore (``active``) a worker; a blocked worker's item goes to others."""

        def run(commands: Commands) -> WorkerRow:
            set_standing(commands, worker, standing, reason)
            return replace(known_worker(commands, worker))

        return report_of(self._run(run), self._row().config.pay_per_label)

    def pause_worker(self, worker: str, reason: str = "") -> WorkerReport:
        """Give this worker no new task until ``restore_worker``; an item that they hold is theirs to finish."""
        return self.set_standing(worker, "paused", reason)

    def block_worker(self, worker: str, reason: str = "") -> WorkerReport:
        """Give this worker no task, take back what they hold, and count no answer that still comes."""
        return self.set_standing(worker, "blocked", reason)

    def restore_worker(self, worker: str) -> WorkerReport:
        """Give a worker who was paused or blocked tasks again."""
        return self.set_standing(worker, "active")

    def erase_worker(self, worker: str) -> WorkerReport:
        """Erase a person's name, comments, visits and links for good; their labels stay, under the name returned."""
        service, name, config = self._service, checked_worker(worker), self._row().config
        known, owners = bool(service.store.records.forget_visits(self.id, name)), service.store.records.owners()
        for one in service.store.campaigns():  # what one campaign knows of somebody, others of the owner have copied
            if owners.get(one.id) == owners.get(self.id) and (one.config.known_workers or one.id == self.id):
                with nullcontext() if one.id == self.id else suppress(GoneError):
                    known = service.run(one.id, lambda commands: forget(commands.state, name)) or known

        def erase(commands: Commands) -> WorkerRow:
            forget(commands.state, name)  # it may have ended since
            return replace(erase_worker(commands, name))

        try:
            self.block_worker(name)  # what they hold goes to others
            row = self._run(erase)
        except NotFoundError:  # they came, or were known, and had no task
            row = WorkerRow(ERASED)
            if not known:
                raise
        secret = service.store.get(LINK_SECRET) or b""
        service.store.records.revoke_link(self.id, link_name(secret, self.id, name))
        service.worker_reports.forget(self.id)
        service.store.forget_pages()
        return report_of(row, config.pay_per_label)

    def worker_record(self, worker: str) -> dict[str, Any]:
        """All that is kept about a person in this campaign: tallies, visits, and every label with its comment."""
        return self._service.worker_reports.record(self.id, worker)

    def drop_labels(self, worker: str, reason: str = "") -> ChangedLabels:
        """Leave the labels of a worker out of the results; they stay spent, and their tasks may get others."""
        return self._in_steps(lambda commands, after: drop_labels(commands, worker, reason, after))

    def restore_labels(self, worker: str) -> ChangedLabels:
        """Take dropped labels in again, where their tasks have room for them."""
        return self._in_steps(lambda commands, after: restore_labels(commands, worker, after))

    def set_gold(self, answers: Mapping[str, object]) -> int:
        """Known answers by the ids of tasks, which are control questions from now on; how many are new or corrected."""
        return self._run(lambda commands: known_answers.set_gold(commands, answers))

    def adjudicate(self, answers: Mapping[str, object]) -> int:
        """Set the answers of tasks by their ids: final, known to the model, marked in the results; how many are new."""
        return self._run(lambda commands: known_answers.adjudicate(commands, answers))

    def undo_adjudication(self, tasks: Sequence[str]) -> int:
        """Let the labels decide about tasks again."""
        return self._run(lambda commands: known_answers.undo_adjudication(commands, tasks))

    def freeze(self, audits: int | Sequence[int] | None = None, of: str | None = None) -> GuaranteeStatus:
        """Freeze the labels and draw items for an expert, for at most ``at_most_wrong`` wrong labels.

        Several growing numbers of ``audits`` plan several looks; ``of`` limits the statement to items with that label,
        or of several questions to that one.
        """
        keys = self._service.keys(self.id)
        self._run(lambda commands: live.freeze(commands, keys, audits, of))
        return self.guarantee()

    def next_look(self) -> GuaranteeStatus:
        """Draw the items of the next look, if several were planned."""
        keys = self._service.keys(self.id)
        self._run(lambda commands: live.next_look(commands, keys))
        return self.guarantee()

    def guarantee(self) -> GuaranteeStatus:
        """How far the guarantee is, and its sentence."""
        return guarantee_status(self._service, self._row())

    def guarantee_items(self) -> list[AuditItem]:
        """The items that the expert was asked for so far, with the answers."""
        found = live_guarantee(self._service, self._row())
        return [] if found is None else self._items({one: found.answers.get(one) for one in found.queue})

    def answer_guarantee(self, answers: Mapping[str, object]) -> int:
        """The expert's answers by the ids of the items that are asked for."""
        keys = self._service.keys(self.id)
        return self._run(lambda commands: live.answer(commands, keys, answers))

    def reopen_labels(self) -> GuaranteeStatus:
        """Let labels decide again, which voids the certificate."""
        self._run(live.reopen)
        return self.guarantee()

    def guarantee_record(self) -> dict[str, Any]:
        """Frozen labels, draw and answers, with which anybody can check the certificate."""
        return guarantee_record(self._service, self.id).record()

    def draw_audit(self, items: int, seed: int = 0) -> list[AuditItem]:
        """Draw tasks at random for an expert; all that are drawn so far."""
        self._run(lambda commands: known_answers.draw_audit(commands, items, seed))
        return self.audit_items()

    def answer_audit(self, answers: Mapping[str, object]) -> int:
        """The expert's answers by the ids of drawn tasks; the certificate follows them."""
        return self._run(lambda commands: known_answers.answer_audit(commands, answers))

    def audit_items(self) -> list[AuditItem]:
        """The tasks that were drawn for an audit, with the answers so far."""
        drawn = self._row().audit
        return self._items({task: None if said == NOT_ANSWERED else said for task, said in drawn})

    def accept_clock(self) -> bool:
        """Accept the clock's time although it is far from the last event (``ClockError``); False if it is not."""
        with self._service.store.transaction(self.id) as state:
            return accept_time(state, self._service.table_cache, self._service.clock())

    def status(self) -> CampaignStatus:
        """State, settings and counters."""
        return status_of(self._row())

    def results(self) -> Iterator[Result]:
        """Every task with its most likely label."""
        row, classes = self._row(), self._service.store.classes(self.id)
        final = final_answers(self._service, row)
        for tasks in self._service.task_chunks(self.id):
            crowd = self._service.crowd(row)
            yield from results_of(row, classes, tasks, None if crowd is None else crowd.beliefs, final)

    def labels(self, *, unanswered: bool = False, dropped: bool = False) -> Iterator[GivenLabel]:
        """Every worker's answer, one by one; also leases without one, and labels that were dropped, if asked for."""
        row, store = self._row(), self._service.store
        answers, models = row.config.answer_type, row.dropped_models
        for tasks in self._service.task_chunks(self.id, TASKS_WITH_LEASES):
            leases = store.leases(self.id, [task.number for task in tasks])
            yield from given_labels(answers, tasks, leases, unanswered, dropped, models)

    def results_frame(self, library: Library = "pandas") -> Any:
        """The results as a data frame of pandas or Polars, with the columns that the tasks came with."""
        return results_frame(self._service, self.id, library)

    def labels_frame(self, library: Library = "pandas", *, unanswered: bool = False, dropped: bool = False) -> Any:
        """The labels as a data frame in crowd-kit's columns (``task``, ``worker``, ``label``) and ours after them."""
        return labels_frame(self.labels(unanswered=unanswered, dropped=dropped), library)

    def events(self, after: int = 0) -> Iterator[Event]:
        """The log, from the event after number ``after`` on."""
        while page := self._service.store.events(self.id, after, PAGE):
            yield from page
            after = page[-1].seq

    def certificate(self, *, wait: bool = False) -> Certificate:
        """Expected accuracy now, forecast, and the most that any policy can be expected to reach.

        The last one is worked out in the background; with ``wait`` all is by the labels that are there now.
        """
        return self._service.certificates.of(self.id, wait)

    def webhooks(self) -> list[Webhook]:
        """The addresses that are told what happens, and how far each has got."""
        return Webhooks(self._service.store).of(self.id)

    def enable_webhook(self, id: str) -> Webhook:
        """Go on with a webhook that was disabled, or try one that fails at once; it is told all that it has missed."""
        return Webhooks(self._service.store).enable(self.id, id)

    def remove_webhook(self, id: str) -> None:
        """Send an address no more messages."""
        Webhooks(self._service.store).remove(self.id, id)

    def verify(self, *, repair: bool = False) -> Verification:
        """Replay the log beside the campaign, and report the rows that do not follow from it; or write them anew."""
        return verify(self._service.store, self.id, repair)

    def rebuild(self) -> CampaignStatus:
        """Replay the log, and write anew whatever does not follow from it."""
        self.verify(repair=True)
        return self.status()

    def close(self) -> None:
        """Close the store."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _row(self) -> CampaignRow:
        return self._service.store.row(self.id)

    def _run(self, command: Callable[[Commands], T]) -> T:
        return self._service.run(self.id, command)

    def _on_lease(self, lease: Lease | str, command: Callable[[Commands, str], Receipt]) -> Receipt:
        id = lease_id_of(lease)
        return self._service.run(campaign_of(id), lambda commands: command(commands, id))

    def _in_steps(self, step: Callable[[Commands, int], LabelStep]) -> ChangedLabels:
        """Steps of some hundred labels, with as much time between them for others; one may be repeated."""
        changed = left = 0
        after: int | None = 0
        while after is not None:
            begun, start = time.monotonic(), after
            done = self._run(lambda commands: step(commands, start))  # noqa: B023
            changed, left, after = changed + done.changed, left + done.left, done.after
            if after is not None:
                time.sleep(time.monotonic() - begun)
        return ChangedLabels(changed, left)

    def _items(self, answers: Mapping[int, int | None]) -> list[AuditItem]:
        """Tasks by number that an expert is asked about, with the answers so far, as they are shown."""
        name, tasks = self._row().config.answer_type.name_of, self._service.store.tasks_by_number(self.id, answers)
        return [
            AuditItem(tasks[task].key, None if said is None else name(said), tasks[task].payload)
            for task, said in answers.items()
        ]


#: How methods of a campaign are called over HTTP: routes of the service and calls of the clients are made from it.
REQUESTS: Final[dict[Callable[..., Any], str]] = {
    Campaign.pause: "POST /campaigns/{campaign}/pause",
    Campaign.resume: "POST /campaigns/{campaign}/resume",
    Campaign.set_gold: "POST /campaigns/{campaign}/gold",
    Campaign.adjudicate: "POST /campaigns/{campaign}/adjudicate",
    Campaign.undo_adjudication: "POST /campaigns/{campaign}/adjudicate/undo",
    Campaign.imports: "GET /campaigns/{campaign}/imports",
    Campaign.audit_items: "GET /campaigns/{campaign}/audit",
    Campaign.draw_audit: "POST /campaigns/{campaign}/audit/draw",
    Campaign.answer_audit: "POST /campaigns/{campaign}/audit/answers",
    Campaign.guarantee: "GET /campaigns/{campaign}/guarantee",
    Campaign.freeze: "POST /campaigns/{campaign}/guarantee/freeze",
    Campaign.next_look: "POST /campaigns/{campaign}/guarantee/look",
    Campaign.guarantee_items: "GET /campaigns/{campaign}/guarantee/items",
    Campaign.guarantee_record: "GET /campaigns/{campaign}/guarantee/record",
    Campaign.answer_guarantee: "POST /campaigns/{campaign}/guarantee/answers",
    Campaign.reopen_labels: "POST /campaigns/{campaign}/guarantee/reopen",
    Campaign.order: "GET /campaigns/{campaign}/order",
    Campaign.agreement: "GET /campaigns/{campaign}/workers/agreement",
    Campaign.set_standing: "POST /campaigns/{campaign}/workers/standing",
    Campaign.erase_worker: "POST /campaigns/{campaign}/workers/erase",
    Campaign.worker_record: "POST /campaigns/{campaign}/workers/record",
    Campaign.drop_labels: "POST /campaigns/{campaign}/workers/drop-labels",
    Campaign.restore_labels: "POST /campaigns/{campaign}/workers/restore-labels",
    Campaign.webhooks: "GET /campaigns/{campaign}/webhooks",
    Campaign.remove_webhook: "DELETE /campaigns/{campaign}/webhooks/{id}",
    Campaign.enable_webhook: "POST /campaigns/{campaign}/webhooks/{id}/enable",
}


def _keep_features(commands: Commands, before: str, added: AddedFeatures, data: bytes) -> bool:
    """Whether nobody else has added features meanwhile."""
    state = commands.state
    if state.row.features != before:
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
