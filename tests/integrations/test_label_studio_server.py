"""A campaign and a real Label Studio server: run by ``make test-label-studio`` alone, which installs one.

Nothing here tells the bridge of annotations except where a test is about that: it reads what has changed, so that every
test is also one of webhooks that were missed. The whole journey, with kills and a browser, is
``python -m benchmarks.live.label_studio``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.live.label_studio_server import TOKEN, Person, StudioServer, result_of
from benchmarks.live.server import free_port

from nextlabel.application.service import CampaignService
from nextlabel.errors import ConflictError, InputError
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.bridge import Bridge, control_of, push_results
from nextlabel.integrations.label_studio.connection import connect, register_webhook
from nextlabel.store.sql import open_store

pytestmark = pytest.mark.label_studio
ANN, BOB = "ann@example.org", "bob@example.org"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioServer]:
    made = StudioServer(tmp_path_factory.mktemp("label-studio"))
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def tokens(server: StudioServer) -> dict[str, str]:
    return {email: server.sign_up(email) for email in (ANN, BOB)}


@pytest.fixture
def service() -> Iterator[CampaignService]:
    made = CampaignService(open_store("memory:"))
    yield made
    made.close()


Connect = Callable[..., "Connected"]


@pytest.fixture
def connected(server: StudioServer, tokens: dict[str, str], service: CampaignService) -> Iterator[Connect]:
    """Makes a project with so many tasks and connects it."""
    made: list[Connected] = []

    def make(tasks: int, **wishes: Any) -> Connected:
        made.append(Connected(server, tokens, service, tasks, **wishes))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Connected:
    """A project, its people and its campaign."""

    def __init__(
        self, server: StudioServer, tokens: dict[str, str], service: CampaignService, tasks: int, **wishes: Any
    ) -> None:
        self.server, self.service = server, service
        self.project = server.make_project([f"text {k}" for k in range(tasks)])
        self.wishes: dict[str, Any] = {"annotators": [ANN, BOB], **wishes}
        self.studio, self.said = LabelStudio(server.url, TOKEN), list[str]()
        self.ann, self.bob = (Person(server, tokens[email], self.project) for email in (ANN, BOB))
        self.bridge = self.connect()

    def connect(self) -> Bridge:
        bridge = connect(self.studio, self.project, self.service, self.said.append, **self.wishes)
        bridge.reconcile()
        return bridge

    def close(self) -> None:
        for one in (self.studio, self.ann, self.bob):
            one.close()

    def equal(self) -> None:
        """Both systems have the same labels, and the budget is that of those that count."""
        names = {self.ann.user: ANN, self.bob.user: BOB}
        theirs = {
            (str(one["task"]), names[one["user"]], one["label"])
            for one in self.server.annotations(self.project)
            if one["label"] is not None
        }
        ours = list(self.service[self.bridge.campaign].labels())
        assert {(one.task, one.worker, one.label) for one in ours} == theirs
        row = self.service.store.row(self.bridge.campaign)
        assert row.spent == sum(one.counted for one in ours) <= row.budget
        assert self.service[self.bridge.campaign].verify().right


def test_annotations_are_followed_whatever_happens_to_them(
    server: StudioServer, service: CampaignService, connected: Connect
) -> None:
    all_ = connected(6, budget=8)
    ann, bob, bridge = all_.ann, all_.bob, all_.bridge
    first = ann.next_task()
    assert first is not None and ann.next_task() == first  # it stays until it is labelled
    made = ann.submit(first["id"], "positive")
    assert ann.next_task() is None  # nothing but the tab's task is given out
    bridge.sweep()
    second = ann.next_task()
    assert second is not None and second["id"] != first["id"]
    all_.equal()
    ann.change(made, "negative")
    bridge.sweep()
    all_.equal()
    ann.submit(second["id"], None)  # skipped
    third = bob.next_task()
    assert third is not None
    unasked = next(task for task in range(first["id"], first["id"] + 6) if task not in (first["id"], third["id"]))
    bob.submit(unasked, "positive")  # by another way than his tab
    bridge.sweep()
    all_.equal()
    assert service.store.row(bridge.campaign).spent == 2
    assert bob.next_task() == third or bob.next_task()["id"] == third["id"]  # type: ignore[index]
    ann.delete(made)
    bridge.sweep()
    all_.equal()
    assert service.store.row(bridge.campaign).spent == 1
    draft = {"result": result_of("negative"), "lead_time": 1}  # a draft is no label
    ann.http.post(f"/api/tasks/{third['id']}/drafts", json=draft).raise_for_status()
    bridge.sweep()
    all_.equal()


def test_the_budget_is_spent_exactly_and_what_comes_later_is_kept(
    server: StudioServer, service: CampaignService, connected: Connect
) -> None:
    all_ = connected(4, budget=3)
    ann, bob, bridge = all_.ann, all_.bob, all_.bridge
    given: list[tuple[int, int]] = []
    for _ in range(3):
        for person in (ann, bob):
            task = person.next_task()
            if task is not None:
                given.append((person.user, task["id"]))
                person.submit(task["id"], "positive")
                bridge.sweep()
    assert len(given) == len(set(given)) == 3
    assert ann.next_task() is None and bob.next_task() is None
    row = service.store.row(bridge.campaign)
    assert (row.spent, row.closed_reason) == (3, "budget_spent")
    other = next(task for user, task in given if user == ann.user)
    over = bob.submit(other if (bob.user, other) not in given else _fresh(given, bob.user), "negative")
    bridge.sweep()
    all_.equal()
    counted = {one.worker: one.counted for one in service[bridge.campaign].labels() if one.label == "negative"}
    assert counted == {BOB: False}
    bob.delete(over)
    bridge.sweep()
    assert service.store.row(bridge.campaign).spent == 3
    all_.wishes = {"budget": 4, "annotators": [ANN, BOB]}
    all_.connect()
    assert ann.next_task() is not None or bob.next_task() is not None
    all_.equal()


def _fresh(given: list[tuple[int, int]], user: int) -> int:
    """A task that the user has not had."""
    tasks = {task for _, task in given}
    return next(task for task in range(min(tasks), min(tasks) + 4) if (user, task) not in given)


def test_connecting_again_changes_nothing_and_a_restart_loses_nothing(
    server: StudioServer, service: CampaignService, connected: Connect
) -> None:
    all_ = connected(5, budget=9)
    register_webhook(all_.bridge, "http://127.0.0.1:9")
    task = all_.ann.next_task()
    before = (
        all_.studio.tabs(all_.project),
        all_.studio.webhooks(all_.project),
        service.store.row(all_.bridge.campaign),
    )
    again = all_.connect()
    register_webhook(again, "http://127.0.0.1:9")
    after = (all_.studio.tabs(all_.project), all_.studio.webhooks(all_.project), service.store.row(again.campaign))
    assert after[:2] == before[:2] and after[2].seq == before[2].seq
    assert [hook["project"] for hook in after[1]] == [all_.project]
    found = all_.ann.next_task()
    assert task is not None and found is not None and found["id"] == task["id"]
    all_.ann.submit(task["id"], "negative")  # nobody listens
    server.kill()
    server.start()
    with server.client() as owner:
        more = [{"text": "a new one"}]
        owner.post(f"/api/projects/{all_.project}/import", json=more).raise_for_status()
    all_.bridge = all_.connect()
    all_.equal()
    assert service.store.row(again.campaign).tasks == 6
    all_.wishes = {"campaign": "another"}
    with pytest.raises(ConflictError, match="is connected with campaign"):
        all_.connect()


def test_two_people_have_the_same_task_and_a_newcomer_gets_a_tab(
    server: StudioServer, service: CampaignService, connected: Connect
) -> None:
    all_ = connected(1, budget=9, annotators=None)
    one, other = all_.ann.next_task(), all_.bob.next_task()
    assert one is not None and other is not None and one["id"] == other["id"]
    all_.ann.submit(one["id"], "positive")
    all_.bob.submit(one["id"], "negative")
    cy = Person(server, server.sign_up(f"cy{all_.project}@example.org"), all_.project)
    cy.submit(one["id"], "positive")  # somebody whom nobody knows
    cy.close()
    all_.bridge.sweep()
    labels = {label.worker: label.label for label in service[all_.bridge.campaign].labels()}
    assert labels == {ANN: "positive", BOB: "negative", f"cy{all_.project}@example.org": "positive"}
    assert any(f",{cy.user}," in str(tab["data"]) for tab in all_.studio.tabs(all_.project))


def test_predictions_go_both_ways(service: CampaignService, connected: Connect) -> None:
    all_ = connected(4, budget=8)
    control = control_of(all_.studio.project(all_.project))
    task = all_.ann.next_task()
    assert task is not None
    result = control.result("positive")
    rows = [{"task": task["id"], "result": result, "score": 0.97, "model_version": "bert"}]
    all_.studio.add_predictions(all_.project, rows)
    all_.ann.submit(task["id"], "positive")
    all_.bridge = all_.connect()
    labels = {(one.worker, one.task, one.label) for one in service[all_.bridge.campaign].labels()}
    assert labels == {(ANN, str(task["id"]), "positive"), ("model:bert (sure)", str(task["id"]), "positive")}
    pushed = push_results(all_.studio, all_.project, control, service, all_.bridge.campaign)
    assert (pushed.created, pushed.changed, pushed.same) == (1, 0, 0)
    again = push_results(all_.studio, all_.project, control, service, all_.bridge.campaign)
    assert (again.created, again.changed, again.same) == (0, 0, 1)
    mine = [one for one in all_.studio.predictions(all_.project) if one["model_version"] == pushed.model_version]
    sure = next(one for one in service[all_.bridge.campaign].results() if one.labels)
    assert [(one["task"], one["score"]) for one in mine] == [(task["id"], pytest.approx(sure.probability, abs=1e-6))]
    all_.bridge = all_.connect()  # its own predictions are not read back
    assert len(list(service[all_.bridge.campaign].labels())) == 2


def test_a_personal_access_token_is_exchanged(server: StudioServer) -> None:
    project = server.make_project(["one"])
    with server.client() as owner:
        token = owner.post("/api/token/").raise_for_status().json()["token"]
    with LabelStudio(server.url, token) as studio:
        assert studio.project(project)["id"] == project
    with (
        LabelStudio(server.url, token[:-4] + "abcd") as studio,
        pytest.raises(InputError, match="not accept the token"),
    ):
        studio.project(project)


def test_a_project_without_choices_is_refused(server: StudioServer) -> None:
    config = '<View><Text name="text" value="$text"/><TextArea name="words" toName="text"/></View>'
    with LabelStudio(server.url, TOKEN) as studio, pytest.raises(InputError, match="has no Choices"):
        control_of(studio.project(server.make_project(["one"], config)))


def test_the_next_task_is_there_when_label_studio_replies(
    server: StudioServer, tokens: dict[str, str], tmp_path: Path
) -> None:
    """By the command itself, whose readings are an hour apart: Label Studio tells it of each annotation."""
    project, port = server.make_project([f"text {k}" for k in range(5)]), free_port()
    command = [
        sys.executable, "-c", "from nextlabel.cli.app import main; main()", "label-studio", "connect", "--url",
        server.url, "--project", str(project), "--budget", "4", "--db", str(tmp_path / "labels.db"), "--port",
        str(port), "--annotators", ANN, "--every", "3600",
    ]  # fmt: skip
    process = subprocess.Popen(command, env={**os.environ, "LABEL_STUDIO_API_KEY": TOKEN}, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/healthz", process)
        ann = Person(server, tokens[ANN], project)
        seen = []
        while (task := ann.next_task()) is not None:
            seen.append(task["id"])
            ann.submit(task["id"], "positive")
        ann.close()
        assert len(set(seen)) == len(seen) == 4
        refused = httpx.post(f"http://127.0.0.1:{port}/label-studio/label_studio_{project}/webhook", json={})
        assert refused.status_code == 401
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None
        try:
            httpx.get(address)
            return
        except httpx.TransportError:
            time.sleep(0.2)
