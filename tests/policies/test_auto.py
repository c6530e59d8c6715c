"""The default policy for equal workers: the price that clears, the choices that follow, how near the bound it is."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from scipy.stats import norm

from nextlabel.application.forecast import forecast
from nextlabel.kernels.choice import PolicyArrays, StateScores, choose_group, clearing_levels, scores_by_state
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.sweep import new_block, no_deadline, sweep_demand, sweep_rows
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass, stack_classes
from nextlabel.policies.auto import MOST_ARRIVALS, MOST_IN_FLIGHT, labels_given, merge_classes, scale_of, stored_rows
from nextlabel.policies.base import Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound

TWO = (TaskClass(20, Beta(1, 1)), TaskClass(10, Beta(3, 1), 0.6))
LOADED = Problem(TWO, 90, 10.0, 1.0)


@cache
def tables_of(problem: Problem) -> tuple[Setting, PolicyArrays, StateScores]:
    setting = Setting.of(problem)
    arrays, tables = make_problem_arrays(setting, True), make_policy_arrays(setting, make_policy("auto"))
    return setting, tables, scores_by_state(tables, arrays.level, arrays.limit, arrays.child)


def groups_of(problem: Problem, seed: int, most: int = 4) -> dict[tuple[int, int, int], int]:
    """Tasks in a few states (class, node, in flight) of each class."""
    rng = np.random.default_rng(seed)
    out: dict[tuple[int, int, int], int] = {}
    for c, entry in enumerate(problem.classes):
        for _ in range(min(entry.count, 6)):
            m = int(rng.integers(0, most))
            group = c, m * (m + 1) // 2 + int(rng.integers(0, m + 1)), int(rng.integers(0, 3))
            out[group] = out.get(group, 0) + int(rng.integers(1, 4))
    return out


def arrays_of(setting: Setting, groups: dict[tuple[int, int, int], int]) -> tuple[np.ndarray, np.ndarray]:
    """``active`` and ``count`` of the kernels."""
    sizes = [view.nodes for view in setting.views]
    start = np.concatenate([[0], np.cumsum(sizes)])
    state = {w * start[-1] + start[c] + node: count for (c, node, w), count in groups.items()}
    count = np.zeros((setting.flight + 1) * start[-1], dtype=np.int64)
    count[list(state)] = list(state.values())
    return np.array([*sorted(state), len(state)], dtype=np.int64), count


def chosen(problem: Problem, groups: dict[tuple[int, int, int], int], n: int) -> tuple[int, int, int]:
    """The group that the next arrival gets."""
    setting, tables, by_state = tables_of(problem)
    active, count = arrays_of(setting, groups)
    room = np.zeros(len(active) + 2 * len(tables.levels.level))
    arrays, key = make_problem_arrays(setting, True), np.uint64(0)
    s = choose_group(
        tables,
        by_state,
        arrays.level,
        arrays.child,
        active,
        active,
        count,
        n,
        0,
        0,
        float(n),
        key,
        0.5,
        -np.inf,
        np.zeros(0),
        room,
    )
    start = np.cumsum([0] + [view.nodes for view in setting.views])
    w, i = divmod(s, int(start[-1]))
    c = int(np.searchsorted(start, i, side="right")) - 1
    return c, int(i - start[c]), int(w)


def price_of(problem: Problem, groups: dict[tuple[int, int, int], int], n: int) -> tuple[float, np.ndarray]:
    setting, tables, _ = tables_of(problem)
    active, count = arrays_of(setting, groups)
    J = len(tables.levels.level)
    weight = np.zeros(J)
    return clearing_levels(tables.levels, active, count, n, np.zeros(J), weight), weight


@pytest.mark.parametrize("seed", range(8))
def test_the_last_label_goes_where_it_adds_most_as_by_the_index(seed: int) -> None:
    """With one arrival left the index is what one label adds to the reward, after those in flight."""
    groups = groups_of(LOADED, seed)
    setting, _, _ = tables_of(LOADED)

    def added(group: tuple[int, int, int]) -> float:
        c, node, w = group
        worth = setting.views[c].after_flight(setting.views[c].lattice.reward)
        return float(worth[w + 1, node] - worth[w, node])

    best = max(map(added, groups))
    assert added(chosen(LOADED, groups, 1)) == pytest.approx(best, abs=2e-7)


def test_the_price_falls_with_the_labels_left_and_rises_with_the_tasks() -> None:
    few, many = {(0, 0, 0): 10, (1, 0, 0): 5}, {(0, 0, 0): 20, (1, 0, 0): 10}
    prices = [price_of(LOADED, many, n)[0] for n in (20, 45, 90)]
    assert prices[0] > prices[1] > prices[2] > 0
    assert price_of(LOADED, few, 45)[0] < prices[1]
    for n in (1, 7, 90):
        weight = price_of(LOADED, many, n)[1]
        assert weight.sum() == pytest.approx(1.0) and weight.min() >= 0.0


def test_from_fresh_tasks_the_path_itself_clears() -> None:
    """The path was solved from fresh tasks, so that the multiple that clears is about 1."""
    fresh = {(0, 0, 0): 20, (1, 0, 0): 10}
    level = tables_of(LOADED)[1].levels.level
    assert float(price_of(LOADED, fresh, 90)[1] @ level) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_the_classes_does_not_matter(seed: int) -> None:
    swapped = Problem(TWO[::-1], 90, 10.0, 1.0)
    groups = groups_of(LOADED, 100 + seed)
    n = 5 + 14 * seed
    c, node, w = chosen(LOADED, groups, n)
    other = {(1 - c, node, w): count for (c, node, w), count in groups.items()}
    assert chosen(swapped, other, n) == (1 - c, node, w)


def test_classes_that_are_alike_are_one() -> None:
    split = Problem((TaskClass(5), TaskClass(10, Beta(3, 1), 0.6), TaskClass(15)), 90, 10.0, 1.0)
    merged, kind = merge_classes(split)
    assert [c.count for c in merged.classes] == [20, 10]
    assert kind.tolist() == [0, 1, 0]
    for n in (2, 9, 40):
        c, node, w = chosen(LOADED, {(0, 0, 0): 1, (1, 3, 0): 2, (0, 4, 1): 3}, n)
        assert chosen(split, {(2, 0, 0): 1, (1, 3, 0): 2, (0, 4, 1): 3}, n) == ({(0, 0): 2}.get((c, node), c), node, w)


def test_one_task_gets_every_label() -> None:
    result = simulate(Problem.identical(1, 5, arrival_rate=2.0), ["auto"], replications=20).results[0]
    assert (result.labels_used, result.most_labels) == (5.0, 5)


def test_the_budget_is_spent_exactly_and_not_on_labels_that_cost_too_much() -> None:
    free = Problem.identical(12, 30, arrival_rate=4.0)
    assert simulate(free, ["auto"], replications=40).results[0].labels_used == 30.0
    dear = Problem((TaskClass(12),), 200, 4.0, 0.4, label_cost=0.05)
    used = simulate(dear, ["auto"], replications=40).results[0].labels_used
    assert 12 <= used < 100


def test_without_delay_it_is_as_good_as_the_index() -> None:
    """Labels come in at once: the order in which equally good labels are bought differs, their worth does not."""
    problem = Problem.identical(20, 40, arrival_rate=1e-3, completion_rate=1.0)
    study = simulate(problem, ["auto", "index"], replications=2000, seed=3)
    auto, index = study.result("auto"), study.result("index")
    behind = auto.gaps - index.gaps
    assert behind.mean() <= 2.5 * behind.std() / np.sqrt(len(behind)) + 1e-4 * study.bound.value


def test_with_a_label_in_flight_for_every_task_it_is_near_the_bound() -> None:
    problem = Problem.identical(60, 180, arrival_rate=60.0, completion_rate=1.0)
    bound = upper_bound(problem, "per-arrival")
    study = simulate(problem, ["auto", "okg-pending"], replications=300, bound=bound)
    gap, other = study.result("auto").gap_percent, study.result("okg-pending").gap_percent
    assert gap is not None and other is not None
    assert -gap.half_width < gap.mean < 0.2
    assert other.mean > 3 * gap.mean


def test_large_problems_are_swept_as_smaller_ones() -> None:
    large = Problem.identical(1_000_000, 3_000_000, arrival_rate=250_000.0, completion_rate=1.0)
    given, rho, sure = labels_given(large)
    assert (given, rho, sure) == (3_000_000.0, 250_000.0, 1.0)
    scale = scale_of(large, given, rho)
    assert rho / scale <= MOST_IN_FLIGHT and given / scale <= MOST_ARRIVALS
    assert scale_of(LOADED, 90.0, 10.0) == 1.0
    rows = stored_rows(1000)
    assert rows[0] == 0 and rows[-1] == 1000 and np.all(np.diff(rows) > 0) and len(rows) < 150
    assert stored_rows(3).tolist() == [0, 1, 2, 3]


def slow_value(problem: Problem, path: list[float], level: float, sure: float) -> float:
    """V of a fresh task by the definition, one state after another."""
    entry, rho = problem.classes[0], problem.rho
    reward, prob, child = entry.lattice(8).reward, entry.lattice(8).prob, entry.lattice(8).child

    @cache
    def value(i: int, w: int, n: int) -> float:
        come = sum(prob[i, a] * value(int(child[i, a]), w - 1, n) for a in range(2)) if w else 0.0
        if n == 0:
            return float(reward[i]) if w == 0 else sure * come + (1 - sure) * value(i, w - 1, 0)
        wait = value(i, w, n - 1)
        taken = value(i, w + 1, n - 1) - level * path[len(path) - n] - problem.label_cost
        return (rho * max(wait, taken) + w * come) / (rho + w)

    return value(0, 0, len(path))


@pytest.mark.parametrize("sure", [0.0, 0.4, 1.0])
def test_the_sweep_of_many_levels_is_the_recursion(sure: float) -> None:
    problem = Problem((TaskClass(1, Beta(2, 1.3)),), 4, 3.0, 1.0, label_cost=0.004)
    stack = stack_classes(problem.classes, 8, 100)
    grid = make_grid(stack.first, 8, 8)
    path, level, rows = np.array([0.03, 0.05, 0.02, 0.04]), np.array([0.3, 1.0, 2.5]), np.array([0, 2, 4])
    out, labels = np.empty((2, 3, grid.states, 3))
    steps = no_deadline(problem.rho, 1.0, grid.W)._replace(x=np.array([1.0 - sure]))
    paid = path[::-1, None] * level + problem.label_cost
    sweep_rows(stack, grid, steps, paid, rows, True, new_block(grid.states, 1, 3), out, labels)
    assert out[2, 0] == pytest.approx([slow_value(problem, path.tolist(), k, sure) for k in level], abs=1e-13)
    assert out[1, 0] == pytest.approx([slow_value(problem, path[2:].tolist(), k, sure) for k in level], abs=1e-13)


def test_a_deadline_is_known() -> None:
    """Half of the labels find workers: their time counts, and labels that would be lost are not given in vain."""
    cut_short = Problem.identical(40, 240, arrival_rate=40.0, completion_rate=1.0, horizon=3.0)
    assert labels_given(cut_short) == pytest.approx((120.0, 40.0, 0.0))
    ample = Problem.identical(40, 60, arrival_rate=40.0, completion_rate=1.0, horizon=3.0)
    assert labels_given(ample) == pytest.approx((60.0, 40.0, 1 - np.exp(-1.5)))
    setting = Setting.of(cut_short)
    arrays = make_problem_arrays(setting, True)
    tables = [make_policy_arrays(setting, make_policy(policy)) for policy in ("auto", "okg-pending")]
    auto, other = (Rollout(arrays, one).play(2, 0, 400)[0][:, 0, 0] for one in tables)
    ahead = auto - other
    assert ahead.mean() > 2.5 * ahead.std() / np.sqrt(len(ahead))


def test_a_forecast_counts_the_tasks_that_there_are() -> None:
    """A campaign's classes come without numbers of tasks; forty tasks are not planned for as one."""
    groups = ([0, 0, 0], [0, 1, 4], [1, 0, 2], [20, 10, 10])
    auto, other = (
        forecast([TaskClass(1)], groups, 60, policy, arrival_rate=20.0, completion_rate=1.0, replications=200)
        for policy in ("auto", "okg-pending")
    )
    assert auto.mean > other.mean - 0.004


def slow_demand(problem: Problem, path: list[float], level: float) -> np.ndarray:
    """The chance of every number of labels that a fresh task still takes, one state after another."""
    entry, rho, most = problem.classes[0], problem.rho, len(path) + 1
    prob, child = entry.lattice(8).prob, entry.lattice(8).child
    worth = cache(lambda i, w, n: slow_value_at(problem, tuple(path), level, i, w, n))

    @cache
    def law(i: int, w: int, n: int) -> tuple[float, ...]:
        if n == 0:
            return (1.0,) + (0.0,) * (most - 1)
        price = level * path[len(path) - n] + problem.label_cost
        takes = worth(i, w + 1, n - 1) - price >= worth(i, w, n - 1)
        next_one = np.roll(law(i, w + 1, n - 1), 1) if takes else np.array(law(i, w, n - 1))
        come = sum(prob[i, a] * np.array(law(int(child[i, a]), w - 1, n)) for a in range(2)) if w else np.zeros(most)
        return tuple((rho * next_one + w * come) / (rho + w))

    return np.array(law(0, 0, len(path)))


@cache
def slow_value_at(problem: Problem, path: tuple[float, ...], level: float, i: int, w: int, n: int) -> float:
    entry, rho = problem.classes[0], problem.rho
    reward, prob, child = entry.lattice(8).reward, entry.lattice(8).prob, entry.lattice(8).child
    at = partial(slow_value_at, problem, path, level)
    come = sum(prob[i, a] * at(int(child[i, a]), w - 1, n) for a in range(2)) if w else 0.0
    if n == 0:
        return float(come if w else reward[i])
    taken = at(i, w + 1, n - 1) - level * path[len(path) - n] - problem.label_cost
    return float((rho * max(at(i, w, n - 1), taken) + w * come) / (rho + w))


@pytest.mark.parametrize("level", [0.3, 1.0, 2.5])
def test_theory_theorem_5_demand_is_a_sum_of_independent_numbers_with_the_variance_swept(level: float) -> None:
    """The law of what one task takes, state by state; the law of many by convolution, against the normal law."""
    problem = Problem((TaskClass(1, Beta(2, 1.3)),), 4, 3.0, 1.0, label_cost=0.004)
    path = [0.03, 0.05, 0.02, 0.04]
    stack = stack_classes(problem.classes, 8, 100)
    grid = make_grid(stack.first, 8, 8)
    out, variance = np.empty((2, 1, grid.states, 1))
    steps = no_deadline(problem.rho, 1.0, grid.W)
    paid = level * np.array(path)[::-1, None] + problem.label_cost
    sweep_demand(stack, grid, steps, paid, np.array([4]), True, new_block(grid.states, 1, 1), out, variance)
    law = slow_demand(problem, path, level)
    number = np.arange(len(law))
    mean, square, third = (float(law @ part) for part in (number, number**2, np.abs(number - law @ number) ** 3))
    assert law.sum() == pytest.approx(1.0) and variance[0, 0, 0] == pytest.approx(square - mean**2, abs=1e-12)
    if square - mean**2 < 1e-9:
        return
    K, total = 40, np.ones(1)
    for _ in range(K):
        total = np.convolve(total, law)
    S = np.sqrt(K * variance[0, 0, 0])
    off = np.abs(np.cumsum(total) - norm.cdf((np.arange(len(total)) - K * mean) / S)).max()
    assert 0 < off <= 0.56 * K * third / S**3


def test_theory_theorem_6_the_worse_of_two_rules_is_seldom_taken() -> None:
    """Differences of two values are as far as Cantelli's inequality goes; others stay below it."""
    rng = np.random.default_rng(4)
    for M, behind in ((1, 0.5), (4, 0.5), (16, 0.25)):
        for odds in (0.05, 0.2, 0.5):
            # Mean -behind and standard deviation 1: rarely far above, mostly a little below.
            up, down = np.sqrt((1 - odds) / odds), -np.sqrt(odds / (1 - odds))
            drawn = np.where(rng.random((20_000, M)) < odds, up, down) - behind
            taken = (drawn.mean(axis=1) > 0).mean()
            assert taken <= 1 / (1 + M * behind**2) + 4 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize(("prior", "rho", "index"), [((2, 1), 0.3, True), ((1, 1), 8.0, False)])
def test_the_better_of_two_rules_is_taken(prior: tuple[float, float], rho: float, index: bool) -> None:
    """Where waiting is free the index, whose last labels are better placed; else prices."""
    setting = Setting.of(Problem.identical(30, 72, prior=prior, arrival_rate=rho, completion_rate=1.0))
    assert (make_policy("auto").scores(setting)[0].levels is None) == index
