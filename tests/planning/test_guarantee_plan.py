"""The cheapest way to labels with a guarantee, from a pilot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nextlabel.cli.app import run


def pilot(folder: Path, accuracy: float, items: int = 120, each: int = 5) -> tuple[str, str]:
    """Labels of ten workers, and gold for all items."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, items)
    rows = ["task,worker,label"]
    for task in range(items):
        for worker in rng.permutation(10)[:each]:
            said = truth[task] if rng.random() < accuracy else 1 - truth[task]
            rows.append(f"t{task},w{worker},{said}")
    (folder / "labels.csv").write_text("\n".join(rows) + "\n")
    (folder / "gold.csv").write_text("task,label\n" + "\n".join(f"t{k},{t}" for k, t in enumerate(truth)) + "\n")
    return str(folder / "labels.csv"), str(folder / "gold.csv")


def plan(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert run(["plan", "--at-most-wrong", "0.05", "--replications", "3", "--json", *words]) == 0
    made: dict[str, object] = json.loads(capsys.readouterr().out)
    return made


def test_good_crowds_pay_and_poor_ones_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, gold = pilot(tmp_path, 0.9)
    good = plan(capsys, "--pilot", labels, "--gold", gold, "--tasks", "1000")
    ways = good["ways"]
    assert ways[0]["labels_each"] == 0 and ways[0]["cost"] == 9500  # n - floor(eps n) answers at 10
    assert good["best"]["labels_each"] >= 1 and good["best"]["cost"] < 0.7 * 9500
    assert [way["labels_each"] for way in ways] == [0, 1, 2, 3, 4, 5]
    assert all(way["low"] <= way["cost"] <= way["high"] for way in ways)
    labels, gold = pilot(tmp_path, 0.5)
    poor = plan(capsys, "--pilot", labels, "--gold", gold, "--tasks", "1000")
    assert poor["best"]["labels_each"] == 0 and "experts alone are cheapest" in poor["sentences"][0]


def test_without_gold_the_plan_says_what_it_assumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, _ = pilot(tmp_path, 0.85)
    made = plan(capsys, "--pilot", labels)
    assert made["items"] == 120 and not made["judged_by_gold"] and "up to 10 points more" in made["sentences"][1]


def test_a_model_and_every_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, gold = pilot(tmp_path, 0.75)
    truth = [line.split(",") for line in Path(gold).read_text().split()[1:]]
    rows = [
        f"{task},{said if k % 25 else 1 - int(said)},{0.97 if k % 25 else 0.6}" for k, (task, said) in enumerate(truth)
    ]
    (tmp_path / "model.csv").write_text("task,label,probability\n" + "\n".join(rows) + "\n")
    words = ["--pilot", labels, "--gold", gold, "--model-labels", str(tmp_path / "model.csv"), "--out", str(tmp_path)]
    made = plan(capsys, *words)
    alone, model, *_ = made["ways"]
    assert (alone["name"], model["name"]) == ("experts alone", "model, then expert") and made["best"] == model
    assert model["cost"] < 0.7 * alone["cost"] and "keep the model's labels" in made["sentences"][0]
    for way in made["ways"]:
        assert len(way["by_share"]) == len(made["shares"]) == 6
        assert way["by_share"][0] >= way["by_share"][-1]
    assert alone["by_share"][2] == alone["cost"] and (tmp_path / "plan.png").stat().st_size > 10_000
    assert plan(capsys, "--pilot", labels, "--model-labels", str(tmp_path / "model.csv"))["ways"][1]["labels_each"] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at-most-wrong", "0.05"], "needs labels of workers"),
        (["--at-most-wrong", "0", "--pilot", "LABELS"], "at_most_wrong is 0"),
        (["--at-most-wrong", "0.05", "--pilot", "LABELS", "--expert-cost", "0"], "--expert-cost is 0"),
        (["--at-most-wrong", "0.05", "--pilot", "LABELS", "--target", "0.9"], "--target only has an effect"),
        (["--tasks", "10", "--budget", "12", "--sure", "0.9"], "--sure only has an effect with --at-most-wrong"),
    ],
)
def test_bad_input(words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, _ = pilot(tmp_path, 0.85, items=20)
    assert run(["plan", *(labels if word == "LABELS" else word for word in words)]) == 2
    assert sentence in capsys.readouterr().err
