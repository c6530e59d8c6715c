"""A qualification before work: questions with known answers, a pass mark, attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

import nextlabel as nl
from nextlabel.client import Client
from nextlabel.web.pages import mount_pages
from service_fixtures import on_sqlite


def campaign(controls: int = 8, **settings: Any) -> nl.Campaign:
    tasks = [{"id": f"t{k}", "text": "x", **({"gold": "1"} if k < controls else {})} for k in range(40)]
    given = {"budget": 60, "qualification": 4, "pass_mark": 0.75, "policy": "index", **settings}
    return nl.Campaign.create("memory:", tasks=tasks, **given)


def give(on: nl.Campaign, worker: str, labels: str) -> list[bool]:
    """Answer so many tasks, s for a skip; which of them were control questions."""
    known = []
    for label in labels:
        lease = on.ask(worker)
        assert lease
        known.append(int(lease.task[1:]) < 8)
        _ = on.release(lease) if label == "s" else on.tell(lease, label)
    return known


@pytest.mark.parametrize("policy", ["index", "crowd"])
def test_who_passes_works_and_who_fails_is_blocked_until_restored(policy: str) -> None:
    with campaign(policy=policy) as on:
        assert give(on, "ann", "1101") == [True] * 4
        for worker, labels in (("bob", "1100"), ("cis", "11ss")):
            assert give(on, worker, labels) == [True] * 4
            refused = on.ask(worker)
            assert not refused and refused.reason == "worker_blocked"
        assert {one.worker: one.reason for one in on.workers() if one.standing == "blocked"} == dict.fromkeys(
            ("bob", "cis"), "Failed the qualification."
        )
        assert not all(give(on, "ann", "11111"))
        on.restore_worker("bob")
        assert not all(give(on, "bob", "11111"))
        assert on.status().spent <= 10 and on.verify().right


def test_a_second_attempt_has_other_questions_as_long_as_there_are_any() -> None:
    with campaign(attempts=3) as on:  # eight controls are two attempts
        held = []
        for _ in range(4):
            lease = on.ask("ann")
            assert lease
            held.append(lease.task)
            on.tell(lease, "0")
        lease = on.ask("ann")
        assert lease and lease.task not in held
        on.tell(lease, "1")
        assert give(on, "ann", "111") == [True] * 3 and not all(give(on, "ann", "1111"))
        give(on, "bob", "00000000")
        assert on.ask("bob").reason == "worker_blocked"  # type: ignore[union-attr]
        assert on.verify().right


def test_a_lapsed_question_is_not_right_and_an_answer_may_be_taken_back() -> None:
    now = 0.0
    tasks = [{"id": f"t{k}", "text": "x", **({"gold": "1"} if k < 2 else {})} for k in range(9)]
    with nl.Campaign.create(
        "memory:", tasks=tasks, budget=9, qualification=1, lease_seconds=60, policy="index", clock=lambda: now
    ) as on:
        lease = on.ask("ann")
        assert lease
        on.tell(lease, "1")
        on.undo(lease)
        on.tell(lease, "0")
        assert on.ask("ann").reason == "worker_blocked"  # type: ignore[union-attr]
        assert on.ask("bob")
        now = 100.0
        assert on.ask("bob").reason == "worker_blocked"  # type: ignore[union-attr]


def test_too_few_questions_are_waited_for() -> None:
    with campaign(controls=2) as on:
        give(on, "ann", "11")
        assert on.ask("ann").reason == "preparing"  # type: ignore[union-attr]
        on.set_gold({"t5": "1", "t6": "1"})
        give(on, "ann", "11")
        assert not all(give(on, "ann", "111"))


def test_whoever_hands_out_links_is_told_that_questions_are_lacking(tmp_path: Path) -> None:
    with on_sqlite(tmp_path, pages=mount_pages) as service, Client(service.url, service.token) as client:
        id = client.create(budget=9, labels=["no", "yes"], qualification=2).id
        client.add_tasks(id, [{"id": "t0", "text": "x", "gold": "yes"}])
        with httpx.Client(base_url=service.url, timeout=60) as browser:
            browser.post("/sign-in", data={"token": service.token})
            told = "nobody gets other items before you add some"
            assert told in browser.get(f"/campaigns/{id}/links").text
            client.add_tasks(id, [{"id": "t9", "text": "x", "gold": "no"}])
            assert told not in browser.get(f"/campaigns/{id}/links").text


def test_workers_read_that_their_first_items_are_a_test(tmp_path: Path) -> None:
    with on_sqlite(tmp_path, pages=mount_pages) as service, Client(service.url, service.token) as client:
        id = client.create(budget=20, labels=["no", "yes"], qualification=2, policy="index").id
        client.add_tasks(id, [{"id": f"t{k}", "text": "x", **({"gold": "yes"} if k < 2 else {})} for k in range(9)])
        link = client.links(id, ["ann"]).links[0].url
        with httpx.Client(base_url=service.url, timeout=60, follow_redirects=True) as browser:
            page = browser.get(link)
            while 'name="lease"' not in page.text:  # the policy's tables are made first
                assert "are a test" not in page.text
                page = browser.get(link)
            for _ in range(2):
                assert "The first items are a test: 80% of your answers must be right." in page.text
                address = str(page.url)
                lease = page.text.partition('name="lease" value="')[2].partition('"')[0]
                page = browser.post(address, data={"lease": lease, "answer": "1"}, headers={"origin": service.url})
            assert "Item 3" in page.text and "are a test" not in page.text
