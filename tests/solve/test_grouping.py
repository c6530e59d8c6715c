"""Grouped priors: two problems around one, at any price, whatever the family, the reward and the grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nextlabel.arrays import Floats
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy, Reward, SquaredError, Utility
from nextlabel.model.tasks import ScoreClasses, TaskClass, score_classes
from nextlabel.solve import bound as bound_module
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.grouping import Grouped, chord_errors, group, mean_errors, scores_of
from nextlabel.solve.relaxed import RelaxedProblem
from nextlabel.solve.truncation import Cut, make_timeline
from tolerances import ROUNDING

REWARDS: tuple[Reward, ...] = (
    Accuracy(),
    Accuracy(7.0),
    Utility(((1.0, -3.0), (0.0, 1.0))),
    Utility(((1.0, 0.0), (0.0, 1.0)), 0.8),
    SquaredError(),
)


def some_scores(rng: np.random.Generator, many: int) -> Floats:
    a, b = np.exp(rng.uniform(-1, 2, 2))
    return np.clip(rng.beta(a, b, many), 1e-3, 1 - 1e-3)


def sums(classes: Sequence[TaskClass], prices: Floats) -> Floats:
    """Single-task values where labels come at once; a task that gets to the end of the lattice is told the truth."""
    problem = Problem(classes, 10**6)
    return RelaxedProblem(problem, Cut(4, 2, 12), make_timeline(problem)).at(prices)[0]


def grouped(problem: Problem, cells: int) -> Grouped:
    found = group(problem, cells, least=0)
    assert found is not None
    return found


def test_hundreds_of_random_problems_lie_between_their_groups() -> None:
    rng = np.random.default_rng(17)
    apart = []
    for k in range(120):
        reward = REWARDS[k % len(REWARDS)]
        shared = {"accuracy": rng.uniform(0.5, 1.0)} if k % 3 == 0 else {"strength": np.exp(rng.uniform(-1.5, 5))}
        threshold = 0.5 if k % 3 == 0 else rng.uniform(0.2, 0.8)
        scores = some_scores(rng, rng.integers(2, 40))
        problem = Problem(score_classes(scores, **shared, threshold=threshold, reward=reward), 10**6)
        prices = np.sort(0.3 * reward.largest * rng.uniform(0, 1, 3) ** 3)[::-1]
        two = grouped(problem, int(np.exp(rng.uniform(0, 4))))
        value, low, high = (sums(one, prices) for one in (problem.classes, two.lower, two.upper))
        scale = problem.tasks * reward.largest
        assert (high + two.above >= value - ROUNDING * scale).all()
        assert (low - two.below <= value + ROUNDING * scale).all()
        apart.append(float((high + two.above - low + two.below).max()) / scale)
    assert min(apart) < 1e-3 < max(apart)


@pytest.mark.parametrize("shared", [{"strength": 4.0}, {"strength": 60.0}, {"accuracy": 0.75}])
def test_the_error_falls_with_the_square_of_the_cells(shared: dict[str, float]) -> None:
    scores = some_scores(np.random.default_rng(1), 4000)
    problem = Problem(score_classes(scores, **shared), 10**6)
    prices = np.array([0.02, 0.01])
    apart = []
    for cells in (50, 100, 200, 400):
        two = grouped(problem, cells)
        apart.append(float((sums(two.upper, prices) + two.above - sums(two.lower, prices) + two.below).max()))
    assert apart[0] > 2 * apart[1] > 4 * apart[2] > 8 * apart[3] > 0
    assert apart[3] < apart[0] / 20
    assert apart[3] < 4000 * 4e-4


@pytest.mark.parametrize(
    ("rest", "prices"),
    [
        ({}, "scalar"),
        ({"label_cost": 0.01}, "scalar"),
        ({"arrival_rate": 4.0}, "per-arrival"),
        ({"horizon": 20.0}, "scalar"),
    ],
)
def test_a_grouped_bound_is_never_below_the_ungrouped_one(
    rest: dict[str, float], prices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = some_scores(np.random.default_rng(5), 4)
    for shared in ({"strength": 3.0}, {"accuracy": 0.8}):
        problem = Problem(score_classes(scores, **shared), 5, **rest)
        alone = upper_bound(problem, prices)
        with monkeypatch.context() as patch:
            patch.setattr(bound_module, "MANY_CLASSES", 0)
            patch.setattr(bound_module, "group", lambda one: grouped(one, 60))
            found = upper_bound(problem, prices)
        assert found.groups > 0 and found.certified
        assert found.value >= alone.lower - ROUNDING
        assert found.value >= alone.value - 2e-6 * alone.value
        assert found.lower <= alone.value + ROUNDING
        assert found.value - found.lower <= 0.01 * alone.value + 2 * alone.gap


def test_thousands_of_scores_are_grouped_by_themselves() -> None:
    scores = some_scores(np.random.default_rng(2), 4200)
    problem = Problem(score_classes(scores, strength=4.0), 3 * 4200)
    found = upper_bound(problem)
    assert 100 < found.groups < 1500
    assert found.certified
    assert found.gap < 1e-4 * found.value
    assert (
        upper_bound(Problem(score_classes(np.clip(np.round(scores, 2), 0.01, 0.99), strength=4.0), 3 * 4200)).groups
        == 0
    )


def test_scores_that_are_points_of_the_grid_cost_nothing() -> None:
    p = np.array([0.1, 0.4, 0.7])
    pattern = TaskClass(1, Beta(1, 1))
    assert (chord_errors(pattern, 4.0, p, p, np.array([0, 0, 1])) == 0).all()
    assert (mean_errors(pattern, 4.0, p, p, np.array([0, 1, 2])) == 0).all()


def test_a_family_is_told_from_other_priors() -> None:
    beta = [TaskClass(2, Beta(4 * p, 4 * (1 - p))) for p in (0.7, 0.2)]
    found = scores_of(beta)
    assert isinstance(found, ScoreClasses)
    assert (found.values == [0.7, 0.2]).all() and (found.counts == 2).all() and found.strength == 4.0
    assert scores_of([*beta, TaskClass(1, Beta(1, 1))]) is None
    assert scores_of([*beta, TaskClass(1, Beta(2, 2), 0.6)]) is None
    assert scores_of([*beta, TaskClass(1, Beta(2, 2), reward=Accuracy(2.0))]) is None
    assert group(Problem(beta, 10)) is None


def test_one_score_for_all_tasks_is_one_prior() -> None:
    two = grouped(Problem(score_classes(np.full(5, 0.3), strength=2.0), 10), 7)
    assert len(two.upper) == len(two.lower) == 1
    assert two.above == two.below == 0.0
