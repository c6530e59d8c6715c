"""The policy ``crowd`` over HTTP: API, client and dashboard show what was learnt, and no bound that does not hold."""

from __future__ import annotations

import html
import re
import time
from concurrent.futures import Future
from pathlib import Path

import httpx
import pytest

import nextlabel as nl
from nextlabel.application import refits, table_cache, worker_reports
from nextlabel.application import service as service_module
from nextlabel.errors import BusyError
from nextlabel.web.pages import mount_pages
from nextlabel.web.render import render
from service_fixtures import PATIENCE_S, Service, on_sqlite
from stores import Clock, opened, service_of_store, simple


def patient_ask(http: httpx.Client, campaign: str, worker: str) -> dict[str, str] | None:
    """A lease; while the policy is compiled the service says that it prepares."""
    begun = time.monotonic()
    while True:
        got = http.post(f"/campaigns/{campaign}/ask", json={"worker": worker}).json()
        if got.get("reason") != "preparing" or time.monotonic() > begun + PATIENCE_S:
            return got["lease"]
        time.sleep(0.2)


def label_all(service: Service, campaign: str) -> None:
    """Ann and bob see what is there (odd items are yes), eve says yes to everything."""
    with service.http() as http:
        for worker in ("ann", "bob", "eve"):
            while lease := patient_ask(http, campaign, worker):
                right = "yes" if int(lease["task"][1:]) % 2 else "no"
                said = "yes" if worker == "eve" else right
                assert http.post(f"/leases/{lease['id']}/tell", json={"label": said}).status_code == 200


def test_everything_that_is_shown_comes_from_what_was_learnt(tmp_path: Path) -> None:
    with on_sqlite(tmp_path, pages=mount_pages) as service:
        id = service.campaign("crowd", tasks=12, policy="crowd", budget=36, turn_away=False)
        label_all(service, id)
        crowd = service.campaign_service.crowd(service.campaign_service.store.row(id))
        assert crowd is not None and crowd.labels.sum() == 36
        with nl.Client(service.url, service.token) as client:
            results = list(client.results(id))
            certificate = client.certificate(id)
        assert [r.label for r in results] == ["yes" if k % 2 else "no" for k in range(12)]
        assert [r.probability for r in results] == pytest.approx(crowd.beliefs.max(axis=1).tolist())
        assert certificate.now == pytest.approx(crowd.expected_accuracy)
        assert certificate.low is not None and certificate.low <= certificate.now and certificate.more == ()
        assert certificate.upper is None and certificate.forecast == pytest.approx(certificate.now)
        with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
            assert browser.post("/sign-in", data={"token": service.token}).status_code == 303
            begun = time.monotonic()
            while "being computed" in (page := browser.get(f"/campaigns/{id}").text) or "being learnt" in page:
                assert time.monotonic() < begun + PATIENCE_S
                time.sleep(0.1)
            assert "By what the campaign has learnt of its workers" in page
            assert f"{crowd.expected_accuracy:.1%}" in page and f"{crowd.expected.low:.1%}" in page
            assert "an audit of random items corrects it" in page
            assert "no policy can" not in page and "proved" not in page
            assert "Workers and items were learnt anew from 36 labels of 3 workers" in page
            meanings = " ".join(browser.get("/help/numbers").text.split())
            assert "0.02 means: fifty labels make one more item right" in meanings and "/help/numbers" in page
            task = browser.get(f"/campaigns/{id}/tasks/1").text
            assert f"{crowd.beliefs[1, 1]:.1%}" in task


def test_reading_does_not_wait_for_ever_for_what_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a new installation kernels are compiled for a minute: requests that wait would take all threads."""
    monkeypatch.setattr(service_module, "READ_PATIENCE_S", 0.05)
    compiled: Future[None] = Future()
    for module in (refits, service_module, table_cache):  # what goes on in the background waits too
        monkeypatch.setattr(module, "crowd_compiled", lambda: compiled)
    with on_sqlite(tmp_path) as service, service.http() as http:
        http.post("/campaigns", json={"id": "c", "budget": 4, "policy": "crowd"}).raise_for_status()
        http.post("/campaigns/c/tasks", json=["a", "b"]).raise_for_status()
        try:
            reply = http.get("/campaigns/c/results")
            assert reply.status_code == 503 and "still being computed" in reply.json()["detail"]
            assert "retry-after" in reply.headers
        finally:
            compiled.set_result(None)
        monkeypatch.setattr(service_module, "READ_PATIENCE_S", PATIENCE_S)
        assert len(http.get("/campaigns/c/results").json()["results"]) == 2


def test_one_request_learns_what_workers_can_do_and_no_other_waits_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        id = service.create(simple(), tasks=["a", "b"]).id
        service[id].tell(service[id].ask("ann").id, "yes")  # type: ignore[union-attr]
        monkeypatch.setattr(worker_reports, "WAIT_S", 0.05)
        with service.worker_reports._lock, pytest.raises(BusyError, match="still being computed"):
            service.worker_reports.of(id)
        known = service.worker_reports.of(id)
        service[id].tell(service[id].ask("bob").id, "yes")  # type: ignore[union-attr]
        with service.worker_reports._lock:
            assert [one.worker for one in service.worker_reports.of(id)] == ["ann", "bob"] and len(known) == 1
        service.table_cache.close()


def test_the_documents_say_what_the_help_page_says() -> None:
    said = " ".join((Path(__file__).parents[2] / "docs" / "numbers.md").read_text(encoding="utf-8").split())
    page = re.sub(r"\s+", " ", html.unescape(render("dashboard/numbers.html")))
    found = re.findall(r"<dt>(.*?)</dt> <dd> <p> (.*?) </p> <p class=\"muted\"> (.*?) </p> </dd>", page)
    assert len(found) > 8
    for name, says, mind in found:
        assert f"## {name}" in said and says in said and mind in said
