"""Several questions per item in one lease: a choice, any of some labels after one of its answers, and a rating."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.crowd.questions import Form
from nextlabel.web.worker.steps import answer_text
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
        ([{"name": "a", "answer": "number"}], "needs both ends of its range"),
        (
            [{"name": "a", "answer": "number", "range": "0..9", "labels": ["x", "y"]}],
            "asks for a number and has labels",
        ),
        ([{"name": "a", "labels": ["x", "y"], "range": "0..9"}], "range only has an effect with answer number"),
        ([{"name": "a", "answer": "pair"}], "a pair is about two items"),
        ([{"name": f"q{k}", "answer": "number", "range": "0..9"} for k in range(5)], "too many questions"),
        ([{"name": f"q{k}", "labels": list("abcdefgh")} for k in range(18)], "too many questions"),
    ],
)
def test_questions_that_are_refused(questions: Any, why: str) -> None:
    with pytest.raises(nl.errors.InputError, match=why):
        nl.Campaign.create("memory:", tasks=["a"], budget=3, questions=questions)


def scores_of(rng: np.random.Generator, items: int) -> dict[str, dict[str, Any]]:
    """What is true of items with a tone, a score and, where the tone is bad, a price."""
    truth = {}
    for x in range(items):
        price = {"price": float(rng.integers(0, 501))} if x % 2 else {}
        truth[f"text {x}"] = {"tone": "bad" if x % 2 else "good", **price, "score": float(rng.integers(0, 101))}
    return truth


def play(campaign: nl.Campaign, truth: dict[str, dict[str, Any]], sd: dict[str, float], seed: int = 0) -> None:
    """Workers answer with a spread of their own in percent of the range, now and then with another tone."""
    rng, who = np.random.default_rng(seed), list(sd)
    for turn in range(4000):
        worker = who[turn % len(who)]
        lease = campaign.ask(worker)
        if not lease:
            if lease.reason in ("budget_spent", "finished"):
                return
            continue
        said = dict(truth[lease.payload])
        for name, high in (("price", 500.0), ("score", 100.0)):
            if name in said:
                said[name] = float(np.clip(said[name] + rng.normal(0, sd[worker] * high / 100), 0, high))
        if rng.random() < 0.1:
            said = {"tone": "good", "score": said["score"]}
        campaign.tell(lease.id, said)


SCORES = [
    {"name": "tone", "labels": ["good", "bad"]},
    {"name": "price", "answer": "number", "range": "0..500", "only_if": {"tone": "bad"}},
    {"name": "score", "answer": "number", "range": "0..100"},
]


def test_numbers_beside_choices(tmp_path: Path) -> None:
    """A number is read out as a campaign for numbers would, with its interval, and counts as right within 5%."""
    truth, address = scores_of(np.random.default_rng(4), 40), f"sqlite:///{tmp_path}/c.db"
    sd = {"ann": 2.0, "bob": 4.0, "cem": 8.0, "dan": 15.0}
    with nl.Campaign.create(address, list(truth), budget=160, questions=SCORES, id="c", turn_away=False) as campaign:
        play(campaign, truth, sd)
        results = {one.payload: one for one in campaign.results()}
        rows = [(json.loads(one.label or ""), one) for one in campaign.labels() if one.counted]
        columns = zip(*((one.task, one.worker, said["score"]) for said, one in rows), strict=True)
        alone = nl.learn_numbers(
            dict(zip(("task", "worker", "label"), columns, strict=True)), nl.results.Number(0, 100)
        )
        means = dict(zip(alone.task_names, zip(alone.values, alone.fit.sd, strict=True), strict=True))
        hits, held = [], []
        for text, one in results.items():
            mean, spread = means[one.task]
            said, (low, high) = json.loads(one.label), one.intervals["score"]
            assert float(said["score"]) == pytest.approx(mean, abs=0.02)
            assert (low, high) == pytest.approx(np.clip((mean - 1.96 * spread, mean + 1.96 * spread), 0, 100), abs=0.02)
            assert set(one.intervals) == set(said) - {"tone"} and ("price" in said) == (said["tone"] == "bad")
            assert set(one.probabilities) == {"tone: good", "tone: bad"} and one.interval is None
            hits.append(abs(float(said["score"]) - truth[text]["score"]) <= 5.0)
            held.append(low <= truth[text]["score"] <= high)
        assert np.mean(hits) > 0.75 and np.mean(held) > 0.85
        assert np.mean([one.probability for one in results.values()]) > 0.6
        levels = {name: one["level"] for name, one in campaign.agreement()["questions"].items()}
        assert levels == {"tone": "nominal", "price": "interval", "score": "interval"}
        assert campaign.verify().differing == {}
        audited = {one.task: truth[one.payload] for one in campaign.draw_audit(12)}
        campaign.answer_audit(audited)
        audit = campaign.certificate(wait=True).audit
        assert audit is not None
        by_id = {one.task: one for one in results.values()}
        near = [abs(float(json.loads(by_id[x].label)["score"]) - audited[x]["score"]) <= 5.0 for x in audited]
        assert audit.questions["score"].right == sum(near)
        after = {one.task: json.loads(one.label) for one in campaign.results() if one.source == "audited"}
        assert {x: float(said["score"]) for x, said in after.items()} == {
            x: said["score"] for x, said in audited.items()
        }
        before = {one.task: (one.label, one.intervals, one.probability) for one in campaign.results()}
    with nl.Campaign.open(address, "c") as again:
        for other in again.results():
            label, intervals, probability = before[other.task]
            assert (other.label, other.probability) == (label, pytest.approx(probability))
            assert other.intervals == {name: pytest.approx(ends) for name, ends in intervals.items()}
    assert run(["campaign", "export", "c", "--db", address, "--save", f"{tmp_path}/results.csv"]) == 0
    with Path(f"{tmp_path}/results.csv").open() as stream:
        lines = {row["task"]: row for row in csv.DictReader(stream)}
    for task, (label, intervals, _) in before.items():
        assert lines[task]["label"] == label
        for name in ("price", "score"):
            cells = [lines[task][f"{end}_{name}"] for end in ("low", "high")]
            assert (
                cells == ["", ""]
                if name not in intervals
                else [float(one) for one in cells] == pytest.approx(intervals[name], abs=1e-6)
            )


def test_items_with_an_open_number_come_first() -> None:
    """The tone of all items is as clear; a price is asked where it is bad, and its answers differ."""
    items = [f"{tone} {k}" for tone in ("good", "bad") for k in range(10)]
    with nl.Campaign.create("memory:", items, budget=100, questions=SCORES[:2], turn_away=False) as campaign:
        rng, later = np.random.default_rng(0), list[str]()
        for turn in range(100):
            lease = campaign.ask(f"w{turn % 8}")
            if not lease:
                continue
            tone, given = lease.payload.split()[0], campaign.status().kept
            later += [tone] if given >= 60 else []
            price = {"price": float(rng.integers(100, 401))} if tone == "bad" else {}
            campaign.tell(lease.id, {"tone": tone, **price})
        assert len(later) >= 20 and np.mean([one == "bad" for one in later]) > 0.8


def test_numbers_alone() -> None:
    """A form of nothing but numbers: who answers at random is known by them."""
    truth = scores_of(np.random.default_rng(2), 60)
    with nl.Campaign.create(
        "memory:", list(truth), budget=300, questions=[SCORES[2]], turn_away=False, most_labels=8
    ) as campaign:
        rng, sd = np.random.default_rng(1), {"ann": 2.0, "bob": 3.0, "cem": 4.0, "dan": 5.0, "noise": 0.0}
        for turn in range(3000):
            worker = list(sd)[turn % 5]
            lease = campaign.ask(worker)
            if not lease:
                continue
            near = truth[lease.payload]["score"] + rng.normal(0, sd[worker])
            campaign.tell(
                lease.id, {"score": rng.uniform(0, 100) if worker == "noise" else float(np.clip(near, 0, 100))}
            )
        flags = {one.worker: one.flags for one in campaign.workers()}
        assert flags == {**dict.fromkeys(sd, ()), "noise": ("noise",)}
        right = {one.worker: one.agreement for one in campaign.workers()}
        assert min(right, key=lambda name: right[name] or 0.0) == "noise"
        assert set(campaign.agreement()["questions"]) == {"score"}


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
        assert http.post("/campaigns", json={"id": "scores", "budget": 3, "questions": SCORES}).status_code == 201
        assert http.post("/campaigns/scores/tasks", json=[{"id": "a", "payload": "text"}]).status_code == 200
        lease = http.post("/campaigns/scores/ask", json={"worker": "ann"}).json()["lease"]["id"]
        for said, why in ((120, "'120' is not a number from 0 to 100"), (None, "'score' has no answer")):
            given = {"tone": "good", **({} if said is None else {"score": said})}
            refused = http.post(f"/leases/{lease}/tell", json={"label": given})
            assert refused.status_code == 422 and why in refused.text and "from 0 to 100" in refused.text
        told = http.post(f"/leases/{lease}/tell", json={"label": {"tone": "good", "score": 12.5}})
        assert json.loads(told.json()["label"]) == {"tone": "good", "score": "12.5"}
        (found,) = http.get("/campaigns/scores/results").json()["results"]
        assert list(found["intervals"]) == ["score"] and found["interval"] is None


def test_a_number_with_a_comma_is_refused_and_answers_nothing_else() -> None:
    """What a page sends is parted by commas: '37,1' would have chosen the second option of the form, too."""
    form = Form.parse(
        '[{"name": "tone", "labels": ["good", "bad"]}, {"name": "score", "answer": "number", "range": "0..100"}]'
    )
    sent = answer_text([("form", "1"), ("answer-tone", "0"), ("number-1", "37,1")])
    with pytest.raises(nl.errors.InputError, match="'37 1' is not a number from 0 to 100"):
        form.sent(sent)
    assert form.labels_of(form.sent(answer_text([("answer-tone", "0"), ("number-1", "37.1")]))) == {
        "tone": ["good"], "score": ["37.1"]
    }  # fmt: skip
