"""The bound before a deadline, from the middle of a campaign: against slow oracles and against the other bounds."""

from __future__ import annotations

from math import exp, factorial

import numpy as np
import pytest

from nextlabel.errors import ProblemError
from nextlabel.model.beta import Beta
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.model.simplex import node_of_counts
from nextlabel.model.tasks import Groups, TaskClass, fresh_groups
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.deadline import charged, deadline_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.present_bound import present_bound
from oracles import Task, joint_optimum
from task_groups import group_tasks
from tolerances import ROUNDING

State = tuple[int, int, int]  # ones, zeros, in flight


def stand(states: tuple[State, ...]) -> Groups:
    """Tasks of class 0 in those states."""
    nodes = [node_of_counts((a, b)) for a, b, _ in states]
    return group_tasks([0] * len(states), nodes, [w for _, _, w in states])


@pytest.mark.parametrize(
    ("states", "left", "pieces", "T"),
    [
        (((0, 0, 0), (0, 0, 0)), 3, ((0.0, 1.0),), 4.0),
        (((1, 0, 1), (1, 1, 0), (0, 0, 2)), 2, ((0.0, 0.5),), 6.0),
        (((2, 1, 0), (0, 0, 1)), 3, ((0.0, 2.0), (1.0, 0.0), (2.5, 1.0)), 4.0),
    ],
)
def test_theory_theorem_8_prices_by_time_are_above_the_optimum(
    states: tuple[State, ...], left: int, pieces: tuple[tuple[float, float], ...], T: float
) -> None:
    """From the middle of a campaign too, and with workers who come in the morning and in the evening."""
    rate = pieces[0][1] if len(pieces) == 1 else PiecewiseRate(pieces)
    problem = Problem.identical(len(states), 1, arrival_rate=rate, completion_rate=0.7, horizon=T)
    optimum = joint_optimum(Task(mu=0.7), len(states), left, pieces, T, states)
    found = deadline_bound(problem, stand(states), left)
    assert optimum - ROUNDING <= found.tasks * found.upper <= 1.2 * optimum


def test_it_is_sharper_than_other_bounds_where_the_deadline_cuts_the_campaign_short() -> None:
    """An order of magnitude nearer to the optimum than the bound at one price for all workers."""
    problem = Problem.identical(10, 12, arrival_rate=0.1, completion_rate=0.4, horizon=60.0)
    optimum, one_price = exact_value(problem).value, upper_bound(problem).value
    found = 10 * deadline_bound(problem, fresh_groups(problem.classes), 12).upper
    assert optimum <= found < optimum + 0.2 * (one_price - optimum)


def test_labels_that_come_too_late_are_lost() -> None:
    """200 tasks, 600 workers within three lifetimes of a label: a third of the labels are late."""
    problem = Problem.identical(200, 800, arrival_rate=10.0, completion_rate=0.05, horizon=60.0)
    fresh = fresh_groups(problem.classes)
    found = deadline_bound(problem, fresh, 800)
    patient = present_bound(problem.classes, fresh, 800, mean_arrivals=600.0)
    assert found.upper < patient.upper - 0.04
    assert 0 <= found.slack < 0.004
    assert found.price == pytest.approx(0.0434, abs=5e-4)


def test_without_labels_left_what_is_in_flight_may_come_in() -> None:
    """Two labels in flight, each in time with the chance q: R(0,0) = 1/2 and R = 3/4 after one label or two."""
    problem = Problem.identical(4, 1, arrival_rate=1.0, completion_rate=0.5, horizon=2.0)
    q = 1.0 - exp(-1.0)
    expected = 0.5 + 0.25 * (1.0 - (1.0 - q) ** 2)
    found = deadline_bound(problem, stand(((0, 0, 2),) * 4), 0)
    assert expected - ROUNDING <= found.upper <= expected + 2e-4


def test_more_labels_never_lower_it_and_a_cost_does() -> None:
    problem = Problem.identical(50, 1, arrival_rate=4.0, completion_rate=0.4, horizon=30.0)
    fresh = fresh_groups(problem.classes)
    found = deadline_bound(problem, fresh, 100)
    curve = found.curve([-100, -50, 0, 10, 50, 1000])
    assert curve[2] == pytest.approx(found.upper, abs=ROUNDING)
    assert np.all(np.diff(curve) >= -ROUNDING)
    dear = Problem.identical(50, 1, arrival_rate=4.0, completion_rate=0.4, horizon=30.0, label_cost=0.02)
    assert deadline_bound(dear, fresh, 100).upper < found.upper - 0.02
    with pytest.raises(ProblemError, match="not so many labels left"):
        found.curve([-101])


def test_the_charge_is_that_of_the_dearest_workers() -> None:
    """E[min(n, N)] of a Poisson number, layer by layer of the prices."""
    mean, n = 3.0, 2
    chance = [exp(-mean) * mean**k / factorial(k) for k in range(40)]
    each = sum(p * min(k, n) for k, p in enumerate(chance))
    assert charged(np.array([0.1, 0.1]), np.array([1.0, 2.0]), n) == pytest.approx(0.1 * each, abs=ROUNDING)
    assert charged(np.array([0.1, 0.0]), np.array([1.0, 2.0]), 1) == pytest.approx(0.1 * (1 - exp(-1)), abs=ROUNDING)
    assert charged(np.array([0.1, 0.3]), np.array([1.0, 2.0]), 0) == 0.0
    assert charged(np.array([0.1, 0.3]), np.array([1.0, 2.0]), 10**6) == pytest.approx(0.7, abs=ROUNDING)


def test_what_it_refuses() -> None:
    endless = Problem.identical(2, 1)
    with pytest.raises(ProblemError, match="no deadline"):
        deadline_bound(endless, fresh_groups(endless.classes), 2)
    classes = tuple(TaskClass(1, Beta(1, 1 + k)) for k in range(17))
    many = Problem(classes, 1, horizon=3.0)
    with pytest.raises(ProblemError, match="17 kinds"):
        deadline_bound(many, fresh_groups(classes), 2)
