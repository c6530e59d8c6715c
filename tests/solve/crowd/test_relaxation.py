"""The relaxation with workers who differ: published values, symmetries, and what may never happen."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from benchmarks.odd_channels import problem as odd_problem

import nextlabel as nl
from crowds import coin, relax_alike, two_coins

PAIR = [two_coins(0.95, 0.50), two_coins(0.60, 0.10)]
THREE = [coin(0.9), coin(0.75), coin(0.6)]

#: tasks, budget, channels, supply, bound, exact optimum or None. The last value of the bound was found again by a
#: recursion over counts to depth 20, which is exact there.
VALUES = [
    (1000, 3000, [coin(0.75)], [np.inf], 886.364, None),
    (1000, 3000, THREE, [1000, 2000, 3000], 954.217, None),
    (1000, 3000, THREE, [1000, 1000, 1000], 937.825, None),
    (1000, 2000, PAIR, [1500, 1500], 853.415, None),
    (2, 3, [coin(0.9), coin(0.7)], [2, 2], 1.818827, 1.8),
    (2, 3, [coin(0.9), coin(0.7), coin(0.55)], [1, 1, 2], 1.604951, 1.6),
    (3, 4, [coin(0.8), coin(0.6)], [2, 3], 2.232432, 2.2),
    (2, 3, PAIR, [2, 2], 1.611093, 1.597260),
]


@pytest.mark.parametrize(("tasks", "budget", "channels", "supply", "bound", "optimum"), VALUES)
def test_published_values(tasks, budget, channels, supply, bound, optimum):
    """Values found by two programs that share no code, per task to 1e-5, never below the optimum."""
    found = relax_alike(tasks, budget, channels, supply)
    assert found.value / tasks == pytest.approx(bound / tasks, abs=1e-5)
    assert found.gap <= 1e-6 * tasks
    assert optimum is None or found.value >= optimum


def test_prices_of_the_published_crowd():
    found = relax_alike(1000, 3000, THREE, [1000, 2000, 3000])
    assert found.price == pytest.approx(0.02711, abs=1e-5)
    assert found.supply_prices == pytest.approx([0.05964, 0, 0], abs=1e-5)
    assert found.used == pytest.approx([1000, 2000, 0], abs=1e-3)


def test_two_hundred_workers_of_their_own():
    """The gap is a share of 1e-8 of the value, far below what is promised."""
    chance = np.random.default_rng(5)
    channels = [two_coins(s, 1.0 - t) for s, t in zip(chance.beta(4, 2, 200), chance.beta(4, 2, 200), strict=True)]
    found = relax_alike(10_000, 30_000, channels, [225.0] * 200, grid=200)
    assert 0 <= found.gap <= 1e-4 * 10_000 * 1e-2
    assert found.used.sum() <= 30_000 * (1 + 1e-9)
    assert (found.used <= 225 * (1 + 1e-9)).all()


def test_both_searches_find_the_same_value(monkeypatch):
    """Cutting planes and the interior-point method share the grid and nothing else."""
    chance = np.random.default_rng(2)
    channels = [two_coins(s, 1.0 - t) for s, t in zip(chance.beta(4, 2, 9), chance.beta(4, 2, 9), strict=True)]
    values = []
    for many in (100, 2):
        monkeypatch.setattr("nextlabel.solve.crowd.relaxation.MANY_TYPES", many)
        found = relax_alike(100, 300, channels, [40.0] * 9, grid=150)
        assert found.gap <= 1e-4
        values.append(found.value)
    assert values[0] == pytest.approx(values[1], abs=1e-4)


CROOKED = {
    2: (np.array([0.37, 0.63]), two_coins(0.83, 0.41)),
    3: (np.array([0.2, 0.47, 0.33]), np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.15, 0.05, 0.8]])),
}


@pytest.mark.parametrize(("answers", "depth", "near"), [(2, 12, 1e-3), (3, 8, 1e-2)])
def test_workers_theorem_3_the_grid_bound_falls_and_stays_above_the_truth(answers, depth, near):
    """A recursion over labels, cut off from below, is never above the bound; finer grids come nearer to it."""
    p, channel = CROOKED[answers]
    truth = value_from_below(p, channel, 0.04, depth)
    values = []
    for points in (12, 60, 300, 3000):
        values.append(relax_alike(1, np.inf, [channel], [np.inf], p=p, grid=points, cost=0.04).value)
        assert values[-1] >= truth - 1e-12
    assert all(finer <= coarser + 1e-9 for coarser, finer in pairwise(values))
    assert truth + 1e-4 < values[0]
    assert values[-1] <= truth + near


def value_from_below(p, channel, price, depth):
    """The value of one task that gets at most ``depth`` labels, all of which cost the same: plain recursion."""
    if depth == 0:
        return float(p.max())
    go = -price
    for y in range(len(p)):
        joint = p * channel[:, y]
        go += joint.sum() * value_from_below(joint / joint.sum(), channel, price, depth - 1)
    return max(float(p.max()), go)


@pytest.mark.parametrize("reachable", [False, True])
def test_flipping_the_names_changes_nothing(reachable):
    p = np.array([0.3, 0.7])
    one = relax_alike(10, 20, PAIR, [15, 15], p=p, reachable=reachable)
    flipped = [np.ascontiguousarray(channel[::-1, ::-1]) for channel in PAIR]
    other = relax_alike(10, 20, flipped, [15, 15], p=p[::-1].copy(), reachable=reachable)
    assert one.value == pytest.approx(other.value, abs=1e-6)


def test_answers_said_by_another_name_change_nothing():
    """A worker who says 1 for 0 and 0 for 1 is worth as much as before: only the names of the answers differ."""
    inverted = [PAIR[0], np.ascontiguousarray(PAIR[1][:, ::-1])]
    assert relax_alike(10, 20, inverted, [15, 15]).value == pytest.approx(
        relax_alike(10, 20, PAIR, [15, 15]).value, abs=1e-6
    )


def test_relabelling_three_answers():
    chance = np.random.default_rng(0)
    channel, p = chance.dirichlet(np.ones(3), 3), chance.dirichlet(np.full(3, 4.0))
    order = np.array([2, 0, 1])
    for reachable in (False, True):
        one = relax_alike(10, 20, [channel], [20], p=p, reachable=reachable, grid=2000)
        other = relax_alike(
            10, 20, [np.ascontiguousarray(channel[order][:, order])], [20], p=p[order], reachable=reachable, grid=2000
        )
        # The grid of the simplex is not symmetric: both are bounds, near the same value.
        assert one.value == pytest.approx(other.value, rel=1e-3 if not reachable else 1e-6)


def test_the_order_of_types_is_the_order_of_their_prices():
    order = [2, 0, 1]
    supply = [1000.0, 1000.0, 1000.0]
    one = relax_alike(1000, 3000, THREE, supply)
    other = relax_alike(1000, 3000, [THREE[k] for k in order], supply)
    assert other.value == pytest.approx(one.value, abs=1e-5)
    assert other.supply_prices == pytest.approx(one.supply_prices[order], abs=1e-5)


def test_identical_workers_are_the_bound_without_delay():
    """One coin of .75 for all, split into types of equal channels: MODEL.md's value and price."""
    found = relax_alike(1000, 3000, [coin(0.75)] * 3, [1000, 1000, 1000])
    assert found.value / 1000 == pytest.approx(0.886364, abs=1e-5)
    assert found.price + found.supply_prices == pytest.approx([0.068182] * 3, abs=1e-5)


def test_more_is_never_worth_less():
    """More budget, more supply, or a better worker."""
    base = relax_alike(100, 200, THREE, [50, 100, 100]).value
    assert relax_alike(100, 250, THREE, [50, 100, 100]).value >= base - 1e-4
    assert relax_alike(100, 200, THREE, [80, 100, 100]).value >= base - 1e-4
    assert relax_alike(100, 200, [coin(0.95), *THREE[1:]], [50, 100, 100]).value >= base - 1e-4


def test_workers_at_chance_and_types_without_supply_are_worth_nothing():
    nobody = relax_alike(10, 30, [coin(0.5)], [np.inf])
    assert nobody.value == pytest.approx(5.0)
    assert nobody.used == pytest.approx([0.0])
    gone = relax_alike(10, 30, [coin(0.9), coin(0.6)], [0, 10])
    assert gone.value == pytest.approx(relax_alike(10, 30, [coin(0.6)], [10]).value, abs=1e-5)


@pytest.mark.parametrize(("answers", "points"), [(5, 500), (8, 500), (20, 200)])
def test_many_answers(answers, points):
    """Beliefs that can be reached give a bound below certainty, above the best fixed plan of two labels per task."""
    good = coin(0.6, answers)
    found = relax_alike(100, 200, [good], [np.inf], reachable=True, grid=points)
    two_labels = value_from_below(np.full(answers, 1.0 / answers), good, 0.0, depth=2)
    assert 100 * two_labels - 1e-9 <= found.value <= 99.0


def test_dropping_the_corners_raises_the_bound():
    """Interpolation between fewer points can only be higher, so a grid of corners alone knows nothing."""
    assert relax_alike(10, 30, [coin(0.8, 3)], [30], grid=3).value == pytest.approx(10.0, abs=1e-6)


def odd_channels(seed: int) -> tuple[list[np.ndarray], int, int, list[float]]:
    """Types that teach next to nothing, are all but perfect, or stand several times in the list."""
    chance = np.random.default_rng(seed)
    channels = []
    for _ in range(chance.choice([1, 2, 3, 6])):
        off, p = 10.0 ** chance.uniform(-10, -1), chance.choice([0.0, 1.0, chance.uniform()])
        useless = two_coins(float(np.clip(p + off * chance.choice([-1, 1]), 0, 1)), p)
        channels.append(useless if chance.random() < 0.6 else two_coins(1.0 - off, chance.choice([0.0, off])))
    if chance.random() < 0.2:
        channels = [channels[0]] * 3
    supply = [np.inf] * len(channels) if chance.random() < 0.5 else list(chance.choice([1.0, 10.0], len(channels)))
    return channels, int(chance.choice([1, 3, 10])), int(chance.choice([1, 3, 30, 300])), supply


@pytest.mark.parametrize("seed", range(12))
def test_channels_that_teach_next_to_nothing_or_everything(seed):
    channels, tasks, budget, supply = odd_channels(seed)
    found = relax_alike(tasks, budget, channels, supply)
    assert found.value - found.lower <= 1e-4 * tasks
    assert found.error_budget <= 1e-9 * tasks


@pytest.mark.long
def test_a_thousand_odd_crowds():
    for seed in range(1000):
        channels, tasks, budget, supply = odd_channels(seed)
        found = relax_alike(tasks, budget, channels, supply)
        assert found.value - found.lower <= 1e-4 * tasks, seed
        assert found.error_budget <= 1e-9 * tasks, seed


def test_labels_that_tell_one_truth_once_in_a_hundred_million_times():
    found = relax_alike(3, 3, [np.array([[1.0, 0.0], [1.0 - 1e-8, 1e-8]])], [np.inf])
    assert 1.5 <= found.value <= 1.5 + 1e-7


def worth(p: float, channels: list[np.ndarray], costs: list[float], labels: int) -> float:
    """V^n of a task with two answers by plain recursion over beliefs, without a grid."""
    best = max(p, 1.0 - p)
    for channel, cost in zip(channels, costs, strict=True):
        if labels:
            go = -cost
            for y in range(2):
                chance = (1.0 - p) * channel[0, y] + p * channel[1, y]
                if chance > 0.0:
                    go += chance * worth(p * channel[1, y] / chance, channels, costs, labels - 1)
            best = max(best, go)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_workers_lemma_4b_a_type_at_the_price_of_all_it_can_gain_is_not_wanted(seed):
    chance = np.random.default_rng(seed)
    channels = [two_coins(*chance.uniform(0.2, 0.9, 2)), two_coins(*chance.uniform(0.4, 0.6, 2))]
    share = 1.0 - channels[1].min(axis=0).sum()
    costs = [float(chance.uniform(0.0, 0.1)), 0.5 * float(share)]  # R_inf - R is at most 1/2
    for p in chance.uniform(0, 1, 5):
        alone = worth(p, channels[:1], costs[:1], 5)
        assert worth(p, channels, costs, 5) == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_workers_lemma_4a_few_labels_bound_the_recursion_without_a_grid(seed):
    """The dual at some price is never below what a recursion over beliefs reaches at it, however cheap the label."""
    chance = np.random.default_rng(seed)
    channels = [two_coins(*chance.uniform(0.1, 0.9, 2)) for _ in range(2)]
    found = relax_alike(1, 5, channels, [np.inf, np.inf])
    costs = [float(found.price + nu) for nu in found.supply_prices]
    assert found.value >= worth(0.5, channels, costs, 5) + 5 * found.price - 1e-9


def test_a_plan_that_labels_in_place_for_ever_has_no_system(capfd: pytest.CaptureFixture[str]) -> None:
    """Of workers who teach next to nothing SuperLU raised an error, and complained on stderr of what it was given."""
    problem = odd_problem(np.random.default_rng([0, 229]))
    found = nl.upper_bound(problem)
    assert found.certified and found.gap < 1e-4 * problem.tasks
    assert found.value <= problem.tasks + 1e-6
    assert capfd.readouterr().err == ""
