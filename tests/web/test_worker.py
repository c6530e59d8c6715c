"""The worker's page: what it shows, who may see it, and a real browser on it at a desk and on a phone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from browser import DESKTOP, PHONE, at, check_accessible, chromium, context
from nextlabel.application.table_cache import TableCache
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import InputError, TablesPendingError
from nextlabel.service.settings import ServiceSettings
from nextlabel.web.pages import mount_pages
from nextlabel.web.worker import steps
from nextlabel.web.worker.session import LAST_LEASE_COOKIE, SESSION_COOKIE, checked_completion
from nextlabel.web.worker.task_view import PayloadPart, choices, is_address, payload_parts
from nextlabel.web.worker.texts import worker_texts
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
PROLIFIC = "https://app.prolific.com/submissions/complete?cc=CODE"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cfc0500f0003850180c5bf2d1d0000000049454e44ae426082"
)
#: The page takes no answer so soon after an item came (``SETTLE_MS`` of worker.js): a double click is one answer.
SETTLED_MS = 310


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("worker"), pages=mount_pages) as running:
        yield running


def campaign(service: Service, id: str, payloads: int | list[Any] = 4, **settings: Any) -> str:
    """A campaign with payloads, or with so many texts; tasks are called t0, t1, ..."""
    with service.http() as http:
        labels = {} if "answer" in settings else {"labels": ["no", "yes"]}
        usual = {"budget": 20, "policy": "uncertainty", **labels, "question": "Is it good?", "lease_seconds": 600}
        made = http.post("/campaigns", json={**usual, "id": id, **settings})
        assert made.status_code == 201, made.text
    given = [f"text {k}" for k in range(payloads)] if isinstance(payloads, int) else payloads
    tasks = [{"id": f"t{k}", "payload": payload} for k, payload in enumerate(given)]
    if tasks:
        with service.http() as http:
            added = http.post(f"/campaigns/{id}/tasks", json=tasks)
            assert added.status_code == 200, added.text
    return id


def links(service: Service, id: str, worker: str = "ann") -> tuple[str, str]:
    """The worker's own link and the platform's."""
    with service.http() as http:
        made = http.post(f"/campaigns/{id}/links", json={"workers": [worker]}).json()
    return made["links"][0]["url"], made["join"]["url"]


@contextmanager
def visitor(service: Service, id: str, worker: str = "ann") -> Iterator[httpx.Client]:
    """A browser without one: cookies, no scripts."""
    with httpx.Client(base_url=service.url, timeout=120) as client:
        client.get(links(service, id, worker)[0])
        yield client


def labels(service: Service, id: str) -> list[tuple[str, str | None]]:
    """Every lease ever given out as (status, label), in order."""
    config = service.campaign_service.store.row(id).config
    tasks = [task.number for task in service.campaign_service.store.tasks(id)]
    leases = sorted(service.campaign_service.store.leases(id, tasks), key=lambda lease: lease.seq)
    name_of = config.answer_type.name_of
    return [(lease.status, None if lease.label is None else name_of(lease.label)) for lease in leases]


def enter(page: Page, service: Service, id: str, worker: str = "ann") -> None:
    page.goto(links(service, id, worker)[0])


def lease_on(page: Page) -> str | None:
    return page.locator("[data-lease]").get_attribute("data-lease")


def answer(page: Page, name: str) -> None:
    """Choose an answer and wait until something else is there."""
    before = lease_on(page)
    page.wait_for_timeout(SETTLED_MS)
    page.get_by_role("button", name=name, exact=True).click()
    gone(page, before)


def gone(page: Page, lease: str | None) -> None:
    """Wait until another item, or none, is shown."""
    expect(page.locator(f'[data-lease="{lease}"]')).to_have_count(0)


# What is shown, without a browser


def test_payloads_become_parts() -> None:
    assert payload_parts("<b>x") == [PayloadPart("text", "", "<b>x")]
    assert payload_parts({"caption": "only field"}) == [PayloadPart("text", "", "only field")]
    assert payload_parts({"n": 3, "text": "t"}) == [PayloadPart("text", "", "t"), PayloadPart("value", "n", "3")]
    assert payload_parts([1, {"a": "ü"}])[0].kind == "json"
    assert "ü" in payload_parts([1, {"a": "ü"}])[0].value
    assert payload_parts({}) == []
    assert [part.kind for part in payload_parts({"a": None, "b": True, "c": {"d": 1}})] == ["value", "value", "json"]
    image = payload_parts({"image": "https://x.org/a", "alt": "a cat"})
    assert image == [PayloadPart("image", "image", "https://x.org/a", "a cat")]
    for field, address, kind in [
        ("img", "http://x.org/1", "image"), ("photo_url", "https://x.org/1", "image"),
        ("picture", "javascript:alert(1)", "value"), ("any", "https://x.org/a.JPG?w=3", "image"),
        ("audio_url", "https://x.org/a", "audio"), ("clip", "https://x.org/a.mp3", "audio"),
        ("clip", "https://x.org/a.webm", "video"), ("page", "https://x.org/a", "link"),
        ("image", "data:image/png;base64,AA", "value"), ("image", "//x.org/a.png", "value"),
    ]:  # fmt: skip
        assert payload_parts({field: address, "text": "t"})[1].kind == kind, (field, address)


@pytest.mark.parametrize("value", [
    "javascript:alert(1)", " https://x.org", "https://x.org/a b", "https://", "http://[", "data:text/html,x", "x.org",
    "https://x.org/\n", "vbscript:x", "file:///etc/passwd",
])  # fmt: skip
def test_what_is_no_address(value: str) -> None:
    assert not is_address(value)


def named(*labels: str) -> CampaignSettings:
    return CampaignSettings(budget=1, labels=labels)


def test_keys_are_digits_and_letters_of_their_own() -> None:
    assert [choice.keys for choice in choices(named("no", "yes"))] == [("1", "n"), ("2", "y")]
    assert [choice.keys for choice in choices(named("same", "Cat", "cow", "undo", "9"))] == [
        ("1",), ("2",), ("3",), ("4",), ("5",)
    ]  # fmt: skip
    many = choices(named(*"abcdefghijklm"))
    assert many[8].keys == ("9", "i")
    assert many[9].keys == ("j",)


@pytest.mark.parametrize("address", [
    "http://app.prolific.com/x", "javascript:alert(1)", "//x.org", "https://", "https://a@b.org/", "https://x.org/ü",
    "https://x.org/\n", "https://x.org/" + "a" * 1000, "https://[",
])  # fmt: skip
def test_completion_links_that_are_refused(address: str) -> None:
    with pytest.raises(InputError):
        checked_completion(address, ServiceSettings(completion_hosts="x.org, b.org, app.prolific.com"))


@pytest.mark.parametrize("address", [
    "https://evil.example/x", "https://app.prolific.com.evil.example/x", "https://app.prolific.com:8443/x",
    "https://evil.example/app.prolific.com", "https://xapp.prolific.com/",
])  # fmt: skip
def test_completion_links_lead_to_sites_that_the_settings_name(address: str) -> None:
    with pytest.raises(InputError, match="COMPLETION_HOSTS"):
        checked_completion(address, ServiceSettings())
    known = ServiceSettings(completion_hosts=f"{urlsplit(address).netloc.upper()}, other.example")
    assert checked_completion(address, known) == address
    assert checked_completion(PROLIFIC, ServiceSettings()) == PROLIFIC
    with pytest.raises(InputError, match="host name"):
        ServiceSettings(completion_hosts="https://x.org/")


# Who may see it


def test_a_link_becomes_a_cookie_and_a_clean_address(service: Service) -> None:
    id = campaign(service, "enters")
    with httpx.Client() as http:
        entered = http.get(links(service, id)[0])
    assert (entered.status_code, entered.headers["location"]) == (303, "/work/enters")
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"{SESSION_COOKIE}=s3.")
    for flag in ("HttpOnly", "Path=/work/enters", "SameSite=lax"):
        assert flag in cookie
    with visitor(service, id) as http:
        page = http.get("/work/enters")
        assert page.status_code == 200
        policy = page.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'"):
            assert part in policy.split("; ")
        assert "unsafe" not in policy
        assert page.headers["referrer-policy"] == "same-origin"
        assert page.headers["cache-control"] == "no-store"
        assert "w3." not in page.text


def test_strangers_are_told_so_on_a_page(service: Service) -> None:
    campaign(service, "stranger")
    campaign(service, "neighbour")
    with visitor(service, "stranger") as http:
        own = http.cookies[SESSION_COOKIE]
    with httpx.Client(base_url=service.url) as http:
        for path in ("/w/w3.forged.token", "/j/nothing?worker=ann", "/work/stranger", "/work/NONE"):
            refused = http.get(path)
            assert refused.status_code in (401, 404), path
            assert refused.headers["content-type"].startswith("text/html"), path
        refused = http.get("/work/neighbour", headers={"cookie": f"{SESSION_COOKIE}={own}"})
        assert refused.status_code == 401
        assert "cookies" in refused.text
        problem = http.get("/work/stranger", headers={"accept": "application/json"})
        assert problem.json()["type"] == "urn:nextlabel:no-token"


def test_platforms_join(service: Service) -> None:
    id = campaign(service, "joins")
    join = links(service, id)[1]
    for parameters, worker in [
        ({"PROLIFIC_PID": "5f", "STUDY_ID": "s", "SESSION_ID": "x"}, "prolific:5f"),
        ({"workerId": "A1", "assignmentId": "3X"}, "mturk:A1"),
        ({"worker": "bo"}, "joined:bo"),
    ]:  # fmt: skip
        with httpx.Client(follow_redirects=True) as http:
            assert http.get(join, params={**parameters, "completion": PROLIFIC}).status_code == 200
        assert service.campaign_service.run(id, lambda commands, worker=worker: commands.state.open_leases(worker))  # type: ignore[misc]
    with httpx.Client() as http:
        assert "preview" in http.get(join, params={"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}).text
        assert http.get(join).status_code == 422
        refused = http.get(join, params={"worker": "bo", "completion": "http://x.org"})
        assert refused.status_code == 422
        assert "https" in refused.text
        elsewhere = http.get(join, params={"worker": "bo", "completion": "https://evil.example/finish"})
        assert elsewhere.status_code == 422 and "set-cookie" not in elsewhere.headers


@pytest.mark.parametrize("headers", [
    {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "https://evil.example"},
    {"origin": "null"},
])  # fmt: skip
def test_forms_of_other_sites_are_refused(service: Service, headers: dict[str, str]) -> None:
    id = campaign(service, f"forged{len(service.campaign_service.store.campaigns())}")
    with visitor(service, id) as http:
        lease = re.search('data-lease="(.+?)"', http.get(f"/work/{id}").text)
        assert lease is not None
        for path in (f"/work/{id}", f"/work/{id}/renew"):
            refused = http.post(path, data={"lease": lease[1], "answer": "1"}, headers=headers)
            assert refused.status_code == 403
        own = http.post(f"/work/{id}/renew", data={"lease": lease[1]}, headers={"origin": service.url})
        assert own.status_code == 200
    assert all(label is None for _, label in labels(service, id))


def test_forms_that_nobody_made(service: Service) -> None:
    id = campaign(service, "tampered")
    campaign(service, "tampered2")
    with visitor(service, id) as http, visitor(service, "tampered2", "bo") as other:
        lease = re.search('data-lease="(.+?)"', http.get("/work/tampered").text)
        theirs = re.search('data-lease="(.+?)"', other.get("/work/tampered2").text)
        assert lease is not None and theirs is not None
        for form, status in [
            ({"lease": lease[1], "answer": "9"}, 422), ({"lease": lease[1], "answer": "-1"}, 422),
            ({"lease": lease[1], "answer": "²"}, 422), ({"lease": lease[1], "move": "explode"}, 422),
            ({"lease": theirs[1], "answer": "1"}, 404), ({"lease": "x", "answer": "1"}, 404), ({}, 404),
            ({"lease": lease[1], **{f"f{k}": "" for k in range(20)}}, 422),
        ]:  # fmt: skip
            refused = http.post("/work/tampered", data=form)
            assert refused.status_code == status, form
            assert refused.headers["content-type"].startswith("text/html")
        assert http.post("/work/tampered", content=b"\xff=\xff").status_code == 422
        unknown = http.post("/work/tampered", data={"lease": "tampered-7-abc", "answer": "1"})
        assert unknown.headers["location"] == "/work/tampered?note=not_yours"
    assert labels(service, id) == [("leased", None)]


def test_somebody_who_only_looks_leaves_no_trace(service: Service) -> None:
    id = campaign(service, "looks")
    service.campaign_service[id].pause()
    before = service.campaign_service.store.row(id).seq
    with visitor(service, id) as http:
        assert "On a break" in http.get("/work/looks").text
    assert service.campaign_service.store.row(id).seq == before
    assert service.campaign_service.store.workers(id) == []


def test_an_answer_is_saved_while_tables_are_worked_out(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    id = campaign(service, "tables")
    with visitor(service, id) as http:
        lease = re.search('data-lease="(.+?)"', http.get("/work/tables").text)
        assert lease is not None
        ready: Future[Any] = Future()

        def pending(*_: Any) -> Any:
            raise TablesPendingError(ready)

        with monkeypatch.context() as patch:
            patch.setattr(TableCache, "ready", pending)
            patch.setattr(steps, "TABLES_WAIT_S", 0.01)
            saved = http.post("/work/tables", data={"lease": lease[1], "answer": "1"})
            assert saved.headers["location"] == "/work/tables"
            waiting = http.get("/work/tables")
            assert "Nearly ready" in waiting.text
            assert waiting.headers["retry-after"] == "2"
            ready.set_result(None)
        assert 'data-lease="' in http.get("/work/tables").text
    assert labels(service, id)[0] == ("labelled", "yes")


def test_halves_of_characters_do_not_come_in(service: Service) -> None:
    id = campaign(service, "halves", 0)
    with service.http() as http:
        body = rb'[{"payload": {"text": "half \ud800 of it", "list": ["\udc00"]}}]'
        sent = http.post(f"/campaigns/{id}/tasks", content=body, headers={"content-type": "application/json"})
    assert sent.status_code == 422


def test_static_files_are_kept_for_ever_under_their_version(service: Service) -> None:
    with visitor(service, campaign(service, "static")) as http:
        address = re.search('src="(/static/worker.js.+?)"', http.get("/work/static").text)
        assert address is not None
        script = http.get(address[1])
        assert "immutable" in script.headers["cache-control"]
        assert script.headers["content-type"].startswith("text/javascript")
        plain = http.get("/static/worker.js")
        assert plain.headers["cache-control"] == "no-cache"
        assert http.get("/static/worker.js", headers={"if-none-match": plain.headers["etag"]}).status_code == 304
        assert http.get("/static/../render.py").status_code == 404
        assert http.get("/static/none.css").status_code == 404


# A real browser


@pytest.mark.parametrize(("name", "size"), [("desk", DESKTOP), ("phone", PHONE)])
def test_a_campaign_from_the_first_item_to_the_last(
    service: Service, chromium: Browser, name: str, size: dict[str, int]
) -> None:
    id = campaign(service, f"whole_{name}", 3, most_labels=1)
    with at(chromium, size) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        errors: list[str] = []
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        enter(page, service, id)
        assert page.url == f"{service.url}/work/{id}"
        assert page.title() == f"Is it good? · {id}"
        check_accessible(page)
        for _ in range(3):
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            answer(page, "yes")
            assert page.evaluate("document.activeElement.id") == "item"
            expect(page.locator("#status")).to_have_text("Saved: yes.")
        expect(page.get_by_role("heading", name="All done")).to_be_visible()
        check_accessible(page)
        assert errors == []
        assert len([url for url in asked if url.endswith(f"/work/{id}")]) == 4  # one round trip an answer
        assert all(url.startswith(service.url) for url in asked)
    assert labels(service, id) == [("labelled", "yes")] * 3


def test_without_scripts(service: Service, chromium: Browser) -> None:
    id = campaign(service, "plain", 3, most_labels=1)
    with at(chromium, java_script_enabled=False) as page:
        enter(page, service, id)
        page.get_by_role("button", name="yes").click()
        expect(page.locator("#mine")).to_have_text("1")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#mine")).to_have_text("0")
        page.get_by_role("button", name="no").click()
        page.get_by_role("button", name="Skip this item").click()
        page.get_by_role("button", name="yes").click()
        expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
        assert page.locator("noscript meta[http-equiv=refresh], meta[http-equiv=refresh]").count() == 1
        assert page.url == f"{service.url}/work/{id}"
    assert labels(service, id) == [("labelled", "no"), ("released", None), ("labelled", "yes")]


def test_reload_keeps_the_item(service: Service, chromium: Browser) -> None:
    id = campaign(service, "reload")
    with at(chromium) as page:
        enter(page, service, id)
        answer(page, "yes")
        before = lease_on(page)
        page.reload()
        assert lease_on(page) == before
        expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert len(labels(service, id)) == 2


@pytest.mark.parametrize("scripts", [True, False])
def test_two_tabs_and_a_form_that_was_answered(service: Service, chromium: Browser, scripts: bool) -> None:
    id = campaign(service, f"tabs_{scripts}".lower())
    with context(chromium, java_script_enabled=scripts) as windows:
        first, second = windows.new_page(), windows.new_page()
        enter(first, service, id)
        second.goto(f"{service.url}/work/{id}")
        assert lease_on(first) == lease_on(second)
        first.get_by_role("button", name="yes").click()
        expect(first.locator("#mine")).to_have_text("1")
        second.get_by_role("button", name="no").click()
        expect(second.locator("#note")).to_contain_text("already answered that item")
        assert lease_on(second) == lease_on(first)
        if scripts:
            check_accessible(second)
    assert labels(service, id)[0] == ("labelled", "yes")


@pytest.mark.parametrize("scripts", [True, False])
def test_back_never_shows_an_error(service: Service, chromium: Browser, scripts: bool) -> None:
    id = campaign(service, f"back_{scripts}".lower())
    with at(chromium, java_script_enabled=scripts) as page:
        page.goto(f"{service.url}/api/v1/healthz")
        enter(page, service, id)
        page.get_by_role("button", name="yes").click()
        expect(page.locator("#mine")).to_have_text("1")
        page.go_back()
        if scripts:  # items are not in the history: one step back is where the worker came from
            page.go_forward()
        page.wait_for_timeout(SETTLED_MS)
        page.get_by_role("button", name="no").click()
        expect(page.locator("[data-lease]")).to_be_visible()
        expect(page.get_by_role("button", name="yes")).to_be_visible()
    assert labels(service, id)[0] == ("labelled", "yes")


@pytest.mark.parametrize("scripts", [True, False])
def test_double_clicks_are_one_answer(service: Service, chromium: Browser, scripts: bool) -> None:
    id = campaign(service, f"double_{scripts}".lower())
    with at(chromium, java_script_enabled=scripts) as page:
        enter(page, service, id)
        page.wait_for_timeout(SETTLED_MS)
        with service.campaign_service.store.transaction(id):  # the first answer is not saved before the second click
            page.get_by_role("button", name="yes").dblclick()
        expect(page.locator("#mine")).to_have_text("1")
        page.wait_for_timeout(300)
        expect(page.locator("#mine")).to_have_text("1")
    assert labels(service, id) == [("labelled", "yes"), ("leased", None)]


def test_the_same_form_twice_is_one_reply(service: Service) -> None:
    id = campaign(service, "same")
    with visitor(service, id) as http:
        lease = re.search('data-lease="(.+?)"', http.get("/work/same").text)
        assert lease is not None
        form = {"lease": lease[1], "answer": "1"}
        assert http.post("/work/same", data=form).headers["location"] == "/work/same"
        assert http.cookies[LAST_LEASE_COOKIE] == lease[1]
        assert http.post("/work/same", data=form).headers["location"] == "/work/same?note=again"
        assert "already been saved" in http.get("/work/same?note=again").text
        assert "note" not in http.get("/work/same?note=<script>").text.split("<main>")[1].split("<h1")[0]
        skipped = http.post("/work/same", data={"lease": lease[1], "move": "release"})
        assert skipped.headers["location"] == "/work/same?note=answered"
    assert labels(service, id) == [("labelled", "yes"), ("leased", None)]


def test_an_answer_without_a_connection_is_sent_later_and_once(service: Service, chromium: Browser) -> None:
    id = campaign(service, "offline")
    with context(chromium) as windows:
        page = windows.new_page()
        enter(page, service, id)
        page.wait_for_timeout(SETTLED_MS)
        windows.set_offline(True)
        page.get_by_role("button", name="yes").click()
        expect(page.locator("#status.trouble")).to_contain_text("Not sent yet, trying again")
        assert page.locator("#status").bounding_box()["height"] > 20  # type: ignore[index]
        assert "answer=1" in page.evaluate("Object.values(sessionStorage).join()")
        check_accessible(page)
        page.keyboard.press("1")  # one answer at a time
        windows.set_offline(False)
        expect(page.locator("#mine")).to_have_text("1")
        expect(page.locator("#status")).to_have_text("Saved: yes.")
        expect(page.locator("#status.trouble")).to_have_count(0)
        assert page.evaluate("sessionStorage.length") == 0
        # The tab is closed or loaded anew before the connection is back.
        page.wait_for_timeout(SETTLED_MS)
        windows.set_offline(True)
        page.get_by_role("button", name="no").click()
        expect(page.locator("#status.trouble")).to_be_visible()
        held = page.evaluate("Object.entries(sessionStorage)[0]")
        page.goto("about:blank")
        windows.set_offline(False)
        page.goto(f"{service.url}/work/{id}")
        expect(page.locator("#mine")).to_have_text("2")
        assert held is not None
    assert labels(service, id)[:2] == [("labelled", "yes"), ("labelled", "no")]


def test_a_reply_that_is_lost_on_the_way(service: Service, chromium: Browser) -> None:
    id = campaign(service, "lost")
    with at(chromium) as page:
        enter(page, service, id)
        page.wait_for_timeout(SETTLED_MS)
        lost: list[Request] = []

        def lose_first(route: Route) -> None:
            if route.request.method == "POST" and not lost:
                lost.append(route.request)
                route.fetch()  # the service hears of it, the page does not
                route.abort()
            else:
                route.continue_()

        page.route("**/work/lost", lose_first)
        page.get_by_role("button", name="yes").click()
        expect(page.locator("#mine")).to_have_text("1")
        expect(page.locator("#note")).to_contain_text("already been saved")
    assert labels(service, id) == [("labelled", "yes"), ("leased", None)]


def test_keyboard(service: Service, chromium: Browser) -> None:
    id = campaign(service, "keys", 6)
    with at(chromium) as page:
        enter(page, service, id)
        mine = page.locator("#mine")
        for key, given in [("2", "1"), ("n", "2"), ("Y", "3"), ("u", "2"), ("1", "3"), ("s", "3")]:
            page.wait_for_timeout(SETTLED_MS)
            before = lease_on(page)
            page.keyboard.press(key)
            gone(page, before)
            expect(mine).to_have_text(given)
        page.wait_for_timeout(SETTLED_MS)
        for key in ("x", "3", "Control+y", "Enter", "Shift"):
            page.keyboard.press(key)
        page.keyboard.down("y")
        expect(mine).to_have_text("4")
        page.wait_for_timeout(SETTLED_MS)
        page.keyboard.down("y")  # held down: the browser repeats it
        page.keyboard.up("y")
        page.get_by_label("Keyboard shortcuts").uncheck()
        page.keyboard.press("y")
        page.wait_for_timeout(200)
        expect(mine).to_have_text("4")
        expect(page.locator("kbd").first).not_to_be_visible()
        page.reload()
        expect(page.get_by_label("Keyboard shortcuts")).not_to_be_checked()
        page.locator("#item").focus()
        page.keyboard.press("Tab")
        page.wait_for_timeout(SETTLED_MS)
        page.keyboard.press("Enter")  # buttons work by themselves
        expect(mine).to_have_text("5")
    told = [label for status, label in labels(service, id) if status == "labelled"]
    assert sorted(label for label in told if label) == ["no", "no", "no", "yes", "yes"]


def test_skip_and_undo(service: Service, chromium: Browser) -> None:
    id = campaign(service, "moves")
    with at(chromium) as page:
        enter(page, service, id)
        skipped = page.locator(".text").inner_text()
        page.get_by_role("button", name="Skip this item").click()
        expect(page.locator("#status")).to_have_text("Skipped.")
        assert page.locator(".text").inner_text() != skipped
        text, lease = page.locator(".text").inner_text(), lease_on(page)
        answer(page, "no")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#status")).to_have_text("Answer undone.")
        assert (page.locator(".text").inner_text(), lease_on(page)) == (text, lease)
        expect(page.get_by_role("button", name="Undo")).to_have_count(0)
        answer(page, "yes")
        service.clock.ahead += 700
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#note")).to_contain_text("too late")
        expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert labels(service, id)[:2] == [("released", None), ("labelled", "yes")]


def test_late_answers_are_kept_and_said_to_be(service: Service, chromium: Browser) -> None:
    id = campaign(service, "late")
    with at(chromium) as page:
        enter(page, service, id)
        service.clock.ahead += 700
        answer(page, "yes")
        expect(page.locator("#note")).to_contain_text("your answer was kept")
    assert labels(service, id)[0] == ("late", "yes")


def test_the_lease_is_renewed_while_somebody_is_there(service: Service, chromium: Browser) -> None:
    id = campaign(service, "renews", lease_seconds=300)
    with at(chromium) as page:
        page.clock.install()
        enter(page, service, id)
        expect(page.locator("#time")).to_have_text("5 minutes left")
        service.clock.ahead += 160
        with page.expect_response("**/renew") as renewal:
            page.clock.fast_forward(160_000)
        assert renewal.value.json()["left"] == pytest.approx(300, abs=2)
        page.clock.run_for(2000)
        expect(page.locator("#time")).to_have_text("5 minutes left")
        page.clock.fast_forward(240_000)  # without activity for too long: not renewed again
        page.clock.run_for(2000)
        expect(page.locator("#time")).to_have_text(re.compile(r"^\d+ seconds left"))
        page.clock.fast_forward(100_000)
        expect(page.locator("#time")).to_contain_text("time is up")


def reasons(service: Service) -> dict[str, Callable[[], str]]:
    """How to come to every reason but ``preparing``; each makes a campaign of its own and returns its id."""

    def done(id: str, worker: str, tasks: int = 1, **settings: Any) -> str:
        campaign(service, id, tasks, **settings)
        lease = service.campaign_service[id].ask(worker)
        service.campaign_service[lease.campaign].tell(lease.id, "yes")  # type: ignore[union-attr]
        return id

    def paused() -> str:
        service.campaign_service[campaign(service, "r_paused")].pause()
        return "r_paused"

    def leased() -> str:
        service.campaign_service[campaign(service, "r_leased", 1, most_labels=1, most_in_flight=1)].ask("bob")
        return "r_leased"

    def over() -> str:
        campaign(service, "r_over", deadline=service.clock() + 50)
        service.clock.ahead += 60
        return "r_over"

    return {
        "budget_spent": lambda: done("r_spent", "bob", budget=1),
        "finished": lambda: done("r_finished", "bob", most_labels=1),
        "nothing_left_for_you": lambda: done("r_nothing", "ann"),
        "below_price": lambda: campaign(service, "r_price", 1, policy="index", label_cost=0.9, most_labels=3),
        "paused": paused,
        "all_leased": leased,
        "deadline_passed": over,
    }


def test_reasons(service: Service, chromium: Browser) -> None:
    for reason, made in reasons(service).items():
        id = made()
        with at(chromium, PHONE) as page:
            enter(page, service, id)
            expect(page.locator(f"[data-reason={reason}]")).to_be_visible()
            expect(page.get_by_role("heading", level=1)).to_have_text(worker_texts("en")(f"reasons.{reason}.heading"))
            check_accessible(page)
            if reason == "all_leased":
                expect(page.get_by_text("checks again")).to_be_visible()


def test_the_page_looks_again_by_itself(service: Service, chromium: Browser) -> None:
    id = campaign(service, "again", 1)
    service.campaign_service[id].pause()
    with at(chromium) as page:
        page.clock.install()
        enter(page, service, id)
        expect(page.get_by_role("heading", name="On a break")).to_be_visible()
        with page.expect_response(f"**/work/{id}"):
            page.clock.fast_forward(31_000)
        expect(page.get_by_role("heading", name="On a break")).to_be_visible()
        service.campaign_service[id].resume()
        while not page.get_by_role("heading", name="Is it good?").is_visible():
            page.clock.fast_forward(31_000)
            page.wait_for_timeout(100)
        expect(page.locator("#status")).to_have_text("A new item is here.")
        assert page.evaluate("document.activeElement.id") == "item"


def test_completion_link(service: Service, chromium: Browser) -> None:
    id = campaign(service, "complete", 1)
    with at(chromium) as page:
        page.goto(f"{links(service, id)[1]}?PROLIFIC_PID=5f&STUDY_ID=a&SESSION_ID=b&completion={PROLIFIC}")
        assert page.url == f"{service.url}/work/{id}"
        assert page.locator("#completion").count() == 0
        answer(page, "yes")
        button = page.get_by_role("link", name="Finish at app.prolific.com")
        expect(button).to_have_attribute("href", PROLIFIC)
        check_accessible(page)
        went: list[Request] = []
        page.route("https://app.prolific.com/**", lambda route: (went.append(route.request), route.fulfill(body="ok")))
        button.click()
        page.wait_for_url(PROLIFIC)
        assert "referer" not in went[0].all_headers()


def test_scripts_in_what_others_wrote_do_not_run(service: Service, chromium: Browser) -> None:
    bad = '<script>window.ran=1</script><img src=x onerror="window.ran=1">\'"><svg onload=window.ran=1>{{7*7}}'
    payloads = [
        bad, {bad: bad, "text": bad}, {"image": "javascript:window.ran=1", "audio": bad}, [bad, {bad: bad}],
        {"image": 'https://x.invalid/a.png" onerror="window.ran=1', "page": "javascript:window.ran=1"},
        {"image": "https://x.invalid/a.png#\"onerror='window.ran=1'", "alt": bad, "page": "https://x.invalid/\"'><b>"},
        {"video": "data:text/html,<script>window.ran=1</script>", "clip": "https://x.invalid/a.mp3?\"><script>"},
    ]  # fmt: skip
    id = campaign(
        service, "scripts", payloads, labels=[f"1{bad}", f"2{bad}"], question=bad, name=f"n{bad}", most_labels=1
    )
    with context(chromium) as windows:
        windows.add_init_script("window.ran = 0")
        page = windows.new_page()
        page.route("https://x.invalid/**", lambda route: route.fulfill(body=PIXEL, content_type="image/png"))
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        enter(page, service, id, worker=f"w{bad}")
        for k in range(len(payloads)):
            if k % 2:
                page.reload()
            assert page.evaluate("[...document.querySelectorAll('[src], [href]')].every(e => !/^\\s*(javascript|data)/i"
                                 ".test(e.getAttribute('src') ?? e.getAttribute('href')))")  # fmt: skip
            assert page.evaluate("document.querySelectorAll('main script, main svg, [onerror], [onload]').length") == 0
            assert "{{7*7}}" in page.locator("h1").inner_text()
            answer(page, page.locator(".choice .name").first.inner_text())
            assert page.evaluate("window.ran") == 0
        expect(page.get_by_role("heading", name="All done")).to_be_visible()
        assert dialogs == []


KINDS: dict[str, Any] = {
    "text": "A plain text.\nWith a second line.",
    "long": "word " * 500,
    "image": {"image_url": "https://x.invalid/a.png", "alt": "A black cat", "text": "Look:"},
    "audio": {"audio": "https://x.invalid/a.mp3"},
    "video": {"video": "https://x.invalid/a.mp4"},
    "fields": {"title": "Chair", "price": 12.5, "page": "https://x.invalid/page", "tags": ["a", {"b": None}]},
    "list": [1, 2, {"deep": ["x" * 300]}],
    "rtl": {"text": "مرحبا بالعالم", "empty": ""},
    "empty": {},
}


@pytest.mark.parametrize(("name", "size", "scheme"), [("desk", DESKTOP, "light"), ("phone", PHONE, "dark")])
def test_every_kind_of_item_is_accessible(
    service: Service, chromium: Browser, name: str, size: dict[str, int], scheme: str
) -> None:
    many = [f"answer {k}" for k in range(14)] if name == "desk" else ["no", "yes"]
    id = campaign(service, f"kinds_{name}", list(KINDS.values()), labels=many, most_labels=1)
    with at(chromium, size, color_scheme=scheme) as page:
        page.route("https://x.invalid/**", lambda route: route.fulfill(body=PIXEL, content_type="image/png"))
        enter(page, service, id)
        for _ in KINDS:
            check_accessible(page, *(["color-contrast", "target-size"] if scheme == "dark" else []))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            small = page.evaluate("[...document.querySelectorAll('button')].filter(b => b.offsetHeight < 44).length")
            assert small == 0
            answer(page, many[1])
        check_accessible(page)


def test_media_that_do_not_load_are_said_to(service: Service, chromium: Browser) -> None:
    id = campaign(service, "broken", [{"image": "https://x.invalid/a.png"}])
    with at(chromium) as page:
        page.route("https://x.invalid/**", lambda route: route.abort())
        enter(page, service, id)
        expect(page.get_by_text("This could not be loaded.")).to_be_visible()
        expect(page.get_by_role("link", name="Open it in a new tab")).to_have_attribute(
            "href", "https://x.invalid/a.png"
        )
        check_accessible(page)


def test_error_pages_are_accessible(service: Service, chromium: Browser) -> None:
    with at(chromium) as page:
        page.goto(f"{service.url}/work/nobody")
        expect(page.get_by_role("heading", level=1)).to_contain_text("does not know who you are")
        check_accessible(page)


def test_json_is_only_for_the_script(service: Service) -> None:
    with visitor(service, campaign(service, "asjson")) as http:
        body = http.get("/work/asjson", headers={"accept": "application/json"}).json()
        assert set(body) == {"panel", "title", "lease", "language", "address"}
        json.dumps(body)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_worker_who_is_blocked_while_they_work(service: Service, chromium: Browser, scripts: bool) -> None:
    """The item goes to others, a late answer and one from a second tab are kept or refused, and none counts."""
    id = campaign(service, f"thanked_{scripts}".lower())
    row = service.campaign_service.store.row
    with context(chromium, java_script_enabled=scripts) as windows:
        first, second = windows.new_page(), windows.new_page()
        for page in (first, second):
            page.goto(f"{links(service, id)[0]}?completion={PROLIFIC}")
        lease = lease_on(first)
        assert lease == lease_on(second)
        service.campaign_service[id].set_standing("ann", "blocked", "guesses")
        assert row(id).reserved == 0
        if scripts:
            first.wait_for_timeout(SETTLED_MS)
        first.get_by_role("button", name="yes", exact=True).click()
        expect(first.get_by_role("heading", name="Thank you for your help")).to_be_visible()
        expect(first.locator("#note")).to_contain_text("Your answer was kept, but does not count")
        expect(first.get_by_role("link", name="Finish at app.prolific.com")).to_be_visible()
        assert "guesses" not in first.content() and "block" not in first.content().replace("worker_blocked", "")
        second.get_by_role("button", name="no", exact=True).click()
        expect(second.get_by_role("heading", name="Thank you for your help")).to_be_visible()
        expect(second.locator("#note")).to_contain_text("your first answer stands")
        check_accessible(first) if scripts else None
        assert labels(service, id) == [("late", "yes")] and row(id).spent == 0
        service.campaign_service[id].set_standing("ann", "active")
        first.goto(f"{service.url}/work/{id}")
        assert lease_on(first) not in (None, lease)


@pytest.mark.parametrize(("name", "size"), [("desk", DESKTOP), ("phone", PHONE)])
def test_numbers_with_fingers_and_keys(service: Service, chromium: Browser, name: str, size: Any) -> None:
    """A field for the number: checked by the browser before it is sent, and by the service if it is sent anyway."""
    id = campaign(service, f"numbers_{name}", 3, answer="number", range="0..100", policy="crowd")
    with context(chromium, size) as window:
        page = window.new_page()
        enter(page, service, id)
        field, send = page.get_by_label("A number from 0 to 100"), page.get_by_role("button", name="Send")
        for part in (field, send):
            box = part.bounding_box()
            assert box is not None and box["height"] >= 44
        check_accessible(page)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        field.fill("120")
        (send.tap if name == "phone" else send.click)()
        assert field.evaluate("one => one.validity.rangeOverflow") and lease_on(page) == before
        field.fill("37.5")
        page.keyboard.press("Enter")
        gone(page, before)
        expect(page.locator(".undo strong")).to_have_text("37.5")
        before = lease_on(page)
        page.evaluate("document.querySelector('#answers').noValidate = true")
        page.get_by_label("A number from 0 to 100").fill("120")
        page.wait_for_timeout(SETTLED_MS)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("from 0 to 100")
        assert lease_on(page) == before
    assert [label for _, label in labels(service, id)] == ["37.5", None]


@pytest.mark.parametrize(("name", "size"), [("desk", DESKTOP), ("phone", PHONE)])
def test_any_of_several_labels_with_fingers_and_keys(service: Service, chromium: Browser, name: str, size: Any) -> None:
    """Labels are switched on and off by a key, a click or a finger; all of them are sent at once."""
    names = ["anger", "joy", "fear", "trust", "envy"]
    id = campaign(service, f"multi_{name}", 4, answer="multi", labels=names, policy="crowd")
    with context(chromium, size) as window:
        page = window.new_page()
        enter(page, service, id)
        boxes, send = page.locator("label.choice"), page.get_by_role("button", name="Send")
        assert [one.inner_text().split()[0] for one in boxes.all()] == names
        shapes = [one.bounding_box() for one in [*boxes.all(), send]]
        assert all(box is not None and box["height"] >= 44 and box["width"] >= 44 for box in shapes)
        check_accessible(page)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        press = "tap" if name == "phone" else "click"
        for place in (0, 3, 0):  # the third takes the first back
            getattr(boxes.nth(place), press)()
        getattr(send, press)()
        gone(page, before)
        expect(page.locator(".undo strong")).to_have_text("trust")
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        for key in ("2", "5", "Enter"):
            page.keyboard.press(key)
        gone(page, before)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        page.keyboard.press("Enter")  # none of them
        gone(page, before)
    assert [label for _, label in labels(service, id)[:3]] == ["trust", "joy;envy", "none"]


@pytest.mark.parametrize(("name", "size"), [("desk", DESKTOP), ("phone", PHONE)])
def test_several_questions_with_fingers_and_keys(service: Service, chromium: Browser, name: str, size: Any) -> None:
    """A question is asked after the answer that it depends on; nothing is sent before all have an answer."""
    questions = [
        {"name": "tone", "text": "What is the tone?", "labels": ["good", "bad"]},
        {"name": "why", "answer": "multi", "labels": ["price", "quality"], "only_if": {"tone": "bad"}},
        {"name": "score", "answer": "number", "range": "0..100"},
        {"name": "stars", "answer": "rating", "scale": "1..3"},
    ]
    id = campaign(service, f"form_{name}", 3, answer="multi", questions=questions, policy="crowd")
    with context(chromium, size) as window:
        page = window.new_page()
        enter(page, service, id)
        press = "tap" if name == "phone" else "click"
        label = lambda text: page.locator("label.choice", has_text=re.compile(rf"^\s*{text}"))  # noqa: E731
        expect(page.get_by_role("group", name="What is the tone?")).to_be_visible()
        expect(label("price")).to_be_hidden()
        check_accessible(page)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        getattr(label("bad"), press)()
        expect(label("price")).to_be_visible()
        getattr(label("price"), press)()
        send, score = page.get_by_role("button", name="Send"), page.get_by_label("A number from 0 to 100")
        getattr(score, press)()
        score.fill("37.5")
        getattr(send, press)()
        assert lease_on(page) == before  # the stars are missing
        getattr(label("3"), press)()
        getattr(send, press)()
        gone(page, before)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        expect(page.locator(".undo strong")).to_have_text("tone: bad, why: price, score: 37.5, stars: 3")
        for key in ("1", "6", "5", "4", "2", "Enter"):  # 5 goes to the number
            page.keyboard.press(key)
        gone(page, before)
    said = [json.loads(label) for _, label in labels(service, id)[:2]]
    assert said == [
        {"tone": "bad", "why": ["price"], "score": "37.5", "stars": "3"},
        {"tone": "good", "score": "42", "stars": "1"},
    ]


@pytest.mark.parametrize(("name", "size"), [("desk", DESKTOP), ("phone", PHONE)])
def test_ratings_with_fingers_and_keys(service: Service, chromium: Browser, name: str, size: Any) -> None:
    """The steps of a scale stand in one row, in their order, and the digit of a step chooses it, 0 included."""
    id = campaign(service, f"rated_{name}", 3, answer="rating", scale="0..4")
    with context(chromium, size) as window:
        page = window.new_page()
        enter(page, service, id)
        steps = page.locator("button.choice")
        boxes = [one.bounding_box() for one in steps.all()]
        assert [one.inner_text().split()[0] for one in steps.all()] == ["0", "1", "2", "3", "4"]
        assert len({box["y"] for box in boxes if box is not None}) == 1
        assert all(box is not None and box["height"] >= 44 and box["width"] >= 44 for box in boxes)
        check_accessible(page)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        (steps.nth(3).tap if name == "phone" else steps.nth(3).click)()
        gone(page, before)
        before = lease_on(page)
        page.wait_for_timeout(SETTLED_MS)
        page.keyboard.press("0")
        gone(page, before)
    assert [label for _, label in labels(service, id)[:2]] == ["3", "0"]


@pytest.mark.parametrize(("name", "size"), [("desk", DESKTOP), ("phone", PHONE)])
def test_pairs_with_fingers_and_keys(service: Service, chromium: Browser, name: str, size: Any) -> None:
    """Both items side by side, or one above the other; what they are called is not shown."""
    items = [{"text": f"poem {k}", "author email": f"p{k}@mail"} for k in range(3)]
    id = campaign(service, f"pairs_{name}", items, answer="pair", policy="crowd")
    with context(chromium, size) as window:
        page = window.new_page()
        enter(page, service, id)
        for key, said in (("1", "first"), ("2", "second"), ("0", "tie")):
            sides = [page.get_by_role("region", name=one) for one in ("The first one", "The second one")]
            for side in sides:
                expect(side).to_contain_text("poem")
                expect(side).not_to_contain_text("mail")
            boxes = [side.bounding_box() for side in sides]
            assert boxes[0] and boxes[1]
            assert (abs(boxes[0]["y"] - boxes[1]["y"]) < 20) == (name == "desk")
            check_accessible(page)
            lease = lease_on(page)
            page.wait_for_timeout(SETTLED_MS)
            if name == "desk":
                page.keyboard.press(key)
            else:
                page.get_by_role("button", name={"tie": "No difference"}.get(said, f"The {said} one")).click()
            gone(page, lease)
    assert sorted(label for _, label in labels(service, id)) == ["first", "second", "tie"]
    with service.http() as http:
        order = http.get(f"/campaigns/{id}/order").json()["items"]
    assert {one["item"] for one in order} == {"t0", "t1", "t2"} and [one["rank"] for one in order] == [1, 2, 3]
    with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as client:
        client.post("/sign-in", data={"token": service.token})
        shown = client.get(f"/campaigns/{id}").text.partition('id="h-order"')[2].partition("</table>")[0]
    assert all(f"<span>{one['item']}</span>" in shown for one in order)
