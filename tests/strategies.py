"""Random small problems: for Hypothesis, and the same in a seeded loop."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from nextlabel.model.beta import Beta
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from oracles import Task

weights = st.sampled_from([0.3, 0.5, 1.0, 1.0, 1.3, 2.0, 3.5, 6.0]) | st.floats(0.2, 8.0)
thresholds = st.sampled_from([0.5, 0.5, 0.3, 0.62]) | st.floats(0.1, 0.9)
rates = st.floats(0.05, 8.0)
tasks = st.builds(Task, weights, weights, thresholds, rates, st.floats(0.1, 2.0))
prices = st.sampled_from([0.0, 0.01, 0.046875]) | st.floats(0.0, 0.3)


def problem_of(task: Task, budget: int, horizon: float = math.inf, count: int = 1) -> Problem:
    """``count`` tasks like the oracle's one."""
    one = TaskClass(count, Beta(task.alpha, task.beta), task.d)
    return Problem((one,), budget, task.r, task.mu, horizon)


def oracle_tasks(problem: Problem) -> list[tuple[int, Task]]:
    """(count, oracle's task) of every class."""
    r, mu = problem.arrival_rate, problem.completion_rate
    return [(c.count, Task(c.prior.alpha, c.prior.beta, c.threshold, r, mu)) for c in problem.classes]


def random_problem(rng: np.random.Generator, tasks: int, budget: int, horizon: bool = False) -> Problem:
    """At most ``tasks`` tasks in up to three classes, at most ``budget`` arrivals."""
    left = int(rng.integers(1, tasks + 1))
    classes: list[TaskClass] = []
    while left:
        count = left if len(classes) == 2 else int(rng.integers(1, left + 1))
        prior = Beta(1, 1) if rng.random() < 0.3 else Beta(*np.exp(rng.uniform(-1.2, 2.0, 2)))
        classes.append(TaskClass(count, prior, float(rng.choice([0.5, 0.5, rng.uniform(0.15, 0.85)]))))
        left -= count
    r, mu = float(np.exp(rng.uniform(-3, 2))), float(np.exp(rng.uniform(-2, 1)))
    T = math.inf
    if horizon:  # a few arrivals, and not a hundred times as long as a label takes
        T = min(float(np.exp(rng.uniform(-1, 2)) / r), 25 / mu)
    return Problem(tuple(classes), int(rng.integers(1, budget + 1)), r, mu, T)
