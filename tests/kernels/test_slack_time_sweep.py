"""Layers of slack time: no deadline is the sweep without one, and a deadline is that of the sweep over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nextlabel.arrays import Floats
from nextlabel.kernels.sweep import fill_edges, new_block, next_row, no_deadline, sweep
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.solve.index import index_cut
from nextlabel.solve.index_roots import IndexWork, SlackTimeWork
from nextlabel.solve.truncation import make_cut, make_timeline
from tolerances import ROUNDING

ROWS = 30
PRICES = np.array([0.21, 0.14, 0.06, 0.031, 0.012, 0.004])
CASES: list[tuple[Prior, float, int, int]] = [
    (Beta(1, 1), 10.0, 6, 3),
    (Beta(2.3, 0.7), 25.0, 5, 4),
    (Dirichlet((1.0, 2.0, 0.5)), 8.0, 4, 2),
]


def problem_of(prior: Prior, rho: float) -> Problem:
    return Problem((TaskClass(20, prior),), 60, rho, 1.0, 40.0)


def rows_of(work: SlackTimeWork) -> list[Floats]:
    """V (states, layers, prices) with 0, 1, .. arrivals left."""
    block = work.block(PRICES)
    fill_edges(work.stack, work.grid, PRICES, block)
    found = []
    for n in range(ROWS):
        next_row(work.stack, work.grid, work.steps, PRICES, n, False, block)
        found.append(block.V[n % 2].reshape(work.states, work.layers, len(PRICES)).copy())
    return found


@pytest.mark.parametrize(("prior", "rho", "cap", "flight"), CASES)
def test_no_deadline(prior: Prior, rho: float, cap: int, flight: int) -> None:
    problem = problem_of(prior, rho)
    cut = index_cut(make_cut(problem, cap, flight), problem)
    work = SlackTimeWork(problem, problem.classes[0], cut, np.array([1e-2, 1e-3, 0.0]))
    block = new_block(work.states, 1, len(PRICES))
    steps = no_deadline(rho, 1.0, cut.flight)
    fill_edges(work.stack, work.grid, PRICES, block)
    for n, found in enumerate(rows_of(work)):
        next_row(work.stack, work.grid, steps, PRICES, n, False, block)
        np.testing.assert_allclose(found[:, -1], block.V[n % 2], atol=ROUNDING)


@pytest.mark.parametrize(("prior", "rho", "cap", "flight"), CASES)
def test_deadline(prior: Prior, rho: float, cap: int, flight: int) -> None:
    """Against the fourth-order sweep, at the pairs of arrivals and time left that both know."""
    problem = problem_of(prior, rho)
    cut = index_cut(make_cut(problem, cap, flight), problem)
    slack_time = np.array([5.0, 5.25, 5.5, 5.75, 6.0, 6.5, 7.0, 8.0, 10.0])
    work = SlackTimeWork(problem, problem.classes[0], cut, np.append(np.exp(-slack_time), 0.0))
    rows = rows_of(work)
    steps_per_arrival = 8
    longest = 14.0
    timed = replace(problem, horizon=longest)
    steps = round(longest * rho * steps_per_arrival)
    slow = IndexWork(timed, timed.classes[0], cut, make_timeline(timed, steps))
    inner = np.concatenate([slow.grid.off[w] + np.arange(slow.stack.first[cap - w]) for w in range(flight)])
    for p in (1, 3):
        V, N = np.zeros((2, ROWS, slow.states, steps + 1))
        sweep(slow.stack, slow.grid, slow.steps, PRICES[p], V, N)
        worst, moved = 0.0, 0.0
        for n in range(ROWS):
            at = np.rint((slack_time + n / rho) * rho * steps_per_arrival).astype(int)
            worst = max(worst, float(np.abs(V[n][inner][:, at] - rows[n][inner, :-1, p]).max()))
            moved = max(moved, float(np.abs(V[n][inner][:, at] - rows[n][inner, -1:, p]).max()))
        assert worst < 1e-5
        assert moved > 5e-4  # what the deadline does is far larger than the error
