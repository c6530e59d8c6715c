"""The certified bound: published values, closed form, linear programs, and what must not change it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextlabel.errors import ProblemError
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.price_search import first_prices, minimise
from nextlabel.solve.relaxed import RelaxedProblem
from nextlabel.solve.truncation import Cut, expected_arrivals, make_cut, make_timeline
from oracles import Task, infinite, poisson_above, relaxed_lp
from strategies import oracle_tasks, random_problem
from tolerances import BOUND, LP, PER_ARRIVAL, PRINTED, ROUNDING

#: Numbers printed with five and with six decimals.
FIVE, SIX = 6e-6, 6e-7


def paper(tasks: int, budget: int, r: float = 0.1, horizon: float = math.inf) -> Problem:
    return Problem.identical(tasks, budget, arrival_rate=r, completion_rate=0.4, horizon=horizon)


def forbidding(problem: Problem, cap: int) -> float:
    """The paper's capped program: best scalar price when no task may have more than ``cap`` labels."""
    cut = make_cut(problem, cap, None)
    closed = RelaxedProblem(problem, cut, make_timeline(problem), forbid=True)
    return minimise(closed, float(problem.budget), first_prices(0.5), 1e-10).optimum(problem.budget).value


# ---------------------------------------------------------------------------------------------- published numbers


@pytest.mark.parametrize("tasks", [10, 100, 1000])
def test_first_experiment(tasks: int) -> None:
    bound = upper_bound(paper(tasks, tasks * 12 // 10))
    assert bound.per_task == pytest.approx(0.759375, abs=BOUND)
    assert bound.price == pytest.approx(0.046875, abs=BOUND)
    assert bound.certified
    assert bound.charge == "arrivals" and bound.expected_arrivals == tasks * 12 // 10
    assert 0 <= bound.gap <= BOUND


@pytest.mark.parametrize("labels", [1.0, 1.2, 1.5, 2.0, 7 / 3])
def test_closed_form(labels: float) -> None:
    tasks = 300
    bound = upper_bound(paper(tasks, round(labels * tasks)))
    assert bound.per_task == pytest.approx(0.75 + (labels - 1) * 3 / 64, abs=BOUND)


@pytest.mark.parametrize(("r", "per_task"), [(0.1, 0.84151), (1.0, 0.84151), (10.0, 0.84150), (40.0, 0.83507)])
def test_three_labels_a_task(r: float, per_task: float) -> None:
    assert upper_bound(paper(100, 300, r)).per_task == pytest.approx(per_task, abs=FIVE)


#: tests/reference_values.md, Small problems: exact optimum, scalar, per arrival.
SMALL = [
    (2, 5, 0.1, 1.603916, 1.638195, 1.625000),
    (2, 5, 1.0, 1.585758, 1.612760, 1.606669),
    (3, 4, 0.1, 2.250000, 2.295956, 2.295956),
    (3, 6, 1.0, 2.342366, 2.370283, 2.362896),
]


@pytest.mark.parametrize(("tasks", "budget", "r", "optimum", "scalar", "per_arrival"), SMALL)
def test_small_table(tasks: int, budget: int, r: float, optimum: float, scalar: float, per_arrival: float) -> None:
    one, each = upper_bound(paper(tasks, budget, r)), upper_bound(paper(tasks, budget, r), "per-arrival")
    assert one.value == pytest.approx(scalar, abs=SIX)
    assert each.value == pytest.approx(per_arrival, rel=PER_ARRIVAL)
    assert optimum - SIX <= each.value <= one.value + ROUNDING
    assert each.lower <= per_arrival + SIX
    assert one.prices is None and each.price is None
    assert each.prices is not None and each.prices.shape == (budget,) and each.prices.min() >= 0


def test_many_labels_in_flight() -> None:
    """tests/reference_values.md at rho = 25 and 100; the scalar figures are of the program that forbids past cap 7."""
    for r, scalar, per_arrival in ((10.0, 0.831750, 0.824161), (40.0, 0.816579, 0.814446)):
        problem = paper(20, 60, r)
        assert forbidding(problem, 7) / 20 == pytest.approx(scalar, abs=SIX)
        assert scalar - SIX <= upper_bound(problem).per_task <= upper_bound(problem, cap=7).per_task + ROUNDING
        each = upper_bound(problem, "per-arrival")
        assert each.per_task == pytest.approx(per_arrival, abs=FIVE)
        assert each.gap <= PER_ARRIVAL * each.value
        assert each.value <= 16.485
    assert upper_bound(paper(20, 60, 10.0)).value == pytest.approx(16.64, abs=0.005)


def test_prices_of_one_kind_suffice_with_little_in_flight() -> None:
    assert upper_bound(paper(10, 12), "per-arrival").per_task == pytest.approx(0.759375, abs=BOUND)


# ------------------------------------------------------------------------------------------------------------ cap


@pytest.mark.parametrize("cap", [6, 10, 14])
def test_the_cap_does_not_matter(cap: int) -> None:
    bound = upper_bound(Problem.identical(100, 300, prior=(4, 2)), cap=cap)
    assert bound.value == pytest.approx(86.493648, abs=PRINTED)
    assert bound.cap == cap and bound.certified


@pytest.mark.parametrize(("cap", "value"), [(6, 84.766), (10, 85.909), (20, 86.442)])
def test_plain_capping_is_no_bound(cap: int, value: float) -> None:
    """Beneath 86.375 +- 0.029, which the index policy earns with cap 20 (tests/reference_values.md, The cap)."""
    assert forbidding(Problem.identical(100, 300, prior=(4, 2)), cap) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize("prices", ["scalar", "per-arrival"])
def test_every_cap_is_above_the_truth(prices: str) -> None:
    problem = Problem((TaskClass(2, Beta(1, 1)), TaskClass(1, Beta(3, 1.4), 0.6)), 7, 1.5, 0.4)
    truth = relaxed_lp(oracle_tasks(problem), 7, per_arrival=prices == "per-arrival")
    for cap in range(1, 8):
        for flight in (1, cap):
            bound = upper_bound(problem, prices, cap=cap, flight=flight)
            assert bound.lower - truth * LP <= truth <= bound.value + truth * LP


def test_a_cap_as_deep_as_the_lattice() -> None:
    """64 labels is the lattice's depth here; what is feasible with 72 labels bounds the relaxed problem from below."""
    problem = Problem.identical(9, 72, prior=(100, 100), threshold=0.52)
    feasible = upper_bound(problem, cap=72).lower
    assert upper_bound(problem, cap=64).value >= feasible
    assert upper_bound(problem).value >= feasible


# --------------------------------------------------------------------------------------------------- finite horizon


@pytest.mark.parametrize(
    ("T", "most", "printed", "published"),
    [(30, 5.7501, 0.5750, 0.7437), (60, 6.4964, 0.6496, 0.7586), (120, 7.5295, 0.7529, 0.7594)],
)
def test_finite_horizon(T: float, most: float, printed: float, published: float) -> None:
    problem = paper(10, 12, horizon=T)
    bound = upper_bound(problem)
    assert bound.value <= most
    assert bound.per_task == pytest.approx(printed, abs=6e-5)
    assert bound.expected_arrivals == pytest.approx(sum(poisson_above(k, 0.1 * T) for k in range(1, 13)), abs=ROUNDING)
    everyone = upper_bound(problem, charge="all")
    assert everyone.per_task == pytest.approx(published, abs=6e-5)
    assert everyone.value >= bound.value
    for b in (bound, everyone):
        assert b.certified and 0 <= b.gap <= 1e-6 * b.value


@pytest.mark.parametrize("T", [30, 120])
def test_per_arrival_prices_with_a_horizon_are_no_worse(T: float) -> None:
    problem = paper(10, 12, horizon=T)
    one, each = upper_bound(problem), upper_bound(problem, "per-arrival")
    assert each.lower <= each.value <= one.value * (1 + BOUND)
    assert each.value >= one.value * 0.99


def test_a_long_horizon_is_no_horizon() -> None:
    for prices in ("scalar", "per-arrival"):
        endless = upper_bound(paper(4, 6, 1.0), prices)
        long = upper_bound(paper(4, 6, 1.0, 300.0), prices)
        assert long.value == pytest.approx(endless.value, rel=PER_ARRIVAL)
        # The certificate of a finite horizon may not fall below the truth, whose limit is known.
        assert long.value >= endless.lower * (1 - BOUND)


def test_time_only_helps() -> None:
    values = [upper_bound(paper(5, 8, 0.5, T)).value for T in (1.0, 4.0, 16.0, 64.0)]
    assert np.all(np.diff(values) > 0)
    assert values[0] > 2.5 and values[-1] <= upper_bound(paper(5, 8, 0.5)).value + BOUND


# -------------------------------------------------------------------------------------------------- linear programs


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.no_cover
def test_against_the_linear_program(seed: int) -> None:
    problem = random_problem(np.random.default_rng([1, seed]), tasks=5, budget=8 if seed % 3 else 6)
    U = problem.budget
    lp = relaxed_lp(oracle_tasks(problem), U, per_arrival=False)
    one = upper_bound(problem, cap=U, flight=U)
    assert one.value == pytest.approx(lp, rel=LP)
    assert one.lower <= lp * (1 + LP)
    lp = relaxed_lp(oracle_tasks(problem), U, per_arrival=True)
    each = upper_bound(problem, "per-arrival", cap=U, flight=U)
    assert each.value == pytest.approx(lp, rel=PER_ARRIVAL)
    assert each.lower * (1 - LP) <= lp <= each.value * (1 + LP)
    assert each.lower >= lp * (1 - PER_ARRIVAL)
    assert each.gap == pytest.approx(each.value - each.lower, abs=ROUNDING)


@pytest.mark.parametrize("seed", range(10))
def test_prices_give_the_value(seed: int) -> None:
    """The prices reported, put into the plain recursion, give the bound reported."""
    problem = random_problem(np.random.default_rng([2, seed]), tasks=4, budget=6)
    U = problem.budget
    for method in ("scalar", "per-arrival"):
        bound = upper_bound(problem, method, cap=U, flight=U)
        prices = [bound.price] * U if bound.prices is None else bound.prices.tolist()
        value = math.fsum(count * float(infinite(task, prices)(0, 0, 0, U)) for count, task in oracle_tasks(problem))
        assert bound.value == pytest.approx(value + math.fsum(prices), abs=1e-9)


# -------------------------------------------------------------------------------------------------------- theorems


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    seed = draw(st.integers(0, 10**6))
    return random_problem(np.random.default_rng([3, seed]), tasks=6, budget=12, horizon=draw(st.booleans()))


@given(problems())
@settings(max_examples=15)
def test_more_budget_never_lowers_the_bound(problem: Problem) -> None:
    one, more = upper_bound(problem), upper_bound(problem.with_budget(problem.budget + 1))
    assert more.value >= one.value * (1 - 1e-6)
    assert one.lower <= one.value
    assert one.value >= sum(c.count * float(c.lattice(0).reward[0]) for c in problem.classes) - ROUNDING
    assert one.value <= problem.tasks
    assert one.expected_arrivals <= problem.budget


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=12)
def test_splitting_and_permuting_classes_is_nothing(problem: Problem, random: object) -> None:
    ones = [replace(c, count=1) for c in problem.classes for _ in range(c.count)]
    random.shuffle(ones)  # type: ignore[attr-defined]
    cut = {"cap": min(problem.budget, 8), "flight": min(problem.budget, 6)}
    whole = upper_bound(problem, **cut)
    split = upper_bound(replace(problem, classes=tuple(ones)), **cut)
    assert split.value == pytest.approx(whole.value, rel=1e-7)


@pytest.mark.parametrize("prices", ["scalar", "per-arrival"])
@pytest.mark.parametrize("horizon", [math.inf, 7.0])
def test_no_budget(prices: str, horizon: float) -> None:
    problem = Problem((TaskClass(3, Beta(4, 2)), TaskClass(2)), 0, horizon=horizon)
    bound = upper_bound(problem, prices)
    assert bound.lower == pytest.approx(3 * 0.8125 + 1, abs=ROUNDING)
    assert bound.value == bound.lower + bound.error_budget
    assert bound.gap == 0 and bound.certified


def test_labels_that_nobody_needs() -> None:
    """More budget than one label can use: price 0, and the value of knowing all that the budget tells."""
    bound = upper_bound(paper(1, 9))
    assert bound.price == pytest.approx(0.0, abs=1e-6)
    assert bound.value == pytest.approx(float(infinite(Task(), [0.0] * 9)(0, 0, 0, 9)), abs=BOUND)
    # A prior so sure that no label can change the answer.
    sure = upper_bound(Problem.identical(5, 70, prior=(2000, 2000), threshold=0.52), cap=70)
    assert sure.lower == pytest.approx(sure.value, rel=BOUND)


def test_different_classes_are_summed_at_one_price() -> None:
    classes = (TaskClass(40, Beta(1, 1)), TaskClass(25, Beta(4, 2)), TaskClass(35, Beta(2, 2), 0.6))
    problem = Problem(classes, 200)
    bound = upper_bound(problem)
    assert bound.price is not None
    cut = Cut(bound.cap, bound.flight, 200)
    price, line = np.array([bound.price]), make_timeline(problem)
    apart = [float(RelaxedProblem(replace(problem, classes=(c,)), cut, line).at(price)[0, 0]) for c in classes]
    assert bound.value == pytest.approx(math.fsum(apart) + 200 * bound.price, rel=1e-9)


@pytest.mark.slow
def test_three_thousand_priors() -> None:
    rng = np.random.default_rng(8)
    classes = tuple(TaskClass(1, Beta(*np.exp(rng.uniform(-0.5, 1.5, 2)))) for _ in range(3000))
    problem = Problem(classes, 9000)
    bound = upper_bound(problem)
    assert bound.price is not None
    some = classes[::60]
    each = math.fsum(
        float(RelaxedProblem(replace(problem, classes=(c,)), Cut(bound.cap, bound.flight, 128), make_timeline(problem))
              .at(np.array([bound.price]))[0, 0])
        for c in some
    )  # fmt: skip
    part = RelaxedProblem(replace(problem, classes=some), Cut(bound.cap, bound.flight, 128), make_timeline(problem))
    assert float(part.at(np.array([bound.price]))[0, 0]) == pytest.approx(each, rel=1e-9)
    assert bound.gap <= 1e-5 * bound.value
    few = upper_bound(replace(problem, classes=classes[::10], budget=900))
    assert bound.per_task == pytest.approx(few.per_task, abs=0.02)
    assert bound.price == pytest.approx(few.price, rel=0.1)


def test_expected_arrivals() -> None:
    assert expected_arrivals(paper(3, 5)) == 5.0
    assert expected_arrivals(paper(3, 5, 0.1, 20.0)) == pytest.approx(
        sum(poisson_above(k, 2.0) for k in range(1, 6)), abs=ROUNDING
    )


def test_unknown_words_are_refused() -> None:
    with pytest.raises(ProblemError, match="prices 'each'"):
        upper_bound(paper(2, 2), "each")
    with pytest.raises(ProblemError, match="charge 'none'"):
        upper_bound(paper(2, 2), charge="none")
    with pytest.raises(ProblemError, match="cap"):
        upper_bound(paper(2, 2), cap=0)
    with pytest.raises(ProblemError, match="flight"):
        upper_bound(paper(2, 2), flight=0)
