"""A core of workers who are alike beside others with rows of their own: climbing, symmetric, nearer to the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labelled_crowds import drawn
from nextlabel.arrays import Floats, Ints
from nextlabel.campaign.crowd_model import CORE_LABELS, new_model
from nextlabel.campaign.rows import rules_from_json, rules_to_json
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.kernels.crowd_core import refit_with_core
from nextlabel.kernels.crowd_state import CrowdState, new_state
from nextlabel.store.sql import open_store

SWEEPS = 60


def fitted(labels: CrowdLabels, gold: Ints | None = None, tolerance: float = 0.0) -> tuple[CrowdState, Floats]:
    """The state after a fit with a core, and the evidence bound of each sweep."""
    prior = CrowdPrior.default(labels.answers)
    state: CrowdState = new_state(labels.tasks, labels.workers, prior.pseudo, prior.share, prior.hold)
    known = np.full(labels.tasks, -1, dtype=np.int64) if gold is None else gold
    bounds = np.zeros(SWEEPS)
    made, _ = refit_with_core(state, *labels[:3], len(labels.task), known, CORE_LABELS, SWEEPS, tolerance, bounds)
    return state, bounds[:made]


def accuracies(state: CrowdState) -> Floats:
    """(W,) mean over the truths of the chance to be right."""
    rows = state.pseudo + state.counts
    return np.asarray((rows / rows.sum(axis=2, keepdims=True)).diagonal(axis1=1, axis2=2).mean(axis=1))


def six_and_a_guesser(seed: int, wrong_way_round: bool = False) -> tuple[CrowdLabels, Ints]:
    """500 items, three answers, six workers who are right 92% of the time, one who guesses; 750 labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 500)
    task = np.concatenate([np.arange(500), rng.choice(500, 250, replace=False)])
    first = rng.integers(0, 7, 500)
    worker = np.concatenate([first, (first[task[500:]] + rng.integers(1, 7, 250)) % 7])
    wrong = (truth[task] + rng.integers(1, 3, 750)) % 3
    answer = np.where(rng.random(750) < 0.92, truth[task], wrong)
    answer = np.where(worker == 6, (truth[task] + 1) % 3 if wrong_way_round else rng.integers(0, 3, 750), answer)
    return CrowdLabels(task, worker, answer, 500, 7, 3), truth


@pytest.mark.parametrize("answers", [3, 4])
def test_the_evidence_bound_never_falls(answers: int) -> None:
    for seed in range(4):
        labels, truth = drawn(seed, tasks=80, workers=30, answers=answers, each=3)
        _, bounds = fitted(labels, np.where(np.arange(labels.tasks) % 9 == 0, truth, -1))
        assert (np.diff(bounds) >= -1e-10 * np.abs(bounds[1:])).all()
        assert bounds[-1] > bounds[0]


def test_permuted_workers_permute_the_fit() -> None:
    labels, _ = drawn(1, tasks=60, workers=12, answers=3, each=3)
    order = np.random.default_rng(0).permutation(labels.workers)
    (one, _), (other, _) = fitted(labels), fitted(labels._replace(worker=order[labels.worker]))
    np.testing.assert_allclose(one.belief, other.belief, atol=1e-10)
    np.testing.assert_allclose(one.counts, other.counts[order], atol=1e-8)


def test_workers_who_are_alike_are_found_so_and_others_for_what_they_are() -> None:
    """Over ten crowds: the good are nearer to 92% than without a core, beliefs too, and the guesser is found."""
    off: dict[str, list[float]] = {"core": [], "rows": []}
    for seed in range(10):
        labels, truth = six_and_a_guesser(seed)
        state, _ = fitted(labels, tolerance=1e-5)
        plain = fit_crowd(labels, prior=replace(CrowdPrior.default(3), hold=60.0))
        found, before = accuracies(state), plain.channels.diagonal(axis1=1, axis2=2).mean(axis=1)
        assert found.argmin() == 6 and found[6] < 0.6
        assert np.abs(found[:6] - 0.92).mean() < np.abs(before[:6] - 0.92).mean()
        for name, beliefs in (("core", state.belief), ("rows", plain.beliefs)):
            off[name].append(-float(np.log(beliefs[np.arange(500), truth]).mean()))
    assert np.mean(off["core"]) < np.mean(off["rows"]) - 0.002


def test_somebody_who_answers_the_wrong_way_round_has_rows_of_their_own() -> None:
    labels, truth = six_and_a_guesser(0, wrong_way_round=True)
    state, _ = fitted(labels)
    rows = state.pseudo + state.counts[6]
    channel = rows / rows.sum(axis=1, keepdims=True)
    assert (channel[range(3), [1, 2, 0]] > 0.6).all()
    assert (state.belief.argmax(axis=1) == truth).mean() > 0.9


@pytest.mark.parametrize(("labels", "core"), [(("a", "b", "c"), CORE_LABELS), (("no", "yes"), 0.0)])
def test_campaigns_say_so_in_their_log(labels: tuple[str, ...], core: float) -> None:
    service = CampaignService(open_store("memory:"))
    row = service.create(CampaignSettings(budget=10, labels=labels), tasks=[{"id": "t"}])
    there = service.store.row(row.id)
    assert there.rules.core == CORE_LABELS == rules_from_json(rules_to_json(there.rules)).core
    with service.store.transaction(row.id) as state:
        assert new_model(state).crowd.prior.core == core
    service.close()
