"""'Certified' against arithmetic of 50 digits that shares nothing with the library: no lattice, no lumping, no units.

The oracle works out the value of one task from Bayes' rule in mpmath, for every kind of prior and reward. With one task
a bound and the optimum are the same number, so that the excess of the bound can be measured as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import nextlabel as nl
from oracles import Finite, Task

#: The bound may exceed the value by this share of it.
EXCESS = 1e-6


@dataclass(frozen=True)
class ExactTask:
    """One task in exact arithmetic: moments E[theta^a (1-theta)^b; truth] of its prior, and its utilities."""

    prior: nl.Prior
    threshold: float
    utility: tuple[tuple[float, ...], ...]

    def moment(self, a: int, b: int, truth: int) -> mpf:
        """E[theta^a (1-theta)^b ; truth]."""
        prior, d = self.prior, mpf(self.threshold)
        if isinstance(prior, nl.OneCoin):
            pi, q = mpf(prior.probability), mpf(prior.accuracy)
            return pi * q**a * (1 - q) ** b if truth else (1 - pi) * (1 - q) ** a * q**b
        low, high = (d, mpf(1)) if truth else (mpf(0), d)
        if isinstance(prior, nl.Beta):
            return _beta_moment(mpf(prior.alpha), mpf(prior.beta), a, b, low, high)
        if isinstance(prior, nl.BetaMixture):
            parts = zip(prior.weights, prior.components, strict=True)
            return mp.fsum(
                mpf(v) * _beta_moment(mpf(c.alpha), mpf(c.beta), a, b, low, high) for v, c in parts
            ) / mp.fsum(mpf(v) for v in prior.weights)
        if isinstance(prior, nl.Histogram):
            total = mp.fsum(mpf(v) for v in prior.weights)
            out = mpf(0)
            for lo, hi, v in zip(prior.edges[:-1], prior.edges[1:], prior.weights, strict=True):
                lo_, hi_ = max(mpf(lo), low), min(mpf(hi), high)
                if hi_ > lo_:
                    out += mpf(v) / total / (mpf(hi) - mpf(lo)) * mp.betainc(a + 1, b + 1, lo_, hi_)
            return out
        raise TypeError(type(prior))

    def value(self, arrivals: int, rho: float, cost: float) -> mpf:
        """V(0, 0, 0, arrivals) at price ``cost`` per label, and r / mu = rho."""

        @cache
        def shares(a: int, b: int) -> tuple[mpf, mpf]:
            return self.moment(a, b, 0), self.moment(a, b, 1)

        @cache
        def reward(a: int, b: int) -> mpf:
            zero, one = shares(a, b)
            return max(mpf(row[0]) * zero + mpf(row[1]) * one for row in self.utility) / (zero + one)

        @cache
        def chance(a: int, b: int) -> tuple[mpf, mpf]:
            here = mp.fsum(shares(a, b))
            return mp.fsum(shares(a + 1, b)) / here, mp.fsum(shares(a, b + 1)) / here

        @cache
        def V(a: int, b: int, w: int, n: int) -> mpf:
            if n == 0 and w == 0:
                return reward(a, b)
            comes = mpf(0)
            if w > 0:
                p, q = chance(a, b)
                comes = p * V(a + 1, b, w - 1, n) + q * V(a, b + 1, w - 1, n)
            if n == 0:
                return comes
            rate = mpf(rho) + w
            taken = max(V(a, b, w, n - 1), V(a, b, w + 1, n - 1) - mpf(cost))
            return (mpf(rho) * taken + w * comes) / rate

        return V(0, 0, 0, arrivals)


def _beta_moment(alpha: mpf, beta: mpf, a: int, b: int, low: mpf, high: mpf) -> mpf:
    """Integral of theta^a (1-theta)^b over [low, high] under Beta(alpha, beta)."""
    return mp.betainc(alpha + a, beta + b, low, high) / mp.beta(alpha, beta)


def check(task: ExactTask, arrivals: int, rho: float, cost: float, excess: float = EXCESS) -> None:
    """Bound >= value, and not far above it."""
    with mpmath.workdps(50):
        value = task.value(arrivals, rho, cost)
        one = nl.TaskClass(1, task.prior, task.threshold, nl.Utility(task.utility))
        problem = nl.Problem((one,), arrivals, arrival_rate=0.4 * rho, completion_rate=0.4, label_cost=cost)
        bound = nl.upper_bound(problem)
        over = (mpf(bound.value) - value) / abs(value)
        assert over >= 0, (task, arrivals, rho, cost, bound.value, mp.nstr(value, 20))
        assert over <= excess, (task, arrivals, rho, cost, bound.value, mp.nstr(value, 20))


def test_rare_and_costly_mistakes() -> None:
    check(ExactTask(nl.OneCoin(0.999999999999, 0.9), 0.5, ((-1.0, -1.0), (-1e12, 0.0))), 1, 0.25, 0.0)
    check(ExactTask(nl.OneCoin(1 - 1e-6, 0.999), 0.5, ((-1.0, -1.0), (-1e7, 0.0))), 4, 0.25, 0.0)


def random_task(rng: np.random.Generator) -> ExactTask:
    """A task whose truths have probabilities down to 1e-12 and whose mistakes cost up to 1e12."""
    rare, dear = 10.0 ** -rng.uniform(3, 12), 10.0 ** rng.uniform(3, 12)
    kind = rng.integers(4)
    threshold = 0.5
    prior: nl.Prior
    if kind == 0:
        prior = nl.OneCoin(rare if rng.random() < 0.5 else 1 - rare, float(rng.uniform(0.55, 0.999)))
    elif kind == 1:
        prior, threshold = nl.Beta(*10.0 ** rng.uniform(-0.5, 1.3, 2)), float(rng.choice([rare, 1 - rare, 0.1, 0.9]))
    elif kind == 2:
        parts = tuple(nl.Beta(*10.0 ** rng.uniform(-0.5, 1.3, 2)) for _ in range(2))
        prior, threshold = nl.BetaMixture((rare, 1 - rare), parts), float(rng.choice([rare, 0.5, 0.9]))
    else:
        prior = nl.Histogram((0.0, 0.3, 0.5, 0.9, 1.0), (0.2, 0.1, rare, 0.3))
    low, high = -dear * rng.uniform(0.5, 2), rng.uniform(0, 1)
    rows = (
        [(high, low), (rng.uniform(-1, 0), high)] if rng.random() < 0.5 else [(high, rng.uniform(-1, 0)), (low, high)]
    )
    if rng.random() < 0.3:
        rows.append((-0.1, -0.1))
    return ExactTask(prior, threshold, tuple((float(x), float(y)) for x, y in rows))


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_tasks(block: int) -> None:
    rng = np.random.default_rng(block)
    for _ in range(100):
        task, arrivals = random_task(rng), int(rng.integers(1, 5))
        with mpmath.workdps(30):
            scale = float(abs(task.value(0, 1.0, 0.0)))
        cost = float(rng.choice([0.0, 1e-3, 0.1])) * scale
        check(task, arrivals, float(10.0 ** rng.uniform(-1, 1)), cost)


# ------------------------------------------------------------------ finite horizons, from slow labels to immediate ones


def one_label(r: float, mu: float, T: float) -> float:
    """The optimum of one task and one arrival, Beta(1, 1): 1/2 + P(the label comes in before T) / 4."""
    if r == mu:
        return 0.5 + 0.25 * (1.0 - math.exp(-r * T) * (1.0 + r * T))
    return 0.5 + 0.25 * (1.0 - (mu * math.exp(-r * T) - r * math.exp(-mu * T)) / (mu - r))


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
