"""What a store must offer, in words: one campaign inside one transaction.

Whoever holds a ledger has the campaign for itself until the transaction ends: no other process or thread sees half of
what it does or changes anything meanwhile. Leaving the transaction without an error makes all of it durable at once;
with an error none of it happened. Reads see the writes made before them.

No method may look at all tasks but ``all_tasks`` and ``rescore``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.access import AccessRecords
from nextlabel.campaign.deletions import DeletionRecords
from nextlabel.campaign.events import Event
from nextlabel.campaign.imports import ImportRecords
from nextlabel.campaign.needs import Need
from nextlabel.campaign.overview import Overview
from nextlabel.campaign.rows import BatchRow, CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.visits import VisitRecords
from nextlabel.problem.state import TaskState

if TYPE_CHECKING:
    from nextlabel.campaign.crowd_model import CrowdModel
    from nextlabel.campaign.verification import Verification
from nextlabel.campaign.webhooks import WebhookRecords


class Ledger(Protocol):
    """One campaign inside one transaction."""

    #: What this process knows of the campaign's crowd, up to some event; lost if the transaction fails after it moved.
    crowd: CrowdModel | None

    @property
    def row(self) -> CampaignRow:
        """The campaign; what is changed on it is written at the end of the transaction."""
        ...

    def append(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """The next event of the log."""
        ...

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number, those of this transaction included; those that added tasks without their data."""
        ...

    def last_event(self, kind: str) -> int | None:
        """The number of the last event of a kind."""
        ...

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The class of each task from number ``first`` to before ``end``."""
        ...

    def classes(self) -> Sequence[Prior]:
        """The different priors of the campaign's tasks, in the order in which they came."""
        ...

    def add_classes(self, priors: Sequence[Prior]) -> None:
        """More priors."""
        ...

    def batch(self, key: str) -> BatchRow | None:
        """A batch, None if none of that name was taken in."""
        ...

    def save_batch(self, key: str, batch: BatchRow) -> None:
        """Remember a batch."""
        ...

    def add_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks, with nothing in flight."""
        ...

    def add_hidden_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks that no other method returns or counts before ``publish_hidden_tasks``."""
        ...

    def publish_hidden_tasks(self, counts: dict[Group, int]) -> None:
        """All hidden tasks are there from now on, so many in each group; a short step, however many they are."""
        ...

    def importing(self) -> bool:
        """Whether an import of tasks has begun and not ended (``campaign.imports``)."""
        ...

    def task(self, number: int) -> TaskRow:
        """A task by number."""
        ...

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        ...

    def all_tasks(self) -> Iterator[TaskRow]:
        """Every task in the order of numbers."""
        ...

    def move(self, task: TaskRow, state: TaskState, score: float | None) -> None:
        """Put a task into another state; the row's other fields are written as they are."""
        ...

    def rescore(
        self, score: Callable[[Sequence[TaskRow]], Sequence[float | None]], first: int = 0, until: int | None = None
    ) -> None:
        """Give every task its score, or those from number ``first`` to the one before ``until``."""
        ...

    def groups(self) -> dict[Group, int]:
        """How many tasks are in each state that has any; not to be changed by the caller."""
        ...

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """Of the group's tasks that the worker never held: the first at place ``start`` or later, else the first."""
        ...

    def begin_search(self) -> None:
        """A new ask: ``pick`` and ``best`` may examine some tasks for it, however many there are, and give up then."""
        ...

    def search_ended(self) -> bool:
        """Whether the ask's search has looked at everything; if not, the worker's next ask carries on with it."""
        ...

    def held_all(self, worker: str) -> bool:
        """Whether the worker is known to have held every task; False if that is not known."""
        ...

    def best(self, worker: str) -> TaskRow | None:
        """Of the tasks with a score that the worker never held: the one with the largest, then the largest place."""
        ...

    def any_score(self) -> bool:
        """Whether some task has a score, that is, may have another label now (priors of their own only)."""
        ...

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        ...

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        ...

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by id."""
        ...

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out, oldest first."""
        ...

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases that are out although their time is over, those that expired first first."""
        ...

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        ...

    def shorten_leases(self, given: float, until: float) -> None:
        """No lease expires after ``until``, and those that are out were given at ``given`` at the latest."""
        ...

    def set_gold(self, answers: Sequence[tuple[int, int]]) -> None:
        """Tasks (by number, perhaps hidden) with the answers that are known: no other method picks or groups them."""
        ...

    def pick_control(self, worker: str, start: float) -> TaskRow | None:
        """Of the tasks with a known answer that the worker never held: the first at place ``start`` or later."""
        ...

    def labels_of(self, worker: str, dropped: bool, after: int, limit: int) -> list[LeaseRow]:
        """The worker's leases with bought labels, dropped ones or others, given out after event ``after``."""
        ...

    def find_worker(self, worker: str) -> WorkerRow | None:
        """The tally of a worker who has had a task, else None; not to be changed."""
        ...

    def worker(self, worker: str) -> WorkerRow:
        """A worker's tally (zeros for a new one); what is changed on it is written at the end of the transaction."""
        ...


class Store(Protocol):
    """Campaigns somewhere safe."""

    @property
    def access(self) -> AccessRecords:
        """Who may use the store."""
        ...

    @property
    def visits(self) -> VisitRecords:
        """Visits of workers whom a platform sends."""
        ...

    @property
    def imports(self) -> ImportRecords:
        """Imports of tasks that are under way, and the last ones that have ended."""
        ...

    @property
    def deletions(self) -> DeletionRecords:
        """Campaigns that were deleted."""
        ...

    @property
    def webhooks(self) -> WebhookRecords:
        """Addresses that are told what happens in campaigns."""
        ...

    @property
    def overview(self) -> Overview:
        """Small reads for a requester."""
        ...

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since 1970 by the clock of the database, or by this machine's where it has none."""
        ...

    def create(self, id: str, config: CampaignSettings, now: float) -> AbstractContextManager[Ledger]:
        """A new campaign without events; ConflictError if the id is taken, or was by one that is deleted."""
        ...

    def transaction(self, id: str) -> AbstractContextManager[Ledger]:
        """The campaign, locked; NotFoundError if there is none, GoneError if it was deleted."""
        ...

    def transactions(self, needs: Mapping[str, Sequence[Need]]) -> AbstractContextManager[Mapping[str, Ledger]]:
        """Campaigns by id, locked together, with what their commands need read at once; one transaction for all.

        Of several campaigns, those that are not there or that somebody else has locked just now are left out, so that
        nobody waits for them; one alone is waited for, or a NotFoundError.
        """
        ...

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, newest first."""
        ...

    def row(self, id: str) -> CampaignRow:
        """A campaign as it stands; NotFoundError if there is none."""
        ...

    def events(self, id: str, after: int = 0, limit: int = 1000, max_bytes: int | None = None) -> list[Event]:
        """Events with a number above ``after``: at most ``limit``, and no more after ``max_bytes`` of data."""
        ...

    def light_log(self, id: str, after: int, limit: int) -> list[Event]:
        """Events above a number; those that added tasks without their data."""
        ...

    def last_event(self, id: str, kind: str) -> int | None:
        """The number of the last event of a kind."""
        ...

    def task_classes(self, id: str, first: int, end: int) -> Sequence[int]:
        """The class of each task from number ``first`` to before ``end``."""
        ...

    def verify(self, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
        """Hold every row of a campaign against its events; with ``repair``, write what they say where it differs."""
        ...

    def tasks(self, id: str, after: int = -1, limit: int = 1000, max_bytes: int | None = None) -> list[TaskRow]:
        """Tasks with a number above ``after``: at most ``limit``, and no more after ``max_bytes`` of payloads."""
        ...

    def tasks_by_key(self, id: str, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        ...

    def groups(self, id: str) -> dict[Group, int]:
        """How many tasks are in each state that has any."""
        ...

    def classes(self, id: str) -> Sequence[Prior]:
        """The different priors of the campaign's tasks."""
        ...

    def leases(self, id: str, tasks: Iterable[int]) -> list[LeaseRow]:
        """All leases of some tasks, in the order in which they were given out."""
        ...

    def workers(self, id: str, limit: int = 1000) -> list[WorkerRow]:
        """Workers with most labels first."""
        ...

    def load_table(self, name: str) -> bytes | None:
        """A table solved before (``campaigns.stored_tables``)."""
        ...

    def save_table(self, name: str, data: bytes) -> None:
        """Store a table, unless it is there."""
        ...

    def setting(self, name: str) -> str | None:
        """A setting of the whole store."""
        ...

    def first_setting(self, name: str, value: str) -> bool:
        """Set what was never set; False if another process was first."""
        ...

    def change_setting(self, name: str, value: str) -> None:
        """Set or replace a setting."""
        ...

    def ping(self) -> None:
        """Raise if the store does not answer."""
        ...

    def close(self) -> None:
        """Give back what the store holds open."""
        ...
