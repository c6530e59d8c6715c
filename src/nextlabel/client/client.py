"""A program's way to a service: what ``campaigns.service`` does here, done over there.

For example::

    with Client("http://127.0.0.1:8000", token) as client:
        id = client.create(budget=1200, labels=["no", "yes"])["id"]
        client.add_tasks(id, [{"id": "a", "text": "Good film"}])
        lease = client.ask(id, worker="ann")
        client.tell(lease.id, "yes")
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import count, islice
from types import TracebackType
from typing import Any, Self

from nextlabel.campaign.ids import new_campaign_id
from nextlabel.campaign.replies import Added, Lease, NoTask, Told
from nextlabel.client.calls import Calls

#: Tasks of one request, and results or events of one page.
BATCH, PAGE = 5_000, 1_000


class Client:
    """Campaigns of one service; every call is sent again if the connection breaks, ``tries`` times in all."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._calls = Calls(url, token, timeout, tries)

    def create(self, *, budget: int, id: str | None = None, **settings: Any) -> dict[str, Any]:
        """A new campaign (``campaign.settings``), or the one that is there with that id and these settings."""
        body = {"id": new_campaign_id() if id is None else id, "budget": budget, **settings}
        return self._table("POST", "/campaigns", json=body)

    def campaigns(self) -> list[dict[str, Any]]:
        """All campaigns, newest first."""
        found: list[dict[str, Any]] = self._table("GET", "/campaigns")["campaigns"]
        return found

    def status(self, campaign: str) -> dict[str, Any]:
        """How a campaign stands."""
        return self._table("GET", f"/campaigns/{campaign}")

    def change(self, campaign: str, **values: Any) -> dict[str, Any]:
        """Another ``budget``, ``deadline`` or ``lease_seconds``; None takes the last two away."""
        return self._table("PATCH", f"/campaigns/{campaign}", json=values)

    def pause(self, campaign: str) -> dict[str, Any]:
        """No new leases."""
        return self._table("POST", f"/campaigns/{campaign}/pause")

    def resume(self, campaign: str) -> dict[str, Any]:
        """New leases again."""
        return self._table("POST", f"/campaigns/{campaign}/resume")

    def add_tasks(self, campaign: str, tasks: Iterable[Any], batch: int = BATCH) -> Added:
        """Tasks as tables (``campaign.intake``), ``batch`` a request, each taken in whole.

        The same tasks in the same batches are taken in once, also when a program is run again.
        """
        added = known = total = 0
        rest = iter(tasks)
        for number in count():
            some = list(islice(rest, batch))
            if not some:
                return Added(added, known, total if number else int(self.status(campaign)["tasks"]))
            body = "".join(json.dumps(task) + "\n" for task in some).encode()
            key = f"{number}-{hashlib.sha256(body).hexdigest()}"
            told = self._table(
                "POST",
                f"/campaigns/{campaign}/tasks",
                content=body,
                headers={"Content-Type": "application/x-ndjson", "Idempotency-Key": key},
            )
            added, known, total = added + told["added"], known + told["known"], told["tasks"]
        raise AssertionError("unreachable")

    def links(self, campaign: str, workers: Iterable[str] = ()) -> dict[str, Any]:
        """A link for each worker, and the one for platforms."""
        return self._table("POST", f"/campaigns/{campaign}/links", json={"workers": list(workers)})

    def ask(self, campaign: str, worker: str | None = None) -> Lease | NoTask:
        """A task for a worker, or why there is none; a worker's own token says who it is."""
        told = self._table("POST", f"/campaigns/{campaign}/ask", json={} if worker is None else {"worker": worker})
        if told["lease"] is None:
            return NoTask(campaign, told["reason"], told["retry_after"])
        lease = told["lease"]
        return Lease(
            **{**lease, "leased_at": _seconds(lease["leased_at"]), "expires_at": _seconds(lease["expires_at"])}
        )

    def tell(self, lease: str, label: str | int) -> Told:
        """A worker's answer."""
        return _told(self._table("POST", f"/leases/{lease}/tell", json={"label": label}))

    def release(self, lease: str) -> Told:
        """A worker passes a task on."""
        return _told(self._table("POST", f"/leases/{lease}/release"))

    def renew(self, lease: str) -> Told:
        """A worker needs more time."""
        return _told(self._table("POST", f"/leases/{lease}/renew"))

    def undo(self, lease: str) -> Told:
        """A worker takes an answer back."""
        return _told(self._table("POST", f"/leases/{lease}/undo"))

    def results(self, campaign: str) -> Iterator[dict[str, Any]]:
        """Every task with what is known of it."""
        return self._pages(f"/campaigns/{campaign}/results", "results", -1)

    def events(self, campaign: str, after: int = 0) -> Iterator[dict[str, Any]]:
        """The log, from the event after ``after`` on."""
        return self._pages(f"/campaigns/{campaign}/events", "events", after)

    def workers(self, campaign: str) -> list[dict[str, Any]]:
        """What each worker did."""
        found: list[dict[str, Any]] = self._table("GET", f"/campaigns/{campaign}/workers")["workers"]
        return found

    def certificate(self, campaign: str) -> dict[str, Any]:
        """What a campaign is worth now and can be worth at most."""
        return self._table("GET", f"/campaigns/{campaign}/certificate")

    def close(self) -> None:
        """Close the connections."""
        self._calls.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _table(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._calls.send(method, path, **given)
        return found

    def _pages(self, path: str, name: str, after: int | None) -> Iterator[dict[str, Any]]:
        while after is not None:
            page = self._table("GET", path, params={"after": after, "limit": PAGE})
            yield from page[name]
            after = page["next"]


def _told(table: Mapping[str, Any]) -> Told:
    until = table["expires_at"]
    return Told(**{**table, "expires_at": None if until is None else _seconds(until)})


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
