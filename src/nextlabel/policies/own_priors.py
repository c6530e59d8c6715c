"""Tasks with priors of their own, simulated or live: limits, and the lattices of many classes at once.

With that many priors, tables for every number of arrivals left would not fit, so tasks are ranked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.arrays import Floats
from nextlabel.beliefs.simplex import deepest, nodes_of
from nextlabel.policies.base import MOST_IN_FLIGHT, MOST_LABELS, MOST_NODES
from nextlabel.problem.problem import TaskClass
from nextlabel.solve.relaxed import ENDLESS, stack_classes

#: With more classes than this, tasks are ranked one by one.
FEW_CLASSES = 64
#: Levels that the index looks ahead beyond the most labels of a task.
AHEAD = 12
#: Labels per task, and of them in flight, that are looked at: the first for whose tables there is room.
DEPTHS = ((MOST_LABELS, MOST_IN_FLIGHT), (48, 16), (32, 12), (24, 8), (16, 6), (12, 4))
#: Bytes of those tables.
ROOM = 600e6


def affordable_limits(classes: int, answers: int, static: bool) -> tuple[int, int]:
    """Labels per task, and of them in flight, with so many lattices; ``static``: with a score for every state."""
    for depth, flight in DEPTHS:
        depth = min(depth, deepest(answers, MOST_NODES))
        states = nodes_of(answers, depth)
        numbers = answers * states + (flight + 1) * states if static else answers * nodes_of(answers, depth + AHEAD)
        if 8.0 * classes * numbers <= ROOM:
            break
    return depth, min(depth, flight)


def class_arrays(classes: Sequence[TaskClass], depth: int) -> tuple[Floats, Floats, Floats]:
    """Rewards and ceilings (B, nodes) and probabilities of the answers (B, nodes, J)."""
    if len(classes) == 1:  # a stack of one would be lumped
        lattice = classes[0].lattice(depth)
        return lattice.reward[None], lattice.ceiling[None], lattice.prob[None]
    stack = stack_classes(classes, depth, ENDLESS)
    return stack.reward, stack.ceiling, stack.prob
