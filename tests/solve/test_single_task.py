"""One task at a price, T infinite: the sweep against plain recursion, its theorems, its truncations."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextlabel.model.problem import Problem
from nextlabel.model.simplex import node_of_counts
from nextlabel.solve.index_roots import IndexWork
from nextlabel.solve.per_arrival import PricedProblem
from nextlabel.solve.relaxed import RelaxedProblem
from nextlabel.solve.truncation import Cut, late_tail, make_timeline
from oracles import Task, after_flight, infinite, no_delay
from strategies import prices, problem_of, tasks
from tolerances import DIFFERENCE, EXACT, ROUNDING, TRUNCATION

budgets = st.integers(1, 6)


def sweep(task: Task, U: int, lam: float, cut: Cut | None = None, *, forbid: bool = False) -> tuple[float, float]:
    """Value and labels at the root."""
    problem = problem_of(task, U)
    relaxed = RelaxedProblem(problem, cut or Cut(U, U, U), make_timeline(problem), forbid=forbid)
    sums = relaxed.at(np.array([lam]))
    return float(sums[0, 0]), float(sums[1, 0])


def all_values(task: Task, U: int, lam: float, cap: int, flight: int) -> tuple[np.ndarray, np.ndarray, IndexWork]:
    """V and N (n = 0 .. U, states) of the kernel."""
    from nextlabel.kernels.sweep import sweep as kernel

    problem = problem_of(task, U)
    work = IndexWork(problem, problem.classes[0], Cut(cap, flight, U), make_timeline(problem))
    V, N = np.zeros((2, U + 1, work.states, 1))
    kernel(work.stack, work.grid, work.steps, lam, V, N)
    return V[:, :, 0], N[:, :, 0], work


# -------------------------------------------------------------------------------------------------------- oracle


@given(tasks, budgets, prices)
def test_root_against_recursion(task: Task, U: int, lam: float) -> None:
    assert sweep(task, U, lam)[0] == pytest.approx(float(infinite(task, [lam] * U)(0, 0, 0, U)), abs=ROUNDING)


@given(tasks, st.integers(1, 5), prices)
@settings(max_examples=40)
def test_every_state_against_recursion(task: Task, U: int, lam: float) -> None:
    V, _, work = all_values(task, U, lam, U, U)
    oracle = infinite(task, [lam] * U)
    for n in range(U + 1):
        for w in range(U + 1):
            for m in range(U - w - n + 1):
                for a in range(m + 1):
                    ours = V[n, work.grid.off[w] + work.stack.node_of[node_of_counts((a, m - a))]]
                    assert ours == pytest.approx(float(oracle(a, m - a, w, n)), abs=ROUNDING)


@given(tasks, budgets, st.data())
@settings(max_examples=40)
def test_a_price_for_every_arrival_against_recursion(task: Task, U: int, data: st.DataObject) -> None:
    lam = np.array(data.draw(st.lists(prices, min_size=U, max_size=U)))
    problem = problem_of(task, U, count=3)
    priced = PricedProblem(problem, Cut(U, U, U), make_timeline(problem))
    assert priced.backward(lam) == pytest.approx(3 * float(infinite(task, lam)(0, 0, 0, U)), abs=3 * ROUNDING)


@given(tasks, budgets, prices, st.integers(1, 6))
@settings(max_examples=40)
def test_forbidding_against_recursion(task: Task, U: int, lam: float, cap: int) -> None:
    cap = min(cap, U)
    ours = sweep(task, U, lam, Cut(cap, cap, U), forbid=True)[0]
    assert ours == pytest.approx(float(infinite(task, [lam] * U, cap)(0, 0, 0, U)), abs=ROUNDING)


# ------------------------------------------------------------------------------------------------ theorems in lam


@given(tasks, budgets, st.floats(0.001, 0.3))
def test_labels_are_minus_the_slope(task: Task, U: int, lam: float) -> None:
    h = 1e-5
    values = infinite(task, [np.array([lam - h, lam, lam + h])] * U)(0, 0, 0, U) * np.ones(3)
    down, up = (values[0] - values[1]) / h, (values[1] - values[2]) / h
    labels = sweep(task, U, lam)[1]
    # V is convex: the labels lie between the slopes on the two sides, which agree away from a kink.
    assert up - DIFFERENCE <= labels <= down + DIFFERENCE
    assert 0 <= labels <= U + ROUNDING


@given(tasks, st.integers(1, 9), st.floats(0, 0.4), st.floats(0, 0.4), st.floats(0, 1))
def test_convex_and_falling_in_the_price(task: Task, U: int, one: float, other: float, share: float) -> None:
    lo, hi = min(one, other), max(one, other)
    mid = share * lo + (1 - share) * hi
    (V_lo, _), (V_mid, _), (V_hi, _) = (sweep(task, U, x) for x in (lo, mid, hi))
    assert V_lo >= V_mid - ROUNDING and V_mid >= V_hi - ROUNDING
    assert V_mid <= share * V_lo + (1 - share) * V_hi + ROUNDING
    assert V_hi >= task.R(0, 0) - ROUNDING


@given(tasks, st.integers(1, 5), prices)
@settings(max_examples=40)
def test_theory_theorem_2_no_delay_is_above(task: Task, U: int, lam: float) -> None:
    """V(a,b,w,n) <= E[S after the w labels], also with the labels that n arrivals can bring."""
    V, _, work = all_values(task, U, lam, U, U)
    S = {n: no_delay(task, lam, U + 2) if n == U else no_delay(task, lam, U + n) for n in range(U + 1)}
    endless = no_delay(task, lam, 60, rim=True)
    for n in range(U + 1):
        for w in range(U - n + 1):
            for m in range(U - n - w + 1):
                for a in range(m + 1):
                    ours = V[n, work.grid.off[w] + work.stack.node_of[node_of_counts((a, m - a))]]
                    assert ours <= after_flight(task, endless, a, m - a, w) + ROUNDING
                    assert ours >= after_flight(task, task.R, a, m - a, w) - ROUNDING
                    if n == 0:
                        assert ours == pytest.approx(after_flight(task, task.R, a, m - a, w), abs=ROUNDING)
    assert V[U, 0] <= S[U](0, 0) + ROUNDING


# ---------------------------------------------------------------------------------------------------- truncation


@pytest.mark.parametrize(("U", "r", "mu"), [(1, 0.1, 0.4), (7, 0.1, 0.4), (12, 10.0, 0.4), (30, 1.0, 1.0)])
def test_late_tail_is_the_negative_binomial(U: int, r: float, mu: float) -> None:
    """m labels need m arrivals and, for each of the first m - 1, those that pass while it is in flight."""
    tail = late_tail(Problem.identical(1, U, arrival_rate=r, completion_rate=mu), U + 3)
    back = mu / (r + mu)
    for m in range(U + 4):
        if m <= 1:
            in_time = 1.0 if m <= U else 0.0
        else:
            in_time = math.fsum(math.comb(k + m - 2, k) * back ** (m - 1) * (1 - back) ** k for k in range(U - m + 1))
        assert tail[m] == pytest.approx(1 - in_time, abs=ROUNDING)


def test_late_tail_by_simulation() -> None:
    """The chain itself: each event is the return (mu) or another arrival (r); 4 standard errors."""
    U, r, mu, runs = 12, 0.6, 0.4, 20_000
    rng = np.random.default_rng(5)
    started = np.ones(runs, dtype=np.int64)
    for _ in range(U - 1):  # a later arrival starts a label if the one before is back
        started += rng.random(runs) < mu / (r + mu)
    tail = late_tail(Problem.identical(1, U, arrival_rate=r, completion_rate=mu), U)
    for m in range(1, U + 1):
        seen = float((started < m).mean())
        assert abs(seen - tail[m]) <= 4 * math.sqrt(max(tail[m] * (1 - tail[m]), 1e-4) / runs)


@pytest.mark.parametrize(
    ("task", "U", "lam"),
    [
        (Task(), 200, 0.046875),
        (Task(), 300, 0.02),
        (Task(4, 2), 300, 0.0134486853),
        (Task(0.6, 1.4, 0.35, r=2.0), 400, 0.03),
        (Task(2, 2, 0.5, r=10.0), 600, 0.06),
    ],
)
def test_settled_values_are_the_full_sweep(task: Task, U: int, lam: float) -> None:
    """The no-delay shortcut against a sweep of all U arrivals, bracketed from below by forbidding past a deep cap."""
    problem = problem_of(task, U)
    cut, line = Cut(150, 2, 300 if U >= 300 else U), make_timeline(problem)
    relaxed = RelaxedProblem(problem, cut, line)
    sums = relaxed.at(np.array([lam]))
    assert relaxed.swept == 0
    assert 0 <= float(sums[2, 0]) <= TRUNCATION
    closed = float(RelaxedProblem(problem, cut, line, forbid=True).at(np.array([lam]))[0, 0])
    assert float(sums[0, 0]) == pytest.approx(closed, abs=TRUNCATION)


@pytest.mark.parametrize("task", [Task(), Task(3, 1.5, 0.6, r=1.0), Task(1, 1, 0.5, r=10.0)])
def test_caps_and_flights_bracket_the_truth(task: Task) -> None:
    U = 9
    oracle = infinite(task, [0.02] * U)
    truth = float(oracle(0, 0, 0, U))
    below, above = [], []
    for cap in range(1, U + 1):
        for flight in {1, (cap + 1) // 2, cap}:
            cut = Cut(cap, flight, U)
            low, high = sweep(task, U, 0.02, cut, forbid=True)[0], sweep(task, U, 0.02, cut)[0]
            assert low <= truth + ROUNDING and truth <= high + ROUNDING
            if flight == cap:
                below.append(low)
                above.append(high)
    assert np.all(np.diff(below) >= -ROUNDING) and np.all(np.diff(above) <= ROUNDING)
    assert below[-1] == pytest.approx(truth, abs=EXACT) and above[-1] == pytest.approx(truth, abs=EXACT)
    assert below[0] < truth < above[0]


def test_a_cap_as_deep_as_the_lattice_still_bounds() -> None:
    """The cap may reach the last level of the lattice: the edge must not take that for the end of all labels."""
    task, U, cap = Task(100, 100), 30, 20
    truth = sweep(task, U, 0.0)[0]
    assert sweep(task, U, 0.0, Cut(cap, cap, cap))[0] >= truth - ROUNDING


def test_kernels_run_uncompiled() -> None:
    code = (
        "from nextlabel import Problem, check_indexability, index_table, upper_bound\n"
        "p = Problem.identical(2, 3, arrival_rate=1.0)\n"
        "q = Problem.identical(2, 2, arrival_rate=1.0, horizon=3.0)\n"
        "print(upper_bound(p).value, upper_bound(p.with_budget(2), 'per-arrival').value)\n"
        "from nextlabel.solve import index_roots\n"
        "index_roots.FIRST_PRICES = 16\n"
        "print(index_table(p, tolerance=1e-5).index(0, (0, 0), 0, 3), check_indexability(p, prices=10).violations)\n"
        "import numpy as np\n"
        "from nextlabel.solve.relaxed import RelaxedProblem\n"
        "from nextlabel.solve.truncation import Cut, make_timeline\n"
        "print(RelaxedProblem(q, Cut(2, 2, 2), make_timeline(q, 12, 'graded')).at(np.array([0.05]))[0, 0])\n"
    )
    plain = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    compiled = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    numbers = np.array(plain.stdout.split(), dtype=float)
    assert len(numbers) == 5
    assert numbers == pytest.approx(np.array(compiled.stdout.split(), dtype=float), abs=EXACT)
