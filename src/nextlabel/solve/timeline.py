"""Time layers of a solve: one layer for an infinite horizon, tau_0 = 0 .. tau_m = T for a finite one.

Erlang phases are equal; the layers of the fourth-order sweep are closer together where little time is left, because
there the states with many labels in flight move fast: tau_k = T (k/m)^1.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.problem.problem import Problem
from nextlabel.solve.truncation import swept_arrivals

GRADING = 1.5
GAUSS_NODES = 24


@dataclass(frozen=True, slots=True)
class Timeline:
    """Per layer: time left, and length, arrival rate and Erlang rate of the step that ends there."""

    finite: bool
    arrivals: int
    tau: Floats
    h: Floats
    r: Floats
    eta: Floats

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.tau)


def make_timeline(problem: Problem, steps: int = 0, *, graded: bool = False) -> Timeline:
    """``steps`` steps over the horizon, equal or graded; one layer when it is infinite."""
    arrivals, _ = swept_arrivals(problem)
    if not problem.finite:
        one = np.zeros(1)
        return Timeline(False, arrivals, np.array([np.inf]), one, np.array([problem.arrival_rate]), one)
    tau = problem.horizon * np.linspace(0.0, 1.0, steps + 1) ** (GRADING if graded else 1.0)
    h = np.diff(tau, prepend=-tau[1])
    return Timeline(True, arrivals, tau, h, np.full(steps + 1, problem.arrival_rate), 1.0 / h)


@dataclass(frozen=True, slots=True)
class StepWeights:
    """Quadrature of the fourth-order sweep (see ``kernels.horizon``)."""

    weights: Floats
    decay: Floats
    start: Ints


#: For an infinite horizon, which has no steps.
NO_STEPS = StepWeights(np.zeros((2, 1, 1, 4)), np.zeros((2, 1, 1)), np.zeros(1, dtype=np.int64))


def step_weights(problem: Problem, line: Timeline, flight: int) -> StepWeights:
    """Weights of int_0^h e^{-q(h-s)} G(s) ds on four-point stencils, for every in-flight number, with and without r."""
    m = line.layers - 1
    start = np.clip(np.arange(line.layers) - 2, 0, m - 3)
    start[0] = 0
    weights = np.zeros((2, flight + 1, line.layers, 4))
    decay = np.ones((2, flight + 1, line.layers))
    at, by = np.polynomial.legendre.leggauss(GAUSS_NODES)
    k = np.arange(1, line.layers)
    h = line.tau[k] - line.tau[k - 1]
    s = 0.5 * h[:, None] * (1.0 + at)
    x = line.tau[start[k][:, None] + np.arange(4)] - line.tau[k - 1][:, None]
    basis = np.ones((m, GAUSS_NODES, 4))
    for g in range(4):
        for other in range(4):
            if other != g:
                basis[:, :, g] *= (s - x[:, None, other]) / (x[:, g] - x[:, other])[:, None]
    for arrivals in range(2):
        for w in range(flight + 1):
            q = arrivals * problem.arrival_rate + problem.completion_rate * w
            density = np.exp(-q * (h[:, None] - s)) * by * 0.5 * h[:, None]
            weights[arrivals, w, 1:] = np.einsum("kg,kgi->ki", density, basis)
            decay[arrivals, w, 1:] = np.exp(-q * h)
    return StepWeights(weights, decay, start.astype(np.int64))
