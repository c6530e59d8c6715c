"""Time layers of a solve: one layer for an infinite horizon, tau_0 = 0 .. tau_m = T for a finite one.

Graded layers are closer together where little time is left, because there the states with many labels in flight move
fast: tau_k = T (k/m)^1.5.

Where the arrival rate jumps V has a kink in tau. So every jump is a layer, each piece of constant rate [a, b] has steps
of its own, tau = a + (b - a) (k/m)^1.5, and no stencil reaches across. A piece has its share of the steps, half of them
by its length and half by the arrivals expected in it, so that a short rush is not stepped over. Where labels come in
much faster than the horizon is long, a boundary layer of length 1/mu at tau = a would lie within one step: there half
of the steps are spread evenly and half evenly in log(1 + rate (tau - a)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Steps, StepWeights
from nextlabel.problem.problem import Problem
from nextlabel.solve.truncation import swept_arrivals

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


#: For an infinite horizon, which has no steps.
NO_STEPS = StepWeights(np.zeros((2, 1, 1, 4)), np.zeros((2, 1, 1)), np.zeros(1, dtype=np.int64))


def _spaced(length: float, m: int, spacing: str, rate: float) -> Floats:
    """m + 1 times from 0 to ``length``."""
    even = np.linspace(0.0, 1.0, m + 1)
    if spacing == "even" or rate * length <= STIFF:
        return np.asarray(length * even ** (GRADING if spacing == "graded" else 1.0), dtype=np.float64)
    fine = np.linspace(0.0, np.log1p(rate * length), 4096)
    at = np.expm1(fine) / rate
    return np.interp(even, 0.5 * (fine / fine[-1] + at / at[-1]), at)


def step_weights(problem: Problem, line: Timeline, flight: int) -> StepWeights:
    """Weights of int_0^h e^{-q(h-s)} G(s) ds on four-point stencils, for every in-flight number, with and without r."""
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
            q = arrivals * line.r[k] + problem.completion_rate * w
            # Only the last REACH / q of a long step counts; all points go there.
            span = np.minimum(h, REACH / np.maximum(q, 1e-300))
            s = (h - span)[:, None] + 0.5 * span[:, None] * (1.0 + at)
            density = np.exp(-q[:, None] * (h[:, None] - s)) * by * 0.5 * span[:, None]
            weights[arrivals, w, 1:] = np.einsum("kg,kgi->ki", density, _lagrange(s, x))
            decay[arrivals, w, 1:] = np.exp(-q * h)
    return StepWeights(weights, decay, start.astype(np.int64))


def _lagrange(s: Floats, x: Floats) -> Floats:
    """(steps, points, 4) the four cubics that are 1 at one of the stencil's times x and 0 at the others."""
    basis = np.ones((*s.shape, 4))
    for g in range(4):
        for other in range(4):
            if other != g:
                basis[:, :, g] *= (s - x[:, None, other]) / (x[:, g] - x[:, other])[:, None]
    return basis
