"""One campaign inside a program: the same rules as over HTTP, no server.

>>> import nextlabel as nl
>>> campaign = nl.Campaign.create("memory:", tasks=["is a whale a fish?", "is a bat a bird?"], budget=4)
>>> lease = campaign.ask(worker="ann")
>>> campaign.tell(lease.id, label=1).status
'labelled'
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nextlabel.campaign.events import Event
from nextlabel.campaign.replies import Added, Lease, NoTask, Told
from nextlabel.campaign.results import Result
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService, Clock
from nextlabel.errors import NotFoundError
from nextlabel.store.open import open_store

if TYPE_CHECKING:
    from nextlabel.campaigns.certificate import Certificate


class Campaign:
    """A campaign in the store at an address (``store.engine``); several programs and services may use it at once."""

    def __init__(self, campaign_service: CampaignService, id: str) -> None:
        self._office, self.id = campaign_service, id

    @classmethod
    def create(
        cls, url: str, tasks: Iterable[Any] = (), *, id: str | None = None, clock: Clock = time.time, **settings: Any
    ) -> Self:
        """A new campaign; ``settings`` are those of ``campaign.settings``, ``budget`` among them."""
        campaign_service = CampaignService(open_store(url), clock)
        try:
            return cls(campaign_service, campaign_service.create(CampaignSettings.from_dict(settings), id, tasks).id)
        except BaseException:
            campaign_service.close()
            raise

    @classmethod
    def open(cls, url: str, id: str | None = None, *, clock: Clock = time.time) -> Self:
        """A campaign that is there; without ``id`` the only one."""
        campaign_service = CampaignService(open_store(url), clock)
        try:
            if id is None:
                there = campaign_service.store.campaigns()
                if len(there) != 1:
                    raise NotFoundError(
                        f"there are {len(there)} campaigns at {url}.",
                        f"Name one of {', '.join(row.id for row in there)}." if there else "Create one first.",
                    )
                id = there[0].id
            campaign_service.store.row(id)
        except BaseException:
            campaign_service.close()
            raise
        return cls(campaign_service, id)

    def add_tasks(self, tasks: Iterable[Any], batch: str | None = None) -> Added:
        """More tasks (``campaign.intake``), all of them or none."""
        return self._office.add_tasks(self.id, tasks, batch)

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why not; ``if lease:`` tells them apart."""
        return self._office.ask(self.id, worker)

    def tell(self, lease: str, label: object) -> Told:
        """The worker's answer."""
        return self._office.tell(lease, label)

    def release(self, lease: str) -> Told:
        """The worker passes the task on."""
        return self._office.release(lease)

    def renew(self, lease: str) -> Told:
        """The worker needs more time."""
        return self._office.renew(lease)

    def undo(self, lease: str) -> Told:
        """The worker takes the answer back."""
        return self._office.undo(lease)

    def pause(self) -> CampaignRow:
        """No new leases."""
        return self._office.pause(self.id)

    def resume(self) -> CampaignRow:
        """New leases again."""
        return self._office.resume(self.id)

    def change(self, **values: Any) -> CampaignRow:
        """Another ``budget``, ``deadline`` or ``lease_seconds``; None takes the last two away."""
        return self._office.change(self.id, values)

    @property
    def status(self) -> CampaignRow:
        """Settings and counters."""
        return self._office.store.row(self.id)

    def results(self) -> Iterator[Result]:
        """Every task with what is known of it."""
        return self._office.results(self.id)

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """What happened, from event ``after`` on."""
        return self._office.store.events(self.id, after, limit)

    def certificate(self) -> Certificate:
        """Expected accuracy now and the most that any policy can reach with the labels left."""
        from nextlabel.campaigns.certificate import certificate

        return certificate(self._office, self.id)

    def rebuild(self) -> CampaignRow:
        """Make everything but the events anew from them."""
        return self._office.rebuild(self.id)

    def close(self) -> None:
        """Give back what is held open."""
        self._office.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
