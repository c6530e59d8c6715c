"""The index policy of [HF16]: the task whose next label would still be worth buying at the greatest price.

It knows the arrivals left, the time left, the delay and all labels in flight. The table is solved once; past its cap
the no-delay index takes over.
"""

from __future__ import annotations

from nextlabel.policies.base import ClassView, Policy, Scores, Setting
from nextlabel.solve.index import ClassIndex, IndexTable, index_table

#: Accuracy of the indices that are solved for a policy: ties are judged at 1e-9, values in the fifth decimal.
TOLERANCE = 1e-6


class Index(Policy):
    """Largest index first, ties by lot; give ``table`` to use one that was solved before."""

    name = "index"
    in_flight = "all of it"

    def __init__(self, table: IndexTable | None = None, cap: int | None = None) -> None:
        self.table, self.cap = table, cap

    def scores(self, setting: Setting) -> list[Scores]:
        """The index table, spread over each class's own lattice."""
        table = self.table
        if table is None:
            table = index_table(setting.problem, cap=self.cap, tolerance=TOLERANCE)
        return [spread(one, table, view) for one, view in zip(table.classes, setting.views, strict=True)]


def spread(one: ClassIndex, table: IndexTable, view: ClassView) -> Scores:
    """Index rows of one class as score tables."""
    static = one.dense_beyond(view.flight, view.lattice.depth)
    return Scores(static, one.rows, one.core(view.flight, view.lattice.depth), table.tau)
