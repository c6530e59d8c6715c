"""The interval of the expected accuracy: on crowds that the model describes it holds what is so."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.crowd.expected import expected_accuracy, usual_share
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior


def drawn(seed: int, tasks: int, each: int, answers: int) -> tuple[CrowdLabels, np.ndarray]:
    """Twelve workers who are right 60% to 95% of the time; a third of the tasks have one label."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, answers, tasks), rng.uniform(0.6, 0.95, 12)
    rows = []
    for x in range(tasks):
        for j in rng.choice(12, 1 if x % 3 == 0 else each, replace=False):
            wrong = (truth[x] + 1 + rng.integers(answers - 1)) % answers
            rows.append((x, j, truth[x] if rng.random() < skill[j] else wrong))
    task, worker, answer = np.array(rows, dtype=np.int64).T
    return CrowdLabels(task, worker, answer, tasks, 12, answers), truth


@pytest.mark.parametrize(("answers", "each"), [(2, 3), (3, 4)])
def test_coverage_on_drawn_crowds(answers: int, each: int) -> None:
    """At least 90 of 100 intervals of 95% hold the share that is right, and they are not wide for nothing."""
    held, widths = 0, []
    for seed in range(100):
        labels, truth = drawn(seed, 150, each, answers)
        fit = fit_crowd(labels)
        found = expected_accuracy(labels, fit.beliefs, CrowdPrior.default(answers))
        right = float((fit.beliefs.argmax(axis=1) == truth).mean())
        held += found.low <= right <= found.high
        widths.append(found.high - found.low)
    assert held >= 90
    assert np.mean(widths) < 0.2


def test_shares_that_are_alike_are_not_told_apart_by_chance() -> None:
    even, found = np.full(3, 1 / 3), np.array([82.0, 70.0, 68.0])
    learnt = (found + 10 / 3) / (found.sum() + 10)
    shares = usual_share(even, learnt, found)
    assert shares.sum() == pytest.approx(1.0) and shares[0] < 1 / 3 + 0.25 * (learnt[0] - 1 / 3)
    clear = np.array([160.0, 30.0, 30.0])
    learnt = (clear + 10 / 3) / (clear.sum() + 10)
    assert usual_share(even, learnt, clear) == pytest.approx(learnt, abs=1e-6)
    assert usual_share(even, even, np.zeros(3)) == pytest.approx(even)
