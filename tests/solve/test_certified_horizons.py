"""Random finite horizons against an oracle that shares no code with the solver: no bound is below the optimum.

The oracle (``exact_horizons``) writes out every joint state of one or two tasks. Rewards and chances are those of
``exact_tasks``, so that not even a probability comes from the library. The suite runs some of the problems; all of them
are run by ``make test-long``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

import nextlabel as nl
from exact_horizons import one_label, optimum
from exact_tasks import ExactTask
from oracles import Finite, Task, joint_optimum
from random_tasks import random_reward

#: What the oracle itself may be off by, as a share of what is at stake.
ORACLE = 1e-13
PROBLEMS, SOME = 2000, 60
BLOCKS = 20


class Case(NamedTuple):
    """A problem, for the oracle and for the library."""

    tasks: list[ExactTask]
    budget: int
    pieces: tuple[tuple[float, float], ...]
    mu: float
    T: float
    cost: float

    def problem(self) -> nl.Problem:
        classes = tuple(nl.TaskClass(1, task.prior, task.threshold, task.reward) for task in self.tasks)
        rate = self.pieces[0][1] if len(self.pieces) == 1 else nl.PiecewiseRate(self.pieces)
        return nl.Problem(
            classes, self.budget, arrival_rate=rate, completion_rate=self.mu, horizon=self.T, label_cost=self.cost
        )

    def margin(self) -> float:
        """How far the bound is above the optimum, as a share of the bound or of what is at stake, whichever is more."""
        best = optimum(self.tasks, self.budget, self.pieces, self.mu, self.T, self.cost)
        bound = nl.upper_bound(self.problem()).value
        return (bound - best) / max(abs(best), sum(abs(task.stake) for task in self.tasks))


def random_case(rng: np.random.Generator) -> Case:
    """One or two tasks, up to three arrivals, rates and horizons over many orders, pieces, costs, utilities."""
    K, U = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    tasks = []
    for _ in range(K):
        prior, d = _prior(rng)
        tasks.append(ExactTask(prior, d, random_reward(rng, prior)))
    if K == 2 and rng.random() < 0.3:
        tasks[1] = tasks[0]
    arrivals, completions = 10.0 ** rng.uniform(-1, 2.5), 10.0 ** rng.uniform(-1, 7)  # expected within the horizon
    T = float(10.0 ** rng.uniform(-2, 3))
    r, mu = arrivals / T, completions / T
    pieces: tuple[tuple[float, float], ...] = ((0.0, r),)
    if rng.random() < 0.4:
        starts = np.sort(rng.uniform(0.02, 0.98, int(rng.integers(1, 4)))) * T
        rates = r * np.where(rng.random(len(starts) + 1) < 0.2, 0.0, 10.0 ** rng.uniform(-1, 0.5, len(starts) + 1))
        rates[0] = max(rates[0], 0.1 * r)
        pieces = tuple(zip([0.0, *starts.tolist()], rates.tolist(), strict=True))
    cost = float(rng.choice([0.0, 0.01, 0.1])) * min(task.stake for task in tasks)
    return Case(tasks, U, pieces, float(mu), T, cost)


def _prior(rng: np.random.Generator) -> tuple[nl.priors.Prior, float]:
    kind = rng.integers(3)
    if kind == 0:
        return nl.priors.OneCoin(float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.55, 0.99))), 0.5
    if kind == 1:
        parts = tuple(nl.Beta(*10.0 ** rng.uniform(-0.5, 1, 2)) for _ in range(2))
        return nl.priors.BetaMixture((0.3, 0.7), parts), 0.5
    return nl.Beta(*10.0 ** rng.uniform(-0.5, 1, 2)), float(rng.choice([0.5, rng.uniform(0.2, 0.8)]))


def least_margin(block: int, count: int) -> tuple[float, Case]:
    """The smallest margin of ``count`` problems."""
    rng = np.random.default_rng([13, block])
    return min(((case.margin(), case) for case in (random_case(rng) for _ in range(count))), key=lambda found: found[0])


@pytest.mark.parametrize("block", range(2))
def test_theory_theorem_1_no_bound_is_below_the_optimum(block: int) -> None:
    least, case = least_margin(block, SOME // 2)
    assert least >= -ORACLE, case


@pytest.mark.long
@pytest.mark.parametrize("block", range(BLOCKS))
def test_two_thousand_horizons(block: int) -> None:
    least, case = least_margin(block, PROBLEMS // BLOCKS)
    print(f"smallest margin of block {block}: {least:.2e}")
    assert least >= -ORACLE, case


# ------------------------------------------------------------------ the oracle itself

FAIR = ExactTask(nl.Beta(1, 1), 0.5, nl.rewards.Accuracy())


@pytest.mark.parametrize(("r", "mu", "T"), [(0.1, 0.4, 3.0), (1.0, 1e3, 10.0), (0.1, 1e5, 100.0), (3.0, 0.01, 2.0)])
def test_the_oracle_has_the_closed_form_of_one_label(r: float, mu: float, T: float) -> None:
    assert math.isclose(optimum([FAIR], 1, [(0.0, r)], mu, T), one_label(r, mu, T), rel_tol=1e-12)


def test_the_oracle_agrees_with_an_ordinary_differential_equation() -> None:
    """SciPy's integrator, to its accuracy; a cost, so that the best decision changes in time, and jumps of the rate."""
    pieces = [(0.0, 1.0), (4.0, 0.2), (7.0, 3.0)]
    slow = Finite(Task(2.0, 1.3, 0.6, 1.0, 0.4), [0.05] * 3, 10.0, pieces=pieces)(0, 0, 0, 3)
    task = ExactTask(nl.Beta(2.0, 1.3), 0.6, nl.rewards.Accuracy())
    assert optimum([task], 3, pieces, 0.4, 10.0, 0.05) == pytest.approx(slow, abs=1e-10)
    both = joint_optimum(Task(r=1.0), 2, 3, [(0.0, 1.0)], 10.0)
    assert optimum([FAIR, FAIR], 3, [(0.0, 1.0)], 0.4, 10.0) == pytest.approx(both, abs=1e-10)
