"""Crowds drawn from their posterior: against a posterior summed over all truths, and where marginal beliefs fail."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.solve.crowd import from_labels, posterior
from nextlabel.solve.crowd.from_labels import CrowdSupply, bound_crowds, upper_limit
from nextlabel.solve.crowd.posterior import CrowdPosterior
from nextlabel.solve.crowd.relaxation import Types, relax


def tiny(answers, seed):
    chance = np.random.default_rng(seed)
    tasks, workers, n = 5, 3, 12
    columns = (chance.integers(0, size, n) for size in (tasks, workers, answers))
    return CrowdLabels(*columns, tasks, workers, answers)


def exact(labels, prior, gold):
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
    labels = tiny(answers, 4)
    usual = CrowdPrior.default(answers)
    known = CrowdPrior(usual.pseudo, usual.share)
    drawn = CrowdPosterior(labels, known, np.array(gold))
    beliefs = np.mean([drawn.draw(1, number).beliefs for number in range(1500)], axis=0)
    order = np.concatenate([np.unique(labels.task), np.setdiff1d(np.arange(labels.tasks), labels.task)])
    assert beliefs == pytest.approx(exact(labels, known, gold)[order], abs=0.025)


def test_names_that_can_change_do_change():
    """Without a hint which answer is which both names are as likely; chains that kept one would be far from 1/2."""
    labels = CrowdLabels(np.arange(10), np.zeros(10, dtype=np.int64), np.arange(10) % 2, 10, 1, 2)
    drawn = CrowdPosterior(labels, CrowdPrior(np.full((2, 2), 0.001), np.full(2, 5.0)))
    beliefs = np.array([drawn.draw(0, number).beliefs for number in range(200)])
    settled = beliefs.max(axis=2).min(axis=1) > 0.99
    assert settled.mean() > 0.7
    assert 0.3 < (beliefs[settled, 0, 0] > 0.5).mean() < 0.7


def test_what_the_crowd_is_like_is_learnt():
    """Twenty people who are right nine times in ten are not taken for the two in three of the first idea."""
    rng = np.random.default_rng(3)
    task, worker = (x.ravel() for x in np.meshgrid(np.arange(60), np.arange(5)))
    worker = worker + 5 * (task // 15)
    answer = np.where(rng.random(300) < 0.9, task % 2, 1 - task % 2)
    drawn = CrowdPosterior(CrowdLabels(task, worker, answer, 60, 20, 2), CrowdPrior.default(2))
    strangers = np.array([drawn.draw(0, number, 1).channels[-1] for number in range(60)])
    assert 0.8 < strangers.diagonal(axis1=1, axis2=2).mean() < 0.95


def test_of_many_labels_a_part_is_drawn_and_of_many_bare_tasks_some(monkeypatch):
    monkeypatch.setattr(posterior, "MOST_LABELS", 100)
    monkeypatch.setattr(posterior, "MOST_BARE", 10)
    rng = np.random.default_rng(0)
    labels = CrowdLabels(np.arange(400), rng.integers(0, 4, 400), rng.integers(0, 2, 400), 600, 4, 2)
    one = CrowdPosterior(labels, CrowdPrior.default(2)).draw(0, 0)
    assert 60 < len(one.beliefs) - 10 < 140
    assert one.weights.sum() == pytest.approx(1.0) and one.weights[-10:].sum() == pytest.approx(200 / 600)


def test_a_price_read_off_the_lattice_is_never_too_low_and_the_bound_near_the_relaxation():
    """Five known workers: the bound by the values of one crowd, against the relaxation solved for it."""
    accuracy = np.array([0.93, 0.87, 0.78, 0.71, 0.56])
    channels = np.stack([np.stack([accuracy, 1 - accuracy], 1), np.stack([1 - accuracy, accuracy], 1)], 1)
    grid = from_labels.grid_for(2)
    mass = np.zeros(len(grid.points))
    mass[len(mass) // 2] = 1.0
    supply = np.full(5, 0.6)
    stop = grid.points.max(axis=1)
    V = from_labels._solved(grid, stop, np.ones(len(stop)), mass, channels, supply, 2.0)[None]
    read, least = from_labels._Prices(grid, V).of(channels), from_labels._least(grid, V, channels)
    assert (read >= least - 1e-12).all() and (read < least + 0.01).all()
    bound = float((V @ mass)[0] + from_labels._dearest(read, supply, 2.0)[0][0])
    beliefs = grid.points[[len(mass) // 2]]
    best = relax(beliefs, np.ones(1), Types(channels, supply, np.zeros(5)), 2.0, grid=400).value
    assert best - 1e-6 < bound < best + 0.01


@pytest.mark.parametrize("rare", [0.0, 0.05])
def test_the_limit_allows_for_a_crowd_that_no_draw_has_shown(rare):
    """95 of 100 draws at .8 and 5 at 1: the mean is .81, and ten draws often show none of the five."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(400):
        values = np.where(rng.random(10) < rare, 1.0, 0.8)
        missed += upper_limit(values) < 0.8 + 0.2 * rare
    assert missed <= 0.07 * 400
    assert upper_limit(np.full(100, 0.8)) < 0.82
    assert upper_limit(np.ones(10)) == pytest.approx(1.0)


def test_newcomers_and_their_labels_count():
    rng = np.random.default_rng(1)
    labels = CrowdLabels(np.arange(40) % 20, np.arange(40) // 10, rng.integers(0, 2, 40), 20, 4, 2)
    drawn = CrowdPosterior(labels, CrowdPrior.default(2))
    nobody, new = (
        bound_crowds(drawn, CrowdSupply(np.zeros(4), newcomers, people), 30, 20, crowds=10)
        for newcomers, people in ((0.0, 0), (30.0, 5))
    )
    assert nobody.values.mean() > nobody.now - 0.01 and new.values.mean() > nobody.values.mean() + 0.05


def test_the_same_seed_draws_the_same():
    drawn = CrowdPosterior(tiny(2, 0), CrowdPrior.default(2))
    assert (drawn.draw(3, 1).channels == drawn.draw(3, 1).channels).all()
    assert (drawn.draw(3, 1).channels != drawn.draw(3, 2).channels).any()


def test_utilities_only_scale_and_shift_the_bound_and_it_is_above_what_is_there() -> None:
    """What is twice as much, less three, is bounded so; a dearer mistake has more to gain from labels."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 2, 60)
    task, worker = np.repeat(np.arange(60), 3), rng.integers(0, 5, 180)
    answer = np.where(rng.random(180) < 0.75, truth[task], 1 - truth[task])
    drawn = CrowdPosterior(CrowdLabels(task, worker, answer, 60, 5, 2), CrowdPrior.default(2))

    def bound(utility: object = None) -> tuple[float, float, float]:
        given = None if utility is None else np.array(utility, dtype=np.float64)
        found = bound_crowds(drawn, CrowdSupply(np.full(5, 30.0)), 100, 60, crowds=10, utility=given)
        return found.limit, found.now, found.price

    plain, dear = bound(), bound([[1.0, -5.0], [0.0, 1.0]])
    assert bound(np.eye(2)) == plain
    assert bound(2 * np.eye(2) - 3.0) == pytest.approx((2 * plain[0] - 3, 2 * plain[1] - 3, 2 * plain[2]), abs=1e-6)
    assert dear[1] < dear[0] <= 1.0 and dear[0] - dear[1] > plain[0] - plain[1] > 0
