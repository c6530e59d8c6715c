"""'Certified' against arithmetic of 50 digits that shares nothing with the library (``exact_tasks``).

With one task a bound and the optimum are the same number, so that the excess of the bound can be measured as well.
"""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import nextlabel as nl
from exact_horizons import one_label, optimum
from exact_tasks import DIGITS, ExactTask
from oracles import Finite, Task
from random_tasks import KINDS, REWARDS, random_prior, random_reward

#: The bound may exceed the value by this share of it.
EXCESS = 1e-6


def excess(task: ExactTask, arrivals: int, rho: float, cost: float, digits: int = DIGITS) -> tuple[float, bool]:
    """How far the bound is above the exact value, as a share of it, never below; and whether it is certified."""
    with mpmath.workdps(digits):
        value = task.value(arrivals, rho, cost)
        bound = nl.upper_bound(task.problem(arrivals, rho, cost))
        over = (mpf(bound.value) - value) / abs(value)
        assert over >= 0, (task, arrivals, rho, cost, bound.value, mp.nstr(value, 20))
        return float(over), bound.certified


def check(task: ExactTask, arrivals: int, rho: float, cost: float) -> None:
    """Bound >= value, certified, and not far above it."""
    over, certified = excess(task, arrivals, rho, cost)
    assert certified and over <= EXCESS, (task, arrivals, rho, cost, over)


def money(*rows: tuple[float, ...], abstain: float | None = None) -> nl.rewards.Utility:
    return nl.rewards.Utility(rows, abstain)


def test_rare_and_costly_mistakes() -> None:
    check(ExactTask(nl.priors.OneCoin(0.999999999999, 0.9), 0.5, money((-1.0, -1.0), (-1e12, 0.0))), 1, 0.25, 0.0)
    check(ExactTask(nl.priors.OneCoin(1 - 1e-6, 0.999), 0.5, money((-1.0, -1.0), (-1e7, 0.0))), 4, 0.25, 0.0)


def random_task(rng: np.random.Generator) -> ExactTask:
    """A task whose truths have probabilities down to 1e-12 and whose mistakes cost up to 1e12."""
    rare, dear = 10.0 ** -rng.uniform(3, 12), 10.0 ** rng.uniform(3, 12)
    kind = rng.integers(4)
    threshold = 0.5
    prior: nl.priors.Prior
    if kind == 0:
        prior = nl.priors.OneCoin(rare if rng.random() < 0.5 else 1 - rare, float(rng.uniform(0.55, 0.999)))
    elif kind == 1:
        prior, threshold = nl.Beta(*10.0 ** rng.uniform(-0.5, 1.3, 2)), float(rng.choice([rare, 1 - rare, 0.1, 0.9]))
    elif kind == 2:
        parts = tuple(nl.Beta(*10.0 ** rng.uniform(-0.5, 1.3, 2)) for _ in range(2))
        prior, threshold = nl.priors.BetaMixture((rare, 1 - rare), parts), float(rng.choice([rare, 0.5, 0.9]))
    else:
        prior = nl.priors.Histogram((0.0, 0.3, 0.5, 0.9, 1.0), (0.2, 0.1, rare, 0.3))
    low, high = -dear * rng.uniform(0.5, 2), rng.uniform(0, 1)
    rows = (
        [(high, low), (rng.uniform(-1, 0), high)] if rng.random() < 0.5 else [(high, rng.uniform(-1, 0)), (low, high)]
    )
    if rng.random() < 0.3:
        rows.append((-0.1, -0.1))
    return ExactTask(prior, threshold, nl.rewards.Utility(tuple((float(x), float(y)) for x, y in rows)))


@pytest.mark.parametrize("block", [*range(4), *(pytest.param(k, marks=pytest.mark.long) for k in range(4, 10))])
@pytest.mark.no_cover
def test_a_thousand_random_tasks(block: int) -> None:
    rng = np.random.default_rng(block)
    for _ in range(100):
        task, arrivals = random_task(rng), int(rng.integers(1, 5))
        with mpmath.workdps(30):
            scale = float(abs(task.value(0, 1.0, 0.0)))
        cost = float(rng.choice([0.0, 1e-3, 0.1])) * scale
        check(task, arrivals, float(10.0 ** rng.uniform(-1, 1)), cost)


# ------------------------------------------------------------------ every prior with every reward


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.no_cover
def test_every_prior_with_every_reward(kind: str, reward: str) -> None:
    """Without a horizon and with one; free labels, dear ones."""
    rng = np.random.default_rng([KINDS.index(kind), REWARDS.index(reward)])
    for _ in range(1 if kind in ("dirichlet", "logit-normal") else 3):
        prior, d = random_prior(rng, kind)
        task = ExactTask(prior, d, random_reward(rng, prior, reward))
        U, rho = int(rng.integers(1, 4)), float(10.0 ** rng.uniform(-1, 1))
        cost = float(rng.choice([0.0, 1e-3, 0.1])) * task.stake
        over, certified = excess(task, U, rho, cost)
        # A variance is a difference of probabilities: where it is tiny, the error budget says that it has few digits.
        assert certified or reward == "squared-error"
        assert over <= EXCESS or not certified
        mu = float(10.0 ** rng.uniform(-1, 3))
        problem = replace(task.problem(U, rho, cost), arrival_rate=rho, completion_rate=mu, horizon=5.0)
        best = optimum([task], U, [(0.0, rho)], mu, 5.0, cost)
        bound = nl.upper_bound(problem).value
        assert -1e-13 <= (bound - best) / abs(best) <= 1e-4, problem


@pytest.mark.parametrize("weights", [(1e5, 1.0001e5, 1.0002e5), (2.0, 1e5, 0.99e5)])
def test_a_dirichlet_prior_of_large_weights(weights: tuple[float, ...]) -> None:
    task = ExactTask(nl.priors.Dirichlet(weights), 0.5, nl.rewards.Accuracy())
    over, certified = excess(task, 2, 0.25, 0.0, digits=25)
    assert certified and over <= 1e-10


# ------------------------------------------------------------------ finite horizons, from slow labels to immediate ones


@pytest.mark.parametrize("r", [0.1, 1.0])
@pytest.mark.parametrize("mu", [0.01, 1.0, 1e3, 1e5])
@pytest.mark.parametrize(("K", "U"), [(1, 1), (10, 12)])
def test_any_horizon(K: int, U: int, mu: float, r: float) -> None:
    """Never above the bound of a longer horizon, or of none; never below the closed form; both sides close."""
    longest = nl.upper_bound(nl.Problem.identical(K, U, arrival_rate=r, completion_rate=mu)).value
    before = 0.0
    for completions in (1.0, 10.0, 1e2, 1e4, 1e7):
        T = completions / mu
        bound = nl.upper_bound(nl.Problem.identical(K, U, arrival_rate=r, completion_rate=mu, horizon=T))
        assert bound.certified and bound.gap <= 1e-3 * bound.value, (T, bound)
        assert before - 1e-7 * before <= bound.value <= longest * (1 + 1e-11), (T, bound)
        if K == 1:
            exact = one_label(r, mu, T)
            assert exact - 1e-15 <= bound.value <= exact * (1 + 1e-4), (T, bound)
        before = bound.value


def test_any_horizon_of_a_large_campaign() -> None:
    """K = 1000, U = 1200, fast labels."""

    def bound(horizon: float) -> nl.results.Bound:
        return nl.upper_bound(
            nl.Problem.identical(1000, 1200, arrival_rate=100.0, completion_rate=1e3, horizon=horizon)
        )

    longest, before = bound(math.inf).value, 0.0
    for completions in (1.0, 10.0, 1e2, 1e5, 1e7):
        found = bound(completions / 1e3)
        assert found.certified and found.gap <= 1e-3 * found.value
        assert before <= found.value <= longest * (1 + 1e-11)
        before = found.value


def test_random_horizons_against_an_ordinary_differential_equation() -> None:
    """One task: its optimum is that of the differential equation, integrated by SciPy to 1e-11."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        U, mu, r = int(rng.integers(1, 5)), float(10.0 ** rng.uniform(-1, 1)), float(10.0 ** rng.uniform(-1, 1))
        T = float(10.0 ** rng.uniform(-0.5, 1.5))
        alpha, beta = (float(x) for x in 10.0 ** rng.uniform(-0.3, 0.9, 2))
        d = float(rng.uniform(0.3, 0.7))
        exact = Finite(Task(alpha, beta, d, r, mu), [0.0] * U, T)(0, 0, 0, U)
        problem = nl.Problem.identical(
            1, U, prior=nl.Beta(alpha, beta), threshold=d, arrival_rate=r, completion_rate=mu, horizon=T
        )
        bound = nl.upper_bound(problem).value
        assert exact - 1e-9 <= bound <= exact * (1 + 1e-4), (problem, bound, exact)
