"""``bound`` and ``exact`` on a problem file with workers who differ."""

from __future__ import annotations

import json

import pytest

from nextlabel.cli.app import run

FILE = """
budget = 3
[[tasks]]
count = 2
prior = {kind = "fact", probability = 0.5}
[[workers]]
accuracy = 0.9
supply = 2
[[workers]]
confusion = [[0.7, 0.3], [0.3, 0.7]]
supply = 2
"""


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "crowd.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_bound_as_json(problem, capsys):
    assert run(["bound", "--problem", str(problem), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bound"] == pytest.approx(1.818827, abs=1e-5)
    assert found["certified"] is True
    assert found["gap"] >= 0
    assert len(found["supply_prices"]) == 2
    assert "Workers differ" in found["assumes"]
    assert found["problem"]["workers"] == [
        {"accuracy": 0.9, "supply": 2},
        {"confusion": [[0.7, 0.3], [0.3, 0.7]], "supply": 2},
    ]


def test_bound_in_words(problem, capsys):
    assert run(["bound", "--problem", str(problem)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "2 types of workers" in words
    assert "right with probability 0.9, 2 labels" in words
    assert "If workers answer by their channels and give no more than their supply, no policy" in words


def test_bound_of_equal_workers_says_so(capsys):
    assert run(["bound", "--tasks", "2", "--budget", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumes"].startswith("Workers are alike")
    assert "supply_prices" not in found


def test_exact(problem, capsys):
    assert run(["exact", "--problem", str(problem), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] == pytest.approx(1.8, abs=1e-9)
    assert found["bound"] >= found["value"]


@pytest.mark.parametrize(
    ("command", "flags", "message"),
    [
        ("bound", ["--prices", "per-arrival"], "one price and one more for each type"),
        ("exact", ["--policy", "index"], "--policy is for workers who are alike"),
        ("index", [], "cannot use workers who differ"),
        ("bound", ["--prior", "1,1"], "a problem with workers has tasks with the prior Beta(1, 1)"),
    ],
)
def test_refusals(problem, capsys, command, flags, message):
    assert run([command, "--problem", str(problem), *flags]) == 2
    told = capsys.readouterr()
    assert message in " ".join(told.err.split())
    assert told.out == ""
