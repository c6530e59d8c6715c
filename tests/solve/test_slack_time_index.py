"""Index tables with a deadline after the last arrival: against the sweep over time, and where they end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaincc

from nextlabel.errors import ProblemError
from nextlabel.kernels.inputs import layer_at
from nextlabel.kernels.sweep import sweep
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.policies.base import Setting
from nextlabel.policies.index import Index
from nextlabel.policies.rollout_arrays import make_policy_arrays
from nextlabel.solve.index import IndexTable, index_cut, index_table
from nextlabel.solve.index_roots import LATE, IndexWork, least_slack_time
from nextlabel.solve.truncation import make_cut, make_timeline

RATE, T = 25.0, 9.5
PROBLEM = Problem.identical(10, 24, arrival_rate=RATE, completion_rate=1.0, horizon=T)
LEAST = least_slack_time(PROBLEM)
#: Accuracy of an index.
ACCURACY = 1e-5


def slack_table(monkeypatch: pytest.MonkeyPatch, problem: Problem = PROBLEM) -> IndexTable:
    """The table with layers of slack time, however small the problem is."""
    with monkeypatch.context() as patch:
        patch.setattr("nextlabel.solve.index.TABLE_SIZE", 0)
        table = index_table(problem, cap=4, flight=2)
    assert table.slack_time.rate > 0
    return table


def test_against_the_sweep_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a price ACCURACY below an index the fourth-order sweep assigns, above it it waits."""
    table = slack_table(monkeypatch)
    steps_per_arrival = 4
    cut = index_cut(make_cut(PROBLEM, 4, 2), PROBLEM)
    slow = IndexWork(PROBLEM, PROBLEM.classes[0], cut, make_timeline(PROBLEM, round(T * RATE * steps_per_arrival)))
    assert table.error < ACCURACY
    rng = np.random.default_rng(2)
    V, N = np.zeros((2, PROBLEM.budget, slow.states, slow.line.layers))
    moved = 0.0
    for _ in range(20):
        n = int(rng.integers(1, 25))
        w = int(rng.integers(0, 2))
        i = int(rng.integers(0, slow.stack.first[4 - w]))
        layer = int(rng.integers(np.ceil((LEAST * RATE + n - 1) * steps_per_arrival), slow.line.layers))
        k, share = layer_at(table.tau, table.slack_time, n, float(slow.line.tau[layer]))
        rows = table.classes[0].rows[n - 1, slow.grid.off[w] + i]
        found = float((1.0 - share) * rows[k] + share * rows[k + 1])
        moved = max(moved, float(rows[-1] - found))
        for price, assigns in ((found - ACCURACY, True), (found + ACCURACY, False)):
            if price <= 0.0:
                continue
            sweep(slow.stack, slow.grid, slow.steps, price, V, N)
            gain = V[n - 1, slow.grid.off[w + 1] + i, layer] - price - V[n - 1, slow.grid.off[w] + i, layer]
            assert (gain > -1e-10) == assigns, (n, w, i, layer, found)
    assert moved > 2 * ACCURACY


def test_a_deadline_that_may_come_first_has_all_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextlabel.solve.index.TABLE_SIZE", 0)
    for problem in (
        replace(PROBLEM, horizon=3.0),
        replace(PROBLEM, arrival_rate=1.0, horizon=60.0),
        replace(PROBLEM, arrival_rate=PiecewiseRate(((0.0, 20.0), (2.0, 25.0)))),
    ):
        assert index_table(problem, cap=2, flight=1, left=3, tolerance=1e-3).slack_time.rate == 0


def test_pairs_that_no_campaign_meets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = slack_table(monkeypatch)
    with pytest.raises(
        ProblemError, match=r"no entry for 24 arrivals left and a time of 3:.*budget of 24 and a horizon"
    ):
        table.index(0, (0, 0), 0, 24, 3.0)
    assert table.index(0, (0, 0), 0, 1, T) == pytest.approx(0.25, abs=1e-4)


def test_how_seldom_a_campaign_leaves_the_table() -> None:
    rng = np.random.default_rng(5)
    slack_time = T - rng.gamma(24, 1.0 / RATE, 100_000)
    assert LEAST < slack_time.min() < LEAST + 0.7
    assert gammaincc(24, (T - LEAST) * RATE) == pytest.approx(LATE, rel=1e-3)


def test_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = slack_table(monkeypatch)
    table.save(tmp_path / "table.npz")
    again = IndexTable.load(tmp_path / "table.npz")
    assert again.slack_time == table.slack_time
    assert again.index(0, (1, 0), 1, 9, 8.0) == table.index(0, (1, 0), 1, 9, 8.0)


def test_policies_look_where_the_table_does(monkeypatch: pytest.MonkeyPatch) -> None:
    table = slack_table(monkeypatch)
    arrays = make_policy_arrays(Setting.of(PROBLEM), Index(table))
    assert (arrays.tau == table.tau).all() and arrays.slack_time == table.slack_time
    for n, tau in ((24, T), (24, T - 0.5), (10, 8.3), (1, LEAST), (1, LEAST + 0.3), (3, T)):
        k, share = layer_at(table.tau, table.slack_time, n, tau)
        slack_time = tau - (n - 1) / RATE
        x = (1.0 - share) * table.tau[k] + share * table.tau[k + 1]
        assert x == pytest.approx(-np.exp(-table.slack_time.rate * slack_time), rel=1e-9)
    assert layer_at(arrays.tau, arrays.slack_time, 24, 2.0) == (0, 0.0)  # less time than the table knows: the least
