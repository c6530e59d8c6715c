"""A live guarantee: freeze and draw, the expert's queue, the certificate, its record, and reopening."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import numpy as np
import pytest

from guarantee_record import proved
from nextlabel.application.guarantees import guarantee_record
from nextlabel.application.service import CampaignService
from nextlabel.campaign.replies import NoTask
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.cli.app import run
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.policies.crowd.allocator import GrowingCrowd
from nextlabel.web.pages import mount_pages
from service_fixtures import on_sqlite
from stores import everything


def truth_of(task: str) -> str:
    return "yes" if int(task[1:]) % 3 == 0 else "no"


def labelled(service: CampaignService, policy: str, wrong: float, tasks: int = 120) -> str:
    """A campaign with labels of workers who err."""
    config = CampaignSettings(
        budget=3 * tasks, labels=("no", "yes"), policy=policy, most_labels=3, at_most_wrong=0.1, sure=0.9
    )
    rows = [{"id": f"t{k}", "text": "x", **({"gold": truth_of(f"t{k}")} if k < 3 else {})} for k in range(tasks)]
    id = service.create(config, tasks=rows).id
    rng = np.random.default_rng(4)
    for worker in ("ann", "bob", "cem"):
        for _ in range(tasks // 2):
            lease = service[id].ask(worker)
            if not lease:
                break
            right = truth_of(lease.task)
            service[lease.campaign].tell(
                lease.id, right if rng.random() > wrong else ("no" if right == "yes" else "yes")
            )
    return id


def finish(service: CampaignService, id: str) -> int:
    """The expert answers whatever is asked; returns in how many batches."""
    batches = 0
    while asked := [one.task for one in service[id].guarantee_items() if one.label is None]:
        service[id].answer_guarantee({task: truth_of(task) for task in asked})
        batches += 1
        assert batches < 200
    return batches


@pytest.mark.parametrize(("policy", "wrong"), [("crowd", 0.1), ("okg-pending", 0.45)])
def test_from_the_freeze_to_a_certificate_that_others_can_check(
    service: CampaignService, tmp_path: Path, policy: str, wrong: float
) -> None:
    id = labelled(service, policy, wrong)
    campaign = service[id]
    service[id].adjudicate({"t5": truth_of("t5")})
    before = {one.task: one.label for one in service[id].results()}
    status = campaign.freeze()
    assert status.frozen and not status.certified and status.to_answer == status.audits
    drawn = [one.task for one in campaign.guarantee_items()]
    assert not {"t0", "t1", "t2", "t5"} & set(drawn)  # their truth was known before
    assert {one.task: one.label for one in service[id].results()} == before
    with pytest.raises(ConflictError, match="frozen already"):
        campaign.freeze()
    outside = next(task for task in before if task not in drawn)
    for answers, said in (({outside: "yes"}, NotFoundError), ({drawn[0]: "maybe"}, InputError), ({}, InputError)):
        with pytest.raises(said):
            campaign.answer_guarantee(answers)
    other = "no" if truth_of(drawn[0]) == "yes" else "yes"
    assert (
        campaign.answer_guarantee({drawn[0]: other}) == campaign.answer_guarantee({drawn[0]: truth_of(drawn[0])}) == 1
    )
    batches = finish(service, id)
    assert batches > 1 if wrong > 0.4 else batches >= 1
    status = campaign.guarantee()
    assert status.certified and status.to_answer == status.to_go == 0
    assert status.sentence.startswith("At most 10.0% of the 120 labels are wrong (90% sure;")
    with pytest.raises(ConflictError, match="it counts"):
        campaign.answer_guarantee({drawn[0]: other})
    results = {one.task: one for one in service[id].results()}
    assert {results[task].source for task in drawn} == {"expert"} and results["t5"].source == "adjudicated"
    assert all(results[task].label == truth_of(task) for task in drawn)
    assert {one.source for one in results.values()} >= {"control", "expert"}
    guarantee_record(service, id).save(tmp_path / "record.json")
    record = json.loads((tmp_path / "record.json").read_text())
    assert (record["entropy"], record["frozen"]) == (status.entropy, status.hash) and record["certified"]
    assert proved(record, tmp_path).startswith("Checked: At most 10.0%")
    stored = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == stored and campaign.guarantee() == status


def test_after_the_freeze_nothing_changes_the_labels_until_they_are_reopened(service: CampaignService) -> None:
    id = labelled(service, "okg-pending", 0.1)
    campaign = service[id]
    campaign.freeze()
    finish(service, id)
    frozen = {one.task: (one.label, one.probability) for one in service[id].results()}
    kept = next(one.task for one in service[id].results() if one.source == "frozen")
    other = "no" if frozen[kept][0] == "yes" else "yes"
    service[id].adjudicate({kept: other})
    service[id].drop_labels("ann")
    lease = service[id].ask("di")
    assert lease and service[lease.campaign].tell(lease.id, "yes").counted  # labels come in and are in the log
    assert {one.task: (one.label, one.probability) for one in service[id].results()} == frozen
    assert campaign.guarantee().certified
    status = campaign.reopen_labels()
    assert not status.frozen and not status.certified and "certificate is void" in status.sentence
    after = {one.task: one for one in service[id].results()}
    assert (after[kept].label, after[kept].source) == (other, "adjudicated")
    with pytest.raises(ConflictError, match="not frozen"):
        campaign.reopen_labels()
    assert campaign.freeze().frozen  # other labels, another draw
    assert guarantee_record(service, id).draws == 2
    finish(service, id)
    assert ", draw 2 of this campaign;" in campaign.guarantee().sentence
    campaign.reopen_labels()
    with pytest.raises(ConflictError, match="second draw"):
        campaign.freeze()
    assert service[id].verify().right


def test_what_an_audit_found_is_known_to_the_guarantee(service: CampaignService, tmp_path: Path) -> None:
    id = labelled(service, "okg-pending", 0.3)
    service[id].draw_audit(20)
    drawn = [one.task for one in service[id].audit_items()]
    service[id].answer_audit({task: truth_of(task) for task in drawn})
    service[id].freeze()
    assert not {*drawn} & {one.task for one in service[id].guarantee_items()}
    finish(service, id)
    results = {one.task: one for one in service[id].results()}
    assert all((results[task].label, results[task].source) == (truth_of(task), "audited") for task in drawn)
    assert proved(service[id].guarantee_record(), tmp_path).startswith("Checked: At most 10.0%")


def test_labels_that_were_drawn_long_ago_are_not_drawn_again(service: CampaignService) -> None:
    id = labelled(service, "okg-pending", 0.1, tasks=30)
    service[id].freeze()
    service[id].reopen_labels()
    service[id].adjudicate({"t7": "yes"})
    service[id].freeze()
    service[id].reopen_labels()
    service[id].undo_adjudication(["t7"])
    with pytest.raises(ConflictError, match="second draw"):
        service[id].freeze()


def test_what_cannot_be_frozen_is_refused(service: CampaignService) -> None:
    bare = service.create(CampaignSettings(budget=4), tasks=["x", "y"]).id
    with pytest.raises(InputError, match="how many labels may be wrong"):
        service[bare].freeze()
    with pytest.raises(ConflictError, match="not frozen"):
        service[bare].answer_guarantee({"x": "1"})
    with pytest.raises(ConflictError, match="not frozen"):
        service[bare].guarantee_record()
    id = labelled(service, "okg-pending", 0.1, tasks=30)
    seq = service.store.row(id).seq
    with pytest.raises(InputError, match="too few"):
        service[id].freeze(1)
    assert service.store.row(id).seq == seq  # nothing is half-written
    for wrong in (0, 1, 1.5):
        with pytest.raises(InputError):
            service[id].change(at_most_wrong=wrong)


def test_an_expert_answers_by_a_link_and_the_dashboard_leads_with_the_sentence(tmp_path: Path) -> None:
    from nextlabel.client import Client

    with on_sqlite(tmp_path, pages=mount_pages) as service:
        id = labelled(service.campaign_service, "okg-pending", 0.45, tasks=40)
        with Client(service.url, service.token) as client, service.http() as http:
            assert client.guarantee(id).sentence == "The labels are not frozen."
            assert client.freeze(id).frozen
            link = http.post(f"/campaigns/{id}/guarantee/link").json()["url"]
            with httpx.Client(timeout=60, headers={"origin": service.url}, follow_redirects=True) as expert:
                page = expert.get(link).text
                for _ in range(60):
                    if 'name="task" value="' not in page:
                        break
                    assert "robability" not in page  # what the campaign believes is hidden
                    task = page.split('name="task" value="')[1].split('"')[0]
                    number = 1 if truth_of(task) == "yes" else 0
                    page = expert.post(f"{service.url}/audit/{id}", data={"task": task, "answer": number}).text
            status = client.guarantee(id)
            assert proved(client.guarantee_record(id), tmp_path).startswith("Checked: ")
            assert status.certified and status.expert_answers == len(client.guarantee_items(id))
            with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
                assert browser.post("/sign-in", data={"token": service.token}).status_code == 303
                assert "At most 10.0% of the 40 labels are wrong" in browser.get(f"/campaigns/{id}").text
            assert not client.reopen_labels(id).certified
            assert http.post(f"/campaigns/{id}/guarantee/freeze", json={}).status_code == 409


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("id,text\n" + "".join(f"t{k},x\n" for k in range(30)))
    settings = ["--id", "g", "--budget", "30", "--labels", "no,yes", "--policy", "okg-pending"]
    assert run(["campaign", "create", "tasks.csv", *settings, "--at-most-wrong", "0.1", "--sure", "0.9"]) == 0
    assert run(["campaign", "audit", "g", "--freeze", "--save", "items.csv"]) == 0
    for _ in range(20):
        lines = (tmp_path / "items.csv").read_text().splitlines()[1:]
        if not lines:
            break
        tasks = [line.split(",")[0] for line in lines]
        answers = "".join(f"{task},{truth_of(task)}\n" for task in tasks)
        (tmp_path / "answers.csv").write_text(f"task,label\n{answers}")
        assert run(["campaign", "audit", "g", "--answers", "answers.csv", "--save", "items.csv"]) == 0
    assert run(["campaign", "audit", "g", "--record", "record.json"]) == 0
    assert "At most 10.0% of the 30 labels are wrong" in capsys.readouterr().err
    assert proved(tmp_path / "record.json", tmp_path).startswith("Checked: ")
    assert run(["campaign", "status", "g", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["certified"]
    assert run(["campaign", "export", "g"]) == 0
    assert ",expert," in capsys.readouterr().out
    assert run(["campaign", "audit", "g", "--freeze", "--reopen"]) == 2
    assert run(["campaign", "audit", "g", "--reopen"]) == 0
    assert "certificate is void" in capsys.readouterr().err
    assert run(["campaign", "audit", "g", "--record", "again.json"]) == 2 and not (tmp_path / "again.json").exists()


def test_several_looks_along_one_draw(service: CampaignService, tmp_path: Path) -> None:
    id = labelled(service, "okg-pending", 0.35)
    campaign = service[id]
    seq = service.store.row(id).seq
    for audits in ([60, 40], [40, 400], [2, 3]):
        with pytest.raises(InputError):
            campaign.freeze(audits)
    assert service.store.row(id).seq == seq
    status = campaign.freeze([40, 70])
    first = [one.task for one in campaign.guarantee_items()]
    assert (status.look, status.looks, status.audits, len(first)) == (0, 2, 40, 40) and status.so_far is None
    campaign.answer_guarantee({task: truth_of(task) for task in first})
    status = campaign.guarantee()
    assert status.so_far is not None and status.so_far > 0.1 and "draw the next look" in status.next_step
    status = campaign.next_look()
    queue = [one.task for one in campaign.guarantee_items()]
    assert status.look == 1 and status.audits == 70 and queue[:40] == first and len(queue) == 70
    finish(service, id)
    status = campaign.guarantee()
    assert status.certified and status.so_far is not None and status.so_far <= 0.1
    with pytest.raises(InputError, match="no further look"):
        campaign.next_look()
    assert proved(guarantee_record(service, id).record(), tmp_path).startswith("Checked: ")
    assert service[id].verify().right


def test_of_one_label(service: CampaignService, tmp_path: Path) -> None:
    id = labelled(service, "crowd", 0.1)
    said = {one.task: one.label for one in service[id].results()}
    with pytest.raises(InputError, match="not one of the campaign's"):
        service[id].freeze(None, "maybe")
    status = service[id].freeze(None, "no")
    assert status.of == "no" and status.items == sum(label == "no" for label in said.values())
    assert {said[one.task] for one in service[id].guarantee_items()} == {"no"}
    finish(service, id)
    status = service[id].guarantee()
    assert status.certified and f"of the {status.items} labels that said 'no'" in status.sentence
    assert proved(service[id].guarantee_record(), tmp_path).startswith("Checked: ")


def test_workers_labels_order_the_items_as_they_were_at_the_freeze(service: CampaignService) -> None:
    id = labelled(service, "crowd", 0.3)
    service[id].freeze()
    service[id].drop_labels("ann")  # after the freeze: changes nothing
    finish(service, id)
    record = service[id].guarantee_record()
    assert record["ordered_by"] and service[id].guarantee().certified


def test_the_next_step_weighs_labels_against_the_expert(service: CampaignService) -> None:
    id = labelled(service, "crowd", 0.3, tasks=60)
    service[id].change(budget=1000)
    assert "Set expert_cost" in service[id].guarantee().next_step
    service[id].change(expert_cost=0.1)
    assert service[id].guarantee().next_step.startswith("Next: the expert, with about ")
    service[id].change(expert_cost=1000)
    assert service[id].guarantee().next_step.startswith("Next: more labels. ")


@pytest.mark.parametrize("policy", ["crowd", "okg-pending"])
def test_a_campaign_stops_at_its_target(service: CampaignService, policy: str) -> None:
    config = CampaignSettings(budget=600, labels=("no", "yes"), policy=policy, most_labels=6, stop_at=0.8)
    id = service.create(config, tasks=[{"id": f"t{k}", "text": "x"} for k in range(100)]).id
    while not isinstance(lease := service[id].ask(f"w{service.store.row(id).given % 5}"), NoTask):
        service[lease.campaign].tell(lease.id, truth_of(lease.task))
    row = service.store.row(id)
    assert row.state == "paused" and 0 < row.spent < 600
    assert row.paused_because.startswith("The workers' agreement (no audit has corrected it) has reached ")
    service[id].draw_audit(30)
    service[id].answer_audit({one.task: "no" for one in service[id].audit_items()})
    service[id].change(stop_at=0.6)
    service[id].resume()
    assert service.store.row(id).paused_because == ""
    service[id].answer_audit({one.task: truth_of(one.task) for one in service[id].audit_items()})
    assert service.store.row(id).paused_because.startswith("The audited accuracy (30 items) has reached ")
    stored = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == stored


def test_no_item_is_worth_less_than_the_expert_makes_it() -> None:
    crowd = [GrowingCrowd(np.array([0.5, 0.5])) for _ in range(2)]
    for one, expert in zip(crowd, (0.0, 0.9), strict=True):
        one.add_tasks(np.zeros((50, 2)), 9, 9)
        for _ in range(3):
            one.add_worker()
        one.learn(1, 0, 60, None, expert)
    assert crowd[0].plan.surplus.min() < 0.9 <= crowd[1].plan.surplus.min()
