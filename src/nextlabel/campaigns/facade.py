"""One campaign inside a program: the same rules as over HTTP, without a server.

>>> import nextlabel as nl
>>> campaign = nl.Campaign.create("memory:", tasks=["is a whale a fish?", "is a bat a bird?"], budget=4)
>>> lease = campaign.ask(worker="ann")
>>> if lease:
...     campaign.tell(lease, label=1).status
'labelled'
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from nextlabel.campaign.events import Event
from nextlabel.campaign.replies import Added, Lease, NoTask, Told
from nextlabel.campaign.results import Result
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings, ChangeOptions, SettingOptions
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.service import CampaignService, Clock
from nextlabel.errors import InputError, NotFoundError
from nextlabel.store.open import open_store


class Campaign:
    """A campaign in the store at an address (``store.engine``); several programs and services may use it at once."""

    def __init__(self, campaign_service: CampaignService, id: str) -> None:
        self._service, self.id = campaign_service, id

    @classmethod
    def create(
        cls,
        url: str,
        tasks: Any = (),
        *,
        id: str | None = None,
        clock: Clock = time.time,
        **settings: Unpack[SettingOptions],
    ) -> Self:
        """Create a campaign; ``budget`` is required, the other settings have defaults (``campaign.declaration``).

        ``tasks`` are texts, tables with the keys of ``campaign.intake``, or a data frame with one row per task.
        """
        service = CampaignService(open_store(url), clock)
        try:
            return cls(service, service.create(CampaignSettings.from_dict(settings), id, task_tables(tasks)).id)
        except BaseException:
            service.close()
            raise

    @classmethod
    def open(cls, url: str, id: str | None = None, *, clock: Clock = time.time) -> Self:
        """Open a campaign that exists; without ``id``, the only one."""
        service = CampaignService(open_store(url), clock)
        try:
            if id is None:
                there = service.store.campaigns()
                if len(there) != 1:
                    raise NotFoundError(
                        f"there are {len(there)} campaigns at {url}.",
                        f"Name one of {', '.join(row.id for row in there)}." if there else "Create one first.",
                    )
                id = there[0].id
            service.store.row(id)
        except BaseException:
            service.close()
            raise
        return cls(service, id)

    def add_tasks(self, tasks: Any, batch: str | None = None) -> Added:
        """Add tasks, all of them or none; a ``batch`` that was added before is not added again."""
        return self._service.add_tasks(self.id, task_tables(tasks), batch)

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why there is none; ``if lease:`` tells them apart."""
        return self._service.ask(self.id, worker)

    def tell(self, lease: Lease | str, label: object) -> Told:
        """Record the worker's answer to a lease."""
        return self._service.tell(lease_id_of(lease), label)

    def release(self, lease: Lease | str) -> Told:
        """The worker passes the task on; it does not come back to the same worker."""
        return self._service.release(lease_id_of(lease))

    def renew(self, lease: Lease | str) -> Told:
        """Give the worker more time."""
        return self._service.renew(lease_id_of(lease))

    def undo(self, lease: Lease | str) -> Told:
        """Take the worker's answer back."""
        return self._service.undo(lease_id_of(lease))

    def pause(self) -> CampaignRow:
        """Hand out no tasks until ``resume``."""
        return self._service.pause(self.id)

    def resume(self) -> CampaignRow:
        """Hand out tasks again."""
        return self._service.resume(self.id)

    def change(self, **values: Unpack[ChangeOptions]) -> CampaignRow:
        """Change ``budget``, ``deadline`` or ``lease_seconds``; None removes the last two."""
        return self._service.change(self.id, values)

    @property
    def status(self) -> CampaignRow:
        """State, settings and counters."""
        return self._service.store.row(self.id)

    def results(self) -> Iterator[Result]:
        """Every task with its most likely label."""
        return self._service.results(self.id)

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """The log, from the event after number ``after`` on."""
        return self._service.store.events(self.id, after, limit)

    def certificate(self) -> Certificate:
        """Expected accuracy now, and the most that any policy can reach with the labels left."""
        return self._service.certificate(self.id)

    def rebuild(self) -> CampaignRow:
        """Replay the log: everything but the events is made anew from them."""
        return self._service.rebuild(self.id)

    def close(self) -> None:
        """Close the store."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lease_id_of(lease: Lease | str) -> str:
    """The id of a lease, which may be given itself."""
    if isinstance(lease, Lease):
        return lease.id
    if not isinstance(lease, str):
        raise InputError(
            f"{lease!r} is not a lease.",
            "Give the lease that ask returned, or its id.",
        )
    return lease


def task_tables(tasks: Any) -> Iterable[Any]:
    """One text or table per task; data frames of pandas and polars are read row by row."""
    if hasattr(tasks, "to_dicts"):  # polars
        rows: Iterable[Any] = tasks.to_dicts()
        return rows
    if hasattr(tasks, "to_dict") and hasattr(tasks, "columns"):  # pandas, with None for what is missing
        plain = tasks.astype(object)
        rows = plain.where(plain.notna(), None).to_dict("records")
        return rows
    if isinstance(tasks, str | bytes | Mapping) or not isinstance(tasks, Iterable):
        raise InputError(
            f"tasks are given as {type(tasks).__name__}.",
            "Give a list of texts or tables, or a data frame with one row per task.",
        )
    return tasks
