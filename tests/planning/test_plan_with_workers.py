"""Plans with workers who differ: bound, least budget, supply prices, and the policy crowd, never above the bound."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nextlabel.cli.app import run
from nextlabel.errors import InputError
from nextlabel.model.fact import Fact
from nextlabel.model.problem import Problem, WorkerType
from nextlabel.model.tables import answers_text
from nextlabel.planning.plan import CrowdBounds
from nextlabel.planning.plan import plan as make_plan
from nextlabel.planning.report import assumptions, sentences
from nextlabel.solve.bound import upper_bound

TOML = """budget = 60
[[tasks]]
count = 20
prior = {kind = "fact", probability = 0.5}
[[workers]]
accuracy = 0.9
supply = 20
[[workers]]
accuracy = 0.7
supply = 40
"""


def problem() -> Problem:
    workers = (WorkerType.of_accuracy(0.9, supply=20), WorkerType.of_accuracy(0.7, supply=40))
    return Problem.identical(20, 60, Fact(0.5), workers=workers)


def test_lines_of_prices_bound_every_budget_and_say_what_a_target_needs() -> None:
    some = np.array([0, 10, 20, 40, 60])
    solved = [upper_bound(problem().with_budget(int(U))) for U in some]
    bounds = CrowdBounds(problem(), some, solved)
    for U in (5, 15, 30, 50):
        assert bounds.value(np.array([U]))[0] >= upper_bound(problem().with_budget(U)).per_task - 1e-6
    needed = bounds.budget_for(0.85)
    assert needed is not None
    assert upper_bound(problem().with_budget(needed - 1)).value < 17.0
    dear = bounds.budget_for(0.9995)
    assert dear is None or dear > 60


def test_a_plan_with_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "workers.toml", tmp_path / "plan.html"
    path.write_text(TOML, encoding="utf-8")
    words = ["plan", "--problem", str(path), "--target", "0.85", "--replications", "2", "--turn-away"]
    assert run([*words, "--json", "--report", str(page)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["policy"] == "crowd" and "Workers differ" in answer["assumes"]
    assert answer["right_means"].startswith("'Right' means that the decision is the task's truth, if workers answer")
    assert all(row["crowd"] <= row["bound"] + 1e-12 for row in answer["curve"])
    assert answer["curve"][0]["bound"] == pytest.approx(0.5) and answer["curve"][-1]["budget"] == 60
    assert answer["budget_needed_by_any"] == 18  # a label of the better type adds 0.4, and 7 of 20 tasks are to be won
    assert [row["supply"] for row in answer["workers"]] == [20.0, 40.0]
    assert answer["workers"][0]["supply_price"] > 0.01
    text = page.read_text(encoding="utf-8")
    assert "Types of workers" in text and "if workers are of these types" in text.lower()


def test_what_a_plan_with_workers_says() -> None:
    plan = make_plan(problem(), most=30, replications=2)
    said = " ".join(sentences(plan))
    assert "more in the supply of a type would add: type 1 (right with probability 0.9) up to" in said
    assert "if workers are alike" not in " ".join([said, *assumptions(plan)]).lower()
    assert plan.policy == "crowd" and plan.overlaps == ()
    assert answers_text(WorkerType(((0.9, 0.1), (0.3, 0.7)))) == "right with probability 0.9, 0.7 by truth"
    assert answers_text(WorkerType(prior=((4, 2), (2, 4)), count=3)) == "right with probability about 0.6667"


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="belongs to the type of worker"):
        make_plan(problem(), label_cost=0.1)
    with pytest.raises(InputError, match=r"not between 0\.5"):
        make_plan(problem(), most=20, target=0.3, replications=2)
    with pytest.raises(InputError, match="turning away is for problems with workers who differ"):
        make_plan(Problem.identical(5, 5), turn_away=True)
