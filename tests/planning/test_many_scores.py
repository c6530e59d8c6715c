"""Plans of tasks with a model's score each: the curve against other engines, samples, and the sums over all tasks."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.model.problem import Problem
from nextlabel.model.tasks import score_classes
from nextlabel.planning.plan import plan
from nextlabel.policies.registry import make_policy
from nextlabel.simulation import curve as curve_module
from nextlabel.simulation import ranked_tasks
from nextlabel.simulation.curve import sample_tasks, value_curve
from nextlabel.simulation.ranked_tasks import RankedCampaigns
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.curve import bound_curve, ceiling_value, overlap_values
from tolerances import ROUNDING

BOTH = ({"strength": 4.0}, {"accuracy": 0.8})


def scored_problem(shared: dict[str, float], many: int, **rest: float) -> Problem:
    scores = np.sort(np.clip(np.random.default_rng(3).beta(1.2, 0.8, many), 1e-3, 1 - 1e-3))
    return Problem(score_classes(scores, **shared), 3 * many, **rest)


@pytest.mark.parametrize("rest", [{"arrival_rate": 4.0}, {"arrival_rate": 0.5, "horizon": 60.0}])
@pytest.mark.parametrize("shared", BOTH)
def test_every_budget_has_the_value_that_the_other_engine_finds(
    shared: dict[str, float], rest: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = scored_problem(shared, 12, **rest)
    budgets = [0, 5, 12, 30]
    groups = value_curve(problem, "uniform", budgets, replications=300)
    monkeypatch.setattr(curve_module, "FEW_CLASSES", 1)
    tables = value_curve(problem, "uniform", budgets, replications=300)
    monkeypatch.setattr(ranked_tasks, "GRID", 3)
    own = value_curve(problem, "uniform", budgets, replications=300)
    assert own.sample == pytest.approx(tables.sample, abs=1e-10)
    off = np.sqrt(groups.half_width**2 + own.half_width**2)
    assert (np.abs(own.mean - groups.mean) <= 2 * off + 1e-12).all()
    assert own.labels_used == pytest.approx(groups.labels_used, abs=1.0)


def test_a_curve_ends_where_its_campaign_ends() -> None:
    problem = scored_problem({"strength": 2.0}, 80, arrival_rate=3.0)
    ends = RankedCampaigns.over_budgets(problem, make_policy("index"), [10, 240]).play(4, 0, 2)[0]
    again = RankedCampaigns.over_budgets(problem, make_policy("index"), [240]).play(4, 0, 2)[0]
    assert (ends[:, 1] == again[:, 0]).all()
    assert (ends[:, :, 1] == [10, 240]).all()
    assert (ends[:, 1, 0] > ends[:, 0, 0]).all()


def test_a_sample_is_the_campaign_in_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_module, "SAMPLED_TASKS", 100)
    problem = scored_problem({"strength": 4.0}, 1000)
    few, step = sample_tasks(problem)
    assert step == 10
    assert (few.tasks, few.budget, few.arrival_rate) == (100, 300, pytest.approx(0.01))
    assert overlap_values(few, np.array([0, 3])) == pytest.approx(overlap_values(problem, np.array([0, 3])), abs=2e-3)
    mixed, step = sample_tasks(Problem(tuple(problem.classes), 3000))
    assert mixed.classes == few.classes and step == 10
    assert sample_tasks(scored_problem({"strength": 4.0}, 150))[1] == 1


def test_a_plan_of_many_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_module, "SAMPLED_TASKS", 150)
    problem = scored_problem({"accuracy": 0.8}, 300)
    found = plan(problem, target=0.93, most=900, label_cost=0.05, replications=30)
    assert found.sample == 2
    assert found.needed is not None and found.needed_by_any is not None
    assert found.needed_by_any <= found.needed < 900
    assert (found.value <= found.bound + ROUNDING).all()
    assert found.money is not None and found.money.stopping_labels < 900
    assert "One in 2 tasks was simulated" in str(found)


@pytest.mark.parametrize("shared", BOTH)
def test_sums_over_all_tasks_are_those_of_each_class(shared: dict[str, float]) -> None:
    problem = scored_problem(shared, 70)
    labels = np.array([0, 1, 3])
    alone = [overlap_values(Problem((entry,), 1), labels) for entry in problem.classes]
    assert overlap_values(problem, labels) == pytest.approx(np.mean(alone, axis=0), abs=ROUNDING)
    assert overlap_values(Problem(tuple(problem.classes), 1), labels) == pytest.approx(
        np.mean(alone, axis=0), abs=ROUNDING
    )
    assert ceiling_value(problem) == pytest.approx(1.0)


@pytest.mark.parametrize("shared", BOTH)
def test_the_curve_of_bounds_is_grouped_from_above(shared: dict[str, float]) -> None:
    problem = scored_problem(shared, 300)
    found = bound_curve(problem).value(np.array([problem.budget]))[0]
    alone = upper_bound(problem).per_task
    assert alone - 1e-9 <= found <= alone * (1 + 5e-4)
