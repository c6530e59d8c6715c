"""Batches of one arrival each are the sweep arrival by arrival; larger ones keep mass, room and the order of values."""

from __future__ import annotations

from math import inf, log1p

import numpy as np
import pytest

from nextlabel.kernels.priced import Batches, Plan, forward
from nextlabel.kernels.sweep import fill_edges, new_block, no_deadline, sweep_rows
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.solve.per_arrival import PricedProblem, PricedTasks
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
    return 0.2 * float(priced.stack.spread.max()) * (1.0 + 0.5 * np.sin(np.arange(len(priced.come))))


@pytest.mark.parametrize(("priors", "rho", "cap", "flight", "cost"), CASES)
def test_one_arrival_each(priors: tuple[Prior, ...], rho: float, cap: int, flight: int, cost: float) -> None:
    """The sweep of many prices side by side (``kernels.sweep``) is another recursion for the same numbers."""
    priced = swept(priors, rho, cap, flight, cost)
    prices = prices_of(priced)
    priced.backward(prices)
    grid, U = priced.sweeps.grid, len(prices)
    paid = np.ascontiguousarray((prices + cost)[::-1, None])
    for b in range(len(priors)):
        block = new_block(grid.states, 1, 1)
        fill_edges(priced.stack.one(b), grid, np.array([paid.min()]), block)
        V, N = np.empty((2, U + 1, grid.states, 1))
        steps = no_deadline(rho, 1.0, grid.W)
        sweep_rows(priced.stack.one(b), grid, steps, paid, np.arange(U + 1), False, block, V, N)
        np.testing.assert_allclose(priced.V[b, :, 0], V[:, :, 0], atol=ROUNDING)


@pytest.mark.parametrize("eps", [0.0, 1e-3])
@pytest.mark.parametrize(("priors", "rho", "cap", "flight", "cost"), CASES)
def test_forward_earns_the_value(
    priors: tuple[Prior, ...], rho: float, cap: int, flight: int, cost: float, eps: float
) -> None:
    """Followed from fresh tasks, the best decisions earn V and what they pay; smoothing takes off eps each at most."""
    priced = swept(priors, rho, cap, flight, cost)
    prices = prices_of(priced)
    value = priced.backward(prices, eps)
    earned = priced.forward(prices, eps, 0) - float((prices * priced.given).sum())
    labels = float(priced.given.sum())
    if cap == flight:  # on the edge the no-delay continuation is worth more than deciding, and is not followed
        assert earned <= value + eps * labels * 10 + 1e-9
    act = priced.measure(prices, eps, 1)
    np.testing.assert_allclose(act.sum(axis=(0, 2)), priced.given, atol=1e-9)


@pytest.mark.parametrize(("priors", "rho", "cap", "flight", "cost"), CASES)
def test_plan_is_feasible(priors: tuple[Prior, ...], rho: float, cap: int, flight: int, cost: float) -> None:
    """Unequal batches: no batch gives more than it has, tasks stay as many, and the plan is worth less than B."""
    one = swept(priors, rho, cap, flight, cost)
    size = np.array([1, 3, 9, 14, 9, 3, 1])
    odds = np.expm1(size * log1p(1.0 / rho))
    batches = Batches(size.astype(float), size.sum() - np.cumsum(size) + size, odds, inf)
    prices = np.linspace(0.3, 0.1, len(size)) * one.sweeps.spread
    priced = PricedTasks(one.sweeps, batches, one.tasks)
    bound = priced.backward(prices) + float((prices * size).sum())
    for eps in (0.0, 1e-3):
        priced.backward(prices, eps)
        x, act = one.tasks[:, None].copy(), np.zeros((len(priors), len(size), one.sweeps.grid.states))
        out = Plan(x, np.zeros(len(size)), act)
        forward(one.stack, one.sweeps.grid, batches, priced.steps, prices + cost, cost, eps, True, priced.V, out)
        assert np.all(out.given <= size + 1e-9) and np.all(x >= -1e-12) and np.all(act >= 0.0)
        np.testing.assert_allclose(x.sum(axis=(1, 2)), one.tasks.sum(axis=1), rtol=1e-12)
        earned = float((x * priced.V[:, 0]).sum() - cost * out.given.sum())
        assert earned == pytest.approx(priced.forward(prices, eps, 1), abs=1e-9)
        assert earned <= bound + 1e-9
