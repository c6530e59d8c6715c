"""Prices from the present state: against the cold search, the bound arrival by arrival, and other units."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from nextlabel.errors import ProblemError
from nextlabel.kernels.sweep import fill_edges, new_block, no_deadline, sweep_rows
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.model.rewards import Utility
from nextlabel.model.tasks import Groups, fresh_groups
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.per_arrival import BatchPrices, PriceSolver, batch_sizes
from tolerances import PER_ARRIVAL

#: 100,000 tasks with a quarter of a label in flight for each.
LARGE = Problem.identical(tasks=100_000, budget=300_000, arrival_rate=10_000.0)


def exact_bound(solver: PriceSolver, groups: Groups, found: BatchPrices) -> float:
    """No policy earns more from these states on: B at these prices, arrival by arrival, without a deadline."""
    tasks, outside = solver.place(groups)
    lam = found.at(np.arange(found.left, 0, -1.0)) / solver.unit
    paid, grid = lam + solver.problem.label_cost, solver.sweeps.grid
    steps = no_deadline(solver.problem.peak_rate, solver.problem.completion_rate, grid.W)
    total, _ = solver.outside.worth(outside, float(paid.min()))
    for b, here in enumerate(tasks):
        one, block = solver.stack.one(b), new_block(grid.states, 1, 1)
        V, N = np.empty((2, 1, grid.states, 1))
        fill_edges(one, grid, np.array([paid.min()]), block)
        prices = np.ascontiguousarray(paid[::-1, None])
        sweep_rows(one, grid, steps, prices, np.array([found.left]), False, block, V, N)
        total += float(here @ V[0, :, 0])
    return solver.unit * (total + float(lam.sum()))


def moved(solver: PriceSolver, found: BatchPrices, labels: int, seed: int) -> Groups:
    """Fresh tasks after the plan has given out so many labels, some of which have come in, with the luck of a draw."""
    rng = np.random.default_rng(seed)
    K = sum(c.count for c in solver.problem.classes)
    back = int(rng.binomial(labels, 0.3))
    ones = int(rng.binomial(back, 0.5))
    rows = [(0, 0, K - labels), (0, 1, labels - back), (1, 0, back - ones), (2, 0, ones)]
    node, w, members = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Groups(np.zeros(4, dtype=np.int64), node, w, members)


@pytest.mark.parametrize(("left", "rho"), [(1, 1.0), (50, 3.0), (3000, 250.0), (300_000, 250.0), (300_000, 1e6)])
def test_batches_are_all_arrivals_and_short_at_both_ends(left: int, rho: float) -> None:
    size = batch_sizes(left, rho, 96)
    assert size.sum() == left and size.min() >= 1 and len(size) <= 96
    assert size.max() == size[len(size) // 3 : -(len(size) // 3) or None].max()


def test_warm_is_as_good_as_cold() -> None:
    """A thousand labels later: the same value within both gaps, a fraction of the sweeps."""
    solver = PriceSolver(LARGE)
    first = solver.solve(fresh_groups(LARGE.classes), LARGE.budget)
    groups = moved(solver, first, 1000, seed=1)
    left = LARGE.budget - 1000
    cold, warm = solver.solve(groups, left), solver.solve(groups, left, first)
    assert warm.gap <= 2e-4 * warm.value and cold.gap <= 2e-4 * cold.value
    assert warm.lower <= cold.value and cold.lower <= warm.value
    assert abs(warm.value - cold.value) <= 5e-5 * cold.value
    assert abs(warm.price - cold.price) <= 0.02 * cold.price
    assert 5 * warm.evaluations < cold.evaluations
    # The same prices are good arrival by arrival, where the bound is proved.
    exact = exact_bound(solver, groups, warm)
    assert warm.lower <= exact * (1 + 1e-4) and exact <= warm.value * (1 + 3e-4)


@pytest.mark.parametrize("rate", [0.1, 10.0])
def test_single_arrivals_are_the_bound(rate: float) -> None:
    problem = Problem.identical(tasks=20, budget=60, arrival_rate=rate)
    bound = upper_bound(problem, "per-arrival")
    found = PriceSolver(problem, cap=bound.cap, flight=bound.flight).solve(fresh_groups(problem.classes), 60)
    assert found.exact and found.outside == 0
    assert bound.lower <= found.value and found.lower <= bound.value
    assert abs(found.value - bound.value) <= PER_ARRIVAL * bound.value
    solver = PriceSolver(problem, cap=bound.cap, flight=bound.flight)
    assert exact_bound(solver, fresh_groups(problem.classes), found) == pytest.approx(found.value, rel=1e-9)


def test_few_batches_are_near_the_bound() -> None:
    """A third of the batches: the bound at their prices is proved, and close."""
    problem = Problem.identical(tasks=100, budget=300, arrival_rate=10.0)
    solver, fresh = PriceSolver(problem), fresh_groups(problem.classes)
    found, fine = solver.solve(fresh, 300), PriceSolver(problem, batches=300).solve(fresh, 300)
    assert not found.exact and fine.exact
    exact = exact_bound(solver, fresh, found)
    assert fine.lower <= exact <= fine.value * (1 + 3e-4)
    assert abs(found.value - fine.value) <= 2e-4 * fine.value


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_units_of_money_and_time(factor: float) -> None:
    """Prices follow the unit of the reward and do not see that of time."""
    problem = Problem.identical(tasks=200, budget=600, arrival_rate=20.0, label_cost=0.01, horizon=40.0)
    fresh = fresh_groups(problem.classes)
    plain = PriceSolver(problem).solve(fresh, 600)
    slower = replace(problem, arrival_rate=20.0 / factor, completion_rate=0.4 / factor, horizon=40.0 * factor)
    found = PriceSolver(slower).solve(fresh, 600)
    # Two searches that differ in the last bits end at different prices of the same bound.
    assert found.value == pytest.approx(plain.value, rel=1e-5)
    np.testing.assert_allclose(found.prices, plain.prices, rtol=0.01, atol=1e-3 * plain.price)
    money = Utility(((factor, 0.0), (0.0, factor)))
    dear = Problem.identical(
        tasks=200, budget=600, arrival_rate=20.0, label_cost=0.01 * factor, horizon=40.0, reward=money
    )
    paid = PriceSolver(dear).solve(fresh, 600)
    assert paid.gap <= 2e-4 * paid.value
    assert paid.value == pytest.approx(factor * plain.value, rel=1e-5)
    np.testing.assert_allclose(paid.prices, factor * plain.prices, rtol=0.01, atol=1e-3 * paid.price)


def test_deadlines() -> None:
    """More time is worth more, up to all labels coming in; one that is far away is none."""
    problem = Problem.identical(tasks=200, budget=600, arrival_rate=20.0)
    solver, fresh = PriceSolver(problem), fresh_groups(problem.classes)
    endless = solver.solve(fresh, 600)
    values = [solver.solve(fresh, 600, time_left=t) for t in (5.0, 30.0, 35.0, 1000.0)]
    assert [v.left for v in values] == [100, 600, 600, 600]
    assert all(less.value < more.lower for less, more in pairwise(values[:3]))
    assert values[-1].value == pytest.approx(endless.value, rel=1e-3)
    # The same workers, most of them late: there is less time to learn from their labels.
    rush = replace(problem, arrival_rate=PiecewiseRate(((0.0, 5.0), (20.0, 35.0))), horizon=35.0)
    late = PriceSolver(rush).solve(fresh, 600)
    assert late.left == 600 and late.value < values[2].lower


def test_tasks_past_the_sweep_are_counted() -> None:
    """They are worth what they are worth, whether a deeper sweep reaches them or not."""
    problem = Problem.identical(tasks=30, budget=90, arrival_rate=1.0)
    none = np.zeros(3, dtype=np.int64)
    groups = Groups(none, np.array([0, 2, 50]), np.array([0, 0, 2]), np.array([20, 5, 5]))
    shallow = PriceSolver(problem, cap=6, flight=3).solve(groups, 40)
    deep = PriceSolver(problem, cap=14, flight=4).solve(groups, 40)
    assert shallow.outside == 5 and deep.outside == 0
    assert deep.lower <= shallow.value and shallow.lower <= deep.value


def test_what_cannot_be_solved_is_refused() -> None:
    problem = Problem.identical(tasks=3, budget=5)
    solver, fresh = PriceSolver(problem), fresh_groups(problem.classes)
    with pytest.raises(ProblemError):
        solver.solve(fresh, 0)
    with pytest.raises(ProblemError):
        solver.solve(fresh, 5, time_left=0.0)
    with pytest.raises(ProblemError):
        PriceSolver(replace(problem, budget=0))
    timed = PriceSolver(replace(problem, horizon=10.0))
    assert timed.solve(fresh, 5).left <= 5
    assert solver.solve(fresh, 5, time_left=inf).left == 5
