"""Inputs moved by one unit in the last place: every search ends at the same answer, within its stated tolerance."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from labelled_crowds import of_ones
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.mixture import Mixture, as_mixture, climb
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy
from nextlabel.model.tasks import TaskClass
from nextlabel.solve.bound import upper_bound as solve_bound
from nextlabel.solve.curve import bound_curve
from nextlabel.solve.exact import exact_value as solve_exactly
from nextlabel.solve.index import index_table as solve_index
from nextlabel.solve.present_bound import present_bound
from tolerances import BOUND, EXACT, INDEX, INDEX_FINITE, LAST_BITS, PER_ARRIVAL

Move = Callable[[float], float]

#: What does not move is solved once for both moves.
upper_bound, index_table, exact_value = cache(solve_bound), cache(solve_index), cache(solve_exactly)


def up(x: float) -> float:
    return float(np.nextafter(x, np.inf))


def down(x: float) -> float:
    return float(np.nextafter(x, -np.inf))


MOVES = [up, down]


def still(x: float) -> float:
    return x


def moved(move: Move, horizon: float = np.inf, budget: int = 14) -> Problem:
    """Two kinds of tasks with every number that is not whole moved."""
    classes = (
        TaskClass(4, Beta(move(1.0), 1.0), move(0.45)),  # at 1/2 the last bit would end a symmetry, and with it lumping
        TaskClass(3, Beta(3.0, move(1.4)), 0.6, Accuracy(move(1.5))),
    )
    return Problem(classes, budget, move(1.5), move(0.4), horizon=move(horizon) if np.isfinite(horizon) else horizon)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("horizon", [np.inf, 6.0])
def test_scalar_bound(move: Move, horizon: float) -> None:
    one, other = upper_bound(moved(still, horizon)), upper_bound(moved(move, horizon))
    assert other.value == pytest.approx(one.value, rel=BOUND)
    assert other.lower == pytest.approx(one.lower, rel=BOUND)
    assert (other.cap, other.flight) == (one.cap, one.flight)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("horizon", [np.inf, 6.0])
def test_per_arrival_bound(move: Move, horizon: float) -> None:
    """Each is within its gap of the one optimum, which a unit in the last place does not move."""
    one, other = (upper_bound(moved(m, horizon), "per-arrival") for m in (still, move))
    assert max(one.gap, other.gap) <= PER_ARRIVAL * one.value
    assert abs(other.value - one.value) <= max(one.gap, other.gap)
    assert max(one.lower, other.lower) <= min(one.value, other.value)
    assert (other.cap, other.flight) == (one.cap, one.flight)


@pytest.mark.parametrize("move", MOVES)
def test_budget_curve(move: Move) -> None:
    budgets = np.arange(0, 15)
    one, other = (bound_curve(moved(m)).value(budgets) for m in (still, move))
    assert other == pytest.approx(one, rel=BOUND)


@pytest.mark.parametrize("move", MOVES)
def test_standing_bound(move: Move) -> None:
    groups = [np.array(column) for column in ([0, 0, 1], [0, 1, 2], [0, 1, 0], [3, 1, 3])]
    one, other = (present_bound(moved(m).classes, groups, 9) for m in (still, move))
    assert abs(other.upper - one.upper) <= max(one.slack, other.slack) + LAST_BITS


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("horizon", [np.inf, 6.0])
def test_index_roots(move: Move, horizon: float) -> None:
    budget, promise = (5, 1e-7) if np.isinf(horizon) else (3, 1e-3)
    one, other = (index_table(moved(m, horizon, budget), tolerance=promise) for m in (still, move))
    assert other.settled == one.settled
    tolerance = 2 * (INDEX if np.isinf(horizon) else INDEX_FINITE + promise)
    for a, b in zip(one.classes, other.classes, strict=True):
        assert b.rows == pytest.approx(a.rows, abs=tolerance)
        assert b.beyond == pytest.approx(a.beyond, abs=tolerance)


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("horizon", [np.inf, 4.0])
def test_exact_optimum(move: Move, horizon: float) -> None:
    one, other = (exact_value(moved(m, horizon, 4)) for m in (still, move))
    assert other.states == one.states
    assert abs(other.value - one.value) <= EXACT + one.error + other.error


#: Tasks by the ones among their labels.
COUNTS = of_ones(np.repeat([0, 1, 2, 3, 4, 5, 6, 7, 8], [9, 5, 4, 3, 2, 4, 8, 13, 12]), np.full(60, 8, dtype=np.int64))


@pytest.mark.parametrize("move", MOVES)
def test_most_likely_prior(move: Move) -> None:
    one, other = (climb(COUNTS, as_mixture(Beta(m(0.7), m(1.1)))) for m in (still, move))
    assert one.converged and other.converged
    assert other.alpha == pytest.approx(one.alpha, rel=BOUND)


@pytest.mark.parametrize("move", MOVES)
def test_most_likely_mixture(move: Move) -> None:
    def found(m: Move) -> Mixture:
        return climb(COUNTS, as_mixture(BetaMixture((0.4, 0.6), (Beta(m(1.2), m(6.0)), Beta(m(7.0), m(1.3))))))

    one, other = found(still), found(move)
    assert other.weights == pytest.approx(one.weights, rel=BOUND)
    assert other.alpha == pytest.approx(one.alpha, rel=BOUND)


def test_prices_per_arrival_are_the_same_bits_with_every_blas_kernel() -> None:
    """The kernels that OpenBLAS has for other processors add in other orders; the search must not see it."""
    code = (
        "import nextlabel as nl\n"
        "b = nl.upper_bound(nl.Problem.identical(6, 18, arrival_rate=10.0), 'per-arrival')\n"
        "print(b.value.hex(), b.lower.hex(), b.prices.tobytes().hex())\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, "OPENBLAS_CORETYPE": kernel}, capture_output=True, text=True, check=True,
        ).stdout
        for kernel in ("PRESCOTT", "NEHALEM")
    }  # fmt: skip
    assert len(answers) == 1
