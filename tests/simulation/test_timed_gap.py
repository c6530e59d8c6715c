"""The martingale gap before a deadline, against exact values of tiny problems; policies at prices by time."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.model.tasks import fresh_groups
from nextlabel.policies.exact_value import policy_value
from nextlabel.policies.lagrangian import planned_by_arrival
from nextlabel.simulation.study import Study, simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
from nextlabel.solve.per_arrival import PriceSolver

TINY = Problem.identical(3, 5, arrival_rate=1.0, completion_rate=0.4, horizon=10.0)
#: Half-widths of a 95% interval that an estimate may be off.
APART = 2.5


def studied(problem: Problem, policies: list[str], replications: int) -> Study:
    """Any bound will do: it drops out of the value."""
    return simulate(problem, policies, replications=replications, bound=upper_bound(Problem.identical(3, 5)))


@pytest.mark.parametrize(
    "problem",
    [
        TINY,
        Problem.identical(
            3, 4, (2, 1), arrival_rate=PiecewiseRate(((0.0, 2.0), (2.0, 0.0), (4.0, 1.0))), completion_rate=0.5,
            horizon=7.0,
        ),
    ],
    ids=["one rate", "a break"],
)  # fmt: skip
def test_theory_theorem_9_bound_less_gap_is_the_exact_value(problem: Problem) -> None:
    """Arrivals stop when the budget is spent, and what is in flight at the deadline is lost."""
    study = studied(problem, ["uniform"], 4000)
    (found,) = study.results
    assert found.gap is not None and found.variance_ratio is not None
    value = study.bound.value - 3 * found.gap.mean
    assert value == pytest.approx(policy_value(problem, "uniform").value, abs=APART * 3 * found.gap.half_width)
    assert found.variance_ratio > 8


def test_rewards_and_gaps_have_one_mean_with_a_cost_too() -> None:
    dear = Problem.identical(3, 5, arrival_rate=1.0, completion_rate=0.4, horizon=10.0, label_cost=0.01)
    study = studied(dear, ["okg-idle", "auto"], 3000)
    for found in study.results:
        both = found.rewards + found.gaps  # its mean is the bound
        error = both.std() / np.sqrt(len(both))
        assert abs(both.mean() - study.bound.value) < 5 * error


def test_lagrangian_and_resolve_know_a_deadline() -> None:
    best = exact_value(TINY).value
    study = studied(TINY, ["lagrangian", "uniform"], 2000)
    lagrangian, uniform = (study.bound.value - 3 * r.gap.mean for r in study.results if r.gap is not None)
    assert uniform < lagrangian < best + 0.003
    again = studied(TINY, ["resolve"], 4).results[0]
    assert again.gap is not None and 3 * again.per_task.mean > 1.5


def test_a_plan_by_batches_is_spread_over_their_arrivals() -> None:
    problem = Problem.identical(100, 300, arrival_rate=10.0, completion_rate=0.1, horizon=25.0)
    plan = PriceSolver(problem, closed=True).solve(fresh_groups(problem.classes), 300)
    planned = planned_by_arrival(plan, 0, 300)
    given = planned.sum(axis=1)
    assert planned.shape[0] == 300 and np.all(np.diff(given) >= -1e-9)
    assert given[249] == pytest.approx(plan.given.sum(), rel=1e-6) and given[299] == given[249]
    assert given[99] == pytest.approx(100, abs=2)
