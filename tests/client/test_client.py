"""The clients against a real service, and against ones that break."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from nextlabel.application.service import Campaign
from nextlabel.campaign.replies import Added, Lease, NoTask, Receipt
from nextlabel.client import AsyncClient, Client
from nextlabel.client import client as calls
from nextlabel.errors import ConflictError, InputError, NextlabelError, NotFoundError, TokenError
from service_fixtures import QUICK, Service, on_sqlite

SETTINGS = {key: value for key, value in QUICK.items() if key != "budget"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("client")) as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.token) as made:
        yield made


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "FIRST_WAIT_S", 0.001)


def test_a_campaign_from_end_to_end(client: Client) -> None:
    id = client.create(budget=20, **SETTINGS).id
    tasks = [{"id": f"t{k}", "text": "é"} for k in range(7)]
    assert client.add_tasks(id, tasks, batch_size=3) == Added(7, 0, 7)
    assert client.add_tasks(id, iter(tasks), batch_size=3) == Added(0, 7, 7)
    assert client.add_tasks(id, []) == Added(0, 0, 7)
    lease = client.ask(id, worker="ann")
    assert isinstance(lease, Lease)
    assert lease.payload == {"text": "é"}
    assert lease.expires_at > time.time()
    assert client.renew(lease.id).expires_at is not None
    assert client.tell(lease, "yes") == client.tell(lease.id, "yes")
    assert client.undo(lease.id).status == "leased"
    assert client.release(lease.id).status == "released"
    assert client.pause(id).state == "paused"
    refused = client.ask(id, worker="ann")
    assert isinstance(refused, NoTask)
    assert (refused.reason, bool(refused)) == ("paused", False)
    assert client.resume(id).state == "open"
    assert client.change(id, budget=30, deadline=None).budget == 30
    assert client.status(id).released == 1
    assert [result.task for result in client.results(id)] == [f"t{k}" for k in range(7)]
    events = list(client.events(id))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.seq for event in client.events(id, after=3)] == list(range(4, len(events) + 1))
    assert client.certificate(id).left == 30
    assert client.workers(id)[0].worker == "ann"
    assert id in [campaign.id for campaign in client.campaigns()]


def test_the_same_from_a_program_with_asyncio(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with AsyncClient(service.url, service.token) as client:
            id = (await client.create(budget=20, **SETTINGS)).id
            assert await client.add_tasks(id, [{"id": f"t{k}"} for k in range(7)], batch_size=3) == Added(7, 0, 7)
            assert await client.add_tasks(id, []) == Added(0, 0, 7)
            lease = await client.ask(id, worker="ann")
            assert lease
            assert (await client.renew(lease)).status == "leased"
            assert (await client.tell(lease, "yes")).counted
            assert (await client.undo(lease.id)).status == "leased"
            assert (await client.release(lease)).status == "released"
            assert (await client.pause(id)).state == "paused"
            refused = await client.ask(id, worker="ann")
            assert isinstance(refused, NoTask)
            assert (await client.resume(id)).state == "open"
            assert (await client.change(id, budget=30)).budget == 30
            assert [result.task async for result in client.results(id)] == [f"t{k}" for k in range(7)]
            assert 4 in [event.seq async for event in client.events(id, after=3)]
            assert (await client.certificate(id)).left == 30
            assert (await client.workers(id))[0].worker == "ann"
            first = await client.links(id, ["ann"])
            assert first.links[0].worker == "ann"
            second = await client.revoke_links(id, ["ann"])
            assert second.links[0].token != first.links[0].token and second.join == first.join
            with Client(service.url, service.token) as sync:
                assert await client.status(id) == sync.status(id)
                assert await client.campaigns() == sync.campaigns()
            with pytest.raises(NotFoundError, match="no campaign 'nobody'"):
                await client.status("nobody")

    monkeypatch.setattr(calls, "PAGE", 3)
    asyncio.run(work())


def test_client_and_campaign_reply_alike(service: Service, client: Client) -> None:
    id = service.campaign("alike")
    campaign = Campaign(service.campaign_service, id)
    leases = [campaign.ask("ann"), client.ask(id, worker="bob")]
    assert [type(lease) for lease in leases] == [Lease, Lease]
    for reply_of, lease in ((campaign.tell, leases[0]), (client.tell, leases[1])):
        assert lease
        assert type(reply_of(lease, "yes")) is Receipt
    ours, theirs = campaign.status(), client.status(id)
    times = {"created_at": 0.0, "last_at": 0.0}  # over HTTP in milliseconds
    assert replace(ours, **times) == replace(theirs, **times)
    assert ours.last_at == pytest.approx(theirs.last_at, abs=1e-3)
    assert list(campaign.results()) == list(client.results(id))
    assert replace(campaign.certificate(), at=0.0, curve=()) == replace(client.certificate(id), at=0.0)
    assert [event.data for event in campaign.events()] == [event.data for event in client.events(id)]


def test_a_worker_with_a_link(service: Service, client: Client) -> None:
    id = service.campaign("links")
    token = client.links(id, ["ann"]).links[0].token
    with Client(service.url, token) as ann:
        lease = ann.ask(id)
        assert isinstance(lease, Lease)
        assert lease.worker == "ann"
        assert ann.tell(lease.id, "no").label == "no"
        with pytest.raises(NextlabelError, match="requester"):
            ann.status(id)
        client.revoke_links(id, ["ann"], join=True)
        with pytest.raises(TokenError):
            ann.ask(id)


def test_pages_go_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PAGE", 3)
    id = client.create(budget=20, **SETTINGS).id
    client.add_tasks(id, [{"id": f"t{k}"} for k in range(9)])
    assert len(list(client.results(id))) == 9


def test_errors_are_those_of_nextlabel(service: Service, client: Client) -> None:
    with pytest.raises(NotFoundError, match="no campaign 'nobody'"):
        client.status("nobody")
    id = client.create(budget=20, **SETTINGS).id
    with pytest.raises(ConflictError, match="other settings"):
        client.create(id=id, budget=21, **SETTINGS)
    with pytest.raises(InputError, match="budget"):
        client.create(budget=0)  # refused before it is sent
    with pytest.raises(InputError, match="budget") as caught:
        client.change(id, budget=0)
    assert type(caught.value) is InputError
    with pytest.raises(NextlabelError, match="unknown or was revoked"), Client(service.url, "nl_wrong") as wrong:
        wrong.campaigns()
    for address in ("", "127.0.0.1:8000", "ftp://x"):
        with pytest.raises(InputError, match="address"):
            Client(address, "x")


def whole_request(connection: socket.socket) -> bytes:
    data = b""
    while True:
        data += connection.recv(65_536)
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        if end and len(body) == (int(length[1]) if length else 0):
            return data


@contextmanager
def moody(*moods: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that meets each connection with the next mood: b"" drops it, else these bytes are sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for mood in moods:
                with listening.accept()[0] as connection:
                    heard.append(whole_request(connection))
                    if mood:
                        connection.sendall(mood)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
        thread.join(5)


def reply(status: str, body: object, *headers: str) -> bytes:
    data = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


GOOD = reply("200 OK", {"workers": []})


def test_dropped_connections_and_busy_servers_are_tried_again() -> None:
    busy = reply("503 Busy", {"detail": "busy"}, "Retry-After: 0")
    with moody(b"", busy, reply("502 Bad", "x"), GOOD) as (url, heard), Client(url, "t") as client:
        assert client.workers("demo") == []
    assert len(heard) == 4
    assert b"authorization: bearer t" in heard[0].lower()


def test_a_created_campaign_keeps_its_id_over_tries() -> None:
    refused = reply("409 Conflict", {"detail": "no"})
    with moody(b"", refused) as (url, heard), Client(url, "t") as client, pytest.raises(ConflictError):
        client.create(budget=3)
    first, second = (json.loads(one.partition(b"\r\n\r\n")[2]) for one in heard)
    assert second["id"].startswith("c")
    assert first == second


def test_it_gives_up() -> None:
    with (
        moody(b"", b"") as (url, _),
        Client(url, "t", tries=2) as client,
        pytest.raises(NextlabelError, match="answer"),
    ):
        client.campaigns()
    busy = reply("503 Busy", {"detail": "the database does not answer.", "hint": "Try again."})
    with moody(busy) as (url, _), Client(url, "t", tries=1) as client, pytest.raises(NextlabelError, match="database"):
        client.campaigns()
    broken = reply("500 No", "no problem")
    with moody(broken) as (url, _), Client(url, "t") as client, pytest.raises(NextlabelError, match="status 500"):
        client.campaigns()


def test_a_label_said_twice_counts_once(service: Service, client: Client) -> None:
    id = service.campaign("lost")
    lease = client.ask(id, worker="ann")
    assert isinstance(lease, Lease)
    for _ in range(2):
        client.tell(lease.id, "yes")
    assert client.status(id).spent == 1
