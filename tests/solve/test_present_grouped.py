"""The bound from the middle of a campaign with many scores: grouped ones are around it, at every number of labels."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.model.beta import Beta
from nextlabel.model.prior import Prior
from nextlabel.model.rewards import Accuracy, Reward, SquaredError
from nextlabel.model.tasks import Groups, TaskClass, prior_of_score
from nextlabel.solve import present_bound as module
from nextlabel.solve.present_bound import PresentBound, group_present, present_bound

TASKS = 36


@pytest.fixture(autouse=True)
def small_lattices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less deep than they would be, and fast; slack says what that costs."""
    monkeypatch.setattr(module, "MOST_CHEAP_NODES", 150_000)
    monkeypatch.setattr(module, "START", 30_000)


def stand(strength: float | None, accuracy: float | None, reward: Reward, seed: int) -> tuple[list[TaskClass], Groups]:
    """Tasks with a score each, with up to three labels and up to two in flight."""
    rng = np.random.default_rng(seed)
    priors: list[Prior] = [prior_of_score(p, strength, accuracy) for p in rng.uniform(0.02, 0.98, TASKS).tolist()]
    nodes, flight = rng.integers(0, 10, TASKS), rng.integers(0, 3, TASKS)
    classes = [TaskClass(1, prior, 0.5, reward) for prior in priors]
    return classes, Groups(np.arange(TASKS), nodes, flight, rng.integers(1, 4, TASKS))


def both(
    monkeypatch: pytest.MonkeyPatch, classes: list[TaskClass], groups: Groups, left: int, cost: float, priors: int
) -> tuple[PresentBound, PresentBound]:
    """The bound by every prior, and by few."""
    plain = present_bound(classes, groups, left, label_cost=cost)
    with monkeypatch.context() as patch:
        patch.setattr(module, "MANY_PRIORS", 10)
        patch.setattr(module, "PRIORS", priors)
        patch.setattr(module, "LEAST_PRIORS", 2)
        return plain, present_bound(classes, groups, left, label_cost=cost)


@pytest.mark.parametrize(
    ("strength", "accuracy", "reward", "cost"),
    [
        (4.0, None, Accuracy(), 0.0),
        (1.5, None, Accuracy(), 0.01),
        (8.0, None, SquaredError(), 0.0),
        (None, 0.8, Accuracy(), 0.0),
        (None, 0.65, Accuracy(), 0.005),
    ],
)
def test_grouped_bounds_are_around(
    monkeypatch: pytest.MonkeyPatch, strength: float | None, accuracy: float | None, reward: Reward, cost: float
) -> None:
    classes, groups = stand(strength, accuracy, reward, 3)
    plain, few = both(monkeypatch, classes, groups, 200, cost, 24)
    assert few.now == pytest.approx(plain.now, abs=1e-12)
    assert few.ceiling == pytest.approx(plain.ceiling, abs=1e-12)
    assert plain.upper - plain.slack <= few.upper + 1e-9
    assert few.upper - few.slack <= plain.upper + 1e-9
    assert few.slack > plain.slack  # they are other numbers
    extra = np.array([-150, -40, 0, 80])
    assert np.all(few.curve(extra) >= plain.curve(extra) - plain.slack - 1e-9)


def test_more_priors_are_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    classes, groups = stand(4.0, None, Accuracy(), 4)
    monkeypatch.setattr(module, "MANY_PRIORS", 10)
    monkeypatch.setattr(module, "LEAST_PRIORS", 2)
    slack = []
    for priors in (8, 28):
        monkeypatch.setattr(module, "PRIORS", priors)
        slack.append(present_bound(classes, groups, 160).slack)
    assert slack[1] < 0.5 * slack[0]


def test_what_is_no_family_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY_PRIORS", 10)
    classes, groups = stand(4.0, None, Accuracy(), 5)
    assert group_present(classes, groups) is not None
    assert group_present([*classes[:-1], TaskClass(1, Beta(3, 3))], groups) is None
    assert group_present(*stand(None, 1.0, Accuracy(), 5)) is None
    monkeypatch.setattr(module, "MANY_PRIORS", TASKS)
    assert group_present(classes, groups) is None
