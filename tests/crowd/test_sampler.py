"""Crowds drawn from their posterior: against a posterior summed over all truths, and where marginal beliefs fail."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.sampler import effective_draws, sample_crowds, split_r_hat
from nextlabel.errors import InputError
from nextlabel.solve.crowd.bound import Crowd, average_bounds
from nextlabel.solve.crowd.relaxation import Types


def tiny(answers, seed):
    chance = np.random.default_rng(seed)
    tasks, workers, n = 5, 3, 12
    columns = (chance.integers(0, size, n) for size in (tasks, workers, answers))
    return CrowdLabels(*columns, tasks, workers, answers)


def posterior(labels, prior, gold):
    """P(z_x = c | labels) of every task, summed over all truths of all tasks."""
    C = labels.answers
    total, mean = 0.0, np.zeros((labels.tasks, C))
    for z in product(range(C), repeat=labels.tasks):
        if any(g >= 0 and g != c for g, c in zip(gold, z, strict=True)):
            continue
        counts = np.zeros((labels.workers, C, C))
        for x, j, y in zip(labels.task, labels.worker, labels.answer, strict=True):
            counts[j, z[x], y] += 1
        rows = prior.pseudo + counts
        log = gammaln(rows).sum() - gammaln(rows.sum(axis=2)).sum()
        log += gammaln(prior.share + np.bincount(z, minlength=C)).sum()
        weight = np.exp(log)
        total += weight
        mean[np.arange(labels.tasks), z] += weight
    return mean / total


@pytest.mark.parametrize(("answers", "gold"), [(2, [-1] * 5), (2, [1, -1, -1, 0, -1]), (3, [-1] * 5)])
def test_means_are_those_of_the_exact_posterior(answers, gold):
    labels, prior = tiny(answers, 4), CrowdPrior.default(answers)
    found = sample_crowds(labels, np.array(gold), prior, chains=4, draws=500, every=2, warm_up=200, seed=1)
    assert found.converged
    assert found.beliefs.mean(axis=0) == pytest.approx(posterior(labels, prior, gold), abs=0.02)
    assert found.channels.sum(axis=3) == pytest.approx(1.0)


def test_names_that_can_change_do_change():
    """Without a hint which answer is which both names are as likely; chains that kept one would be far from 1/2."""
    labels = CrowdLabels(np.arange(10), np.zeros(10, dtype=np.int64), np.arange(10) % 2, 10, 1, 2)
    prior = CrowdPrior(np.full((2, 2), 0.001), np.full(2, 5.0))
    found = sample_crowds(labels, None, prior, draws=200, every=1, warm_up=50)
    settled = found.beliefs.max(axis=2).min(axis=1) > 0.99
    assert settled.mean() > 0.7
    assert 0.3 < (found.beliefs[settled, 0, 0] > 0.5).mean() < 0.7


def test_a_bound_in_mid_campaign_averages_over_crowds_not_over_beliefs():
    """The worker who is perfect or perfectly inverted: under every crowd drawn, his ten labels settle ten tasks."""
    labels = CrowdLabels(np.arange(10), np.zeros(10, dtype=np.int64), np.arange(10) % 2, 10, 1, 2)
    prior = CrowdPrior(np.full((2, 2), 1e-4), np.full(2, 500.0))
    found = sample_crowds(labels, None, prior, draws=8, every=5, warm_up=50)
    gold = Types(np.eye(2)[None], np.ones(1), np.zeros(1))
    crowds = [Crowd(beliefs, np.ones(10), gold) for beliefs in found.beliefs]
    assert average_bounds(crowds, 1, grid=60).limit.value > 9
    assert found.beliefs.mean(axis=0) == pytest.approx(0.5, abs=0.35)


def test_diagnostics_see_chains_that_disagree():
    chance = np.random.default_rng(0)
    same = chance.normal(size=(4, 200))
    assert split_r_hat(same) < 1.05
    assert effective_draws(same) > 400
    assert split_r_hat(same + 3 * np.arange(4)[:, None]) > 2
    walk = chance.normal(size=(4, 200)).cumsum(axis=1)
    assert effective_draws(walk) < 50
    assert split_r_hat(np.ones((2, 10))) == 1.0


def test_the_same_seed_draws_the_same():
    labels = tiny(2, 0)
    one, again = (sample_crowds(labels, draws=4, every=2, warm_up=5, seed=3) for _ in range(2))
    assert (one.channels == again.channels).all()


def test_one_chain_cannot_be_compared():
    with pytest.raises(InputError, match="cannot be compared"):
        sample_crowds(tiny(2, 0), chains=1)
