"""``python -m benchmarks.index_tables``: an index table from prices side by side and from one price after another.

K = 1000, U = 3000, r/mu = 25, in one run, in turn; both searches look at the same prices. Times are those of the
processor, so that they hold on a busy machine; with two cores the time on the clock is half of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np

import nextlabel as nl
from benchmarks.timing import count, counting, seconds
from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.sweep import Brackets, narrow, new_block
from nextlabel.policies.index import TOLERANCE
from nextlabel.solve import index as index_module
from nextlabel.solve.index_roots import IndexWork

PROBLEM = nl.Problem.identical(tasks=1000, budget=3000, arrival_rate=10.0)
ROUNDS = 3
#: Flops and bytes read for a state, arrival and price (``kernels.sweep``): two answers.
FLOPS, BYTES = 16, 80
#: What a core of 3 GHz can do in a nanosecond: flops of two units, four at a time, and bytes from its second cache.
SPEED, READS = 24.0, 96.0


def one_by_one(self: IndexWork, prices: Floats, at: Ints, out: Brackets) -> None:
    """What ``IndexWork._sweep`` does, one price after another."""
    narrow(self.stack, self.grid, self.steps, prices, at, new_block(self.states, self.layers, 1), out)


def timed(sweep: Callable[..., None]) -> tuple[float, nl.results.IndexTable]:
    """Processor seconds of a table."""
    plain = IndexWork._sweep
    IndexWork._sweep = sweep  # type: ignore[method-assign]
    try:
        begun = process_time()
        found = nl.index_table(PROBLEM, tolerance=TOLERANCE)
        return process_time() - begun, found
    finally:
        IndexWork._sweep = plain  # type: ignore[method-assign]


def exact() -> nl.results.IndexTable:
    """A root for every row, to 1e-8."""
    dense, index_module.DENSE = index_module.DENSE, PROBLEM.budget
    try:
        return nl.index_table(PROBLEM, tolerance=1e-8)
    finally:
        index_module.DENSE = dense


def rows(table: nl.results.IndexTable) -> Floats:
    """Rows for all arrivals left."""
    own = table.classes[0].rows
    return np.concatenate([own, np.repeat(own[-1:], PROBLEM.budget - len(own), axis=0)])


def main() -> None:
    """Print the comparison."""
    with counting(IndexWork, "_narrow", lambda self, prices, at, lo, *_: len(prices) * at[-1] * lo[0].size) as work:
        nl.index_table(PROBLEM, tolerance=TOLERANCE)  # compiles
    old, new = [], []
    for _ in range(ROUNDS):
        taken, before = timed(one_by_one)
        old.append(taken)
        taken, found = timed(IndexWork._sweep)
        new.append(taken)
    apart = np.abs(rows(found) - rows(before)).max()
    slow = rows(exact())
    wrong = np.sort(np.abs(rows(found) - slow).ravel())
    below = float((slow - rows(found)).max())
    updates = sum(work)
    arithmetic, reading = updates * FLOPS / SPEED * 1e-9, updates * BYTES / READS * 1e-9
    sys.stdout.write(
        f"One price after another {seconds(min(old))} of processor time, side by side {seconds(min(new))}: "
        f"{min(old) / min(new):.1f} : 1, tables {apart:.1g} apart.\n"
        f"Floor: {count(updates)} state updates x {FLOPS} flops {seconds(arithmetic)}, x {BYTES} bytes "
        f"{seconds(reading)}.\n"
        f"Against a table with a root for every row to 1e-8: {np.mean(wrong <= 1e-6):.5%} of all indices within 1e-6, "
        f"{np.count_nonzero(wrong > 1e-5)} of {count(len(wrong))} more than 1e-5 away, none more than {below:.1g} "
        "below the root found there.\n"
        f"Settled at {found.settled} arrivals left.\n"
    )


if __name__ == "__main__":
    main()
