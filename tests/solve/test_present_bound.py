"""The bound from the middle of a campaign: against the bound of a fresh one, slow oracles and brute force."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import comb, inf

import numpy as np
import pytest

from nextlabel.errors import ProblemError
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.density import Histogram
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy, SquaredError
from nextlabel.model.simplex import counts_of_node, node_of_counts
from nextlabel.model.tasks import Groups, TaskClass, fresh_groups
from nextlabel.solve import present_bound as module
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.present_bound import present_bound
from oracles import Task, joint_optimum
from task_groups import group_tasks
from tolerances import BOUND, ODE, ROUNDING

State = tuple[int, int, int]  # ones, zeros, in flight


def stand(states: list[State]) -> Groups:
    """Tasks of class 0 in those states."""
    nodes = [node_of_counts((a, b)) for a, b, _ in states]
    return group_tasks([0] * len(states), nodes, [w for _, _, w in states])


# ------------------------------------------------------------------------------------------------ a fresh campaign


@pytest.mark.parametrize(
    ("prior", "budget"), [((1, 1), 1200), ((1, 1), 3000), ((4, 2), 3000), ((0.6, 2.3), 1700), ((1, 1, 1), 2500)]
)
def test_fresh_tasks_have_the_bound_of_the_problem(prior: tuple[float, ...], budget: int) -> None:
    problem = Problem.identical(1000, budget, prior)
    bound = upper_bound(problem)
    found = present_bound(problem.classes, fresh_groups(problem.classes), budget)
    assert abs(found.upper - bound.per_task) <= bound.gap / 1000 + found.slack + BOUND * 1e-3
    assert found.slack < 2e-6
    assert found.now == pytest.approx(problem.classes[0].lattice(0).reward[0], abs=ROUNDING)
    assert found.gap == pytest.approx(found.upper - found.now, abs=ROUNDING)


def test_several_classes_and_a_cost() -> None:
    classes = (TaskClass(300, Beta(1, 1)), TaskClass(500, Beta(3, 1), 0.6), TaskClass(200, OneCoin(0.3, 0.7)))
    for cost in (0.0, 0.02):
        problem = Problem(classes, 2000, label_cost=cost)
        bound = upper_bound(problem)
        found = present_bound(classes, fresh_groups(classes), 2000, label_cost=cost)
        assert abs(found.upper - bound.per_task) <= bound.gap / 1000 + found.slack + BOUND * 1e-3


def test_the_closed_form() -> None:
    """Beta(1,1), d = 1/2: 3/4 + (U/K - 1) 3/64 a task, the price 3/64."""
    classes = [TaskClass(10**6)]
    found = present_bound(classes, fresh_groups(classes), 1_200_000)
    assert found.upper == pytest.approx(0.759375, abs=ROUNDING)
    assert found.price == pytest.approx(3 / 64, abs=1e-9)
    assert found.curve([0, 100_000, 500_000]) == pytest.approx([0.759375, 0.7640625, 0.7828125], abs=ROUNDING)


# ------------------------------------------------------------------------------------------------ slow oracles


@cache
def fraction_reward(a: int, b: int) -> Fraction:
    """P(theta on the likelier side of 1/2) for Beta(1 + a, 1 + b): a binomial sum."""
    n = a + b + 1
    below = Fraction(sum(comb(n, k) for k in range(a + 1, n + 1)), 2**n)
    return max(below, 1 - below)


def fraction_sums(states: list[State], lam: Fraction, depth: int) -> tuple[Fraction, Fraction]:
    """Sums over tasks of P^w S and of the labels bought, Beta(1,1), S = 1 on the last level."""

    @cache
    def S(a: int, b: int) -> tuple[Fraction, Fraction]:
        if a + b == depth:
            return Fraction(1), Fraction(0)
        p = Fraction(1 + a, 2 + a + b)
        (one, n1), (zero, n0) = S(a + 1, b), S(a, b + 1)
        go = p * one + (1 - p) * zero - lam
        return (go, 1 + p * n1 + (1 - p) * n0) if go > fraction_reward(a, b) else (fraction_reward(a, b), Fraction(0))

    parts = [S(a, b) for a, b, _ in states]
    return sum((v for v, _ in parts), Fraction(0)), sum((n for _, n in parts), Fraction(0))


def least_by_tangents(sums: Callable[[Fraction], tuple[Fraction, Fraction]], N: int) -> Fraction:
    """min over lam in [0, 1/2] of S(lam) + lam N, exactly: tangents cross at a corner after finitely many steps."""
    lo, hi = Fraction(0), Fraction(1, 2)
    while True:
        (v0, n0), (v1, n1) = sums(lo), sums(hi)
        if n0 <= N:
            return v0 + lo * N
        if n1 == n0:
            return min(v0 + lo * N, v1 + hi * N)
        meet = (v0 + n0 * lo - v1 - n1 * hi) / (n0 - n1)
        value, labels = sums(meet)
        if value == v0 - n0 * (meet - lo):  # the crossing is on S: a corner
            return value + meet * N
        lo, hi = (meet, hi) if labels > N else (lo, meet)


@pytest.mark.parametrize("number", range(6))
def test_an_oracle_in_fractions(number: int) -> None:
    rng = np.random.default_rng([70, number])
    states = [tuple(int(x) for x in rng.integers(0, 3, 3) // [1, 1, 2]) for _ in range(8)]
    left = int(rng.integers(2, 6))
    flight = sum(w for _, _, w in states)
    exact = least_by_tangents(lambda lam: fraction_sums(states, lam, 30), left + flight)
    found = present_bound([TaskClass(8)], stand(states), left)
    assert found.upper == pytest.approx(float(exact) / 8, abs=1e-9)
    assert found.upper >= float(exact) / 8 - found.slack - ROUNDING
    assert found.now == pytest.approx(float(sum(fraction_reward(a, b) for a, b, _ in states)) / 8, abs=ROUNDING)


PRIORS: list[Prior] = [
    BetaMixture((0.6, 0.4), (Beta(8, 2), Beta(1, 1.5))),
    Histogram((0.0, 0.3, 0.6, 1.0), (0.2, 0.3, 0.5)),
    Dirichlet((1.0, 2.0, 0.7)),
    OneCoin(0.4, 0.8),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: p.kind)
@pytest.mark.parametrize("cost", [0.0, 0.015])
def test_every_kind_of_prior(prior: Prior, cost: float) -> None:
    """A recursion over dictionaries at the price found, from above and from below."""
    rng = np.random.default_rng(71)
    reward = SquaredError() if prior.kind == "mixture" else Accuracy()
    entry = TaskClass(1, prior, reward=reward)
    depth, left = (40 if prior.answers == 3 else 60), 9
    lattice = entry.lattice(depth)
    nodes = rng.integers(0, lattice.first[4], 6)
    found = present_bound([entry], group_tasks([0] * 6, nodes, [0] * 6), left, label_cost=cost)
    values: dict[int, np.ndarray] = {}
    for i in range(lattice.nodes - 1, -1, -1):
        now, told = lattice.reward[i], lattice.ceiling[i]
        if i >= lattice.first[depth]:
            values[i] = np.array([now, told])
            continue
        go = sum(lattice.prob[i, j] * values[int(lattice.child[i, j])] for j in range(lattice.answers))
        values[i] = np.maximum(go - found.price - cost, now)
    below, above = sum(values[int(node)] for node in nodes) + found.price * left
    assert below / 6 - found.slack - ROUNDING <= found.upper <= above / 6 + found.slack + ROUNDING
    assert above - below < (0.02 if prior.answers == 3 else 1e-3)
    for other in (0.7, 0.9, 1.1, 1.4):
        at = found.lines.prices[np.abs(found.lines.prices - other * found.price).argmin()]
        line = found.lines.sums[0, found.lines.prices == at][0] + at * left
        assert found.upper <= line / 6 + ROUNDING
    assert found.now <= found.upper <= found.ceiling + 1e-9
    assert found.now == pytest.approx(lattice.reward[nodes].mean(), abs=ROUNDING)
    assert found.ceiling == pytest.approx(lattice.ceiling[nodes].mean(), abs=ROUNDING)


# ------------------------------------------------------------------------------------------------ the optimum


def best_from(task: Task, states: tuple[State, ...], n: int, recalls: int = 0) -> float:
    """The optimum from here, T infinite, ordered tasks; a policy may take ``recalls`` labels in flight back."""

    @cache
    def V(tasks: tuple[State, ...], n: int, recalls: int) -> float:
        def put(x: int, new: State) -> tuple[State, ...]:
            return (*tasks[:x], new, *tasks[x + 1 :])

        flying = sum(w for _, _, w in tasks)
        if n == 0 and flying == 0:
            return sum(task.R(a, b) for a, b, _ in tasks)
        q = (task.r if n else 0.0) + task.mu * flying
        total = 0.0
        if n:
            offers = [V(put(x, (a, b, w + 1)), n - 1, recalls) for x, (a, b, w) in enumerate(tasks)]
            total += task.r / q * max(V(tasks, n - 1, recalls), *offers)
        for x, (a, b, w) in enumerate(tasks):
            if w:
                p = task.p(a, b)
                one, zero = V(put(x, (a + 1, b, w - 1)), n, recalls), V(put(x, (a, b + 1, w - 1)), n, recalls)
                total += task.mu * w / q * (p * one + (1 - p) * zero)
        if recalls:
            back = [V(put(x, (a, b, w - 1)), n + 1, recalls - 1) for x, (a, b, w) in enumerate(tasks) if w]
            total = max([total, *back])
        return total

    return V(states, n, recalls)


@pytest.mark.parametrize("number", range(16))
@pytest.mark.no_cover
def test_no_policy_is_above_it(number: int) -> None:
    rng = np.random.default_rng([72, number])
    task = Task(*np.exp(rng.uniform(-0.7, 1.2, 2)), float(rng.choice([0.5, 0.4])), *np.exp(rng.uniform(-2, 1, 2)))
    K = int(rng.integers(1, 4))
    states = tuple(tuple(int(x) for x in rng.integers(0, 3 if K < 3 else 2, 3)) for _ in range(K))
    n = int(rng.integers(0, 5 if K < 3 else 4))
    classes = [TaskClass(K, Beta(task.alpha, task.beta), task.d)]
    groups = stand(list(states))
    upper = present_bound(classes, groups, n).upper
    assert upper >= best_from(task, states, n) / K - ROUNDING
    assert upper >= best_from(task, states, n, recalls=2) / K - ROUNDING


@pytest.mark.parametrize(("K", "U", "T"), [(1, 3, 4.0), (2, 3, 6.0), (2, 4, 30.0)])
def test_a_deadline_may_be_counted_in_workers(K: int, U: int, T: float) -> None:
    task = Task(2.0, 1.0, 0.5, 0.3, 0.5)
    best = joint_optimum(task, K, U, [(0.0, task.r)], T) / K
    classes = [TaskClass(K, Beta(2, 1))]
    found = present_bound(classes, fresh_groups(classes), U, mean_arrivals=task.r * T)
    assert found.upper >= best - ODE
    assert found.upper <= present_bound(classes, fresh_groups(classes), U).upper + ROUNDING


# ------------------------------------------------------------------------------------------------ properties


@pytest.mark.parametrize("number", range(8))
def test_a_label_never_raises_it_in_the_mean(number: int) -> None:
    """Give a label to any task: never more. Let it come in: never more in the mean."""
    rng = np.random.default_rng([73, number])
    prior = Beta(*np.exp(rng.uniform(-0.7, 1.2, 2)))
    states = [tuple(int(x) for x in rng.integers(0, 4, 3)) for _ in range(6)]
    left, x = int(rng.integers(1, 9)), int(rng.integers(0, 6))
    a, b, w = states[x]
    classes = [TaskClass(6, prior)]
    p = (prior.alpha + a) / (prior.alpha + prior.beta + a + b)

    def upper(new: State, left: int) -> float:
        found = present_bound(classes, stand([*states[:x], new, *states[x + 1 :]]), left)
        assert found.slack < 1e-7
        return found.upper

    given = upper((a, b, w + 1), left - 1)
    come = p * upper((a + 1, b, w), left - 1) + (1 - p) * upper((a, b + 1, w), left - 1)
    assert come <= given + 1e-8
    assert given <= upper((a, b, w), left) + 1e-8


def test_more_labels_never_hurt_and_help_less_and_less() -> None:
    rng = np.random.default_rng(74)
    classes = [TaskClass(1, Beta(1, 1)), TaskClass(1, Beta(2, 1), 0.6)]
    groups = group_tasks(rng.integers(0, 2, 50), rng.integers(0, 15, 50), rng.integers(0, 2, 50))
    extra = np.arange(0, 120, 5)
    found = present_bound(classes, groups, 10)
    curve = found.curve(extra)
    assert np.all(np.diff(curve) >= -ROUNDING)
    assert np.all(np.diff(curve, 2) <= ROUNDING)
    alone = np.array([present_bound(classes, groups, 10 + int(x)).upper for x in extra])
    assert np.all(curve >= alone - 1e-8)
    assert curve == pytest.approx(alone, abs=2e-6)
    assert found.upper == curve[0]
    assert found.curve(5) - found.upper <= 5 * found.price / 50 + ROUNDING


def test_nothing_left_is_worth_what_it_is_now() -> None:
    classes = [TaskClass(3)]
    found = present_bound(classes, stand([(2, 0, 0), (1, 1, 0), (0, 0, 0)]), 0)
    assert found.upper == pytest.approx(found.now, abs=ROUNDING)
    assert found.gap == pytest.approx(0.0, abs=ROUNDING)
    dear = present_bound(classes, stand([(2, 0, 0)]), 100, label_cost=0.9)
    assert dear.upper == pytest.approx(dear.now, abs=ROUNDING)


@pytest.mark.no_cover
def test_many_classes_are_learnt_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(75)
    classes = [TaskClass(1, Beta(*np.exp(rng.uniform(-0.5, 1.5, 2)))) for _ in range(600)]
    groups = Groups(np.arange(600), rng.integers(0, 15, 600), rng.integers(0, 2, 600), rng.integers(1, 3, 600))
    many = present_bound(classes, groups, 700)
    monkeypatch.setattr(module, "MANY", 1000)
    few = present_bound(classes, groups, 700)
    assert many.upper == pytest.approx(few.upper, abs=2e-6)
    assert many.now == pytest.approx(few.now, abs=ROUNDING)
    assert many.upper - many.slack <= few.upper + ROUNDING
    assert many.curve([100])[0] == pytest.approx(few.curve([100])[0], abs=1e-4)


@pytest.mark.no_cover
def test_deep_tasks_and_shallow_lattices_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many answers the lattice ends early: loose, and it says so."""
    monkeypatch.setattr(module, "MOST_DEAR_NODES", 100_000)
    far = TaskClass(2, Dirichlet((1.0,) * 6))
    groups = group_tasks([0, 0], [node_of_counts((3, 2, 1, 1, 1, 1)), 0], [0, 0])
    found = present_bound([far], groups, 30)
    assert found.now < found.upper <= found.ceiling + ROUNDING
    node = node_of_counts((150, 110))
    deep = present_bound([TaskClass(1)], group_tasks([0], [node], [0]), 50)
    assert counts_of_node(2, node) == (150, 110)
    assert deep.now <= deep.upper <= 1.0 + ROUNDING


def test_shallow_lattices_stay_above(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = [TaskClass(40, Beta(2, 1.5)), TaskClass(10, Beta(1, 1))]
    groups = group_tasks([0] * 40 + [1] * 10, [0, 1, 2, 3, 4] * 10, [0, 1] * 25)
    deep = present_bound(classes, groups, 400)
    monkeypatch.setattr(module, "MARGINS", (1,))
    monkeypatch.setattr(module, "DEPTH_TOLERANCE", 1.0)
    flat = present_bound(classes, groups, 400)
    assert deep.slack < 1e-7
    assert flat.upper > deep.upper + 1e-3
    assert flat.upper - flat.slack <= deep.upper + ROUNDING


def test_groups_are_checked() -> None:
    one = [TaskClass(1)]
    for groups in (
        ([0], [0], [0]),
        ([0], [0], [0], [0]),
        ([1], [0], [0], [1]),
        ([0], [-1], [0], [1]),
        ([0], [0.5], [0], [1]),
        ([0, 0], [0], [0], [1]),
    ):
        with pytest.raises(ProblemError):
            present_bound(one, groups, 1)
    good = ([0], [0], [1], [1])
    for kind in ({"label_cost": -1.0}, {"mean_arrivals": -1.0}, {"label_cost": inf}):
        with pytest.raises(ProblemError):
            present_bound(one, good, 1, **kind)
    with pytest.raises(ProblemError):
        present_bound(one, good, -1)
    with pytest.raises(ProblemError):
        present_bound(one, good, 3).curve(-4)
    with pytest.raises(ProblemError):
        present_bound([], good, 3)
