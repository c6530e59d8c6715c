"""Values of one task before a deadline at prices by time: for the martingale gap and for policies that rank by them.

========= ============ ============== ==================================================================
symbol    code         shape          meaning
========= ============ ============== ==================================================================
tau       tau          (m,)           time left at the layers, rising from 0; every jump of r is one
p(tau)    price        (m,)           price of a label, without its cost, linear between layers
V         value        [c] (m, S)     value of a task of class c with tau left
--        charge       --             E[sum of the prices of the first U workers who come before T]
========= ============ ============== ==================================================================

Prices are those of ``solve.batched``, with workers who come evenly; any others would do. V solves the equation of
``kernels.timed_gap`` on lattices that end after C labels, with as many of them in flight.
Guarantee: V to the fourth order in the step, which resolves every rate. Cost: four sweeps over the states per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from scipy.special import pdtr

from nextlabel.arrays import Floats
from nextlabel.kernels.timed_gap import integrate
from nextlabel.problem.problem import Problem
from nextlabel.problem.state import fresh_groups
from nextlabel.solve.batched.prices import BatchPrices, PriceSolver
from nextlabel.solve.standing.deadline import MOST_CLASSES, per_label_in_time, spaced
from nextlabel.solve.truncation import make_cut

#: Layers, and steps between all of them at most: with more arrivals there is no martingale.
LAYERS, MOST_STEPS = 384, 100_000
#: Labels of one task at most: states grow with the cube of it.
MOST_CAP = 16


@dataclass(frozen=True, slots=True)
class TimedValues:
    """Values at all layers, on the grid of ``solver``; in the unit of the problem's rewards."""

    solver: PriceSolver
    plan: BatchPrices
    tau: Floats
    price: Floats
    value: list[Floats]
    slope: list[Floats]
    charge: float

    @property
    def start(self) -> Floats:
        """V of a fresh task of each class with all the time left."""
        return np.array([one[-1, 0] for one in self.value])


def can_be_timed(problem: Problem) -> bool:
    """Whether there are few enough kinds of tasks, and few enough arrivals, for values by time."""
    if not problem.finite or len(problem.classes) > MOST_CLASSES:
        return False
    return _steps(problem, MOST_CAP) <= MOST_STEPS


@lru_cache(maxsize=2)
def timed_values(problem: Problem) -> TimedValues:
    """Solve for prices and values of ``problem``, whose rewards are in units (``reward_unit``)."""
    cap = min(make_cut(problem, None, None).cap, MOST_CAP)
    solver = PriceSolver(problem, cap=cap, flight=cap, closed=True)
    plan = solver.solve(fresh_groups(problem.classes), problem.budget)
    T, mu = problem.horizon, problem.completion_rate
    starts, rates = problem.rate_pieces
    even = spaced(T, mu, LAYERS)
    tau = np.union1d(even, T - starts[1:])
    tau = tau[np.append(True, np.diff(tau) > 1e-12 * T)]
    tau[-1] = T
    at, worth = per_label_in_time(problem, plan, solver.unit)
    price = np.interp(T - tau, at, worth) * -np.expm1(-mu * tau)
    middle = T - 0.5 * (tau[1:] + tau[:-1])
    rate = rates[np.searchsorted(starts, middle, side="right") - 1]
    fastest = float(rates.max()) + mu * cap
    parts = max(1, ceil(float(np.diff(tau).max()) * fastest))
    stack, grid = solver.stack, solver.sweeps.grid
    values, slopes = [], []
    for b in range(len(problem.classes)):
        value, slope = np.zeros((len(tau), grid.states)), np.zeros((len(tau), 2, grid.states))
        integrate(stack.arrays, b, grid, mu, tau, rate, price + problem.label_cost, parts, value, slope)
        values.append(value)
        slopes.append(slope)
    return TimedValues(solver, plan, tau, price, values, slopes, _charge(problem, tau, price, rate))


def _steps(problem: Problem, cap: int) -> float:
    """Steps of the integration, at least."""
    return float(problem.horizon * (problem.peak_rate + problem.completion_rate * cap))


def _charge(problem: Problem, tau: Floats, price: Floats, rate: Floats) -> float:
    """int r(t) p(t) P(fewer than U workers before t) dt, by Gauss' rule between layers."""
    at, by = np.polynomial.legendre.leggauss(6)
    starts, rates = problem.rate_pieces
    knots = np.append(starts, problem.horizon)
    come = np.append(0.0, np.cumsum(rates * np.diff(knots)))
    share = 0.5 * (1.0 + at)
    h = np.diff(tau)
    left = tau[:-1, None] + h[:, None] * share
    paid = price[:-1, None] + np.diff(price)[:, None] * share
    before = np.interp(problem.horizon - left, knots, come)
    return float((0.5 * h[:, None] * by * rate[:, None] * paid * pdtr(problem.budget - 1, before)).sum())
