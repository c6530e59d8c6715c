"""A plan with workers who differ: what a budget buys with these types of workers, and which of them are short.

========= ============== ==========================================================================
symbol    code           meaning
========= ============== ==========================================================================
B(U)      bound          upper bound with these types of workers (``solve.crowd``), solved at each budget
lam, nu   price, supply  its prices: of a label, and of the supply of each type
--        index          simulated value per task of the policy ``crowd``, cut at B(U), with half-widths
========= ============== ==========================================================================

Prices that are solved at one budget bound every other one too, B(U') <= B(U) + lam (U' - U): the least of these lines
says how many labels a target takes at least. The policy is simulated anew for each budget, because its prices depend on
it. Guarantee: as the bound's, under what ``assumes`` says; the simulated values have 95% intervals.
Cost: one bound and some campaigns per budget; nine budgets.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.planning.result import OF_TYPES, Plan, needed_labels
from nextlabel.problem.problem import Problem
from nextlabel.simulation.curve import ValueCurve
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.progress import Progress, part

#: Budgets of the curve, and labels per task at its end where neither budget nor supply says how far.
POINTS, SHOWN_LABELS_A_TASK = 8, 8
#: A task is simulated at least so often in all.
TASKS_SEEN, LEAST_REPLICATIONS, MOST_REPLICATIONS = 40_000, 10, 200


class Lines(NamedTuple):
    """Bounds solved at some budgets: values, prices of a label."""

    budgets: Ints
    values: Floats
    prices: Floats

    def at(self, budgets: Ints) -> Floats:
        """The least of the lines at each budget."""
        apart = np.asarray(budgets, dtype=np.float64)[:, None] - self.budgets
        return np.asarray((self.values + self.prices * apart).min(axis=1), dtype=np.float64)

    def least_for(self, value: float) -> int | None:
        """The least budget that any line allows to reach ``value``; None if a line never does."""
        short = self.values < value - 1e-9
        if np.any(short & (self.prices <= 1e-12)):
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = self.budgets + (value - self.values) / self.prices
        most = float(np.max(np.where(self.prices > 1e-12, needed, 0.0), initial=0.0))
        return max(0, int(np.ceil(most - 1e-6)))


def plan_with_workers(
    problem: Problem,
    *,
    target: float | None,
    most: int | None,
    replications: int | None,
    seed: int,
    turn_away: bool,
    engine: Engine | None,
    progress: Progress | None,
) -> Plan:
    """Plan a problem with workers; ``most`` is the largest budget of the curve."""
    begin = perf_counter()
    K = problem.tasks
    top = _top(problem, most)
    budgets = np.unique(np.round(np.linspace(0, top, POINTS + 1)).astype(np.int64))
    count = replications
    if count is None:
        count = int(np.clip(TASKS_SEEN // K, LEAST_REPLICATIONS, MOST_REPLICATIONS))
    solved = [
        upper_bound(problem.with_budget(int(U)), progress=part(part(progress, 0, 2), b, len(budgets)))
        for b, U in enumerate(budgets.tolist())
    ]
    values, prices = np.array([one.value for one in solved]), np.array([one.price for one in solved])
    lines = Lines(budgets[1:], values[1:], prices[1:])  # without labels there is no price
    bound = np.append(values[0], lines.at(budgets[1:])) / K
    needed_by_any = None if target is None else _least(problem, lines, float(bound[0]), target)
    curve = _simulated(problem, budgets, solved, turn_away, count, seed, engine, part(progress, 1, 2))
    reached = np.minimum(curve.mean, bound)
    needs = needed_labels(budgets, (curve.mean, reached), curve.half_width, target, needed_by_any)
    if progress is not None:
        progress(1.0)
    return Plan(
        problem=problem,
        budgets=budgets,
        value=reached,
        half_width=curve.half_width,
        bound=bound,
        price=np.append(prices[1], prices[1:]),
        labels_used=curve.labels_used,
        overlaps=(),
        overlap=np.zeros(0),
        needs=needs,
        money=None,
        replications=count,
        seed=seed,
        seconds=perf_counter() - begin,
        simulated=curve.mean,
        policy="crowd",
        model=OF_TYPES,
        assumes=solved[-1].assumes,
        supply_prices=np.array([one.supply_prices for one in solved]),
    )


def _top(problem: Problem, most: int | None) -> int:
    supply = sum(worker.labels(problem.horizon) for worker in problem.workers)
    top = SHOWN_LABELS_A_TASK * problem.tasks if most is None else most
    return max(1, int(min(top, supply)))


def _least(problem: Problem, lines: Lines, start: float, target: float) -> int | None:
    if not start < target < 1.0 and problem.is_accuracy:
        raise InputError(
            f"target {target:g} is not between {start:.4g}, what no label at all gives, and 1.",
            "Give the share of tasks to get right, e.g. --target 0.9.",
        )
    return lines.least_for(target * problem.tasks)


def _simulated(
    problem: Problem,
    budgets: Ints,
    solved: list[Bound],
    turn_away: bool,
    count: int,
    seed: int,
    engine: Engine | None,
    progress: Progress | None,
) -> ValueCurve:
    """The policy ``crowd`` with each budget; nothing is simulated without labels."""
    mean, half, used = np.zeros(len(budgets)), np.zeros(len(budgets)), np.zeros(len(budgets))
    for b, U in enumerate(budgets.tolist()):
        if U == 0:
            mean[b] = solved[b].per_task
            continue
        mine = part(progress, b, len(budgets))
        study = simulate(
            problem.with_budget(U), ["crowd"], replications=count, seed=seed, engine=engine, bound=solved[b],
            turn_away=turn_away, progress=mine,
        )  # fmt: skip
        one = study.results[0]
        mean[b], half[b], used[b] = one.per_task.mean, one.per_task.half_width, one.labels_used
    return ValueCurve(budgets, mean, half, used, mean[None, :])
