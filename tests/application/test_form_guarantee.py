"""Guarantees of forms: for one of several questions, or for whole forms, of which every answer is right."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import nextlabel as nl
from guarantee_record import proved
from nextlabel.cli.app import run
from nextlabel.web.pages import mount_pages
from service_fixtures import on_sqlite

QUESTIONS: list[dict[str, Any]] = [
    {"name": "tone", "labels": ["good", "bad"]},
    {"name": "why", "answer": "multi", "labels": ["price", "quality"], "only_if": {"tone": "bad"}},
    {"name": "score", "answer": "number", "range": "0..100"},
]


def truth_of(text: str) -> dict[str, Any]:
    x = int(text.split()[1])
    return {"tone": "bad", "why": ["price"], "score": x % 90} if x % 2 else {"tone": "good", "score": x % 90}


def labelled(address: str, items: int = 90, **settings: Any) -> nl.Campaign:
    """Workers who err in a tenth of the forms, by up to 2 in every score, and far off in some."""
    texts = [f"text {x}" for x in range(items)]
    campaign = nl.Campaign.create(
        address, texts, budget=2 * items, questions=QUESTIONS, id="c", most_labels=2, turn_away=False,
        **{"at_most_wrong": 0.1, "sure": 0.9, **settings},
    )  # fmt: skip
    rng = np.random.default_rng(5)
    for turn in range(20 * items):
        lease = campaign.ask(f"w{turn % 4}")
        if lease:
            said = truth_of(lease.payload)
            if rng.random() < 0.1:
                said = {"tone": "good", "score": said["score"]}
            far = 40 if rng.random() < 0.05 else 0
            campaign.tell(lease.id, said | {"score": min(said["score"] + far + rng.integers(3), 100)})
        elif lease.reason in ("budget_spent", "finished"):
            break
    return campaign


def finish(campaign: nl.Campaign) -> None:
    """The expert answers whatever is asked; a score that is off by 4 is as good as the truth."""
    while asked := [one for one in campaign.guarantee_items() if one.label is None]:
        answers = {one.task: truth_of(one.payload) for one in asked}
        campaign.answer_guarantee({task: {**said, "score": said["score"] + 4} for task, said in answers.items()})


def right(question: str, said: dict[str, Any], true: dict[str, Any]) -> bool:
    if question == "score":
        return abs(float(said["score"]) - true["score"]) <= 9.0  # within the tolerance of what the expert says
    if question == "why: price":
        return ("price" in said.get("why", [])) == ("price" in true.get("why", []))
    return bool(said["tone"] == true["tone"])


@pytest.mark.parametrize("of", ["tone", "why: price", "score"])
def test_of_one_question(tmp_path: Path, of: str) -> None:
    with labelled(f"sqlite:///{tmp_path}/c.db") as campaign:
        before = {one.task: (one.label, one.probability) for one in campaign.results()}
        status = campaign.freeze(of=of)
        assert status.frozen and status.of == of and status.items == 90
        finish(campaign)
        status = campaign.guarantee()
        assert status.certified
        assert status.sentence.startswith(f"At most 10.0% of the 90 answers to {of!r} are wrong (90% sure;")
        results = list(campaign.results())
        wrong = [not right(of, json.loads(one.label), truth_of(one.payload)) for one in results]
        assert np.mean(wrong) <= 0.1
        for one in results:
            if one.source == "expert":
                true = truth_of(one.payload)
                assert json.loads(one.label) == {**true, "score": str(true["score"] + 4)}
            else:  # frozen, with the probability of the whole form
                assert one.source == "frozen" and (one.label, one.probability) == pytest.approx(before[one.task])
        assert proved(campaign.guarantee_record(), tmp_path).startswith("Checked: At most 10.0%")
        assert campaign.verify().differing == {}
    with nl.Campaign.open(f"sqlite:///{tmp_path}/c.db", "c") as again:
        assert again.guarantee() == status


def test_of_whole_forms(tmp_path: Path) -> None:
    """Right in every answer: then so are as many answers to each question."""
    with labelled(f"sqlite:///{tmp_path}/c.db") as campaign:
        campaign.draw_audit(3)
        audited = {one.task: truth_of(one.payload) for one in campaign.audit_items()}
        campaign.answer_audit(audited)
        with pytest.raises(nl.errors.InputError, match="there is no question 'stars'"):
            campaign.freeze(of="stars")
        campaign.freeze()
        assert not {one.task for one in campaign.guarantee_items()} & set(audited)
        finish(campaign)
        assert campaign.guarantee().sentence.startswith("At most 10.0% of the 90 forms have a wrong answer (90% sure;")
        wrong = [
            not all(right(of, json.loads(one.label), truth_of(one.payload)) for of in ("tone", "why: price", "score"))
            for one in campaign.results()
        ]
        assert np.mean(wrong) <= 0.1
        assert proved(campaign.guarantee_record(), tmp_path).startswith("Checked: At most 10.0%")


def test_from_the_command_line_and_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with labelled("sqlite:///nextlabel.db", 30, at_most_wrong=0.2):
        pass
    assert run(["campaign", "audit", "c", "--freeze", "--of", "tone", "--save", "items.csv"]) == 0
    for _ in range(20):
        with Path("items.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        if not rows:
            break
        for row in rows:
            said = truth_of(json.loads(row["payload"]))
            row |= {"tone": said["tone"], "why": ";".join(said.get("why", [])), "score": said["score"]}
        with Path("answers.csv").open("w") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        assert run(["campaign", "audit", "c", "--answers", "answers.csv", "--save", "items.csv"]) == 0
    assert "At most 20.0% of the 30 answers to 'tone' are wrong" in capsys.readouterr().err
    with on_sqlite(tmp_path, pages=mount_pages) as service, service.http() as http:
        made = {"id": "form", "budget": 6, "questions": QUESTIONS, "at_most_wrong": 0.4, "sure": 0.6}
        assert http.post("/campaigns", json=made).status_code == 201
        http.post("/campaigns/form/tasks", json=[{"id": f"t{x}", "payload": f"text {x}"} for x in range(6)])
        refused = http.post("/campaigns/form/guarantee/freeze", json={"of": "stars"})
        assert refused.status_code == 422 and "There are tone, why: price, why: quality, score." in refused.text
        with httpx.Client(base_url=service.url, timeout=60, headers={"origin": service.url}) as browser:
            assert browser.post("/sign-in", data={"token": service.token}).status_code == 303
            page = browser.get("/campaigns/form").text
            assert "whole forms, right in every answer" in page and "<option>why: price</option>" in page
            asked = {"do": "freeze", "of": "why: price", "audits": ""}
            assert browser.post("/campaigns/form/guarantee", data=asked).status_code == 303
            assert "of the answers to why: price" in browser.get("/campaigns/form").text
        assert http.get("/campaigns/form/guarantee").json()["of"] == "why: price"
        assert http.post("/campaigns/form/guarantee/reopen").status_code == 200
        frozen = http.post("/campaigns/form/guarantee/freeze", json={"of": "tone"})
        assert frozen.status_code == 200 and frozen.json()["of"] == "tone", frozen.text
