"""Plans that know a deadline: the policy ``auto``, budget by budget, and bounds that count labels as lost."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.errors import InputError
from nextlabel.model.problem import Problem
from nextlabel.planning import plan as plan_module
from nextlabel.planning.plan import plan, plan_bounds
from nextlabel.planning.report import assumptions, curve_rows, sentences
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.curve import bound_curve

#: Workers for 60 labels come within three lifetimes of one.
SHORT = Problem.identical(20, 1, arrival_rate=2.0, completion_rate=0.1, horizon=30.0)


@pytest.fixture(autouse=True)
def few_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "AUTO_POINTS", 3)
    monkeypatch.setattr(plan_module, "SOLVED", (1.0,))


def test_the_curve_of_auto_is_that_of_its_campaigns() -> None:
    found = plan(SHORT, most=60, replications=30, seed=3)
    assert found.policy == "auto" and list(found.budgets) == [0, 20, 40, 60]
    patient = upper_bound(Problem.identical(20, 60))  # any bound will do: means are compared
    alone = simulate(SHORT.with_budget(60), ["auto"], replications=30, seed=3, bound=patient)
    assert found.simulated[-1] == pytest.approx(alone.results[0].per_task.mean, abs=1e-12)
    assert found.value[0] == 0.5 and np.all(found.value <= found.bound + 1e-9)
    assert "auto" in curve_rows(found)[1]
    assert any("The auto policy decides" in line for line in assumptions(found))
    assert not any("without a deadline" in line for line in assumptions(found))
    assert "labels are in or out" in " ".join(sentences(found))


def test_labels_that_are_lost_are_not_in_the_bound() -> None:
    timed, counted = plan_bounds(SHORT.with_budget(90)), bound_curve(SHORT.with_budget(90))
    budgets = np.array([0, 20, 40, 60, 80])
    assert np.all(timed.value(budgets) <= counted.value(budgets) + 1e-12)
    assert timed.value(budgets)[3] < counted.value(budgets)[3] - 0.03
    assert np.all(np.diff(timed.value(budgets)) >= -1e-9) and np.all(timed.price(budgets) >= 0)
    reachable = float(timed.value(np.array([40]))[0])
    needed = timed.budget_for(reachable - 1e-6)
    assert needed is not None and 38 <= needed <= 40
    best = float(counted.value(np.array([90]))[0])
    assert counted.budget_for(best - 1e-3) is not None and timed.budget_for(best - 1e-3) is None


def test_with_money_auto_may_stop() -> None:
    found = plan(SHORT, most=40, label_cost=0.05, value=2.0, replications=10)
    assert found.money is not None and 0 < found.money.stopping_labels <= 40
    assert found.money.stopping_net <= found.money.most_net


def test_without_a_deadline_auto_is_for_those_who_ask() -> None:
    problem = Problem.identical(12, 1)
    assert plan(problem, most=40, replications=5).policy == "index"
    assert plan(problem, most=40, replications=5, policy="auto").policy == "auto"
    with pytest.raises(InputError, match="does not know the policy 'okg'"):
        plan(problem, most=40, policy="okg")
