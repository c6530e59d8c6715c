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

from nextlabel.campaign.replies import Added
from nextlabel.campaigns.frames import Library, labels_frame
from nextlabel.client import calls
from nextlabel.client.calls import BATCH, Attempts, Call, Page, connection

P = ParamSpec("P")
T = TypeVar("T")


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
        if client is None:
            return self.call

        @wraps(self.call)
        def method(*args: P.args, **options: P.kwargs) -> Any:
            return client._send(self.call(*args, **options))

        return method


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
        if client is None:
            return self.call

        @wraps(self.call)
        def method(*args: P.args, **options: P.kwargs) -> Any:
            return client._pages(self.call(*args, **options))

        return method


class _Methods:
    """What both clients can do; ``calls`` documents each of them."""

    create = Method(calls.create)
    campaigns = Method(calls.campaigns)
    status = Method(calls.status)
    change = Method(calls.change)
    delete = Method(calls.delete)
    pause = Method(calls.pause)
    resume = Method(calls.resume)
    add_predictions = Method(calls.add_predictions)
    imports = Method(calls.imports)
    links = Method(calls.links)
    revoke_links = Method(calls.revoke_links)
    ask = Method(calls.ask)
    tell = Method(calls.tell)
    release = Method(calls.release)
    renew = Method(calls.renew)
    undo = Method(calls.undo)
    results = PagedMethod(calls.results)
    labels = PagedMethod(calls.labels)
    events = PagedMethod(calls.events)
    workers = Method(calls.workers)
    pause_worker = Method(calls.pause_worker)
    block_worker = Method(calls.block_worker)
    restore_worker = Method(calls.restore_worker)
    drop_labels = Method(calls.drop_labels)
    restore_labels = Method(calls.restore_labels)
    set_gold = Method(calls.set_gold)
    adjudicate = Method(calls.adjudicate)
    undo_adjudication = Method(calls.undo_adjudication)
    freeze = Method(calls.freeze)
    guarantee = Method(calls.guarantee)
    guarantee_items = Method(calls.guarantee_items)
    guarantee_record = Method(calls.guarantee_record)
    answer_guarantee = Method(calls.answer_guarantee)
    reopen_labels = Method(calls.reopen_labels)
    draw_audit = Method(calls.draw_audit)
    answer_audit = Method(calls.answer_audit)
    audit_items = Method(calls.audit_items)
    certificate = Method(calls.certificate)
    webhooks = Method(calls.webhooks)
    add_webhook = Method(calls.add_webhook)
    enable_webhook = Method(calls.enable_webhook)
    test_webhook = Method(calls.test_webhook)
    remove_webhook = Method(calls.remove_webhook)


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
