"""Campaigns of a service from a program, with the methods and types of ``Campaign``.

``Client`` is for plain programs, ``AsyncClient`` for asyncio::

    with Client("http://127.0.0.1:8000", token) as client:
        id = client.create(budget=1200, labels=["no", "yes"]).id
        client.add_tasks(id, [{"id": "a", "text": "Good film"}])
        if lease := client.ask(id, worker="ann"):
            client.tell(lease, "yes")
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx

from nextlabel.application.facade import Campaign
from nextlabel.application.frames import labels_frame
from nextlabel.campaign.replies import Added
from nextlabel.client import calls
from nextlabel.client.calls import BATCH, Attempts, Call, Page, command, connection, on_lease, pages
from nextlabel.files.frames import Library

P = ParamSpec("P")
T = TypeVar("T")


def _method(call: Callable[..., Any], client: Any, send: str) -> Any:
    """A call as a method of a client, which sends it; of the class, the call itself."""
    if client is None:
        return call

    @wraps(call)
    def method(*args: Any, **options: Any) -> Any:
        return getattr(client, send)(call(*args, **options))

    return method


class Method(Generic[P, T]):
    """A call as a method of both clients: ``Client`` returns its value, ``AsyncClient`` an awaitable of it."""

    def __init__(self, call: Callable[P, Call[T]]) -> None:
        self.call = call

    @overload
    def __get__(self, client: Client, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, kind: type) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, kind: type) -> Callable[P, Call[T]]: ...
    def __get__(self, client: Any, kind: type) -> Any:
        return _method(self.call, client, "_send")


class PagedMethod(Generic[P, T]):
    """A call for the first of several pages as a method of both clients: it iterates over the items of all pages."""

    def __init__(self, call: Callable[P, Call[Page[T]]]) -> None:
        self.call = call

    @overload
    def __get__(self, client: Client, kind: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, kind: type) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: None, kind: type) -> Callable[P, Call[Page[T]]]: ...
    def __get__(self, client: Any, kind: type) -> Any:
        return _method(self.call, client, "_pages")


STANDING = "POST /campaigns/{campaign}/workers/standing"


class _Methods:
    """What both clients can do; ``calls`` and ``Campaign`` document each of them."""

    create = Method(calls.create)
    campaigns = Method(calls.campaigns)
    status = Method(command("GET /campaigns/{campaign}", Campaign.status))
    change = Method(calls.change)
    delete = Method(command("DELETE /campaigns/{campaign}", Campaign.delete))
    pause = Method(command("POST /campaigns/{campaign}/pause", Campaign.pause))
    resume = Method(command("POST /campaigns/{campaign}/resume", Campaign.resume))
    add_predictions = Method(calls.add_predictions)
    add_features = Method(calls.add_features)
    imports = Method(command("GET /campaigns/{campaign}/imports", Campaign.imports))
    links = Method(calls.links)
    revoke_links = Method(calls.revoke_links)
    ask = Method(calls.ask)
    tell = Method(on_lease("POST /leases/{lease}/tell", Campaign.tell))
    release = Method(on_lease("POST /leases/{lease}/release", Campaign.release))
    renew = Method(on_lease("POST /leases/{lease}/renew", Campaign.renew))
    undo = Method(on_lease("POST /leases/{lease}/undo", Campaign.undo))
    results = PagedMethod(pages("GET /campaigns/{campaign}/results", Campaign.results))
    labels = PagedMethod(pages("GET /campaigns/{campaign}/labels", Campaign.labels))
    events = PagedMethod(pages("GET /campaigns/{campaign}/events", Campaign.events))
    workers = Method(command("GET /campaigns/{campaign}/workers", Campaign.workers))
    order = Method(command("GET /campaigns/{campaign}/order", Campaign.order))
    agreement = Method(command("GET /campaigns/{campaign}/workers/agreement", Campaign.agreement))
    pause_worker = Method(command(STANDING, Campaign.pause_worker, standing="paused"))
    block_worker = Method(command(STANDING, Campaign.block_worker, standing="blocked"))
    restore_worker = Method(command(STANDING, Campaign.restore_worker, standing="active"))
    drop_labels = Method(command("POST /campaigns/{campaign}/workers/drop-labels", Campaign.drop_labels))
    restore_labels = Method(command("POST /campaigns/{campaign}/workers/restore-labels", Campaign.restore_labels))
    erase_worker = Method(command("POST /campaigns/{campaign}/workers/erase", Campaign.erase_worker))
    worker_record = Method(command("POST /campaigns/{campaign}/workers/record", Campaign.worker_record))
    set_gold = Method(command("POST /campaigns/{campaign}/gold", Campaign.set_gold))
    adjudicate = Method(command("POST /campaigns/{campaign}/adjudicate", Campaign.adjudicate))
    undo_adjudication = Method(command("POST /campaigns/{campaign}/adjudicate/undo", Campaign.undo_adjudication))
    freeze = Method(command("POST /campaigns/{campaign}/guarantee/freeze", Campaign.freeze))
    next_look = Method(command("POST /campaigns/{campaign}/guarantee/look", Campaign.next_look))
    guarantee = Method(command("GET /campaigns/{campaign}/guarantee", Campaign.guarantee))
    guarantee_items = Method(command("GET /campaigns/{campaign}/guarantee/items", Campaign.guarantee_items))
    guarantee_record = Method(command("GET /campaigns/{campaign}/guarantee/record", Campaign.guarantee_record))
    answer_guarantee = Method(command("POST /campaigns/{campaign}/guarantee/answers", Campaign.answer_guarantee))
    reopen_labels = Method(command("POST /campaigns/{campaign}/guarantee/reopen", Campaign.reopen_labels))
    draw_audit = Method(command("POST /campaigns/{campaign}/audit/draw", Campaign.draw_audit))
    answer_audit = Method(command("POST /campaigns/{campaign}/audit/answers", Campaign.answer_audit))
    audit_items = Method(command("GET /campaigns/{campaign}/audit", Campaign.audit_items))
    certificate = Method(calls.certificate)
    webhooks = Method(command("GET /campaigns/{campaign}/webhooks", Campaign.webhooks))
    enable_webhook = Method(command("POST /campaigns/{campaign}/webhooks/{id}/enable", Campaign.enable_webhook))
    remove_webhook = Method(command("DELETE /campaigns/{campaign}/webhooks/{id}", Campaign.remove_webhook))
    add_webhook = Method(calls.add_webhook)
    test_webhook = Method(calls.test_webhook)
    tokens = Method(calls.tokens)
    create_token = Method(calls.create_token)
    revoke_token = Method(calls.revoke_token)
    set_owner = Method(calls.set_owner)
    activity = Method(calls.activity)


class Client(_Methods):
    """The campaigns of one service; a request is sent up to ``tries`` times if the connection breaks."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._http, self._tries = httpx.Client(**connection(url, token, timeout, tries)), tries

    def add_tasks(
        self, campaign: str, tasks: Any, *, score_column: str | None = None, key: str = "", batch_size: int = BATCH
    ) -> Added:
        """Add tasks (``campaign.new_tasks``), ``batch_size`` per request, each batch as a whole or not at all.

        The same tasks under the same ``key`` and in the same batches are added once, even if a program is run again.
        """
        replies = [self._send(call) for call in calls.task_batches(campaign, tasks, score_column, key, batch_size)]
        return calls.added(replies) if replies else Added(0, 0, self.status(campaign).tasks)

    def results_frame(self, campaign: str, library: Library = "pandas") -> Any:
        """The results as a data frame of pandas or Polars, with the columns that the tasks came with."""
        return calls.results_frame(self.status(campaign), list(self.results(campaign)), library)

    def labels_frame(
        self, campaign: str, library: Library = "pandas", *, unanswered: bool = False, dropped: bool = False
    ) -> Any:
        """The labels as a data frame in crowd-kit's columns (``task``, ``worker``, ``label``) and ours after them."""
        return labels_frame(self.labels(campaign, unanswered=unanswered, dropped=dropped), library)

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

    def _pages(self, call: Call[Page[T]] | None) -> Iterator[T]:
        while call is not None:
            page = self._send(call)
            yield from page.items
            call = call.following(page)


class AsyncClient(_Methods):
    """The campaigns of one service, for asyncio; ``Client`` documents the methods."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._http, self._tries = httpx.AsyncClient(**connection(url, token, timeout, tries)), tries

    async def add_tasks(
        self, campaign: str, tasks: Any, *, score_column: str | None = None, key: str = "", batch_size: int = BATCH
    ) -> Added:
        """Add tasks, ``batch_size`` per request."""
        batches = calls.task_batches(campaign, tasks, score_column, key, batch_size)
        replies = [await self._send(call) for call in batches]
        return calls.added(replies) if replies else Added(0, 0, (await self.status(campaign)).tasks)

    async def results_frame(self, campaign: str, library: Library = "pandas") -> Any:
        """The results as a data frame of pandas or Polars, with the columns that the tasks came with."""
        found = [result async for result in self.results(campaign)]
        return calls.results_frame(await self.status(campaign), found, library)

    async def labels_frame(
        self, campaign: str, library: Library = "pandas", *, unanswered: bool = False, dropped: bool = False
    ) -> Any:
        """The labels as a data frame in crowd-kit's columns (``task``, ``worker``, ``label``) and ours after them."""
        given = self.labels(campaign, unanswered=unanswered, dropped=dropped)
        return labels_frame([one async for one in given], library)

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

    async def _pages(self, call: Call[Page[T]] | None) -> AsyncIterator[T]:
        while call is not None:
            page = await self._send(call)
            for item in page.items:
                yield item
            call = call.following(page)


class ServiceCampaign:
    """One campaign of a service, with the methods of ``Campaign``: the client's, with the campaign's id given."""

    #: Methods whose lease says which campaign it is of.
    _OF_LEASES = ("tell", "release", "renew", "undo")

    def __init__(self, client: Client, id: str) -> None:
        self._client, self.id = client, id

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return method if name in self._OF_LEASES else partial(method, self.id)
