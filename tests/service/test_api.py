"""The API over real HTTP: every route, idempotent retries, paging, imports, problem details, limits, metrics."""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Response
from sqlalchemy.exc import OperationalError

from nextlabel.application import certificate as certificates
from nextlabel.application.service import CampaignService
from nextlabel.service.app import create_app
from nextlabel.service.logs import JsonFormatter
from nextlabel.service.middleware import SECURITY_HEADERS
from nextlabel.service.routes import campaigns, health, results, work
from nextlabel.store.sql import SqlStore
from service_fixtures import PATIENCE_S, QUICK, Service, on_sqlite, running

CAMPAIGN = {**QUICK, "id": "demo"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("service"), max_body_bytes=2000, max_upload_bytes=200_000) as service:
        yield service


@pytest.fixture
def http(shared: Service) -> Iterator[httpx.Client]:
    with shared.http() as client:
        yield client


def check_problem(response: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"].startswith("application/problem+json")
    problem = response.json()
    assert set(problem) == {"type", "title", "status", "detail", "hint", "request_id"}
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]
    for word in words:
        assert word in problem["detail"] + problem["hint"], problem
    return dict(problem)


def taken(answer: httpx.Response) -> dict[str, int]:
    """How many tasks were taken in; the body's report is looked at in ``tests/files``."""
    return {name: number for name, number in answer.json().items() if name != "read"}


class TestCampaigns:
    def test_create_again_and_otherwise(self, http: httpx.Client) -> None:
        first = http.post("/campaigns", json={**CAMPAIGN, "id": "again"})
        assert first.status_code == 201
        assert first.json()["state"] == "open"
        again = http.post("/campaigns", json={**CAMPAIGN, "id": "again"})
        assert again.status_code == 200
        assert again.json()["created_at"] == first.json()["created_at"]
        check_problem(http.post("/campaigns", json={**CAMPAIGN, "id": "again", "budget": 21}), 409, "other settings")

    def test_an_id_is_made_up(self, http: httpx.Client) -> None:
        made = http.post("/campaigns", json=QUICK)
        assert made.status_code == 201
        assert made.json()["id"] in [c["id"] for c in http.get("/campaigns").json()["campaigns"]]

    def test_status_tells_settings_counters_and_rates(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("told", lease_seconds=60)
        assert http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]["task"].startswith("t")
        status = http.get(f"/campaigns/{id}").json()
        assert (status["tasks"], status["budget"], status["reserved"], status["left"]) == (5, 20, 1, 19)
        assert status["lease_seconds"] == 60
        assert status["rates"] == {"arrivals": None, "completions": None}
        assert status["settings"]["labels"] == ["no", "yes"]

    def test_change_keeps_what_is_left_out_and_null_takes_away(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("change")
        when = datetime.now(UTC) + timedelta(days=1)
        changed = http.patch(f"/campaigns/{id}", json={"budget": 30, "deadline": when.isoformat(), "lease_seconds": 50})
        status = changed.json()
        assert (status["budget"], status["lease_seconds"]) == (30, 50)
        assert abs(datetime.fromisoformat(status["deadline"]) - when) < timedelta(seconds=1)
        status = http.patch(f"/campaigns/{id}", json={"deadline": None}).json()
        assert (status["budget"], status["deadline"], status["settings"]["lease_seconds"]) == (30, None, 50)
        status = http.patch(f"/campaigns/{id}", json={"deadline": when.timestamp()}).json()
        assert status["deadline"].endswith("Z")
        check_problem(http.patch(f"/campaigns/{id}", json={"deadline": "2030-01-01T00:00:00"}), 422, "time zone")
        check_problem(http.patch(f"/campaigns/{id}", json={"deadline": "soon"}), 422, "'soon' is not a time")
        check_problem(http.patch(f"/campaigns/{id}", json={"labels": ["a", "b"]}), 422, "labels")

    def test_pause_and_resume(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("pause")
        for _ in range(2):
            assert http.post(f"/campaigns/{id}/pause").json()["state"] == "paused"
        refused = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"})
        assert refused.status_code == 200
        assert (refused.json()["lease"], refused.json()["reason"]) == (None, "paused")
        assert refused.headers["retry-after"] == str(int(refused.json()["retry_after"]))
        assert http.post(f"/campaigns/{id}/resume").json()["state"] == "open"
        assert http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]

    def test_no_such_campaign(self, http: httpx.Client) -> None:
        for method, path in (("GET", ""), ("GET", "/results"), ("GET", "/events"), ("GET", "/workers"),
                             ("GET", "/certificate"), ("POST", "/pause"), ("PATCH", ""), ("POST", "/links"),
                             ("POST", "/tasks"), ("POST", "/ask")):  # fmt: skip
            for id in ("nobody", "NOT-A-NAME", "%00"):
                body: dict[str, Any] = {"json": {"/tasks": [], "/ask": {"worker": "ann"}}.get(path, {})}
                check_problem(http.request(method, f"/campaigns/{id}{path}", **body), 404, "no campaign")


class TestWork:
    def test_the_life_of_a_lease(self, shared: Service) -> None:
        id = shared.campaign("life")
        with shared.worker("ann", id) as ann:
            reply = ann.post(f"/campaigns/{id}/ask").json()
            lease = reply["lease"]
            assert (reply["reason"], reply["retry_after"]) == (None, None)
            assert lease["payload"] == {"text": f"text {lease['task'][1:]}"}
            assert lease["expires_at"] > lease["leased_at"]
            assert ann.post(f"/campaigns/{id}/ask").json()["lease"]["id"] == lease["id"]
            at = f"/leases/{lease['id']}"
            assert ann.post(f"{at}/renew").json()["expires_at"] >= lease["expires_at"]
            for _ in range(2):
                told = ann.post(f"{at}/tell", json={"label": "yes"})
                assert told.json()["status"] == "labelled"
                assert told.json()["counted"] is True
            check_problem(ann.post(f"{at}/tell", json={"label": "no"}), 409, "answered with 'yes' before")
            assert ann.post(f"{at}/undo").json()["status"] == "leased"
            check_problem(ann.post(f"{at}/tell", json={"label": "maybe"}), 422, "no, yes")
            assert ann.post(f"{at}/tell", json={"label": "no"}).json()["label"] == "no"
            other = ann.post(f"/campaigns/{id}/ask").json()["lease"]
            assert other["task"] != lease["task"]
            for _ in range(2):
                assert ann.post(f"/leases/{other['id']}/release").json()["status"] == "released"
            check_problem(ann.post(f"/leases/{other['id']}/renew"), 409, "released")

    def test_a_lease_that_is_over_is_told_late_and_status_knows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(campaigns, "EXPIRY_WAIT_S", PATIENCE_S)
        with on_sqlite(tmp_path) as service, service.http() as http:
            id = service.campaign(lease_seconds=30)
            lease = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]["id"]
            service.clock.ahead = 31
            now = http.get(f"/campaigns/{id}").json()
            assert (now["reserved"], now["expired"], now["left"]) == (0, 1, 20)
            told = http.post(f"/leases/{lease}/tell", json={"label": "yes"}).json()
            assert (told["status"], told["counted"], told["expires_at"]) == ("late", True, None)
            assert http.get(f"/campaigns/{id}/workers").json()["workers"][0]["late"] == 1

    def test_the_requester_names_the_worker(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("named")
        check_problem(http.post(f"/campaigns/{id}/ask"), 422, "name a worker")
        check_problem(http.post(f"/campaigns/{id}/ask", json={"worker": ""}), 422, "body.worker")
        check_problem(http.post(f"/campaigns/{id}/ask", json={"wörker": "ann"}), 422, "body.wörker")
        check_problem(http.post(f"/campaigns/{id}/ask", content=b"{"), 422, "body")
        assert http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]["worker"] == "ann"

    def test_until_the_budget_is_spent(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("spent", tasks=2, budget=2)
        for worker in ("ann", "bob"):
            lease = http.post(f"/campaigns/{id}/ask", json={"worker": worker}).json()["lease"]["id"]
            assert http.post(f"/leases/{lease}/tell", json={"label": "yes"}).status_code == 200
        refused = http.post(f"/campaigns/{id}/ask", json={"worker": "cy"})
        assert refused.json() == {
            "lease": None, "reason": "budget_spent", "detail": "All labels of this campaign have been bought.",
            "retry_after": None,
        }  # fmt: skip
        assert "retry-after" not in refused.headers
        status = http.get(f"/campaigns/{id}").json()
        assert (status["state"], status["closed_reason"]) == ("closed", "budget_spent")

    def test_a_lease_has_one_id(self, shared: Service, http: httpx.Client) -> None:
        """The log has the id that it is told by: another way to write its number, or another secret, is no lease."""
        id = shared.campaign("one_id")
        lease = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]["id"]
        name, number, secret = lease.split("-")
        for other in (f"{name}-0{number}-{secret}", f"{name}-{number}-{secret.upper()}g", f"{name}-{number}-model",
                      f"{name}-{number}-0{secret}", f"{name}-{number}", f"{name}-+{number}-{secret}"):  # fmt: skip
            check_problem(http.post(f"/leases/{other}/tell", json={"label": "yes"}), 404, "no such lease")
        assert http.post(f"/leases/{lease}/tell", json={"label": "yes"}).json()["status"] == "labelled"

    def test_no_such_lease(self, http: httpx.Client) -> None:
        for lease in ("x", "demo-1-abc", "%00-1-a", "nobody-0-aaaaaaaaaaaa"):
            for move in ("tell", "release", "renew", "undo"):
                body = {"label": "yes"} if move == "tell" else {}
                check_problem(http.post(f"/leases/{lease}/{move}", json=body), 404)


class TestTasks:
    def test_csv_with_named_columns(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("csv", tasks=0)
        text = '﻿url,text,model\na,"Good, really",0.9\n\nb,Bad,0.2\n'
        given: dict[str, Any] = {"params": {"id_column": "url", "score_column": "model"},
                                 "headers": {"Content-Type": "text/csv; charset=utf-8"}}  # fmt: skip
        added = http.post(f"/campaigns/{id}/tasks", content=text.encode(), **given)
        assert taken(added) == {"added": 2, "known": 0, "tasks": 2, "alike": 0}
        again = http.post(f"/campaigns/{id}/tasks", content=text.encode(), **given)
        assert taken(again) == {"added": 0, "known": 2, "tasks": 2, "alike": 0}
        found = http.get(f"/campaigns/{id}/results").json()["results"]
        assert [(r["task"], r["label"], r["payload"]) for r in found] == [
            ("a", "yes", {"url": "a", "text": "Good, really"}), ("b", "no", {"url": "b", "text": "Bad"}),
        ]  # fmt: skip
        assert found[0]["probability"] > 0.9

    @pytest.mark.parametrize(
        ("kind", "body", "words"),
        [
            ("text/csv", "id,score\na,0.5\n", "nothing that workers would be shown"),
            ("text/csv", "id,text\na,x\nb\nc,x\n", "row 3 of the body has 1 cell and its header 2"),
            ("text/csv", 'id,text\na,x\nb,"x\n', "ends inside a quoted cell"),
            ("text/csv", "", "is empty"),
            ("text/csv", "id,id\na,b\n", "two columns of the body are called 'id'"),
            ("text/csv", "id,text\n", "no tasks"),
            ("application/json", " [ ] ", "no tasks"),
            ("text/csv", "id,text\nä,x\nb,".encode() + b"\xff\n", "line 3 of the body is not UTF-8"),
            ("text/csv", "id,prior\na,[1\n", "the prior in row 2"),
            ("application/x-ndjson", '{"id": "a"}\n\n{"id": \n{"id": "c"}\n', "line 3 of the body is not JSON"),
            ("application/x-ndjson", '{"id": "a"}\n{"id": "b", "prior": [1, 2, 3]}\n', "task 2"),
            ("application/x-ndjson", '{"id": "a"}\n{"id": "\\ud800"}\n', "id of task 2"),
            ("application/x-ndjson", '{"id": "a"}\n{"id": "b", "text": "\\ud800"}\n', "payload of task 2"),
            ("application/x-ndjson", '{"id": "a"}\n{"id": "b", "\\udfff": "x"}\n', "payload of task 2"),
            ("application/x-ndjson", '{"id": "a", "payload": NaN}\n', "payload of task 1"),
            ("application/x-ndjson", "[" * 100_000, "line 1"),
            ("application/json", '[{"id": "a"}, {"id": "b", "score": 7}]', "task 2"),
            ("application/json", '[{"id": "a"}, {"id": ', "value 2"),
            ("application/json", '[{"id": "a"} {"id": "b"}]', "after value 1"),
            ("application/json", '[{"id": "a"}', "after value 1"),
            ("application/json", '[{"id": "a"}] x', "follows"),
            ("application/json", '{"id": "a"}', "not a JSON list"),
        ],
    )
    def test_a_bad_row_and_nothing_is_taken_in(
        self, shared: Service, http: httpx.Client, kind: str, body: str | bytes, words: str
    ) -> None:
        id = shared.campaign("bad", tasks=0)
        data = body if isinstance(body, bytes) else body.encode()
        check_problem(http.post(f"/campaigns/{id}/tasks", content=data, headers={"Content-Type": kind}), 422, words)
        status = http.get(f"/campaigns/{id}").json()
        assert (status["tasks"], status["seq"]) == (0, 1)

    def test_batches_come_in_once(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("batch", tasks=0)
        lines = b'{"text": "no id"}\n{"text": "no id"}\n'
        kind = {"Content-Type": "application/x-ndjson"}
        first = http.post(f"/campaigns/{id}/tasks", content=lines, headers=kind, params={"batch": "one"})
        assert taken(first) == {"added": 2, "known": 0, "tasks": 2, "alike": 1}
        again = http.post(f"/campaigns/{id}/tasks", content=lines, headers={**kind, "Idempotency-Key": "one"})
        assert taken(again) == {"added": 0, "known": 2, "tasks": 2, "alike": 0}
        other = http.post(f"/campaigns/{id}/tasks", content=lines, headers={**kind, "Idempotency-Key": "two"})
        assert taken(other) == {"added": 2, "known": 0, "tasks": 4, "alike": 1}
        both = {**kind, "Idempotency-Key": "two"}
        bad = http.post(f"/campaigns/{id}/tasks", content=lines, headers=both, params={"batch": "one"})
        check_problem(bad, 422, "differ")

    def test_a_long_list_comes_in_pieces(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("list", tasks=0)
        tasks = [{"id": f"t{k}", "text": "é" * 30 + f'"{k}"', "n": 10**15 + k} for k in range(800)]
        body = json.dumps(tasks, ensure_ascii=False, indent=1).encode()
        assert len(body) > 1 << 16
        kind = {"Content-Type": "application/json"}
        assert http.post(f"/campaigns/{id}/tasks", content=body, headers=kind).json()["added"] == 800
        found = http.get(f"/campaigns/{id}/results", params={"limit": 1000}).json()["results"]
        assert [r["payload"]["n"] for r in found] == [task["n"] for task in tasks]

    def test_other_payload_under_the_same_id(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("other")
        check_problem(http.post(f"/campaigns/{id}/tasks", json=[{"id": "t0", "text": "else"}]), 409, "'t0'")

    def test_media_type(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("media")
        sent = http.post(f"/campaigns/{id}/tasks", content=b"<x/>", headers={"Content-Type": "text/xml"})
        check_problem(sent, 415, "text/xml", "text/csv")

    def test_a_column_that_is_not_there(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("column")
        sent = http.post(f"/campaigns/{id}/tasks", json=[{"a": 1}], params={"id_column": "b"})
        check_problem(sent, 422, "task 1 has no 'b'")


class TestReading:
    def test_results_by_cursor_and_whole(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("pages", tasks=7)
        found: list[str] = []
        after: int | None = -1
        while after is not None:
            page = http.get(f"/campaigns/{id}/results", params={"after": after, "limit": 3}).json()
            found += [r["task"] for r in page["results"]]
            after = page["next"]
        assert found == [f"t{k}" for k in range(7)]
        csv = http.get(f"/campaigns/{id}/results", params={"format": "csv"})
        assert csv.headers["content-type"].startswith("text/csv")
        assert csv.text.splitlines()[0].startswith("task,label,probability")
        assert len(csv.text.splitlines()) == 8
        lines = http.get(f"/campaigns/{id}/results", params={"format": "jsonl"})
        assert [json.loads(line)["task"] for line in lines.text.splitlines()] == found

    def test_labels_by_cursor_and_whole(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("given", tasks=4, budget=20)
        for worker in ("ann", "=bob"):
            for _ in range(4):
                lease = http.post(f"/campaigns/{id}/ask", json={"worker": worker}).json()["lease"]
                http.post(f"/leases/{lease['id']}/tell", json={"label": "yes"})
        http.post(f"/campaigns/{id}/ask", json={"worker": "cat"})
        found: list[dict[str, Any]] = []
        after: int | None = -1
        while after is not None:
            page = http.get(f"/campaigns/{id}/labels", params={"after": after, "limit": 3}).json()
            found, after = found + page["labels"], page["next"]
        assert sorted((one["task"], one["worker"]) for one in found) == [
            (f"t{k}", worker) for k in range(4) for worker in ("=bob", "ann")
        ]
        assert all(one["label"] == "yes" and one["counted"] and one["state"] == "labelled" for one in found)
        lines = http.get(f"/campaigns/{id}/labels", params={"format": "jsonl", "unanswered": True}).text.splitlines()
        waiting = [one for one in map(json.loads, lines) if one not in found]
        assert len(lines) == 9 and [(one["worker"], one["label"]) for one in waiting] == [("cat", None)]
        csv = http.get(f"/campaigns/{id}/labels", params={"format": "csv"}).text.splitlines()
        assert csv[0] == "task,worker,label,started,submitted,state,counted,dropped,comment" and len(csv) == 9
        assert sum(",'=bob," in line for line in csv) == 4

    def test_events_by_cursor(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("events")
        http.post(f"/campaigns/{id}/pause")
        http.post(f"/campaigns/{id}/resume")
        first = http.get(f"/campaigns/{id}/events", params={"limit": 3}).json()
        assert [(e["seq"], e["kind"]) for e in first["events"]] == [(1, "created"), (2, "tasks_added"), (3, "paused")]
        rest = http.get(f"/campaigns/{id}/events", params={"after": first["next"], "limit": 3}).json()
        assert [e["kind"] for e in rest["events"]] == ["resumed"]
        assert rest["next"] is None

    def test_limits_of_pages(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("limits")
        for path in ("results", "events", "workers"):
            check_problem(http.get(f"/campaigns/{id}/{path}", params={"limit": 0}), 422, "query.limit")

    def test_a_policy_of_ones_own_is_not_imported_for_a_client(self, http: httpx.Client) -> None:
        reply = http.post("/campaigns", json={"budget": 5, "policy": "antigravity:Rule"})
        check_problem(reply, 422, "cannot be chosen over HTTP")
        assert "antigravity" not in sys.modules

    def test_certificate(self, shared: Service, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
        id = shared.campaign("bound", tasks=0)
        check_problem(http.get(f"/campaigns/{id}/certificate"), 409, "no tasks")
        http.post(f"/campaigns/{id}/tasks", json=[{"id": f"t{k}"} for k in range(5)])
        told = http.get(f"/campaigns/{id}/certificate").json()
        assert told["now"] == pytest.approx(0.5)
        assert told["now"] < told["upper"] < told["ceiling"] <= 1
        assert told["gap"] == pytest.approx(told["upper"] - told["now"])
        assert [more["labels"] for more in told["more"]] == [100, 500, 2]
        assert all(0 <= more["gain"] < 1 for more in told["more"])
        assert http.get(f"/campaigns/{id}/certificate").json() == told
        lease = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]["id"]
        http.post(f"/leases/{lease}/tell", json={"label": "yes"})
        monkeypatch.setattr(certificates, "PATIENCE", 0.0)  # else the last one is good for a while
        assert http.get(f"/campaigns/{id}/certificate").json()["spent"] == 1

    def test_a_certificate_that_takes_long_is_not_waited_for(
        self, shared: Service, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Requests that wait for one would take all threads of the service; it is computed once for all of them."""
        id, go, computed = shared.campaign("slow", tasks=5), threading.Event(), []
        compute = certificates.compute_certificate

        def slow(*given: Any) -> Any:
            computed.append(given)
            assert go.wait(60)
            return compute(*given)

        monkeypatch.setattr(certificates, "compute_certificate", slow)
        monkeypatch.setattr(results, "CERTIFICATE_S", 0.05)
        for _ in range(3):
            reply = http.get(f"/campaigns/{id}/certificate")
            check_problem(reply, 503, "still being computed")
            assert int(reply.headers["retry-after"]) >= 1
        monkeypatch.setattr(results, "CERTIFICATE_S", 60.0)
        go.set()
        assert http.get(f"/campaigns/{id}/certificate").json()["tasks"] == 5 and len(computed) == 1

    def test_metrics_and_health(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("gauged")
        http.post(f"/campaigns/{id}/ask", json={"worker": "ann"})
        for path in ("/metrics", "/api/v1/metrics"):
            page = http.get(shared.url + path)
            assert page.headers["content-type"].startswith("text/plain")
            assert f'nextlabel_campaign_reserved{{campaign="{id}"}} 1.0' in page.text
            assert 'nextlabel_asks_total{outcome="leased"}' in page.text
            assert 'route="/campaigns/{campaign}/ask"' in page.text
            assert "nextlabel_request_seconds_bucket" in page.text
            assert id not in page.text.replace(f'campaign="{id}"', "")
        for path in ("/healthz", "/api/v1/healthz"):
            assert httpx.get(shared.url + path).json()["status"] == "ok"


class TestProblems:
    @pytest.mark.parametrize("setting", ["name", "question", "instructions", "policy", "id", "labels", "display_names"])
    def test_half_a_character_is_refused_wherever_a_text_comes_in(self, http: httpx.Client, setting: str) -> None:
        value: Any = ["\ud800", "yes"] if setting in ("labels", "display_names") else "\ud800"
        body = json.dumps({**QUICK, "id": "half", setting: value})
        check_problem(http.post("/campaigns", content=body, headers={"Content-Type": "application/json"}), 422)
        check_problem(http.get("/campaigns/half"), 404)

    def test_a_campaign_that_an_older_version_wrote_does_not_break_the_list(self, tmp_path: Path) -> None:
        with on_sqlite(tmp_path) as service, service.http() as http:
            service.campaign("sound")
            service.campaign("old", name="NAME")
            with closing(sqlite3.connect(tmp_path / "labels.db")) as database, database:
                database.execute("UPDATE campaigns SET config = replace(config, 'NAME', '\\ud800')")
            found = http.get("/campaigns").json()["campaigns"]
            assert [one["settings"]["name"] for one in found] == ["\ud800", ""]
            assert http.get("/campaigns/old").status_code == 200

    def test_names_that_look_alike_are_one_worker(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("alike")
        leases = [http.post(f"/campaigns/{id}/ask", json={"worker": name}).json()["lease"] for name in ("ann", " ann ")]
        assert leases[0] == leases[1]
        assert leases[0]["worker"] == "ann"
        both = [http.post(f"/campaigns/{id}/ask", json={"worker": name}).json() for name in ("Jose\u0301", "José")]
        assert both[0]["lease"] == both[1]["lease"]
        links = http.post(f"/campaigns/{id}/links", json={"workers": ["ann", "ann "]}).json()["links"]
        assert links[0]["token"] == links[1]["token"]
        for name in ("an\u200bn", "ann\u202e", "a\nnn", "  "):
            check_problem(http.post(f"/campaigns/{id}/ask", json={"worker": name}), 422, "visible characters")

    @pytest.mark.parametrize(
        "labels", [["yes", "yes\u200b"], ["no", "ｎｏ"], ["a b", "a  b"], ["", "a"], ["\u200b", "a"]]
    )
    def test_labels_that_read_alike_are_refused(self, http: httpx.Client, labels: list[str]) -> None:
        check_problem(http.post("/campaigns", json={**QUICK, "labels": labels}), 422, "read alike")

    def test_a_header_with_40_000_columns_is_refused_at_once(self, shared: Service, http: httpx.Client) -> None:
        id = shared.campaign("wide", tasks=0)
        for kind, body in (("text/csv", ",".join(f"c{k}" for k in range(20_000))), ("text/csv", "," * 40_000 + "c")):
            refused = http.post(f"/campaigns/{id}/tasks", content=f"{body}\n", headers={"Content-Type": kind})
            check_problem(refused, 422, "Give at most 500 columns")

    def test_every_wrong_field_is_named(self, http: httpx.Client) -> None:
        refused = http.post("/campaigns", json={"budget": 0, "labels": ["a"], "colour": "red"})
        check_problem(refused, 422, "body.budget: ", "; body.labels: ", "; body.colour: ")

    def test_wrong_fields_are_named(self, http: httpx.Client) -> None:
        check_problem(http.post("/campaigns", json={**CAMPAIGN, "budget": "many"}), 422, "body.budget")
        check_problem(http.post("/campaigns", json={**CAMPAIGN, "bugdet": 3}), 422, "body.bugdet")
        check_problem(http.post("/campaigns", json={"labels": ["a", "b"]}), 422, "body.budget")
        check_problem(http.post("/campaigns", json={**CAMPAIGN, "id": "No Name"}), 422, "'No Name'")
        check_problem(http.post("/campaigns", json={**CAMPAIGN, "policy": "magic"}), 422, "magic")
        check_problem(http.post("/campaigns", json={**CAMPAIGN, "prior": [1, -1]}), 422)
        check_problem(http.post("/campaigns", content=b"{", headers={"Content-Type": "application/json"}), 422)

    def test_no_such_address_or_method(self, shared: Service, http: httpx.Client) -> None:
        check_problem(http.get("/nothing"), 404, "openapi.json")
        check_problem(httpx.get(shared.url + "/nothing"), 404)
        assert "POST" in http.delete("/campaigns").headers["allow"]
        check_problem(http.delete("/campaigns"), 405)
        check_problem(http.get("/campaigns/demo/ask"), 405)

    def test_bodies_over_the_limit(self, shared: Service, http: httpx.Client) -> None:
        shared.campaign("large")
        big = json.dumps({**CAMPAIGN, "question": "x" * 3000}).encode()
        kind = {"Content-Type": "application/json"}

        def pieces() -> Iterator[bytes]:
            for start in range(0, len(big), 500):
                yield big[start : start + 500]

        for path in ("/campaigns", "/campaigns/large/ask", "/campaigns/large/links"):
            check_problem(http.post(path, content=big, headers=kind), 413, "2,000 bytes")
            check_problem(http.post(path, content=pieces(), headers=kind), 413, "2,000 bytes")
        huge = b"{}\n" * 100_000
        kind = {"Content-Type": "application/x-ndjson"}
        check_problem(http.post("/campaigns/large/tasks", content=huge, headers=kind), 413, "200,000 bytes")
        chunked = (huge[k : k + 10_000] for k in range(0, len(huge), 10_000))
        check_problem(http.post("/campaigns/large/tasks", content=chunked, headers=kind), 413, "200,000 bytes")
        assert http.get("/campaigns/large").json()["tasks"] == 5

    def test_request_ids(self, http: httpx.Client) -> None:
        given = http.get("/campaigns", headers={"X-Request-ID": "mine-1.2_3"})
        assert given.headers["x-request-id"] == "mine-1.2_3"
        for bad in ("with space", "x" * 65, "a\tb", "{}"):
            made = http.get("/campaigns", headers={"X-Request-ID": bad}).headers["x-request-id"]
            assert made != bad
            assert len(made) == 16

    def test_security_headers_everywhere(self, shared: Service, http: httpx.Client) -> None:
        for response in (http.get("/campaigns"), http.get("/nothing"), httpx.get(f"{shared.url}/api/v1/campaigns"),
                         http.get("/campaigns/nobody/results")):  # fmt: skip
            for name, value in SECURITY_HEADERS:
                assert response.headers[name.decode()] == value.decode()

    def test_ready_is_more_than_alive(
        self, shared: Service, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compiled: Future[None] = Future()
        with monkeypatch.context() as patched:
            patched.setattr(health, "crowd_compiled", lambda: compiled)
            check_problem(http.get("/readyz"), 503, "the service is compiling.", "nextlabel warm")
            assert http.get("/healthz").status_code == 200
            compiled.set_result(None)
            assert http.get("/readyz").json()["status"] == "ok"
            assert httpx.get(f"{shared.url}/readyz").status_code == 200

    def test_a_fault_is_told_without_its_trace(
        self, shared: Service, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken() -> None:
            raise ZeroDivisionError("secret words")

        monkeypatch.setattr(shared.campaign_service.store, "campaigns", broken)
        problem = check_problem(http.get("/campaigns"), 500, "request_id")
        assert "secret" not in json.dumps(problem)
        assert "ZeroDivision" not in json.dumps(problem)

    def test_one_line_per_request(self, shared: Service, caplog: pytest.LogCaptureFixture) -> None:
        id = shared.campaign("logged")
        with caplog.at_level(logging.INFO, "nextlabel.service"), shared.worker("ann", id) as ann:
            caplog.clear()
            ann.post(f"/campaigns/{id}/ask", headers={"X-Request-ID": "abc"})
            httpx.get(f"{shared.url}/w/w2.aGk.x_-y")
        lines = [
            json.loads(JsonFormatter().format(record))
            for record in caplog.records
            if record.name == "nextlabel.service"
        ]
        first, second = lines
        assert first["time"].endswith("Z")
        told = {"level": "info", "request_id": "abc", "method": "POST", "path": f"/api/v1/campaigns/{id}/ask"}
        told |= {"status": 200, "campaign": id, "worker": None}  # no names, unless the settings ask for them
        assert {key: first[key] for key in told} == told
        assert first["ms"] > 0
        assert second["path"] == "/w/***"


def test_only_who_needs_tables_waits_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        ready, slow = service.campaign("ready"), service.campaign("slow", tasks=0, policy="uniform")
        assert http.post(f"/campaigns/{ready}/ask", json={"worker": "ann"}).json()["lease"]
        door = threading.Event()
        service.campaign_service.table_cache.jobs.submit("another", lambda _: door.wait())
        monkeypatch.setattr(work, "TABLES_WAIT_S", 0.05)
        http.post(f"/campaigns/{slow}/tasks", json=[{"id": "a"}])
        refused = http.post(f"/campaigns/{slow}/ask", json={"worker": "ann"})
        assert (refused.json()["reason"], refused.headers["retry-after"]) == ("preparing", "2")
        assert http.post(f"/campaigns/{ready}/ask", json={"worker": "bob"}).json()["lease"]
        door.set()
        monkeypatch.setattr(work, "TABLES_WAIT_S", PATIENCE_S)
        assert http.post(f"/campaigns/{slow}/ask", json={"worker": "ann"}).json()["lease"]


def test_a_database_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        id = service.campaign()

        def down(*_: object) -> None:
            raise OperationalError("SELECT 1", {}, Exception("password=secret"))

        for name in ("transactions", "get", "row"):
            monkeypatch.setattr(service.campaign_service.store, name, down)
        for response in (http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}), http.get("/healthz"),
                         http.get(f"/campaigns/{id}")):  # fmt: skip
            assert "secret" not in json.dumps(check_problem(response, 503, "database"))
            assert response.headers["retry-after"] == "1"


def test_pages_find_room() -> None:
    def pages(app: FastAPI) -> None:
        @app.get("/")
        async def home() -> Response:
            return Response("<p>hi", media_type="text/html", headers={"content-security-policy": "default-src 'self'"})

    with running("memory:", pages=pages) as service:
        page = httpx.get(service.url + "/")
        assert (page.status_code, page.headers["content-security-policy"]) == (200, "default-src 'self'")
        assert page.headers["x-content-type-options"] == "nosniff"


def test_the_same_over_memory() -> None:
    with running("memory:") as service, service.http() as http:
        id = service.campaign()
        lease = http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"]["id"]
        assert http.post(f"/leases/{lease}/tell", json={"label": "yes"}).json()["counted"] is True
        assert http.get(f"/campaigns/{id}/results").json()["results"]
        assert http.get(f"/campaigns/{id}/certificate").json()["spent"] == 1


def test_workers_cannot_tell_controls_from_other_tasks(tmp_path: Path) -> None:
    """Every reply to a worker has the same keys, and none of them says what is known."""
    with on_sqlite(tmp_path) as service:
        id = service.campaign("controls", tasks=8)
        with service.http() as http, service.worker("ann", id) as worker:
            known = {f"t{k}": "yes" for k in range(4)}
            assert http.post(f"/campaigns/{id}/gold", json={"answers": known}).json() == {"changed": 4}
            assert http.post(f"/campaigns/{id}/gold", json={"answers": {"t0": "maybe"}}).status_code == 422
            seen = set()
            for _ in range(6):
                got = worker.post(f"/campaigns/{id}/ask").json()
                told = worker.post(f"/leases/{got['lease']['id']}/tell", json={"label": "yes"}).json()
                seen.add(
                    (frozenset(got["lease"]), frozenset(got["lease"]["payload"]), frozenset(told), told["counted"])
                )
                assert "gold" not in str((got, told)) and "control" not in str((got, told)).replace(id, "")
            assert len(seen) == 1
            status = http.get(f"/campaigns/{id}").json()
            assert (status["spent"], status["kept"]) == (4, 6)
            controls = [one["control"] for one in http.get(f"/campaigns/{id}/results").json()["results"]]
            assert controls == [True] * 4 + [False] * 4


def test_operations_have_names_that_a_client_generator_can_use(shared: Service) -> None:
    with shared.http() as http:
        document = http.get("/openapi.json").json()["paths"]
    names = [one["operationId"] for operations in document.values() for one in operations.values()]
    assert len(set(names)) == len(names) and all(name.isidentifier() and "api_v1" not in name for name in names)


def test_no_warning_while_another_thread_puts_the_filters_of_warnings_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Numba's compiler does: what FastAPI hides while it reads the routes is hidden no more then."""
    monkeypatch.setattr(warnings, "simplefilter", lambda *_, **__: None)
    assert create_app(CampaignService(SqlStore("memory:"))).openapi()["paths"]  # warnings are errors here
