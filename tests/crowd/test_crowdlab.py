"""CROWDLAB's consensus and ActiveLab's score, by hand on what is plain."""

from __future__ import annotations

import numpy as np

from nextlabel.crowd.crowdlab import activelab, crowdlab
from nextlabel.crowd.fit import CrowdLabels


def test_good_annotators_and_a_good_classifier_weigh_more() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    said = [np.where(rng.random(300) < right, truth, rng.integers(0, 3, 300)) for right in (0.95, 0.9, 0.85)]
    labels = CrowdLabels(np.tile(np.arange(300), 3), np.repeat(np.arange(3), 300), np.concatenate(said), 300, 3, 3)
    chance = np.where(np.arange(3) == np.where(rng.random(300) < 0.8, truth, 0)[:, None], 0.8, 0.1)
    found = crowdlab(labels, chance)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found.argmax(axis=1) == truth).mean() > (chance.argmax(axis=1) == truth).mean() + 0.02


def test_an_item_without_labels_that_the_classifier_does_not_know_comes_first() -> None:
    task, answer = np.repeat(np.arange(20), 2), np.repeat(np.arange(20) % 2, 2)
    labels = CrowdLabels(task, np.tile([0, 1], 20), answer, 22, 2, 2)
    sure = np.where(np.arange(2) == (np.arange(22) % 2)[:, None], 0.9, 0.1)
    sure[20] = 0.5
    score = activelab(labels, sure)
    assert score.argmin() == 20 and score[21] < score[:20].min()
