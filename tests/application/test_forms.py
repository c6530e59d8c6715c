"""Several questions per item in one lease: a choice, any of some labels after one of its answers, and a rating."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from service_fixtures import on_sqlite

QUESTIONS = [
    {"name": "tone", "text": "What is the tone?", "labels": ["good", "bad"]},
    {"name": "why", "answer": "multi", "labels": ["price", "quality"], "only_if": {"tone": "bad"}},
    {"name": "stars", "answer": "rating", "scale": "1..5"},
]


def test_each_question_has_its_results(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth: dict[str, dict[str, Any]] = {}
    for x in range(30):
        why = {"why": [name for name in ("price", "quality") if rng.random() < 0.5]} if x % 2 else {}
        truth[f"text {x}"] = {"tone": "bad" if x % 2 else "good", "stars": str(rng.integers(1, 6)), **why}
    with nl.Campaign.create(
        f"sqlite:///{tmp_path}/c.db", tasks=list(truth), budget=120, questions=QUESTIONS, id="c", turn_away=False
    ) as campaign:
        assert campaign.status().settings.answer == "multi"
        for turn in range(2000):
            lease = campaign.ask(f"w{turn % 6}")
            if not isinstance(lease, nl.results.Lease):
                if lease.reason in ("budget_spent", "finished"):
                    break
                continue
            said = dict(truth[lease.payload])
            said["stars"] = str(min(max(int(said["stars"]) + rng.choice([-1, 0, 0, 0, 1]), 1), 5))
            if rng.random() < 0.15:
                said = {"tone": "good", "stars": "3"}
            campaign.tell(lease, said)
            if turn % 7 == 0:
                campaign.undo(lease)
                campaign.tell(lease, json.dumps(said))
        results = list(campaign.results())
        read = {one.payload: json.loads(one.label) for one in results}
        assert np.mean([read[text]["tone"] == truth[text]["tone"] for text in truth]) > 0.95
        assert np.mean([abs(int(read[text]["stars"]) - int(truth[text]["stars"])) <= 1 for text in truth]) > 0.9
        assert all(("why" in said) == (said["tone"] == "bad") for said in read.values())
        one = results[0]
        for name, labels in (("tone", ["good", "bad"]), ("stars", list("12345"))):
            assert sum(one.probabilities[f"{name}: {label}"] for label in labels) == pytest.approx(1.0)
            assert sum(one.counts[f"{name}: {label}"] for label in labels) == one.labels
        assert set(campaign.agreement()["questions"]) == {"tone", "why: price", "why: quality", "stars"}
        assert campaign.agreement()["questions"]["stars"]["level"] == "ordinal"
        assert campaign.status().spent == 120 and campaign.verify().differing == {}
        before = {one.task: one.probabilities for one in results}
    with nl.Campaign.open(f"sqlite:///{tmp_path}/c.db", "c") as again:
        for other in again.results():
            assert other.probabilities == pytest.approx(before[other.task], abs=1e-9)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"tone": "good"}, "question 'stars' has no answer"),
        ({"tone": "good", "stars": "3", "why": ["price"]}, "question 'why' is not asked after this answer"),
        ({"tone": "bad", "stars": "3"}, "question 'why' has no answer"),
        ({"tone": "fine", "stars": "3"}, "'fine' of tone is not one of the campaign's"),
        ({"mood": "good"}, "there is no question 'mood'"),
        ("good", "the answer is not a table of questions"),
    ],
)
def test_answers_that_are_refused(said: Any, why: str) -> None:
    with nl.Campaign.create("memory:", tasks=["a"], budget=3, questions=QUESTIONS) as campaign:
        lease = campaign.ask("ann")
        assert isinstance(lease, nl.results.Lease)
        with pytest.raises(nl.errors.InputError, match=why):
            campaign.tell(lease, said)
        assert campaign.status().kept == 0


@pytest.mark.parametrize(
    ("questions", "why"),
    [
        ("what?", "not a list of tables"),
        ([{"labels": ["a", "b"]}], "has no name"),
        ([{"name": "a", "labels": ["x", "y"], "colour": 1}], "has the key 'colour'"),
        ([{"name": "a", "labels": ["x"]}], "are not 2 to 26 different names"),
        ([{"name": "a", "labels": ["x", "y"]}, {"name": "a", "labels": ["x", "y"]}], "two questions are called 'a'"),
        ([{"name": "a", "labels": ["x", "y"], "only_if": {"b": "x"}}], "depends on 'b' = 'x'"),
        ([{"name": f"q{k}", "labels": list("abcdefgh")} for k in range(18)], "too many questions"),
    ],
)
def test_questions_that_are_refused(questions: Any, why: str) -> None:
    with pytest.raises(nl.errors.InputError, match=why):
        nl.Campaign.create("memory:", tasks=["a"], budget=3, questions=questions)


def test_over_http_and_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("questions.json").write_text(json.dumps(QUESTIONS))
    assert run(["campaign", "create", "--budget", "4", "--id", "c", "--questions", "questions.json", "--json"]) == 0
    with nl.Campaign.open("sqlite:///nextlabel.db", "c") as campaign:
        assert campaign.status().settings.labels[:3] == ("tone: good", "tone: bad", "why: price")
    capsys.readouterr()
    with on_sqlite(tmp_path) as service, service.http() as http:
        made = http.post("/campaigns", json={"id": "form", "budget": 3, "questions": QUESTIONS})
        assert made.status_code == 201, made.text
        assert http.post("/campaigns/form/tasks", json=[{"id": "a", "payload": "text"}]).status_code == 200
        lease = http.post("/campaigns/form/ask", json={"worker": "ann"}).json()["lease"]["id"]
        refused = http.post(f"/leases/{lease}/tell", json={"label": {"tone": "bad", "stars": "3"}})
        assert refused.status_code == 422 and "'why' has no answer" in refused.text
        told = http.post(f"/leases/{lease}/tell", json={"label": {"tone": "bad", "why": ["price"], "stars": "2"}})
        assert json.loads(told.json()["label"]) == {"tone": "bad", "why": ["price"], "stars": "2"}
