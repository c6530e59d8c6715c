"""The workers' page in a frame of Mechanical Turk: a real browser, and local servers that stand for its sites.

The page that frames is at ``localhost`` and the service at ``127.0.0.1``: two sites for a browser, which in a private
window lets the second have neither cookies nor storage in a frame of the first. Windows of tests are private.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Frame, Page, expect

from browser import at, check_accessible, chromium
from framing_site import Platform, platform
from nextlabel.campaign.declaration import LANGUAGES
from nextlabel.campaign.records import Visit
from nextlabel.errors import InputError
from nextlabel.service.settings import ServiceSettings
from nextlabel.web.pages import mount_pages
from nextlabel.web.worker.texts import worker_texts
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
PREVIEW = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "HIT1"}
#: The page takes no answer so soon after an item came (``SETTLE_MS`` of worker.js).
SETTLED_MS = 310


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
def mover(turk: Platform) -> Iterator[Platform]:
    """A site that takes work back and sends the browser on to the first."""
    with platform(redirect=f"{turk.url}/done") as site:
        yield site


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, turk: Platform, mover: Platform) -> Iterator[Service]:
    folder, submit = tmp_path_factory.mktemp("frame"), f"{turk.url}, {mover.url}"
    with on_sqlite(folder, pages=mount_pages, frame_hosts=turk.url, submit_hosts=submit) as running:
        yield running


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
    for _ in range(3000):
        if framed(page).url.startswith("chrome-error://"):
            return True
        if framed(page).url.startswith("http") and framed(page).evaluate("document.readyState") == "complete":
            return False
        page.wait_for_timeout(20)
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
    assert (row.given, row.reserved) == (0, 0) and service.campaign_service.store.records.find(
        Visit, campaign="looked_at"
    ) == []


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
    (visit,) = service.campaign_service.store.records.find(Visit, campaign="turked")
    assert (visit.worker, visit.id, visit.study) == ("mturk:A1", "3ASSIGNMENT", "HIT1")
    assert [row.labels for row in service.campaign_service.store.workers("turked")] == [3]


def test_only_the_sites_of_the_settings_frame_it(
    service: Service, turk: Platform, stranger: Platform, chromium: Browser
) -> None:
    link = f"{hit(service, 'guarded')}?{urlencode(turk.parameters('A2'))}"
    with service.http() as http:
        links = http.post("/campaigns/guarded/links", json={"workers": ["ann"]}).json()
    forbidden = (links["links"][0]["url"], f"{service.url}/sign-in")
    with at(chromium) as page:
        page.goto(turk.framing(link))
        assert not refused(page)
        expect(page.frame_locator("iframe").get_by_role("heading", name="Item 1")).to_be_visible()
        for address in forbidden:  # other pages may be framed by nobody
            page.goto(turk.framing(address))
            assert refused(page), address
        for address in (link, f"{link.partition('?')[0]}?{urlencode(PREVIEW)}", forbidden[0]):
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
    assert service.campaign_service.store.records.find(Visit, campaign="mistaken") == []


def test_a_redirect_on_the_way_back_is_allowed_to_the_platforms_sites(
    service: Service, turk: Platform, mover: Platform, chromium: Browser
) -> None:
    link = hit(service, "moved", most_labels_per_worker=1)
    with at(chromium) as page:
        page.goto(turk.framing(f"{link}?{urlencode(mover.parameters('A5'))}"))
        answer(page, "yes")
        page.frame_locator("iframe").get_by_role("button", name="Submit your work").click()
        expect(page.frame_locator("iframe").get_by_text("Handed back.")).to_be_visible()
        assert framed(page).url == f"{turk.url}/done"
    assert [one["assignmentId"] for one in mover.handed_back] == ["3ASSIGNMENT"]


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


def test_the_preview_in_every_language(service: Service) -> None:
    link = hit(service, "many_languages", tasks=1)
    with httpx.Client(timeout=120) as http:
        for language in LANGUAGES:
            page, texts = http.get(link, params=PREVIEW, headers={"accept-language": language}), worker_texts(language)
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


def test_without_sites_nobody_frames_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with on_sqlite(tmp_path_factory.mktemp("closed"), pages=mount_pages, frame_hosts="") as service:
        page = httpx.get(hit(service, "closed"), params=PREVIEW, timeout=120)
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
