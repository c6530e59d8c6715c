"""Audits: items drawn at random, an expert's answers, and a certificate whose interval holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelled_crowds import recorded
from nextlabel.application.service import CampaignService
from nextlabel.cli.app import run
from nextlabel.crowd.audit import audited_accuracy
from nextlabel.crowd.fit import fit_crowd
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.service.access import create_token
from nextlabel.web.pages import mount_pages
from service_fixtures import on_sqlite
from stores import everything, simple


def test_items_are_drawn_at_random_and_answered(service: CampaignService) -> None:
    rows = [{"id": f"t{k}", "text": "x", **({"gold": "yes"} if k < 4 else {})} for k in range(30)]
    id = service.create(simple(), tasks=rows).id
    assert len(service[id].draw_audit(10, seed=1)) == 10
    first = [one.task for one in service[id].audit_items()]
    assert len(service[id].draw_audit(5)) == 15
    items = [one.task for one in service[id].audit_items()]
    assert items[:10] == first and len(set(items)) == 15
    assert not {"t0", "t1", "t2", "t3"} & set(items)  # controls are not part of what is audited
    assert service[id].answer_audit({items[0]: "yes", items[1]: "no"}) == 2
    assert service[id].answer_audit({items[0]: "no", items[1]: "no"}) == 1
    assert sorted(service.store.row(id).audited.values()) == [0, 0]
    assert sum(one.label is not None for one in service[id].audit_items()) == 2
    outside = next(f"t{k}" for k in range(4, 30) if f"t{k}" not in items)
    for answers, said in (({outside: "yes"}, NotFoundError), ({items[2]: "maybe"}, InputError), ({}, InputError)):
        with pytest.raises(said):
            service[id].answer_audit(answers)
    with pytest.raises(ConflictError, match="11 are left"):
        service[id].draw_audit(12)
    before = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == before


@pytest.mark.parametrize("bias", [0.0, 0.06])
def test_the_interval_holds_whatever_the_model_believes(bias: float) -> None:
    """Sixty audited items of 800, a model that is as sure as it is right or six points too sure: 95 of 100 at least."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        sure = rng.beta(8, 1.5, 800).clip(0.5, 0.999)
        truth = (rng.random(800) > sure - bias).astype(np.int64)  # the model says 0
        beliefs = np.stack([sure, 1 - sure], axis=1)
        drawn = rng.choice(800, 60, replace=False)
        found = audited_accuracy(beliefs, {int(k): int(truth[k]) for k in drawn})
        assert found is not None
        held += found.low <= (truth == 0).mean() <= found.high
    assert held >= 0.93 * 400


@pytest.mark.parametrize("name", ["rte", "temp"])
def test_the_interval_holds_on_recorded_labels(name: str, data: Path) -> None:
    """A hundred audits of 60 items each; ``benchmarks.live.audit_coverage`` draws the labels anew for each."""
    held = 0
    for seed in range(10):
        labels, truth = recorded(data, name, 3, seed)
        beliefs = fit_crowd(labels).beliefs
        share = (beliefs.argmax(axis=1) == truth).mean()
        for audit in range(10):
            drawn = np.random.default_rng([seed, audit]).choice(len(truth), 60, replace=False)
            found = audited_accuracy(beliefs, {int(k): int(truth[k]) for k in drawn})
            assert found is not None
            held += found.low <= share <= found.high
    assert held >= 93


def test_controls_are_no_part_of_what_is_audited() -> None:
    beliefs = np.array([[0.9, 0.1], [1.0, 0.0], [0.2, 0.8], [0.7, 0.3]])
    found = audited_accuracy(beliefs, {0: 0, 1: 0, 3: 1}, np.array([-1, 0, -1, -1]))
    assert found is not None and (found.audited, found.right) == (2, 1)


def test_the_audit_of_any_policy_is_in_its_certificate(service: CampaignService) -> None:
    """By states of tasks, it is what the results say one by one."""
    rows = [{"id": f"t{k}", "text": "x", **({"gold": "yes"} if k < 3 else {})} for k in range(40)]
    id = service.create(simple(60), tasks=rows).id
    rng = np.random.default_rng(1)
    for worker in ("ann", "bob"):
        while lease := service[id].ask(worker):
            service[lease.campaign].tell(lease.id, "yes" if rng.random() < 0.7 else "no")
    results = [one for one in service[id].results() if not one.control]
    service[id].draw_audit(12)
    truth = {one.task: "yes" if k % 3 else "no" for k, one in enumerate(service[id].audit_items())}
    service[id].answer_audit(truth)
    found = service[id].certificate().audit
    beliefs = np.array([[1 - r.probability, r.probability][:: 1 if r.label == "yes" else -1] for r in results])
    answers = {k: int(truth[r.task] == "yes") for k, r in enumerate(results) if r.task in truth}
    expected = audited_accuracy(beliefs, answers)
    assert found is not None and expected is not None
    assert (found.audited, found.right) == (12, expected.right)
    assert (found.accuracy, found.low, found.high) == pytest.approx((expected.accuracy, expected.low, expected.high))
    after = {one.task: one for one in service[id].results()}
    assert all(after[task].label == said and after[task].source == "audited" for task, said in truth.items())
    assert {one.task: one.label for one in after.values() if one.task not in truth and not one.control} == {
        one.task: one.label for one in results if one.task not in truth
    }


def test_what_an_audit_found_wrong_stays_in_the_sample(service: CampaignService) -> None:
    """Wrong ones that are set right elsewhere would leave right ones alone to be judged by."""
    id = service.create(simple(), tasks=[{"id": f"t{k}", "text": "x"} for k in range(20)]).id
    service[id].draw_audit(5)
    drawn = [one.task for one in service[id].audit_items()]
    seq = service.store.row(id).seq
    for refused in (service[id].adjudicate, service[id].set_gold):
        with pytest.raises(ConflictError, match="Answer it in the audit"):
            refused({f"t{k}": "yes" for k in range(20)})
    assert service.store.row(id).seq == seq
    other = next(f"t{k}" for k in range(20) if f"t{k}" not in drawn)
    assert service[id].adjudicate({other: "yes"}) == 1


@pytest.mark.parametrize("policy", ["crowd", "okg-pending"])
def test_items_that_are_added_after_the_draw_are_not_spoken_of_until_more_are_drawn(
    service: CampaignService, policy: str
) -> None:
    def added(first: int, end: int) -> list[dict[str, str]]:
        return [{"id": f"t{k}", "text": "x"} for k in range(first, end)]

    id = service.create(simple(60, policy=policy), tasks=added(0, 40)).id
    service[id].draw_audit(10)
    first = [one.task for one in service[id].audit_items()]
    service[id].answer_audit(dict.fromkeys(first, "yes"))
    before = service[id].certificate().audit
    service.add_tasks(id, added(40, 240))
    after = service[id].certificate().audit
    assert before is not None and after is not None and (before.tasks, after.tasks) == (40, 40)
    assert (after.accuracy, after.low, after.high) == pytest.approx((before.accuracy, before.low, before.high))
    with pytest.raises(ConflictError, match="too few of them"):
        service[id].draw_audit(1)
    service[id].draw_audit(140)
    drawn = [int(one.task[1:]) for one in service[id].audit_items()]
    assert [f"t{k}" for k in drawn[:10]] == first and 10 < sum(k < 40 for k in drawn) < 40
    last = service[id].certificate(wait=True).audit
    assert last is not None and last.tasks == 40  # those who are answered are of the first draw
    service[id].answer_audit({one.task: "yes" for one in service[id].audit_items()})
    last = service[id].certificate(wait=True).audit
    assert last is not None and (last.tasks, last.audited) == (240, 150)
    assert service[id].verify().right


def test_half_an_audit_is_a_random_sample_too(service: CampaignService) -> None:
    id = service.create(simple(), tasks=[{"id": f"t{k}", "text": "x"} for k in range(400)]).id
    service[id].draw_audit(200)
    drawn = [int(one.task[1:]) for one in service[id].audit_items()]
    assert abs(np.mean(drawn[:100]) - 199.5) < 50


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("id,text\n" + "".join(f"t{k},x\n" for k in range(8)))
    settings = ["--id", "a", "--budget", "8", "--labels", "no,yes", "--policy", "okg-pending"]
    assert run(["campaign", "create", "tasks.csv", *settings]) == 0
    assert run(["campaign", "audit", "a", "--audits", "3", "--save", "audit.csv"]) == 0
    lines = (tmp_path / "audit.csv").read_text().splitlines()
    assert lines[0] == "task,label,payload" and len(lines) == 4
    (tmp_path / "audit.csv").write_text("\n".join([lines[0], *(one.replace(",,", ",yes,") for one in lines[1:])]))
    assert run(["campaign", "audit", "a", "--answers", "audit.csv"]) == 0
    said = capsys.readouterr()
    assert "3 items drawn, 3 answered." in said.err and "3 audited labels are right" in said.out
    assert run(["campaign", "audit", "a", "--link", "--public-url", "https://labels.example.org"]) == 0
    assert capsys.readouterr().out.startswith("https://labels.example.org/a/a3.")
    assert run(["campaign", "audit", "a", "--public-url", "https://labels.example.org"]) == 2
    assert run(["campaign", "links", "a", "--revoke", "--audit"]) == 0
    assert "no longer valid for experts" in capsys.readouterr().err
    assert run(["campaign", "audit", "a", "--audits", "30"]) == 2


def test_an_expert_answers_in_the_browser_and_the_certificate_follows(tmp_path: Path) -> None:
    import httpx

    with on_sqlite(tmp_path, pages=mount_pages) as service:
        id = service.campaign("expert", tasks=6)
        campaigns = service.campaign_service
        token = create_token(campaigns.store, "eva", "auditor")
        viewer = create_token(campaigns.store, "vic", "viewer")
        with service.http() as http, service.http(token) as expert:
            drawn = http.post(f"/campaigns/{id}/audit/draw", json={"items": 4}).json()["items"]
            assert len(drawn) == 4 and drawn[0]["label"] is None
            assert expert.post(f"/campaigns/{id}/audit/draw", json={"items": 1}).status_code == 403
            body = {"answers": {drawn[0]["task"]: "yes"}}
            assert expert.post(f"/campaigns/{id}/audit/answers", json=body).json() == {"changed": 1}
        with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
            assert browser.post("/sign-in", data={"token": token}).status_code == 303
            page = browser.get(f"/campaigns/{id}/audit").text
            assert "1 of 4 items answered." in page and "Draw items" not in page
            for _ in range(3):
                task = page.split('name="task" value="')[1].split('"')[0]
                done = browser.post(f"/campaigns/{id}/audit", data={"task": task, "label": "no"})
                assert done.status_code == 303
                page = browser.get(f"/campaigns/{id}/audit").text
            assert "All items are answered" in page
            assert browser.post(f"/campaigns/{id}/audit", data={"items": "1"}).status_code == 403
            assert browser.post(f"/campaigns/{id}/pause").status_code == 403
        with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
            assert browser.post("/sign-in", data={"token": viewer}).status_code == 303
            assert browser.get(f"/campaigns/{id}/audit").status_code == 403
        assert len(campaigns.store.row(id).audited) == 4
