"""An audit's interval holds the truth, whatever the model that is audited."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from pathlib import Path

import numpy as np
import pytest

import nextlabel as nl
from labelled_crowds import recorded
from nextlabel.crowd.audit import estimate, exact_interval
from nextlabel.crowd.fit import fit_crowd
from nextlabel.errors import FileFormatError, InputError


@pytest.mark.parametrize(("N", "n"), [(12, 5), (30, 10), (30, 30), (40, 1)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_exact_intervals_hold_at_their_level_for_every_population(N: int, n: int, level: float) -> None:
    """No draws: for each number of right ones in the population, the chance of an interval that holds it."""
    ends = [exact_interval(N, n, x, level) for x in range(n + 1)]
    for M in range(N + 1):
        held = 0.0
        for x in range(max(0, n - (N - M)), min(n, M) + 1):
            low, high = ends[x]
            if low - 1e-12 <= M / N <= high + 1e-12:
                held += comb(M, x) * comb(N - M, n - x) / comb(N, n)
        assert held >= level - 1e-9
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(ends))


def test_an_audit_of_every_task_leaves_no_doubt() -> None:
    found = nl.audit([0.9] * 20, [1] * 17 + [0] * 3)
    assert (found.accuracy, found.low, found.high) == pytest.approx((0.85, 0.85, 0.85))


@pytest.mark.parametrize("n", [10, 30, 60, 150, 400])
@pytest.mark.parametrize("accuracy", [0.7, 0.92, 0.99, 1.0])
def test_coverage_whatever_the_model(n: int, accuracy: float) -> None:
    rng = np.random.default_rng(n)
    N, held = 1000, 0
    for _ in range(150):
        right = np.zeros(N, dtype=np.bool_)
        right[rng.permutation(N)[: round(accuracy * N)]] = True
        expected = np.where(right, rng.beta(20, 1, N), rng.beta(6, 2, N))  # too sure
        known = np.zeros(N, dtype=np.bool_)
        known[rng.permutation(N)[:n]] = True
        found = estimate(expected, known, right[known], 0.95)
        held += found.low - 1e-12 <= right.mean() <= found.high + 1e-12
        assert found.low <= found.accuracy <= found.high
    assert held >= 0.9 * 150


def test_many_audited_tasks_use_the_prediction() -> None:
    """Where the model knows which labels are right, the interval is narrower than that of the count alone."""
    rng = np.random.default_rng(0)
    right = rng.random(5000) < 0.8
    sharp, blunt = np.where(right, 0.97, 0.1), np.full(5000, 0.8)
    known = np.arange(5000) < 400
    one, two = (estimate(e, known, right[known], 0.95) for e in (sharp, blunt))
    assert one.method == two.method == "prediction-powered"
    assert one.high - one.low < 0.5 * (two.high - two.low)


def test_sixty_audited_tasks_of_a_recorded_set(data: Path) -> None:
    labels, gold = recorded(data, "rte", 5)
    fit = fit_crowd(labels)
    right, expected = fit.beliefs.argmax(axis=1) == gold, fit.beliefs.max(axis=1)
    assert expected.mean() > right.mean() + 0.02  # the model's own word is too high
    held = 0
    for seed in range(100):
        known = np.zeros(800, dtype=np.bool_)
        known[np.random.default_rng(seed).permutation(800)[:60]] = True
        found = estimate(expected, known, right[known], 0.95)
        held += found.low <= right.mean() <= found.high
    assert held >= 93


def test_results_and_audits_as_tables() -> None:
    results = {"task": ["a", "b", "c", "d"], "label": ["Yes", "no", "yes", "no"], "probability": [0.9, 0.8, 0.7, 0.6]}
    found = nl.audit(results, {"task": ["a", "b", "z"], "label": ["yes", "YES", "no"]})
    assert (found.right, found.audited, found.tasks) == (1, 2, 4)
    assert found.expected == pytest.approx(0.75)
    assert "without a result" in found.read[-1]["sentences"][-1]
    assert "1 of 2 audited labels are right" in str(found)


def test_tasks_that_were_told_do_not_count() -> None:
    columns = {"task": ["a", "b", "c", "c"], "worker": ["u", "u", "u", "v"], "label": [1, 0, 1, 0]}
    crowd = nl.learn_crowd(columns, {"task": ["a"], "label": [0]})
    found = nl.audit(crowd, {"task": ["a", "b"], "label": [0, 0]})
    assert (found.tasks, found.audited, found.right) == (2, 1, 1)
    rows = list(crowd.tasks())
    table = {name: [row[name] for row in rows] for name in rows[0]}
    assert nl.audit(table, {"task": ["a", "b"], "label": [0, 0]}).tasks == 2


def test_bad_audits_are_refused_in_a_sentence() -> None:
    results = {"task": ["a", "b"], "label": [1, 0], "probability": [0.9, 0.8]}
    with pytest.raises(FileFormatError, match="no audited task that has a result"):
        nl.audit(results, {"task": ["z"], "label": [1]})
    with pytest.raises(FileFormatError, match="two things of task 'a'"):
        nl.audit(results, {"task": ["a", "a"], "label": [1, 0]})
    with pytest.raises(FileFormatError, match="no label of"):
        nl.audit(results, {"task": ["a"], "label": ["maybe"]})
    with pytest.raises(FileFormatError, match=r"probability '1\.7'"):
        nl.audit({**results, "probability": [0.9, 1.7]}, {"task": ["a"], "label": [1]})
    with pytest.raises(FileFormatError, match="two rows for task 'a'"):
        nl.audit({**results, "task": ["a", "a"]}, {"task": ["a"], "label": [1]})
    with pytest.raises(FileFormatError, match="no column 'probability'"):
        nl.audit({"task": ["a"], "label": [1]}, {"task": ["a"], "label": [1]})
    with pytest.raises(InputError, match="no task was audited"):
        nl.audit([0.9, 0.8], [float("nan")] * 2)
    with pytest.raises(InputError, match="shape"):
        nl.audit([0.9, 0.8], [1.0])
    with pytest.raises(InputError, match="level is 2"):
        nl.audit([0.9], [1.0], level=2)


def test_labels_whose_truth_was_told_are_not_judged(tmp_path: Path) -> None:
    """An export has the answers of controls, adjudications and audits in place of labels."""
    results, audited = tmp_path / "results.csv", tmp_path / "audited.csv"
    told = ["control", "adjudicated", "audited", "expert"]
    rows = [
        f"t{k},{'no' if k == 39 else 'yes'},{0.9 if k >= 4 else 1},{told[k] if k < 4 else 'labels'}" for k in range(40)
    ]
    results.write_text("\n".join(["task,label,probability,source", *rows]))
    audited.write_text("\n".join(["task,label", *(f"t{k},{'yes' if k < 4 else 'no'}" for k in range(10))]))
    found = nl.audit(str(results), str(audited))
    assert (found.tasks, found.audited, found.right) == (36, 6, 0)
