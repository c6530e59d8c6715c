"""The exact optimum and exact policy values: published numbers, two slow oracles, and theorems."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array
from scipy.special import betainc

from nextlabel.errors import InputError, ProblemError, TooLargeError
from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.exact_value import policy_value
from nextlabel.solve.exact import CollisionError, JointSweep, count_groups, exact_value
from tolerances import EXACT

#: Reference values printed with six decimals.
SIX = 6e-7

Index = Callable[[int, int, float], np.ndarray]
Task = tuple[int, int, int, int]  # class, a, b, w


def paper(tasks: int, budget: int, r: float = 0.1, horizon: float = math.inf) -> Problem:
    return Problem.identical(tasks, budget, arrival_rate=r, completion_rate=0.4, horizon=horizon)


# ------------------------------------------------------------------ oracles: ordered tasks, no lumping, no multisets


def reward(task_class: TaskClass, a: int, b: int) -> float:
    below = float(betainc(task_class.prior.alpha + a, task_class.prior.beta + b, task_class.threshold))
    return max(below, 1 - below)


def chance(task_class: TaskClass, a: int, b: int) -> float:
    return (task_class.prior.alpha + a) / (task_class.prior.alpha + task_class.prior.beta + a + b)


def start(problem: Problem) -> tuple[Task, ...]:
    return tuple((c, 0, 0, 0) for c, task_class in enumerate(problem.classes) for _ in range(task_class.count))


def moves(tasks: tuple[Task, ...], x: int, problem: Problem) -> list[tuple[float, tuple[Task, ...]]]:
    c, a, b, w = tasks[x]
    p = chance(problem.classes[c], a, b)
    one, zero = (c, a + 1, b, w - 1), (c, a, b + 1, w - 1)
    return [(p, (*tasks[:x], one, *tasks[x + 1 :])), (1 - p, (*tasks[:x], zero, *tasks[x + 1 :]))]


def given_to(tasks: tuple[Task, ...], x: int) -> tuple[Task, ...]:
    c, a, b, w = tasks[x]
    return (*tasks[:x], (c, a, b, w + 1), *tasks[x + 1 :])


def oracle(
    problem: Problem, *, pending: str = "wait", price: float = 0.0, index: Index | None = None, ties: str = "random"
) -> float:
    """T infinite, by plain recursion; the optimum, or the policy of an index."""
    r, mu = problem.arrival_rate, problem.completion_rate

    def choose(tasks: tuple[Task, ...], n: int) -> float:
        offers = [value(given_to(tasks, x), n - 1) - price for x in range(len(tasks))]
        if index is None:
            return max([*offers, value(tasks, n - 1)] if price else offers)
        states = [(c, (a + b) * (a + b + 1) // 2 + a, w) for c, a, b, w in tasks]
        score = [index(c, n, math.inf)[w, node] for c, node, w in states]
        tied = [x for x in range(len(tasks)) if score[x] >= max(score) - 1e-9]
        if ties == "first":
            tied = [min(tied, key=lambda x: states[x])]
        elif ties == "groups":
            tied = list({states[x]: x for x in tied}.values())
        return math.fsum(offers[x] for x in tied) / len(tied)

    @cache
    def value(tasks: tuple[Task, ...], n: int) -> float:
        flying = sum(t[3] for t in tasks)
        if n == 0 and (flying == 0 or pending == "discard"):
            return math.fsum(reward(problem.classes[c], a, b) for c, a, b, _ in tasks)
        q = (r if n else 0.0) + mu * flying
        total = r * choose(tasks, n) if n else 0.0
        for x in range(len(tasks)):
            if tasks[x][3]:
                total += mu * tasks[x][3] * sum(p * value(s, n) for p, s in moves(tasks, x, problem))
        return total / q

    return value(start(problem), problem.budget)


def oracle_finite(problem: Problem, *, price: float = 0.0) -> float:
    """T finite: the whole joint system as one ODE."""
    r, mu = problem.arrival_rate, problem.completion_rate
    number = {(start(problem), problem.budget): 0}
    todo = list(number)
    up: list[list[int]] = []
    terms: list[tuple[int, int, float]] = []
    now: list[float] = []

    def at(state: tuple[tuple[Task, ...], int]) -> int:
        if state not in number:
            number[state] = len(number)
            todo.append(state)
        return number[state]

    for i, (tasks, n) in enumerate(todo):
        now.append(math.fsum(reward(problem.classes[c], a, b) for c, a, b, _ in tasks))
        up.append([at((given_to(tasks, x), n - 1)) for x in range(len(tasks))] if n else [i] * len(tasks))
        up[-1].append(at((tasks, n - 1)) if n and price else -1)
        for x in range(len(tasks)):
            if tasks[x][3]:
                terms.append((i, i, -mu * tasks[x][3]))
                terms += [(i, at((s, n)), mu * tasks[x][3] * p) for p, s in moves(tasks, x, problem)]
    rows, cols, weights = zip(*terms, strict=True) if terms else ((), (), ())
    A = csr_array((weights, (rows, cols)), shape=(len(todo), len(todo)), dtype=float)
    ups, skip = np.array(up)[:, :-1], np.array(up)[:, -1]
    waits = np.array([n > 0 for _, n in todo])

    def slope(_: float, V: np.ndarray) -> np.ndarray:
        best = V[ups].max(axis=1) - price
        if price:
            best = np.maximum(best, V[skip])
        return A @ V + np.where(waits, r * (best - V), 0.0)

    done = solve_ivp(slope, (0, problem.horizon), now, method="DOP853", rtol=1e-11, atol=1e-12, max_step=0.1)
    return float(done.y[0, -1])


def gittins_like(problem: Problem, prices: np.ndarray) -> Index:
    """The fair-charge index of every class on a grid of prices, by plain recursion."""
    r, mu, U = problem.arrival_rate, problem.completion_rate, problem.budget

    @cache
    def V(c: int, a: int, b: int, w: int, n: int) -> np.ndarray:
        cls = problem.classes[c]
        if n == 0 and w == 0:
            return np.full(len(prices), reward(cls, a, b))
        q, p, total = (r if n else 0.0) + mu * w, chance(cls, a, b), np.zeros(len(prices))
        if n:
            total += r / q * np.maximum(V(c, a, b, w, n - 1), V(c, a, b, w + 1, n - 1) - prices)
        if w:
            total += mu * w / q * (p * V(c, a + 1, b, w - 1, n) + (1 - p) * V(c, a, b + 1, w - 1, n))
        return total

    @cache
    def index(c: int, n: int, tau: float) -> np.ndarray:
        out = np.full((U + 1, (U + 1) * (U + 2) // 2), np.nan)
        for m in range(U - n + 1):
            for a in range(m + 1):
                for w in range(U - n - m + 1):
                    good = V(c, a, m - a, w + 1, n - 1) - prices >= V(c, a, m - a, w, n - 1) - 1e-12
                    out[w, m * (m + 1) // 2 + a] = prices[np.flatnonzero(good)[-1]]
        return out

    return index


def okg(problem: Problem) -> Index:
    tables = []
    for task_class in problem.classes:
        lattice = task_class.lattice(problem.budget)
        tables.append((lattice.reward[lattice.child] - lattice.reward[:, None]).max(axis=1))
    return lambda c, n, tau: np.tile(tables[c], (problem.budget + 1, 1))


def levels(seed: int, problem: Problem) -> Index:
    """A random index with few levels, so that ties abound; another one for every class and n."""
    nodes = (problem.budget + 1) * (problem.budget + 2) // 2

    def index(c: int, n: int, tau: float) -> np.ndarray:
        return np.random.default_rng([seed, c, n]).integers(0, 3, (problem.budget + 1, nodes)).astype(float)

    return index


priors = st.builds(Beta, st.sampled_from([0.5, 1.0, 1.3, 2.0, 4.0]), st.sampled_from([0.7, 1.0, 2.0, 3.1]))
rates = st.floats(0.05, 5.0)


@st.composite
def problems(draw: st.DrawFn, tasks: int = 3, budget: int = 4, horizon: bool = False) -> Problem:
    classes: list[TaskClass] = []
    left = draw(st.integers(1, tasks))
    while left:
        count = draw(st.integers(1, left))
        classes.append(TaskClass(count, draw(priors), draw(st.sampled_from([0.3, 0.5, 0.62]))))
        left -= count
    T = draw(st.floats(0.3, 6.0)) if horizon else math.inf
    return Problem(tuple(classes), draw(st.integers(0, budget)), draw(rates), draw(st.floats(0.1, 2.0)), T)


# ---------------------------------------------------------------------------------------------- published numbers


@pytest.mark.parametrize(
    ("tasks", "budget", "per_task", "states"),
    [(10, 12, 0.75625, 50_641), (8, 10, 0.7578125, 11_341), (5, 6, 0.75, 422)],
)
def test_values_at_the_papers_setting(tasks: int, budget: int, per_task: float, states: int) -> None:
    result = exact_value(paper(tasks, budget))
    assert result.value == pytest.approx(tasks * per_task, abs=EXACT)
    assert result.per_task == pytest.approx(per_task, abs=EXACT)
    assert (result.states, result.error) == (states, 0.0)
    assert result.states == count_groups(paper(tasks, budget), 20_000_000)[2]


SMALL = [
    (2, 5, 0.1, 1.603916, 1.603191, 1.598851),
    (2, 5, 1.0, 1.585758, 1.582909, 1.571915),
    (3, 4, 0.1, 2.250000, 2.250000, 2.246641),
    (3, 6, 1.0, 2.342366, 2.335372, 2.306015),
]


@pytest.mark.parametrize(("tasks", "budget", "r", "optimum", "index", "naive"), SMALL)
def test_small_table(tasks: int, budget: int, r: float, optimum: float, index: float, naive: float) -> None:
    problem = paper(tasks, budget, r)
    assert exact_value(problem).value == pytest.approx(optimum, abs=SIX)
    table = gittins_like(problem, np.linspace(0, 0.5, 5001))
    for ties in ("random", "groups", "first"):
        assert policy_value(problem, table, ties=ties).value == pytest.approx(index, abs=SIX)
    assert policy_value(problem, okg(problem), ties="random").value == pytest.approx(naive, abs=SIX)


def test_index_policy_is_optimal_at_ten_tasks() -> None:
    problem = paper(10, 12)
    assert policy_value(problem, gittins_like(problem, np.linspace(0, 0.26, 2601))).value == pytest.approx(
        7.5625, abs=EXACT
    )


def test_finite_horizon_value() -> None:
    result = exact_value(paper(3, 5, 1.0, 10.0))
    assert result.value == pytest.approx(2.273217, abs=SIX)
    assert result.states == 163
    assert 0 <= result.error < 1e-9
    assert result.value == pytest.approx(oracle_finite(paper(3, 5, 1.0, 10.0)), abs=EXACT)


def test_long_horizon_is_no_horizon() -> None:
    assert exact_value(paper(4, 6, 1.0, 400.0)).value == pytest.approx(exact_value(paper(4, 6, 1.0)).value, abs=EXACT)


def test_fourteen_tasks_and_their_bound() -> None:
    result = exact_value(paper(14, 17))
    assert 14 * 0.7562 < result.value < 14 * 0.75 + 3 * 3 / 64
    assert result.states == 1_612_596


def test_many_tasks_tiny_budget() -> None:
    # Three labels on three tasks: each turns 1/2 into 3/4.
    assert exact_value(paper(1000, 3)).value == pytest.approx(500.75, abs=EXACT)


def test_no_budget() -> None:
    assert exact_value(paper(7, 0)).value == pytest.approx(3.5, abs=EXACT)
    assert exact_value(paper(7, 0, 0.1, 3.0)).value == pytest.approx(3.5, abs=EXACT)


# -------------------------------------------------------------------------------------------------------- oracles


@given(problems(), st.sampled_from(["wait", "discard"]), st.sampled_from([0.0, 0.0, 0.01, 0.06]))
def test_optimum_against_recursion(problem: Problem, pending: str, price: float) -> None:
    ours = exact_value(problem, pending=pending, price=price).value
    assert ours == pytest.approx(oracle(problem, pending=pending, price=price), abs=EXACT)


@given(problems(tasks=2, budget=3, horizon=True), st.sampled_from([0.0, 0.0, 0.02]))
def test_finite_optimum_against_ode(problem: Problem, price: float) -> None:
    result = exact_value(problem, price=price)
    assert result.value == pytest.approx(oracle_finite(problem, price=price), abs=2e-9)
    assert result.error < 1e-8


@given(problems(), st.integers(0, 10**6), st.sampled_from(["random", "first"]), st.sampled_from(["wait", "discard"]))
def test_policy_against_recursion(problem: Problem, seed: int, ties: str, pending: str) -> None:
    index = levels(seed, problem)
    ours = policy_value(problem, index, ties=ties, pending=pending).value
    assert ours == pytest.approx(oracle(problem, index=index, ties=ties, pending=pending), abs=EXACT)
    assert ours <= exact_value(problem, pending=pending).value + EXACT


def test_tied_groups_against_recursion() -> None:
    problem = Problem((TaskClass(2, Beta(2, 1.3), 0.4), TaskClass(1, Beta(1, 3), 0.6)), 4, 0.7)
    for seed in range(5):
        index = levels(seed, problem)
        assert policy_value(problem, index, ties="groups").value == pytest.approx(
            oracle(problem, index=index, ties="groups"), abs=EXACT
        )


def test_finite_policy_is_between_nothing_and_optimum() -> None:
    problem = paper(3, 4, 1.0, 6.0)
    asked: list[float] = []

    def index(c: int, n: int, tau: float) -> np.ndarray:
        asked.append(tau)
        return okg(problem)(c, n, tau)

    result = policy_value(problem, index)
    assert 1.5 < result.value <= exact_value(problem).value
    assert result.error < 1e-9
    assert min(asked) > 0 and max(asked) == 6.0
    greedy = policy_value(paper(3, 4, 1.0, 500.0), okg(problem)).value
    assert greedy == pytest.approx(policy_value(paper(3, 4, 1.0), okg(problem)).value, abs=1e-7)


# ------------------------------------------------------------------------------------------------------- theorems


@given(problems(tasks=5, budget=5), st.randoms())
def test_order_of_classes_is_nothing(problem: Problem, random: object) -> None:
    classes = list(problem.classes)
    random.shuffle(classes)  # type: ignore[attr-defined]
    ones = tuple(replace(c, count=1) for c in classes for _ in range(c.count))
    value = exact_value(problem)
    assert exact_value(replace(problem, classes=tuple(classes))).value == pytest.approx(value.value, abs=EXACT)
    split = exact_value(replace(problem, classes=ones))
    assert split.value == pytest.approx(value.value, abs=EXACT)
    assert split.states <= value.states


@given(problems(tasks=4, budget=5))
def test_more_budget_never_hurts(problem: Problem) -> None:
    more = exact_value(problem.with_budget(problem.budget + 1)).value
    assert more >= exact_value(problem).value - EXACT
    assert exact_value(problem, pending="discard").value <= exact_value(problem).value + EXACT


def test_time_and_horizon_only_help() -> None:
    values = [exact_value(paper(4, 5, 1.0, T)).value for T in (1.0, 3.0, 9.0, 27.0)]
    assert values == sorted(values)
    assert values[-1] <= exact_value(paper(4, 5, 1.0)).value


def test_split_class_under_a_policy() -> None:
    whole, split = paper(4, 5, 1.0), Problem((TaskClass(1), TaskClass(3)), 5, 1.0, 0.4)
    assert policy_value(split, okg(split)).value == pytest.approx(policy_value(whole, okg(whole)).value, abs=EXACT)


def test_mirrored_classes_are_one() -> None:
    mirrored = Problem((TaskClass(2, Beta(3, 1.5), 0.5), TaskClass(2, Beta(1.5, 3), 0.5)), 5)
    same = Problem((TaskClass(4, Beta(3, 1.5), 0.5),), 5)
    assert exact_value(mirrored).states == exact_value(same).states
    assert exact_value(mirrored).value == pytest.approx(exact_value(same).value, abs=EXACT)


def test_price() -> None:
    free = exact_value(paper(4, 6)).value
    assert exact_value(paper(4, 6), price=1e-13).value == pytest.approx(free, abs=EXACT)
    assert exact_value(paper(4, 6), price=0.5).value == pytest.approx(2.0, abs=EXACT)
    prices = np.linspace(0, 0.3, 7)
    values = np.array([exact_value(paper(4, 6), price=float(p)).value for p in prices])
    assert np.all(np.diff(values) <= EXACT)
    assert np.all(np.diff(values, 2) >= -EXACT)


# ------------------------------------------------------------------------------------------- refusals and machinery


def test_too_large_is_refused_at_once() -> None:
    with pytest.raises(
        TooLargeError, match=r"25 tasks with a budget of 30 needs 4,333,679,066 joint states"
    ) as refused:
        exact_value(paper(25, 30))
    assert "nextlabel bound" in refused.value.hint
    assert refused.value.states == 4_333_679_066
    with pytest.raises(TooLargeError, match=r"needs more than [\d,]+ joint states"):
        exact_value(paper(1000, 1200))
    with pytest.raises(TooLargeError, match=r"needs more than"):
        exact_value(Problem.from_priors([(1 + i / 7, 1.3) for i in range(300)], 100))
    with pytest.raises(TooLargeError, match=r"50,641 joint states; at most 50,640"):
        exact_value(paper(10, 12), max_states=50_640)
    with pytest.raises(TooLargeError, match=r"horizon 500 needs"):
        exact_value(paper(13, 16, 1.0, 500.0))


def test_count_is_what_is_listed() -> None:
    problem = Problem((TaskClass(2, Beta(1, 1)), TaskClass(3, Beta(2, 1), 0.4)), 6)
    seen: list[float] = []
    exact_value(problem, progress=seen.append)  # raises SolverError if a layer lists another number than was counted
    groups, layers, _ = count_groups(problem, 10**9)
    assert len(groups) == 2
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert min(np.diff(seen, prepend=0.0)) == pytest.approx(1 / layers[:6].sum())


def test_wrong_words() -> None:
    with pytest.raises(ProblemError, match="pending"):
        exact_value(paper(2, 2), pending="drop")
    with pytest.raises(ProblemError, match="price"):
        exact_value(paper(2, 2), price=-1.0)
    with pytest.raises(ProblemError, match="ties"):
        policy_value(paper(2, 2), okg(paper(2, 2)), ties="any")
    with pytest.raises(InputError, match="not a number"):
        policy_value(paper(2, 2), lambda c, n, tau: np.full((3, 6), np.nan))


def test_collision_takes_another_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    once = JointSweep._run

    def run(self: JointSweep, taus: np.ndarray, seed: int) -> float:
        if seed == 0:
            raise CollisionError
        return once(self, taus, seed)

    monkeypatch.setattr(JointSweep, "_run", run)
    assert exact_value(paper(5, 6)).value == pytest.approx(3.75, abs=EXACT)


def test_kernels_run_uncompiled() -> None:
    code = (
        "from nextlabel.model.problem import Problem\n"
        "from nextlabel.solve.exact import exact_value\n"
        "print(exact_value(Problem.identical(3, 4)).value, exact_value(Problem.identical(2, 2, horizon=2.0)).value)"
    )
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, check=True
    )
    wait, stop = map(float, out.stdout.split())
    assert wait == pytest.approx(2.25, abs=EXACT)
    assert stop == pytest.approx(exact_value(paper(2, 2, 0.1, 2.0)).value, abs=EXACT)
