"""``nextlabel demo`` from beginning to end, small."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.live.server import free_port

from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.facade import Campaign
from nextlabel.cli.app import run
from nextlabel.demo.outcome import outcome
from nextlabel.demo.sample import LABELS, items, prior


def test_demo_ends_with_a_certificate_and_leaves_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--tasks", "40", "--port", str(free_port()), "--json"]) == 0
    out, said = capsys.readouterr()
    found = json.loads(out)
    assert found["labels"] == 120 and 0.5 < found["right"] <= 1.0
    assert found["gap"] == pytest.approx(found["upper"] - found["expected"])
    assert found["saved"] is None or found["saved"] == pytest.approx(1 - 120 / found["fixed_overlap_labels"])
    assert "Dashboard: http://127.0.0.1:" in said and "nextlabel serve --db nextlabel-demo/demo.db" in said
    rows = list(csv.DictReader((tmp_path / "nextlabel-demo/results.csv").read_text().splitlines()))
    assert len(rows) == 40 and sum(int(row["labels"]) for row in rows) == 120
    assert np.mean([row["label"] == row["hidden_truth"] for row in rows]) == pytest.approx(found["right"])
    assert (tmp_path / "nextlabel-demo/demo.png").stat().st_size > 10_000
    with Campaign.open("nextlabel-demo/demo.db") as campaign:
        assert campaign.status.closed_reason == "budget_spent"
        before = campaign.status
        assert campaign.rebuild() == before


def test_sample_items_come_from_the_prior_that_the_campaign_is_told() -> None:
    sample = items(20_000, 3)
    theta = np.array([item.theta for item in sample])
    p, two = prior().believe(0.5, 1)
    assert theta.mean() == pytest.approx(p[0, 1], abs=0.01)
    assert np.mean(theta > 0.5) == pytest.approx(two[0, 1], abs=0.015)
    assert all((item.truth == LABELS[1]) == (item.theta > 0.5) for item in sample)


def test_fixed_overlap_is_compared_at_the_same_expected_accuracy() -> None:
    config = CampaignSettings(300, LABELS, policy="index", prior=prior())
    sample = items(100, 0)
    labelled = {item.id: item.truth for item in sample}
    values = outcome(config, sample, labelled, 300, 0.7, 0.9, []).overlap_values
    found = outcome(config, sample, labelled, 300, values[5], 0.9, [])
    assert found.right == 1.0
    assert found.overlap_same == pytest.approx(500) and found.saved == pytest.approx(0.4)
    assert outcome(config, sample, labelled, 300, 1.0, 1.0, []).saved is None


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
