"""What a campaign is expected to reach: the forecast under its own policy, and before it is created what a budget buys.

What a budget buys is the curve of ``nextlabel plan`` for tasks like those of the file; each curve is computed once. For
many tasks, ``SAMPLE`` tasks are solved and the budgets scaled: the expected value of a task depends on the labels per
task, and on the number of tasks only in the third digit. Scores of a model are grouped into ``KINDS`` classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np

from nextlabel.application.forecast import forecast
from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import load_or_solve_index
from nextlabel.campaign.new_tasks import LEAST_SCORE
from nextlabel.campaign.rates import arrival_rate, completion_rate, rate_before_deadline
from nextlabel.errors import NextlabelError
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.index import Index
from nextlabel.policies.rollout_arrays import FEW_CLASSES, Rollout, curve_budgets, patient_index
from nextlabel.solve.curve import bound_curve

SAMPLE, REPLICATIONS, LABELS_PER_TASK, KINDS = 1000, 20, 8, 5

#: Labels in flight before rates are learnt (the default of ``campaign.declaration``), and how often a label is right.
RHO, ACCURACY = 0.25, 0.8
CACHED_CURVES, MOST_ANSWERS = 200, 12


@dataclass(frozen=True, slots=True)
class ForecastView:
    """The expected value at the end, and the range of nine campaigns in ten; or ``why`` there is none."""

    mean: float | None = None
    low: float = 0.0
    high: float = 0.0
    why: str = ""
    pending: bool = False


FAILED = ForecastView(why="The forecast failed; the service's log says why.")


def make_forecast_view(service: CampaignService, id: str, classes: Sequence[Prior]) -> ForecastView:
    """Compute the forecast of one campaign."""
    row, groups, now = service.store.row(id), service.groups(id), service.clock()
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    r, mu = arrival_rate(row), completion_rate(row)
    known, policy = r is not None and mu is not None, row.config.policy
    for holds, why in (
        (not len(table), "There are no tasks yet."),
        (row.closed_seq is not None, "The campaign is closed."),
        (row.config.knows_workers, "There is no forecast where workers are told apart."),
        (len(classes) > FEW_CLASSES, f"There is no forecast for more than {FEW_CLASSES} different priors."),
        (
            row.deadline is not None and not known,
            "With a deadline, a forecast needs the workers' rates, known after about 20 labels.",
        ),
    ):
        if holds:
            return ForecastView(why=why)
    if policy == "index" and not service.table_cache.has(row.config, classes, row.rho):
        return ForecastView(why="The policy's tables are being computed.", pending=True)
    found = forecast(
        [row.config.class_of(prior) for prior in classes],
        tuple(table.T),
        row.left,
        Index(load_or_solve_index(row.config, classes, row.rho, service.store)[0]) if policy == "index" else policy,
        arrival_rate=(rate_before_deadline(row, now) or r or 1.0) if known else row.rho,
        completion_rate=(mu or 1.0) if known else 1.0,
        horizon=inf if row.deadline is None else max(row.deadline - now, 1e-3),
        label_cost=row.config.label_cost,
        seed=row.config.seed,
    )
    return ForecastView(found.mean, float(found.quantiles[0]), float(found.quantiles[-1]))


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """Expected accuracy and upper bound by budget, ``scaled`` if computed for fewer tasks; or ``why`` there is none."""

    budgets: tuple[int, ...] = ()
    expected: tuple[float, ...] = ()
    most: tuple[float, ...] = ()
    scaled: bool = False
    why: str = ""


def kinds_of(scores: Sequence[float]) -> tuple[float, ...]:
    """The mean scores of a few groups of equally many tasks."""
    if not len(scores):
        return ()
    parts = np.array_split(np.sort(np.asarray(scores, dtype=np.float64)), KINDS)
    return tuple(round(float(np.clip(part.mean(), LEAST_SCORE, 1 - LEAST_SCORE)), 3) for part in parts if len(part))


@lru_cache(CACHED_CURVES)
def make_curve(tasks: int, answers: int, kinds: tuple[float, ...], accuracy: float = ACCURACY) -> BudgetCurve:
    """Solve and simulate the curve; with two answers a label is right so often."""
    if answers > MOST_ANSWERS:
        return BudgetCurve(why=f"There is no curve for more than {MOST_ANSWERS} labels.")
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
        return BudgetCurve(why=f"There is no curve: {error.message}")
    budgets = np.round(solved * (tasks / sample)).astype(np.int64)
    expected = np.maximum.accumulate(np.minimum(simulated, bound))  # never above the bound, never falling
    return BudgetCurve(tuple(budgets.tolist()), tuple(expected.tolist()), tuple(bound.tolist()), sample < tasks)
