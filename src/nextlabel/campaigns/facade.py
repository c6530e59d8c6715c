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
from nextlabel.campaign.replies import Added, Lease, NoTask, Told, lease_id_of
from nextlabel.campaign.results import Result
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService, Clock
from nextlabel.campaigns.status import CampaignStatus, status_of
from nextlabel.errors import NotFoundError
from nextlabel.store.open import open_store

if TYPE_CHECKING:
    from nextlabel.campaigns.certificate import Certificate


class Campaign:
    """A campaign in the store at an address (``store.engine``); several programs and services may use it at once."""

    def __init__(self, campaign_service: CampaignService, id: str) -> None:
        self._service, self.id = campaign_service, id

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
        return self._service.add_tasks(self.id, tasks, batch)

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why not; ``if lease:`` tells them apart."""
        return self._service.ask(self.id, worker)

    def tell(self, lease: Lease | str, label: object) -> Told:
        """Answer a lease, given by itself or by its id."""
        return self._service.tell(lease_id_of(lease), label)

    def release(self, lease: Lease | str) -> Told:
        """Give a task back; the same worker does not get it again."""
        return self._service.release(lease_id_of(lease))

    def renew(self, lease: Lease | str) -> Told:
        """Extend a lease."""
        return self._service.renew(lease_id_of(lease))

    def undo(self, lease: Lease | str) -> Told:
        """Take an answer back."""
        return self._service.undo(lease_id_of(lease))

    def pause(self) -> CampaignStatus:
        """No new leases."""
        return status_of(self._service.pause(self.id))

    def resume(self) -> CampaignStatus:
        """New leases again."""
        return status_of(self._service.resume(self.id))

    def change(self, **values: Any) -> CampaignStatus:
        """Another ``budget``, ``deadline`` or ``lease_seconds``; None takes the last two away."""
        return status_of(self._service.change(self.id, values))

    @property
    def status(self) -> CampaignStatus:
        """The campaign's state, settings and counters."""
        return status_of(self._service.store.row(self.id))

    def results(self) -> Iterator[Result]:
        """Every task with what is known of it."""
        return self._service.results(self.id)

    def events(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """What happened, from event ``after`` on."""
        return self._service.store.events(self.id, after, limit)

    def certificate(self) -> Certificate:
        """Expected accuracy now and the most that any policy can reach with the labels left."""
        from nextlabel.campaigns.certificate import certificate

        return certificate(self._service, self.id)

    def rebuild(self) -> CampaignStatus:
        """Make everything but the events anew from them."""
        return status_of(self._service.rebuild(self.id))

    def close(self) -> None:
        """Give back what is held open."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
