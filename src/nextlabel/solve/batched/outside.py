"""Tasks that a sweep does not reach, because they have more labels, or more of them in flight, than it looks at."""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.lattice import Lattice
from nextlabel.kernels.inputs import Lattices
from nextlabel.kernels.no_delay import no_delay
from nextlabel.problem.problem import Problem
from nextlabel.problem.state import Groups


class OutsideTasks:
    """What they are worth; lattices that were needed once are kept."""

    def __init__(self, problem: Problem, depth: int) -> None:
        self.problem, self.depth = problem, depth
        self._lattices: dict[int, Lattice] = {}

    def worth(self, groups: Groups, lowest: float) -> tuple[float, float]:
        """At most, going on without delay at the lowest price, and at least, without another label."""
        above = below = 0.0
        for c in np.unique(groups.entry):
            some = Groups(*(column[groups.entry == c] for column in groups))
            own = self._lattice(int(c), int((some.levels(self.problem.answers) + some.w).max()))
            S = np.empty((3, own.nodes))
            one = Lattices(own.first, own.child, own.reward[None], own.ceiling[None], own.prob[None])
            no_delay(one, lowest, np.zeros(own.depth + 1), S, np.empty((1, 4)))
            high, low = S[0], own.reward
            for w in range(int(some.w.max()) + 1):
                if w > 0:
                    high = one_label_on(own, high)
                    low = low if self.problem.finite else one_label_on(own, low)
                here = some.w == w
                above += float(some.members[here] @ high[some.node[here]])
                below += float(some.members[here] @ low[some.node[here]])
        return above, below

    def _lattice(self, c: int, depth: int) -> Lattice:
        """The lattice of a class, at least so deep."""
        kept = self._lattices.get(c)
        if kept is None or kept.depth < depth:
            kept = self._lattices[c] = self.problem.classes[c].lattice(max(depth, self.depth))
        return kept


def one_label_on(lattice: Lattice, values: Floats) -> Floats:
    """Expected values after one label more; the last level keeps its own."""
    out, inner = values.copy(), int(lattice.first[lattice.depth])
    out[:inner] = np.sum(lattice.prob[:inner] * values[lattice.child[:inner]], axis=1)
    return out
