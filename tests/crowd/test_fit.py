"""Channels and truths learnt together: against an exact posterior, symmetric, climbing, safe against collapse."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelled_crowds import drawn, recorded, right
from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError


def exact(labels: CrowdLabels, gold: Ints, prior: CrowdPrior) -> tuple[Floats, float]:
    """Beliefs and log evidence by enumeration of all truths, channels and shares integrated out."""

    def log_beta(weights: Floats) -> float:
        return sum(math.lgamma(a) for a in weights) - math.lgamma(sum(weights))

    C = labels.answers
    logs, found = [], []
    for truths in itertools.product(*[range(C) if known < 0 else [known] for known in gold]):
        z = np.array(truths)
        value = log_beta(prior.share + np.bincount(z, minlength=C)) - log_beta(prior.share)
        for j in range(labels.workers):
            for c in range(C):
                mine = labels.answer[(labels.worker == j) & (z[labels.task] == c)]
                value += log_beta(prior.pseudo[c] + np.bincount(mine, minlength=C)) - log_beta(prior.pseudo[c])
        logs.append(value)
        found.append(z)
    weights = np.exp(np.array(logs) - max(logs))
    beliefs = np.zeros((labels.tasks, C))
    for weight, z in zip(weights / weights.sum(), found, strict=True):
        beliefs[np.arange(labels.tasks), z] += weight
    return beliefs, max(logs) + float(np.log(weights.sum()))


@pytest.mark.parametrize("answers", [2, 3])
def test_near_the_exact_posterior_and_below_the_exact_evidence(answers: int) -> None:
    apart = []
    for seed in range(20):
        labels, truth = drawn(seed, tasks=8 if answers == 2 else 6, workers=4, answers=answers, each=3)
        gold = np.where(np.arange(labels.tasks) < 2, truth, -1)
        prior = replace(CrowdPrior.default(answers), hold=math.inf)
        beliefs, evidence = exact(labels, gold, prior)
        fit = fit_crowd(labels, gold, prior)
        assert fit.converged
        assert fit.evidence <= evidence + 1e-9
        assert fit.evidence > evidence - 0.1 * len(labels.task)
        np.testing.assert_array_equal(fit.beliefs[:2].argmax(axis=1), truth[:2])
        apart.append(np.abs(fit.beliefs - beliefs).max())
    assert np.median(apart) < 0.06
    assert max(apart) < 0.25


def test_a_learnt_crowd_has_more_evidence_than_the_crowd_not_learnt() -> None:
    for seed in range(10):
        labels, _ = drawn(seed, tasks=8, workers=4, each=3)
        fit = fit_crowd(labels, prior=replace(CrowdPrior.default(2), hold=20.0))
        assert fit.evidence >= fit_crowd(labels, prior=replace(CrowdPrior.default(2), hold=math.inf)).evidence - 1e-6


@pytest.mark.parametrize(("answers", "hold"), [(2, math.inf), (2, 120.0), (2, 1.0), (4, math.inf), (4, 30.0)])
def test_the_evidence_bound_rises_and_of_a_known_crowd_never_falls(answers: int, hold: float) -> None:
    for seed in range(6):
        labels, truth = drawn(seed, tasks=80, workers=30, answers=answers, each=3)
        gold = np.where(np.arange(labels.tasks) % 9 == 0, truth, -1)
        fit = fit_crowd(
            labels, gold, replace(CrowdPrior.default(answers), hold=hold), tolerance=0.0, most_iterations=60
        )
        if hold == math.inf:
            assert (np.diff(fit.bounds) >= -1e-10 * np.abs(fit.bounds[1:])).all()
        assert fit.bounds[-1] > fit.bounds[0]


@pytest.mark.parametrize("answers", [2, 3])
def test_exchanged_names_of_answers_exchange_the_beliefs(answers: int) -> None:
    for seed in range(5):
        labels, _ = drawn(seed, answers=answers)
        turn = np.random.default_rng(seed).permutation(answers)
        fit, turned = fit_crowd(labels), fit_crowd(labels._replace(answer=turn[labels.answer]))
        np.testing.assert_allclose(turned.beliefs[:, turn], fit.beliefs, atol=1e-6)
        np.testing.assert_allclose(turned.channels[:, turn][:, :, turn], fit.channels, atol=1e-6)


def test_permuted_tasks_workers_and_rows_permute_the_fit() -> None:
    labels, _ = drawn(3, answers=3)
    rng = np.random.default_rng(0)
    tasks, workers, rows = (
        rng.permutation(labels.tasks),
        rng.permutation(labels.workers),
        rng.permutation(len(labels.task)),
    )
    other = labels._replace(
        task=tasks[labels.task][rows], worker=workers[labels.worker][rows], answer=labels.answer[rows]
    )
    fit, moved = fit_crowd(labels), fit_crowd(other)
    np.testing.assert_allclose(moved.beliefs[tasks], fit.beliefs, atol=1e-6)
    np.testing.assert_allclose(moved.channels[workers], fit.channels, atol=1e-6)


def test_the_same_labels_give_the_same_digits() -> None:
    labels, _ = drawn(5)
    one, two = fit_crowd(labels), fit_crowd(labels)
    np.testing.assert_array_equal(one.beliefs, two.beliefs)
    np.testing.assert_array_equal(one.counts, two.counts)


def test_counts_are_those_of_the_beliefs() -> None:
    labels, _ = drawn(7, answers=3)
    fit = fit_crowd(labels, prior=replace(CrowdPrior.default(3), hold=math.inf))
    counts = np.zeros_like(fit.counts)
    for x, j, y in zip(*labels[:3], strict=True):
        counts[j, :, y] += fit.beliefs[x]
    np.testing.assert_allclose(fit.counts, counts, atol=1e-9)
    rows = fit.prior.pseudo + fit.counts
    np.testing.assert_allclose(fit.channels, rows / rows.sum(axis=2, keepdims=True), atol=1e-12)


def test_workers_who_answer_the_wrong_way_round_are_turned_round() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    said = np.stack([np.where(rng.random(200) < a, truth, 1 - truth) for a in (0.9, 0.9, 0.9, 0.1)], axis=1)
    labels = CrowdLabels(np.repeat(np.arange(200), 4), np.tile(np.arange(4), 200), said.ravel(), 200, 4, 2)
    fit = fit_crowd(labels)
    assert right(fit, truth) > 0.97
    assert fit.channels[3, 0, 0] < 0.2
    assert fit.channels[3, 1, 1] < 0.2


FEW = [("rte", 2, 0.77), ("rte", 3, 0.83), ("rte", 5, 0.88), ("temp", 2, 0.82), ("temp", 3, 0.88), ("temp", 5, 0.91)]


@pytest.mark.parametrize(("name", "each", "least"), FEW)
def test_few_labels_do_not_collapse_to_one_class(data: Path, name: str, each: int, least: float) -> None:
    for seed in range(5):
        labels, gold = recorded(data, name, each, seed)
        fit = fit_crowd(labels)
        assert 0.3 < fit.share[1] < 0.7
        assert right(fit, gold) > least


@pytest.mark.parametrize(("name", "least"), [("rte", 0.925), ("temp", 0.935), ("mre", 0.92)])
def test_all_labels_of_recorded_sets(data: Path, name: str, least: float) -> None:
    labels, gold = recorded(data, name)
    assert right(fit_crowd(labels), gold) > least


@pytest.mark.filterwarnings("ignore")  # crowd-kit's own, about pandas
@pytest.mark.parametrize("name", ["rte", "temp"])
def test_agrees_with_dawid_and_skene_of_crowd_kit(data: Path, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    aggregation = pytest.importorskip("crowdkit.aggregation")
    labels, _ = recorded(data, name)
    frame = pandas.DataFrame({"task": labels.task, "worker": labels.worker, "label": labels.answer})
    theirs = aggregation.DawidSkene(n_iter=100).fit_predict(frame).loc[np.arange(labels.tasks)].to_numpy()
    assert (fit_crowd(labels).beliefs.argmax(axis=1) == theirs).mean() > 0.97


def test_gold_teaches_about_workers() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 100)
    labels = CrowdLabels(np.arange(100), np.zeros(100, dtype=np.int64), 1 - truth, 100, 1, 2)
    known = np.where(np.arange(100) < 50, truth, -1)
    assert right(fit_crowd(labels), truth) == 0.0  # one worker alone is believed
    assert right(fit_crowd(labels, known), truth) == 1.0  # and found out by gold


def test_bad_input_is_said_in_a_sentence() -> None:
    labels, truth = drawn(0)
    with pytest.raises(InputError, match="prior is for 3 answers"):
        fit_crowd(labels, prior=CrowdPrior.default(3))
    with pytest.raises(InputError, match="gold"):
        fit_crowd(labels, truth[:-1])
    with pytest.raises(InputError, match="gold"):
        fit_crowd(labels, truth + 1)
    with pytest.raises(InputError, match="positive"):
        CrowdPrior(np.zeros((2, 2)), np.ones(2))
    with pytest.raises(InputError, match="shape"):
        CrowdPrior(np.ones((2, 3)), np.ones(2))
    with pytest.raises(InputError, match="two answers or more"):
        CrowdPrior.default(1)
