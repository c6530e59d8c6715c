"""Labels saved: a curve that is known by heart, and intervals that cover other orders and other tasks."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.arrays import Floats
from nextlabel.backtesting.result import Curve, resampled, saving

BUDGETS = np.array([100.0, 200.0, 300.0, 400.0])


def saved(curve: Floats, level: float, labels: float, budgets: Floats = BUDGETS) -> dict[str, float | bool | None]:
    """Against a level that is known without error."""
    return saving(budgets, curve, np.tile(curve, (50, 1)), level, np.full(50, level), labels)


def test_savings_of_a_known_curve() -> None:
    curve = np.array([0.6, 0.8, 0.78, 0.9])
    found = saved(curve, 0.7, 300.0)
    assert found["labels"] == pytest.approx(150.0)
    assert [found["saved"], found["low"], found["high"]] == pytest.approx([0.5] * 3)
    assert saved(curve, 0.85, 400.0)["labels"] == pytest.approx(350.0)
    never = saved(curve, 0.95, 400.0)
    assert never["saved"] is None and never["reached"] == 0.0
    assert saved(curve, 0.5, 400.0)["at_first"] is True
    assert saved(np.full(4, 0.7), 0.7, 400.0)["flat"] is True


def draw_campaigns(rng: np.random.Generator, tasks: int, reps: int) -> tuple[Curve, Curve]:
    """A policy at five budgets and an overlap, on tasks that are more or less easy and orders that are lucky or not."""
    ease = rng.normal(0.0, 0.1, tasks)
    luck = rng.normal(0.0, 0.02, (reps, 1))
    budgets = 0.65 + 0.05 * np.arange(5)
    chance = np.clip(budgets + ease[:, None], 0.0, 1.0)[None] + luck[:, :, None]
    right = (rng.random((reps, tasks, 5)) < chance).astype(np.float64)
    level = (rng.random((reps, tasks)) < np.clip(0.75 + ease, 0.0, 1.0) + luck).astype(np.float64)
    return (
        Curve(right.mean(axis=1), right.mean(axis=0)),
        Curve(level.mean(axis=1)[:, None], level.mean(axis=0)[:, None]),
    )


def test_intervals_cover_the_truth_over_other_orders_and_other_tasks() -> None:
    rng, covered, reached, trials = np.random.default_rng(5), 0, 0, 200
    budgets = np.array([100.0, 200.0, 300.0, 400.0, 500.0])
    for trial in range(trials):
        curve, level = draw_campaigns(rng, tasks=60, reps=12)
        one = curve.at(2)
        covered += abs(one.mean - 0.75) <= one.half_width
        drawn = resampled({("policy", "workers"): curve, ("fixed", "workers"): level}, trial, 400)
        found = saving(
            budgets,
            curve.mean,
            drawn["policy", "workers"],
            float(level.mean[0]),
            drawn["fixed", "workers"][:, 0],
            500.0,
        )
        low = -np.inf if found["low"] is None else found["low"]
        high = np.inf if found["high"] is None else found["high"]
        reached += low <= 0.4 <= high  # 0.75 is reached at 300 of 500 labels
    # a little wide is allowed, narrow is not: 95% of 200 are 190, and 180 is three standard errors below
    assert covered >= 180 and reached >= 180
    assert covered < trials or reached < trials


def test_orders_alone_would_be_too_narrow() -> None:
    rng, covered = np.random.default_rng(7), 0
    for _ in range(100):
        curve, _ = draw_campaigns(rng, tasks=60, reps=60)
        alone = Curve(curve.by_order, np.tile(curve.mean, (60, 1))).at(2)
        covered += abs(alone.mean - 0.75) <= alone.half_width
    assert covered < 80


def test_curves_with_unequal_numbers_of_replications_are_compared_without_pairing() -> None:
    curve, _ = draw_campaigns(np.random.default_rng(1), 60, 12)
    fewer = Curve(curve.by_order[:6], curve.by_task)
    paired, not_paired = curve.minus(curve, 1, 1), curve.minus(fewer, 1, 1)
    assert paired.half_width == 0.0
    assert not_paired.half_width > 0.0
    drawn = resampled({("a", "x"): curve, ("b", "x"): fewer}, 0, 20)
    assert drawn["a", "x"].shape == drawn["b", "x"].shape == (20, 5)
    again = resampled({("a", "x"): curve}, 0, 20)
    assert np.array_equal(again["a", "x"], drawn["a", "x"])
