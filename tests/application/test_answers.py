"""What every kind of answer must do in a live campaign: be checked, learnt from, read out, taken back, written."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.application.predictions import add_predictions
from nextlabel.application.service import CampaignService
from nextlabel.campaign.declaration import literals
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.cli.app import run
from stores import everything

#: Settings, an answer and another one that is far from it, and answers that are refused.
KINDS: dict[str, tuple[dict[str, Any], str, str, tuple[Any, ...]]] = {
    "choice": ({"labels": ("no", "yes")}, "yes", "no", ("maybe", "", True)),
    "rating": ({"answer": "rating", "scale": "1..5"}, "4", "1", ("6", "4.5", "", True)),
    "multi": ({"answer": "multi", "labels": ("joy", "fear", "calm")}, "joy;fear", "calm", ("maybe", True)),
    "pair": ({"answer": "pair"}, "first", "second", ("third", "", True)),
    "number": ({"answer": "number", "range": "-10..40"}, "33.25", "-7", ("40.5", "nan", "ten", "", True)),
}
KIND = pytest.mark.parametrize("kind", KINDS)
TASKS = 24


def config(kind: str, **settings: Any) -> CampaignSettings:
    return CampaignSettings(**{"budget": 200, **KINDS[kind][0], **settings})


def items(kind: str, gold: int = 0) -> list[dict[str, Any]]:
    known = KINDS[kind][1]
    about = [{"first": f"a {k}", "second": f"b {k}"} if kind == "pair" else {"text": f"item {k}"} for k in range(TASKS)]
    return [{"id": f"t{k}", **about[k], "gold": known if k < gold else ""} for k in range(TASKS)]


def answers(kind: str, wrong: float = 0.15) -> Any:
    """The answer of a worker to a task: even tasks are the one answer, odd ones the other, with noise."""
    rng = np.random.default_rng(3)

    def say(task: str) -> str:
        one, other = KINDS[kind][1:3] if int(task[1:]) % 2 == 0 else KINDS[kind][2:0:-1]
        if kind in ("choice", "multi", "pair"):
            return other if rng.random() < wrong else one
        if kind == "rating":
            return str(int(np.clip(int(one) + rng.integers(-1, 2), 1, 5)))
        return f"{np.clip(float(one) + 2.0 * rng.standard_normal(), -10, 40):.2f}"

    return say


def label_all(service: CampaignService, id: str, kind: str, workers: tuple[str, ...] = ("ann", "bob", "cem")) -> None:
    say = answers(kind)
    for worker in workers:
        while lease := service[id].ask(worker):
            service[lease.campaign].tell(lease.id, say(lease.task))


def test_every_kind_is_here() -> None:
    assert set(KINDS) == set(literals("answer"))


@KIND
def test_what_is_no_answer_is_refused_and_changes_nothing(service: CampaignService, kind: str) -> None:
    id = service.create(config(kind), tasks=items(kind)).id
    lease = service[id].ask("ann")
    assert lease
    seq = service.store.row(id).seq
    for wrong in KINDS[kind][3]:
        with pytest.raises(nl.errors.InputError, match=r"is not (one of|a list|a number from -10 to 40)"):
            service[lease.campaign].tell(lease.id, wrong)
    assert service.store.row(id).seq == seq
    told = service[lease.campaign].tell(lease.id, f" {KINDS[kind][1]} " if kind == "number" else KINDS[kind][1])
    assert told.label == KINDS[kind][1] == next(service[id].labels()).label


@KIND
def test_the_log_is_the_state_whatever_happened(service: CampaignService, kind: str) -> None:
    """Undo, skip, drop, restore, block, adjudicate, control questions and an audit: replay = state."""
    id = service.create(config(kind), tasks=items(kind, gold=2)).id
    _, one, other, _ = KINDS[kind]
    label_all(service, id, kind)
    lease = service[id].ask("dan")
    assert lease
    service[lease.campaign].tell(lease.id, one)
    service[lease.campaign].undo(lease.id)
    service[lease.campaign].tell(lease.id, other)
    skipped = service[id].ask("dan")
    assert skipped
    service[skipped.campaign].release(skipped.id)
    before = {result.task: result for result in service[id].results()}
    service[id].drop_labels("bob", "test")
    assert service[id].verify().right
    assert sum(result.labels for result in service[id].results()) < sum(result.labels for result in before.values())
    service[id].restore_labels("bob")
    service[id].set_standing("dan", "blocked", "test")
    doubtful = next(name for name, result in before.items() if result.source == "labels")
    service[id].adjudicate({doubtful: other})
    final = {result.task: result for result in service[id].results()}[doubtful]
    assert (final.label, final.probability, final.source) == (other, 1.0, "adjudicated")
    service[id].undo_adjudication([doubtful])
    if kind != "multi":  # an audit judges one answer
        service[id].draw_audit(3)
        service[id].answer_audit({service[id].audit_items()[0].task: one})
        assert service[id].audit_items()[0].label == one
    stored, seen = everything(service.store, id), [asdict(result) for result in service[id].results()]
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == stored
    assert [asdict(result) for result in service[id].results()] == seen


@KIND
def test_what_is_read_out(service: CampaignService, kind: str) -> None:
    """The truth, nearly always, with honest chances; what is known is certain; certificate and workers say so."""
    id = service.create(config(kind), tasks=items(kind, gold=2)).id
    label_all(service, id, kind, ("ann", "bob", "cem", "dan"))
    kept, results = service.store.row(id).config.answer_type, list(service[id].results())
    truth = np.array([kept.number_of(KINDS[kind][1 + k % 2]) for k in range(TASKS)])
    said = np.array([kept.number_of(result.label) for result in results])
    right = kept.agrees(said, truth)
    right[:2] = True  # t1 is the gold of the other answer
    assert right.mean() > (0.6 if kind == "rating" else 0.8)
    assert [result.source for result in results[:2]] == ["control", "control"]
    assert all(result.label == KINDS[kind][1] and result.probability == 1.0 for result in results[:2])
    for result in results:
        assert 0.0 <= result.probability <= 1.0
        if kind == "number":
            assert result.interval is not None and not result.probabilities
            assert -10 <= result.interval[0] <= float(result.label) <= result.interval[1] <= 40
        else:
            assert result.interval is None and all(0.0 <= p <= 1.0 for p in result.probabilities.values())
            assert kind == "multi" or sum(result.probabilities.values()) == pytest.approx(1.0)
    found = service[id].certificate()
    assert found.low is not None and found.high is not None and found.low <= found.now <= found.high
    assert (found.forecast is None) == (kind == "pair")
    assert found.forecast is None or found.now - 1e-9 <= found.forecast <= 1.0
    assert (found.withheld == "") == (kind in ("choice", "number"))
    reports = service.worker_reports.of(id)
    assert {one.worker for one in reports} == {"ann", "bob", "cem", "dan"}
    assert all(one.agreement is not None and one.agreement > 0.2 for one in reports)


@KIND
def test_a_model_says_answers_too(service: CampaignService, kind: str) -> None:
    """A model's answers move what is believed, are checked like people's, and can be dropped."""
    id = service.create(config(kind), tasks=items(kind)).id
    label_all(service, id, kind, ("ann", "bob"))
    say, before = answers(kind, wrong=0.0), [asdict(one) for one in service[id].results()]
    for wrong in KINDS[kind][3][:1]:
        with pytest.raises(nl.errors.InputError, match="prediction 1"):
            add_predictions(service, id, "m", [{"task": "t0", "label": wrong}])
    rows = [{"task": f"t{k}", "label": say(f"t{k}")} for k in range(TASKS)]
    assert add_predictions(service, id, "m", rows).added == TASKS
    with_model = [asdict(one) for one in service[id].results()]
    assert [one["probability"] for one in with_model] != [one["probability"] for one in before]
    assert service[id].verify().right


def _rows(name: str) -> list[dict[str, str]]:
    with Path(name).open() as stream:
        return list(csv.DictReader(stream))


@KIND
def test_files_and_the_command_line(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.jsonl").write_text("".join(json.dumps(one) + "\n" for one in items(kind, gold=1)))
    words = [
        f"--{name}={','.join(value) if isinstance(value, tuple) else value}" for name, value in KINDS[kind][0].items()
    ]
    made = ["campaign", "create", "tasks.jsonl", "--budget", "60", "--id", "c", "--gold-column", "gold"]
    assert run([*made, *words]) == 0, capsys.readouterr()
    with nl.Campaign.open("sqlite:///nextlabel.db", "c") as campaign:
        say = answers(kind)
        for worker in ("ann", "bob"):
            for _ in range(12):
                lease = campaign.ask(worker)
                assert lease
                campaign.tell(lease, say(lease.task))
    assert run(["campaign", "export", "c", "--save", "results.csv"]) == 0
    assert run(["campaign", "export", "c", "--rows", "labels", "--save", "labels.csv"]) == 0
    rows = _rows("results.csv")
    assert len(rows) == TASKS and {row["label"] for row in rows[:1]} == {KINDS[kind][1]}
    first = KINDS[kind][1].partition(";")[0]
    assert ("low" in rows[0]) == (kind == "number") and (f"p_{first}" in rows[0]) == (kind != "number")
    assert len(_rows("labels.csv")) == 24
    for command in (["status", "c", "--wait"], ["workers", "c"], ["verify", "c"]):
        assert run(["campaign", *command]) == 0, command


def test_a_campaign_for_numbers_refuses_what_means_nothing_to_it(tmp_path: Path) -> None:
    for settings, said in (
        ({}, "both ends"),
        ({"range": "0.."}, "both ends"),
        ({"range": "9..1"}, "smaller end first"),
        ({"range": "ten"}, "is not a range"),
        ({"range": "0..9", "labels": ("a", "b")}, "no other labels"),
        ({"range": "0..9", "scale": "1..5"}, "scale only has an effect with answer rating"),
        ({"range": "0..9", "policy": "index"}, "does not ask for numbers"),
        ({"range": "0..9", "top": 3}, "top only has an effect with answer pair"),
        ({"range": "0..9", "accuracy": 0.8}, "takes no accuracy"),
        ({"range": "0..9", "at_most_wrong": 0.1}, "takes no at most wrong"),
    ):
        with pytest.raises(nl.errors.InputError, match=said):
            nl.Campaign.create("memory:", ["a"], budget=3, answer="number", **settings)  # type: ignore[arg-type]
    with nl.Campaign.create("memory:", ["a"], budget=3, answer="number", range="0..9") as campaign:
        with pytest.raises(nl.errors.InputError, match="takes no at most wrong"):
            campaign.change(at_most_wrong=0.1)
        with pytest.raises(nl.errors.InputError, match="score"):
            campaign.add_tasks([{"text": "b", "score": 0.3}])
        with pytest.raises(nl.errors.ConflictError, match="does not learn from features"):
            campaign.add_features({"task": ["a"], "x": [1.0]})
    with pytest.raises(nl.errors.InputError, match="range only has an effect with answer number"):
        nl.Campaign.create("memory:", ["a"], budget=3, range="0..9")


def test_labels_go_where_least_is_known_and_noise_is_turned_away() -> None:
    """At equal precision all items get equally many labels; who answers at random is found and gets no more."""
    rng, truth = np.random.default_rng(5), np.random.default_rng(6).uniform(0, 100, 30)
    tasks = [{"id": f"t{k}", "text": str(k)} for k in range(30)]
    with nl.Campaign.create("memory:", tasks, budget=180, answer="number", range="0..100") as campaign:
        for turn in range(400):
            worker = ("ann", "bob", "cem", "dan", "eve", "fay", "gus", "spam")[turn % 8]
            if lease := campaign.ask(worker):
                x = truth[int(lease.payload["text"])]
                said = rng.uniform(0, 100) if worker == "spam" else np.clip(x + 8 * rng.standard_normal(), 0, 100)
                campaign.tell(lease, float(said))
        results = list(campaign.results())
        labels = [one.labels for one in results]
        assert max(labels) - min(labels) <= 3
        spam = next(one for one in campaign.workers() if one.worker == "spam")
        assert spam.labels < 30 and "noise" in spam.flags
        error = np.array([float(one.label) for one in results]) - truth
        said = {one.task: [] for one in results}
        for label in campaign.labels():
            said[label.task].append(float(label.label or "nan"))
        plain = np.array([np.mean(said[one.task]) for one in results]) - truth
        assert np.sqrt(np.mean(error**2)) < np.sqrt(np.mean(plain**2))
