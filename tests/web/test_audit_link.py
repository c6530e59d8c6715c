"""The link for an expert: a real browser answers the items that were drawn, without a token, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from browser import PHONE, at, check_accessible, chromium
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("audit"), pages=mount_pages) as running:
        yield running


def drawn_link(service: Service, id: str, items: int) -> str:
    with service.http() as http:
        assert http.post(f"/campaigns/{id}/audit/draw", json={"items": items}).status_code == 200
        made = http.post(f"/campaigns/{id}/audit/link").json()
    assert made["items"] == len(service.campaign_service[id].audit_items()) and "127.0.0.1" in made["url"]
    return str(made["url"])


def sign_in(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/sign-in")
    page.get_by_label("Token").fill(service.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Campaigns", exact=True)).to_be_visible()


def test_an_expert_answers_what_was_drawn(service: Service, chromium: Browser) -> None:
    id = service.campaign("expert", tasks=6, question="Is it good?", language="en")
    with service.http() as http:
        assert http.post(f"/campaigns/{id}/audit/link").status_code == 409
    link = drawn_link(service, id, 3)
    with at(chromium, PHONE) as page:
        page.goto(link)
        assert page.url == f"{service.url}/audit/{id}"
        expect(page.get_by_role("heading", name="Is it good?")).to_be_visible()
        expect(page.get_by_text("0 of 3 answered")).to_be_visible()
        check_accessible(page)
        page.get_by_role("button", name="yes").click()
        expect(page.get_by_text("1 of 3 answered")).to_be_visible()
        page.get_by_role("link", name="Undo").click()
        page.get_by_role("button", name="no").click()
        expect(page.get_by_text("1 of 3 answered")).to_be_visible()
        for _ in range(2):
            page.get_by_role("button", name="yes").click()
        expect(page.get_by_role("heading", name="All items are answered")).to_be_visible()
    assert [one.label for one in service.campaign_service[id].audit_items()] == ["no", "yes", "yes"]


def test_the_link_is_for_that_draw_and_ends(service: Service) -> None:
    id = service.campaign("ends", tasks=8)
    link = drawn_link(service, id, 2)
    other = service.campaign("another", tasks=3)
    drawn_link(service, other, 2)
    service.campaign_service[id].draw_audit(2, 1)
    later = service.campaign_service[id].audit_items()[-1].task
    outside = next(
        f"t{k}" for k in range(8) if f"t{k}" not in {o.task for o in service.campaign_service[id].audit_items()}
    )
    with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
        assert browser.get(f"/audit/{id}").status_code == 401
        assert browser.get(f"{link}x").status_code == 401
        assert browser.get(link).status_code == 303
        address = f"/audit/{id}"
        for task, answer, status in ((later, "0", 404), (outside, "0", 404), ("t0", "7", 422), ("t0", "x", 422)):
            assert browser.post(address, data={"task": task, "answer": answer}).status_code == status
        assert browser.get(f"/audit/{other}").status_code == 401
        assert browser.get(f"/campaigns/{id}").status_code == 303  # to sign in
        assert browser.get(f"/api/v1/campaigns/{id}/results").status_code == 401
        first = service.campaign_service[id].audit_items()[0].task
        foreign = {"origin": "https://elsewhere.example"}
        assert browser.post(address, data={"task": first, "answer": "1"}, headers=foreign).status_code == 403
        assert browser.post(address, data={"task": first, "answer": "1"}).status_code == 303
        with service.http() as http:
            assert http.post(f"/campaigns/{id}/links/revoke", json={"audit": True}).status_code == 200
        assert browser.get(address).status_code == 401 and browser.get(link).status_code == 401
        assert browser.post(address, data={"task": first, "answer": "0"}).status_code == 401
    assert sum(one.label is not None for one in service.campaign_service[id].audit_items()) == 1


def test_the_requester_finds_the_link_and_ends_it(service: Service, chromium: Browser, tmp_path: Path) -> None:
    id = service.campaign("found", tasks=4)
    service.campaign_service[id].draw_audit(2)
    with at(chromium) as page:
        sign_in(page, service)
        page.goto(f"{service.url}/campaigns/{id}/audit")
        link = page.get_by_label("Link for an expert").input_value()
        assert httpx.get(link).status_code == 303
        page.get_by_role("button", name="End links for experts").click()
        expect(page.get_by_label("Link for an expert")).not_to_have_value(link)
        assert httpx.get(link).status_code == 401


QUESTIONS = [
    {"name": "tone", "text": "What is the tone?", "labels": ["good", "bad"]},
    {"name": "why", "answer": "multi", "labels": ["price", "quality"], "only_if": {"tone": "bad"}},
    {"name": "stars", "answer": "rating", "scale": "1..3"},
    {"name": "score", "answer": "number", "range": "0..100"},
]


def test_an_expert_answers_several_questions(service: Service, chromium: Browser) -> None:
    """On the page of the link, by finger and keys; on the dashboard, where each question then has its accuracy."""
    id = "form"
    with service.http() as http:
        assert http.post("/campaigns", json={"id": id, "budget": 8, "questions": QUESTIONS}).status_code == 201
        http.post(f"/campaigns/{id}/tasks", json=[{"id": f"t{k}", "text": f"text {k}"} for k in range(4)])
    campaign = service.campaign_service[id]
    for worker in ("ann", "bob"):
        while lease := campaign.ask(worker):
            campaign.tell(lease.id, {"tone": "good", "stars": "2", "score": 40 if worker == "ann" else 50})
    link = drawn_link(service, id, 4)
    with at(chromium, PHONE) as page:
        page.goto(link)
        label = lambda text: page.locator("label.choice", has_text=re.compile(rf"^\s*{text}"))  # noqa: E731
        expect(label("price")).to_be_hidden()
        check_accessible(page)
        for text in ("bad", "price", "3"):
            label(text).tap()
        page.get_by_label("A number from 0 to 100").fill("80")
        page.get_by_role("button", name="Send").tap()
        expect(page.get_by_text("1 of 4 answered")).to_be_visible()
        for key in ("1", "6", "8", "4", "4", "Enter"):
            page.keyboard.press(key)
        expect(page.get_by_text("2 of 4 answered")).to_be_visible()
    with at(chromium) as page:
        sign_in(page, service)
        page.goto(f"{service.url}/campaigns/{id}/audit")
        check_accessible(page)
        page.get_by_label("What is the tone?").select_option("bad")
        page.get_by_label("quality").check()
        page.get_by_label("stars").select_option("1")
        page.get_by_label("score").fill("12.5")
        page.get_by_role("button", name="Set").click()
        expect(page.get_by_text("3 of 4 items answered.")).to_be_visible()
        page.goto(f"{service.url}/campaigns/{id}")
        table = page.get_by_role("group", name="Audited questions")
        expect(table.get_by_role("row", name="stars")).to_contain_text("1 of 3 right")
        expect(table.get_by_role("row", name="score")).to_contain_text("1 of 3 right")
        expect(page.get_by_text("bob labelled t0 as tone: good, stars: 2, score: 50.")).to_be_visible()
        check_accessible(page)
    assert [one.label for one in campaign.audit_items()] == [
        '{"tone": "bad", "why": ["price"], "stars": "3", "score": "80"}',
        '{"tone": "good", "stars": "2", "score": "44"}',
        '{"tone": "bad", "why": ["quality"], "stars": "1", "score": "12.5"}',
        None,
    ]
