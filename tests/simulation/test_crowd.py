"""The simulator with workers who differ: against the bound and the equal-worker results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.arrays import Floats
from nextlabel.errors import InputError
from nextlabel.model.fact import Fact, OneCoin
from nextlabel.model.problem import Problem, WorkerType, one_coin
from nextlabel.model.rewards import Utility
from nextlabel.model.tasks import TaskClass
from nextlabel.simulation.crowd import CrowdCampaigns, CrowdSetting, reference_values, turned_bound
from nextlabel.simulation.engine import Engine

RULES = ["crowd", "crowd-uncertainty", "uniform"]


def crowd(
    tasks: int, budget: int, kinds: Sequence[tuple[float, int]], count: int = 1, prior: Any = 0.5, **rest: Any
) -> Problem:
    fact = Fact(prior) if isinstance(prior, float) else Fact.of(prior)
    workers = tuple(WorkerType(one_coin(a, fact.answers), supply=n, count=count) for a, n in kinds)
    return Problem((TaskClass(tasks, fact),), budget, workers=workers, **rest)


@pytest.mark.slow
def test_crowd_comes_near_the_bound_and_leaves_the_others_behind() -> None:
    problem = crowd(200, 600, [(0.9, 200), (0.75, 400), (0.6, 600)])
    study = nl.simulate(problem, RULES, replications=4, seed=1, turn_away=True)
    gaps = {r.name: r.gap_percent for r in study.results}
    assert all(gap is not None for gap in gaps.values())
    assert gaps["crowd"].mean < 0.6 < 6 < gaps["crowd-uncertainty"].mean < 12 < gaps["uniform"].mean  # type: ignore[union-attr]
    assert all(r.labels_used == 600 for r in study.results)


@pytest.mark.slow
def test_nobody_is_turned_away_unless_it_is_allowed_and_the_bound_knows_it() -> None:
    problem = crowd(100, 300, [(0.9, 100), (0.75, 200), (0.6, 300)])
    study = nl.simulate(problem, ["crowd", "uniform"], replications=4, seed=2)
    assert study.bound.value < nl.upper_bound(problem).value - 1.0
    assert "Nobody is turned away" in study.bound.assumes
    gap = study.result("crowd").gap_percent
    assert gap is not None
    assert -2.0 < gap.mean < 2.5
    setting, out = CrowdSetting.of(problem), np.zeros(7)
    for rule in RULES:
        CrowdCampaigns(setting, rule, False, False, reference_values(setting, False), 0).play(0, out)
        assert out[2] == out[4] == 300  # every arrival was given a label


@pytest.mark.parametrize("learnt", [False, True])
@pytest.mark.parametrize("turn_away", [False, True])
def test_a_worker_gets_a_task_once_and_the_budget_is_kept(learnt: bool, turn_away: bool) -> None:
    problem = crowd(12, 60, [(0.9, 40), (0.6, 60)], count=5, arrival_rate=2.0, completion_rate=0.4)
    setting, out = CrowdSetting.of(problem), np.zeros(7)
    values = reference_values(setting, turn_away)
    for rule in RULES:
        history = CrowdCampaigns(setting, rule, turn_away, learnt, values, 3).play(0, out).campaign.history
        n = int(history.size[0])
        assert n <= 60
        assert len(set(zip(history.task[:n], history.worker[:n], strict=True))) == n
        assert (history.answer[:n] >= 0).all()  # all labels in flight came in


@pytest.mark.no_cover
def test_the_digits_do_not_depend_on_jobs_or_chunks() -> None:
    problem = crowd(12, 30, [(0.9, 20), (0.6, 40)], count=4)
    studies = [
        nl.simulate(problem, RULES, replications=3, seed=4, engine=Engine(jobs=jobs), turn_away=True, channels="learnt")
        for jobs in (1, 2)
    ]
    setting = CrowdSetting.of(problem)
    values = reference_values(setting, True)
    for k, rule in enumerate(RULES):
        assert (studies[0].results[k].rewards == studies[1].results[k].rewards).all()
        out = np.zeros(7)
        CrowdCampaigns(setting, rule, True, True, values, 4).play(2, out)
        assert out[0] == studies[0].results[k].rewards[2]


@pytest.mark.slow
def test_workers_alike_give_the_equal_worker_results() -> None:
    problem = crowd(100, 300, [(0.75, 600)])
    equal = Problem.identical(tasks=100, budget=300, prior=OneCoin(0.5, 0.75))
    ours = nl.simulate(problem, ["crowd"], replications=10, seed=5).results[0]
    theirs = nl.simulate(equal, ["index"], replications=400, seed=5).results[0]
    assert abs(ours.per_task.mean - theirs.per_task.mean) < 3 * ours.per_task.half_width + 0.002
    assert ours.gap_percent is not None
    assert ours.gap_percent.mean < 1.0


@pytest.mark.slow
def test_flipping_every_answer_changes_nothing() -> None:
    kinds = [((0.95, 0.05), (0.5, 0.5)), ((0.6, 0.4), (0.1, 0.9))]

    def problem(flip: bool) -> Problem:
        rows = [tuple(row[::-1] for row in kind[::-1]) if flip else kind for kind in kinds]
        workers = tuple(WorkerType(row, supply=150) for row in rows)
        return Problem((TaskClass(100, Fact(0.7 if flip else 0.3)),), 200, workers=workers)

    one, two = (nl.simulate(problem(f), ["crowd"], replications=6, seed=6, turn_away=True) for f in (False, True))
    assert one.bound.value == pytest.approx(two.bound.value, abs=1e-6)
    a, b = one.results[0].gap_percent, two.results[0].gap_percent
    assert a is not None and b is not None
    assert abs(a.mean - b.mean) < 2 * (a.half_width + b.half_width)


@pytest.mark.slow
def test_more_than_two_answers() -> None:
    problem = crowd(60, 180, [(0.9, 60), (0.6, 120), (0.34, 200)], prior=[0.4, 0.3, 0.3])
    study = nl.simulate(problem, RULES, replications=3, seed=7, turn_away=True)
    means = {r.name: r.per_task.mean for r in study.results}
    assert means["crowd"] > means["crowd-uncertainty"] > means["uniform"]
    assert means["crowd"] < study.bound.per_task


def test_workers_who_come_at_rates_until_a_horizon() -> None:
    workers = (
        WorkerType(one_coin(0.9), arrival_rate=2.0),
        WorkerType(one_coin(0.6), arrival_rate=8.0, cost=0.01),
    )
    problem = Problem((TaskClass(20, Fact(0.5)),), 75, completion_rate=50.0, horizon=10.0, workers=workers)
    study = nl.simulate(problem, RULES, replications=4, seed=8, turn_away=True)
    best = study.result("crowd")
    assert best.per_task.mean <= study.bound.per_task + best.per_task.half_width
    assert best.per_task.mean > study.result("uniform").per_task.mean
    assert best.labels_used <= 75


@pytest.mark.slow
def test_channels_drawn_from_a_prior() -> None:
    workers = (WorkerType(prior=((6.0, 2.0), (2.0, 6.0)), supply=100, count=8),)
    problem = Problem((TaskClass(20, Fact(0.5)),), 60, workers=workers)
    setting = CrowdSetting.of(problem)
    assert len(np.unique(setting.channels(0, 0)[:, 0, 0])) == 8
    study = nl.simulate(problem, ["crowd", "uniform"], replications=2, seed=9, channels="learnt", turn_away=True)
    assert study.result("crowd").per_task.mean < study.bound.per_task


def rewards(problem: Problem, learnt: bool) -> Floats:
    study = nl.simulate(
        problem, ["crowd"], replications=3, seed=11, turn_away=True, channels="learnt" if learnt else "known"
    )
    return study.results[0].rewards


@pytest.mark.long
def test_knowing_the_workers_helps() -> None:
    problem = crowd(90, 270, [(0.9, 90), (0.75, 180), (0.6, 270)], count=10)
    assert rewards(problem, False).mean() > rewards(problem, True).mean() > 0.8 * 90


def test_the_bound_without_turning_away_is_left_alone_where_a_worker_may_pass() -> None:
    problem = crowd(3, 6, [(0.9, 10), (0.6, 10)], count=2)
    assert turned_bound(problem, False).value == nl.upper_bound(problem).value


def test_bad_input() -> None:
    problem = crowd(5, 6, [(0.9, 10)])
    with pytest.raises(InputError, match="'index' takes workers to be alike"):
        nl.simulate(problem, ["index"], replications=1)
    with pytest.raises(InputError, match="crowd is for workers who differ"):
        nl.simulate(Problem.identical(tasks=2, budget=2), ["crowd"], replications=1)
    with pytest.raises(InputError, match="channels 'guessed' is not known"):
        nl.simulate(problem, ["crowd"], replications=1, channels="guessed")
    with pytest.raises(InputError, match="this one has none"):
        nl.simulate(Problem.identical(tasks=2, budget=2), ["index"], replications=1, turn_away=True)
    with pytest.raises(InputError, match="every label is waited for"):
        nl.simulate(problem, ["crowd"], replications=1, pending="discard")
    utility = Problem((TaskClass(5, Fact(0.5), reward=Utility(((1.0, -5.0), (0.0, 1.0)))),), 6, workers=problem.workers)
    with pytest.raises(InputError, match="know one reward"):
        nl.simulate(utility, ["crowd"], replications=1)
