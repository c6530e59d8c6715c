"""``python -m benchmarks.deadline_tables``: how accurate the index table with a deadline is.

K = 100, U = 300, r/mu = 25, T = 60. At some prices the fourth-order sweep over all times left, in steps of a mean time
between arrivals, says of every state, arrivals left and slack time whether to assign. An index on the wrong side of
such a price is off by at least its distance from the price. Where an index is far above a price at which the sweep
waits, the problem is not indexable there.
"""

from __future__ import annotations

import sys

import numpy as np

import nextlabel as nl
from benchmarks.timing import count
from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import layer_at
from nextlabel.kernels.sweep import sweep
from nextlabel.policies.index import TOLERANCE
from nextlabel.solve.index import index_cut
from nextlabel.solve.index_roots import IndexWork, least_slack_time
from nextlabel.solve.truncation import make_cut, make_timeline

PROBLEM = nl.Problem.identical(tasks=100, budget=300, arrival_rate=10.0, horizon=60.0)
RATE = PROBLEM.peak_rate
#: Three prices among those that a deadline takes from the largest index, and others.
PRICES = (0.24988, 0.2499, 0.24997, 0.18745, 0.155, 0.0468, 0.03, 0.0164)
#: Times to slack_time, from the least that the table knows.
SPARE = (18.5, 19.0, 20.0, 22.0, 25.0, 30.0)
#: Indices nearer to a price than this are compared with it, and gains smaller than that are none.
NEAR, NONE = 5e-4, 1e-9


def wrong(table: nl.results.IndexTable, gain: Floats, states: np.ndarray, price: float) -> tuple[int, Floats, int]:
    """Indices near the price, distances of those on its wrong side, and how many far above it wait all the same."""
    rows = table.classes[0].rows
    near, far, off = 0, 0, []
    for n in range(1, PROBLEM.budget + 1):
        for spare in SPARE:
            layer = round(spare * RATE) + n - 1
            if layer >= gain.shape[2]:
                continue
            k, share = layer_at(table.tau, table.slack_time, n, layer / RATE)
            row = rows[min(n, len(rows)) - 1, states]
            index = (1.0 - share) * row[:, k] + share * row[:, k + 1]
            g, apart = gain[n - 1, :, layer], index - price
            close = np.abs(apart) < NEAR
            near += int(close.sum())
            sides = (close & (apart > 0) & (g < -NONE)) | ((apart < 0) & (g > NONE))
            off.append(np.abs(apart[sides]))
            far += int((~close & (apart > 0) & (g < -NONE)).sum())
    return near, np.concatenate(off), far


def main() -> None:
    """Print what each price says."""
    table = nl.index_table(PROBLEM, tolerance=TOLERANCE)
    cut = index_cut(make_cut(PROBLEM, None, None), PROBLEM)
    slow = IndexWork(PROBLEM, PROBLEM.classes[0], cut, make_timeline(PROBLEM, round(PROBLEM.horizon * RATE)))
    states = np.flatnonzero(slow.grid.up >= 0)
    sys.stdout.write(
        f"{len(table.tau)} layers from a slack time of {least_slack_time(PROBLEM):.2f} on, "
        f"error by twice as many {table.error:.1e}.\n"
    )
    V, N = np.zeros((2, PROBLEM.budget, slow.states, slow.line.layers))
    total, largest = 0, 0.0
    for price in PRICES:
        sweep(slow.stack, slow.grid, slow.steps, price, V, N)
        gain = V[:, slow.grid.up[states]] - price - V[:, states]
        near, off, far = wrong(table, gain, states, price)
        total, largest = total + near, max(largest, float(off.max(initial=0.0)))
        sys.stdout.write(
            f"price {price:g}: {count(near)} indices within {NEAR:g}, {len(off)} on the wrong side, the furthest by "
            f"{off.max(initial=0.0):.1e}; {far} wait here and have an index far above\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"Largest error seen among {count(total)} indices: {largest:.1e}.\n")


if __name__ == "__main__":
    main()
