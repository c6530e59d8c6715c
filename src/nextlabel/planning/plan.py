"""What a budget buys, what a target needs, and what the next label is worth, from one solve and one simulation.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
U         budgets      labels to buy; the curve has some dozen of them
--        index        value per task of the index policy (``simulation.curve``), cut at B(U), with half-widths
B(U)      bound        if workers are alike, no policy has more (``solve.curve``)
lam(U)    price        the price of the bound: its slope, B(U + 1) - B(U) times the tasks, to first order
--        overlap      value per task of 1, 3, 5, 7 labels for every task
========= ============ ==========================================================================

The index table is solved once, for the largest budget; every replication plays one campaign that passes through all
budgets. With a deadline the index is the patient one, of a campaign without deadline; labels not in by then are lost.
Guarantee: the simulated values are unbiased, with 95% intervals. Where the index nearly reaches the bound (with 10,000
tasks by less than 600 campaigns can tell) half of them come out above it, by chance, and are cut there. ``needed`` is
where the interpolated curve reaches the target, between ``needed_low`` and ``needed_high`` where the ends of the
intervals do; ``needed_by_any`` is proved if workers are alike. The price is not: B(U) is above the best policy, and so
may be flatter there than what that policy gains by a label.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from nextlabel.errors import InputError
from nextlabel.planning.crowd_plan import plan_with_workers
from nextlabel.planning.index_curve import index_curve
from nextlabel.planning.money import where_to_stop
from nextlabel.planning.result import Plan, needed_labels
from nextlabel.policies.budget_rollout import POINTS
from nextlabel.problem.problem import LARGEST, Problem, whole
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.sampled import sample_tasks
from nextlabel.solve.curve import bound_curve, ceiling_value, overlap_values
from nextlabel.solve.progress import Progress, part

OVERLAPS = (1, 3, 5, 7)
#: Labels per task at the end of the curve when neither budget nor target says how far.
SHOWN_LABELS_A_TASK = 8
#: Labels per task up to which the bound is looked at when no budget is given.
PROVED_LABELS_A_TASK = 64
#: The curve is extended so often, by half each time, until it reaches the target.
EXTENSIONS = 6
#: A task is simulated at least so often in all, whatever the number of replications.
TASKS_SEEN, LEAST_REPLICATIONS, MOST_REPLICATIONS = 400_000, 20, 2000


def plan(
    problem: Problem,
    *,
    target: float | None = None,
    most: int | None = None,
    label_cost: float | None = None,
    value: float = 1.0,
    replications: int | None = None,
    seed: int = 0,
    turn_away: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan ``problem``, whose own budget is not looked at; ``most`` is the largest budget of the curve.

    With workers who differ the policy is ``crowd``; ``turn_away`` lets it give an arrival nothing.
    """
    begin = perf_counter()
    if problem.workers:
        if label_cost is not None:
            raise InputError(
                "with workers who differ a label's cost belongs to the type of worker.",
                "Write cost = 0.05 in [[workers]]; the plan's values are then net of it.",
            )
        return plan_with_workers(
            problem, target=target, most=most, replications=replications, seed=seed, turn_away=turn_away,
            engine=engine, progress=progress,
        )  # fmt: skip
    if turn_away:
        raise InputError(
            "turning away is for problems with workers who differ, and this one has none.",
            "Add [[workers]] to the problem file, or leave --turn-away out.",
        )
    _check(problem, target, most)
    count = replications
    if count is None:
        count = int(np.clip(TASKS_SEEN // problem.tasks, LEAST_REPLICATIONS, MOST_REPLICATIONS))
    ample = with_ample_budget(problem) if most is None else problem.with_budget(most)
    bounds = bound_curve(ample, part(progress, 0, 2))
    needed_by_any = None if target is None else bounds.budget_for(target)
    top = _first_top(problem, target, needed_by_any) if most is None else most
    curve = index_curve(problem, top, count, seed, engine, part(progress, 1, 2))
    for _ in range(EXTENSIONS if most is None and needed_by_any is not None else 0):
        further = min(int(1.5 * top), _last_top(problem))
        if target is None or curve.mean[-1] - curve.half_width[-1] >= target or further <= top:
            break
        top = further
        curve = index_curve(problem, top, count, seed, engine, part(progress, 1, 2))
    limit = bounds.value(curve.budgets)
    reached = np.minimum(curve.mean, limit)  # what is above the bound is chance
    needs = needed_labels(curve.budgets, (curve.mean, reached), curve.half_width, target, needed_by_any)
    money = None
    if label_cost is not None:
        money = where_to_stop(problem, replace(curve, mean=reached), label_cost, value, count, seed, engine)
    if progress is not None:
        progress(1.0)
    return Plan(
        problem=problem,
        budgets=curve.budgets,
        index=reached,
        half_width=curve.half_width,
        bound=limit,
        price=bounds.price(curve.budgets),
        labels_used=curve.labels_used,
        overlaps=OVERLAPS,
        overlap=overlap_values(problem, np.array(OVERLAPS)),
        needs=needs,
        money=money,
        replications=count,
        seed=seed,
        seconds=perf_counter() - begin,
        simulated=curve.mean,
        sample=sample_tasks(problem)[1],
    )


def with_ample_budget(problem: Problem) -> Problem:
    """The problem with more labels than a plan buys."""
    return problem.with_budget(min(PROVED_LABELS_A_TASK * problem.tasks, LARGEST))


def check_target(problem: Problem, target: float) -> None:
    """Refuse a target that no label is needed for, or that even the truth would not reach."""
    root = float(overlap_values(problem, np.array([0]))[0])
    ceiling = ceiling_value(problem)
    if not root < target < ceiling:
        raise InputError(
            f"target {target:g} is not between {root:.4g}, what no label at all gives, and {ceiling:.4g}.",
            "Give the share of tasks to get right, e.g. --target 0.9."
            if problem.is_accuracy
            else "Give a value per task between the two.",
        )


def _check(problem: Problem, target: float | None, most: int | None) -> None:
    if most is not None:
        whole("budget", most, 1, "Give at least one label, e.g. --budget 1200.")
    if problem.label_cost > 0:
        raise InputError(
            "a plan takes the cost of a label as an argument of its own.",
            "Give label_cost to the plan, not to the problem.",
        )
    if target is not None:
        check_target(problem, target)


def _first_top(problem: Problem, target: float | None, needed_by_any: int | None) -> int:
    K = problem.tasks
    top = SHOWN_LABELS_A_TASK * K
    if target is not None and needed_by_any is not None:
        top = int(1.25 * needed_by_any) + K // 2 + 1
    return max(min(top, _last_top(problem)), POINTS)


def _last_top(problem: Problem) -> int:
    """The largest budget worth a look: with a deadline more labels than workers can come."""
    if not problem.finite:
        return LARGEST
    return min(int(problem.mean_arrivals + 6 * problem.mean_arrivals**0.5) + 1, LARGEST)
