"""Arrival rates that vary: oracles that start anew at every jump, and theorems that tie them to constant rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import nextlabel as nl
from nextlabel.kernels.horizon import backward_above
from nextlabel.kernels.inputs import make_grid
from nextlabel.model.beta import Beta
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.model.tasks import TaskClass, stack_classes
from nextlabel.policies.base import Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.simulation.ranked_tasks import RankedCampaigns, ranked_tables
from nextlabel.solve.index_roots import IndexWork
from nextlabel.solve.per_arrival import PricedProblem
from nextlabel.solve.relaxed import RelaxedProblem, no_delay_edge
from nextlabel.solve.truncation import (
    Cut,
    arrival_chances,
    expected_arrivals,
    halve_steps,
    make_stencils,
    make_timeline,
)
from oracles import Finite, Task, after_flight, index_finite, joint_optimum, poisson_above
from strategies import prices, tasks
from tolerances import BOUND, EXACT, HORIZON, INDEX_FINITE, ODE, ROUNDING

Pieces = Sequence[tuple[float, float]]

#: Rates that differ too little to matter and too much to be taken for one.
NEARLY = ((0.0, 1.0), (5.0, 1.0 + 1e-9))
#: What such rates may change, relative.
SAME = 1e-8
#: Chance is fixed by the seed: a miss by more standard errors than this is a defect.
STANDARD_ERRORS = 4.0
DAYS = PiecewiseRate(((0, 1.5), (2, 0.1)), period=4)

CASES: list[tuple[Task, int, float, float, Pieces]] = [
    (Task(), 5, 6.0, 0.046875, [(0, 1.0), (3, 0.0)]),
    (Task(), 5, 6.0, 0.046875, [(0, 0.0), (3, 2.0)]),
    (Task(), 5, 24.0, 0.02, [(0, 1.0), (8, 0.1), (16, 1.0)]),
    (Task(3, 1.2, 0.6, mu=0.7), 4, 5.0, 0.01, [(0, 2.0), (4.9, 30.0)]),
    (Task(3, 1.2, 0.6, mu=0.7), 4, 5.0, 0.01, [(0, 20.0), (0.1, 1.0), (2, 0.0), (4, 3.0)]),
    (Task(0.5, 0.5, 0.4, mu=1.5), 6, 20.0, 0.08, [(0, 0.3), (1, 0.0), (5, 0.6), (6, 0.1), (17, 0.9)]),
]


@st.composite
def shares(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Up to four pieces: (start as a share of the horizon, rate), not all rates 0."""
    starts = sorted(draw(st.sets(st.floats(0.01, 0.99), max_size=3)))
    rates = [draw(st.sampled_from([0.0, 0.1, 1.0]) | st.floats(0.05, 8.0)) for _ in range(len(starts) + 1)]
    rates[draw(st.integers(0, len(starts)))] = draw(st.floats(0.05, 8.0))
    return list(zip([0.0, *starts], rates, strict=True))


def problem_of(task: Task, budget: int, horizon: float, pieces: Pieces, count: int = 1) -> Problem:
    """``count`` tasks like the oracle's one."""
    one = TaskClass(count, Beta(task.alpha, task.beta), task.d)
    return Problem((one,), budget, PiecewiseRate(tuple(pieces)), task.mu, horizon)


def identical(rate: float | PiecewiseRate, budget: int = 5, horizon: float = 10.0, tasks: int = 3) -> Problem:
    return Problem.identical(tasks, budget, arrival_rate=rate, completion_rate=0.4, horizon=horizon)


def value(problem: Problem, lam: float, steps: int) -> float:
    """Sum of the values of the tasks by the fourth-order sweep."""
    U = problem.budget
    line = make_timeline(problem, steps, "graded")
    return float(RelaxedProblem(problem, Cut(U, U, U), line).at(np.array([lam]))[0, 0])


# ---------------------------------------------------------------------------------------------------------- pieces


def test_pieces_of_one_rate_change_nothing() -> None:
    pieces = PiecewiseRate(((0, 1.0), (3, 1.0), (4, 1.0)), period=5)
    plain, same = identical(1.0), identical(pieces)
    assert same == plain
    for kind in ("scalar", "per-arrival"):
        assert nl.upper_bound(same, kind).value == nl.upper_bound(plain, kind).value
    assert nl.exact_value(same).value == nl.exact_value(plain).value
    runs = [nl.simulate(p, ["okg", "uniform"], replications=200, seed=1).results for p in (plain, same)]
    assert [r.per_task for r in runs[0]] == [r.per_task for r in runs[1]]


def test_rounding_of_a_period_is_not_a_piece() -> None:
    assert 3 * 0.7 < 2.1
    starts, rates = PiecewiseRate(((0, 1.0), (0.5, 0.2)), period=0.7).until(2.1)
    assert starts == pytest.approx([0, 0.5, 0.7, 1.2, 1.4, 1.9])
    assert rates.tolist() == [1.0, 0.2] * 3
    starts, rates = PiecewiseRate(((0, 9.0), (1e-14, 1.0), (1, 5.0), (1 + 1e-13, 0.5))).until(2.0)
    assert starts == pytest.approx([0, 1])
    assert rates.tolist() == [1.0, 0.5]


@given(shares(), st.floats(0.05, 20.0), st.integers(1, 40))
def test_expected_arrivals_are_the_integral(pieces: Pieces, T: float, U: int) -> None:
    problem = problem_of(Task(), U, T, [(T * at, rate) for at, rate in pieces])
    starts, rates = zip(*pieces, strict=True)
    mean = T * float(np.diff([*starts, 1.0]) @ np.array(rates))
    assert problem.mean_arrivals == pytest.approx(mean, rel=1e-9)
    chances = arrival_chances(problem)
    assert chances == pytest.approx([poisson_above(k, mean) for k in range(1, len(chances) + 1)], abs=1e-9)
    assert expected_arrivals(replace(problem, budget=1000)) == pytest.approx(mean, rel=1e-9)


# -------------------------------------------------------------------------------------------------------- timeline


@given(shares(), st.floats(0.05, 20.0), st.sampled_from([1, 7, 40, 100]), st.booleans())
def test_layers_and_stencils_keep_to_the_pieces(pieces: Pieces, T: float, steps: int, graded: bool) -> None:
    problem = problem_of(Task(), 3, T, [(T * at, rate) for at, rate in pieces])
    starts, rates = problem.rate_pieces
    line = make_timeline(problem, max(steps, 3), "graded" if graded else "even")
    assert line.tau[0] == 0 and line.tau[-1] == T and np.all(np.diff(line.tau) > 0)
    assert np.isin(T - starts, line.tau).all()
    middle = T - 0.5 * (line.tau[1:] + line.tau[:-1])
    rate_of = rates[np.searchsorted(starts, middle, side="right") - 1]
    assert np.all(line.r[1:] == rate_of)
    start = make_stencils(problem, line, 1).start
    for k in range(1, line.layers):
        assert start[k] < k <= start[k] + 3
        assert np.all(line.r[start[k] + 1 : start[k] + 4] == line.r[k])
    assert halve_steps(problem, line).tau[::2] == pytest.approx(line.tau, rel=1e-12)


def test_a_constant_rate_has_the_old_layers() -> None:
    line = make_timeline(identical(1.0), 64, "graded")
    assert np.all(line.tau == 10.0 * np.linspace(0.0, 1.0, 65) ** 1.5)
    assert np.all(halve_steps(identical(1.0), line).tau == 10.0 * np.linspace(0.0, 1.0, 129) ** 1.5)


# -------------------------------------------------------------------------------------- one task against an ODE


@pytest.mark.parametrize(("task", "U", "T", "lam", "pieces"), CASES)
def test_sweep_against_the_ode(task: Task, U: int, T: float, lam: float, pieces: Pieces) -> None:
    truth = Finite(task, [lam] * U, T, pieces=pieces)(0, 0, 0, U)
    problem = problem_of(task, U, T, pieces)
    assert value(problem, lam, 256) == pytest.approx(truth, abs=HORIZON)
    chains = [
        PricedProblem(problem, Cut(U, U, U), make_timeline(problem, m)).backward(np.full(U, lam)) for m in (40, 160)
    ]
    error = [abs(v - truth) for v in chains]
    assert error[1] < 2e-4 and error[1] < 0.2 * error[0] + 1e-6


@given(tasks, st.integers(1, 4), st.floats(0.05, 12.0), shares(), st.data(), st.sampled_from([1, 6, 12]))
@settings(max_examples=60)
def test_supersolution_is_above_for_any_step(
    task: Task, U: int, T: float, pieces: Pieces, data: st.DataObject, steps: int
) -> None:
    pieces = [(T * at, rate) for at, rate in pieces]
    lam = np.array(data.draw(st.lists(prices, min_size=U, max_size=U)))
    problem = problem_of(task, U, T, pieces)
    lattices = stack_classes(problem.classes, U, U)
    cap = data.draw(st.integers(1, U))
    grid, out = make_grid(lattices.first, cap, cap), np.empty(1)
    edge = no_delay_edge(lattices, grid, float(lam.min())).value
    backward_above(lattices, grid, make_timeline(problem, steps).steps(task.mu), lam, edge, out)
    assert out[0] >= Finite(task, lam, T, pieces=pieces)(0, 0, 0, U) - ODE


def test_index_against_the_ode() -> None:
    task, T, pieces = Task(mu=0.8), 4.0, [(0.0, 1.5), (1.0, 0.0), (2.5, 2.0)]
    table = nl.index_table(problem_of(task, 3, T, pieces))
    assert np.isin([4.0, 3.0, 1.5], table.tau).all()
    for a, b, w, n, tau, left in (
        (0, 0, 1, 2, 4.0, pieces),
        (1, 0, 0, 2, 3.0, [(0.0, 0.0), (1.5, 2.0)]),
        (0, 0, 0, 3, 1.5, [(0.0, 2.0)]),
    ):
        truth = index_finite(task, a, b, w, n, tau, pieces=left)
        assert table.index(0, (a, b), w, n, tau) == pytest.approx(truth, abs=INDEX_FINITE + table.error)


# ---------------------------------------------------------------------------------- rates that are nearly constant


@pytest.mark.parametrize("pieces", [NEARLY, ((0.0, 1.0), (1.0, 1 + 1e-9), (4.3, 1.0), (9.0, 1 - 1e-9))])
def test_nearly_constant_is_constant(pieces: Pieces) -> None:
    plain, near = identical(1.0), identical(PiecewiseRate(tuple(pieces)))
    assert len(near.rate_pieces[1]) == len(pieces)
    for kind in ("scalar", "per-arrival"):
        a, b = nl.upper_bound(near, kind), nl.upper_bound(plain, kind)
        assert abs(a.value - b.value) <= SAME * b.value + (0.0 if kind == "scalar" else max(a.gap, b.gap))
    assert nl.exact_value(near).value == pytest.approx(nl.exact_value(plain).value, rel=SAME)
    assert value(near, 0.03, 200) == pytest.approx(value(plain, 0.03, 200), rel=SAME)


def test_nearly_constant_index() -> None:
    plain, near = identical(1.0, 3), identical(PiecewiseRate(NEARLY), 3)
    line = make_timeline(near, 64, "graded")
    flat = replace(line, r=np.ones_like(line.r))
    cut, at = Cut(3, 3, 3), np.arange(1, 4)
    roots = [IndexWork(p, p.classes[0], cut, t).roots(at, 1e-9, None)[0] for p, t in ((plain, flat), (near, line))]
    assert np.abs(roots[0] - roots[1]).max() < SAME
    tables = [nl.index_table(p) for p in (plain, near)]
    ends = [t.classes[0].rows[:, :, -1] for t in tables]  # all the time left: a layer of both
    assert np.abs(ends[0] - ends[1]).max() < SAME


# ------------------------------------------------------------------------------ arrivals in a part of the time only


@pytest.mark.parametrize(("K", "U"), [(1, 2), (2, 3)])
@pytest.mark.parametrize("wait", [3.0, 40.0])
def test_arrivals_in_the_first_part_only(K: int, U: int, wait: float) -> None:
    """The half horizon, then a time in which labels in flight still come in, each with a chance of its own."""
    task, half = Task(r=0.7), 3.0
    pieces = [(0.0, task.r), (half, 0.0)]
    problem = problem_of(task, U, half + wait, pieces, K)
    came = -math.expm1(-task.mu * wait)

    def end(a: int, b: int, w: int) -> float:
        return sum(
            math.comb(w, j) * came**j * (1 - came) ** (w - j) * after_flight(task, task.R, a, b, j)
            for j in range(w + 1)
        )

    mean = sum(poisson_above(k, task.r * half) for k in range(1, U + 1))

    def B(lam: float) -> float:
        return K * Finite(task, [lam] * U, half, end=end)(0, 0, 0, U) + lam * mean

    best = minimize_scalar(B, bounds=(0, 0.3), method="bounded", options={"xatol": 1e-7}).fun
    bound = nl.upper_bound(problem)
    assert bound.value == pytest.approx(best, abs=BOUND)
    exact = nl.exact_value(problem)
    assert exact.value == pytest.approx(joint_optimum(task, K, U, pieces, half + wait), abs=EXACT)
    assert exact.value <= nl.upper_bound(problem, "per-arrival").value <= bound.value


def test_nothing_happens_before_the_first_arrival_can_come() -> None:
    plain = identical(1.0, horizon=6.0)
    late = identical(PiecewiseRate(((0, 0.0), (4, 1.0))), horizon=10.0)
    for kind in ("scalar", "per-arrival"):
        tolerance = SAME if kind == "scalar" else 1e-5  # prices come from chains of other steps
        assert nl.upper_bound(late, kind).value == pytest.approx(nl.upper_bound(plain, kind).value, rel=tolerance)
    assert nl.exact_value(late).value == pytest.approx(nl.exact_value(plain).value, abs=EXACT)
    a, b = (nl.simulate(p, ["okg", "uniform"], replications=300, seed=2) for p in (plain, late))
    assert [r.per_task.mean for r in a.results] == [r.per_task.mean for r in b.results]


# ----------------------------------------------------------------------------------------------------- day and night


@pytest.mark.slow
def test_day_and_night_bound_exact_and_policies() -> None:
    problem = identical(DAYS, budget=3, horizon=8.0, tasks=2)
    bound, sharper = nl.upper_bound(problem), nl.upper_bound(problem, "per-arrival")
    exact = nl.exact_value(problem)
    assert exact.error < EXACT
    assert exact.value <= sharper.value <= bound.value
    assert bound.gap < 1e-5
    table = nl.index_table(problem)
    rule = nl.policy_value(problem, table.policy_index)
    assert 0.97 * exact.value < rule.value <= exact.value + rule.error + EXACT
    static = make_policy("okg").scores(Setting.of(problem))[0].static
    greedy = nl.policy_value(problem, lambda c, n, tau: static, ties="random")
    study = nl.simulate(problem, ["index", "okg"], replications=4000, seed=5)
    for result, truth in zip(study.results, (rule, greedy), strict=True):
        off = STANDARD_ERRORS * result.per_task.half_width / 1.96
        assert problem.tasks * abs(result.per_task.mean - truth.per_task) < problem.tasks * off + truth.error


def test_arrivals_are_as_many_as_the_integral_says() -> None:
    problem = identical(DAYS, budget=60, horizon=11.0, tasks=4)
    setting = Setting.of(problem, 6)
    arrays, uniform = make_problem_arrays(setting, True), make_policy("uniform")
    out = Rollout(arrays, make_policy_arrays(setting, uniform)).play(7, 0, 3000)[0][:, 0]
    assert problem.mean_arrivals == pytest.approx(2 * (3 + 0.2) + 3 + 0.1, abs=ROUNDING)
    assert abs(out[:, 4].mean() - problem.mean_arrivals) < STANDARD_ERRORS * math.sqrt(problem.mean_arrivals / 3000)
    assert out[:, 4].var() == pytest.approx(problem.mean_arrivals, rel=0.15)  # Poisson
    many = RankedCampaigns(problem, ranked_tables(problem, uniform)).play(7, 0, 100)[0]
    assert np.all(many[:, 0, 4] == out[:100, 4])
