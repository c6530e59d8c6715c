"""The rollout kernel: its heap, its books, its labels; a slow simulator that scans all tasks agrees event by event."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextlabel.kernels.events import (
    ARRIVAL,
    DURATION,
    FILE,
    LABEL,
    NONE_RECORDED,
    RecordedLabels,
    pop,
    push,
    stream_key,
    uniform,
)
from nextlabel.kernels.rollout import ProblemArrays
from nextlabel.model.beta import Beta
from nextlabel.model.lattice import triangle_counts
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.base import ClassView, Setting, StaticPolicy
from nextlabel.policies.registry import POLICIES, make_policy
from nextlabel.policies.rollout_arrays import Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.simulation.study import simulate
from strategies import random_problem
from tolerances import ROUNDING

SEED = 11
#: ``resolve`` is not tables alone: tests/test_simulate.py runs it.
BY_TABLES = sorted(set(POLICIES) - {"resolve"})


def play(
    problem: Problem,
    policy: str | StaticPolicy,
    replications: int,
    *,
    wait: bool = True,
    most: int | None = None,
    limits: np.ndarray | None = None,
    recorded: RecordedLabels | None = None,
) -> tuple[ProblemArrays, np.ndarray, np.ndarray]:
    """The arrays, the outcomes, and the final node of every task in every replication."""
    setting = Setting.of(problem, most)
    arrays = make_problem_arrays(setting, wait, limits)
    rule = make_policy(policy) if isinstance(policy, str) else policy
    rollout = Rollout(arrays, make_policy_arrays(setting, rule), recorded=recorded or NONE_RECORDED)
    out, ends = rollout.play(SEED, 0, replications, problem.tasks)
    return arrays, out[:, 0], ends[:, 0] % len(arrays.level)


def ones_of(arrays: ProblemArrays, final: np.ndarray, setting: Setting) -> np.ndarray:
    """Ones among the labels of each task at the end."""
    _, ones = triangle_counts(setting.depth)
    return np.concatenate([ones] * len(setting.views))[final]


class Shuffled(StaticPolicy):
    """Scores without ties, drawn once: every class has its own order of states."""

    name = "shuffled"
    in_flight = "all of it"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def score(self, view: ClassView) -> np.ndarray:
        entry = view.entry
        rng = np.random.default_rng([self.seed, int(1e6 * entry.prior.alpha), int(1e6 * entry.threshold)])
        return rng.random((view.flight + 1, view.nodes))


# ----------------------------------------------------------------------------------------------------------- heap


@given(st.lists(st.none() | st.sampled_from([0.0, 1.0, 2.0]) | st.floats(0, 1e6), max_size=60))
def test_heap_against_heapq(steps: list[float | None]) -> None:
    times, tasks = np.zeros(64), np.zeros(64, dtype=np.int64)
    size, reference = 0, list[tuple[float, int]]()
    for task, time in enumerate(steps):
        if time is not None:
            size = push(times, tasks, size, time, task)
            heapq.heappush(reference, (time, task))
        elif reference:
            top = (times[0], int(tasks[0]))
            size = pop(times, tasks, size)
            assert top in reference
            assert top[0] == reference[0][0]
            reference.remove(top)
            heapq.heapify(reference)
        assert size == len(reference)
        assert sorted(zip(times[:size], tasks[:size].tolist(), strict=True)) == sorted(reference)


# ------------------------------------------------------------------------------------------------------ the books


@pytest.mark.parametrize("name", BY_TABLES)
@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.no_cover
def test_labels_and_budget_are_conserved(name: str, most: int | None) -> None:
    for seed in range(4):
        problem = random_problem(np.random.default_rng([1, seed]), tasks=5, budget=9)
        arrays, out, final = play(problem, name, 40, most=most)
        came_in = arrays.level[final]
        room = problem.tasks * Setting.of(problem, most).depth
        assert np.all(out[:, 1] == min(problem.budget, room))
        assert np.all(out[:, 4] == problem.budget)
        assert np.all(came_in.sum(axis=1) == out[:, 1])
        assert np.all(came_in.max(axis=1) == out[:, 2])
        assert np.all(came_in <= arrays.limit[final])
        assert out[:, 0] == pytest.approx(arrays.reward[final].sum(axis=1), abs=ROUNDING)


@pytest.mark.parametrize("name", ["okg-pending", "okg", "uniform", "overlap"])
@pytest.mark.parametrize("wait", [True, False])
def test_what_is_lost_at_the_end(name: str, wait: bool) -> None:
    for seed in range(6):
        problem = random_problem(np.random.default_rng([2, seed]), tasks=5, budget=9, horizon=seed % 2 == 0 or wait)
        arrays, out, final = play(problem, name, 60, wait=wait)
        came_in = arrays.level[final].sum(axis=1)
        assert np.all(came_in <= out[:, 1])
        assert np.all(out[:, 1] <= out[:, 4])
        assert np.all(out[:, 4] <= problem.budget)
        if not wait and not problem.finite:
            assert np.any(came_in < out[:, 1])  # the last arrival's label never comes in
            assert np.all(out[:, 4] == problem.budget)


def test_limits_of_each_class() -> None:
    problem = Problem((TaskClass(2), TaskClass(3, Beta(2, 1), 0.4)), 20, 5.0, 0.4)
    limits = np.array([1, 3])
    for name in ("uncertainty", "uniform", "kg", "index"):
        arrays, out, final = play(problem, name, 50, limits=limits)
        assert np.all(out[:, 1] == 2 * 1 + 3 * 3)
        assert np.all(arrays.level[final] == [1, 1, 3, 3, 3])


def test_arrivals_below_the_price_are_turned_away() -> None:
    setting = Setting.of(Problem.identical(4, 6))
    arrays, tables = make_problem_arrays(setting, True), make_policy_arrays(setting, make_policy("okg"))
    closed = tables._replace(price=np.array([-np.inf, np.inf, -np.inf, np.inf, np.inf, -np.inf]))
    out = Rollout(arrays, closed).play(SEED, 0, 30)[0][:, 0]
    assert np.all(out[:, 1] == 3)
    assert np.all(out[:, 4] == 6)


def test_terms_of_the_gap_are_not_negative() -> None:
    for seed in range(5):
        problem = random_problem(np.random.default_rng([3, seed]), tasks=5, budget=9)
        for result in simulate(problem, ["random", "index", "kg"], replications=100).results:
            assert result.gaps.min() > -1e-9 * problem.tasks


def test_chunks_do_not_matter() -> None:
    setting = Setting.of(Problem.identical(6, 9, arrival_rate=1.0))
    arrays = make_problem_arrays(setting, True)
    for name in BY_TABLES:
        rollout = Rollout(arrays, make_policy_arrays(setting, make_policy(name)))
        whole = rollout.play(SEED, 0, 30, 6)
        parts = [rollout.play(SEED, k, n, 6) for k, n in ((0, 7), (7, 1), (8, 22))]
        for place in (0, 1):
            assert np.array_equal(whole[place], np.concatenate([part[place] for part in parts])), name


# ----------------------------------------------------------------------------------------------------- the labels


@pytest.mark.parametrize("wait", [True, False])
def test_label_j_of_a_task_is_the_same_under_every_policy(wait: bool) -> None:
    problem = Problem((TaskClass(4), TaskClass(3, Beta(2.5, 0.7), 0.6)), 16, 1.0, 0.4)
    replications = 12
    setting = Setting.of(problem)
    drawn = np.zeros((replications, problem.tasks, problem.budget + 1), dtype=np.int64)
    for rep in range(replications):
        key = np.uint64(stream_key(SEED, rep, LABEL))
        for x in range(problem.tasks):
            entry = problem.classes[0 if x < 4 else 1]
            a = 0
            for m in range(problem.budget):
                zero = 1.0 - (entry.prior.alpha + a) / (entry.prior.alpha + entry.prior.beta + m)
                a += uniform(key, x, m) >= zero
                drawn[rep, x, m + 1] = a
    endings = set()
    for name in BY_TABLES:
        arrays, _, final = play(problem, name, replications, wait=wait)
        level = arrays.level[final]
        expected = np.take_along_axis(drawn, level[:, :, None], axis=2)[:, :, 0]
        assert np.array_equal(ones_of(arrays, final, setting), expected), name
        endings.add(level.tobytes())
    assert len(endings) > 5  # the policies did not all do the same


@given(st.integers(0, 10**6), st.sampled_from(["okg", "uniform", "uncertainty", "thompson", "kg", "overlap"]))
@settings(max_examples=40)
def test_replay_uses_each_label_once_in_its_order(seed: int, name: str) -> None:
    rng = np.random.default_rng(seed)
    K, most = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    have = rng.integers(1, most + 1, K)
    recorded = rng.integers(0, 2, (K, most))
    for x in range(K):
        recorded[x, have[x] :] = -(10**9)  # a label that is not there would lead far astray
    kinds, many = np.unique(have, return_counts=True)  # a class for each number of labels
    classes = tuple(TaskClass(int(n), Beta(1 + x / 10, 1.3)) for x, n in enumerate(many))
    problem = Problem(classes, int(rng.integers(1, 25)), 2.0, 0.4)
    setting = Setting.of(problem, most)
    limits = np.minimum(kinds, setting.depth)
    start = np.zeros(most + 1, dtype=np.int64)
    start[kinds] = np.arange(len(kinds)) * setting.views[0].nodes
    arrays, out, final = play(
        problem, name, 5, most=most, limits=limits, recorded=RecordedLabels(recorded, have, start, FILE)
    )
    level = arrays.level[final]
    assert np.all(level <= have)
    assert np.all(out[:, 1] == min(problem.budget, int(limits @ many)))
    ones = ones_of(arrays, final, setting)
    for rep in range(5):
        assert [recorded[x, : level[rep, x]].sum() for x in range(K)] == ones[rep].tolist()


def test_replay_keeps_the_recorded_order() -> None:
    recorded = np.array([[1, 1, 0, 0, 1], [0, 1, 1, 1, 0]])
    problem = Problem((TaskClass(2),), 10, 3.0, 0.4)
    labels = RecordedLabels(recorded, np.full(2, 5), np.zeros(6, dtype=np.int64), FILE)
    for budget in range(1, 11):
        setting = Setting.of(problem.with_budget(budget), 5)
        arrays, _, final = play(problem.with_budget(budget), "uniform", 20, most=5, recorded=labels)
        level, ones = arrays.level[final], ones_of(arrays, final, setting)
        for x in (0, 1):
            prefix = np.concatenate([[0], np.cumsum(recorded[x])])
            assert np.array_equal(ones[:, x], prefix[level[:, x]])


# ------------------------------------------------------------------------------------------------- a slow simulator


def slowly(problem: Problem, policy: StaticPolicy, rep: int, wait: bool) -> tuple[list[int], int, float]:
    """One replication by scanning all tasks and all labels in flight; every class is one task."""
    setting = Setting.of(problem)
    keys = {s: np.uint64(stream_key(SEED, rep, s)) for s in (LABEL, ARRIVAL, DURATION)}
    tables = [policy.score(view) for view in setting.views]
    node, w = [0] * problem.tasks, [0] * problem.tasks
    flying: list[tuple[float, int]] = []
    given, reward = 0, 0.0
    arrival = -math.log(uniform(keys[ARRIVAL], 0, 0)) / problem.arrival_rate
    ell = 0
    while ell < problem.budget or flying:
        back = min(flying, default=(math.inf, -1))
        if ell < problem.budget and arrival <= back[0]:
            if arrival > problem.horizon:
                break
            free = [
                x for x, view in enumerate(setting.views)
                if view.level[node[x]] + w[x] < setting.depth and w[x] < setting.flight
            ]  # fmt: skip
            if free:
                x = max(free, key=lambda x: tables[x][w[x], node[x]])
                w[x] += 1
                given += 1
                took = -math.log(uniform(keys[DURATION], ell, 0)) / problem.completion_rate
                flying.append((arrival + took, x))
            ell += 1
            arrival += -math.log(uniform(keys[ARRIVAL], ell, 0)) / problem.arrival_rate
            if ell == problem.budget and not wait:
                break
        else:
            if back[0] > problem.horizon:
                break
            flying.remove(back)
            x = back[1]
            view = setting.views[x]
            u, j = uniform(keys[LABEL], x, int(view.level[node[x]])), 0
            while j < 1 and u >= view.lattice.prob[node[x], j]:
                u -= view.lattice.prob[node[x], j]
                j += 1
            node[x], w[x] = int(view.lattice.child[node[x], j]), w[x] - 1
    reward = math.fsum(view.lattice.reward[node[x]] for x, view in enumerate(setting.views))
    return node, given, reward


@pytest.mark.parametrize("horizon", [math.inf, 12.0])
@pytest.mark.parametrize("wait", [True, False])
def test_event_by_event_against_a_slow_simulator(wait: bool, horizon: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng([4, seed])
        classes = tuple(TaskClass(1, Beta(*rng.uniform(0.5, 3, 2)), float(rng.uniform(0.3, 0.7))) for _ in range(6))
        problem = Problem(classes, 15, float(rng.choice([0.3, 2.0])), 0.4, horizon)
        policy = Shuffled(seed)
        arrays, out, final = play(problem, policy, 25, wait=wait)
        starts = np.concatenate([[0], np.cumsum([v.nodes for v in Setting.of(problem).views])[:-1]])
        for rep in range(25):
            node, given, reward = slowly(problem, policy, rep, wait)
            assert (final[rep] - starts).tolist() == node
            assert out[rep, 1] == given
            assert out[rep, 0] == pytest.approx(reward, abs=ROUNDING)
        assert np.array_equal(arrays.root, starts)
