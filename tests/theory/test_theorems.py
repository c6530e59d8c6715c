"""Every theorem and lemma of the theory pages has a test named after it; those that had none elsewhere are here.

A test is named after its page, kind and number: ``test_theory_theorem_3_...`` for Theorem 3 of ``docs/theory.md``,
``test_workers_lemma_4a_...`` for Lemma 4a of ``docs/theory_workers.md``. The tests here use NumPy and SciPy alone.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_law

from oracles import Task, infinite, no_delay

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"theory": "theory", "theory_grouping": "grouping", "theory_workers": "workers", "guarantee": "guarantee"}


def test_every_theorem_has_a_number_and_a_test() -> None:
    stated = []
    for page, short in PAGES.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        found = re.findall(r"\*\*(Theorem|Lemma) ([0-9]+[a-z]?)\b", text)
        assert len(found) == len(set(found)), page
        assert not re.search(r"\*(Theorem|Lemma)(?! \d)", text), page
        stated += [f"test_{short}_{kind.lower()}_{number}" for kind, number in found]
    assert len(stated) >= 29
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    tests = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    missing = [name for name in stated if not any(test.startswith(f"{name}_") for test in tests)]
    assert not missing, f"no test of {', '.join(missing)}"


# ------------------------------------------------------------------------------------------------ docs/theory.md


@pytest.mark.parametrize(("task", "lam"), [(Task(1, 1, r=1.0), 0.05), (Task(2, 1, r=0.4), 0.03), (Task(3, 2), 0.04)])
def test_theory_theorem_3_values_rise_to_the_value_without_delay(task: Task, lam: float) -> None:
    """What is missing is at most the spread times the chance that the sequential plan is not through in time."""
    U, depth = 7, 24
    value, S = infinite(task, [lam] * U), no_delay(task, lam, depth)
    labels = np.zeros(depth + 2)  # the law of the number of labels of the sequential plan

    def follow(a: int, b: int, chance: float) -> None:
        if a + b == depth or task.R(a, b) >= S(a, b) - 1e-12:
            labels[a + b] += chance
            return
        follow(a + 1, b, chance * task.p(a, b))
        follow(a, b + 1, chance * (1 - task.p(a, b)))

    follow(0, 0, 1.0)
    now = [float(value(0, 0, 0, n)) for n in range(U + 1)]
    assert np.all(np.diff(now) >= -1e-12)
    back = task.mu / (task.r + task.mu)
    for n in range(1, U + 1):
        late = [
            1 - sum(math.comb(k + m - 2, k) * back ** (m - 1) * (1 - back) ** k for k in range(n - m + 1))
            if m > 1
            else 0.0
            for m in range(depth + 2)
        ]
        assert -1e-12 <= S(0, 0) - now[n] <= 0.5 * float(labels @ late) + 1e-9


# --------------------------------------------------------------------------------------- docs/theory_grouping.md

LABELS, STRENGTH, PRICE, STEP = 4, 4.0, 0.02, 1e-5
Plan = dict[tuple[int, int], bool]


def best_plan(p: float) -> tuple[float, Plan]:
    """The value of one task with prior Beta(s p, s (1 - p)) and at most four labels, and where its plan buys."""
    plan: Plan = {}

    @cache
    def value(a: int, b: int) -> float:
        x, y = STRENGTH * p + a, STRENGTH * (1 - p) + b
        above = beta_law.sf(0.5, x, y)
        stop = max(above, 1 - above)
        if a + b == LABELS:
            return float(stop)
        go = (x * value(a + 1, b) + y * value(a, b + 1)) / (x + y) - PRICE
        plan[a, b] = go > stop
        return float(max(stop, go))

    return value(0, 0), plan


def payoff(p: float, plan: Plan) -> Callable[[float], float]:
    """J(theta): what the plan earns given theta when it decides as is best with the prior of score p."""

    def J(theta: float) -> float:
        def at(a: int, b: int) -> float:
            if plan.get((a, b)):
                return theta * at(a + 1, b) + (1 - theta) * at(a, b + 1) - PRICE
            says_one = beta_law.sf(0.5, STRENGTH * p + a, STRENGTH * (1 - p) + b) > 0.5
            return float(says_one == (theta > 0.5))

        return at(0, 0)

    return J


def mean_at(p: float, f: Callable[[float], float]) -> float:
    law = beta_law(STRENGTH * p, STRENGTH * (1 - p))
    return sum(quad(lambda x: law.pdf(x) * f(x), low, high, limit=200)[0] for low, high in ((0, 0.5), (0.5, 1)))


def density(p: float, x: float) -> float:
    return float(beta_law.pdf(x, STRENGTH * p, STRENGTH * (1 - p)))


def stake(p: float) -> float:
    above = beta_law.sf(0.5, STRENGTH * p, STRENGTH * (1 - p))
    return float(min(above, 1 - above))


def deviation(p: float) -> float:
    """A(p)."""
    return min(0.5 + math.sqrt(3) / 2, (1 + math.sqrt(1.5)) * math.sqrt(stake(p)))


@pytest.mark.parametrize(("p", "other"), [(0.5, 0.8), (0.3, 0.35), (0.9, 0.2)])
def test_grouping_lemma_1_the_plan_of_one_prior_bounds_another_from_below(p: float, other: float) -> None:
    value, plan = best_plan(p)
    J = payoff(p, plan)
    assert mean_at(p, J) == pytest.approx(value, abs=1e-7)
    assert best_plan(other)[0] >= mean_at(other, J) - 1e-7


@pytest.mark.parametrize(("low", "p", "high"), [(0.4, 0.5, 0.6), (0.3, 0.45, 0.5), (0.7, 0.72, 0.8)])
def test_grouping_theorem_1_a_value_is_below_the_chord_and_its_error(low: float, p: float, high: float) -> None:
    t = (high - p) / (high - low)
    square = mean_at(p, lambda x: ((t * density(low, x) + (1 - t) * density(high, x)) / density(p, x) - 1) ** 2)
    chord = t * best_plan(low)[0] + (1 - t) * best_plan(high)[0]
    assert best_plan(p)[0] <= chord + deviation(p) * math.sqrt(square) + 1e-9
    plan = best_plan(p)[1]
    J = payoff(p, plan)
    assert mean_at(p, lambda x: (J(x) - 0.5) ** 2) <= (0.5 + math.sqrt(3) / 2) ** 2


def test_grouping_theorem_2_values_are_above_that_of_their_mean_less_its_error() -> None:
    for scores in ((0.45, 0.5, 0.58), (0.2, 0.3), (0.6, 0.62, 0.7, 0.71)):
        m, error = float(np.mean(scores)), 0.0

        def score(x: float, m: float = m) -> float:
            return (math.log(density(m + STEP, x)) - math.log(density(m - STEP, x))) / (2 * STEP)

        for p in scores:
            off = mean_at(m, lambda x, p=p, m=m: (density(p, x) / density(m, x) - 1 - (p - m) * score(x)) ** 2)
            error += deviation(m) * math.sqrt(off)
        assert sum(best_plan(p)[0] for p in scores) >= len(scores) * best_plan(m)[0] - error - 1e-6


@pytest.mark.parametrize("p", [0.2, 0.5, 0.7])
def test_grouping_lemma_2_what_a_plan_pays_has_a_small_second_moment(p: float) -> None:
    plan = best_plan(p)[1]

    def paid(a: int, b: int) -> tuple[float, float]:
        if not plan.get((a, b)):
            return 0.0, 0.0
        x = (STRENGTH * p + a) / (STRENGTH + a + b)
        one, two = paid(a + 1, b), paid(a, b + 1)
        mean, square = (x * u + (1 - x) * v for u, v in zip(one, two, strict=True))
        return PRICE + mean, PRICE**2 + 2 * PRICE * mean + square

    mean, square = paid(0, 0)
    D = 0.5
    assert mean <= D and square <= 3 * D * mean + 1e-12
    assert p != 0.5 or mean > PRICE


# ---------------------------------------------------------------------------------------- docs/theory_workers.md


def worth(p: np.ndarray, channels: list[np.ndarray], costs: list[float], labels: int) -> float:
    """V^n by plain recursion over beliefs, without a grid."""
    best = float(p.max())
    for channel, cost in zip(channels, costs, strict=True):
        if labels:
            chances = p @ channel
            after = [p * channel[:, y] / chances[y] for y in range(channel.shape[1]) if chances[y] > 0]
            go = sum(
                c * worth(q, channels, costs, labels - 1) for c, q in zip(chances[chances > 0], after, strict=True)
            )
            best = max(best, float(go) - cost)
    return best


def some_channels(rng: np.random.Generator, answers: int, many: int) -> list[np.ndarray]:
    return [rng.dirichlet(np.ones(answers), answers) + np.eye(answers) for _ in range(many)]


@pytest.mark.parametrize("answers", [2, 3])
def test_workers_lemma_2_values_are_convex(answers: int) -> None:
    rng = np.random.default_rng(answers)
    for _ in range(20):
        channels = [channel / channel.sum(axis=1, keepdims=True) for channel in some_channels(rng, answers, 2)]
        costs = rng.uniform(0, 0.1, 2).tolist()
        one, two = rng.dirichlet(np.ones(answers), 2)
        t = rng.random()
        ends = t * worth(one, channels, costs, 3) + (1 - t) * worth(two, channels, costs, 3)
        assert worth(t * one + (1 - t) * two, channels, costs, 3) <= ends + 1e-12


def test_workers_lemma_4_a_value_that_is_nearly_a_solution_is_raised_to_one() -> None:
    """Two answers, linear interpolation on an even grid, any V above R."""
    rng = np.random.default_rng(0)
    points = np.linspace(0, 1, 21)
    for _ in range(30):
        s, t, cost = rng.uniform(0.5, 1), rng.uniform(0.5, 1), rng.uniform(0.01, 0.1)
        R = np.maximum(points, 1 - points)
        V = R + 0.1 * rng.random(21) * points * (1 - points)

        def T(F: np.ndarray, s: float = s, t: float = t, cost: float = cost, R: np.ndarray = R) -> np.ndarray:
            go = np.full(21, -cost)
            for one, zero in ((s, 1 - t), (1 - s, t)):
                chance = points * one + (1 - points) * zero
                after = np.divide(points * one, chance, out=np.zeros(21), where=chance > 0)
                go += chance * np.interp(after, points, F)
            return np.maximum(R, go)

        e = float((T(V) - V).max())
        a = max(e, 0.0) / cost
        U = (V + a * np.ones(21)) / (1 + a)  # R_inf = 1
        assert np.all(T(U) <= U + 1e-12) and np.all(U >= R - 1e-12)


def test_workers_lemma_5_answers_changed_by_lot_are_worth_less() -> None:
    rng = np.random.default_rng(6)
    for answers in (2, 3):
        for _ in range(10):
            better = rng.dirichlet(np.ones(answers), answers)
            lot = rng.dirichlet(np.ones(answers), answers)
            p = rng.dirichlet(np.ones(answers))
            assert worth(p, [better @ lot], [0.01], 3) <= worth(p, [better], [0.01], 3) + 1e-12
