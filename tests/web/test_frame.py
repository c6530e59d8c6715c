"""The workers' page in a frame of Mechanical Turk: a real browser, and local servers that stand for its sites.

The page that frames is at ``localhost`` and the service at ``127.0.0.1``: two sites for a browser, which keeps the
cookies of the second from its frame in the first.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from browser import at, check_accessible, launched
from nextlabel.campaign.declaration import LANGUAGES
from nextlabel.errors import InputError
from nextlabel.service.settings import ServiceSettings
from nextlabel.web.pages import mount_pages
from nextlabel.web.worker.texts import worker_texts
from service_fixtures import Service, on_sqlite

GONE = "<p>Handed back.</p>"
PREVIEW = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "HIT1"}
#: The page takes no answer so soon after an item came (``SETTLE_MS`` of worker.js).
SETTLED_MS = 310


@dataclass
class Platform:
    """A site that shows another page in a frame, and takes assignments that are handed back."""

    url: str = ""
    handed_back: list[dict[str, str]] = field(default_factory=list)

    def framing(self, address: str) -> str:
        """The page that frames an address."""
        return f"{self.url}/?frame={quote(address, safe='')}"

    def parameters(self, worker: str, assignment: str = "3ASSIGNMENT") -> dict[str, str]:
        """What Mechanical Turk adds to the address."""
        return {"assignmentId": assignment, "hitId": "HIT1", "workerId": worker, "turkSubmitTo": self.url}


@contextmanager
def platform(redirect: str = "") -> Iterator[Platform]:
    site = Platform()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = dict(parse_qsl(urlsplit(self.path).query))
            framed = given.get("frame", "").replace("&", "&amp;")
            self.answer(f"<iframe title=HIT src='{framed}' width=900 height=700></iframe>" if framed else GONE)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            site.handed_back.append({"path": self.path, **dict(parse_qsl(body))})
            if redirect:
                self.send_response(303)
                self.send_header("location", redirect)
                self.end_headers()
            else:
                self.answer()

        def answer(self, body: str = GONE) -> None:
            page = f"<!doctype html><html lang=en><title>Turk</title><body>{body}".encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    site.url = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def turk() -> Iterator[Platform]:
    """The site that is allowed, and that takes work back."""
    with platform() as site:
        yield site


@pytest.fixture(scope="module")
def stranger() -> Iterator[Platform]:
    """A site that the settings do not name."""
    with platform() as site:
        yield site


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, turk: Platform) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("frame")
    with on_sqlite(folder, pages=mount_pages, frame_hosts=turk.url, submit_hosts=turk.url) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser that lets no site have cookies or storage in the frame of another."""
    with launched("--test-third-party-cookie-phaseout") as browser:
        yield browser


def hit(service: Service, id: str, **settings: Any) -> str:
    """The address of a campaign for frames."""
    service.campaign(id, **{"question": "Is it good?", "lease_seconds": 600, **settings})
    with service.http() as http:
        address: str = http.post(f"/campaigns/{id}/links", json={}).json()["join"]["frame"]
    return address


def framed(page: Page) -> Frame:
    """What is in the frame."""
    return page.frames[1]


def refused(page: Page) -> bool:
    """Whether the browser shows an error of its own in the frame."""
    page.wait_for_function("true")
    for _ in range(600):
        if framed(page).url.startswith("chrome-error://"):
            return True
        if framed(page).url.startswith("http") and framed(page).evaluate("document.readyState") == "complete":
            return False
        page.wait_for_timeout(100)
    raise AssertionError("the frame neither loaded nor was refused")


def answer(page: Page, label: str) -> None:
    page.wait_for_timeout(SETTLED_MS)
    page.frame_locator("iframe").get_by_role("button", name=label).click()


def test_a_preview_takes_no_item(service: Service, turk: Platform, chromium: Browser) -> None:
    link = hit(service, "looked_at", instructions="Read **well**.")
    with at(chromium) as page:
        page.goto(turk.framing(f"{link}?{urlencode(PREVIEW)}"))
        inside = page.frame_locator("iframe")
        expect(inside.get_by_text("This is a preview. Accept the task to start working on it.")).to_be_visible()
        expect(inside.get_by_text("Read well.")).to_be_visible()
        expect(inside.get_by_text("text 0")).to_be_visible()
        expect(inside.get_by_role("button", name="yes")).to_be_disabled()
        expect(inside.locator("form")).to_have_count(0)
        check_accessible(framed(page))
    row = service.campaign_service.store.row("looked_at")
    assert (row.given, row.reserved) == (0, 0) and service.campaign_service.store.visits.of("looked_at") == []


def test_accept_answer_and_hand_back(service: Service, turk: Platform, chromium: Browser) -> None:
    link = hit(service, "turked", most_labels_per_worker=3, instructions="Read **well**.")
    with at(chromium) as page:
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(turk.framing(f"{link}?{urlencode(turk.parameters('A1'))}"))
        inside = page.frame_locator("iframe")
        inside.get_by_role("button", name="Start").click()
        expect(inside.get_by_role("heading", name="Item 1")).to_be_visible()
        answer(page, "yes")
        expect(inside.get_by_role("heading", name="Item 2")).to_be_visible()
        inside.get_by_role("button", name="Undo").click()  # the address knows what was answered last
        expect(inside.get_by_role("heading", name="Item 1")).to_be_visible()
        answer(page, "no")
        expect(inside.get_by_role("heading", name="Item 2")).to_be_visible()
        with page.expect_event("framenavigated"):
            framed(page).evaluate("location.reload()")
        expect(inside.get_by_role("heading", name="Item 2")).to_be_visible()  # the instructions were read
        answer(page, "yes")
        expect(inside.get_by_role("heading", name="Item 3")).to_be_visible()
        page.wait_for_timeout(SETTLED_MS)
        framed(page).locator("body").press("1")  # the key of the first answer
        button = inside.get_by_role("button", name="Submit your work")
        expect(button).to_be_visible()
        check_accessible(framed(page))
        button.click()
        expect(inside.get_by_text("Handed back.")).to_be_visible()
        assert page.context.cookies() == [] and problems == []
    back = {"path": "/mturk/externalSubmit", "assignmentId": "3ASSIGNMENT", "labels": "3"}
    assert turk.handed_back[-1] == back
    (visit,) = service.campaign_service.store.visits.of("turked")
    assert (visit.worker, visit.id, visit.study) == ("mturk:A1", "3ASSIGNMENT", "HIT1")
    assert [row.labels for row in service.campaign_service.store.workers("turked")] == [3]


def test_only_the_sites_of_the_settings_frame_it(
    service: Service, turk: Platform, stranger: Platform, chromium: Browser
) -> None:
    link = f"{hit(service, 'guarded')}?{urlencode(turk.parameters('A2'))}"
    with service.http() as http:
        links = http.post("/campaigns/guarded/links", json={"workers": ["ann"]}).json()
    forbidden = (links["links"][0]["url"], f"{links['join']['url']}?workerId=A3", f"{service.url}/sign-in")
    with at(chromium) as page:
        page.goto(turk.framing(link))
        assert not refused(page)
        expect(page.frame_locator("iframe").get_by_role("heading", name="Item 1")).to_be_visible()
        for address in forbidden:  # other pages may be framed by nobody
            page.goto(turk.framing(address))
            assert refused(page), address
        for address in (link, f"{link.partition('?')[0]}?{urlencode(PREVIEW)}", *forbidden):
            page.goto(stranger.framing(address))
            assert refused(page), address


def test_errors_are_shown_in_the_frame(service: Service, turk: Platform, chromium: Browser) -> None:
    link = hit(service, "mistaken")
    elsewhere = {**turk.parameters("A4"), "turkSubmitTo": "https://evil.example"}
    with at(chromium) as page:
        page.goto(turk.framing(f"{link}?{urlencode(elsewhere)}"))
        expect(page.frame_locator("iframe").get_by_text("That did not work.")).to_be_visible()
        page.goto(turk.framing(f"{service.url}/frame/f1.x.y"))
        expect(page.frame_locator("iframe").get_by_text("This link does not work.")).to_be_visible()
    assert service.campaign_service.store.visits.of("mistaken") == []


def test_a_redirect_on_the_way_back_is_allowed_to_the_platforms_sites(
    tmp_path_factory: pytest.TempPathFactory, turk: Platform, chromium: Browser
) -> None:
    folder = tmp_path_factory.mktemp("redirected")
    with (
        platform(redirect=f"{turk.url}/done") as other,
        on_sqlite(folder, pages=mount_pages, frame_hosts=turk.url, submit_hosts=other.url) as service,
    ):
        link = hit(service, "moved", most_labels_per_worker=1)
        with at(chromium) as page:
            page.goto(turk.framing(f"{link}?{urlencode(other.parameters('A5'))}"))
            answer(page, "yes")
            page.frame_locator("iframe").get_by_role("button", name="Submit your work").click()
            expect(page.frame_locator("iframe").get_by_text("Handed back.")).to_be_visible()
            assert framed(page).url == f"{turk.url}/done"
        assert [one["assignmentId"] for one in other.handed_back] == ["3ASSIGNMENT"]


def forms(text: str) -> list[tuple[str, dict[str, str]]]:
    """The forms of a page: where they are sent, and their hidden fields."""
    found = re.findall(r'<form[^>]*action="([^"]*)"(.*?)</form>', text, re.S)
    hidden = re.compile(r'type="hidden" name="([^"]*)" value="([^"]*)"')
    return [(action.replace("&amp;", "&"), dict(hidden.findall(body))) for action, body in found]


def test_it_works_without_scripts_and_without_cookies(service: Service, turk: Platform) -> None:
    link = hit(service, "plain", most_labels_per_worker=2, instructions="Read well.")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as http:
        page = http.get(link, params=turk.parameters("A6"))
        assert f"frame-ancestors {turk.url};" in page.headers["content-security-policy"]
        assert "x-frame-options" not in page.headers
        for fields in ({"move": "begin"}, {"answer": "1"}, {"move": "release"}, {"answer": "0"}):
            action, hidden = forms(page.text)[0]
            page = http.post(action, data={**hidden, **fields})
            assert page.status_code == 200
        assert dict(http.cookies) == {}
        back = {"assignmentId": "3ASSIGNMENT", "labels": "2"}
        assert forms(page.text)[0] == (f"{turk.url}/mturk/externalSubmit", back)
        assert http.get("/work/plain").headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in http.get("/sign-in").headers["content-security-policy"]


def test_nothing_is_handed_in_for_no_work(service: Service, turk: Platform) -> None:
    link = hit(service, "idle", most_labels_per_worker=1)
    nothing = worker_texts("en")("wait.nothing_done")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as http:
        page = http.get(link, params=turk.parameters("A7"))
        action, hidden = forms(page.text)[0]
        assert "externalSubmit" in http.post(action, data={**hidden, "answer": "1"}).text
        again = http.get(link, params=turk.parameters("A7", "3SECOND"))
        assert nothing in again.text and "externalSubmit" not in again.text
        first = http.get(link, params=turk.parameters("A7"))  # loaded again, it is the assignment with the label
        assert "externalSubmit" in first.text


def test_a_revoked_link_ends_the_session(service: Service, turk: Platform) -> None:
    link = hit(service, "revoked")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as http:
        page = http.get(link, params=turk.parameters("A8"))
        assert page.status_code == 200
        with service.http() as api:
            api.post("/campaigns/revoked/links/revoke", json={"join": True})
        assert http.get(page.url).status_code == 401 and http.get(link, params=turk.parameters("A8")).status_code == 401


def test_another_sites_form_is_refused(service: Service, turk: Platform) -> None:
    link = hit(service, "forged")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as http:
        action, hidden = forms(http.get(link, params=turk.parameters("A9")).text)[0]
        sent = http.post(action, data={**hidden, "answer": "1"}, headers={"sec-fetch-site": "cross-site"})
        assert sent.status_code == 403
        renewed = http.post(f"{urlsplit(action).path}/renew", data=hidden, headers={"sec-fetch-site": "same-origin"})
        assert renewed.json()["left"] > 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_preview_in_every_language(service: Service, language: str) -> None:
    link = hit(service, f"preview_{language}", tasks=1, language=language)
    with httpx.Client(timeout=120) as http:
        page = http.get(link, params=PREVIEW)
    texts = worker_texts(language)
    assert texts("preview.note") in page.text and f'dir="{texts.direction}"' in page.text


def test_settings_are_checked() -> None:
    assert ServiceSettings().frame_origins[0] == "https://worker.mturk.com"
    assert ServiceSettings().submit_origins == ("https://www.mturk.com", "https://workersandbox.mturk.com")
    assert ServiceSettings(frame_hosts="").frame_origins == ()
    assert ServiceSettings(frame_hosts="A.org, http://localhost:99/").frame_origins == (
        "https://a.org", "http://localhost:99",
    )  # fmt: skip
    for bad in ("*", "https://*.mturk.com", "a b", "javascript:x", "'self'", "a.org; script-src *"):
        with pytest.raises(InputError):
            ServiceSettings(frame_hosts=bad)
        with pytest.raises(InputError):
            ServiceSettings(submit_hosts=bad)
