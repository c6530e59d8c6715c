"""Problems beyond the paper's: bound >= exact >= policies for every kind, and simulated means equal to exact values."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from nextlabel.errors import InputError, ProblemError
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.density import Histogram, LogitNormal
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy, Reward, SquaredError, Utility
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.base import Setting
from nextlabel.policies.exact_value import policy_value
from nextlabel.policies.index import Index
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.simulation.study import Study, simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.index import index_table

SLACK = 1e-8
STANDARD_ERRORS = 4.0
TWO_ANSWERS = ("beta", "mixture", "histogram", "logit-normal", "one-coin")


def random_prior(rng: np.random.Generator, kind: str) -> Prior:
    """A prior of that kind."""
    if kind == "dirichlet":
        return Dirichlet((1, 1, 1)) if rng.random() < 0.3 else Dirichlet(tuple(np.exp(rng.uniform(-1, 1.5, 3))))
    if kind == "four":
        return Dirichlet(tuple(np.exp(rng.uniform(-1, 1.5, 4))))
    if kind == "mixture":
        betas = tuple(Beta(*np.exp(rng.uniform(-1, 2, 2))) for _ in range(2))
        return BetaMixture(tuple(rng.uniform(0.1, 1, 2)), betas)
    if kind == "histogram":
        return Histogram((0.0, *np.sort(rng.uniform(0.05, 0.95, 3)).tolist(), 1.0), tuple(rng.uniform(0.05, 1, 4)))
    if kind == "logit-normal":
        return LogitNormal(float(rng.normal()), float(np.exp(rng.uniform(-1, 1))))
    if kind == "one-coin":
        return OneCoin(float(rng.uniform(0, 1)), float(rng.uniform(0.55, 1)))
    return Beta(*np.exp(rng.uniform(-1, 2, 2)))


def random_reward(rng: np.random.Generator, answers: int) -> Reward:
    """Accuracy, a utility matrix with or without abstention, or squared error."""
    kind = rng.integers(4)
    if kind == 0:
        return Accuracy(float(rng.uniform(0.5, 3)))
    if kind == 1:
        return SquaredError(float(rng.uniform(0.5, 5)))
    matrix = rng.uniform(-2, 0.5, (answers, answers)) + 2 * np.eye(answers)
    return Utility(tuple(map(tuple, matrix.tolist())), float(rng.uniform(-0.5, 1)) if kind == 2 else None)


def general_problem(rng: np.random.Generator, kind: str, horizon: bool = False) -> Problem:
    """Up to 3 tasks in one or two classes, up to 5 arrivals, any reward, sometimes a cost of labels."""
    classes = []
    for count in [1, 1] if rng.random() < 0.3 else [int(rng.integers(1, 4))]:
        prior = random_prior(rng, kind)
        d = float(rng.uniform(0.3, 0.7)) if prior.thresholded and rng.random() < 0.5 else 0.5
        reward = random_reward(rng, prior.answers) if rng.random() < 0.6 else Accuracy()
        classes.append(TaskClass(count, prior, d, reward))
    r, mu = float(np.exp(rng.uniform(-2, 2))), float(np.exp(rng.uniform(-2, 1)))
    T = min(float(np.exp(rng.uniform(-1, 2)) / r), 25 / mu) if horizon else math.inf
    cost = float(rng.uniform(0, 0.1)) if rng.random() < 0.4 else 0.0
    return Problem(tuple(classes), int(rng.integers(1, 6)), r, mu, T, cost)


@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("kind", [*TWO_ANSWERS, "dirichlet", "four"])
def test_bound_exact_index(kind: str, batch: int) -> None:
    for number in range(6):
        rng = np.random.default_rng([20, batch, number, len(kind)])
        problem = general_problem(rng, kind)
        best = exact_value(problem)
        bound = upper_bound(problem)
        each = upper_bound(problem, "per-arrival")
        scale = max(1.0, abs(best.value))
        assert bound.value + SLACK * scale >= each.value >= best.value - SLACK * scale, problem
        assert each.value - 2e-5 * scale <= each.lower <= each.value, problem
        # With one label the certificate of the scalar price counts the lattice's end as a loss: valid, and loose.
        loose = math.inf if problem.budget == 1 else 2e-5 * scale
        assert bound.value - loose <= bound.lower <= bound.value, problem
        policy = policy_value(problem, index_table(problem).policy_index)
        assert best.value >= policy.value - SLACK * scale, problem


@pytest.mark.parametrize("kind", [*TWO_ANSWERS, "dirichlet"])
def test_bound_exact_index_with_a_horizon(kind: str) -> None:
    for number in range(2):
        rng = np.random.default_rng([21, number, len(kind)])
        problem = general_problem(rng, kind, horizon=True)
        best = exact_value(problem)
        scale = max(1.0, abs(best.value))
        assert upper_bound(problem).value >= best.value - best.error - SLACK * scale, problem
        if number == 0:
            table = index_table(problem, tolerance=1e-2)
            policy = policy_value(problem, table.policy_index)
            assert best.value >= policy.value - best.error - policy.error - SLACK * scale, problem


# Special cases are the plain ones


def test_two_dirichlet_answers_are_beta() -> None:
    plain, other = (Problem.identical(3, 6, p, arrival_rate=1.0) for p in (Beta(2, 1), Dirichlet((1, 2))))
    assert upper_bound(plain).value == pytest.approx(upper_bound(other).value, abs=1e-9)
    assert exact_value(plain).value == pytest.approx(exact_value(other).value, abs=1e-9)
    one, two = index_table(plain), index_table(other)
    for state in [(0, 0), (1, 0), (2, 1)]:
        assert one.index(0, state, 0, 4) == pytest.approx(two.index(0, state, 0, 4), abs=1e-8)


def test_a_cost_of_nought_and_a_value_of_one_change_nothing() -> None:
    plain = Problem.identical(3, 5, arrival_rate=1.0)
    same = Problem.identical(3, 5, reward=Utility(((1, 0), (0, 1)), abstain=0.5), arrival_rate=1.0, label_cost=0.0)
    assert exact_value(plain).value == pytest.approx(exact_value(same).value, abs=1e-12)
    assert upper_bound(plain).value == pytest.approx(upper_bound(same).value, abs=1e-9)


def test_scale_of_the_reward_is_the_scale_of_everything() -> None:
    plain = Problem.identical(4, 7, (2, 1), arrival_rate=1.0, label_cost=0.01)
    dear = Problem.identical(4, 7, (2, 1), reward=Accuracy(50.0), arrival_rate=1.0, label_cost=0.5)
    assert upper_bound(dear).value == pytest.approx(50 * upper_bound(plain).value, rel=1e-8)
    assert exact_value(dear).value == pytest.approx(50 * exact_value(plain).value, rel=1e-10)
    one, other = index_table(plain), index_table(dear)
    assert other.index(0, (1, 1), 0, 5) == pytest.approx(50 * one.index(0, (1, 1), 0, 5), rel=1e-5)


def test_a_dear_label_is_never_bought() -> None:
    problem = Problem.identical(5, 12, label_cost=0.6)
    nothing = 5 * 0.5
    assert exact_value(problem).value == pytest.approx(nothing, abs=1e-12)
    assert upper_bound(problem).value == pytest.approx(nothing, abs=1e-9)
    result = simulate(problem, ["index"], replications=20).results[0]
    assert result.labels_used == 0
    assert result.rewards.tolist() == [nothing] * 20


def test_money_stops_before_the_budget_is_spent() -> None:
    problem = Problem.identical(20, 400, label_cost=0.03)
    study = simulate(problem, ["index", "okg"], replications=200)
    index, okg = study.result("index"), study.result("okg")
    assert index.labels_used < 0.5 * okg.labels_used == 0.5 * 400
    assert study.difference("index", "okg").mean > 0.1
    # With arrivals to spare the budget has no price and the no-delay value is reached.
    assert study.bound.price == pytest.approx(0.0, abs=1e-6)
    assert index.gap is not None
    assert abs(index.gap.mean) < 1e-3


def test_squared_error_prefers_no_task_when_all_are_alike() -> None:
    """Equal Beta(1, 1) tasks: the variance falls fastest where fewest labels are, so even is optimal."""
    problem = Problem.identical(4, 8, reward=SquaredError())
    assert exact_value(problem).value == pytest.approx(_value_of(problem, "uniform"), abs=1e-9)


# Simulation


def _value_of(problem: Problem, name: str) -> float:
    """Exact value of a static policy, ties by lot; it takes every arrival, whatever labels cost."""
    free = replace(problem, label_cost=0.0)
    setting = Setting.of(free, free.budget, free.budget)
    scores = make_policy(name).scores(setting)
    value = policy_value(free, lambda c, n, tau: scores[c].static).value
    return value - problem.label_cost * problem.budget


@cache
def study_of(kind: str, seed: int) -> tuple[Problem, Study]:
    rng = np.random.default_rng([22, seed, len(kind)])
    problem = general_problem(rng, kind)
    names = ["index", "okg", "okg-pending", "uncertainty", "uniform"]
    return problem, simulate(problem, names, replications=3000, seed=seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [*TWO_ANSWERS, "dirichlet", "four"])
def test_simulated_means_are_exact_values(kind: str, seed: int) -> None:
    problem, study = study_of(kind, seed)
    table = index_table(problem, tolerance=1e-6)
    for result in study.results:
        if result.name == "index":
            exact = policy_value(problem, table.policy_index).value
        else:
            exact = _value_of(problem, result.name)
        error = result.rewards.std(ddof=1) / math.sqrt(len(result.rewards))
        assert abs(result.rewards.mean() - exact) <= STANDARD_ERRORS * error + 1e-6, (result.name, problem)
        assert result.gap is not None
        error = result.gaps.std(ddof=1) / math.sqrt(len(result.gaps))
        gap = study.bound.value - exact
        assert abs(result.gaps.mean() - gap) <= STANDARD_ERRORS * error + 1e-6, (result.name, problem)


def test_every_policy_takes_every_binary_prior() -> None:
    for kind in TWO_ANSWERS:
        prior = random_prior(np.random.default_rng(5), kind)
        study = simulate(Problem.identical(6, 15, prior), [n for n in POLICIES if n != "resolve"], replications=5)
        for result in study.results:
            assert result.labels_used == 15, (kind, result.name)
            assert (result.rewards >= 3.0 - 1e-9).all() and (result.rewards <= 6.0 + 1e-9).all(), (kind, result.name)
            assert len(np.unique(result.rewards)) > 1, (kind, result.name)
            assert result.gap is not None
            assert result.gap.mean >= -1e-6, (kind, result.name)


def test_three_answers_are_for_those_who_know_them() -> None:
    problem = Problem.identical(5, 10, (1, 1, 1))
    for name in POLICIES:
        if name == "resolve":
            continue
        if not POLICIES[name].two_answers:
            assert simulate(problem, [name], replications=3).results[0].labels_used == 10
        else:
            with pytest.raises(InputError, match="two answers"):
                simulate(problem, [name], replications=3)


def test_knowing_the_mixture_pays() -> None:
    """Easy tasks and coin flips, mixed: the index that knows beats the index of the Beta with the same two moments."""
    mixture = BetaMixture((0.5, 0.5), (Beta(18, 2), Beta(50, 50)))
    mean, second = 0.5 * (0.9 + 0.5), 0.5 * (18 * 19 / (20 * 21) + 50 * 51 / (100 * 101))
    weight = (mean - second) / (second - mean**2)
    single = Beta(mean * weight, (1 - mean) * weight)
    problem = Problem.identical(200, 400, mixture)
    other = Index(index_table(problem.with_prior(single), tolerance=1e-6), name="index of one Beta")
    study = simulate(problem, ["index", other], replications=400)
    ahead = study.difference("index", "index of one Beta")
    assert ahead.mean > ahead.half_width > 0


# Refusals


def test_mixed_numbers_of_answers_are_refused() -> None:
    with pytest.raises(ProblemError, match="2 and 3 answers"):
        Problem((TaskClass(1), TaskClass(1, Dirichlet((1, 1, 1)))), 3)


@pytest.mark.parametrize("prior", [OneCoin(0.5, 0.8), Dirichlet((1, 1, 1))])
def test_thresholds_need_an_unknown_theta(prior: Prior) -> None:
    with pytest.raises(ProblemError, match="threshold"):
        TaskClass(1, prior, 0.6)


def test_a_utility_matrix_must_fit_the_answers() -> None:
    with pytest.raises(ProblemError, match="2 columns"):
        TaskClass(1, Dirichlet((1, 1, 1)), reward=Utility(((1, 0), (0, 1))))


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf"), "x", True])
def test_costs_are_numbers_of_at_least_nought(cost: object) -> None:
    with pytest.raises(ProblemError, match="label cost"):
        Problem.identical(2, 3, label_cost=cost)
