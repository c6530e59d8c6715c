"""Tasks with a model's score each: ranked by a grid of priors, answered and rewarded by their own."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.arrays import Floats
from nextlabel.kernels.no_delay import new_workspace
from nextlabel.kernels.ranked_tasks import BETA, COIN, OF_CLASS, RankedTasks, first_answer, task_score
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy, Reward, SquaredError, Utility
from nextlabel.model.tasks import score_classes
from nextlabel.policies.index import Index
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import DEPTHS, affordable_limits
from nextlabel.simulation import ranked_tasks
from nextlabel.simulation.ranked_tasks import RankedCampaigns, ranked_tables
from nextlabel.simulation.study import simulate
from tolerances import ROUNDING

BOTH = ({"strength": 4.0}, {"accuracy": 0.8})


def scored_problem(shared: dict[str, float], many: int = 120, reward: Reward | None = None, **rest: float) -> Problem:
    scores = np.sort(np.clip(np.random.default_rng(3).beta(1.2, 0.8, many), 1e-3, 1 - 1e-3))
    return Problem(score_classes(scores, **shared, reward=reward), 3 * many, **rest)


@pytest.mark.parametrize("shared", [*BOTH, {"accuracy": 1.0}])
@pytest.mark.parametrize("reward", [Accuracy(), SquaredError(), Utility(((1.0, -3.0), (0.0, 1.0)))])
def test_answers_and_rewards_are_those_of_the_own_prior(
    shared: dict[str, float], reward: Reward, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = scored_problem(shared, reward=reward)
    uniform = make_policy("uniform")  # by labels alone, so that the grid does not change whom it serves
    own = RankedCampaigns(problem, ranked_tables(problem, uniform, most_labels=12)).play(5, 0, 3)[0]
    monkeypatch.setattr(ranked_tasks, "GRID", 7)
    tasks = ranked_tables(problem, uniform, most_labels=12)
    assert tasks.law == (BETA if "strength" in shared else COIN)
    assert len(tasks.facts) == 8
    assert RankedCampaigns(problem, tasks).play(5, 0, 3)[0] == pytest.approx(own, rel=1e-10)


@pytest.mark.parametrize("shared", BOTH)
def test_the_chance_of_an_answer_is_that_of_the_lattice(shared: dict[str, float]) -> None:
    problem = scored_problem(shared, 3)
    for entry, (law, own) in zip(problem.classes, own_laws(problem), strict=True):
        lattice = entry.lattice(6)
        for labels in range(6):
            for ones in range(labels + 1):
                wanted = lattice.prob[int(lattice.first[labels]) + ones, 0]
                assert first_answer(law, own, ones, labels) == pytest.approx(wanted, abs=ROUNDING)


def own_laws(problem: Problem) -> list[tuple[int, Floats]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked_tasks, "GRID", 1)
        *_, law, every = ranked_tasks.rank_by(problem)
    return [(law, own) for own in every]


@pytest.mark.parametrize("shared", BOTH)
def test_the_index_by_the_grid_is_close_to_the_own_one(
    shared: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = ranked_tasks.GRID
    problem = scored_problem(shared, 450)
    monkeypatch.setattr(ranked_tasks, "GRID", 450)
    own = ranked_tables(problem, Index(), most_labels=12)
    assert own.law == OF_CLASS
    off = []
    for grid in (50, usual):
        monkeypatch.setattr(ranked_tasks, "GRID", grid)
        tasks = ranked_tables(problem, Index(), most_labels=12)
        off.append(max(abs(index(own, x, m, w) - index(tasks, x, m, w)) for x in range(450) for m, w in STATES))
    assert off[1] < 0.003 < off[0] < 0.03


#: Labels (half of them ones) and labels in flight.
STATES = ((0, 0), (1, 0), (3, 1), (6, 0), (0, 2))


def index(tasks: RankedTasks, x: int, m: int, w: int) -> float:
    room, ahead = new_workspace(int(tasks.first[-1]), 2), np.zeros(int(tasks.first[w + 1]), dtype=np.int64)
    return float(task_score(tasks, x, m, int(tasks.first[m]) + m // 2, w, room, ahead))


@pytest.mark.parametrize("shared", BOTH)
def test_campaigns_ranked_by_the_grid_lose_next_to_nothing(
    shared: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = scored_problem(shared, 300)
    exact = simulate(problem, ["index"], replications=100, seed=2, most_labels=24)
    monkeypatch.setattr(ranked_tasks, "GRID", 60)
    grid = simulate(problem, ["index"], replications=100, seed=2, most_labels=24, bound=exact.bound)
    one, two = exact.results[0], grid.results[0]
    assert two.per_task.mean == pytest.approx(one.per_task.mean, abs=2e-3)
    assert two.labels_used == one.labels_used == 900


def test_the_labels_of_a_task_are_limited_by_room_alone() -> None:
    assert affordable_limits(100, 2, False) == DEPTHS[0]
    assert affordable_limits(401, 2, True) == DEPTHS[0]
    assert affordable_limits(100_000, 2, False)[0] >= 12
    assert affordable_limits(10**7, 2, False) == DEPTHS[-1]
    problem = scored_problem({"strength": 4.0}, 80)
    assert simulate(problem, ["index"], replications=2, most_labels=2).results[0].most_labels == 2
    assert simulate(problem, ["uncertainty"], replications=2, most_labels=40).results[0].most_labels > 12
