"""Prices side by side give the numbers of one sweep after another."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.kernels.sweep import Brackets, fill_edges, narrow, new_block, next_row, sweep
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.solve.index import index_cut, index_timeline
from nextlabel.solve.index_roots import IndexWork
from nextlabel.solve.truncation import make_cut
from tolerances import ROUNDING

ROWS = 40
CASES: list[tuple[Prior, float, int, int]] = [
    (Beta(1, 1), 25.0, 8, 4),
    (Beta(2.3, 0.7), 0.25, 8, 4),
    (Beta(1, 3), 1e3, 6, 6),
    (Dirichlet((1.0, 2.0, 0.5)), 2.0, 5, 3),
    (Beta(1, 1), 4.0, 3, 1),
]


def work_of(prior: Prior, rho: float, cap: int, flight: int) -> IndexWork:
    problem = Problem((TaskClass(20, prior),), 60, rho, 1.0)
    cut = index_cut(make_cut(problem, cap, flight), problem)
    return IndexWork(problem, problem.classes[0], cut, index_timeline(problem, cut, ROWS, 1e-6))


@pytest.mark.parametrize(("prior", "rho", "cap", "flight"), CASES)
def test_values_and_labels(prior: Prior, rho: float, cap: int, flight: int) -> None:
    work = work_of(prior, rho, cap, flight)
    prices = work.top * np.array([0.9, 0.61, 0.3, 0.17, 0.05, 0.013, 1e-4, 0.0])
    block, arrays = work.block(prices), work.stack
    fill_edges(arrays, work.grid, prices, block)
    V, N = np.zeros((2, len(prices), ROWS, work.states, 1))
    for p, price in enumerate(prices):
        sweep(work.stack, work.grid, work.steps, price, V[p], N[p])
    for n in range(ROWS):
        next_row(arrays, work.grid, work.steps, prices, n, False, block)
        np.testing.assert_allclose(block.V[n % 2].T, V[:, n, :, 0], atol=ROUNDING)
        # Labels jump where two choices tie, and may be those of either.
        same = np.abs(block.N[n % 2].T - N[:, n, :, 0]) < 1e-9
        assert same[:-1].all() and same.mean() > 0.9


@pytest.mark.parametrize(("prior", "rho", "cap", "flight"), CASES)
def test_brackets(prior: Prior, rho: float, cap: int, flight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of sixteen prices, the last one smaller; from brackets that other prices have narrowed before."""
    monkeypatch.setattr("nextlabel.kernels.sweep.MOST", 16)
    work = work_of(prior, rho, cap, flight)
    at = np.array([1, 2, 3, 7, 20, ROWS])
    shape = (len(at), work.states, 1)
    first = work.top * np.linspace(1.0, 0.0, 24, endpoint=False)[1:] ** 2
    second = np.sort(work.top * np.random.default_rng(3).random(39) ** 3)[::-1]
    found: list[Brackets] = []
    for side_by_side in (True, False):
        out = Brackets(np.zeros(shape), np.full(shape, work.top), np.zeros((4, *shape)))
        for prices in (first, second):
            if side_by_side:
                block = work.block(prices)
                assert block.V.shape[2] == 16
                narrow(work.stack, work.grid, work.steps, prices, at, block, out)
            else:
                narrow(work.stack, work.grid, work.steps, prices, at, new_block(work.states, 1, 1), out)
        found.append(out)
    new, old = found
    np.testing.assert_array_equal(new.lo, old.lo)
    np.testing.assert_array_equal(new.hi, old.hi)
    np.testing.assert_allclose(new.ends, old.ends, atol=1e-9)
    assert np.unique(new.lo).size > 5
