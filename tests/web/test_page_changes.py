"""Instructions before the first item, changes while workers are at work, and a campaign that is deleted under them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from browser import DESKTOP, PHONE, at, check_accessible, chromium
from nextlabel.client import Client
from nextlabel.errors import GoneError
from nextlabel.service.access import create_token
from nextlabel.web.markdown import safe_html
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
ATTACK = """# Rules

<script>window.ran = true</script> <img src=x onerror="window.ran = true">

[one](javascript:window.ran=true) [two](https://example.org/a) ![a pixel](https://tracker.example/p.gif)

| label | example |
|---|---|
| good | *Works* |
"""
COMPLETION = "https://app.prolific.com/submissions/complete?cc=CODE"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("changes"), pages=mount_pages) as running:
        yield running


def link(service: Service, id: str, worker: str = "ann") -> str:
    with service.http() as http:
        return str(http.post(f"/campaigns/{id}/links", json={"workers": [worker]}).json()["links"][0]["url"])


def sign_in(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/sign-in")
    page.get_by_label("Token").fill(service.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Campaigns", exact=True)).to_be_visible()


def within_width(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    ("text", "gone", "there"),
    [
        ("<script>x</script>", "<script", "&lt;script&gt;"),
        ('<b onclick="x">y</b>', "<b", "&lt;b onclick"),
        ("[a](javascript:x)", "<a", "javascript"),
        ("[a](&#106;avascript:x)", "<a", "[a]"),
        ("[a](data:text/html,x)", "<a", "[a]"),
        ("![a](https://x.org/p.png)", "<img", '<a href="https://x.org/p.png"'),
        ("[![a](https://x.org/p.png)](https://y.org)", "<img", '<a href="https://y.org"'),
        ("![a](data:image/png;base64,AA)", "<a", "a"),
        ("[a](https://x.org)", "<script", 'rel="noopener noreferrer nofollow"'),
        ("# a", "<h1", "<h2>a</h2>"),
        ("|a|b|\n|:-|-:|\n|1|2|", "style", "<td>1</td>"),
    ],
)
def test_markdown_is_harmless(text: str, gone: str, there: str) -> None:
    html = safe_html(text)
    assert gone not in html and there in html
    assert safe_html("") == ""


def test_instructions_come_first_and_again_when_they_change_without_scripts(service: Service) -> None:
    id = service.campaign("briefed", instructions="# First\n\nRead *me*.", question="Good?")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as ann:
        first = ann.get(link(service, id)).text
        assert "<h2>First</h2>" in first and "<em>me</em>" in first and "data-lease" not in first
        with service.http() as http:
            assert http.get(f"/campaigns/{id}").json()["reserved"] == 0  # nobody holds an item while reading
        begun = ann.post(f"/work/{id}", data={"move": "begin", "read": _version(first)}).text
        assert "data-lease" in begun and '<details class="guide-again"' in begun
        assert "data-lease" in ann.get(f"/work/{id}").text
        with service.http() as http:
            changed = {"instructions": "Second", "display_names": ["Bad", "Fine"], "question": "Fine?"}
            assert http.patch(f"/campaigns/{id}", json=changed).status_code == 200
        held = ann.get(f"/work/{id}").text  # an item that waits for an answer is answered first
        assert "data-lease" in held and ">Fine</span>" in held and "Fine?" in held and ">yes<" not in held
        lease = held.split('data-lease="')[1].split('"')[0]
        after = ann.post(f"/work/{id}", data={"lease": lease, "answer": "1"}).text
        assert "The instructions have changed" in after and "Second" in after and "data-lease" not in after
        assert "Your last answer" in after and ">Fine</strong>" in after
        assert "data-lease" in ann.post(f"/work/{id}", data={"move": "begin", "read": _version(after)}).text
    with service.http() as http:
        (given,) = http.get(f"/campaigns/{id}/labels").json()["labels"]
        assert given["label"] == "yes"  # not what the worker read
        http.post(f"/campaigns/{id}/pause")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as bob:
        assert "On a break" in bob.get(link(service, id, "bob")).text  # nothing to read for nothing


def _version(html: str) -> str:
    return html.split('name="read" value="')[1].split('"')[0]


def test_a_worker_reads_and_looks_again_with_a_key(service: Service, chromium: Browser) -> None:
    id = service.campaign("keys", instructions=ATTACK, question="Good?")
    with at(chromium, PHONE) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(link(service, id))
        expect(page.get_by_role("heading", name="Instructions")).to_be_visible()
        expect(page.get_by_role("heading", name="Rules")).to_be_visible()
        check_accessible(page)
        within_width(page)
        page.get_by_role("button", name="Start").click()
        expect(page.locator("[data-lease]")).to_be_visible()
        rules = page.get_by_role("heading", name="Rules")
        expect(rules).to_be_hidden()
        page.keyboard.press("?")
        expect(rules).to_be_visible()
        check_accessible(page)
        within_width(page)
        page.keyboard.press("?")
        expect(rules).to_be_hidden()
        with service.http() as http:
            http.patch(f"/campaigns/{id}", json={"language": "ar", "question": "هل هذا جيد؟"})
        page.wait_for_timeout(310)
        page.get_by_role("button", name="yes").click()
        expect(page.locator("html[dir=rtl]")).to_have_count(1)
        expect(page.get_by_role("heading", name="هل هذا جيد؟")).to_be_visible()
        within_width(page)
        assert not any("tracker.example" in url for url in asked)
        assert page.evaluate("window.ran") is None


def test_a_requester_edits_and_deletes_while_a_worker_is_at_work(service: Service, chromium: Browser) -> None:
    id = service.campaign("edited", question="Old?", instructions="")
    with service.http() as http:
        http.post(f"/campaigns/{id}/tasks", json=[{"id": "m", "text": "x", "email": "a@b.c"}])
    with at(chromium, PHONE) as worker, at(chromium, DESKTOP) as page:
        worker.goto(link(service, id))
        expect(worker.locator("[data-lease]")).to_be_visible()
        sign_in(page, service)
        page.goto(f"{service.url}/campaigns/{id}/edit")
        page.get_by_label("Name of the campaign").fill("Reviews, spring")
        page.get_by_role("textbox", name="Question").fill("Is it good?")
        page.get_by_role("textbox", name="yes").fill("Oh yes")
        page.get_by_role("textbox", name="Instructions with examples").fill(ATTACK)
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("heading", name="Rules")).to_be_visible()
        expect(page.get_by_text("Not saved yet")).to_be_visible()
        check_accessible(page)
        assert service.campaign_service.store.row(id).config.question == "Old?"
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        config = service.campaign_service.store.row(id).config
        assert (config.name, config.question, config.display_names) == (
            "Reviews, spring",
            "Is it good?",
            ("no", "Oh yes"),
        )
        assert config.show is None and config.instructions == ATTACK.strip()
        page.goto(f"{service.url}/campaigns/{id}")
        log = page.locator("#log")
        expect(log).to_contain_text("The requester changed the name to “Reviews, spring”, the question")
        page.get_by_role("link", name="Delete this campaign").click()
        check_accessible(page)
        page.get_by_label(f"To confirm, type {id}").fill("wrong")
        page.get_by_role("button", name="Delete for good").click()
        expect(page.get_by_role("alert")).to_contain_text("nothing was deleted")
        page.get_by_label(f"To confirm, type {id}").fill(id)
        page.get_by_role("button", name="Delete for good").click()
        expect(page.get_by_role("heading", name="Campaigns", exact=True)).to_be_visible()
        expect(page.get_by_text("Reviews, spring")).to_have_count(0)
        worker.wait_for_timeout(310)
        worker.get_by_role("button", name="yes").click()  # the page was open; the answer comes too late
        expect(worker.get_by_role("heading", name="This campaign has been removed.")).to_be_visible()
        page.goto(f"{service.url}/campaigns/{id}")
        expect(page.get_by_text("was deleted")).to_be_visible()
        assert page.evaluate("window.ran") is None


def test_a_worker_says_something_and_the_requester_reads_it(service: Service, chromium: Browser) -> None:
    id = service.campaign("said", tasks=3)
    said = "<img src=x onerror='window.ran = true'> two products"
    with at(chromium, PHONE) as worker, at(chromium, DESKTOP) as page:
        worker.goto(link(service, id))
        worker.get_by_text("Add a comment").click()
        field = worker.get_by_role("textbox")
        expect(field).to_be_focused()
        worker.keyboard.type(said + " 1")  # no key of it is an answer
        check_accessible(worker)
        within_width(worker)
        worker.get_by_role("button", name="yes").click()
        expect(worker.locator(".undo strong")).to_have_text("yes")
        expect(worker.get_by_role("textbox")).to_be_hidden()  # the next item has none
        worker.get_by_role("button", name="Undo").click()
        expect(worker.get_by_role("textbox")).to_have_value(said + " 1")
        worker.get_by_role("textbox").fill(said)
        worker.wait_for_timeout(310)
        worker.get_by_role("button", name="Skip this item").click()
        expect(worker.get_by_role("textbox")).to_be_hidden()
        sign_in(page, service)
        page.goto(f"{service.url}/campaigns/{id}")
        expect(page.locator('[data-part="comments"] li')).to_contain_text(f"{said}")
        expect(page.locator('[data-part="comments"] li')).to_contain_text("ann on t")
        expect(page.locator("#log")).to_contain_text(f"Comment: “{said} 1”")
        page.locator('[data-part="comments"] li a').click()
        expect(page.get_by_role("cell", name=said)).to_be_visible()
        page.goto(f"{service.url}/campaigns/{id}/worker?name=ann")
        expect(page.locator(".comments li")).to_contain_text("skipped")
        assert worker.evaluate("window.ran") is None and page.evaluate("window.ran") is None


def test_comments_over_http(service: Service) -> None:
    id = service.campaign("spoken")
    with service.http() as http, service.worker("ann", id) as ann:
        lease = ann.post(f"/campaigns/{id}/ask").json()["lease"]["id"]
        wrong = [{"label": "yes", "comment": "x" * 1001}, {"label": "yes", "comment": 1}]
        assert [ann.post(f"/leases/{lease}/tell", json=body).status_code for body in wrong] == [422, 422]
        assert ann.post(f"/leases/{lease}/tell", json={"label": "yes", "comment": "=cmd"}).status_code == 200
        lease = ann.post(f"/campaigns/{id}/ask").json()["lease"]["id"]
        assert ann.post(f"/leases/{lease}/release", json={"comment": "no picture"}).status_code == 200
        found = http.get(f"/campaigns/{id}/labels", params={"unanswered": True}).json()["labels"]
        assert sorted(one["comment"] for one in found) == ["=cmd", "no picture"]
        assert ",'=cmd" in http.get(f"/campaigns/{id}/labels", params={"format": "csv"}).text
    with Client(service.url, service.token) as client:
        lease_of_bob = client.ask(id, worker="bob")
        assert lease_of_bob
        client.tell(lease_of_bob, "no", comment="from a program")
        assert "from a program" in {one.comment for one in client.labels(id)}


def test_deleting_over_http(service: Service) -> None:
    id = service.campaign("over")
    own = link(service, id)
    reader = create_token(service.campaign_service.store, "reader", "auditor")
    with service.http() as http, service.http(reader) as auditor, service.worker("ann", id) as ann:
        lease = ann.post(f"/campaigns/{id}/ask").json()["lease"]["id"]
        for other in (auditor, ann):
            assert other.delete(f"/campaigns/{id}").status_code == 403
        deleted = http.delete(f"/campaigns/{id}")
        assert deleted.status_code == 200 and deleted.json()["id"] == id
        assert http.delete(f"/campaigns/{id}").json() == deleted.json()  # again: nothing happens
        assert http.delete("/campaigns/never").status_code == 404
        told = ann.post(f"/leases/{lease}/tell", json={"label": "yes"})
        assert told.status_code == 410 and told.json()["type"] == "urn:nextlabel:gone"
        assert [http.get(f"/campaigns/{id}{path}").status_code for path in ("", "/results", "/events")] == [410] * 3
        assert http.post("/campaigns", json={"id": id, "budget": 3}).status_code == 409
    with httpx.Client(timeout=120, follow_redirects=True) as browser:
        gone = browser.get(own, params={"completion": COMPLETION}, headers={"Accept-Language": "de"})
        assert gone.status_code == 410 and "Diese Kampagne wurde entfernt" in gone.text
        assert "Vielen Dank" in gone.text and f'href="{COMPLETION}"' in gone.text.replace("&amp;", "&")
    with Client(service.url, service.token) as client:
        with pytest.raises(GoneError, match="deleted"):
            client.status(id)
        client.delete(id)


def test_changes_over_http_are_checked(service: Service) -> None:
    id = service.campaign("checked")
    wrong: list[dict[str, Any]] = [
        {"display_names": ["one"]}, {"display_names": "x"}, {"language": "xx"}, {"instructions": None},
        {"show": ["nothing"]}, {"instructions": "x" * 20_001}, {"labels": ["a", "b"]},
    ]  # fmt: skip
    with service.http() as http:
        assert [http.patch(f"/campaigns/{id}", json=body).status_code for body in wrong] == [422] * len(wrong)
        fine = http.patch(f"/campaigns/{id}", json={"name": "New", "display_names": ["N", "Y"]}).json()
        assert (fine["settings"]["name"], fine["settings"]["display_names"]) == ("New", ["N", "Y"])
    with Client(service.url, service.token) as client:
        status = client.change(id, question="Q?", display_names=None, show=["*"])
        assert status.settings.display_names is None and status.settings.show == ("*",)
