"""Limits: greedy workers, many names from one address, wrong tokens, endless headers, idle and slow connections, deep
payloads, large pages. Each is refused in a sentence, counted, and leaves everybody else alone."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from nextlabel.campaign import intake, new_tasks
from nextlabel.service.limits import Bucket, DistinctNames, address_of
from nextlabel.web.pages import mount_pages
from service_fixtures import PATIENCE_S, Service, on_sqlite
from stores import KINDS, Clock, opened, service_of_store, simple


def exceeded(service: Service, limit: str) -> int:
    """How often a limit was exceeded, according to the metrics."""
    with service.http() as http:
        found = re.search(
            rf'^nextlabel_limits_exceeded_total{{limit="{limit}"}} (\S+)', http.get("/metrics").text, re.M
        )
    return 0 if found is None else int(float(found[1]))


def check_429(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["type"] == "urn:nextlabel:too-many" and answer.json()["hint"]


class TestWorkers:
    def test_renewals_releases_and_undos(self, tmp_path: Path) -> None:
        with on_sqlite(tmp_path, worker_moves_per_minute=5) as service:
            service.campaign("demo", tasks=5, lease_seconds=600)
            store = service.campaign_service.store
            with service.worker("ann") as ann, service.worker("bob") as bob, service.http() as requester:
                leases = {
                    who: at.post("/campaigns/demo/ask").json()["lease"]["id"] for who, at in (("a", ann), ("b", bob))
                }
                before = store.row("demo").seq
                answers = [ann.post(f"/leases/{leases['a']}/renew") for _ in range(40)]
                assert [one.status_code for one in answers[:5]] == [200] * 5
                for refused in answers[20:]:  # by then a slow machine may have given one or two back
                    if refused.status_code != 200:
                        check_429(refused)
                written = store.row("demo").seq - before
                assert written == sum(one.status_code == 200 for one in answers) < 20
                assert exceeded(service, "worker_moves") == 40 - written
                assert bob.post(f"/leases/{leases['b']}/renew").status_code == 200
                assert requester.post(f"/leases/{leases['a']}/renew").status_code == 200
                assert ann.post(f"/leases/{leases['a']}/tell", json={"label": "yes"}).status_code == 200
                assert ann.post("/campaigns/demo/ask").json()["lease"] is not None

    def test_one_address_cannot_hold_all_labels_by_the_platforms_link(self, tmp_path: Path) -> None:
        with on_sqlite(tmp_path, pages=mount_pages) as service:
            service.campaign("demo", tasks=100, budget=100)
            with service.http() as http:
                join = http.post("/campaigns/demo/links", json={}).json()["join"]["url"]
            entered = []
            for number in range(60):
                with httpx.Client(follow_redirects=True) as person:
                    entered.append(person.get(join, params={"worker": f"p{number}"}))
            assert [one.status_code for one in entered] == [200] * 30 + [429] * 30
            assert int(entered[-1].headers["retry-after"]) > 60
            assert "<h1>Too many requests.</h1>" in entered[-1].text
            assert service.campaign_service.store.row("demo").reserved == 30
            assert exceeded(service, "new_workers") == 30
            assert httpx.get(join, params={"worker": "p7"}).status_code == 303
            elsewhere = {"x-forwarded-for": "203.0.113.9"}
            assert httpx.get(join, params={"worker": "q"}, headers=elsewhere).status_code == 303


def test_wrong_tokens(tmp_path: Path) -> None:
    with on_sqlite(tmp_path, pages=mount_pages) as service:
        with service.http("nl_wrong") as wrong, service.http("w3.a.b") as forged:
            assert [wrong.get("/campaigns").status_code for _ in range(5)] == [401] * 5
            assert [forged.get("/campaigns").status_code for _ in range(5)] == [401] * 5
            answers = [wrong.get("/campaigns"), *(forged.get("/campaigns") for _ in range(20))]
            check_429(next(one for one in answers if one.status_code != 401))
        tried = [httpx.post(f"{service.url}/sign-in", data={"token": "nl_no"}) for _ in range(5)]
        refused = next(one for one in tried if one.status_code == 429)  # a slow machine has been given one back
        assert "retry-after" in refused.headers
        assert exceeded(service, "failed_sign_ins") > 0
        with service.http() as right:  # a valid token is never refused because of others
            assert right.get("/campaigns").status_code == 200
        assert httpx.post(f"{service.url}/sign-in", data={"token": service.token}).status_code == 303
        assert httpx.get(f"{service.url}/api/v1/campaigns").status_code == 401  # no token: nothing was tried


@contextmanager
def connected(service: Service, first: bytes = b"") -> Iterator[socket.socket]:
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        if first:
            connection.sendall(first)
        yield connection


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and problem of what the service says before it closes the connection."""
    said = b""
    try:
        while piece := connection.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    head, _, body = said.partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body)) if head else (0, {})


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("connections")
    with on_sqlite(folder, max_connections=20, head_seconds=2, body_seconds=2) as running:
        running.campaign("demo")
        yield running


class TestConnections:
    def test_an_endless_header(self, impatient: Service) -> None:
        before = exceeded(impatient, "head_size")
        begin = b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-endless: "
        with connected(impatient, begin) as connection, pytest.raises(OSError):  # it is closed long before the end
            for _ in range(10_000):
                connection.sendall(b"a" * 10_000)
            raise AssertionError("100 MB of header were taken")
        assert exceeded(impatient, "head_size") == before + 1

    @pytest.mark.parametrize("head", [
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-large: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET /healthz?" + b"a" * 40_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x-%d: y\r\n" % k for k in range(5000)) + b"\r\n",
    ])  # fmt: skip
    def test_large_heads(self, impatient: Service, head: bytes) -> None:
        with connected(impatient, head) as connection:
            status, problem = answer(connection)
        assert status == 431 == problem["status"] and "32,768 bytes" in problem["detail"]

    @pytest.mark.parametrize("first", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nhost: x\r\nx: "])
    def test_connections_that_say_nothing_or_stop(self, impatient: Service, first: bytes) -> None:
        before = exceeded(impatient, "head_time")
        with connected(impatient, first) as connection:
            assert answer(connection)[0] == 408
        assert exceeded(impatient, "head_time") == before + 1

    def test_a_body_that_stops(self, impatient: Service) -> None:
        head = (
            "POST /api/v1/campaigns/demo/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: text/csv\r\n"
            f"authorization: Bearer {impatient.token}\r\ncontent-length: 1000\r\n\r\nid,text\n"
        )
        with connected(impatient, head.encode()) as connection:
            status, problem = answer(connection)
        assert status == 408 and "bytes a second" in problem["detail"]
        assert exceeded(impatient, "body_time") == 1

    def test_a_response_that_nobody_reads(self, impatient: Service) -> None:
        with impatient.http() as http:
            assert (
                http.post("/campaigns", json={"budget": 5, "id": "large", "policy": "uncertainty"}).status_code == 201
            )
            for part in range(3):
                tasks = [{"id": f"t{part}-{k}", "text": "x" * 60_000} for k in range(100)]
                assert http.post("/campaigns/large/tasks", json=tasks).status_code == 200
        request = (
            "GET /api/v1/campaigns/large/results?format=jsonl HTTP/1.1\r\nhost: x\r\n"
            f"authorization: Bearer {impatient.token}\r\n\r\n"
        )
        with connected(impatient, request.encode()):
            until = time.monotonic() + PATIENCE_S
            while exceeded(impatient, "read_time") == 0:
                assert time.monotonic() < until
                time.sleep(0.5)

    def test_idle_connections_make_room(self, tmp_path: Path) -> None:
        with on_sqlite(tmp_path, max_connections=20, head_seconds=600) as service, ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(connected(service))
            with service.http() as http:
                assert [http.get("/campaigns").status_code for _ in range(3)] == [200] * 3
            assert exceeded(service, "connections") >= 40


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


class TestNesting:
    @pytest.mark.parametrize("depth", [33, 800, 990, 100_000])
    @pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
    def test_deep_payloads_are_refused(self, shared: Service, depth: int, kind: str) -> None:
        task = f'{{"id": "a", "payload": {nested(depth)}}}'
        with shared.http() as http:
            body = f"[{task}]" if kind == "application/json" else task
            refused = http.post("/campaigns/demo/tasks", content=body, headers={"content-type": kind})
            assert refused.status_code == 422, refused.text
            flat = http.post("/campaigns", json={"budget": 5, "id": "deep"})
            assert flat.status_code in (200, 201)

    @pytest.mark.parametrize("field", ["prior", "reward", "labels", "budget"])
    def test_deep_settings_are_refused(self, shared: Service, field: str) -> None:
        with shared.http() as http:
            for depth in (800, 990, 100_000):
                inner = '{"a":' * depth + "1" + "}" * depth
                body = f'{{"budget": 5, "{field}": {inner}}}'
                refused = http.post("/campaigns", content=body, headers={"content-type": "application/json"})
                assert refused.status_code in (400, 422), refused.text

    def test_what_is_allowed_comes_back(self, shared: Service) -> None:
        with shared.http() as http:
            payload = json.loads(nested(31))
            made = http.post("/campaigns", json={"budget": 5, "id": "nested", "policy": "uncertainty"})
            assert made.status_code == 201
            assert http.post("/campaigns/nested/tasks", json=[{"payload": payload}]).status_code == 200
            asked = http.post("/campaigns/nested/ask", json={"worker": "ann"}).json()
            assert asked["lease"], asked
            assert asked["lease"]["payload"] == payload


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("limits"), max_page_bytes=100_000) as running:
        running.campaign("demo")
        yield running


class TestPages:
    def test_pages_of_the_api_have_a_size(self, shared: Service) -> None:
        text = "x" * 20_000
        with shared.http() as http:
            assert (
                http.post("/campaigns", json={"budget": 5, "id": "large", "policy": "uncertainty"}).status_code == 201
            )
            for first in range(0, 40, 4):
                tasks = [{"id": f"t{k}", "text": text} for k in range(first, first + 4)]
                assert http.post("/campaigns/large/tasks", json=tasks).status_code == 200
            for name, start, key in (("events", 0, "seq"), ("results", -1, "task")):
                seen: list[Any] = []
                after: int | None = start
                while after is not None:
                    page = http.get(f"/campaigns/large/{name}", params={"after": after, "limit": 1000})
                    assert page.status_code == 200 and len(page.content) < 300_000
                    seen += [one[key] for one in page.json()[name]]
                    after = page.json()["next"]
                whole = [f"t{k}" for k in range(40)] if name == "results" else list(range(1, len(seen) + 1))
                assert seen == whole and len(seen) >= 11
            assert len(http.get("/campaigns/large/results", params={"format": "jsonl"}).text.splitlines()) == 40

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_store_stops_at_the_size(self, kind: str, tmp_path: Path) -> None:
        with opened(kind, tmp_path) as store:
            service = service_of_store(store, Clock())
            id = service.create(simple(), tasks=[{"text": "x" * 1000} for _ in range(50)]).id
            assert [task.number for task in store.tasks(id, -1, 1000, 5000)] == list(range(5))
            assert [task.number for task in store.tasks(id, 4, 3, 5000)] == [5, 6, 7]
            assert [task.number for task in store.tasks(id, 4, 1000, 1)] == [5]
            assert len(store.tasks(id)) == 50
            assert [event.seq for event in store.events(id, 0, 1000, 1)] == [1]
            assert len(store.events(id, 0, 1000, 10**9)) == store.row(id).seq
            assert len(list(service[id].results())) == 50
            service.table_cache.close()

    def test_events_do_not_grow_with_the_payloads(self, tmp_path: Path) -> None:
        with opened("sqlite", tmp_path) as store:
            service = service_of_store(store, Clock())
            text = "x" * 60_000
            id = service.create(simple(), tasks=({"id": str(k), "text": text} for k in range(100))).id
            added = [event for event in store.events(id) if event.kind == "tasks_added"]
            sizes = [sum(len(json.dumps(task[1])) for task in event.data["tasks"]) for event in added]
            assert sum(len(event.data["tasks"]) for event in added) == 100
            assert max(sizes) <= intake.CHUNK_SIZE + new_tasks.LARGEST_PAYLOAD
            service.table_cache.close()


class TestBuckets:
    def test_a_burst_then_a_rate(self) -> None:
        now = [0.0]
        bucket = Bucket(3, 60.0, lambda: now[0])
        assert [bucket.take("a") for _ in range(4)] == [None, None, None, 20.0]
        assert bucket.take("b") is None
        now[0] = 20.0
        assert bucket.take("a") is None and bucket.take("a") == 20.0
        now[0] = 1e6
        assert [bucket.take("a") for _ in range(4)] == [None, None, None, 20.0]

    def test_names(self) -> None:
        now = [0.0]
        names = DistinctNames(2, 100.0, lambda: now[0])
        assert names.take("x", "a") is None
        now[0] = 30.0
        assert names.take("x", "b") is None and names.take("x", "a") is None
        assert names.take("x", "c") == 70.0 and names.take("y", "c") is None
        now[0] = 100.0
        assert names.take("x", "c") is None and names.take("x", "a") == 30.0

    def test_addresses(self) -> None:
        found = [
            address_of({"client": (host, 1)})
            for host in ("1.2.3.4", "2001:db8::1", "2001:db8::ffff:1", "::ffff:1.2.3.4")
        ]
        assert found[0] == "1.2.3.4" and found[1] == found[2] == "2001:db8::/64" and found[3] == "1.2.3.4"
        assert address_of({"client": ("testclient", 1)}) == "testclient" and address_of({}) == "unknown"
