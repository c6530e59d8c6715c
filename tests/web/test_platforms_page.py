"""A campaign on platforms: the requester's page, and the completion code of participants, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from browser import at, check_accessible, chromium
from nextlabel.web.pages import mount_pages
from nextlabel.web.worker.texts import worker_texts
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
CODE = "C1A2B3C4"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("platforms"), pages=mount_pages, prolific_secret="s") as running:
        yield running


def study(service: Service, id: str, **settings: Any) -> str:
    """The link of a campaign for platforms."""
    service.campaign(id, **{"completion_code": CODE, "most_labels_per_worker": 1, "pay_per_label": 0.5, **settings})
    with service.http() as http:
        link: str = http.post(f"/campaigns/{id}/links", json={}).json()["join"]["url"]
    return link


def came(participant: str, submission: str = "s1") -> dict[str, str]:
    return {"PROLIFIC_PID": participant, "STUDY_ID": "study1", "SESSION_ID": submission}


def test_a_participant_gets_the_code_for_their_work(service: Service, chromium: Browser) -> None:
    link = study(service, "coded")
    with at(chromium) as page:
        page.goto(f"{link}?PROLIFIC_PID=p1&STUDY_ID=study1&SESSION_ID=s1")
        assert CODE not in page.content()
        page.get_by_role("button", name="yes").click()
        expect(page.get_by_text(f"Your completion code: {CODE}")).to_be_visible()
        finish = page.get_by_role("link", name="Finish at app.prolific.com")
        expect(finish).to_have_attribute("href", f"https://app.prolific.com/submissions/complete?cc={CODE}")
        check_accessible(page)


def test_who_gets_a_code(service: Service) -> None:
    link = study(service, "earned", tasks=1, budget=1)
    nothing = worker_texts("en")("wait.nothing_done")
    with httpx.Client(timeout=120, follow_redirects=True) as late:
        with httpx.Client(timeout=120, follow_redirects=True) as first:
            page = first.get(link, params={"participant": "p1"})
            lease = page.text.split('data-lease="')[1].split('"')[0]
            page = first.post(f"{service.url}/work/earned", data={"lease": lease, "answer": "1"})
            assert CODE in page.text and "prolific" not in page.text  # another platform's: the code alone
        page = late.get(link, params=came("p2"))
        assert CODE not in page.text and nothing in page.text
    with service.http() as http:
        own = http.post("/campaigns/earned/links", json={"workers": ["ann"]}).json()["links"][0]["url"]
    with httpx.Client(timeout=120, follow_redirects=True) as known:
        page = known.get(own)  # no platform sent them
        assert CODE not in page.text and nothing not in page.text


def test_a_second_submission_earns_its_own_code(service: Service) -> None:
    link = study(service, "twice")
    for submission, earned in (("s1", True), ("s2", False), ("s1", True)):
        with httpx.Client(timeout=120, follow_redirects=True) as browser:
            page = browser.get(link, params=came("p1", submission))
            if "data-lease" in page.text:
                lease = page.text.split('data-lease="')[1].split('"')[0]
                page = browser.post(f"{service.url}/work/twice", data={"lease": lease, "answer": "1"})
            assert (CODE in page.text) == earned, submission


def test_the_requesters_page(service: Service, chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = study(service, "watched", most_labels_per_worker=2)
    export = tmp_path_factory.mktemp("export") / "prolific_export.csv"
    export.write_text("Submission id,Participant id,Status\ns7,p7,RETURNED\nx,y,APPROVED\n")
    with httpx.Client(timeout=120, follow_redirects=True) as browser:
        page = browser.get(link, params=came("p7", "s7"))
        lease = page.text.split('data-lease="')[1].split('"')[0]
        browser.post(f"{service.url}/work/watched", data={"lease": lease, "answer": "1"})
    assert service.campaign_service.store.row("watched").reserved == 1
    with at(chromium) as page:
        page.goto(f"{service.url}/sign-in?next=/campaigns/watched/platforms")
        page.get_by_label("Token").fill(service.token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Study URL for Prolific")).to_have_value(
            f"{link}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%STUDY_ID%}}}}&SESSION_ID={{{{%SESSION_ID%}}}}"
        )
        expect(page.get_by_label("Address for the webhook")).to_have_value(f"{service.url}/api/v1/hooks/prolific")
        question = page.get_by_label("External question").input_value()
        assert f"<ExternalURL>{link.replace('/j/', '/f/')}</ExternalURL>" in question
        expect(page.get_by_role("row", name="s7")).to_contain_text("prolific:p7")
        expect(page.get_by_text("only worker.mturk.com, workersandbox.mturk.com,")).to_be_visible()
        check_accessible(page)
        page.get_by_label("Statuses from a file").set_input_files(export)
        page.get_by_role("button", name="Read statuses").click()
        expect(page.get_by_text("2 submissions read: 1 ended.")).to_be_visible()
        expect(page.get_by_role("row", name="s7")).to_contain_text("RETURNED")
        section = page.locator("#prolific")
        section.get_by_label("What it pays a worker already").fill("0.20")
        with page.expect_download() as download:
            section.get_by_role("button", name="Download bonuses").click()
        assert download.value.path().read_text() == "p7,0.50\n"  # Prolific pays nothing for what is returned
    assert service.campaign_service.store.row("watched").reserved == 0


def test_a_file_that_is_no_export_is_refused(service: Service) -> None:
    study(service, "misfiled")
    with httpx.Client(base_url=service.url, timeout=120, follow_redirects=True) as http:
        http.post("/sign-in", data={"token": service.token})
        sent = http.post("/campaigns/misfiled/platforms", files={"file": ("x.csv", b"a,b\n1,2\n")})
        assert sent.status_code == 422 and "no column" in sent.text
        assert http.post("/campaigns/misfiled/platforms", data={}).status_code == 422
        assert http.get("/campaigns/nobody/platforms").status_code == 404
        changed = http.post("/campaigns/misfiled/settings", data={"completion_code": "not a code"})
        assert changed.status_code == 422
        assert http.post("/campaigns/misfiled/settings", data={"completion_code": "D9"}).status_code == 200
    assert service.campaign_service.store.row("misfiled").config.completion_code == "D9"
