"""Questions for numbers: closed forms, bound >= optimum >= policies, a slow program, and the commands."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from nextlabel.cli.app import run
from nextlabel.errors import ProblemError, TooLargeError
from nextlabel.solve import numbers
from nextlabel.solve.numbers import POLICIES, Items, NumberProblem, NumberWorkers


def tiny(seed: int) -> NumberProblem:
    rng = np.random.default_rng(seed)
    tasks = tuple(Items(1, float(sd)) for sd in rng.uniform(0.5, 3.0, rng.integers(1, 4)))
    types = tuple(
        NumberWorkers(float(rng.uniform(0.5, 3.0)), int(rng.integers(0, 3))) for _ in range(rng.integers(1, 3))
    )
    return NumberProblem(tasks, int(rng.integers(0, 5)), types)


def test_bound_above_optimum_above_policies_on_200_problems() -> None:
    for seed in range(200):
        problem = tiny(seed)
        best, bound = problem.exact(), problem.bound()
        assert bound >= best - 1e-9
        assert all(best >= problem.exact(policy) - 1e-9 for policy in POLICIES)


@pytest.mark.parametrize(("items", "each"), [(1, 3), (4, 2), (7, 1)])
def test_equal_items_and_workers_in_closed_form(items: int, each: int) -> None:
    """A label of precision t takes v to 1 / (1 / v + t); labels that come out even reach the bound."""
    v, t = 4.0, 1 / 2.25
    problem = NumberProblem((Items(items, 2.0),), items * each, (NumberWorkers(1.5),))
    known = items * (v - 1 / (1 / v + each * t))
    assert problem.bound() == pytest.approx(known, abs=1e-9)
    assert problem.exact() == pytest.approx(known, abs=1e-9)
    assert problem.simulate("value", 1).value == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_solves_its_relaxation(seed: int) -> None:
    """Against SciPy's solver for the split of the precision that leaves the least variance."""
    rng = np.random.default_rng(seed)
    tasks = tuple(Items(1, float(sd)) for sd in rng.uniform(0.3, 5.0, 6))
    problem = NumberProblem(tasks, 5, (NumberWorkers(1.0, 3), NumberWorkers(2.0, 4)))
    first, water = problem.precision, 3 * 1.0 + 2 * 0.25
    found = minimize(
        lambda T: (1 / (first + T)).sum(), np.full(6, water / 6), bounds=[(0, None)] * 6, method="SLSQP",
        constraints={"type": "eq", "fun": lambda T: T.sum() - water}, options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    assert problem.bound() == pytest.approx((1 / first).sum() - found.fun, rel=1e-6)


def test_the_optimum_is_that_of_a_slow_program() -> None:
    """Every order of the supply alike, every choice tried, one arrival seen at a time."""
    problem = NumberProblem((Items(1, 2.0), Items(1, 1.0)), 2, (NumberWorkers(1.0, 2), NumberWorkers(2.0, 1)))

    def best(precision: list[float], orders: list[tuple[float, ...]], budget: int) -> float:
        if not budget or not orders[0]:
            return 0.0
        value = 0.0
        for t in sorted({order[0] for order in orders}):
            rest = [order[1:] for order in orders if order[0] == t]
            options = [best(precision, rest, budget)]
            for k, p in enumerate(precision):
                after = [*precision[:k], p + t, *precision[k + 1 :]]
                options.append(1 / p - 1 / (p + t) + best(after, rest, budget - 1))
            value += len(rest) / len(orders) * max(options)
        return value

    assert problem.exact() == pytest.approx(best([0.25, 1.0], list(permutations((1.0, 1.0, 0.25))), 2), abs=1e-12)


def test_play_is_what_the_model_says() -> None:
    """The error of the estimates is the variance that the model leaves; the good policy is near the bound."""
    problem = NumberProblem((Items(60, 3.0), Items(40, 1.0)), 200, (NumberWorkers(1.0, 150), NumberWorkers(4.0, 250)))
    played = {name: problem.simulate(name, 60, seed=1) for name in POLICIES}
    for one in played.values():
        assert one.value <= problem.bound() + 1e-9
        left = (60 * 9.0 + 40 * 1.0 - one.value) / 100
        assert one.squared_error == pytest.approx(left, rel=0.12)
    assert played["value"].value > 0.995 * problem.bound() and played["value"].value > played["uncertain"].value


FILE = """
budget = 6
[question]
answer = "number"
[[tasks]]
count = 3
sd = 2.0
[[workers]]
sd = 1.0
supply = 4
[[workers]]
sd = 3.0
supply = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(FILE)
    return tmp_path


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bound", "--problem", "p.toml", "--json"]) == 0
    bound = json.loads(capsys.readouterr().out)["bound"]
    assert run(["exact", "--problem", "p.toml", "--policy", "value", "--json"]) == 0
    exact = json.loads(capsys.readouterr().out)
    assert bound >= exact["value"] >= exact["policy"]["value"] > 0.9 * bound
    assert run(["simulate", "--problem", "p.toml", "--replications", "50", "--seed", "3", "--json"]) == 0
    played = {one["policy"]: one for one in json.loads(capsys.readouterr().out)["policies"]}
    assert abs(played["value"]["value"] - exact["policy"]["value"]) < 3 * played["value"]["half_width"] + 1e-6
    assert run(["bound", "--problem", "p.toml", "--budget", "2"]) == 0
    assert "certified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "change", "said"),
    [
        (["bound"], ('"number"', '"melody"'), "'melody'"),
        (["bound"], ("sd = 2.0", "sd = -2.0"), "sd is -2.0"),
        (["bound"], ("supply = 4", ""), "need a supply each"),
        (["bound"], ("count = 3", "count = 1.5"), "count is 1.5"),
        (["bound"], ("count = 3", "prior = [1, 1]"), "unknown key 'prior'"),
        (["bound", "--accuracy", "0.8"], ("", ""), "--accuracy has no meaning for numbers"),
        (["plan"], ("", ""), "which this command cannot plan"),
        (["simulate", "--policy", "okg"], ("", ""), "no policy 'okg' for numbers"),
        (["simulate", "--turn-away"], ("", ""), "--turn-away only has an effect"),
        (["exact"], ("supply = 4", "supply = 400"), "the supply has 405 labels"),
        (["bound"], ('[question]\nanswer = "number"', ""), "sd is for numbers"),
    ],
)
def test_bad_problems(
    words: list[str], change: tuple[str, str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.toml").write_text(FILE.replace(*change))
    assert run([*words, "--problem", "p.toml"]) == 2
    assert said in capsys.readouterr().err


def test_bad_problems_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "MOST_STATES", 1000)
    with pytest.raises(ProblemError, match="needs items and workers"):
        NumberProblem((), 3, ())
    with pytest.raises(TooLargeError, match="states"):
        NumberProblem(tuple(Items(1, 1.0 + k / 7) for k in range(30)), 30, (NumberWorkers(1.0, 30),)).exact()
