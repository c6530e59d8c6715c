"""Live campaigns with a model's score for each task: ranked by a grid, believed by their own priors, with no limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nextlabel.campaign import scoring
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.model.beta import Beta
from nextlabel.model.tasks import TaskState, prior_of_score
from states import differences
from stores import Clock, opened, service_of_store, simple

STATES = ((0, TaskState(0, 0)), (3, TaskState(7, 1)), (20, TaskState(20 * 21 // 2 + 9, 0)), (1, TaskState(1, 5)))


@pytest.mark.parametrize(("policy", "within"), [("index", 0.003), ("uncertainty", 0.003), ("okg", 0.003)])
@pytest.mark.parametrize("accuracy", [None, 0.8])
def test_scores_by_the_grid_are_close_to_the_own_ones(policy: str, within: float, accuracy: float | None) -> None:
    config = CampaignSettings(budget=10, labels=("no", "yes"), policy=policy, strength=4.0, accuracy=accuracy)
    moved = 0.0
    for p in np.random.default_rng(1).uniform(0.001, 0.999, 25).tolist():
        prior = prior_of_score(p, None if accuracy else 4.0, accuracy)
        for labels, state in STATES:
            own = scoring.score(config, prior, labels, state)
            by_grid = scoring.score(config, prior, labels, state, by_grid=True)
            assert by_grid == pytest.approx(own, abs=within)
            moved = max(moved, abs(by_grid - own))
    assert moved > 0


def test_other_priors_have_scores_of_their_own() -> None:
    config = CampaignSettings(budget=10, labels=("no", "yes"), policy="index", strength=4.0)
    for prior in (Beta(1, 1), Beta(4 * 0.0005, 4 * 0.9995)):
        fresh = scoring.score(config, prior, 0, TaskState(0, 0))
        assert scoring.score(config, prior, 0, TaskState(0, 0), by_grid=True) == fresh


def test_a_task_is_believed_by_its_own_prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "GRID", 90)
    scores = np.random.default_rng(2).uniform(0.05, 0.95, 240)
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        tasks = [{"id": f"t{k}", "score": float(p)} for k, p in enumerate(scores)]
        id = service.create(simple(900, policy="index", strength=3.0), tasks=tasks).id
        row = store.row(id)
        assert row.ranked and row.classes == 240 > scoring.GRID
        for k in range(40):
            lease = service[id].ask(f"w{k % 7}")
            assert lease
            service[lease.campaign].tell(lease.id, "yes" if k % 3 else "no")
        labelled = 0
        for result, p in zip(service[id].results(), scores, strict=True):
            prior = Beta(3.0 * p, 3.0 * (1.0 - p))
            above = prior.above(0.5, np.array([result.labels]), np.array([result.counts["yes"]]))[0]
            assert result.probability == pytest.approx(max(above, 1 - above), abs=1e-9)
            labelled += result.labels
        assert labelled == 40


def test_a_process_that_was_there_ranks_like_one_that_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more priors than the grid has points, all tasks are ranked by the grid, also those that came before."""
    monkeypatch.setattr(scoring, "GRID", 90)
    scores = np.random.default_rng(3).uniform(0.05, 0.95, 100).tolist()
    tasks = [{"id": f"t{k}", "score": p} for k, p in enumerate(scores)]
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        id = service.create(simple(900, policy="index", strength=3.0), tasks=tasks[:80]).id
        service.add_tasks(id, tasks[80:])
        assert differences(store, id) == []
