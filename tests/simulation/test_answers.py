"""Ratings, numbers, several labels and pairs: problem files with [question], and recorded labels replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nextlabel.cli.app import run

PAIRS = (
    "budget = 60\n[question]\nanswer = 'pair'\n[[tasks]]\ncount = 8\nsd = 3\n[[workers]]\naccuracy = 0.95\ncount = 4\n"
)
LABELS = (
    "budget = 40\n[question]\nanswer = 'multi'\nlabels = 3\n[[tasks]]\ncount = 20\n"
    "prior = {kind = 'fact', probability = 0.3}\n[[workers]]\naccuracy = 0.85\ncount = 4\nsupply = 60\n"
)
RATINGS = "budget = {}\n[question]\nanswer = 'rating'\nscale = '1..3'\nloss = '{}'\n[[tasks]]\ncount = 2\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def asked(capsys: Any, command: str, text: str, *more: str) -> dict[str, Any]:
    Path("problem.toml").write_text(text)
    assert run([command, "--problem", "problem.toml", "--json", *more]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_rating_is_worth_what_its_loss_is_less_than_the_largest(capsys: Any, loss: str) -> None:
    """Without labels the middle step is said: 1 off in two cases of three. With labels bound >= optimum >= policy."""
    assert asked(capsys, "bound", RATINGS.format(0, loss))["least_loss"] == pytest.approx(2 / 3)
    bound, best = (asked(capsys, command, RATINGS.format(4, loss)) for command in ("bound", "exact"))
    assert bound["certified"] and bound["least_loss"] < 2 / 3
    index = asked(capsys, "exact", RATINGS.format(4, loss), "--policy", "index")["policy"]
    assert bound["bound"] >= best["value"] >= index["value"]


def test_what_labels_cost_is_not_taken_for_error(capsys: Any) -> None:
    """A form is paid once, and a rating's bound is net of what labels cost."""
    Path("problem.toml").write_text("label_cost = 0.3\n" + RATINGS.format(4, "squared"))
    assert run(["bound", "--problem", "problem.toml"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "error of an item and the cost of its labels are together at least" in said
    assert "bound_all_labels" not in asked(capsys, "bound", "label_cost = 0.01\n" + LABELS)
    Path("problem.toml").write_text("budget = 3\n[question]\nanswer = 'multi'\nlabels = 3\n[[tasks]]\ncount = 2\n")
    assert run(["exact", "--problem", "problem.toml"]) == 0
    assert "That is of one label, asked alone." in " ".join(capsys.readouterr().out.split())


def test_pairs_and_several_labels_are_simulated(capsys: Any) -> None:
    pairs = asked(capsys, "simulate", PAIRS, "--replications", "2")
    assert pairs["figure"] == "Kendall's tau" and {one["budget"] for one in pairs["rows"]} == {60}
    assert all(one["mean"] > 0.5 for one in pairs["rows"])
    bound, labels = asked(capsys, "bound", LABELS), asked(capsys, "simulate", LABELS, "--replications", "3")
    assert bound["bound_all_labels"] == pytest.approx(3 * bound["bound"])
    for one in labels["rows"]:
        assert 0.5 < one["mean"] < bound["bound_per_task"] + 2 * one["half_width"] + 0.05


@pytest.mark.parametrize(
    ("command", "text", "said"),
    [
        ("bound", PAIRS, "Use simulate"),
        ("simulate", PAIRS.replace("0.95", "0.4"), "right more often than not"),
        ("simulate", PAIRS.replace("sd = 3", "score = 3"), "unknown key 'score'"),
        ("simulate", PAIRS.replace("sd = 3", "sd = 'a'"), "sd is 'a'"),
        ("simulate", PAIRS.replace("count = 8", "count = -8"), "count is -8"),
        ("simulate", PAIRS.replace("count = 4", "count = 2.5"), "count is 2.5"),
        ("simulate", PAIRS + "supply = -3\n", "supply is -3"),
        ("simulate", PAIRS.replace("budget = 60", "budget = -2"), "budget is -2"),
        ("bound", LABELS.replace("labels = 3", "labels = 0"), "whole number from 1 to 26"),
        ("bound", LABELS.replace("labels = 3", "scale = '1..3'"), "unknown key 'scale'"),
        ("exact", LABELS.replace("labels = 3", "labels = ['a']"), "whole number from 1 to 26"),
        ("bound", RATINGS.format(4, "squared") + "reward = 'accuracy'\n", "says itself what its answers are worth"),
        ("bound --value 10", RATINGS.format(4, "squared"), "--value"),
        ("bound", RATINGS.format(4, "cubic"), "cubic"),
        ("bound", "budget = 3\n[question]\nanswer = 'essay'\n", "'essay'"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys: Any, command: str, text: str, said: str) -> None:
    Path("problem.toml").write_text(text)
    assert run([*command.split(), "--problem", "problem.toml"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def _say(kind: str, rng: np.random.Generator, x: int) -> str:
    if kind == "rating":
        return str(int(np.clip(1 + x % 5 + rng.integers(-1, 2), 1, 5)))
    if kind == "number":
        return f"{10 * x + 8 * rng.standard_normal():.1f}"
    true = [name for k, name in enumerate(("joy", "fear", "calm")) if (x >> k) & 1]
    return ";".join(true if rng.random() < 0.8 else ["joy"]) or "none"


@pytest.mark.parametrize(
    ("kind", "options", "figure"),
    [
        ("rating", ("--scale", "1..5"), "correlation"),
        ("number", ("--range=-50..250",), "correlation"),
        ("multi", (), "share right"),
        ("pair", (), "Kendall's tau"),
    ],
)
def test_recorded_answers_are_replayed(capsys: Any, kind: str, options: tuple[str, ...], figure: str) -> None:
    """Gold or not, both rules and read-outs at each budget; more labels say more."""
    rng, rows = np.random.default_rng(5), list[str]()
    gold = [f"t{x},{x}" if kind in ("number", "pair") else f"t{x},{1 + x % 5}" for x in range(12)]
    for worker in range(5):
        if kind == "pair":
            for i, j in zip(*np.triu_indices(12, 1), strict=True):
                rows.append(f"t{i},t{j},w{worker},{'second' if rng.random() < 0.9 else 'first'}")
        else:
            rows += [f"t{x},w{worker},{_say(kind, rng, x)}" for x in range(12)]
    head = "first,second,worker,label" if kind == "pair" else "task,worker,label"
    Path("labels.csv").write_text("\n".join([head, *rows]))
    Path("gold.csv").write_text("\n".join(["task,label", *gold]))
    known = ("--gold", "gold.csv") if kind != "multi" else ()
    made = ["backtest", "labels.csv", "--answer", kind, *options, *known, "--replications", "2", "--json"]
    assert run([*made, "--budget", "18", "--budget", "50"]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert found["figure"] == figure and len(found["rows"]) == 8
    learnt = {(one["rule"], one["budget"]): one["mean"] for one in found["rows"] if one["readout"] == "learnt"}
    assert learnt["value", 50] > 0.4 and learnt["even", 50] > 0.4
    assert sum(learnt[rule, 50] - learnt[rule, 18] for rule in ("value", "even")) > 0


def test_a_pair_that_somebody_labelled_twice_and_a_truth_that_is_not_known(capsys: Any) -> None:
    rows = ["a,b,w1,first", "b,a,w1,second", "a,c,w1,first", "b,c,w1,first", "a,b,w2,first"]
    Path("labels.csv").write_text("\n".join(["first,second,worker,label", *rows]))
    assert run(["backtest", "labels.csv", "--answer", "pair", "--budget", "6", "--replications", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "which favours that read-out" in said
    assert "Nothing is certified" in said


def test_options_of_a_choice_are_refused(capsys: Any) -> None:
    assert run(["backtest", "labels.csv", "--answer", "number", "--policy", "index"]) == 2
    assert "--policy" in capsys.readouterr().err
    assert run(["backtest", "labels.csv", "--scale", "1..5"]) == 2
    assert "--scale" in capsys.readouterr().err
