"""Who may do what: the matrix of tokens and routes, links, and the tokens themselves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import httpx
import pytest

from nextlabel.campaign.records import AccessToken
from nextlabel.errors import InputError, TokenError
from nextlabel.service import access
from nextlabel.service.access import create_token, first_token, hashed, rotate_secrets
from nextlabel.service.links import LinkSigner
from nextlabel.store.sql import open_store
from service_fixtures import Service, on_sqlite

REQUESTER_ROUTES = [
    ("GET", "/campaigns"), ("POST", "/campaigns"), ("GET", "/campaigns/demo"), ("PATCH", "/campaigns/demo"),
    ("POST", "/campaigns/demo/pause"), ("POST", "/campaigns/demo/resume"), ("POST", "/campaigns/demo/tasks"),
    ("POST", "/campaigns/demo/links"), ("POST", "/campaigns/demo/links/revoke"),
    ("GET", "/campaigns/demo/results"), ("GET", "/campaigns/demo/events"),
    ("GET", "/campaigns/demo/workers"), ("GET", "/campaigns/demo/certificate"), ("GET", "/metrics"),
    ("GET", "/nothing"), ("GET", "/campaigns/demo/ask/"), ("POST", "/campaigns//ask"),
]  # fmt: skip
WORK_ROUTES = ["/campaigns/demo/ask", *(f"/leases/demo-0-00/{move}" for move in ("tell", "release", "renew", "undo"))]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("auth"), failed_sign_ins_per_minute=100_000) as running:
        running.campaign("demo")
        running.campaign("second")
        yield running


@pytest.fixture
def links(service: Service) -> LinkSigner:
    return LinkSigner.of(service.campaign_service.store)


def forged(token: str) -> list[str]:
    """Tokens that are nearly right."""
    kind, payload, signature = token.split(".")
    other = base64.urlsafe_b64encode(json.dumps(["demo", "eve", 0]).encode()).rstrip(b"=").decode()
    changed = "AA" if signature[-2:] != "AA" else "BB"
    return [
        f"{kind}.{other}.{signature}", f"{kind}.{payload}.{signature[:-2]}{changed}", f"{kind}.{payload}.",
        f"j3.{payload}.{signature}", f"{kind}.{payload}", f"w2.{payload}.{signature}", f"{kind}", f"{kind}..", "..",
        f"{token}x", "nl_" + "x" * 43, "nl_", "é", f"{kind}.é.{signature}",
    ]  # fmt: skip


def test_nobody_and_forgers_get_nowhere(service: Service, links: LinkSigner) -> None:
    tokens = ["", "x", *forged(links.worker_token("demo", "ann")), links.join_token("demo"), service.token[:-1]]
    for token in tokens:
        header = {"Authorization": f"Bearer {token}".encode()} if token else {}
        with httpx.Client(base_url=f"{service.url}/api/v1", headers=header) as http:
            for method, path in [*REQUESTER_ROUTES, *(("POST", path) for path in WORK_ROUTES)]:
                refused = http.request(method, path, content=b"{" if method == "POST" else None)
                assert refused.status_code == 401, (token, method, path, refused.text)
                assert refused.headers["www-authenticate"] == "Bearer"
                assert refused.json()["type"] == "urn:nextlabel:no-token"


@pytest.mark.parametrize("header", ["Basic abc", "Bearer", "Bearer  -", "token", ""])
def test_other_headers(service: Service, header: str) -> None:
    assert httpx.get(f"{service.url}/api/v1/campaigns", headers={"Authorization": header}).status_code == 401


def test_workers_do_work_and_nothing_else(service: Service) -> None:
    with service.worker("ann") as ann:
        for method, path in REQUESTER_ROUTES:
            refused = ann.request(method, path)
            assert refused.status_code == 403, (method, path)
            assert refused.json()["type"] == "urn:nextlabel:not-allowed"
        assert ann.post("/campaigns/demo/ask").status_code == 200
        assert ann.get("/healthz").status_code == 200


def test_a_worker_is_who_the_link_says(service: Service) -> None:
    with service.worker("bob") as bob:
        assert bob.post("/campaigns/demo/ask", json={"worker": "ann"}).json()["lease"]["worker"] == "bob"


def test_another_workers_lease_does_not_exist(service: Service) -> None:
    with service.worker("cy") as cy, service.worker("dee") as dee, service.worker("cy", "second") as elsewhere:
        lease = cy.post("/campaigns/demo/ask").json()["lease"]["id"]
        for move in ("tell", "release", "renew", "undo"):
            for other in (dee, elsewhere):
                body = {"label": "yes"} if move == "tell" else {}
                assert other.post(f"/leases/{lease}/{move}", json=body).status_code == 404
        assert cy.post(f"/leases/{lease}/tell", json={"label": "yes"}).status_code == 200
        with service.http() as requester:
            assert requester.post(f"/leases/{lease}/undo").status_code == 200


def test_a_link_is_for_one_campaign(service: Service) -> None:
    with service.worker("ann") as ann:
        for other in ("second", "nobody"):
            assert ann.post(f"/campaigns/{other}/ask").status_code == 403


def test_links_are_the_same_each_time_and_join_by_platform(service: Service, links: LinkSigner) -> None:
    with service.http() as http:
        made = [http.post("/campaigns/demo/links", json={"workers": ["ann", "zoë"]}).json() for _ in range(2)]
    assert made[0] == made[1]
    assert [links.read_worker(link["token"]) for link in made[0]["links"]] == [("demo", "ann"), ("demo", "zoë")]
    assert made[0]["links"][0]["url"] == f"{service.url}/w/{made[0]['links'][0]['token']}"
    join = made[0]["join"]
    assert join["url"] == f"{service.url}/j/{join['token']}"
    assert join["prolific"].startswith(join["url"] + "?PROLIFIC_PID={{%PROLIFIC_PID%}}&")
    assert join["frame"] == f"{service.url}/f/{join['token']}"
    token = links.joined(join["token"], {"PROLIFIC_PID": "5f", "STUDY_ID": "x"})
    assert links.read_worker(token) == ("demo", "prolific:5f")
    with service.http(token) as http:
        assert http.post("/campaigns/demo/ask").json()["lease"]["worker"] == "prolific:5f"


def test_joining() -> None:
    links = LinkSigner(b"k" * 32)
    join = links.join_token("demo")
    assert links.read_worker(links.joined(join, {"workerId": "A1"})) == ("demo", "mturk:A1")
    assert links.read_worker(links.joined(join, {"worker": "ann"})) == ("demo", "joined:ann")
    for parameters in ({}, {"PROLIFIC_PID": ""}, {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}, {"workerId": "x" * 129}):
        with pytest.raises(InputError):
            links.joined(join, parameters)
    for token in (links.worker_token("demo", "ann"), LinkSigner(b"o" * 32).join_token("demo"), join + "x", "", "é"):
        with pytest.raises(TokenError):
            links.joined(token, {"worker": "ann"})


def test_links_end_with_their_secret() -> None:
    store = open_store("memory:")
    token = LinkSigner.of(store).worker_token("demo", "ann")
    assert LinkSigner.of(store).read_worker(token) == ("demo", "ann")
    rotate_secrets(store)
    assert LinkSigner.of(store).read_worker(token) is None


def test_the_token_is_shown_once_and_kept_as_a_hash() -> None:
    store = open_store("memory:")
    token = first_token(store)
    assert token is not None
    assert token.startswith("nl_")
    assert len(token) == 46
    assert first_token(store) is None
    assert [(known.name, known.hash) for known in store.records.find(AccessToken)] == [("administrator", hashed(token))]
    other = create_token(store, replace=True)
    assert [known.hash for known in store.records.find(AccessToken)] == [hashed(other)]


def test_a_new_token_ends_the_old_one(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CACHE_S", 0.0)
    monkeypatch.setattr(access, "MISMATCH_CACHE_S", 0.0)
    with service.http() as old:
        assert old.get("/campaigns").status_code == 200
        service.token = create_token(service.campaign_service.store, replace=True)
        assert old.get("/campaigns").status_code == 401
    with service.http() as new:
        assert new.get("/campaigns").status_code == 200
