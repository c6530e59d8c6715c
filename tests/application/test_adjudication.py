"""The requester sets the answer of a doubtful item: final, known to the model, marked, undone, and in the log."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.cli.app import run
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.web.pages import mount_pages
from service_fixtures import on_sqlite
from stores import everything, simple


def _label_all(service: CampaignService, id: str, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for worker in ("ann", "bob", "cem"):
        while lease := service[id].ask(worker):
            service[lease.campaign].tell(lease.id, "yes" if rng.random() < 0.7 else "no")


@pytest.mark.parametrize("policy", ["crowd", "okg-pending", "index"])
def test_an_answer_that_is_set_is_final_until_it_is_undone(service: CampaignService, policy: str) -> None:
    rows = [{"id": f"t{k}", "text": "x", **({"gold": "yes"} if k == 0 else {})} for k in range(12)]
    config = CampaignSettings(budget=60, labels=("no", "yes"), policy=policy, most_labels=3)
    id = service.create(config, tasks=rows).id
    _label_all(service, id)
    before = {one.task: one for one in service[id].results()}
    doubtful = next(one for one in before.values() if one.labels == 3)
    other = "no" if doubtful.label == "yes" else "yes"
    assert service[id].adjudicate({doubtful.task: other}) == 1
    assert service[id].adjudicate({doubtful.task: other}) == 0  # the same again is no event
    now = {one.task: one for one in service[id].results()}[doubtful.task]
    assert (now.label, now.probability, now.source, now.control) == (other, 1.0, "adjudicated", False)
    assert now.counts == doubtful.counts  # the workers' labels stay
    assert service[id].verify().right
    for answers, said in (({"nobody": "yes"}, NotFoundError), ({"t1": "maybe"}, InputError), ({}, InputError)):
        with pytest.raises(said):
            service[id].adjudicate(answers)
    with pytest.raises(ConflictError, match="control question"):
        service[id].adjudicate({"t0": "no"})
    with pytest.raises(ConflictError, match="nobody has set"):
        service[id].undo_adjudication(["t1" if doubtful.task != "t1" else "t2"])
    assert service[id].undo_adjudication([doubtful.task]) == 1
    after = {one.task: one for one in service[id].results()}
    assert after[doubtful.task].label == doubtful.label and after[doubtful.task].source == "labels"
    assert after[doubtful.task].labels == doubtful.labels and after[doubtful.task].closed == doubtful.closed
    if policy != "crowd":
        assert after[doubtful.task].probability == pytest.approx(doubtful.probability)
    kinds = [event.kind for event in service.store.events(id, 0, 10_000)]
    assert kinds.count("adjudicated") == kinds.count("adjudication_undone") == 1
    stored = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == stored


@pytest.mark.parametrize("policy", ["crowd", "okg-pending"])
def test_labels_that_come_after_the_answer_count_when_it_is_undone(service: CampaignService, policy: str) -> None:
    """A worker held the item when its answer was set: the label is kept, and nobody else gets the item."""
    config = CampaignSettings(budget=20, labels=("no", "yes"), policy=policy, most_labels=2)
    id = service.create(config, tasks=[{"id": f"t{k}", "text": "x"} for k in range(3)]).id
    lease = service[id].ask("ann")
    assert lease
    service[id].adjudicate({lease.task: "yes"})
    assert service[lease.campaign].tell(lease.id, "no").counted
    held = set()
    while other := service[id].ask("bob"):
        held.add(other.task)
        service[other.campaign].tell(other.id, "yes")
    assert lease.task not in held and len(held) == 2
    service[id].undo_adjudication([lease.task])
    result = {one.task: one for one in service[id].results()}[lease.task]
    assert (result.label, result.labels, result.counts) == ("no", 1, {"no": 1, "yes": 0})
    again = service[id].ask("bob")
    assert again and again.task == lease.task  # it has room for labels again
    assert service[id].verify().right


def test_an_answer_teaches_who_is_good(service: CampaignService) -> None:
    """Two workers who always contradict each other: what the requester says of some items decides the others."""
    config = CampaignSettings(budget=80, labels=("no", "yes"), most_labels=2)
    id = service.create(config, tasks=[{"id": f"t{k}", "text": "x"} for k in range(40)]).id
    for worker, label in (("ann", "yes"), ("bob", "no")):
        while lease := service[id].ask(worker):
            service[lease.campaign].tell(
                lease.id, label if int(lease.task[1:]) % 2 else ("yes" if label == "no" else "no")
            )
    service[id].adjudicate({f"t{k}": "yes" if k % 2 else "no" for k in range(12)})  # ann is right
    wrong = [one.task for one in service[id].results() if one.label != ("yes" if int(one.task[1:]) % 2 else "no")]
    assert not wrong


def test_over_http_in_the_browser_and_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from nextlabel.client import Client

    with on_sqlite(tmp_path, pages=mount_pages) as service:
        id = service.campaign("judged", tasks=4)
        keys = [one.task for one in service.campaign_service[id].results()]
        with Client(service.url, service.token) as client:
            assert client.adjudicate(id, {keys[0]: "yes"}) == 1
            assert [one.source for one in client.results(id)] == ["adjudicated", "labels", "labels", "labels"]
            assert client.undo_adjudication(id, [keys[0]]) == 1
        with service.http() as http:
            refused = http.post(f"/campaigns/{id}/adjudicate", json={"answers": {"nobody": "yes"}})
            assert refused.status_code == 404 and "no task 'nobody'" in refused.text
            assert http.post(f"/campaigns/{id}/adjudicate", json={"answers": {keys[0]: "m"}}).status_code == 422
        with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
            assert browser.post("/sign-in", data={"token": service.token}).status_code == 303
            assert "Set the answer" in browser.get(f"/campaigns/{id}/tasks/1").text
            assert browser.post(f"/campaigns/{id}/tasks/1", data={"label": "no"}).status_code == 303
            page = browser.get(f"/campaigns/{id}/tasks/1").text
            assert "it is final" in page and "Take the answer back" in page
            assert "The requester set the answers of 1 item." in browser.get(f"/campaigns/{id}").text
            assert browser.post(f"/campaigns/{id}/tasks/1", data={"label": "maybe"}).status_code == 422
            assert browser.post(f"/campaigns/{id}/tasks/1", data={}).status_code == 303
            assert "it is final" not in browser.get(f"/campaigns/{id}/tasks/1").text
            listed = {"label": "no", "back": "campaign"}  # from the list of doubtful items
            assert (
                browser.post(f"/campaigns/{id}/tasks/1", data=listed).headers["location"] == f"/campaigns/{id}#h-hard"
            )
            assert f"Take back the answer of {keys[1]}" in browser.get(f"/campaigns/{id}").text
            assert browser.post(f"/campaigns/{id}/tasks/1", data={"back": "campaign"}).status_code == 303
            assert "Take back the answer" not in browser.get(f"/campaigns/{id}").text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("id,text\na,x\nb,y\n")
    create = ["campaign", "create", "tasks.csv", "--id", "j", "--budget", "4", "--labels", "no,yes"]
    assert run(create) == 0
    assert run(["campaign", "change", "j", "--adjudicate", "a", "yes"]) == 0
    assert "The answer of a is yes." in capsys.readouterr().err
    assert run(["campaign", "export", "j"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ",control,source," in lines[0]
    assert ",adjudicated," in lines[1] and ",labels," in lines[2]
    undo = ["campaign", "change", "j", "--undo-adjudication", "a"]
    assert run(undo) == 0
    assert "The labels decide about a again." in capsys.readouterr().err
    assert run(undo) == 2
    for wrong in (["a"], ["z", "yes"], ["a", "maybe"]):
        assert run(["campaign", "change", "j", "--adjudicate", *wrong]) == 2


def test_simple_campaigns_have_labels_as_their_source(service: CampaignService) -> None:
    id = service.create(simple(4), tasks=["x", {"id": "g", "text": "y", "gold": "yes"}]).id
    assert [(one.source, one.control) for one in service[id].results()] == [("labels", False), ("control", True)]
