"""Two owners on one service: neither sees nor changes what is the other's, by any route; and who changed what."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from nextlabel.cli.app import run
from nextlabel.client import Client
from nextlabel.errors import ConflictError, NotAllowedError, NotFoundError
from nextlabel.service import access
from nextlabel.service.access import campaign_in, create_token
from nextlabel.web.pages import mount_pages
from service_fixtures import QUICK, Service, on_sqlite

PROBES = 15
#: What is in Bea's campaign, and in no reply to Ann.
SECRET = "beas-secret"
#: Routes that name no campaign: what they show of campaigns, and what they take, is tested below.
GLOBAL = {
    "/", "/campaigns", "/access", "/help/numbers", "/help/api", "/new", "/sign-in", "/sign-out", "/healthz", "/readyz",
    "/metrics", "/openapi.json", "/tokens", "/tokens/{name}", "/activity", "/hooks/prolific",
    "/new/{upload}", "/new/{upload}/curve", "/new/{upload}/import/{id}",
}  # fmt: skip
#: Pages of workers and experts, who have signed links and no tokens (tests/web/test_worker.py, test_audit_link.py).
LINKED = re.compile(r"/(?:w|j|f|a)/\{token\}|/(?:work|frame)/\{place\}.*|/audit/\{campaign\}|/static.*")


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(access, "CACHE_S", 0.0)
    monkeypatch.setattr(access, "MISMATCH_CACHE_S", 0.0)
    with on_sqlite(tmp_path, pages=mount_pages) as running:
        yield running
    while clients:
        clients.pop().close()


clients: list[httpx.Client] = []


def owner(service: Service, name: str, campaign: str) -> httpx.Client:
    """A requester with a campaign of their own."""
    http = service.http(create_token(service.campaign_service.store, name, "requester"))
    clients.append(http)
    made = http.post("/campaigns", json={**QUICK, "id": campaign, "name": f"{name}s-secret", "pay_per_label": 0.1})
    assert made.status_code == 201
    rows = [{"id": "t0", "text": f"{name}s-secret"}, {"id": "t1", "text": "more"}]
    assert http.post(f"/campaigns/{campaign}/tasks", json=rows).status_code == 200
    return http


@contextmanager
def signed_in(service: Service, http: httpx.Client | None = None) -> Iterator[httpx.Client]:
    token = service.token if http is None else http.headers["authorization"].removeprefix("Bearer ")
    with httpx.Client(base_url=service.url, timeout=300) as browser:
        assert browser.post("/sign-in", data={"token": token}).status_code == 303
        yield browser


def routes(service: Service) -> list[tuple[str, str]]:
    """Every method and path of the application, those of FastAPI's document among them."""
    found = set()
    for part in service.app.routes:
        there = part.effective_route_contexts() if hasattr(part, "effective_route_contexts") else [part]
        found |= {(method, one.path) for one in there for method in getattr(one, "methods", None) or ()}
    document = service.app.openapi()["paths"]
    assert found >= {(method.upper(), path) for path, methods in document.items() for method in methods}
    return sorted(found)


def test_every_route_is_checked_by_its_campaign_or_is_known_to_name_none(service: Service) -> None:
    for _, path in routes(service):
        inner = path.removeprefix("/api/v1")
        if inner in GLOBAL or LINKED.fullmatch(inner):
            continue
        address = re.sub(r"\{lease\}", "beas-0-000000000000", path.replace("{campaign}", "beas"))
        assert "{campaign}" in path or "{lease}" in path, f"{path}: does it show a campaign? Name it here, and test it."
        assert campaign_in(re.sub(r"\{\w+\}", "x", address)) == "beas", path


def probes(path: str, lease: str, ids: dict[str, str], draw: random.Random, many: int) -> Iterator[tuple[str, Any]]:
    """Addresses and bodies that somebody might try."""
    parameters = {"campaign": "beas", "lease": lease, "number": "0", "format": "csv", **ids}
    plain = re.sub(r"\{(\w+)\}", lambda found: parameters[found[1]], path)
    encoded = plain.replace("beas", "".join(f"%{ord(one):02x}" for one in "beas"))
    queries = ["", "format=csv", "limit=1", "after=0", "wait=1", "name=ann", "platform=prolific", "campaign=anns"]
    bodies: list[Any] = [
        {}, {"worker": "ann"}, {"label": "yes"}, {"workers": ["ann"]}, {"budget": 9}, {"items": 1},
        {"answers": {"t0": "yes"}}, {"owner": "ann"}, {"url": "https://example.org/x"}, [{"id": "t9"}],
        {"worker": "ann", "standing": "blocked"},
        {"campaign": "anns"}, {"audits": [1]}, {"tasks": ["t0"]}, {"typed": "beas"},
    ]  # fmt: skip
    for k in range(many):
        address = plain if k < 10 else draw.choice([plain, plain, encoded, plain.replace("beas", "anns/../beas")])
        query = draw.choice(queries)
        yield (f"{address}?{query}" if query else address), bodies[k % len(bodies)]


@pytest.mark.parametrize("many", [PROBES, pytest.param(200, marks=pytest.mark.long)])
def test_every_route_is_probed_with_the_others_token(service: Service, many: int) -> None:
    ann, bea = owner(service, "ann", "anns"), owner(service, "bea", "beas")
    lease = bea.post("/campaigns/beas/ask", json={"worker": "eve"}).json()["lease"]["id"]
    hook = bea.post("/campaigns/beas/webhooks", json={"url": "https://example.org/x"}).json()["webhook"]["id"]
    before, draw, let_through, tried = bea.get("/campaigns/beas").json(), random.Random(28), [], 0
    links = bea.post("/campaigns/beas/links", json={"workers": ["eve"]}).json()
    with signed_in(service, ann) as browser:
        for method, path in routes(service):
            inner = path.removeprefix("/api/v1")
            if inner in GLOBAL or LINKED.fullmatch(inner):
                continue
            client = ann if path.startswith("/api/v1") else browser
            ids = {"id": hook if "webhook" in path else "0" * 8}
            for address, body in probes(inner if client is ann else path, lease, ids, draw, many):
                sent = {} if method in ("GET", "HEAD") else {"json": body} if client is ann else {"data": {}}
                reply = client.request(method, address, **sent)  # type: ignore[arg-type]
                tried += 1
                if reply.status_code != 404 or SECRET in reply.text:
                    let_through.append((method, address, reply.status_code))
    assert not let_through, let_through[:5]
    assert tried >= many * 60
    assert bea.get("/campaigns/beas").json() == before
    assert bea.post("/campaigns/beas/links", json={"workers": ["eve"]}).json() == links


def test_lists_show_ones_own_alone(service: Service) -> None:
    ann, bea = owner(service, "ann", "anns"), owner(service, "bea", "beas")
    admin = service.http()
    clients.append(admin)
    shown = [[one["id"] for one in http.get("/campaigns").json()["campaigns"]] for http in (ann, bea, admin)]
    assert shown == [["anns"], ["beas"], ["beas", "anns"]]
    assert 'campaign="anns"' in ann.get("/metrics").text and "beas" not in ann.get("/metrics").text
    for http, other in ((ann, "bea"), (bea, "ann")):
        with signed_in(service, http) as browser:
            for address in ("/", "/access"):
                assert f"{other}s" not in browser.get(address).text, address
        said = json.dumps([http.get("/activity").json(), http.get("/tokens").json()])
        assert f'"{other}' not in said
        assert ann.get("/activity", params={"campaign": "beas"}).json() == {"activity": []}


def test_an_id_of_somebody_else_cannot_be_taken_nor_one_that_nobody_owns(service: Service) -> None:
    ann, bea = owner(service, "ann", "anns"), owner(service, "bea", "beas")
    service.campaign("plain")
    same = {**QUICK, "id": "beas", "name": "beas-secret", "pay_per_label": 0.1}
    for body in (same, {**QUICK, "id": "plain"}):
        refused = ann.post("/campaigns", json=body)
        assert refused.status_code == 409 and SECRET not in refused.text
    assert ann.get("/campaigns/plain").status_code == 404
    assert bea.post("/campaigns", json=same).status_code == 200
    assert bea.delete("/campaigns/beas").status_code == 200
    assert (bea.get("/campaigns/beas").status_code, ann.get("/campaigns/beas").status_code) == (410, 404)


def test_tokens_over_http_and_their_limits(service: Service) -> None:
    owner(service, "ann", "anns")
    owner(service, "bea", "beas")
    store = service.campaign_service.store
    with (
        Client(service.url, service.token) as admin,
        Client(service.url, create_token(store, "boss", "requester", "ann")) as ann,
    ):
        assert [one.id for one in ann.campaigns()] == ["anns"]
        second = ann.create(id="anns2", **QUICK).id  # type: ignore[arg-type]
        made = ann.create_token("looks", "viewer", campaigns=["anns", "beas"])
        with Client(service.url, made) as looks:
            assert [one.id for one in looks.campaigns()] == ["anns"]
            assert looks.status("anns").id == "anns"
            for id in ("beas", second):
                with pytest.raises(NotFoundError):
                    looks.status(id)
            with pytest.raises(NotAllowedError):
                looks.tokens()
        works = Client(service.url, ann.create_token("works", campaigns=["anns"]))
        assert works.ask("anns", "eve")
        assert works.pause("anns").state == "paused"
        for refused in (
            lambda: works.create(**QUICK),
            lambda: works.create_token("more"),
            lambda: works.revoke_token("looks"),
        ):  # type: ignore[arg-type]
            with pytest.raises(NotAllowedError, match="limited to anns"):
                refused()
        for role, whose in (("administrator", None), ("requester", "bea")):
            with pytest.raises(NotAllowedError):
                ann.create_token("sly", role, owner=whose)  # type: ignore[arg-type]
        with pytest.raises(ConflictError):
            ann.create_token("bea")
        with pytest.raises(NotFoundError):
            ann.revoke_token("bea")
        with pytest.raises(NotAllowedError):
            ann.set_owner("anns", "bea")
        works.close()
        ann.revoke_token("works")
        assert {one["name"] for one in ann.tokens()} == {"ann", "boss", "looks"}
        assert {one["name"] for one in admin.tokens()} == {"administrator", "ann", "bea", "boss", "looks"}
        admin.set_owner("beas", "ann")
        assert {one.id for one in ann.campaigns()} == {"anns", "anns2", "beas"}
        done = [(one.token, one.campaign, one.request) for one in ann.activity()]
    assert done[0] == ("administrator", "beas", "PUT /campaigns/owner")
    assert ("works", "anns", "POST /campaigns/pause") in done
    assert ("boss", "anns2", "POST /campaigns") in done
    assert not [one for one in done if one[2].endswith("/ask")]


def test_the_page_makes_and_ends_tokens_and_hands_campaigns_over(service: Service) -> None:
    ann = owner(service, "ann", "anns")
    with signed_in(service, ann) as browser, signed_in(service) as admin:
        made = browser.post("/access", data={"name": "helper", "role": "auditor", "campaigns": "anns"})
        (token,) = re.findall(r'id="made" value="(nl_[\w-]+)"', made.text)
        with service.http(token) as helper:
            assert helper.get("/campaigns/anns/events").status_code == 200
            assert browser.post("/access", data={"revoke": "helper"}).status_code == 303
            assert helper.get("/campaigns/anns").status_code == 401
        assert browser.post("/access", data={"name": "x", "role": "administrator"}).status_code == 403
        assert browser.post("/access", data={"campaign": "anns", "owner": "bea"}).status_code == 422
        assert browser.post("/campaigns/anns/pause").status_code == 303
        assert admin.post("/access", data={"campaign": "anns", "owner": "bea"}).status_code == 303
        assert browser.get("/campaigns/anns").status_code == 404
        page = admin.get("/access").text
        assert "POST /campaigns/pause" in page and "POST /sign-in" in page


def test_the_command_line_hands_over_and_shows_who_did_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEXTLABEL_DB", "labels.db")
    assert run(["campaign", "create", "--budget", "5", "--id", "demo"]) == 0
    assert run(["token", "create", "ann", "--campaigns", "demo"]) == 0
    assert run(["campaign", "change", "demo", "--owner", "ann"]) == 0
    assert "Its owner is ann." in capsys.readouterr().err
    assert run(["token", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["tokens"]
    assert (row["role"], row["owner"], row["campaigns"]) == ("requester", "ann", "demo")
    assert run(["token", "list", "--activity", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"activity": []}
    for words in (
        ["campaign", "change", "none", "--owner", "ann"], ["campaign", "change", "demo", "--owner", "two words"],
        ["token", "create", "x", "--role", "administrator", "--owner", "ann"],
    ):  # fmt: skip
        assert run(words) in (1, 2)
        assert capsys.readouterr().err.startswith("error: ")


def test_addresses_name_their_campaign() -> None:
    for address in (
        "/campaigns/demo",
        "/api/v1/campaigns/demo/x/y",
        "/api/v1/leases/demo-0-ab/tell",
        "/campaigns/demo/\n",
    ):
        assert campaign_in(address) == "demo"
    for address in ("/", "/campaigns", "/api/v1/campaigns", f"/x{quote('/campaigns/demo')}"):
        assert campaign_in(address) == ""
