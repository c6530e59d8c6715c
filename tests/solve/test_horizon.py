"""One task with a horizon: fourth-order sweep, second-order chain and supersolution against an ODE solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextlabel.kernels.horizon import backward_above
from nextlabel.kernels.inputs import make_grid
from nextlabel.model.tasks import stack_classes
from nextlabel.solve.per_arrival import PricedProblem
from nextlabel.solve.relaxed import RelaxedProblem, no_delay_edge
from nextlabel.solve.truncation import Cut, arrival_chances, make_timeline, swept_arrivals
from oracles import Finite, Task, infinite, poisson_above
from strategies import prices, problem_of, tasks
from tolerances import DIFFERENCE, HORIZON, ODE, ROUNDING

horizons = st.floats(0.05, 12.0)
budgets = st.integers(1, 4)

#: Prices at which decisions change with the time left, and one at which they do not.
CASES = [
    (Task(r=1.0), 5, 6.0, 0.046875),
    (Task(r=1.0), 5, 6.0, 0.0),
    (Task(3, 1.2, 0.6, r=2.0, mu=0.7), 4, 5.0, 0.01),
    (Task(0.5, 0.5, 0.4, r=0.3, mu=1.5), 6, 20.0, 0.08),
]


def value(task: Task, U: int, T: float, lam: float, steps: int, *, graded: bool = True) -> tuple[float, float]:
    """Value and labels at the root by the fourth-order sweep."""
    problem = problem_of(task, U, T)
    line = make_timeline(problem, steps, "graded" if graded else "even")
    sums = RelaxedProblem(problem, Cut(U, U, U), line).at(np.array([lam]))
    return float(sums[0, 0]), float(sums[1, 0])


def above(task: Task, T: float, lam: np.ndarray, steps: int, cap: int | None = None) -> float:
    """The supersolution at the root."""
    U = len(lam)
    problem = problem_of(task, U, T)
    lattices = stack_classes(problem.classes, U, U)
    grid = make_grid(lattices.first, cap or U, cap or U)
    edge = no_delay_edge(lattices, grid, float(lam.min())).value
    out = np.empty(1)
    backward_above(lattices, grid, make_timeline(problem, steps).steps(task.mu), lam, edge, out)
    return float(out[0])


def chain(task: Task, U: int, T: float, steps: int) -> PricedProblem:
    problem = problem_of(task, U, T)
    return PricedProblem(problem, Cut(U, U, U), make_timeline(problem, steps))


# ---------------------------------------------------------------------------------------------------- fourth order


@given(tasks, budgets, horizons, prices)
@settings(max_examples=60)
def test_sweep_against_the_ode(task: Task, U: int, T: float, lam: float) -> None:
    truth = Finite(task, [lam] * U, T)(0, 0, 0, U)
    assert value(task, U, T, lam, 256)[0] == pytest.approx(truth, abs=HORIZON)


@pytest.mark.parametrize(("task", "U", "T", "lam"), CASES)
def test_larger_cases_against_the_ode(task: Task, U: int, T: float, lam: float) -> None:
    assert value(task, U, T, lam, 256)[0] == pytest.approx(Finite(task, [lam] * U, T)(0, 0, 0, U), abs=HORIZON)


def test_order_four_where_decisions_do_not_change() -> None:
    task, U, T = Task(r=1.0), 4, 4.0
    truth = Finite(task, [0.0] * U, T)(0, 0, 0, U)
    error = [abs(value(task, U, T, 0.0, steps, graded=False)[0] - truth) for steps in (16, 32, 64, 128)]
    assert error[0] > 1e-7 and error[3] > 1e-10
    assert 11 < error[1] / error[2] < 25
    assert 13 < error[2] / error[3] < 20


@given(tasks, budgets, horizons, st.floats(0.001, 0.3))
@settings(max_examples=30)
def test_labels_are_minus_the_slope(task: Task, U: int, T: float, lam: float) -> None:
    h = 1e-5
    V = [value(task, U, T, lam + x, 128)[0] for x in (-h, 0.0, h)]
    labels = value(task, U, T, lam, 128)[1]
    slack = DIFFERENCE + 10 * ODE / h
    assert (V[1] - V[2]) / h - slack <= labels <= (V[0] - V[1]) / h + slack


@given(tasks, budgets, prices)
@settings(max_examples=30)
def test_short_and_long_horizons(task: Task, U: int, lam: float) -> None:
    long = 60 / task.r + 60 / task.mu
    endless = float(infinite(task, [lam] * U)(0, 0, 0, U))
    assert value(task, U, long, lam, 512)[0] == pytest.approx(endless, abs=1e-7)
    short = 1e-7
    assert value(task, U, short, lam, 8)[0] == pytest.approx(task.R(0, 0), abs=1e-6)
    assert above(task, short, np.full(U, lam), 2) == pytest.approx(task.R(0, 0), abs=1e-6)


# ------------------------------------------------------------------------------------------------------- chain


@pytest.mark.parametrize(("task", "U", "T", "lam"), CASES[:3])
def test_the_chain_is_of_second_order(task: Task, U: int, T: float, lam: float) -> None:
    truth = Finite(task, [lam] * U, T)(0, 0, 0, U)
    error = [abs(chain(task, U, T, m).backward(np.full(U, lam)) - truth) for m in (20, 40, 80, 160)]
    assert 1e-7 < error[3] < 1e-5
    assert np.abs(np.log2(np.array(error[:-1]) / error[1:]) - 2.0).max() < 0.3


@given(tasks, budgets, horizons, st.data(), st.sampled_from([1, 3, 12]), st.sampled_from([0.0, 1e-3]))
@settings(max_examples=40)
def test_the_chain_runs_forward_to_its_own_value(
    task: Task, U: int, T: float, data: st.DataObject, steps: int, eps: float
) -> None:
    """The best decisions earn the value: reward less prices paid; smoothing takes off at most eps each."""
    lam = np.array(data.draw(st.lists(prices, min_size=U, max_size=U)))
    priced = chain(task, U, T, steps)
    value = priced.backward(lam, eps)
    earned = priced.forward(lam, eps, 0) - float((lam * priced.given).sum())
    assert earned - U * eps - ROUNDING <= value <= earned + ROUNDING


@given(tasks, budgets, horizons, st.data(), st.sampled_from([1, 3, 12]), st.sampled_from([1, 2]))
@settings(max_examples=40)
def test_feasible_measures_stay_below_the_bound(
    task: Task, U: int, T: float, data: st.DataObject, steps: int, mode: int
) -> None:
    lam = np.array(data.draw(st.lists(prices, min_size=U, max_size=U)))
    priced = chain(task, U, T, steps)
    value = priced.backward(lam) + float((lam * priced.come).sum())
    assert priced.forward(lam, 0.0, mode) <= value + ROUNDING
    assert np.all(priced.given <= priced.come + ROUNDING)


# ------------------------------------------------------------------------------------------------ supersolution


@given(tasks, budgets, horizons, st.data(), st.sampled_from([1, 2, 3, 5, 10]))
@settings(max_examples=120)
def test_theory_theorem_7_a_supersolution_is_above_for_any_step(
    task: Task, U: int, T: float, data: st.DataObject, steps: int
) -> None:
    lam = np.array(data.draw(st.lists(prices, min_size=U, max_size=U)))
    truth = Finite(task, lam, T)(0, 0, 0, U)
    assert above(task, T, lam, steps) >= truth - ODE


@given(tasks, budgets, horizons, prices, st.integers(1, 4), st.sampled_from([1, 4, 30]))
@settings(max_examples=60)
def test_supersolution_is_above_under_a_cap(task: Task, U: int, T: float, lam: float, cap: int, steps: int) -> None:
    truth = Finite(task, [lam] * U, T)(0, 0, 0, U)
    assert above(task, T, np.full(U, lam), steps, min(cap, U)) >= truth - ODE


@pytest.mark.parametrize(("task", "U", "T", "lam"), CASES)
def test_supersolution_is_of_second_order(task: Task, U: int, T: float, lam: float) -> None:
    truth = Finite(task, [lam] * U, T)(0, 0, 0, U)
    error = [above(task, T, np.full(U, lam), steps) - truth for steps in (100, 200, 400)]
    assert 1e-9 < error[2] < 1e-4
    assert 3.4 < error[0] / error[1] < 4.6
    assert 3.4 < error[1] / error[2] < 4.6


# ----------------------------------------------------------------------------------------------------- arrivals


@given(st.floats(0.05, 30.0), st.integers(1, 60))
def test_chances_of_arrival(mean: float, U: int) -> None:
    problem = problem_of(Task(r=2.0), U, mean / 2.0)
    chances = arrival_chances(problem)
    assert chances == pytest.approx([poisson_above(k, mean) for k in range(1, len(chances) + 1)], abs=ROUNDING)


def test_arrivals_that_hardly_ever_come_are_left_out() -> None:
    arrivals, more = swept_arrivals(problem_of(Task(r=1.0), 10_000, 20.0))
    assert 60 < arrivals < 110
    assert 0 < more <= 1e-13
    assert swept_arrivals(problem_of(Task(r=1.0), 40, 20.0)) == (40, 0.0)
    assert swept_arrivals(problem_of(Task(r=1.0), 10_000)) == (10_000, 0.0)
