"""Indexability: held where little is in flight, broken where much is; the check's word against the plain recursion."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.model.problem import Problem
from nextlabel.solve.index import check_indexability
from oracles import Task, infinite

BUSY = Problem.identical(4, 10, arrival_rate=10.0, completion_rate=0.4)


def advantage(task: Task, a: int, b: int, w: int, n: int, lam: np.ndarray) -> np.ndarray:
    """V(a,b,w+1,n-1) - lam - V(a,b,w,n-1): 'assign' is optimal where it is not negative."""
    V = infinite(task, [lam] * (n - 1))
    return np.asarray(V(a, b, w + 1, n - 1) - lam - V(a, b, w, n - 1))


def test_the_papers_setting_is_indexable_as_far_as_ten_labels() -> None:
    report = check_indexability(Problem.identical(100, 40), cap=10, flight=10)
    assert report.indexable and report.violations == 0 and report.first_violation is None
    assert report.prices_checked == 400
    assert report.states_checked == 420


def test_the_papers_setting_is_not_indexable_with_more() -> None:
    """rho = 1/4: four ones, six zeros, four labels out, eight arrivals left."""
    g = advantage(Task(r=0.1), 4, 6, 4, 8, np.array([0.0006, 0.0007, 0.0009, 0.0013, 0.0015]))
    assert np.sign(g).tolist() == [1, -1, 1, 1, -1]
    assert np.abs(g).min() > 5e-7
    assert not check_indexability(Problem.identical(100, 40)).indexable


def test_many_labels_in_flight_are_not_indexable() -> None:
    """At rho = 25 a fresh task, two labels out, four arrivals left, waits at one price and takes at a higher one."""
    g = advantage(Task(r=10.0), 0, 0, 2, 4, np.array([0.0083, 0.0156]))
    assert g[0] < -1e-6
    assert g[1] > 1e-5
    assert not check_indexability(BUSY, cap=10, flight=10).indexable


@pytest.mark.parametrize("cap", [None, 10])
def test_the_reported_violation_is_one(cap: int | None) -> None:
    """The state named must be one that the budget can reach, and must really reopen."""
    violation = check_indexability(BUSY, cap=cap, flight=cap).first_violation
    assert violation is not None
    level = int((np.sqrt(8 * violation.node + 1) - 1) // 2)
    a = violation.node - level * (level + 1) // 2
    assert level + violation.in_flight + violation.left <= BUSY.budget
    lam = np.append(violation.price * np.linspace(0.001, 1, 400), violation.price)
    g = advantage(Task(r=10.0), a, level - a, violation.in_flight, violation.left, lam)
    assert g[-1] > 0 and g.min() < 0


def test_a_violation_reads_as_a_sentence() -> None:
    said = str(check_indexability(BUSY).first_violation)
    assert said.startswith("class 0, 0 ones and 2 zeros seen, 4 in flight, 4 arrivals left, price ")
