"""Values as functions of the budget: the bound for all budgets at once, and a policy's value from one campaign."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.errors import InputError
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy
from nextlabel.policies.index import Index
from nextlabel.simulation.curve import value_curve
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.curve import bound_curve, overlap_values
from nextlabel.solve.exact import exact_value
from nextlabel.solve.index import index_table
from strategies import random_problem

BUDGETS = [10, 25, 60, 100]


@pytest.mark.parametrize("policy", ["index", "okg", "thompson", "ucb1-tuned", "uniform"])
def test_every_budget_is_a_campaign_of_its_own(policy: str) -> None:
    """With labels back at once nothing is in flight at the end, and the rewards are the same digit for digit."""
    problem = Problem.identical(30, 100, (2, 1), completion_rate=1e9)
    rule = Index(index_table(problem, tolerance=1e-6)) if policy == "index" else policy
    curve = value_curve(problem, rule, BUDGETS, replications=20)
    for k, budget in enumerate(BUDGETS):
        alone = simulate(problem.with_budget(budget), [rule], replications=20).results[0]
        assert np.abs(curve.sample[:, k] - alone.rewards / 30).max() < 1e-12
        assert curve.labels_used[k] == alone.labels_used


@pytest.mark.parametrize("policy", ["index", "okg-pending"])
def test_labels_in_flight_are_awaited(policy: str) -> None:
    problem = Problem.identical(20, 60, arrival_rate=4.0)
    curve = value_curve(problem, policy, [20, 60], replications=2000)
    for k, budget in enumerate([20, 60]):
        alone = simulate(problem.with_budget(budget), [policy], replications=2000, seed=1).results[0].per_task
        assert abs(curve.mean[k] - alone.mean) < 2 * (curve.half_width[k] + alone.half_width) + 1e-9


def test_a_horizon_cuts_labels_off() -> None:
    problem = Problem.identical(20, 60, arrival_rate=1.0, horizon=30.0)
    curve = value_curve(problem, "okg-pending", [20, 60], replications=1500)
    for k, budget in enumerate([20, 60]):
        alone = simulate(problem.with_budget(budget), ["okg-pending"], replications=1500, seed=1).results[0]
        assert abs(curve.mean[k] - alone.per_task.mean) < 2 * (curve.half_width[k] + alone.per_task.half_width)


def test_costs_are_taken_off() -> None:
    dear = Problem.identical(20, 200, reward=Accuracy(2.0), label_cost=0.05)
    curve = value_curve(dear, "index", [40, 200], replications=200)
    assert curve.labels_used[1] < 200
    assert curve.mean[1] >= curve.mean[0] - curve.half_width.sum()
    assert np.all(curve.mean <= bound_curve(dear).value(np.array([40, 200])) + curve.half_width)


@pytest.mark.parametrize("number", range(12))
def test_the_curve_bounds_every_budget(number: int) -> None:
    rng = np.random.default_rng([30, number])
    problem = random_problem(rng, tasks=3, budget=5, horizon=number % 3 == 2)
    curve = bound_curve(problem)
    for budget in range(6):
        best = exact_value(problem.with_budget(budget))
        assert curve.value(np.array([budget]))[0] * problem.tasks >= best.value - best.error - 1e-9


@pytest.mark.parametrize("prior", [(1, 1), (2, 1), (1, 1, 1)])
def test_the_curve_is_the_bound(prior: tuple[float, ...]) -> None:
    problem = Problem.identical(1000, 5000, prior)
    curve = bound_curve(problem)
    for budget in (500, 1200, 3000, 5000):
        alone = upper_bound(problem.with_budget(budget))
        assert curve.value(np.array([budget]))[0] == pytest.approx(alone.per_task, abs=2e-6)
        assert curve.value(np.array([budget]))[0] >= alone.per_task - 1e-9


@pytest.mark.parametrize("horizon", [float("inf"), 6000.0])
def test_the_budget_for_a_target_is_the_least(horizon: float) -> None:
    problem = Problem.identical(100, 1000, (2, 1), horizon=horizon)
    curve = bound_curve(problem)
    for target in (0.7, 0.8, 0.85):
        budget = curve.budget_for(target)
        assert budget is not None
        assert curve.value(np.array([budget]))[0] >= target - 1e-12
        if budget > 0:
            assert curve.value(np.array([budget - 1]))[0] < target
    assert curve.budget_for(1.01) is None


def test_too_little_time_reaches_no_target() -> None:
    problem = Problem.identical(100, 1000, horizon=100.0)  # ten workers come
    assert bound_curve(problem).budget_for(0.8) is None


def test_expected_arrivals() -> None:
    problem = Problem.identical(5, 50, arrival_rate=0.5, horizon=20.0)
    arrivals = bound_curve(problem).arrivals(np.array([0, 1, 2, 10, 50]))
    sample = np.random.default_rng(0).poisson(10.0, 400_000)
    for U, found in zip([0, 1, 2, 10, 50], arrivals, strict=True):
        assert found == pytest.approx(np.minimum(sample, U).mean(), abs=0.02)


def test_fixed_overlap() -> None:
    """Beta(1, 1): one label gives 3/4, three give 13/16."""
    values = overlap_values(Problem.identical(7, 1), np.array([0, 1, 2, 3]))
    assert values == pytest.approx([0.5, 0.75, 0.75, 0.8125], abs=1e-12)
    problem = Problem.identical(40, 120, (3, 2), completion_rate=1e9)
    alone = simulate(problem, ["uniform"], replications=2000).results[0].per_task
    assert abs(overlap_values(problem, np.array([3]))[0] - alone.mean) < 2 * alone.half_width


def test_refusals() -> None:
    problem = Problem.identical(5, 10)
    with pytest.raises(InputError, match="rise"):
        value_curve(problem, "index", [5, 5])
    with pytest.raises(InputError, match="no curve"):
        value_curve(problem, "resolve", [5, 10])
