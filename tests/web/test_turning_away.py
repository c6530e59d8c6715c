"""Turning workers away over HTTP and in a real browser: the worker's page, the forms, and what the requester sees."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from browser import PHONE, at, check_accessible, chromium
from live_crowds import LABELS, WORKERS, say, settled, tasks
from nextlabel.campaign.declaration import LANGUAGES
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]
PROLIFIC = "https://app.prolific.com/submissions/complete?cc=CODE"
GUESSER = WORKERS[-1]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A campaign that has turned the guesser away."""
    with on_sqlite(tmp_path_factory.mktemp("turning"), pages=mount_pages) as running:
        with running.http() as http:
            made = {"id": "picky", "budget": 250, "labels": LABELS, "turn_away": True, "language": "en", "seed": 0}
            assert http.post("/campaigns", json=made).json()["settings"]["turn_away"] is True
            assert http.post("/campaigns/picky/tasks", json=tasks(0, 60)).status_code == 200
        commands, rng = running.campaign_service, np.random.default_rng(5)
        settled(commands, "picky")
        for step in range(300):
            worker = WORKERS[step % len(WORKERS)]
            lease = commands["picky"].ask(worker)
            if not lease and worker == GUESSER:
                settled(commands, "picky")  # by the refit that may be on its way, too
                lease = commands["picky"].ask(worker)
                if not lease:
                    assert lease.reason == "turned_away"
                    break
            if lease:
                commands["picky"].tell(lease, say(lease.task, worker, rng))
            if step % 10 == 0:  # labels that come quicker than refits would spend the budget before anybody is known
                settled(commands, "picky")
        else:
            raise AssertionError("the guesser was not turned away")
        yield running


def test_the_worker_is_thanked_and_led_on(service: Service, chromium: Browser) -> None:
    with service.http() as http:
        link = http.post("/campaigns/picky/links", json={"workers": [GUESSER]}).json()["links"][0]["url"]
        given = {one["worker"]: one for one in http.get("/campaigns/picky/workers").json()["workers"]}[GUESSER]
    with at(chromium, PHONE) as page:
        page.goto(f"{link}?completion={PROLIFIC}")
        expect(page.locator("[data-reason=turned_away]")).to_be_visible()
        expect(page.get_by_role("heading", name="Thank you for your help")).to_be_visible()
        expect(page.get_by_text(f"You have given {given['labels']} labels")).to_be_visible()
        expect(page.get_by_role("link", name="Finish at app.prolific.com")).to_have_attribute("href", PROLIFIC)
        assert "worth" not in page.content() and "price" not in page.content()
        check_accessible(page)
    assert given["turned_away"] >= 1


def test_the_requester_sees_who_and_changes_it(service: Service, chromium: Browser) -> None:
    with service.http() as http:
        assert http.get("/campaigns/picky").json()["turned_away"] >= 1
        assert http.post("/campaigns/picky/ask", json={"worker": GUESSER}).json()["reason"] == "turned_away"
    with at(chromium) as page:
        page.goto(f"{service.url}/sign-in")
        page.get_by_label("Token").fill(service.token)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{service.url}/campaigns/picky")
        expect(page.get_by_role("row", name=GUESSER).get_by_text("turned away")).to_be_visible()
        expect(page.locator("dt", has_text="Turned away")).to_be_visible()
        expect(page.get_by_text(f"There was nothing for {GUESSER}").first).to_be_attached()
        tick = page.get_by_label("Give no more work")
        expect(tick).to_be_checked()
        check_accessible(page)
        tick.uncheck()
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_label("Give no more work")).not_to_be_checked()
        page.goto(f"{service.url}/campaigns/picky/worker?name={GUESSER}")
        expect(page.locator("dt", has_text="Turned away")).to_be_visible()
    assert service.campaign_service.store.row("picky").config.turn_away is False
    settled(service.campaign_service, "picky")
    with service.http() as http:
        assert http.post("/campaigns/picky/ask", json={"worker": GUESSER}).json()["lease"] is not None
        assert http.patch("/campaigns/picky", json={"turn_away": "yes"}).status_code == 422


def test_the_form_of_a_new_campaign(service: Service, chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("text\none\ntwo\n")
    with at(chromium) as page:
        page.goto(f"{service.url}/sign-in")
        page.get_by_label("Token").fill(service.token)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{service.url}/new")
        page.locator("#file").set_input_files(tmp_path / "items.csv")
        page.get_by_text("More", exact=True).click()
        expect(page.get_by_label("Give no more work")).to_be_checked()
        page.get_by_label("Give no more work").uncheck()
        page.get_by_role("button", name="Create campaign").click()
        page.wait_for_url("**/campaigns/*/links**")
        assert not service.campaign_service.store.row(page.url.split("/")[-2]).config.turn_away


def test_every_language_says_it() -> None:
    folder = Path(mount_pages.__code__.co_filename).parent / "worker" / "languages"
    said = {code: tomllib.loads((folder / f"{code}.toml").read_text())["reasons"]["turned_away"] for code in LANGUAGES}
    assert len({one["text"] for one in said.values()}) == len(LANGUAGES)
