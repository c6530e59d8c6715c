"""Notices by every door: the page with buttons that act, the command line, the API and a webhook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from live_crowds import LABELS, WORKERS, say, settled, tasks
from nextlabel.application import certificate as certificates
from nextlabel.application.certificate import CrowdBound
from nextlabel.cli.app import run
from nextlabel.service.access import create_token
from nextlabel.web.pages import mount_pages
from service.test_webhooks import Receiver, until
from service_fixtures import Service, on_sqlite

GUESSER = WORKERS[-1]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with on_sqlite(tmp_path, pages=mount_pages, webhook_hosts="127.0.0.1") as running:
        yield running


def begin(service: Service, url: str, **settings: object) -> None:
    with service.http() as http:
        made = {"id": "shop", "budget": 250, "labels": LABELS, "policy": "crowd", "seed": 0, **settings}
        assert http.post("/campaigns", json=made).status_code == 201
        hook = {"url": url, "types": ["campaign.notice"]}
        assert http.post("/campaigns/shop/webhooks", json=hook).status_code == 201


def notices(service: Service) -> list[dict[str, object]]:
    with service.http() as http:
        found: list[dict[str, object]] = http.get("/campaigns/shop").json()["notices"]
    return found


@contextmanager
def browser(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as client:
        assert client.post("/sign-in", data={"token": service.token}).status_code == 303
        yield client


def test_who_answers_at_random_is_named_everywhere_and_blocked_with_a_button(
    service: Service, receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(service, receiver.url)
    commands, rng = service.campaign_service, np.random.default_rng(5)
    with service.http() as http:
        assert http.post("/campaigns/shop/tasks", json=tasks(0, 60)).status_code == 200
    settled(commands, "shop")
    for step in range(220):
        worker = WORKERS[step % len(WORKERS)]
        lease = commands["shop"].ask(worker)
        if lease:
            # always the same: no luck, whenever a refit comes
            commands[lease.campaign].tell(lease.id, LABELS[0] if worker == GUESSER else say(lease.task, worker, rng))
        if step % 10 == 0:
            settled(commands, "shop")
    settled(commands, "shop")
    (told,) = [one for one in notices(service) if one["worker"] == GUESSER]
    assert told["kind"] == "answers_at_random" and told["actions"] == ["pause", "block", "block_and_drop"]
    assert str(told["text"]).startswith(f"{GUESSER} answers at random (")
    until(lambda: any(one["worker"] == GUESSER for m in receiver.acknowledged for one in m["data"]["notices"]))
    assert receiver.acknowledged[0]["type"] == "campaign.notice"
    database = f"sqlite:///{tmp_path / 'labels.db'}"
    assert run(["campaign", "status", "shop", "--db", database]) == 0
    out = capsys.readouterr().out
    assert f"{GUESSER} answers at random (" in out and f"nextlabel campaign workers shop block {GUESSER}" in out
    assert run(["campaign", "status", "shop", "--db", database, "--json"]) == 0
    assert GUESSER in [one["worker"] for one in json.loads(capsys.readouterr().out)["notices"]]
    with browser(service) as page:
        shown = page.get("/campaigns/shop").text
        assert f"{GUESSER} answers at random (" in shown and 'value="block_and_drop"' in shown
        form = {"name": GUESSER, "action": "block_and_drop", "back": "campaign", "reason": "answers at random"}
        done = page.post("/campaigns/shop/worker", data=form)
        assert done.status_code == 303 and done.headers["location"] == "/campaigns/shop"
        assert 'value="block_and_drop"' not in page.get("/campaigns/shop").text
    assert GUESSER not in [one["worker"] for one in notices(service)]
    report = next(one for one in commands.worker_reports.of("shop") if one.worker == GUESSER)
    assert report.standing == "blocked" and report.dropped == report.bought > 0


def test_a_viewer_is_not_told_of_single_workers(service: Service) -> None:
    begin(service, "http://127.0.0.1:1/", policy="uncertainty")
    commands = service.campaign_service
    with service.http() as http:
        http.post("/campaigns/shop/tasks", json=tasks(0, 3))
    commands["shop"].ask("w1")
    told = {"notices": [["answers_at_random", "w1", 12]], "new": []}
    commands.run("shop", lambda one: one.record("noticed", told))
    viewer = create_token(commands.store, "looks", "viewer")
    with service.http(viewer) as http:
        assert http.get("/campaigns/shop").json()["notices"] == []
    assert [one["worker"] for one in notices(service)] == ["w1"]


def test_a_crowd_that_fails_its_controls_is_withheld_by_every_door(
    service: Service, receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six accounts with one shared wrong answer, three honest workers; it ends when their labels are dropped."""
    begin(service, receiver.url, labels=["no", "yes"], budget=150)
    commands, words = service.campaign_service, ("no", "yes")
    rows = [{**one, **({"gold": words[k % 2]} if k >= 40 else {})} for k, one in enumerate(tasks(0, 52))]
    with service.http() as http:
        assert http.post("/campaigns/shop/tasks", json=rows).status_code == 200
    settled(commands, "shop")
    for step in range(260):
        lease = commands["shop"].ask(f"w{step % 9}")
        if lease:
            commands[lease.campaign].tell(lease.id, words[(int(lease.task[1:]) + (step % 9 > 2)) % 2])
        if step % 20 == 0:
            settled(commands, "shop")
    settled(commands, "shop")
    commands["shop"].certificate()
    (told,) = [one for one in notices(service) if one["kind"] == "truths_contradict"]
    assert told["worker"] is None and told["actions"] == ["audit"]
    until(
        lambda: any(one["kind"] == "truths_contradict" for m in receiver.acknowledged for one in m["data"]["notices"])
    )
    with service.http() as http:
        found = http.get("/campaigns/shop/certificate").json()
    assert found["upper"] is None and found["forecast"] is None and found["price"] is None
    assert "may act together" in found["withheld"] and "leave their labels out" in found["rests_on"]
    assert run(["campaign", "status", "shop", "--db", f"sqlite:///{tmp_path / 'labels.db'}"]) == 0
    out = capsys.readouterr().out
    assert "known items right" in out and "expected now" not in out and "campaign audit shop --audits 60" in out
    with browser(service) as page:
        shown = page.get("/campaigns/shop").text
        assert "Known items right" in shown and "Known truths contradict the model" in shown
    flags = {one.worker: one.flags for one in commands.worker_reports.of("shop")}
    assert [name for name in sorted(flags) if "fails controls" in flags[name]] == [f"w{j}" for j in range(3, 9)]
    for j in range(3, 9):
        commands["shop"].drop_labels(f"w{j}")
    settled(commands, "shop")
    for j in range(3):
        commands["shop"].ask(f"w{j}")
    settled(commands, "shop")
    assert [one for one in notices(service) if one["kind"] == "truths_contradict"] == []


@pytest.mark.parametrize("policy", ["crowd", "uncertainty"])
def test_nobody_can_label_more_until_somebody_new_comes(service: Service, receiver: Receiver, policy: str) -> None:
    begin(service, receiver.url, policy=policy)
    commands, rng = service.campaign_service, np.random.default_rng(1)
    with service.http() as http:
        http.post("/campaigns/shop/tasks", json=tasks(0, 12))
    if policy == "crowd":
        settled(commands, "shop")
    for _ in range(12):
        for worker in WORKERS[:3]:
            lease = commands["shop"].ask(worker)
            assert lease
            commands[lease.campaign].tell(lease.id, say(lease.task, worker, rng))
    refused = commands["shop"].ask(WORKERS[0])
    assert not refused and refused.reason == "nothing_left_for_you"
    (told,) = notices(service)
    assert told["kind"] == "nobody_can_label" and told["labels"] == 250 - 36 and told["actions"] == ["invite"]
    until(lambda: bool(receiver.acknowledged))
    assert receiver.acknowledged[0]["data"]["notices"][0]["text"] == told["text"]
    if policy == "crowd":
        certificate = commands["shop"].certificate()
        assert certificate.forecast == certificate.now and certificate.possible == 0
        assert certificate.as_of_labels == 36
    with browser(service) as page:
        shown = page.get("/campaigns/shop").text
        assert ("Agreement now" in shown) == (policy == "crowd")
        assert "Nobody can label more, and 214 labels of the budget are left: invite more workers." in shown
        assert 'href="/campaigns/shop/links">Invite workers' in shown
    assert commands["shop"].ask(WORKERS[3])
    assert notices(service) == []
    assert commands["shop"].verify().right


def test_blocking_the_last_one_who_could_says_so_at_once(service: Service) -> None:
    begin(service, "http://127.0.0.1:1/", policy="uncertainty")
    commands = service.campaign_service
    with service.http() as http:
        http.post("/campaigns/shop/tasks", json=tasks(0, 12))
    lease = commands["shop"].ask("ann")
    assert lease
    commands[lease.campaign].tell(lease.id, LABELS[0])
    assert notices(service) == []
    commands["shop"].set_standing("ann", "blocked")
    assert [one["kind"] for one in notices(service)] == ["nobody_can_label"]
    commands["shop"].set_standing("ann", "active")
    assert notices(service) == []


@pytest.mark.parametrize("bound", [0.4, 1.0])
def test_a_bound_that_the_labels_contradict_is_withheld_and_never_raised(
    service: Service, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(service, "http://127.0.0.1:1/", most_labels=5)
    commands, rng = service.campaign_service, np.random.default_rng(2)
    with service.http() as http:
        http.post("/campaigns/shop/tasks", json=tasks(0, 12))
    settled(commands, "shop")
    for worker in WORKERS[:3]:
        for _ in range(8):
            lease = commands["shop"].ask(worker)
            assert lease
            commands[lease.campaign].tell(lease.id, say(lease.task, worker, rng))
    found = commands.run("shop", certificates._Crowd.of)
    monkeypatch.setattr(certificates, "FEWEST_LABELS", 20)
    commands.certificates.bounds._last["shop"] = CrowdBound(found.terms, 24, bound, "It is set.", 0.0, 0.0)
    with service.http() as http:
        told = http.get("/campaigns/shop/certificate").json()
    assert told["as_of_labels"] == 24
    if bound == 1.0:
        assert told["upper"] == 1.0 and told["withheld"] == ""
    else:
        assert told["now"] > bound and told["upper"] is None
        assert "contradict the bound's assumptions" in told["withheld"]
