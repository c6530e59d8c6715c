"""First prices for every arrival, from batches: what takes hundreds of sweeps is done on a few dozen steps.

From few batches and much smoothing to more batches and less. Between the middles of batches prices lie on a line.
Guarantee: none is needed, for any prices give a bound. Cost: some 300 evaluations of at most 192 batches, 0.15 s.
"""

from __future__ import annotations

from math import inf

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import make_grid
from nextlabel.problem.problem import Problem
from nextlabel.solve.batched.search import BatchSearch, Sweeps
from nextlabel.solve.batched.sizes import make_batches
from nextlabel.solve.relaxed import counts_of, stack_classes
from nextlabel.solve.truncation import Cut, late_tail

#: (batches, smoothing as a share of what labels can add, steps)
LEVELS = ((12, 2e-3, 40), (24, 2e-3, 40), (48, 6e-4, 60), (96, 2e-4, 80), (192, 2e-4, 60))


def prices_from_batches(problem: Problem, cut: Cut, price: float) -> Floats:
    """(U,) prices, the first arrival first; ``price``: the best one for all."""
    U = problem.budget
    stack = stack_classes(problem.classes, cut.depth, U)
    grid, spread = make_grid(stack.first, cut.cap, cut.flight), float(stack.spread.max())
    sweeps = Sweeps(stack.arrays, grid, late_tail(problem, cut.depth), problem.label_cost, spread)
    tasks = np.zeros((len(problem.classes), grid.states))
    tasks[:, 0] = counts_of(problem.classes)
    at, lam = np.array([1.0, U]), np.full(2, price)
    for most, smoothing, steps in LEVELS:
        batches = make_batches(problem, U, inf, most)
        middle = batches.left - 0.5 * (batches.size - 1.0)
        search = BatchSearch(sweeps, batches, tasks)
        lam = search.descend(np.interp(middle, at, lam), smoothing * spread, steps, [])[::-1]
        at = middle[::-1]
    return np.asarray(np.interp(np.arange(U, 0, -1.0), at, lam), dtype=np.float64)
