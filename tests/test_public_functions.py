"""Plan, backtest, prior and rates from Python: labels in any form, results that print as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nextlabel as nl


@pytest.fixture
def columns() -> dict[str, list[object]]:
    rng = np.random.default_rng(0)
    theta = rng.beta(2, 1, 60)
    task = [f"t{x}" for x in range(60) for _ in range(7)]
    label = [int(rng.random() < theta[x]) for x in range(60) for _ in range(7)]
    taken = np.cumsum(rng.exponential(60.0, 420))
    given = taken + rng.exponential(120.0, 420)
    return {
        "task": task,
        "worker": [f"w{j % 7}" for j in range(420)],
        "label": label,
        "assigned_at": taken.tolist(),
        "submitted_at": given.tolist(),
    }


@pytest.fixture
def path(columns: dict[str, list[object]], tmp_path: Path) -> Path:
    rows = zip(*columns.values(), strict=True)
    text = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "labels.csv").write_text(text + "\n")
    return tmp_path / "labels.csv"


def test_labels_may_come_in_any_form(columns: dict[str, list[object]], path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    forms = [path, str(path), nl.read_labels(path), pandas.DataFrame(columns), columns]
    priors = [nl.learn_prior(form, "moments").prior for form in forms]
    assert len(set(priors)) == 1
    rates = [nl.rates(form, unit="min") for form in forms]
    assert len({one.arrival_rate for one in rates}) == 1
    assert rates[0].arrival_rate == pytest.approx(1.0, rel=0.2)
    found = [nl.backtest(form, policies=["uniform"], prior=(2, 1), replications=3) for form in forms]
    assert len({one.points for one in found}) == 1
    assert nl.compare_priors(path, ["moments", "ml"]).use.method == "ml"


def test_gold_may_be_a_data_frame(columns: dict[str, list[object]]) -> None:
    gold = {"task": [f"t{x}" for x in range(60)], "label": [x % 2 for x in range(60)]}
    found = nl.backtest(columns, gold, policies=[nl.policies.OKG()], prior=nl.Beta(1, 1), replications=3)
    assert (found.truth, found.known, found.policies) == ("gold", 60, ("okg",))


def test_a_backtest_prints_as_a_table(path: Path) -> None:
    options = nl.BacktestOptions(pilot=20, order="file")
    found = nl.backtest(path, policies=["okg", "uniform"], labels_per_task=[3], replications=3, options=options)
    lines = str(found).splitlines()
    assert lines[0] == "40 tasks replayed: accuracy, read out by posterior"
    assert [line.split()[0] for line in lines[4:6]] == ["okg", "uniform"]
    assert len(repr(found)) < 600


def test_a_plan_prints_as_a_table() -> None:
    plan = nl.plan(nl.Problem.identical(tasks=20, budget=1, prior=nl.Beta(2, 1)), target=0.8, replications=20)
    lines = str(plan).splitlines()
    assert lines[0].startswith("Plan for 20 tasks, up to ") and "bound" in lines[2]
    assert "0.8 of the tasks right takes" in str(plan)
    assert len(repr(plan)) < 800


def test_a_study_prints_as_a_table() -> None:
    study = nl.simulate(nl.Problem.identical(tasks=5, budget=8), ["okg", "uniform"], replications=5)
    lines = str(study).splitlines()
    assert lines[0] == "5 tasks, 8 labels, 5 replications"
    assert [line.split()[0] for line in lines[4:6]] == ["okg", "uniform"]
    assert "array" not in repr(study)


def test_a_prior_of_three_answers_is_refused(path: Path) -> None:
    with pytest.raises(nl.errors.InputError, match="two answers"):
        nl.backtest(path, prior=(1, 1, 1))  # type: ignore[arg-type]
