"""bound >= exact optimum >= exact value of the index policy, over random small problems."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.model.problem import Problem
from nextlabel.policies.exact_value import policy_value
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.index import index_table
from strategies import random_problem

#: T infinite: everything is exact up to rounding and the settled rows.
SLACK = 1e-8
BATCH = 10


def cuts(rng: np.random.Generator, problem: Problem) -> dict[str, int | None]:
    """Caps below the budget as often as not."""
    if rng.random() < 0.3:
        return {"cap": None, "flight": None}
    cap = int(rng.integers(1, problem.budget + 1))
    return {"cap": cap, "flight": int(rng.integers(1, cap + 1))}


@pytest.mark.parametrize("batch", range(24))
@pytest.mark.no_cover
def test_infinite_horizon(batch: int) -> None:
    for number in range(BATCH):
        rng = np.random.default_rng([10, batch, number])
        problem = random_problem(rng, tasks=4, budget=6)
        cut = cuts(rng, problem)
        best = exact_value(problem)
        bound = upper_bound(problem, **cut)
        assert bound.value >= best.value - SLACK, (problem, cut)
        if number % 2:
            each = upper_bound(problem, "per-arrival", **cut)
            assert bound.value + SLACK >= each.value >= best.value - SLACK, (problem, cut)
        policy = policy_value(problem, index_table(problem, **cut).policy_index)
        assert best.value >= policy.value - SLACK, (problem, cut)
        assert policy.value >= sum(c.count * float(c.lattice(0).reward[0]) for c in problem.classes) - SLACK


@pytest.mark.parametrize("batch", [*range(3), *(pytest.param(k, marks=pytest.mark.long) for k in range(3, 12))])
@pytest.mark.no_cover
def test_finite_horizon(batch: int) -> None:
    for number in range(5):
        rng = np.random.default_rng([11, batch, number])
        problem = random_problem(rng, tasks=3, budget=4, horizon=True)
        cut = cuts(rng, problem)
        best = exact_value(problem)
        assert best.error <= 1e-7
        bound = upper_bound(problem, **cut)
        assert bound.value >= best.value - best.error - SLACK, (problem, cut)
        if number == 0:
            each = upper_bound(problem, "per-arrival", **cut)
            assert each.value >= best.value - best.error - SLACK, (problem, cut)
        if number < 3:
            table = index_table(problem, tolerance=1e-3, **cut)
            policy = policy_value(problem, table.policy_index)
            assert best.value >= policy.value - best.error - policy.error - SLACK, (problem, cut)
