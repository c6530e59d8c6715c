"""Accuracy over budgets, with what is needed to say how sure it is: by order of the labels, and by task.

========== ========= ==========================================================================
symbol     shape     meaning
========== ========= ==========================================================================
a_r(U)     (R, B)    accuracy in replication r, one random order of the labels (``by_order``)
q_x(U)     (K, B)    share of the followed replications in which task x came out right (``by_task``)
========== ========= ==========================================================================

Two things could have been otherwise: the order in which labels came, and which tasks these happened to be. Both are
crossed, every task is in every replication, and the variance of the accuracy is

    Var = Var_r(a_r) / R  +  Var_x(q_x) / K.

The second term also holds what is left of the first after averaging, so intervals are, if anything, a little wide. What
a task's own labels teach about workers is not learnt again without that task.
Guarantee: normal 95% intervals for other orders and other tasks of the same kind with the same crowd. Cost: one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.problem.estimate import Z95, Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Accuracy of one rule by one read-out; nan in the columns of budgets at which it was not read out."""

    by_order: Floats
    by_task: Floats

    def __post_init__(self) -> None:
        assert self.by_order.shape[1] == self.by_task.shape[1], "one column per budget"

    @property
    def mean(self) -> Floats:
        """(B,) accuracy."""
        return np.asarray(self.by_order.mean(axis=0), dtype=np.float64)

    def known(self, b: int) -> bool:
        """Whether there is an accuracy at this budget."""
        return not bool(np.isnan(self.by_order[0, b]))

    def at(self, b: int) -> Estimate:
        """Accuracy at one budget."""
        return _estimate(self.by_order[:, b], self.by_task[:, b])

    def minus(self, other: Curve, b: int, other_b: int) -> Estimate:
        """This accuracy less another rule's on the same tasks, and in the same replications where both have them."""
        tasks = self.by_task[:, b] - other.by_task[:, other_b]
        mine, its = self.by_order[:, b], other.by_order[:, other_b]
        if len(mine) == len(its):
            return _estimate(mine - its, tasks)
        one, two = Estimate.of(mine), Estimate.of(its)
        half = np.hypot(np.hypot(one.half_width, two.half_width), Estimate.of(tasks).half_width)
        return Estimate(one.mean - two.mean, float(half))

    def drawn(self, orders: Floats, tasks: Floats) -> Floats:
        """(draws, B) accuracy with replications and tasks weighted by the rows of ``orders`` and ``tasks``."""
        by_task = tasks @ (self.by_task - self.by_task.mean(axis=0))
        return np.asarray(orders @ self.by_order + by_task, dtype=np.float64)


def _estimate(orders: Floats, tasks: Floats) -> Estimate:
    spread = float(orders.var(ddof=1)) / len(orders) if len(orders) > 1 else 0.0
    between = float(tasks.var(ddof=1)) / len(tasks) if len(tasks) > 1 else 0.0
    return Estimate(float(orders.mean()), float(Z95 * np.sqrt(spread + between)))
