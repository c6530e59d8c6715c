"""What a campaign is expected to reach: the forecast under its own policy, and before it is created what a budget buys.

What a budget buys, before a campaign is created: the curve of ``nextlabel plan`` for tasks like those of the file.

For many tasks, ``SAMPLE`` tasks are solved and the budgets scaled: the expected value of a task depends on the labels
per task, and on the number of tasks only in the third digit. Scores of a model are grouped into ``KINDS`` classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import inf
from threading import Lock

import numpy as np

from nextlabel.application.forecast import forecast, replications_for
from nextlabel.application.jobs import Jobs
from nextlabel.application.table_cache import TableCache, load_or_solve_index
from nextlabel.campaign.new_tasks import LEAST_SCORE
from nextlabel.campaign.rates import arrival_rate, completion_rate, rate_before_deadline
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import NextlabelError
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.allocation import Group
from nextlabel.policies.base import Policy
from nextlabel.policies.index import Index
from nextlabel.policies.rollout_arrays import FEW_CLASSES, Rollout, curve_budgets, patient_index
from nextlabel.solve.curve import bound_curve
from nextlabel.store.sql import SqlStore

#: Most and fewest replications: a dashboard needs three digits.
MOST_REPLICATIONS, FEWEST_REPLICATIONS = 100, 4
SAMPLE, REPLICATIONS, LABELS_PER_TASK, KINDS = 1000, 20, 8, 5

#: Labels in flight before rates are learnt (the default of ``campaign.declaration``), and how often a label is right.
RHO, ACCURACY = 0.25, 0.8
CACHED_CURVES, MOST_ANSWERS = 200, 12


@dataclass(frozen=True, slots=True)
class ForecastView:
    """The expected value at the end, and the range of nine campaigns in ten; or ``why`` there is none."""

    mean: float | None = None
    half_width: float = 0.0
    low: float = 0.0
    high: float = 0.0
    why: str = ""
    pending: bool = False


FAILED = ForecastView(why="The forecast failed; the service's log says why.")


def make_forecast_view(
    row: CampaignRow,
    classes: Sequence[Prior],
    groups: dict[Group, int],
    now: float,
    table_cache: TableCache,
    store: SqlStore,
) -> ForecastView:
    """Compute the forecast of one campaign."""
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    if not len(table):
        return ForecastView(why="There are no tasks yet.")
    if row.closed_seq is not None:
        return ForecastView(why="The campaign is closed.")
    if row.config.knows_workers:
        return ForecastView(why="There is no forecast where workers are told apart.")
    if len(classes) > FEW_CLASSES:
        return ForecastView(why=f"There is no forecast for more than {FEW_CLASSES} different priors.")
    r, mu = arrival_rate(row), completion_rate(row)
    if row.deadline is not None and (r is None or mu is None):
        return ForecastView(why="With a deadline, a forecast needs the workers' rates, known after about 20 labels.")
    policy: Policy | str = row.config.policy
    if policy == "index":
        if not table_cache.has(row.config, classes, row.rho):
            return ForecastView(why="The policy's tables are being computed.", pending=True)
        policy = Index(load_or_solve_index(row.config, classes, row.rho, store)[0])
    tasks = int(table[:, 3].sum())
    found = forecast(
        [row.config.class_of(prior) for prior in classes],
        tuple(table.T),
        row.left,
        policy,
        arrival_rate=row.rho if r is None or mu is None else rate_before_deadline(row, now) or r,
        completion_rate=1.0 if r is None or mu is None else mu,
        horizon=inf if row.deadline is None else max(row.deadline - now, 1e-3),
        label_cost=row.config.label_cost,
        replications=max(min(replications_for(tasks, row.left) // 4, MOST_REPLICATIONS), FEWEST_REPLICATIONS),
        seed=row.config.seed,
    )
    low, high = float(found.quantiles[0]), float(found.quantiles[-1])
    return ForecastView(found.mean, found.half_width, low, high)


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """Expected accuracy and upper bound by budget, ``scaled`` if computed for fewer tasks; or ``why`` there is none."""

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


Key = tuple[int, int, tuple[float, ...], float]


class Curves:
    """Curves, each computed once."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._known: dict[Key, Future[BudgetCurve]] = {}
        self._lock = Lock()

    def ask(
        self, tasks: int, answers: int, scores: Sequence[float] = (), accuracy: float = ACCURACY
    ) -> Future[BudgetCurve]:
        """The curve for so many tasks; ``scores`` are some of their scores, none if all answers are equally likely."""
        key = (tasks, answers, kinds_of(scores), accuracy)
        with self._lock:
            known = self._known.get(key)
            if known is None or (known.done() and known.exception() is not None):
                if len(self._known) >= CACHED_CURVES:
                    self._known.pop(next(iter(self._known)))
                known = self._known[key] = self._jobs.submit(key, lambda _: make_curve(*key))
        return known


def kinds_of(scores: Sequence[float]) -> tuple[float, ...]:
    """The mean scores of a few groups of equally many tasks."""
    if not len(scores):
        return ()
    parts = np.array_split(np.sort(np.asarray(scores, dtype=np.float64)), KINDS)
    return tuple(round(float(np.clip(part.mean(), LEAST_SCORE, 1 - LEAST_SCORE)), 3) for part in parts if len(part))


def make_curve(tasks: int, answers: int, kinds: tuple[float, ...], accuracy: float = ACCURACY) -> BudgetCurve:
    """Solve and simulate the curve; with two answers a label is right so often."""
    if answers > MOST_ANSWERS:
        return BudgetCurve((), (), (), tasks, False, f"There is no curve for more than {MOST_ANSWERS} labels.")
    sample = min(tasks, SAMPLE)
    if kinds and answers == 2:
        sizes = [len(part) for part in np.array_split(np.arange(sample), len(kinds))]
        entries = tuple(
            TaskClass(size, OneCoin(score, accuracy)) for size, score in zip(sizes, kinds, strict=True) if size
        )
    else:
        entries = (TaskClass(sample, OneCoin(0.5, accuracy) if answers == 2 else Dirichlet((1.0,) * answers)),)
    problem = Problem(entries, LABELS_PER_TASK * sample, RHO, 1.0)
    solved = curve_budgets(problem.budget)
    try:
        bound = bound_curve(problem).value(solved)
        rollout = Rollout.over_budgets(problem, patient_index(problem), solved.tolist())
        simulated = (rollout.play(0, 0, REPLICATIONS)[0][:, :, 0] / sample).mean(axis=0)
    except NextlabelError as error:
        return BudgetCurve((), (), (), tasks, False, f"There is no curve: {error.message}")
    budgets = np.round(solved * (tasks / sample)).astype(np.int64)
    expected = np.maximum.accumulate(np.minimum(simulated, bound))  # never above the bound, never falling
    return BudgetCurve(tuple(budgets.tolist()), tuple(expected.tolist()), tuple(bound.tolist()), tasks, sample < tasks)
