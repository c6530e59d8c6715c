"""Slow oracles in plain Python, from docs/theory.md, section 2: nothing of the package's kernels or lattices is used.

State of one task: (a, b, w, n) = positive labels, negative labels, in flight, arrivals left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import linprog
from scipy.sparse import csr_array
from scipy.special import betainc

State = tuple[int, int, int, int]


def reward_in_digits(alpha: float, beta: float, d: float, digits: int = 50) -> float:
    """max(P(theta > d), P(theta < d)) for theta ~ Beta(alpha, beta), in long arithmetic."""
    with mpmath.workdps(digits + 30):
        x = mpmath.mpf(d)
        below = mpmath.betainc(mpmath.mpf(alpha), mpmath.mpf(beta), 0, x, regularized=True)
        return float(max(below, 1 - below))


@dataclass(frozen=True)
class Task:
    """One task and the rates of its workers."""

    alpha: float = 1.0
    beta: float = 1.0
    d: float = 0.5
    r: float = 0.1
    mu: float = 0.4

    def R(self, a: int, b: int) -> float:
        return _reward(self.alpha + a, self.beta + b, self.d)

    def p(self, a: int, b: int) -> float:
        return (self.alpha + a) / (self.alpha + self.beta + a + b)


@cache
def _reward(alpha: float, beta: float, d: float) -> float:
    return max(float(betainc(alpha, beta, d)), float(betainc(beta, alpha, 1.0 - d)))


def infinite(task: Task, prices: Sequence[Any], cap: int | None = None) -> Callable[[int, int, int, int], Any]:
    """V(a, b, w, n), T infinite; prices[U - n] is that of the arrival that finds n left (numbers or equal arrays).

    ``cap`` forbids more labels a task.
    """
    U = len(prices)

    @cache
    def V(a: int, b: int, w: int, n: int) -> Any:
        if n == 0 and w == 0:
            return task.R(a, b)
        q = (task.r if n else 0.0) + task.mu * w
        total = 0.0
        if n:
            best = V(a, b, w, n - 1)
            if cap is None or a + b + w < cap:
                best = np.maximum(best, V(a, b, w + 1, n - 1) - prices[U - n])
            total = task.r / q * best
        if w:
            p = task.p(a, b)
            total = total + task.mu * w / q * (p * V(a + 1, b, w - 1, n) + (1 - p) * V(a, b + 1, w - 1, n))
        return total

    return V


class Finite:
    """The single-task system with horizon T as one ODE: every state reachable from (0, 0, 0, U) at once.

    ``pieces`` (time from the start, arrival rate) stand for a constant rate; ``end`` (a, b, w) for R at the horizon.
    """

    def __init__(
        self,
        task: Task,
        prices: Sequence[float],
        T: float,
        times: Sequence[float] = (),
        *,
        pieces: Sequence[tuple[float, float]] | None = None,
        end: Callable[[int, int, int], float] | None = None,
    ) -> None:
        U = len(prices)
        self.number: dict[State, int] = {(0, 0, 0, U): 0}
        todo = list(self.number)
        wait, take, price, terms = [], [], [], []

        def at(state: State) -> int:
            if state not in self.number:
                self.number[state] = len(self.number)
                todo.append(state)
            return self.number[state]

        for i, (a, b, w, n) in enumerate(todo):
            wait.append(at((a, b, w, n - 1)) if n else i)
            take.append(at((a, b, w + 1, n - 1)) if n else i)
            price.append(prices[U - n] if n else 0.0)
            if w:
                p = task.p(a, b)
                terms.append((i, i, -task.mu * w))
                terms.append((i, at((a + 1, b, w - 1, n)), task.mu * w * p))
                terms.append((i, at((a, b + 1, w - 1, n)), task.mu * w * (1 - p)))
        size = len(todo)
        rows, cols, weights = zip(*terms, strict=True) if terms else ((), (), ())
        A = csr_array((weights, (rows, cols)), shape=(size, size), dtype=float)
        now = np.array([task.R(a, b) if end is None else end(a, b, w) for a, b, w, _ in todo])
        wait_, take_, price_ = np.array(wait), np.array(take), np.array(price)

        def slope(_: float, V: np.ndarray, r: float) -> np.ndarray:
            return A @ V + r * (np.maximum(V[wait_], V[take_] - price_) - V)

        self.times = np.array(sorted({*times, T}))
        self.values = backwards(slope, now, pieces or [(0.0, task.r)], T, self.times)

    def __call__(self, a: int, b: int, w: int, n: int, time: int = -1) -> float:
        """V at times[time] left (the last one is T)."""
        return float(self.values[self.number[a, b, w, n], time])


def backwards(
    slope: Callable[..., np.ndarray],
    now: np.ndarray,
    pieces: Sequence[tuple[float, float]],
    T: float,
    times: np.ndarray,
) -> np.ndarray:
    """V' = slope(tau, V, r) from V = now at tau = 0; columns are the ``times`` left. A new start at every jump of r."""
    V, columns = now, []
    ends = [start for start, _ in pieces[1:]] + [T]
    for (start, r), stop in reversed(list(zip(pieces, ends, strict=True))):
        lo, hi = T - stop, T - start
        at = np.array([t for t in times if lo < t <= hi])
        done = solve_ivp(slope, (lo, hi), V, "DOP853", np.unique([*at, hi]), args=(r,), rtol=1e-11, atol=1e-13)
        V = done.y[:, -1]
        columns.append(done.y[:, : len(at)])
    return np.concatenate(columns, axis=1)


def joint_optimum(
    task: Task,
    K: int,
    U: int,
    pieces: Sequence[tuple[float, float]],
    T: float,
    begin: tuple[tuple[int, int, int], ...] | None = None,
) -> float:
    """The optimum of K such tasks and U arrivals: ordered tasks (a, b, w), fresh or at ``begin``, as one ODE."""
    start = (begin or ((0, 0, 0),) * K, U)
    number = {start: 0}
    todo = [start]
    ups, terms, now = [], [], []

    def at(tasks: tuple[tuple[int, int, int], ...], n: int) -> int:
        if (tasks, n) not in number:
            number[tasks, n] = len(number)
            todo.append((tasks, n))
        return number[tasks, n]

    for i, (tasks, n) in enumerate(todo):
        now.append(sum(task.R(a, b) for a, b, _ in tasks))
        ups.append([])
        for x, (a, b, w) in enumerate(tasks):

            def put(
                new: tuple[int, int, int], x: int = x, tasks: tuple[tuple[int, int, int], ...] = tasks
            ) -> tuple[tuple[int, int, int], ...]:
                return (*tasks[:x], new, *tasks[x + 1 :])

            ups[-1].append(at(put((a, b, w + 1)), n - 1) if n else i)
            if w:
                p = task.p(a, b)
                terms.append((i, i, -task.mu * w))
                terms.append((i, at(put((a + 1, b, w - 1)), n), task.mu * w * p))
                terms.append((i, at(put((a, b + 1, w - 1)), n), task.mu * w * (1 - p)))
    rows, cols, weights = zip(*terms, strict=True)
    A = csr_array((weights, (rows, cols)), shape=(len(todo), len(todo)), dtype=float)
    up = np.array(ups)

    def slope(_: float, V: np.ndarray, r: float) -> np.ndarray:
        return A @ V + r * (V[up].max(axis=1) - V)

    return float(backwards(slope, np.array(now), pieces, T, np.array([T]))[0, -1])


def no_delay(task: Task, lam: float, labels: int, rim: bool = False) -> Callable[[int, int], float]:
    """S(a, b): every label back at once, at most ``labels`` of them; ``rim``: S = 1 where they end (an upper bound)."""

    @cache
    def S(a: int, b: int) -> float:
        if a + b == labels:
            return 1.0 if rim else task.R(a, b)
        p = task.p(a, b)
        return max(task.R(a, b), p * S(a + 1, b) + (1 - p) * S(a, b + 1) - lam)

    for m in range(labels, -1, -1):  # from the rim inwards, so that no call goes deep
        for a in range(m + 1):
            S(a, m - a)
    return S


def after_flight(task: Task, f: Callable[[int, int], float], a: int, b: int, w: int) -> float:
    """E[f after the w labels in flight]."""
    if w == 0:
        return f(a, b)
    p = task.p(a, b)
    return p * after_flight(task, f, a + 1, b, w - 1) + (1 - p) * after_flight(task, f, a, b + 1, w - 1)


def greatest_root(g: Callable[[np.ndarray], np.ndarray], top: float, tie: float = 1e-12) -> float:
    """The greatest price with g >= 0, on finer and finer grids scanned from above."""
    lo, hi = 0.0, top
    for _ in range(4):
        grid = np.linspace(lo, hi, 801)
        good = np.flatnonzero(g(grid) >= -tie)
        if len(good) == 0:
            return lo
        k = int(good[-1])
        if k == len(grid) - 1:
            return hi
        lo, hi = float(grid[k]), float(grid[k + 1])
    return lo


def index_infinite(task: Task, a: int, b: int, w: int, n: int, top: float = 0.51) -> float:
    """Greatest lam with V(a,b,w+1,n-1) - lam >= V(a,b,w,n-1), T infinite."""

    def g(lam: np.ndarray) -> np.ndarray:
        V = infinite(task, [lam] * (n - 1))
        return np.asarray(V(a, b, w + 1, n - 1) - lam - V(a, b, w, n - 1))

    return greatest_root(g, top)


def index_finite(
    task: Task,
    a: int,
    b: int,
    w: int,
    n: int,
    T: float,
    top: float = 0.51,
    pieces: Sequence[tuple[float, float]] | None = None,
) -> float:
    """Likewise with time T left: scan a coarse grid from above, then bisect."""

    def g(lam: float) -> float:
        moved = Task(task.alpha + a, task.beta + b, task.d, task.r, task.mu)
        # The system reachable from (0,0,0,n) holds both states wanted when w is 0; else start higher up.
        V = Finite(moved, [lam] * (n + w), T, pieces=pieces)
        return V(0, 0, w + 1, n - 1) - lam - V(0, 0, w, n - 1)

    hi = top
    for lo in np.linspace(top, 0.0, 25)[1:]:
        if g(float(lo)) >= 0:
            break
        hi = float(lo)
    else:
        return 0.0
    low = float(lo)
    while hi - low > 1e-9:
        mid = 0.5 * (low + hi)
        low, hi = (mid, hi) if g(mid) >= 0 else (low, mid)
    return low


def gittins(task: Task, a: int, b: int, n: int) -> float:
    """max over 1 <= tau <= n of E[R_tau - R] / E[tau]: the root in lam of the best E[R_tau - R - lam tau]."""
    moved = Task(task.alpha + a, task.beta + b, task.d)
    p, now = moved.p(0, 0), moved.R(0, 0)

    def best(lam: float) -> float:
        S = no_delay(moved, lam, n)
        return p * S(1, 0) + (1 - p) * S(0, 1) - lam - now

    lo, hi = 0.0, 0.51
    while hi - lo > 1e-11:
        mid = 0.5 * (lo + hi)
        lo, hi = (mid, hi) if best(mid) >= 0 else (lo, mid)
    return lo


def gittins_by_enumeration(task: Task, a: int, b: int, n: int) -> float:
    """The same by trying every set of nodes to go on from (n <= 3: at most 32 sets)."""
    nodes = [(x, m - x) for m in range(1, n) for x in range(m + 1)]
    moved = Task(task.alpha + a, task.beta + b, task.d)

    def run(x: int, y: int, go: frozenset[tuple[int, int]]) -> tuple[float, float]:
        if (x, y) != (0, 0) and (x, y) not in go:
            return moved.R(x, y), 0.0
        p = moved.p(x, y)
        (R1, t1), (R0, t0) = run(x + 1, y, go), run(x, y + 1, go)
        return p * R1 + (1 - p) * R0, 1 + p * t1 + (1 - p) * t0

    best = 0.0
    for chosen in itertools.product([False, True], repeat=len(nodes)):
        R, tau = run(0, 0, frozenset(node for node, yes in zip(nodes, chosen, strict=True) if yes))
        best = max(best, (R - moved.R(0, 0)) / tau)
    return best


def relaxed_lp(tasks: Sequence[tuple[int, Task]], U: int, *, per_arrival: bool) -> float:
    """The relaxed problem, T infinite, as the linear program of its occupation measure (HiGHS).

    Variables of each class: the chances take(s) and skip(s) that the arrival which finds n left meets s = (a,b,w,n).
    """
    column: dict[tuple[int, State, int], int] = {}
    gain: list[float] = []
    rows: list[dict[int, float]] = []
    right: list[float] = []
    given: list[dict[int, float]] = [{} for _ in range(U)]
    for c, (count, task) in enumerate(tasks):
        H = infinite(task, [])
        states = [
            (a, m - a, w, n)
            for n in range(U, 0, -1)
            for w in range(U - n, -1, -1)
            for m in range(U - n - w + 1)
            for a in range(m + 1)
        ]
        for a, b, w, n in states:
            for act in (0, 1):
                column[c, (a, b, w, n), act] = len(gain)
                gain.append(count * float(H(a, b, w + act, 0)) if n == 1 else 0.0)
                if act:
                    given[U - n][column[c, (a, b, w, n), 1]] = float(count)
        for a, b, w, n in states:  # (take + skip) q / r = what flows in
            q = task.r + task.mu * w
            row = {column[c, (a, b, w, n), act]: q / task.r for act in (0, 1)}
            for act in (0, 1):
                before = column.get((c, (a, b, w - act, n + 1), act))
                if before is not None:
                    row[before] = row.get(before, 0.0) - 1.0
            for up, down in ((1, 0), (0, 1)):
                source = (a - up, b - down, w + 1, n)
                if (c, source, 0) in column:
                    p = task.p(a - up, b - down)
                    for act in (0, 1):
                        row[column[c, source, act]] = -task.mu * (w + 1) / task.r * (p if up else 1 - p)
            rows.append(row)
            right.append(1.0 if (a, b, w, n) == (0, 0, 0, U) else 0.0)
    limits = given if per_arrival else [{k: v for part in given for k, v in part.items()}]
    solved = linprog(
        -np.array(gain),
        A_ub=_matrix(limits, len(gain)),
        b_ub=np.full(len(limits), 1.0 if per_arrival else float(U)),
        A_eq=_matrix(rows, len(gain)),
        b_eq=np.array(right),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solved.status == 0, solved.message
    return -float(solved.fun)


def _matrix(rows: Sequence[dict[int, float]], columns: int) -> csr_array:
    r = [i for i, row in enumerate(rows) for _ in row]
    c = [k for row in rows for k in row]
    v = [x for row in rows for x in row.values()]
    return csr_array((v, (r, c)), shape=(len(rows), columns))


def poisson_above(k: int, mean: float) -> float:
    """P(Poisson(mean) >= k), by summing the lower part."""
    return 1.0 - math.fsum(math.exp(-mean + j * math.log(mean) - math.lgamma(j + 1)) for j in range(k))
