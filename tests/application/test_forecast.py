"""Replications from the middle of a campaign: the simulator from the start, brute force, and below the bound."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from nextlabel.application.forecast import forecast, replications_for
from nextlabel.errors import InputError
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.problem import Problem
from nextlabel.model.simplex import node_of_counts
from nextlabel.model.tasks import Groups, TaskClass, fresh_groups
from nextlabel.policies.index import Index
from nextlabel.simulation.study import simulate
from nextlabel.solve.index import index_table
from nextlabel.solve.present_bound import present_bound
from oracles import Task
from task_groups import group_tasks
from tolerances import ROUNDING

RATES = {"arrival_rate": 1.0, "completion_rate": 0.4}


@pytest.mark.parametrize("policy", ["index", "okg", "thompson", "uniform"])
@pytest.mark.no_cover
def test_a_fresh_campaign_is_simulated_digit_for_digit(policy: str) -> None:
    classes = (TaskClass(20, Beta(1, 1)), TaskClass(15, Beta(2, 1)))
    problem = Problem(classes, 60, **RATES)
    rule = Index(index_table(problem, tolerance=1e-6)) if policy == "index" else policy
    study = simulate(problem, [rule], replications=20, seed=5).results[0]
    found = forecast(classes, fresh_groups(classes), 60, rule, **RATES, replications=20, seed=5)
    assert np.array_equal(found.sample, study.rewards / 35)
    assert found.mean == pytest.approx(study.per_task.mean, abs=ROUNDING)
    assert found.half_width == pytest.approx(study.per_task.half_width, rel=1e-9)
    assert found.labels_used == study.labels_used


def test_a_fresh_campaign_with_a_deadline_and_a_cost() -> None:
    problem = Problem.identical(20, 60, **RATES, horizon=25.0, label_cost=0.01)
    study = simulate(problem, ["okg-pending"], replications=20, seed=5).results[0]
    found = forecast(
        problem.classes, fresh_groups(problem.classes), 60, "okg-pending", **RATES, horizon=25.0, label_cost=0.01,
        replications=20, seed=5,
    )  # fmt: skip
    assert np.array_equal(found.sample, study.rewards / 20)


def test_when_all_is_decided_it_is_what_it_is_now() -> None:
    groups = group_tasks([0, 0, 0], [node_of_counts(s) for s in [(3, 0), (1, 1), (0, 0)]], [0, 0, 0])
    found = forecast([TaskClass(3)], groups, 0, "index", **RATES, replications=5)
    assert found.mean == pytest.approx(found.now, abs=ROUNDING)
    assert found.half_width == pytest.approx(0.0, abs=ROUNDING)
    assert found.labels_used == 0
    assert found.now == pytest.approx(present_bound([TaskClass(3)], groups, 0).now, abs=ROUNDING)


def test_labels_in_flight_come_in() -> None:
    """With nothing left to give out the mean is that of P^w R; with a deadline some are lost."""
    task = Task()
    states = [(0, 0, 3), (1, 1, 1), (2, 1, 2), (1, 0, 0)]

    def after(a: int, b: int, w: int, chance: float) -> float:
        """Each label comes in with that chance."""
        if w == 0:
            return task.R(a, b)
        p = task.p(a, b)
        come = p * after(a + 1, b, w - 1, chance) + (1 - p) * after(a, b + 1, w - 1, chance)
        return chance * come + (1 - chance) * after(a, b, w - 1, chance)

    groups = group_tasks([0] * 4, [node_of_counts(s[:2]) for s in states], [s[2] for s in states])
    for horizon in (float("inf"), 2.0):
        chance = 1.0 - np.exp(-0.4 * horizon)
        exact = sum(after(*s, chance) for s in states) / 4
        found = forecast([TaskClass(4)], groups, 0, "okg", **RATES, horizon=horizon, replications=20_000)
        assert abs(found.mean - exact) < 1.6 * found.half_width
    costly = forecast([TaskClass(4)], groups, 0, "okg", **RATES, label_cost=0.1, replications=50)
    free = forecast([TaskClass(4)], groups, 0, "okg", **RATES, replications=50)
    assert costly.mean == pytest.approx(free.mean - 0.1 * 6 / 4, abs=ROUNDING)


def test_a_rule_from_the_middle_is_evaluated_exactly() -> None:
    """Uniform from (1,0,1), (0,0,0) with 3 arrivals, by a recursion over joint states with lots for ties."""
    task = Task(1.0, 1.0, 0.5, 1.0, 0.4)

    @cache
    def V(tasks: tuple[tuple[int, int, int], ...], n: int) -> float:
        def put(x: int, new: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
            return (*tasks[:x], new, *tasks[x + 1 :])

        flying = sum(w for _, _, w in tasks)
        if n == 0 and flying == 0:
            return sum(task.R(a, b) for a, b, _ in tasks)
        q = (task.r if n else 0.0) + task.mu * flying
        total = 0.0
        if n:
            least = min(sum(s) for s in tasks)
            tied = [x for x, s in enumerate(tasks) if sum(s) == least]
            for x in tied:
                a, b, w = tasks[x]
                total += task.r / q / len(tied) * V(put(x, (a, b, w + 1)), n - 1)
        for x, (a, b, w) in enumerate(tasks):
            if w:
                p = task.p(a, b)
                total += task.mu * w / q * p * V(put(x, (a + 1, b, w - 1)), n)
                total += task.mu * w / q * (1 - p) * V(put(x, (a, b + 1, w - 1)), n)
        return total

    groups = group_tasks([0, 0], [node_of_counts((1, 0)), 0], [1, 0])
    found = forecast([TaskClass(2)], groups, 3, "uniform", **RATES, replications=40_000)
    assert abs(found.mean - V(((1, 0, 1), (0, 0, 0)), 3) / 2) < 1.6 * found.half_width


@pytest.mark.parametrize("policy", ["index", "okg-pending", "ucb1-tuned"])
def test_no_forecast_is_above_the_bound(policy: str) -> None:
    rng = np.random.default_rng(80)
    classes = [TaskClass(200, Beta(1, 1)), TaskClass(200, Beta(2, 1), 0.6)]
    groups = group_tasks(np.repeat([0, 1], 200), rng.integers(0, 28, 400), rng.integers(0, 3, 400))
    rates = {"arrival_rate": 0.2, "completion_rate": 0.4}
    rule = Index(cap=6) if policy == "index" else policy
    found = forecast(classes, groups, 300, rule, **rates, replications=100)
    above = present_bound(classes, groups, 300).upper
    assert found.mean <= above + found.half_width
    assert found.now < found.mean
    assert np.all(np.diff(found.quantiles) >= 0)
    assert found.quantiles[0] <= found.mean <= found.quantiles[-1]
    if policy == "index":
        assert found.mean > above - 0.012  # the bound counts what is in flight for certain


@pytest.mark.slow
def test_more_answers_and_tasks_that_are_full() -> None:
    classes = [TaskClass(30, Dirichlet((1.0, 1.0, 1.0, 1.0)))]
    rng = np.random.default_rng(81)
    groups = Groups(np.zeros(5, dtype=int), rng.integers(0, 200, 5), rng.integers(0, 2, 5), np.full(5, 6))
    found = forecast(classes, groups, 40, "okg-pending", **RATES, replications=50)
    assert found.now < found.mean <= present_bound(classes, groups, 40).upper + found.half_width
    assert found.labels_used == 40


def test_what_cannot_be_forecast_is_said() -> None:
    classes = [TaskClass(2)]
    groups = fresh_groups(classes)
    for policy in ("lagrangian", "resolve"):
        with pytest.raises(InputError):
            forecast(classes, groups, 5, policy, **RATES)
    many = [TaskClass(1, Beta(1 + k, 1)) for k in range(65)]
    with pytest.raises(InputError):
        forecast(many, fresh_groups(many), 5, "okg", **RATES)
    with pytest.raises(InputError):
        forecast(classes, groups, -5, "okg", **RATES)
    assert replications_for(10) > replications_for(100_000) > replications_for(10_000_000) >= 2
