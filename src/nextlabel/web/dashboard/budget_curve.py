"""What a budget buys, before a campaign is made: the curve of ``planning.plan`` for tasks like those of the file.

A plan for many tasks is that of ``SAMPLE`` tasks with the budgets scaled: a task's expected value depends on the labels
a task, and on the number of tasks in the third digit at most. Scores of a model are put into ``KINDS`` kinds of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.campaign.intake import LEAST_SCORE
from nextlabel.errors import NextlabelError
from nextlabel.planning.plan import plan as make_plan
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.problem.tables import beta_of_score

SAMPLE, REPLICATIONS, LABELS_A_TASK, KINDS = 1000, 20, 8, 5
#: Labels of a campaign in flight before anything is known, and what a score is worth: as ``campaign.Config`` has them.
RHO, STRENGTH = 0.25, 4.0
MOST_KEPT, MOST_ANSWERS = 200, 12


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """Expected accuracy and what it is at most, by budget; ``scaled``: for fewer tasks than asked."""

    budgets: tuple[int, ...]
    expected: tuple[float, ...]
    most: tuple[float, ...]
    tasks: int
    scaled: bool
    why: str = ""

    def at(self, budget: float) -> tuple[float, float]:
        """Expected accuracy and bound at a budget."""
        return (
            float(np.interp(budget, self.budgets, self.expected)),
            float(np.interp(budget, self.budgets, self.most)),
        )


Key = tuple[int, int, tuple[float, ...]]


class Curves:
    """Curves by what they are for, each worked out once."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._known: dict[Key, Future[BudgetCurve]] = {}
        self._lock = Lock()

    def ask(self, tasks: int, answers: int, scores: Sequence[float] = ()) -> Future[BudgetCurve]:
        """The curve for so many tasks; ``scores`` are some of the tasks' scores, none: every answer equally likely."""
        key = (tasks, answers, kinds_of(scores))
        with self._lock:
            known = self._known.get(key)
            if known is None or (known.done() and known.exception() is not None):
                if len(self._known) >= MOST_KEPT:
                    self._known.pop(next(iter(self._known)))
                known = self._known[key] = self._pool.submit(make_curve, *key)
        return known


def kinds_of(scores: Sequence[float]) -> tuple[float, ...]:
    """Scores as a few kinds of equally many tasks."""
    if not len(scores):
        return ()
    parts = np.array_split(np.sort(np.asarray(scores, dtype=np.float64)), KINDS)
    return tuple(round(float(np.clip(part.mean(), LEAST_SCORE, 1 - LEAST_SCORE)), 3) for part in parts if len(part))


def make_curve(tasks: int, answers: int, kinds: tuple[float, ...]) -> BudgetCurve:
    """Solve and simulate it."""
    if answers > MOST_ANSWERS:
        return BudgetCurve((), (), (), tasks, False, f"There is no curve for more than {MOST_ANSWERS} labels.")
    sample = min(tasks, SAMPLE)
    if kinds and answers == 2:
        sizes = [len(part) for part in np.array_split(np.arange(sample), len(kinds))]
        entries = tuple(
            TaskClass(size, beta_of_score(score, STRENGTH)) for size, score in zip(sizes, kinds, strict=True) if size
        )
    else:
        entries = (TaskClass(sample, Beta(1, 1) if answers == 2 else Dirichlet((1.0,) * answers)),)
    most = LABELS_A_TASK * sample
    try:
        plan = make_plan(Problem(entries, most, RHO, 1.0), most=most, replications=REPLICATIONS)
    except NextlabelError as error:
        return BudgetCurve((), (), (), tasks, False, f"There is no curve: {error.message}")
    budgets = np.round(plan.budgets * (tasks / sample)).astype(np.int64)
    expected = np.maximum.accumulate(np.minimum(plan.index, plan.bound))  # proved, and with more budget never less
    return BudgetCurve(
        tuple(budgets.tolist()), tuple(expected.tolist()), tuple(plan.bound.tolist()), tasks, sample < tasks
    )
