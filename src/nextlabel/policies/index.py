"""The index policy of [HF16]: the task whose next label would still be worth buying at the greatest price.

It knows the arrivals left, the time left, the delay and all labels in flight. The table is solved once; past its cap
the no-delay index takes over.
"""

from __future__ import annotations

from nextlabel.model.problem import Problem
from nextlabel.policies.base import ClassView, Policy, ScoreTables, Setting
from nextlabel.solve.index import ClassIndex, IndexTable, index_table
from nextlabel.solve.progress import Progress

#: Accuracy of the indices that are solved for a policy: ties are judged at 1e-9, values in the fifth decimal.
TOLERANCE = 1e-6


class Index(Policy):
    """Largest index first, ties by lot; give ``table`` to use one that was solved before, for another prior perhaps."""

    name = "index"
    in_flight = "all of it"
    priced = True

    def __init__(self, table: IndexTable | None = None, cap: int | None = None, name: str = "index") -> None:
        self.table, self.cap = table, cap
        self.name = name

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """The index table, spread over each class's own lattice."""
        table = solve_table(setting.problem, self.cap) if self.table is None else self.table
        return [spread(one, table, view) for one, view in zip(table.classes, setting.views, strict=True)]


def solve_table(problem: Problem, cap: int | None = None, progress: Progress | None = None) -> IndexTable:
    """The table, as accurate as a policy needs it."""
    return index_table(problem, cap=cap, tolerance=TOLERANCE, progress=progress)


def spread(one: ClassIndex, table: IndexTable, view: ClassView) -> ScoreTables:
    """Index rows of one class as score tables."""
    own = view.lattice.first
    return ScoreTables(
        one.dense_beyond(view.flight, own), one.rows, one.core(view.flight, own), table.tau, slack_time=table.slack_time
    )
