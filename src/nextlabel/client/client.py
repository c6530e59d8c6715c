"""Campaigns of a service from a program, with the types of ``Campaign``: ``Client``, and ``AsyncClient`` for asyncio::

with Client("http://127.0.0.1:8000", token) as client:
    id = client.create(budget=1200, labels=["no", "yes"]).id
    client.add_tasks(id, [{"id": "a", "text": "Good film"}])
    if lease := client.ask(id, worker="ann"):
        client.tell(lease, "yes")
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar, Unpack

import httpx

from nextlabel.campaign.events import Event
from nextlabel.campaign.replies import Added, AddedPredictions, AuditItem, ChangedLabels, Lease, NoTask, Told
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.settings import ChangeOptions, SettingOptions
from nextlabel.campaign.states import Standing
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.imports import ImportStatus
from nextlabel.campaigns.status import CampaignLinks, CampaignStatus
from nextlabel.campaigns.worker_reports import WorkerReport
from nextlabel.client import calls
from nextlabel.client.calls import BATCH, Attempts, Call, Page, connection

T = TypeVar("T")


class Client:
    """The campaigns of one service; a request is sent up to ``tries`` times if the connection breaks."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._http, self._tries = httpx.Client(**connection(url, token, timeout, tries)), tries

    def create(self, *, id: str | None = None, **settings: Unpack[SettingOptions]) -> CampaignStatus:
        """Create a campaign, or find the one with that id and these settings (``campaign.declaration``)."""
        return self._send(calls.create(id, settings))

    def campaigns(self) -> list[CampaignStatus]:
        """All campaigns, newest first."""
        return self._send(calls.campaigns())

    def status(self, campaign: str) -> CampaignStatus:
        """The state, settings and counters of a campaign."""
        return self._send(calls.status(campaign))

    def change(self, campaign: str, **values: Unpack[ChangeOptions]) -> CampaignStatus:
        """Change ``budget``, ``deadline`` or ``lease_seconds``; None removes one of the last two."""
        return self._send(calls.change(campaign, values))

    def delete(self, campaign: str) -> None:
        """Delete a campaign with its tasks, labels, log and links, for good; a second time, nothing happens."""
        return self._send(calls.delete(campaign))

    def pause(self, campaign: str) -> CampaignStatus:
        """Grant no new leases."""
        return self._send(calls.steer(campaign, "pause"))

    def resume(self, campaign: str) -> CampaignStatus:
        """Grant leases again."""
        return self._send(calls.steer(campaign, "resume"))

    def add_tasks(self, campaign: str, tasks: Any, batch: int = BATCH) -> Added:
        """Add tasks (``campaign.new_tasks``), ``batch`` per request, each batch as a whole or not at all.

        The same tasks in the same batches are added once, even if a program is run again.
        """
        added = known = 0
        total: int | None = None
        for call in calls.task_batches(campaign, tasks, batch):
            reply = self._send(call)
            added, known, total = added + reply.added, known + reply.known, reply.tasks
        return Added(added, known, self.status(campaign).tasks if total is None else total)

    def add_predictions(self, campaign: str, model: str, predictions: Any, cost: float = 0.0) -> AddedPredictions:
        """Add what a model predicts as labels of worker ``model:NAME``: tables with task and label or probabilities.

        ``cost`` is what one prediction costs in labels of the budget. The same predictions again change nothing.
        """
        return self._send(calls.predictions(campaign, model, predictions, cost))

    def imports(self, campaign: str) -> list[ImportStatus]:
        """The last imports of many tasks, and how far each has got."""
        return self._send(calls.imports(campaign))

    def links(self, campaign: str, workers: Iterable[str] = ()) -> CampaignLinks:
        """A personal link for each worker, and the link for platforms."""
        return self._send(calls.links(campaign, workers))

    def revoke_links(self, campaign: str, workers: Iterable[str] = (), *, join: bool = False) -> CampaignLinks:
        """End the links of workers and, with ``join``, the link for platforms; the links that are valid instead."""
        return self._send(calls.revoke_links(campaign, workers, join))

    def ask(self, campaign: str, worker: str | None = None) -> Lease | NoTask:
        """A task for a worker, or the reason why there is none; a worker's own token already names the worker."""
        return self._send(calls.ask(campaign, worker))

    def tell(self, lease: Lease | str, label: str | int, comment: str | None = None) -> Told:
        """Answer a lease, given by itself or by its id, perhaps with a comment on the task."""
        return self._send(calls.tell(lease, label, comment))

    def release(self, lease: Lease | str, comment: str | None = None) -> Told:
        """Give a task back; the same worker does not get it again."""
        return self._send(calls.release(lease, comment))

    def renew(self, lease: Lease | str) -> Told:
        """Extend a lease."""
        return self._send(calls.on_lease(lease, "renew"))

    def undo(self, lease: Lease | str) -> Told:
        """Take an answer back."""
        return self._send(calls.on_lease(lease, "undo"))

    def results(self, campaign: str) -> Iterator[Result]:
        """Every task with what is known about it."""
        return self._pages(lambda after: calls.results(campaign, after), -1)

    def labels(self, campaign: str) -> Iterator[GivenLabel]:
        """Every worker's answer, one by one."""
        return self._pages(lambda after: calls.labels(campaign, after), -1)

    def events(self, campaign: str, after: int = 0) -> Iterator[Event]:
        """The log, from the event after ``after`` on."""
        return self._pages(lambda cursor: calls.events(campaign, cursor), after)

    def workers(self, campaign: str) -> list[WorkerReport]:
        """What each worker has done."""
        return self._send(calls.workers(campaign))

    def set_standing(self, campaign: str, worker: str, standing: Standing, reason: str = "") -> WorkerReport:
        """Pause, block or restore (``active``) a worker."""
        return self._send(calls.set_standing(campaign, worker, standing, reason))

    def set_gold(self, campaign: str, answers: Mapping[str, str]) -> int:
        """Known answers by the ids of tasks: control questions; how many are new or corrected."""
        return self._send(calls.set_gold(campaign, answers))

    def draw_audit(self, campaign: str, items: int, seed: int = 0) -> list[AuditItem]:
        """Draw items at random for an audit; all that are drawn so far."""
        return self._send(calls.draw_audit(campaign, items, seed))

    def answer_audit(self, campaign: str, answers: Mapping[str, str]) -> int:
        """What the expert found, by the ids of drawn items; how many answers are new or corrected."""
        return self._send(calls.answer_audit(campaign, answers))

    def drop_labels(self, campaign: str, worker: str, reason: str = "") -> ChangedLabels:
        """Leave the labels of a worker out of the results; they stay spent."""
        return self._send(calls.change_labels(campaign, "drop-labels", {"worker": worker, "reason": reason}))

    def restore_labels(self, campaign: str, worker: str) -> ChangedLabels:
        """Take dropped labels in again, where their tasks have room for them."""
        return self._send(calls.change_labels(campaign, "restore-labels", {"worker": worker}))

    def certificate(self, campaign: str) -> Certificate:
        """What a campaign is worth now, and the most that any policy can reach if workers are alike."""
        return self._send(calls.certificate(campaign))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, call: Call[T]) -> T:
        attempts = Attempts(self._tries)
        while attempts.left:
            with attempts:
                attempts.response = self._http.request(call.method, call.path, **call.options)
            time.sleep(attempts.wait)
        return call.parse(attempts.result())

    def _pages(self, call: Callable[[int], Call[Page[T]]], after: int | None) -> Iterator[T]:
        while after is not None:
            page = self._send(call(after))
            yield from page.items
            after = page.next


class AsyncClient:
    """The campaigns of one service; ``Client`` documents the methods."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._http, self._tries = httpx.AsyncClient(**connection(url, token, timeout, tries)), tries

    async def create(self, *, id: str | None = None, **settings: Unpack[SettingOptions]) -> CampaignStatus:
        """Create a campaign, or find the one with that id and these settings."""
        return await self._send(calls.create(id, settings))

    async def campaigns(self) -> list[CampaignStatus]:
        """All campaigns, newest first."""
        return await self._send(calls.campaigns())

    async def status(self, campaign: str) -> CampaignStatus:
        """The state, settings and counters of a campaign."""
        return await self._send(calls.status(campaign))

    async def change(self, campaign: str, **values: Unpack[ChangeOptions]) -> CampaignStatus:
        """Change ``budget``, ``deadline`` or ``lease_seconds``."""
        return await self._send(calls.change(campaign, values))

    async def delete(self, campaign: str) -> None:
        """Delete a campaign with its tasks, labels, log and links, for good; a second time, nothing happens."""
        return await self._send(calls.delete(campaign))

    async def pause(self, campaign: str) -> CampaignStatus:
        """Grant no new leases."""
        return await self._send(calls.steer(campaign, "pause"))

    async def resume(self, campaign: str) -> CampaignStatus:
        """Grant leases again."""
        return await self._send(calls.steer(campaign, "resume"))

    async def add_tasks(self, campaign: str, tasks: Any, batch: int = BATCH) -> Added:
        """Add tasks, ``batch`` per request."""
        replies = [await self._send(call) for call in calls.task_batches(campaign, tasks, batch)]
        total = replies[-1].tasks if replies else (await self.status(campaign)).tasks
        return Added(sum(reply.added for reply in replies), sum(reply.known for reply in replies), total)

    async def add_predictions(self, campaign: str, model: str, predictions: Any, cost: float = 0.0) -> AddedPredictions:
        """Add what a model predicts as labels of worker ``model:NAME``."""
        return await self._send(calls.predictions(campaign, model, predictions, cost))

    async def imports(self, campaign: str) -> list[ImportStatus]:
        """The last imports of many tasks, and how far each has got."""
        return await self._send(calls.imports(campaign))

    async def links(self, campaign: str, workers: Iterable[str] = ()) -> CampaignLinks:
        """A personal link for each worker, and the link for platforms."""
        return await self._send(calls.links(campaign, workers))

    async def revoke_links(self, campaign: str, workers: Iterable[str] = (), *, join: bool = False) -> CampaignLinks:
        """End the links of workers and, with ``join``, the link for platforms; the links that are valid instead."""
        return await self._send(calls.revoke_links(campaign, workers, join))

    async def ask(self, campaign: str, worker: str | None = None) -> Lease | NoTask:
        """A task for a worker, or the reason why there is none."""
        return await self._send(calls.ask(campaign, worker))

    async def tell(self, lease: Lease | str, label: str | int, comment: str | None = None) -> Told:
        """Answer a lease, given by itself or by its id, perhaps with a comment on the task."""
        return await self._send(calls.tell(lease, label, comment))

    async def release(self, lease: Lease | str, comment: str | None = None) -> Told:
        """Give a task back."""
        return await self._send(calls.release(lease, comment))

    async def renew(self, lease: Lease | str) -> Told:
        """Extend a lease."""
        return await self._send(calls.on_lease(lease, "renew"))

    async def undo(self, lease: Lease | str) -> Told:
        """Take an answer back."""
        return await self._send(calls.on_lease(lease, "undo"))

    def results(self, campaign: str) -> AsyncIterator[Result]:
        """Every task with what is known about it."""
        return self._pages(lambda after: calls.results(campaign, after), -1)

    def labels(self, campaign: str) -> AsyncIterator[GivenLabel]:
        """Every worker's answer, one by one."""
        return self._pages(lambda after: calls.labels(campaign, after), -1)

    def events(self, campaign: str, after: int = 0) -> AsyncIterator[Event]:
        """The log, from the event after ``after`` on."""
        return self._pages(lambda cursor: calls.events(campaign, cursor), after)

    async def workers(self, campaign: str) -> list[WorkerReport]:
        """What each worker has done."""
        return await self._send(calls.workers(campaign))

    async def set_standing(self, campaign: str, worker: str, standing: Standing, reason: str = "") -> WorkerReport:
        """Pause, block or restore (``active``) a worker."""
        return await self._send(calls.set_standing(campaign, worker, standing, reason))

    async def set_gold(self, campaign: str, answers: Mapping[str, str]) -> int:
        """Known answers by the ids of tasks: control questions; how many are new or corrected."""
        return await self._send(calls.set_gold(campaign, answers))

    async def draw_audit(self, campaign: str, items: int, seed: int = 0) -> list[AuditItem]:
        """Draw items at random for an audit; all that are drawn so far."""
        return await self._send(calls.draw_audit(campaign, items, seed))

    async def answer_audit(self, campaign: str, answers: Mapping[str, str]) -> int:
        """What the expert found, by the ids of drawn items; how many answers are new or corrected."""
        return await self._send(calls.answer_audit(campaign, answers))

    async def drop_labels(self, campaign: str, worker: str, reason: str = "") -> ChangedLabels:
        """Leave the labels of a worker out of the results; they stay spent."""
        return await self._send(calls.change_labels(campaign, "drop-labels", {"worker": worker, "reason": reason}))

    async def restore_labels(self, campaign: str, worker: str) -> ChangedLabels:
        """Take dropped labels in again, where their tasks have room for them."""
        return await self._send(calls.change_labels(campaign, "restore-labels", {"worker": worker}))

    async def certificate(self, campaign: str) -> Certificate:
        """What a campaign is worth now, and the most that any policy can reach if workers are alike."""
        return await self._send(calls.certificate(campaign))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _send(self, call: Call[T]) -> T:
        attempts = Attempts(self._tries)
        while attempts.left:
            with attempts:
                attempts.response = await self._http.request(call.method, call.path, **call.options)
            await asyncio.sleep(attempts.wait)
        return call.parse(attempts.result())

    async def _pages(self, call: Callable[[int], Call[Page[T]]], after: int | None) -> AsyncIterator[T]:
        while after is not None:
            page = await self._send(call(after))
            for item in page.items:
                yield item
            after = page.next
