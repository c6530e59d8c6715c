"""Money in other units, and time: the same bound, for no search stops by a number that has a unit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Utility
from nextlabel.solve.bound import upper_bound


def priced(factor: float, horizon: float, kind: str) -> tuple[float, float]:
    """Value and gap of a small problem whose rewards and cost are multiplied by ``factor``, per that factor."""
    reward = Utility(((factor, 0.0), (0.0, factor)))
    problem = Problem.identical(
        tasks=3, budget=5, arrival_rate=2.0, label_cost=0.005 * factor, horizon=horizon, reward=reward
    )
    bound = upper_bound(problem, kind)
    assert bound.certified
    return bound.value / factor, bound.gap / factor


@pytest.mark.parametrize("kind", ["scalar", "per-arrival"])
@pytest.mark.parametrize("horizon", [6.0, float("inf")])
@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_money(kind: str, horizon: float, factor: float) -> None:
    value, gap = priced(1.0, horizon, kind)
    scaled, scaled_gap = priced(factor, horizon, kind)
    # Both searches stop within their gaps of one optimum.
    assert scaled == pytest.approx(value, rel=2e-5)
    assert max(gap, scaled_gap) <= 1e-4 * value or kind == "scalar"


@pytest.mark.parametrize("kind", ["scalar", "per-arrival"])
@pytest.mark.parametrize("horizon", [6.0, float("inf")])
@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_time(kind: str, horizon: float, factor: float) -> None:
    problem = Problem.identical(tasks=3, budget=5, arrival_rate=2.0, horizon=horizon)
    scaled = replace(problem, arrival_rate=2.0 / factor, completion_rate=0.4 / factor, horizon=horizon * factor)
    plain, found = upper_bound(problem, kind), upper_bound(scaled, kind)
    assert found.value == pytest.approx(plain.value, rel=2e-5)
    assert max(plain.gap, found.gap) <= 1e-4 * plain.value or kind == "scalar"
