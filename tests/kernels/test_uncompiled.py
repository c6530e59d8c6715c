"""Every kernel runs without compilation too, and gives the same digits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numba
import pytest

import nextlabel as nl
from nextlabel.simulation.study import simulate


def digits() -> dict[str, list[float]]:
    """A bound, an index table, an exact value and a simulation of a tiny problem, with and without a horizon."""
    found: dict[str, list[float]] = {}
    for name, horizon in (("endless", float("inf")), ("horizon", 20.0)):
        problem = nl.Problem.identical(tasks=2, budget=2, horizon=horizon)
        bound, table = (
            nl.upper_bound(problem, cap=2, flight=1),
            nl.index_table(problem, cap=2, flight=1, tolerance=1e-2),
        )
        study = simulate(problem, ["index", "thompson"], replications=2, seed=1)
        found[name] = [bound.value, bound.gap, nl.exact_value(problem).value]
        found[name] += [float(x) for one in table.classes for x in one.rows.ravel()]
        found[name] += [result.per_task.mean for result in study.results]
    return found


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled to compare with")
def test_the_same_digits_without_compilation() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == digits()


if __name__ == "__main__":
    json.dump(digits(), sys.stdout)
