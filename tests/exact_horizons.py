"""The optimum of a few tasks with a finite horizon, by NumPy alone: all joint states, no lattice, no lumping.

========= ===========================================================================================
symbol    meaning
========= ===========================================================================================
s         joint state: (counts, in flight) of each task, in order, and arrivals left n
tau       time left, 0 .. T; V_s(0) = R_s; r(tau) is constant between jumps
========= ===========================================================================================

    V_s' = r max{ V_wait, V_take(x) - c for all tasks x } + mu sum_x w_x sum_j p_j V_child - (r + mu w) V_s.

The system is triangular, so that states are solved one after the other: collocation at Chebyshev points on panels that
grow geometrically from 0, from every jump of r and from every time at which the best decision changes. Such times are
found as roots of the polynomials, made panel ends, and all is solved again until there are no new ones: then every
solution is analytic on every panel. Accuracy: about 1e-13 of the rewards (tested against closed forms and SciPy).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import mpmath
import numpy as np

from exact_tasks import Counts, ExactTask, more

#: Chebyshev points per panel, first panel in units of 1/q, growth of panels, most rounds of looking for changes.
POINTS, FIRST, GROWTH, ROUNDS = 16, 0.5, 2.0, 6
Joint = tuple[tuple[tuple[Counts, int], ...], int]


def _chebyshev(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points -1 = x_0 < ... < x_n = 1 and the matrix that differentiates polynomials through them."""
    x = -np.cos(np.pi * np.arange(n + 1) / n)
    c = np.where((np.arange(n + 1) == 0) | (np.arange(n + 1) == n), 2.0, 1.0) * (-1.0) ** np.arange(n + 1)
    apart = x[:, None] - x + np.eye(n + 1)
    D = np.outer(c, 1.0 / c) / apart
    return x, D - np.diag(D.sum(axis=1))


AT, DERIVATIVE = _chebyshev(POINTS - 1)
TO_COEFFICIENTS = np.linalg.inv(np.polynomial.chebyshev.chebvander(AT, POINTS - 1))


class JointStates:
    """All states that K tasks can be in, in an order in which each needs only earlier ones."""

    def __init__(self, tasks: Sequence[ExactTask], budget: int) -> None:
        known = [task.beliefs(budget) for task in tasks]
        order: list[Joint] = []
        seen: set[Joint] = set()

        def visit(state: Joint) -> None:
            if state in seen:
                return
            seen.add(state)
            for after in self._after(state, tasks):
                visit(after)
            order.append(state)

        start: Joint = (tuple(((0,) * task.answers, 0) for task in tasks), budget)
        visit(start)
        number = {state: k for k, state in enumerate(order)}
        with mpmath.workdps(30):
            worth = [mpmath.fsum(b.reward(c) for b, (c, _) in zip(known, now, strict=True)) for now, _ in order]
            self.base = float(worth[-1])  # all values are counted from that of the start, which keeps their digits
            self.reward = np.array([float(value - worth[-1]) for value in worth])
            self.comes = []  # (state, chance times labels in flight) of every label that can come in
            self.choices = []  # states after an arrival: not used, then given to each task
            self.flight = np.array([sum(w for _, w in now) for now, _ in order])
            self.left = np.array([n for _, n in order])
            for now, n in order:
                into = []
                for x, (c, w) in enumerate(now):
                    for j, p in enumerate(known[x].chances(c) if w else ()):
                        into.append((number[_put(now, x, (more(c, j), w - 1)), n], w * float(p)))
                self.comes.append(into)
                taken = [number[_put(now, x, (c, w + 1)), n - 1] for x, (c, w) in enumerate(now)] if n else []
                self.choices.append([number[now, n - 1], *taken] if n else [])

    @staticmethod
    def _after(state: Joint, tasks: Sequence[ExactTask]) -> list[Joint]:
        now, n = state
        out: list[Joint] = []
        for x, (c, w) in enumerate(now):
            if w:
                out += [(_put(now, x, (more(c, j), w - 1)), n) for j in range(tasks[x].answers)]
            if n:
                out.append((_put(now, x, (c, w + 1)), n - 1))
        return [*out, (now, n - 1)] if n else out


def _put(now: tuple[tuple[Counts, int], ...], x: int, new: tuple[Counts, int]) -> tuple[tuple[Counts, int], ...]:
    return (*now[:x], new, *now[x + 1 :])


def optimum(
    tasks: Sequence[ExactTask],
    budget: int,
    pieces: Sequence[tuple[float, float]],
    mu: float,
    T: float,
    cost: float = 0.0,
) -> float:
    """The value of the best policy; ``pieces`` are (time from the start, arrival rate)."""
    states = JointStates(tasks, budget)
    starts = [start for start, _ in pieces]
    rates = [r for _, r in pieces][::-1]
    jumps = [0.0, *(T - s for s in starts[:0:-1]), T]
    fastest = max(rates) + mu * budget
    breaks = set(jumps)
    for _ in range(ROUNDS):
        edges = _panels(sorted(breaks), fastest)
        middle = 0.5 * (edges[1:] + edges[:-1])
        r = np.array(rates)[np.searchsorted(jumps, middle) - 1]
        value, changes = _solve(states, edges, r, mu, cost)
        new = {t for t in changes if min(abs(t - b) for b in breaks) > 1e-9 * (1.0 / fastest + t)}
        if not new:
            break
        breaks |= new
    return states.base + value


def one_label(r: float, mu: float, T: float) -> float:
    """The optimum of one task and one arrival, Beta(1, 1): 1/2 + P(the label comes in before T) / 4."""
    if r == mu:
        return 0.5 + 0.25 * (1.0 - math.exp(-r * T) * (1.0 + r * T))
    return 0.5 + 0.25 * (1.0 - (mu * math.exp(-r * T) - r * math.exp(-mu * T)) / (mu - r))


def _panels(breaks: Sequence[float], fastest: float) -> np.ndarray:
    """Panel ends: from each break panels that grow until the next one."""
    ends = [breaks[0]]
    for low, high in pairwise(breaks):
        step, at = FIRST / fastest, low
        while at + 1.5 * step < high:
            at += step
            ends.append(at)
            step *= GROWTH
        ends.append(high)
    return np.array(ends)


def _solve(states: JointStates, edges: np.ndarray, r: np.ndarray, mu: float, cost: float) -> tuple[float, set[float]]:
    half = 0.5 * np.diff(edges)
    V = np.empty((len(states.reward), len(half), POINTS))
    changes: set[float] = set()
    solvers: dict[tuple[int, bool], tuple[np.ndarray, np.ndarray]] = {}
    for s in range(len(V)):
        w, busy = int(states.flight[s]), bool(states.left[s])
        if (w, busy) not in solvers:
            solvers[w, busy] = _collocation(half, (r if busy else 0.0 * r) + mu * w)
        from_start, from_source = solvers[w, busy]
        source = np.zeros_like(V[0])
        for child, p in states.comes[s]:
            source += mu * p * V[child]
        if busy:
            wait, *take = states.choices[s]
            options = np.stack([V[wait], *(V[t] - cost for t in take)])
            best = _choose(options)
            source += r[:, None] * np.take_along_axis(options, best[None, :, None], axis=0)[0]
            changes |= _changes(options, edges, 1e-12 * float(np.ptp(states.reward)))
        inner = np.einsum("kij,kj->ki", from_source, source)
        now = states.reward[s]
        for k in range(len(half)):
            V[s, k] = from_start[k] * now + inner[k]
            now = V[s, k, -1]
    return float(V[-1, -1, -1]), changes


def _collocation(half: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """V on a panel = first * V(start) + second @ source, for V' = source - q V."""
    system = DERIVATIVE[None] / half[:, None, None] + q[:, None, None] * np.eye(POINTS)
    inverse = np.linalg.inv(system[:, 1:, 1:])
    second = np.zeros((len(half), POINTS, POINTS))
    second[:, 1:, 1:] = inverse
    first = np.ones((len(half), POINTS))
    first[:, 1:] = -np.einsum("kij,kj->ki", inverse, system[:, 1:, 0])
    return first, second


def _choose(options: np.ndarray) -> np.ndarray:
    """The option that is best on most of each panel: its sum is the largest."""
    return np.asarray(options.sum(axis=2).argmax(axis=0))


def _changes(options: np.ndarray, edges: np.ndarray, even: float) -> set[float]:
    """Times within a panel at which two options cross, both best somewhere on it and not the same."""
    out: set[float] = set()
    ahead = options.argmax(axis=0)
    for k in np.flatnonzero((ahead != ahead[:, :1]).any(axis=1)):
        best = sorted(set(ahead[k].tolist()))
        for i, a in enumerate(best):
            for b in best[i + 1 :]:
                apart = options[a, k] - options[b, k]
                if np.abs(apart).max() <= even:
                    continue
                roots = np.polynomial.chebyshev.chebroots(TO_COEFFICIENTS @ apart)
                real = roots.real[(np.abs(roots.imag) < 1e-10) & (np.abs(roots.real) < 1.0)]
                out |= {float(edges[k] + 0.5 * (edges[k + 1] - edges[k]) * (1.0 + x)) for x in real}
    return out
