"""Batches of one arrival each are the sweep arrival by arrival; larger ones keep mass, room and the order of values."""

from __future__ import annotations

from math import inf, log1p

import numpy as np
import pytest

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.prior import Prior
from nextlabel.kernels.batches import Batches, Plan, batch_backward, batch_forward
from nextlabel.problem.problem import Problem
from nextlabel.problem.tasks import TaskClass
from nextlabel.solve.per_arrival import PricedProblem
from nextlabel.solve.relaxed import no_delay_edge
from nextlabel.solve.truncation import make_cut, make_timeline
from tolerances import ROUNDING

CASES: list[tuple[tuple[Prior, ...], float, int, int, float]] = [
    ((Beta(1, 1),), 25.0, 8, 4, 0.0),
    ((Beta(2.3, 0.7), Beta(1, 1)), 0.25, 6, 3, 0.01),
    ((Dirichlet((1.0, 2.0, 0.5)),), 2.0, 5, 5, 0.0),
]


def swept(priors: tuple[Prior, ...], rho: float, cap: int, flight: int, cost: float) -> PricedProblem:
    problem = Problem(tuple(TaskClass(7, prior) for prior in priors), 40, rho, 1.0, label_cost=cost)
    return PricedProblem(problem, make_cut(problem, cap, flight), make_timeline(problem))


def prices_of(priced: PricedProblem) -> np.ndarray:
    return 0.2 * float(priced.stack.spread.max()) * (1.0 + 0.5 * np.sin(np.arange(priced.line.arrivals)))


def batches_of(size: np.ndarray, rho: float) -> Batches:
    return Batches(size.astype(float), size.sum() - np.cumsum(size) + size, np.expm1(size * log1p(1.0 / rho)), inf)


@pytest.mark.parametrize("eps", [0.0, 1e-3])
@pytest.mark.parametrize(("priors", "rho", "cap", "flight", "cost"), CASES)
def test_one_arrival_each(
    priors: tuple[Prior, ...], rho: float, cap: int, flight: int, cost: float, eps: float
) -> None:
    priced = swept(priors, rho, cap, flight, cost)
    prices = prices_of(priced)
    priced.backward(prices, eps)
    lattices, U = priced.stack.arrays, len(prices)
    batches = batches_of(np.ones(U, dtype=np.int64), rho)
    edge = no_delay_edge(lattices, priced.grid, float(prices.min()) + cost)
    V = np.empty((len(priors), U + 1, priced.states))
    batch_backward(lattices, priced.grid, batches, prices + cost, eps, edge, V)
    np.testing.assert_allclose(V, priced.V[:, :, 0], atol=ROUNDING)
    if eps == 0.0:
        return  # ties may fall either way
    for mode in (0, 1):
        out = Plan(priced.counts[:, None] * priced.initial, np.zeros(U), np.zeros((len(priors), U, priced.states)))
        batch_forward(lattices, priced.grid, batches, prices + cost, cost, eps, mode == 1, V, out)
        worth = priced.forward(prices, eps, mode)
        np.testing.assert_allclose(out.given, priced.given, atol=1e-9)
        assert (out.x * V[:, 0]).sum() - cost * out.given.sum() == pytest.approx(worth, abs=1e-9)
        np.testing.assert_allclose(out.act.sum(axis=(0, 2)), out.given, atol=1e-9)


@pytest.mark.parametrize(("priors", "rho", "cap", "flight", "cost"), CASES)
def test_plan_is_feasible(priors: tuple[Prior, ...], rho: float, cap: int, flight: int, cost: float) -> None:
    """Unequal batches: no batch gives more than it has, tasks stay as many, and the plan is worth less than B."""
    priced = swept(priors, rho, cap, flight, cost)
    size = np.array([1, 3, 9, 14, 9, 3, 1])
    batches, lattices = batches_of(size, rho), priced.stack.arrays
    prices = np.linspace(0.3, 0.1, len(size)) * float(priced.stack.spread.max())
    edge = no_delay_edge(lattices, priced.grid, float(prices.min()) + cost)
    V = np.empty((len(priors), len(size) + 1, priced.states))
    tasks = priced.counts[:, None] * priced.initial
    for eps in (0.0, 1e-3):
        batch_backward(lattices, priced.grid, batches, prices + cost, eps, edge, V)
        out = Plan(tasks.copy(), np.zeros(len(size)), np.zeros((len(priors), len(size), priced.states)))
        batch_forward(lattices, priced.grid, batches, prices + cost, cost, eps, True, V, out)
        assert np.all(out.given <= size + 1e-9) and np.all(out.x >= -1e-12) and np.all(out.act >= 0.0)
        np.testing.assert_allclose(out.x.sum(axis=1), tasks.sum(axis=1), rtol=1e-12)
        earned = (out.x * V[:, 0]).sum() - cost * out.given.sum()
        batch_backward(lattices, priced.grid, batches, prices + cost, 0.0, edge, V)
        assert earned <= (tasks * V[:, -1]).sum() + (prices * size).sum() + 1e-9
