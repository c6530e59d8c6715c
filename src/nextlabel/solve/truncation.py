"""Where the infinite is cut: labels per task, labels in flight, arrivals left and time, and what each cut may cost.

====== ======= ==================================================================================
symbol code    meaning
====== ======= ==================================================================================
C      cap     labels given to one task in the sweep; beyond it the no-delay continuation takes over
W      flight  labels of one task in flight at once in the sweep, likewise
D      depth   last level of the lattice on which the no-delay problem is solved
tau_k  tau     time left at the layers, 0 .. T; one layer for an infinite horizon
====== ======= ==================================================================================

Graded layers are closer together where little time is left, because there the states with many labels in flight move
fast: tau_k = T (k/m)^1.5. Where the arrival rate jumps V has a kink in tau. So every jump is a layer, each piece of
constant rate [a, b] has steps of its own, tau = a + (b - a) (k/m)^1.5, and no stencil reaches across. A piece has its
share of the steps, half of them by its length and half by the arrivals expected in it, so that a short rush is not
stepped over. Where labels come in much faster than the horizon is long, a boundary layer of length 1/mu at tau = a
would lie within one step: there half of the steps are spread evenly and half evenly in log(1 + rate (tau - a)).

A sweep numbers its states off[w] + i on a lattice that may be lumped and ends at the cap; simulation, policies and
campaigns number them [w, node] on the class's own lattice, whose ``first`` is called ``own`` here. ``core`` is the map;
-1 where the sweep offers no label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np
from scipy.special import betainc, pdtr, pdtrc

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.kernels.inputs import Grid, Steps
from nextlabel.kernels.no_delay import EDGE_ROWS, no_delay
from nextlabel.kernels.sweep import Stencils, no_deadline
from nextlabel.model.lattice import level_of
from nextlabel.model.problem import Problem
from nextlabel.model.simplex import deepest
from nextlabel.model.tasks import stack_classes, whole

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
    stack = stack_classes(some, depth)
    out, work = np.empty((len(some), 4)), np.empty((3, stack.nodes))
    no_delay(stack, problem.label_cost, np.zeros(depth + 1), work, out)
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
    knots, come = arrivals_by_time(problem)
    rates = problem.rate_pieces[1]
    horizon = float(np.interp(wanted, come, knots)) + (np.log(U) + 32.0) / mu
    if horizon >= problem.horizon:
        return problem, 0.0
    late = float(pdtr(U - 1, wanted)) + float(np.exp(-32.0))
    return replace(problem, horizon=inf if len(rates) == 1 else horizon), late


def arrivals_by_time(problem: Problem) -> tuple[Floats, Floats]:
    """Times from 0 to T between which workers come at one rate, and those expected up to each."""
    starts, rates = problem.rate_pieces
    knots = np.append(starts, problem.horizon)
    return knots, np.append(0.0, np.cumsum(rates * np.diff(knots)))


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


GRADING = 1.5
#: Completions within a piece beyond which its boundary layer gets steps of its own, and labels in flight counted there.
STIFF, BUSY = 1000.0, 4
#: Points of the rule within a step, and how far it reaches back, in units of 1/q.
GAUSS_NODES, REACH = 24, 40.0
#: Steps of a piece of the arrival rate, at least: a stencil of four layers has to fit.
LEAST_STEPS = 3


@dataclass(frozen=True, slots=True)
class Timeline:
    """Per layer: time left, and length and arrival rate of the step that ends there.

    ``pieces`` are the steps of each piece of constant arrival rate, in the order of the time left.
    """

    finite: bool
    arrivals: int
    tau: Floats
    h: Floats
    r: Floats
    pieces: Ints
    spacing: str = "even"

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.tau)

    def steps(self, completion_rate: float) -> Steps:
        """What the kernels take."""
        return Steps(self.finite, completion_rate, self.tau, self.h, self.r)


def make_timeline(problem: Problem, steps: int = 0, spacing: str = "even") -> Timeline:
    """``steps`` steps over the horizon; one layer when it is infinite.

    ``spacing``: ``even``; ``layered``, even but for a boundary layer; ``graded``, which is finer where little time is
    left, and layered too.
    """
    if not problem.finite:
        one = np.zeros(1)
        nowhere = np.zeros(0, dtype=np.int64)
        return Timeline(False, problem.budget, np.array([np.inf]), one, problem.rate_pieces[1], nowhere)
    edges, rates = rates_left(problem)
    if len(rates) == 1:
        return _layers(problem, np.array([steps]), spacing)
    length = np.diff(edges)
    share = 0.5 * (length / problem.horizon + length * rates / problem.mean_arrivals)
    return _layers(problem, np.maximum(np.rint(steps * share).astype(np.int64), LEAST_STEPS), spacing)


def halve_steps(problem: Problem, line: Timeline) -> Timeline:
    """The same timeline with every step cut in two: layer k becomes layer 2 k."""
    return _layers(problem, 2 * line.pieces, line.spacing)


def rates_left(problem: Problem) -> tuple[Floats, Floats]:
    """Times left 0 = tau_0 < tau_1 .. = T between which the arrival rate is constant, and the rates there."""
    starts, rates = problem.rate_pieces
    return np.concatenate([[0.0], problem.horizon - starts[:0:-1], [problem.horizon]]), rates[::-1]


def _layers(problem: Problem, pieces: Ints, spacing: str) -> Timeline:
    """Layers with so many steps in each piece."""
    edges, rates = rates_left(problem)
    tau = [np.zeros(1)]
    for a, b, m in zip(edges[:-1], edges[1:], pieces, strict=True):
        inside = a + _spaced(float(b - a), int(m), spacing, BUSY * problem.completion_rate)
        inside[-1] = b
        tau.append(inside[1:])
    at = np.concatenate(tau)
    h = np.diff(at, prepend=-at[1])
    r = np.repeat(rates, pieces)
    return Timeline(True, swept_arrivals(problem)[0], at, h, np.append(r[0], r), pieces, spacing)


def _spaced(length: float, m: int, spacing: str, rate: float) -> Floats:
    """m + 1 times from 0 to ``length``."""
    if spacing == "even" or rate * length <= STIFF:
        power = GRADING if spacing == "graded" else 1.0
        return np.asarray(length * np.linspace(0.0, 1.0, m + 1) ** power, dtype=np.float64)
    return layered_times(length, m, rate)


def layered_times(length: float, m: int, rate: float) -> Floats:
    """m + 1 times from 0 to ``length``: half of the steps even, half of them even in log(1 + rate time)."""
    fine = np.linspace(0.0, np.log1p(rate * length), 4096)
    at = np.expm1(fine) / rate
    at[-1] = length
    return np.interp(np.linspace(0.0, 1.0, m + 1), 0.5 * (fine / fine[-1] + at / length), at)


def expected_given(left: Floats | int, mean: Floats | float) -> Floats:
    """E[min(left, N)] for a Poisson number N of arrivals: mean P(N <= left - 2) + left P(N >= left)."""
    n = np.asarray(left, dtype=np.float64)
    few = np.where(n >= 2, mean * pdtr(np.maximum(n - 2, 0), mean), 0.0)
    return np.asarray(few + np.where(n >= 1, n * pdtrc(np.maximum(n - 1, 0), mean), 0.0), dtype=np.float64)


def make_stencils(problem: Problem, line: Timeline, flight: int) -> Stencils:
    """Weights of int_0^h e^{-q(h-s)} G(s) ds on four-point stencils, for every in-flight number, with and without r."""
    mu = problem.completion_rate
    if not line.finite:
        always: Stencils = no_deadline(line.r[0], mu, flight)
        return always
    k = np.arange(1, line.layers)
    last = np.repeat(np.cumsum(line.pieces), line.pieces)
    start = np.append(0, np.clip(k - 2, last - np.repeat(line.pieces, line.pieces), last - 3))
    weights = np.zeros((2, flight + 1, line.layers, 4))
    decay = np.ones((2, flight + 1, line.layers))
    at, by = np.polynomial.legendre.leggauss(GAUSS_NODES)
    h = line.tau[k] - line.tau[k - 1]
    x = line.tau[start[k][:, None] + np.arange(4)] - line.tau[k - 1][:, None]
    for arrivals in range(2):
        for w in range(flight + 1):
            q = arrivals * line.r[k] + mu * w
            # Only the last REACH / q of a long step counts; all points go there.
            span = np.minimum(h, REACH / np.maximum(q, 1e-300))
            s = (h - span)[:, None] + 0.5 * span[:, None] * (1.0 + at)
            density = np.exp(-q[:, None] * (h[:, None] - s)) * by * 0.5 * span[:, None]
            weights[arrivals, w, 1:] = np.einsum("kg,kgi->ki", density, _lagrange(s, x))
            decay[arrivals, w, 1:] = np.exp(-q * h)
    none = np.zeros((flight + 1, 1, 1))
    start = start.astype(np.int64)
    return Stencils(np.zeros(line.layers), start, none, none, line.tau, line.r, mu, weights, decay)


def _lagrange(s: Floats, x: Floats) -> Floats:
    """(steps, points, 4) the four cubics that are 1 at one of the stencil's times x and 0 at the others."""
    basis = np.ones((*s.shape, 4))
    for g in range(4):
        for other in range(4):
            if other != g:
                basis[:, :, g] *= (s - x[:, None, other]) / (x[:, g] - x[:, other])[:, None]
    return basis


def state_columns(grid: Grid, node_of: Ints, flight: int, own: Ints, *, edge: bool) -> Ints:
    """(flight + 1, nodes) number of state [w, node] in a sweep; -1 past it, and on its edge unless ``edge``."""
    level = level_of(own)
    out = np.full((flight + 1, len(level)), -1, dtype=np.int64)
    for w in range(min(grid.W + edge, flight + 1)):
        inside = np.flatnonzero(level < grid.C - w + edge)
        out[w, inside] = grid.off[w] + node_of[inside]
    return out


def differences(V: Floats, grid: Grid) -> Floats:
    """V(i, w+1) - V(i, w) along the last axis of a sweep's values; 0 on the edge."""
    A, offered = np.zeros_like(V), np.flatnonzero(grid.up >= 0)
    A[..., offered] = V[..., grid.up[offered]] - V[..., offered]
    return A


def over_own_lattice(table: Floats, first: Ints, node_of: Ints, flight: int, own: Ints) -> Floats:
    """(flight + 1, nodes) from a table (w, lumped nodes); its last row serves larger w, 0 below its last level."""
    level = level_of(own)
    known = np.flatnonzero(level <= len(first) - 2)
    rows = np.minimum(np.arange(flight + 1), len(table) - 1)
    out = np.zeros((flight + 1, len(level)))
    out[:, known] = table[np.ix_(rows, node_of[known])]
    return out
