"""Channels and truths learnt together: against an exact posterior, symmetric, climbing, safe against collapse."""

from __future__ import annotations

import itertools
from math import lgamma

import numpy as np
import pytest

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import fit_crowd
from nextlabel.crowd.labels import CrowdLabels
from nextlabel.crowd.prior import CrowdPrior


def drawn(seed: int, tasks: int = 60, workers: int = 8, answers: int = 2, each: int = 4) -> tuple[CrowdLabels, Ints]:
    """Labels of a drawn crowd in random order, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, answers, tasks)
    channels = np.array([[rng.dirichlet(np.where(np.arange(answers) == c, 5.0, 1.0)) for c in range(answers)]
                         for _ in range(workers)])  # fmt: skip
    pairs = np.array([(x, j) for x in range(tasks) for j in rng.choice(workers, each, replace=False)])
    rng.shuffle(pairs)
    said = np.array([rng.choice(answers, p=channels[j, truth[x]]) for x, j in pairs])
    return CrowdLabels(pairs[:, 0], pairs[:, 1], said, tasks, workers, answers), truth


def exact(labels: CrowdLabels, gold: Ints, prior: CrowdPrior) -> tuple[Floats, float]:
    """Beliefs and log evidence by enumeration of all truths, channels and shares integrated out."""

    def log_beta(weights: Floats) -> float:
        return sum(lgamma(a) for a in weights) - lgamma(sum(weights))

    beliefs, logs, found = np.zeros((labels.tasks, labels.answers)), [], []
    for truths in itertools.product(range(labels.answers), repeat=labels.tasks):
        if any(known >= 0 and known != said for known, said in zip(gold, truths, strict=True)):
            continue
        z = np.array(truths)
        value = log_beta(prior.share + np.bincount(z, minlength=labels.answers)) - log_beta(prior.share)
        for j in range(labels.workers):
            for c in range(labels.answers):
                mine = labels.answer[(labels.worker == j) & (z[labels.task] == c)]
                row = prior.pseudo[c]
                value += log_beta(row + np.bincount(mine, minlength=labels.answers)) - log_beta(row)
        logs.append(value)
        found.append(z)
    weights = np.exp(np.array(logs) - max(logs))
    for weight, z in zip(weights / weights.sum(), found, strict=True):
        beliefs[np.arange(labels.tasks), z] += weight
    return beliefs, max(logs) + float(np.log(weights.sum()))


@pytest.mark.parametrize("answers", [2, 3])
def test_near_the_exact_posterior_and_below_the_exact_evidence(answers: int) -> None:
    apart = []
    for seed in range(20):
        labels, truth = drawn(seed, tasks=8 if answers == 2 else 6, workers=4, answers=answers, each=3)
        gold = np.where(np.arange(labels.tasks) < 2, truth, -1)
        prior = CrowdPrior.default(answers)
        beliefs, evidence = exact(labels, gold, prior)
        fit = fit_crowd(labels, gold, prior)
        assert fit.evidence <= evidence + 1e-9
        assert (fit.beliefs[:2].argmax(axis=1) == truth[:2]).all()
        apart.append(np.abs(fit.beliefs - beliefs).max())
    assert np.median(apart) < 0.06
    assert max(apart) < 0.25
