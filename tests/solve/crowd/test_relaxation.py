"""The relaxation with workers who differ: published values, symmetries, and what may never happen."""

from __future__ import annotations

import numpy as np
import pytest

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
