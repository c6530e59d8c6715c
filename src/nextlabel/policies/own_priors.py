"""Tasks with priors of their own, simulated or live: limits, and the lattices of many classes at once.

With that many priors, tables for every number of arrivals left would not fit, so tasks are ranked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.arrays import Floats
from nextlabel.problem.problem import TaskClass
from nextlabel.solve.relaxed import ENDLESS, stack_classes

#: With more classes than this, tasks are ranked one by one.
FEW_CLASSES = 64
#: Labels per task, labels in flight per task, and levels that the index looks ahead beyond them.
DEPTH = 12
FLIGHT = 4
AHEAD = 12


def class_arrays(classes: Sequence[TaskClass], depth: int) -> tuple[Floats, Floats, Floats]:
    """Rewards and ceilings (B, nodes) and probabilities of the answers (B, nodes, J)."""
    if len(classes) == 1:  # a stack of one would be lumped
        lattice = classes[0].lattice(depth)
        return lattice.reward[None], lattice.ceiling[None], lattice.prob[None]
    stack = stack_classes(classes, depth, ENDLESS)
    return stack.reward, stack.ceiling, stack.prob
