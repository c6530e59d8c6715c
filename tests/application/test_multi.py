"""Campaigns in which any of the labels may be true: one lease, one price and one answer for all of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nextlabel as nl
from nextlabel.cli.app import run
from nextlabel.crowd.questions import Form, FormLabels, Question, fit_form
from service_fixtures import on_sqlite

LABELS = ("anger", "joy", "fear", "trust")


def play(campaign: nl.Campaign, truth: dict[str, set[str]], right: dict[str, float], seed: int = 0) -> None:
    """Workers answer each label right so often, skip, and change their minds, until nobody gets anything."""
    rng = np.random.default_rng(seed)
    for turn in range(3000):
        worker = list(right)[turn % len(right)]
        lease = campaign.ask(worker)
        if not isinstance(lease, nl.results.Lease):
            if lease.reason in ("budget_spent", "finished"):
                return
            continue
        if turn % 10 == 9:
            campaign.release(lease, "no idea")
            continue
        said = [name for name in LABELS if (name in truth[lease.payload]) == (rng.random() < right[worker])]
        campaign.tell(lease, list(LABELS) if turn % 13 == 0 else said)
        if turn % 13 == 0:
            assert campaign.undo(lease).label is None
            campaign.tell(lease, ";".join(said) or "none")


def test_one_lease_asks_for_all_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth = {f"text {x}": {name for name in LABELS if rng.random() < 0.35} for x in range(40)}
    address, right = f"sqlite:///{tmp_path}/c.db", {"ann": 0.95, "bob": 0.9, "cem": 0.85, "dan": 0.8, "spam": 0.5}
    with nl.Campaign.create(
        address, tasks=list(truth), budget=160, answer="multi", labels=LABELS, id="c", turn_away=False
    ) as campaign:
        play(campaign, truth, right)
        status = campaign.status()
        assert (status.spent, status.state) == (160, "closed")
        results = list(campaign.results())
        for one in results:
            assert list(one.probabilities) == list(one.counts) == list(LABELS)
            told = [name for name in LABELS if one.probabilities[name] > 0.5]
            assert one.label == (";".join(told) or "none") and max(one.counts.values()) <= one.labels
            sure = np.mean([max(p, 1.0 - p) for p in one.probabilities.values()])
            assert one.probability == pytest.approx(sure)
        hits = [(one.probabilities[name] > 0.5) == (name in truth[one.payload]) for one in results for name in LABELS]
        assert np.mean(hits) > 0.9
        assert campaign.certificate().now == pytest.approx(np.mean([one.probability for one in results]))
        assert campaign.certificate().upper is None and "several" in campaign.certificate().withheld
        judged = {one.worker: one.accuracy for one in campaign.workers()}
        assert judged["spam"] == min(judged.values()) and judged["spam"] < 0.65 < judged["ann"]
        assert set(campaign.agreement()["questions"]) == set(LABELS)
        assert campaign.verify().differing == {}
        before = {one.task: one.probabilities for one in results}
    with nl.Campaign.open(address, "c") as again:  # what is known follows from the log alone
        after = {one.task: one.probabilities for one in again.results()}
        assert all(after[task] == pytest.approx(before[task], abs=1e-9) for task in before)
        assert again.drop_labels("spam").changed > 0
        dropped = {one.task: one.counts for one in again.results()}
        assert sum(sum(one.values()) for one in dropped.values()) < sum(sum(one.counts.values()) for one in results)
        again.adjudicate({"0": ["joy", "fear"]})
        first = next(one for one in again.results() if one.task == "0")
        assert (first.label, first.source, first.probabilities["anger"]) == ("joy;fear", "adjudicated", 0.0)
        again.undo_adjudication(["0"])
        assert again.verify().differing == {}


def test_known_answers_teach_who_is_good(tmp_path: Path) -> None:
    """Two workers who contradict each other on everything: only known answers tell who is right."""
    tasks = [{"id": f"t{x}", "payload": f"text {x}", "gold": "joy" if x % 2 else "none"} for x in range(8)]
    tasks += [{"id": f"u{x}", "payload": f"text {x}"} for x in range(8, 16)]
    with nl.Campaign.create(
        f"sqlite:///{tmp_path}/c.db", tasks=tasks, budget=16, answer="multi", labels=("joy", "fear"), turn_away=False
    ) as campaign:
        for turn in range(64):
            lease = campaign.ask("ann" if turn % 2 else "bob")
            if isinstance(lease, nl.results.Lease):
                joy = int(lease.payload.split()[1]) % 2 == 1
                campaign.tell(lease, "joy" if joy == (lease.worker == "ann") else "none")
        found = [one for one in campaign.results() if one.task.startswith("u") and one.labels == 2]
        assert len(found) == 8 and all((one.label == "joy") == (int(one.payload.split()[1]) % 2 == 1) for one in found)
        assert campaign.verify().differing == {}


def test_the_command_line_and_files_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tasks.csv").write_text("text\ngood\nbad\n")
    words = [
        "campaign",
        "create",
        "tasks.csv",
        "--budget",
        "4",
        "--id",
        "c",
        "--answer",
        "multi",
        "--labels",
        "joy,fear",
    ]
    assert run([*words, "--json"]) == 0
    with nl.Campaign.open("sqlite:///nextlabel.db", "c") as campaign:
        lease = campaign.ask("ann")
        assert isinstance(lease, nl.results.Lease)
        with pytest.raises(nl.errors.InputError, match="'sorrow' is not one of the campaign's"):
            campaign.tell(lease, ["joy", "sorrow"])
        assert campaign.tell(lease, ["fear", "joy"]).label == "joy;fear"
    assert run(["campaign", "export", "c", "--save", "results.csv"]) == 0
    assert run(["campaign", "export", "c", "--rows", "labels", "--save", "labels.csv"]) == 0
    with Path("results.csv").open() as stream:
        (told,) = (row for row in csv.DictReader(stream) if row["labels"] == "1")
    assert (told["label"], told["count_joy"], told["count_fear"]) == ("joy;fear", "1", "1")
    assert float(told["p_joy"]) > 0.5
    assert "joy;fear" in Path("labels.csv").read_text()
    capsys.readouterr()
    assert run(["campaign", "create", "tasks.csv", "--budget", "4", "--answer", "multi", "--labels", "a;b,c"]) == 2
    assert "stands between labels" in capsys.readouterr().err


def test_over_http(tmp_path: Path) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        body = {"id": "many", "budget": 3, "answer": "multi", "labels": list(LABELS)}
        assert http.post("/campaigns", json=body).status_code == 201
        assert http.post("/campaigns/many/tasks", json=[{"id": "a", "payload": {"text": "a"}}]).status_code == 200
        lease = http.post("/campaigns/many/ask", json={"worker": "ann"}).json()["lease"]["id"]
        refused = http.post(f"/leases/{lease}/tell", json={"label": ["joy", "sorrow"]})
        assert refused.status_code == 422 and "sorrow" in refused.text
        told = http.post(f"/leases/{lease}/tell", json={"label": ["joy", "anger"]})
        assert told.status_code == 200 and told.json()["label"] == "anger;joy", told.text
        again = http.post(f"/leases/{lease}/tell", json={"label": "anger;joy"})
        assert again.status_code == 200  # the same answer, once
        (found,) = http.get("/campaigns/many/results").json()["results"]
        assert found["label"] == "anger;joy" and set(found["probabilities"]) == set(LABELS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": "index"}, "does not ask for several labels"),
        ({"scale": "1..5"}, "scale only has an effect with answer rating"),
        ({"prior": [1, 1]}, "takes no prior"),
        ({"labels": ["none", "joy"]}, "of which any may be true is called 'none'"),
    ],
)
def test_bad_settings(given: dict[str, Any], said: str) -> None:
    with pytest.raises(nl.errors.InputError, match=said):
        nl.Campaign.create("memory:", tasks=["a"], budget=3, answer="multi", **{"labels": list(LABELS), **given})


@given(st.sets(st.sampled_from(LABELS)))
@settings(max_examples=20, deadline=None)
def test_an_answer_is_one_number(chosen: set[str]) -> None:
    form = Form((Question("", "multi", LABELS),))
    code = form.number_of(list(chosen))
    assert form.number_of(form.name_of(code)) == code
    assert form.best(form.known(code)[None])[0] == code and form.certainty(form.known(code)[None])[0] == 1.0


def test_what_workers_say_of_one_label_helps_the_others() -> None:
    """14 labels, 3 of 20 workers per item, half of them careless: together they are read out better than apart."""
    together, apart = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.random((100, 14)) < rng.uniform(0.05, 0.4, 14)
        skill = np.where(np.arange(20) % 2, 0.95, 0.6)
        task, worker = (
            np.repeat(np.arange(100), 3),
            rng.permuted(np.tile(np.arange(20), (100, 1)), axis=1)[:, :3].ravel(),
        )
        said = (truth[task] == (rng.random((300, 14)) < skill[worker, None])).astype(np.int64)
        unknown = np.full(100, -1)

        def read(names: tuple[str, ...], columns: Any) -> Any:
            form, answers = Form((Question("", "multi", names),)), said[:, columns]  # noqa: B023
            codes = answers @ 2 ** np.arange(len(names))
            labels = FormLabels(task, worker, codes, answers, 100, 20)  # noqa: B023
            return fit_form(form, labels, unknown).belief.argmax(axis=2) == truth[:, columns]  # noqa: B023

        together.append(read(tuple(map(str, range(14))), slice(None)).mean())
        apart.append(np.mean([read(("a",), [q]).mean() for q in range(14)]))
    assert np.mean(together) > np.mean(apart) + 0.02
