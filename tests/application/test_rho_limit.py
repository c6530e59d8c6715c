"""What it costs that tables are for at most MOST_RHO labels in flight (docs/decisions/0039)."""

from __future__ import annotations

import pytest

from nextlabel.campaign.rates import MOST_RHO
from nextlabel.model.problem import Problem
from nextlabel.policies.index import Index, solve_table
from nextlabel.simulation.study import simulate


@pytest.mark.parametrize(
    ("tasks", "rho", "most"),
    [
        (100, 64.0, 0.0025),  # -0.0010 by the decision's table; two labels in flight for three tasks
        pytest.param(300, 64.0, 0.0007, marks=pytest.mark.long),  # 0.0000; one for five
    ],
)
def test_the_limit_costs_no_more_than_is_stated(tasks: int, rho: float, most: float) -> None:
    own, limited = (Problem.identical(tasks, 3 * tasks, arrival_rate=r, completion_rate=1.0) for r in (rho, MOST_RHO))
    rules = [Index(solve_table(limited), name="limit"), Index(solve_table(own), name="own")]
    study = simulate(own, rules, replications=200, seed=0)
    loss = study.difference("own", "limit")
    assert loss.mean < most and loss.half_width < most
