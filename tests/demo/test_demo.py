"""``nextlabel demo`` from beginning to end, small."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.live.server import free_port

from nextlabel.application.service import Campaign
from nextlabel.cli.app import run
from nextlabel.crowd.skill import AGAINST, AT_CHANCE
from nextlabel.demo import (
    CONTRARIAN,
    LABELS,
    OVERLAPS,
    PEOPLE,
    SPAMMER,
    USUAL,
    fixed_overlap,
    items,
    level,
    outcome,
    prediction,
    saving,
)


def test_demo_ends_with_a_certificate_and_leaves_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--tasks", "40", "--port", str(free_port()), "--json"]) == 0
    out, said = capsys.readouterr()
    found = json.loads(out)
    assert found["labels"] == 120 and 0.5 < found["right"] <= 1.0
    workers = {one["worker"]: one for one in found["workers"]}
    assert workers["model:keywords"]["labels"] == 40
    assert sum(workers[person.name]["labels"] for person in PEOPLE if person.name in workers) == 120
    assert [one["readout"] for one in found["overlap"]] == ["majority", "dawid-skene"]
    assert "Dashboard: http://127.0.0.1:" in said and "nextlabel serve --db nextlabel-demo/demo.db" in said
    rows = list(csv.DictReader((tmp_path / "nextlabel-demo/results.csv").read_text().splitlines()))
    assert len(rows) == 40 and sum(int(row["labels"]) for row in rows) == 120
    assert np.mean([row["label"] == row["hidden_truth"] for row in rows]) == pytest.approx(found["right"])
    assert (tmp_path / "nextlabel-demo/demo.png").stat().st_size > 10_000
    with Campaign.open("nextlabel-demo/demo.db") as campaign:
        assert campaign.status().closed_reason == "budget_spent"
        before = campaign.status()
        assert campaign.rebuild() == before


def test_people_and_model_are_what_the_demo_says_of_them() -> None:
    sample = items(4000, 3)
    u = np.random.default_rng(0).random(len(sample))
    for person in PEOPLE:
        right = np.mean([person.says(item.truth, x) == item.truth for item, x in zip(sample, u, strict=True)])
        assert right == pytest.approx(person.accuracy, abs=0.03)
    assert 0.7 < np.mean([prediction(item.text) == item.truth for item in sample]) < 0.9
    assert {item.truth for item in sample} == set(LABELS)


def test_the_spammer_and_the_contrarian_are_found() -> None:
    """With as many labels as the demo buys, given without any policy."""
    sample, random = items(300, 0), np.random.default_rng(0)
    speed = np.array([person.speed for person in PEOPLE])
    given = []
    for item in sample:
        for j in random.choice(len(PEOPLE), 3, replace=False, p=speed / speed.sum()):
            given.append((item.id, PEOPLE[j].name, PEOPLE[j].says(item.truth, float(random.random()))))
    found = outcome(sample, {item.id: item.truth for item in sample}, given, [(900, 0.9)], 0, lambda share: None)
    assert found.fields["right"] == 1.0 and found.fields["all_found"]
    flags = {one["kind"]: one["flags"] for one in found.fields["workers"]}
    assert flags[SPAMMER] == [AT_CHANCE] and flags[CONTRARIAN] == [AGAINST]
    majority, model = found.overlaps.values()
    assert all(a < b for a, b in zip(majority, model, strict=True))


def test_fixed_overlap_with_people_who_are_always_right(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = [replace(person, right=(1.0, 1.0)) for person in PEOPLE]
    monkeypatch.setattr("nextlabel.demo.PEOPLE", sure)
    sample = items(30, 1)
    truths = [(item.id, "model:keywords", item.truth) for item in sample]
    for name, shares in fixed_overlap(sample, truths, 0, lambda share: None).items():
        assert shares == [1.0] * len(OVERLAPS)
        one = saving(name, shares, [(60, 0.5), (90, 1.0)], 30)
        assert one["level_after"] == 90 and one["saved"] == pytest.approx(1 - 90 / (USUAL * 30))


def test_the_campaign_is_level_from_where_it_stays_so() -> None:
    curve = [(10, 0.9), (20, 0.8), (30, 0.9), (40, 0.95)]
    assert level(curve, 0.85) == 30 and level(curve, 0.7) == 10 and level(curve, 0.96) is None
    assert saving("majority", [0.97] * len(OVERLAPS), curve, 10)["saved"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "3"], "less than 10"),
        (["--labels-per-task", "lots"], "not a number"),
        (["--port", "0"], "less than 1"),
        (["--labels-per-task", "0"], "--labels-per-task is 0"),
    ],
)
def test_bad_input(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.db"))
