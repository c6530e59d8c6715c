"""Platforms over HTTP: Prolific's signed events, visits, bonuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from nextlabel.errors import InputError
from nextlabel.integrations import prolific
from nextlabel.service.settings import ServiceSettings
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

SECRET = "cGNqFPb6y0RT3XO9XVSessBDYIbHQ"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("platforms")
    with on_sqlite(folder, pages=mount_pages, prolific_secret=f"old, {SECRET}") as running:
        yield running


def event(status: str, submission: str, participant: str = "p1") -> dict[str, str]:
    """The body of an event (docs.prolific.com, Webhooks, Receiving)."""
    return {
        "resource_id": submission, "event_type": "submission.status.change", "participant_id": participant,
        "status": status,
    }  # fmt: skip


def send(service: Service, body: Any, secret: str = SECRET, ago: int = 0, **headers: str) -> httpx.Response:
    """Send an event as Prolific does, signed so many seconds ago."""
    data, at = json.dumps(body).encode(), str(int(service.clock()) - ago)
    signed = {prolific.SIGNATURE: prolific.signature(secret, at, data), prolific.SIGNED_AT: at, **headers}
    with service.http("") as http:
        return http.post("/hooks/prolific", content=data, headers={"content-type": "application/json", **signed})


def come(service: Service, id: str, submission: str, participant: str = "p1") -> None:
    """Come from Prolific and take an item."""
    with service.http() as http:
        link = http.post(f"/campaigns/{id}/links", json={}).json()["join"]["url"]
    given = {"PROLIFIC_PID": participant, "STUDY_ID": "study1", "SESSION_ID": submission}
    with httpx.Client(timeout=120, follow_redirects=True) as browser:
        assert "data-lease" in browser.get(link, params=given).text


def test_a_returned_submission_releases_its_item(service: Service) -> None:
    id = service.campaign("returned")
    come(service, id, "s1")
    store = service.campaign_service.store
    assert store.row(id).reserved == 1
    assert send(service, event("ACTIVE", "s1")).json() == {"effect": "kept"} and store.row(id).reserved == 1
    assert send(service, event("RETURNED", "s1")).json() == {"effect": "ended"} and store.row(id).reserved == 0
    with service.http() as http:
        (visit,) = http.get(f"/campaigns/{id}/visits").json()["visits"]
        assert http.get(f"/campaigns/{id}/visits", params={"platform": "mturk"}).json() == {"visits": []}
    assert (visit["id"], visit["study"], visit["worker"], visit["status"]) == (
        "s1",
        "study1",
        "prolific:p1",
        "RETURNED",
    )
    assert visit["begun_at"].endswith("Z")


def test_submissions_of_other_studies_and_other_events_do_nothing(service: Service) -> None:
    id = service.campaign("untouched")
    come(service, id, "s2")
    for body in (
        event("RETURNED", "another"), event("RETURNED", "s2", "p2"),
        {"event_type": "study.status.change", "resource_id": "s2", "metadata": {}, "status": "COMPLETED"},
    ):  # fmt: skip
        assert send(service, body).json() == {"effect": "unknown"}
    assert service.campaign_service.store.row(id).reserved == 1


def test_events_out_of_order(service: Service) -> None:
    id, now = service.campaign("disordered"), int(service.clock())
    come(service, id, "s3")
    assert send(service, event("AWAITING REVIEW", "s3")).json() == {"effect": "kept"}
    late = send(service, event("TIMED-OUT", "s3"), ago=30, **{"x-timestamp": str(now + 3600)})  # which nobody signed
    assert late.json() == {"effect": "outdated"} and service.campaign_service.store.row(id).reserved == 1


def test_a_rejection_drops_labels(service: Service) -> None:
    id = service.campaign("rejecting")
    come(service, id, "s4")
    (lease,) = service.campaign_service.store.leases(id, range(5))
    service.campaign_service[id].tell(lease.id, "yes")
    assert send(service, event("REJECTED", "s4")).json() == {"effect": "rejected"}
    with service.http() as http:
        (worker,) = http.get(f"/campaigns/{id}/workers").json()["workers"]
    assert (worker["dropped"], worker["standing"]) == (1, "blocked")
    assert worker["reason"] == "Prolific: submission s4 is rejected"


def test_what_prolific_has_not_signed_is_refused(service: Service) -> None:
    assert send(service, event("RETURNED", "s1"), secret="guess").status_code == 401
    assert send(service, event("RETURNED", "s1"), **{prolific.SIGNATURE: ""}).status_code == 401
    assert send(service, event("RETURNED", "s1"), secret="old").status_code == 200
    assert send(service, [1]).status_code == 422
    with service.http() as http:  # a token is no signature
        assert http.post("/hooks/prolific", json=event("RETURNED", "s1")).status_code == 401
        assert http.get("/hooks/prolific").status_code == 405


def test_without_a_secret_there_is_no_such_address(tmp_path_factory: pytest.TempPathFactory) -> None:
    with on_sqlite(tmp_path_factory.mktemp("plain")) as service:
        assert send(service, event("RETURNED", "s1")).status_code == 404


def test_bonuses_are_a_file(service: Service) -> None:
    id = service.campaign("paid", pay_per_label=0.25)
    come(service, id, "s5")
    (lease,) = service.campaign_service.store.leases(id, range(5))
    service.campaign_service[id].tell(lease.id, "yes")
    with service.http() as http:
        asked = {"platform": "prolific", "reward": 0.1}
        assert http.get(f"/campaigns/{id}/bonuses", params=asked).text == ""  # Prolific has said nothing of s5
        assert send(service, event("AWAITING REVIEW", "s5")).json() == {"effect": "kept"}
        file = http.get(f"/campaigns/{id}/bonuses", params={"platform": "prolific", "reward": 0.1})
        assert file.text == "p1,0.15\n" and file.headers["content-type"] == "text/csv; charset=utf-8"
        assert 'filename="paid-prolific-bonuses.csv"' in file.headers["content-disposition"]
        assert http.get(f"/campaigns/{id}/bonuses", params={"platform": "other"}).status_code == 422
        unpaid = service.campaign("unpaid")
        assert http.get(f"/campaigns/{unpaid}/bonuses", params={"platform": "mturk"}).status_code == 422
        viewer = http.get("/campaigns/nobody/visits")
        assert viewer.status_code == 404


def test_settings_are_checked() -> None:
    assert ServiceSettings(prolific_drops="returned, timed-out").drop_statuses == ("RETURNED", "TIMED OUT")
    assert ServiceSettings().drop_statuses == () and ServiceSettings().prolific_secrets == ()
    with pytest.raises(InputError, match="APPROVED"):
        ServiceSettings(prolific_drops="APPROVED")
