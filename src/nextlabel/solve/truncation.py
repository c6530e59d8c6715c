"""Where the infinite is cut: labels per task, labels in flight, arrivals left, and what each cut may cost.

====== ======= ==================================================================================
symbol code    meaning
====== ======= ==================================================================================
C      cap     labels given to one task in the sweep; beyond it the no-delay continuation takes over
W      flight  labels of one task in flight at once in the sweep, likewise
D      depth   last level of the lattice on which the no-delay problem is solved
====== ======= ==================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np
from scipy.special import betainc, pdtr, pdtrc

from nextlabel.arrays import Floats
from nextlabel.beliefs.lattice import stack_lattices
from nextlabel.beliefs.simplex import deepest
from nextlabel.errors import ProblemError
from nextlabel.kernels.no_delay import EDGE_ROWS, no_delay
from nextlabel.problem.problem import Problem, whole

#: Values within this of their limit count as settled.
SETTLED = 1e-11
#: Caps tried, in this order, until the cap costs less than CAP_TOLERANCE of the value.
CAPS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
CAP_TOLERANCE = 1e-5
#: Probability of more arrivals than are swept, for a finite horizon.
ARRIVAL_TAIL = 1e-13
#: Classes, and beliefs of each, from which the labels worth buying are told when labels cost something.
SAMPLE_CLASSES, SAMPLE_NODES = 16, 20_000


@dataclass(frozen=True, slots=True)
class Cut:
    """Truncation of one solve; ``cap`` labels per task, ``flight`` of them at once, lattice ``depth``."""

    cap: int
    flight: int
    depth: int


def make_cut(problem: Problem, cap: int | None, flight: int | None) -> Cut:
    """Check what the user gave and fill in the rest: room for a few times the mean labels per task and in flight."""
    top = max(problem.budget, 1)
    if cap is None:
        wanted = 4 + 2.5 * min(problem.budget / problem.tasks, worth_buying(problem))
        C = next((c for c in CAPS if c >= wanted), CAPS[-1])
    else:
        C = whole("cap", cap, 1, "Give at least one label a task, e.g. --cap 10.")
    C = min(C, top, deepest(problem.answers))
    if flight is None:
        W = ceil(6 + 3 * problem.rho / problem.tasks)
    else:
        W = whole("flight", flight, 1, "Give at least one label in flight, e.g. --flight 4.")
    return Cut(C, min(W, C), min(top, max(no_delay_depth(problem), C + EDGE_ROWS), max(C, deepest(problem.answers))))


def worth_buying(problem: Problem) -> float:
    """Mean labels per task that are worth their cost, were they to come at once; of some of the classes the most."""
    if problem.label_cost == 0:
        return inf
    depth = min(problem.budget, deepest(problem.answers, SAMPLE_NODES), 64)
    some = problem.classes[:: max(1, len(problem.classes) // SAMPLE_CLASSES)]
    stack = stack_lattices([c.prior for c in some], [c.threshold for c in some], [c.reward for c in some], depth)
    out, work = np.empty((len(some), 4)), np.empty((3, stack.nodes))
    no_delay(stack.arrays, problem.label_cost, np.zeros(depth + 1), work, out)
    return float(out[:, 1].max())


def no_delay_depth(problem: Problem) -> int:
    """A depth at which the no-delay problem hardly ever arrives: a few times the mean labels per task, at least 64."""
    return min(problem.budget, deepest(problem.answers), max(64, 8 * -(-problem.budget // problem.tasks)))


def late_tail(problem: Problem, depth: int) -> Floats:
    """P(m labels, each waited for before the next is asked, cannot all be started within U arrivals), m = 0 .. depth.

    Between the start of one label and its return pass Geometric(mu / (r + mu)) arrivals, so that m labels need
    m + NegBin(m - 1, mu / (r + mu)) arrivals. For an infinite horizon; with a finite one nothing is settled by it.
    """
    U, back = problem.budget, 1.0 / (1.0 + problem.rho)
    m = np.arange(depth + 1, dtype=np.float64)
    tail = np.zeros(depth + 1)
    some = (m >= 2) & (m <= U)
    tail[some] = betainc(U - m[some] + 1, m[some] - 1, 1.0 - back)
    tail[m > U] = 1.0
    return tail


def swept_arrivals(problem: Problem) -> tuple[int, float]:
    """Arrivals worth sweeping for a finite horizon, and the probability that there are more."""
    if not problem.finite:
        return problem.budget, 0.0
    mean = problem.mean_arrivals
    most = ceil(mean + 10.0 * mean**0.5 + 30.0)
    if most >= problem.budget:
        return problem.budget, 0.0
    while most > 1 and pdtrc(most - 1, mean) <= ARRIVAL_TAIL:
        most -= 1
    return most, float(pdtrc(most, mean))


def enough_time(problem: Problem) -> tuple[Problem, float]:
    """The problem with no more time than all U arrivals and their labels need, and the chance that they need more.

    A policy for the longer horizon earns as much in the shorter one unless one of the U arrivals or its label comes
    later, so that values differ by at most that chance times the spread. With a constant rate the horizon is then taken
    away altogether: no horizon is worth more than any, and the same chance bounds the difference.
    """
    U, mu = problem.budget, problem.completion_rate
    wanted = U + 8.0 * U**0.5 + 40.0
    if not problem.finite or problem.mean_arrivals <= wanted:
        return problem, 0.0
    starts, rates = problem.rate_pieces
    knots = np.append(starts, problem.horizon)
    come = np.append(0.0, np.cumsum(rates * np.diff(knots)))
    horizon = float(np.interp(wanted, come, knots)) + (np.log(U) + 32.0) / mu
    if horizon >= problem.horizon:
        return problem, 0.0
    late = float(pdtr(U - 1, wanted)) + float(np.exp(-32.0))
    return replace(problem, horizon=inf if len(rates) == 1 else horizon), late


def arrival_chances(problem: Problem) -> Floats:
    """P(worker l arrives before T) for the arrivals that are swept, l = 1, 2, ..."""
    arrivals, _ = swept_arrivals(problem)
    if not problem.finite:
        return np.ones(arrivals)
    return np.asarray(pdtrc(np.arange(arrivals), problem.mean_arrivals), dtype=np.float64)


def expected_arrivals(problem: Problem) -> float:
    """E[number of workers who arrive before T], at most U."""
    return float(arrival_chances(problem).sum()) if problem.finite else float(problem.budget)


def check_prices(prices: str) -> str:
    """``scalar`` or ``per-arrival``."""
    if prices not in ("scalar", "per-arrival"):
        raise ProblemError(f"prices {prices!r} are not known.", "Use scalar or per-arrival.")
    return prices
