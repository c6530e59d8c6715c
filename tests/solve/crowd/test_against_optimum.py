"""Bound >= exact optimum on random tiny crowds; the optimum against a solver in fractions that shares no code."""

from __future__ import annotations

import numpy as np
import pytest

import nextlabel as nl
from tiny_crowds import draw_crowd
from tolerances import EXACT


@pytest.mark.parametrize(
    ("answers", "crowds"),
    [(2, 80), (3, 30), *(pytest.param(*many, marks=pytest.mark.long) for many in ((2, 200), (3, 60)))],
)
@pytest.mark.slow
def test_workers_theorem_1_bound_is_above_the_optimum(answers, crowds):
    """Hundreds of crowds with costs, unequal priors, perfect, useless and inverted workers among them."""
    from nextlabel.solve.crowd.bound import crowd_bound

    apart = []
    for seed in range(crowds):
        crowd = draw_crowd(seed, answers)
        problem = crowd.problem()
        best = crowd.optimum()
        assert nl.exact_value(problem).value == pytest.approx(float(best), abs=EXACT), seed
        bound = crowd_bound(problem, grid=200)
        assert bound.value >= float(best) - 1e-12, seed
        assert bound.certified, seed
        apart.append((bound.value - float(best)) / problem.tasks)
    # A bound of 1 would pass, too: these are near the optimum, though every task is bounded on its own.
    assert np.mean(apart) < 0.06
