"""Audits of several questions per item: each has an accuracy and an interval of its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.crowd.audit import audited_accuracy, exact_interval
from nextlabel.crowd.questions import Form
from service_fixtures import on_sqlite

QUESTIONS: list[dict[str, Any]] = [
    {"name": "tone", "labels": ["good", "bad"]},
    {"name": "why", "answer": "multi", "labels": ["price", "quality"], "only_if": {"tone": "bad"}},
    {"name": "stars", "answer": "rating", "scale": "1..3"},
]
NAMES = ("tone", "why: price", "why: quality", "stars")


def said_of(x: int, odd: bool = False) -> dict[str, Any]:
    """What is true of an item; ``odd`` is a mistake."""
    bad = (x % 2 == 1) != odd
    return {"tone": "bad" if bad else "good", "stars": str(1 + x % 3), **({"why": ["price"]} if bad else {})}


def labelled(campaign: nl.Campaign, seed: int = 0) -> None:
    """Three workers answer until the budget is spent, now and then wrongly."""
    rng = np.random.default_rng(seed)
    for turn in range(2000):
        lease = campaign.ask(f"w{turn % 3}")
        if lease:
            campaign.tell(lease.id, said_of(int(lease.payload), rng.random() < 0.2))
        elif lease.reason == "budget_spent":
            return


def test_each_question_is_audited(tmp_path: Path) -> None:
    address, items = f"sqlite:///{tmp_path}/c.db", [str(x) for x in range(40)]
    with nl.Campaign.create(address, items, budget=80, questions=QUESTIONS, id="c", turn_away=False) as campaign:
        labelled(campaign)
        before = {one.task: one for one in campaign.results()}
        drawn = [one.task for one in campaign.draw_audit(15)]
        truth = {task: said_of(int(before[task].payload), int(before[task].payload) % 7 == 0) for task in drawn}
        assert (
            campaign.answer_audit(truth) == 15 and campaign.answer_audit({drawn[0]: json.dumps(truth[drawn[0]])}) == 0
        )
        audit = campaign.certificate(wait=True).audit
        assert audit is not None and set(audit.questions) <= set(NAMES) and {"tone", "stars"} <= set(audit.questions)
        read, whole = {task: json.loads(one.label) for task, one in before.items()}, 0
        for question in ("tone", "stars"):
            one = audit.questions[question]
            right = sum(read[task][question] == truth[task][question] for task in drawn)
            chances = [before[task].probabilities[f"{question}: {said[question]}"] for task, said in read.items()]
            own = [chances[list(read).index(task)] for task in drawn]
            assert (one.tasks, one.audited, one.right) == (40, 15, right)
            assert (one.low, one.high) == pytest.approx(exact_interval(40, 15, right, 0.95))
            corrected = np.clip(np.mean(chances) + right / 15 - np.mean(own), one.low, one.high)
            assert (one.accuracy, one.expected) == pytest.approx((corrected, np.mean(chances)))
        asked = [task for task, said in read.items() if "why" in said]
        price = audit.questions["why: price"]  # of the answers in the results: also where the expert was not asked
        assert (price.tasks, price.audited) == (len(asked), len(set(asked) & set(drawn)))
        assert price.right == sum("why" in truth[x] and "price" in read[x]["why"] for x in set(asked) & set(drawn))
        whole = sum({**read[x], "stars": read[x]["stars"]} == truth[x] for x in drawn)
        assert (audit.tasks, audit.audited, audit.right) == (40, 15, whole)
        weights = [audit.questions[name].tasks for name in NAMES]
        assert audit.accuracy == pytest.approx(
            np.average([audit.questions[name].accuracy for name in NAMES], weights=weights)
        )
        assert audit.low < min(audit.accuracy, np.average([audit.questions[n].low for n in NAMES], weights=weights))
        after = {one.task: one for one in campaign.results()}
        for task, one in after.items():
            assert one.counts == before[task].counts and sum(one.counts.values()) >= 2 * one.labels
            if task in truth:
                assert (json.loads(one.label), one.source) == (truth[task], "audited")
            else:  # nothing is learnt from it
                assert (one.label, one.probabilities) == (before[task].label, before[task].probabilities)
        assert campaign.verify().differing == {}
    with nl.Campaign.open(address, "c") as again:
        found = again.certificate(wait=True).audit
        assert found is not None and (found.accuracy, found.low) == pytest.approx((audit.accuracy, audit.low))


def test_the_intervals_hold_together() -> None:
    """Of forms whose mistakes come together, and a model that is too sure: each interval, and that of all."""
    form = Form.parse(json.dumps(QUESTIONS))
    rng, N, n, held, joint = np.random.default_rng(3), 300, 50, dict.fromkeys(NAMES, 0), 0
    codes = np.array([form.number_of(said_of(x)) for x in range(N)])
    beliefs = np.stack([form.known(int(code)) for code in codes])
    options = len(form.options)
    beliefs[:, :options] = 0.97 * beliefs[:, :options] + 0.01
    read = form.digits(form.best(beliefs))
    for _ in range(200):
        careless = rng.random(N) < 0.15
        truth = np.array([form.number_of({**said_of(x), "stars": "1"}) if careless[x] else codes[x] for x in range(N)])
        other = careless & (rng.random(N) < 0.8)
        truth[other] = [form.number_of(said_of(int(x), True)) for x in np.flatnonzero(other)]
        drawn = rng.choice(N, n, replace=False)
        found = audited_accuracy(beliefs, {int(x): int(truth[x]) for x in drawn}, None, form)
        assert found is not None
        right, asked = read == form.digits(truth), read >= 0
        for k, name in enumerate(NAMES):
            one = found.questions[name]
            held[name] += one.low <= right[asked[:, k], k].mean() <= one.high
        joint += found.low <= right[asked].mean() <= found.high
    assert min(held.values()) >= 0.93 * 200 and joint >= 0.95 * 200


def test_labels_of_which_any_may_be_true() -> None:
    with nl.Campaign.create("memory:", list("abcd"), budget=4, answer="multi", labels=["joy", "fear"]) as campaign:
        for worker in ("ann", "bob"):
            while lease := campaign.ask(worker):
                campaign.tell(lease.id, ["joy"])
        campaign.draw_audit(4)
        campaign.answer_audit({one.task: ["joy", "fear"] for one in campaign.audit_items()})
        audit = campaign.certificate(wait=True).audit
        assert audit is not None and audit.right == 0 and (audit.low, audit.high) == (0.5, 0.5)
        assert {name: (one.right, one.accuracy) for name, one in audit.questions.items()} == {
            "joy": (4, 1.0), "fear": (0, 0.0),
        }  # fmt: skip
        assert {one.label for one in campaign.results()} == {"joy;fear"}


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The expert's file has a column for each question."""
    monkeypatch.chdir(tmp_path)
    with nl.Campaign.create(
        "sqlite:///nextlabel.db", [str(x) for x in range(12)], budget=12, questions=QUESTIONS, id="c"
    ) as campaign:
        labelled(campaign)
        read = {one.payload: json.loads(one.label)["stars"] for one in campaign.results()}
    assert run(["campaign", "audit", "c", "--audits", "6", "--save", "audit.csv"]) == 0
    with Path("audit.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["task", "tone", "why", "stars", "payload"] and len(rows) == 6
    for row in rows:
        said = said_of(int(json.loads(row["payload"])))
        row |= {"tone": said["tone"], "why": ";".join(said.get("why", [])), "stars": said["stars"]}
    with Path("audit.csv").open("w") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    capsys.readouterr()
    Path("some.csv").write_text("task,tone\n3,good\n")
    assert run(["campaign", "audit", "c", "--answers", "some.csv"]) == 2
    refused = capsys.readouterr().err
    assert "no column 'why'" in refused and "Fill in the file that --save" in refused
    assert run(["campaign", "audit", "c", "--answers", "audit.csv", "--save", "again.csv"]) == 0
    said = capsys.readouterr()
    assert "6 items drawn, 6 answered" in said.err and "audited forms are right in every answer" in said.out
    right = sum(read[json.loads(row["payload"])] == row["stars"] for row in rows)
    assert f"stars: {right} of 6 audited answers are right" in said.out and "of 12 answers" in said.out
    with Path("again.csv").open() as stream:
        assert list(csv.DictReader(stream)) == rows
    assert run(["campaign", "export", "c", "--save", "results.csv"]) == 0
    with Path("results.csv").open() as stream:
        assert sum(row["source"] == "audited" for row in csv.DictReader(stream)) == 6
    assert run(["audit", "results.csv", "audit.csv"]) == 2
    assert "answers to several questions" in capsys.readouterr().err


def test_over_http(tmp_path: Path) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        assert http.post("/campaigns", json={"id": "form", "budget": 3, "questions": QUESTIONS}).status_code == 201
        tasks = [{"id": f"t{x}", "payload": str(x)} for x in range(3)]
        assert http.post("/campaigns/form/tasks", json=tasks).status_code == 200
        lease = http.post("/campaigns/form/ask", json={"worker": "ann"}).json()["lease"]
        assert http.post(f"/leases/{lease['id']}/tell", json={"label": said_of(0)}).status_code == 200
        drawn = [one["task"] for one in http.post("/campaigns/form/audit/draw", json={"items": 3}).json()["items"]]
        bad = http.post("/campaigns/form/audit/answers", json={"answers": {drawn[0]: {"tone": "good"}}})
        assert bad.status_code == 422 and "'stars' has no answer" in bad.text
        answers = {task: said_of(k) for k, task in enumerate(drawn)}
        assert http.post("/campaigns/form/audit/answers", json={"answers": answers}).json() == {"changed": 3}
        found = http.get("/campaigns/form/certificate", params={"wait": 30})
        assert found.status_code == 200, found.text
        audit = found.json()["audit"]
        assert audit["audited"] == 3 and audit["questions"]["tone"]["audited"] == 3
        assert "questions" not in audit["questions"]["tone"]
