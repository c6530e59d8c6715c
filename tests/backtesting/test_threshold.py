"""The threshold is one half unless gold clearly says otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelled_crowds import padded
from nextlabel.backtesting.pilot import CLEAR, choose_threshold, credit, cuts
from nextlabel.simulation.replay import CrowdRecord
from studies.study import find_set


def draw(rng: np.random.Generator, tasks: int, threshold: float) -> CrowdRecord:
    theta = rng.random(tasks)
    labels = (rng.random((tasks, 10)) < theta[:, None]).astype(np.int64)
    names = tuple(f"t{x}" for x in range(tasks))
    return padded(names, labels, (theta > threshold).astype(np.int64))


def test_one_half_is_kept_where_it_is_right() -> None:
    rng = np.random.default_rng(1)
    moved = sum(choose_threshold(draw(rng, 50, 0.5)).threshold != 0.5 for _ in range(200))
    assert moved <= 200 * CLEAR


def test_a_threshold_that_gold_clearly_shows_is_taken() -> None:
    found = choose_threshold(draw(np.random.default_rng(2), 200, 0.8))
    assert 0.7 <= found.threshold <= 0.9 and found.p_value < CLEAR
    assert found.words().startswith("learnt from the pilot's gold: it decides")


def test_fifty_tasks_of_a_real_set_do_not_show_one(data: Path) -> None:
    rte = find_set(data, "rte")
    for seed in range(5):
        drawn = np.random.default_rng(seed).permutation(len(rte.gold))[:50]
        found = choose_threshold(rte.subset(drawn))
        assert found.threshold == 0.5
    assert choose_threshold(rte).threshold == pytest.approx(0.55)  # all 800 do


def test_cuts_and_credit() -> None:
    share = np.array([0.0, 0.2, 0.8, 1.0])
    assert cuts(share) == pytest.approx([0.1, 0.5, 0.9])
    assert credit(np.array([0.5, 0.7, 0.2]), np.array([1, 1, 1]), 0.5).tolist() == [0.5, 1.0, 0.0]
