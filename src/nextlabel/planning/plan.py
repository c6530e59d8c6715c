"""What a budget buys, what a target needs, and what the next label is worth, from one solve and one simulation.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
U         budgets      labels to buy; the curve has some dozen of them
--        index        value per task of the policy (``simulation.curve``), cut at B(U), with half-widths
B(U)      bound        if workers are alike, no policy has more (``PlanBounds``)
lam(U)    price        the price of the bound: its slope, B(U + 1) - B(U) times the tasks, to first order
--        overlap      value per task of 1, 3, 5, 7 labels for every task
========= ============ ==========================================================================

The policy is the index, or with a deadline ``auto``, which knows of it; labels not in by then are lost. The index table
is solved once, for the largest budget, and every replication plays one campaign that passes through all budgets; a
deadline it does not know. ``auto`` plays each budget of a coarser grid by itself.
Guarantee: the simulated values are unbiased, with 95% intervals. Where the index nearly reaches the bound (with 10,000
tasks by less than 600 campaigns can tell) half of them come out above it, by chance, and are cut there. ``needed`` is
where the interpolated curve reaches the target, between ``needed_low`` and ``needed_high`` where the ends of the
intervals do; ``needed_by_any`` is proved if workers are alike. The price is not: B(U) is above the best policy, and so
may be flatter there than what that policy gains by a label.

With workers who differ, whose policy is ``crowd`` (``CrowdBounds``):

========= ============== ==========================================================================
symbol    code           meaning
========= ============== ==========================================================================
B(U)      bound          upper bound with these types of workers (``solve.crowd``), solved at each budget
lam, nu   price, supply  its prices: of a label, and of the supply of each type
========= ============== ==========================================================================

Prices that are solved at one budget bound every other one too, B(U') <= B(U) + lam (U' - U): the least of these lines
says how many labels a target takes at least. The policy is simulated anew for each budget, because its prices depend on
it. Cost: one bound and some campaigns per budget; nine budgets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import refuse
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import LARGEST, fresh_groups, whole
from nextlabel.planning.report import ALIKE, OF_TYPES, Money, Plan, needed_labels
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import Policy
from nextlabel.policies.index import Index
from nextlabel.policies.rollout_arrays import FEW_CLASSES, POINTS, curve_budgets, patient_index
from nextlabel.simulation.curve import ValueCurve, sample_tasks, value_curve
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import Bound, upper_bound
from nextlabel.solve.curve import BoundCurve, bound_curve, ceiling_value, least_budget, overlap_values
from nextlabel.solve.deadline import MOST_CLASSES, DeadlineBound, deadline_bound
from nextlabel.solve.progress import Progress, part

#: Budgets of the curve where workers differ.
CROWD_POINTS = 8


@dataclass(frozen=True, slots=True)
class CrowdBounds:
    """Bounds of types of workers, solved at each of the curve's budgets; between them their lines bound as well."""

    problem: Problem
    budgets: Ints
    solved: list[Bound]

    @classmethod
    def solve(cls, problem: Problem, most: int | None, progress: Progress | None) -> CrowdBounds:
        """The budgets of the curve up to ``most`` or what the supply can give, and the bound at each of them."""
        supply = sum(worker.labels(problem.horizon) for worker in problem.workers)
        top = max(1, int(min(SHOWN_LABELS_A_TASK * problem.tasks if most is None else most, supply)))
        budgets = np.unique(np.round(np.linspace(0, top, CROWD_POINTS + 1)).astype(np.int64))
        found = [
            upper_bound(problem.with_budget(U), progress=part(progress, b, len(budgets)))
            for b, U in enumerate(budgets.tolist())
        ]
        return cls(problem, budgets, found)

    @property
    def prices(self) -> Floats:
        """The price of a label at each of the budgets; without labels there is none, and the next one stands."""
        return np.array([one.price for one in (self.solved[1], *self.solved[1:])], dtype=np.float64)

    def value(self, budgets: Ints | Floats) -> Floats:
        """No policy has more with each of the budgets: the least of the lines, and without labels what was solved."""
        U = np.asarray(budgets, dtype=np.float64)
        apart = U[:, None] - self.budgets[1:]
        lines = (np.array([one.value for one in self.solved[1:]]) + self.prices[1:] * apart).min(axis=1)
        return np.asarray(np.where(U > 0, lines, self.solved[0].value) / self.problem.tasks, dtype=np.float64)

    def budget_for(self, target: float) -> int | None:
        """The least budget whose bound reaches ``target`` a task. None: none does."""
        return least_budget(self.value, target, LARGEST)

    def simulated(
        self, turn_away: bool, count: int, seed: int, engine: Engine | None, progress: Progress | None
    ) -> ValueCurve:
        """The policy ``crowd`` with each budget; nothing is simulated without labels."""
        mean, half, used = np.zeros((3, len(self.budgets)))
        mean[0] = self.solved[0].per_task
        for b, U in enumerate(self.budgets.tolist()):
            if U > 0:
                study = simulate(
                    self.problem.with_budget(U), ["crowd"], replications=count, seed=seed, engine=engine,
                    bound=self.solved[b], turn_away=turn_away, progress=part(progress, b, len(self.budgets)),
                )  # fmt: skip
                one = study.results[0]
                mean[b], half[b], used[b] = one.per_task.mean, one.per_task.half_width, one.labels_used
        return ValueCurve(self.budgets, mean, half, used, mean[None, :])


#: Budgets whose prices are solved for, as shares of the most that is of use before the deadline.
SOLVED = (1.0, 0.5, 0.2)


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """The least of several bounds, per task."""

    problem: Problem
    plain: BoundCurve
    timed: tuple[DeadlineBound, ...] = ()

    def value(self, budgets: Ints | Floats) -> Floats:
        """No policy has more with each of the budgets."""
        U = np.asarray(budgets, dtype=np.int64)
        least = self.plain.value(U)
        for one in self.timed:
            least = np.minimum(least, one.curve(U - one.labels_left))
        return least

    def price(self, budgets: Ints | Floats) -> Floats:
        """The slope of the bound in the budget, over all tasks."""
        if not self.timed:
            return self.plain.price(budgets)
        U = np.asarray(budgets, dtype=np.int64)
        return np.maximum(self.value(U + 1) - self.value(U), 0.0) * self.problem.tasks

    def budget_for(self, target: float) -> int | None:
        """The least budget whose bound reaches ``target`` a task. None: none does."""
        return least_budget(self.value, target, useful_budget(self.problem))


def plan_bounds(problem: Problem, progress: Progress | None = None) -> PlanBounds:
    """Bounds for all budgets up to the problem's own."""
    plain = bound_curve(problem, progress)
    if not problem.finite or len(problem.classes) > MOST_CLASSES:
        return PlanBounds(problem, plain)
    most, fresh = min(useful_budget(problem), problem.budget), fresh_groups(problem.classes)
    budgets = sorted({max(round(share * most), 1) for share in SOLVED})
    return PlanBounds(problem, plain, tuple(deadline_bound(problem, fresh, budget) for budget in budgets))


def useful_budget(problem: Problem) -> int:
    """The largest budget worth a look: with a deadline more labels than workers can come."""
    if not problem.finite:
        return LARGEST
    return min(int(problem.mean_arrivals + 6 * problem.mean_arrivals**0.5) + 1, LARGEST)


#: Budgets of the curve of ``auto`` above 0, whose every budget is a campaign of its own.
AUTO_POINTS = 12


def simulated_curve(
    rule: str, problem: Problem, largest: int, count: int, seed: int, engine: Engine | None,
    progress: Progress | None = None, *, largest_alone: bool = False,
) -> ValueCurve:  # fmt: skip
    """The policy's value at every budget of a curve that ends at ``largest``, or there alone.

    The index is patient where there is a deadline. Where tasks are many the curve is that of a sample; with more than
    64 kinds of them the index looks at the task alone (``simulation.ranked_tasks``).
    """
    small, step = sample_tasks(problem)
    top = max(largest // step, 1)
    budgets = curve_budgets(top)
    policy: Policy = Index()
    if rule == "auto":
        shares = np.arange(AUTO_POINTS + 1) / AUTO_POINTS
        budgets, policy = np.unique(np.round(top * shares).astype(np.int64)), Auto()
    elif len(problem.classes) <= FEW_CLASSES:
        policy = patient_index(small.with_budget(top))
    wanted = [top] if largest_alone else budgets.tolist()
    curve = value_curve(small, policy, wanted, replications=count, seed=seed, engine=engine, progress=progress)
    return replace(curve, budgets=step * curve.budgets, labels_used=step * curve.labels_used)


def where_to_stop(
    problem: Problem,
    curve: ValueCurve,
    cost: float,
    value: float,
    at_cost: Callable[[Problem, int], ValueCurve],
) -> Money:
    """Along the curve, and with the policy that may stop, whose value with one budget ``at_cost`` simulates."""
    K = problem.tasks
    net = value * K * curve.mean - cost * curve.labels_used
    best = int(net.argmax())
    stops = replace(problem, budget=int(curve.budgets[-1]), label_cost=cost / value)
    stopped = at_cost(stops, stops.budget)
    most = float(plan_bounds(stops).value(curve.budgets[-1:])[0])
    return Money(
        label_cost=cost,
        value=value,
        best_budget=int(curve.budgets[best]),
        best_net=float(net[best]),
        best_value=float(curve.mean[best]),
        stopping_labels=float(stopped.labels_used[0]),
        stopping_net=value * K * min(float(stopped.mean[0]), most),  # what is above the bound is chance
        stopping_half_width=value * K * float(stopped.half_width[0]),
        most_net=value * K * most,
    )


#: How often a task is simulated in all with each policy; replications at least and at most.
REPLICATIONS = {"index": (400_000, 20, 2000), "auto": (100_000, 10, 500), "crowd": (40_000, 10, 200)}
OVERLAPS = (1, 3, 5, 7)
#: Labels per task at the end of the curve when neither budget nor target says how far.
SHOWN_LABELS_A_TASK = 8
#: Labels per task up to which the bound is looked at when no budget is given.
PROVED_LABELS_A_TASK = 64
#: The curve is extended so often, by half each time, until it reaches the target.
EXTENSIONS = 6


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
    policy: str | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan ``problem``, whose own budget is not looked at; ``most`` is the largest budget of the curve.

    ``policy`` is ``index`` or ``auto``: by default ``auto`` where there is a deadline. With workers who differ it is
    ``crowd``; ``turn_away`` lets it give an arrival nothing.
    """
    begin = perf_counter()
    _check(problem, policy, most, label_cost, turn_away, target)
    rule, money = policy or ("auto" if problem.finite else "index"), None
    if problem.workers or len(problem.classes) > FEW_CLASSES:  # with more kinds of tasks auto is the index
        rule = "crowd" if problem.workers else "index"
    seen, least, many = REPLICATIONS[rule]
    count = int(np.clip(seen // problem.tasks, least, many)) if replications is None else replications
    first, second = part(progress, 0, 2), part(progress, 1, 2)
    bounds: PlanBounds | CrowdBounds
    if problem.workers:
        bounds = CrowdBounds.solve(problem, most, first)
    else:
        bounds = plan_bounds(with_ample_budget(problem) if most is None else problem.with_budget(most), first)
    if target is not None and problem.workers and problem.is_accuracy:
        check_target(problem, target, float(bounds.value(np.zeros(1))[0]))
    needed_by_any = None if target is None else bounds.budget_for(target)
    if isinstance(bounds, CrowdBounds):
        curve, price = bounds.simulated(turn_away, count, seed, engine, second), bounds.prices
    else:
        top = SHOWN_LABELS_A_TASK * problem.tasks
        if target is not None and needed_by_any is not None:
            top = int(1.25 * needed_by_any) + problem.tasks // 2 + 1
        top = max(min(top, useful_budget(problem)), POINTS) if most is None else most
        curve = simulated_curve(rule, problem, top, count, seed, engine, second)
        for _ in range(EXTENSIONS if most is None and needed_by_any is not None else 0):
            further = min(int(1.5 * top), useful_budget(problem))
            if target is None or curve.mean[-1] - curve.half_width[-1] >= target or further <= top:
                break
            top = further
            curve = simulated_curve(rule, problem, top, count, seed, engine, second)
        price = bounds.price(curve.budgets)
    limit = bounds.value(curve.budgets)
    reached = np.minimum(curve.mean, limit)  # what is above the bound is chance
    if label_cost is not None:
        at_cost = partial(simulated_curve, rule, count=count, seed=seed, engine=engine, largest_alone=True)
        money = where_to_stop(problem, replace(curve, mean=reached), label_cost, value, at_cost)
    if progress is not None:
        progress(1.0)
    low, needed, high = needed_labels(curve.budgets, curve.mean, reached, curve.half_width, target, needed_by_any)
    solved = bounds.solved if isinstance(bounds, CrowdBounds) else []
    overlaps = () if solved else OVERLAPS
    return Plan(
        problem=problem,
        budgets=curve.budgets,
        value=reached,
        half_width=curve.half_width,
        bound=limit,
        price=price,
        labels_used=curve.labels_used,
        overlaps=overlaps,
        overlap=overlap_values(problem, np.array(overlaps)) if overlaps else np.zeros(0),
        target=target,
        needed=needed,
        needed_low=low,
        needed_high=high,
        needed_by_any=needed_by_any,
        money=money,
        replications=count,
        seed=seed,
        seconds=perf_counter() - begin,
        simulated=curve.mean,
        policy=rule,
        model=OF_TYPES if solved else ALIKE,
        assumes=solved[-1].assumes if solved else "",
        supply_prices=np.array([one.supply_prices for one in solved]) if solved else None,
        sample=1 if solved else sample_tasks(problem)[1],
    )


def with_ample_budget(problem: Problem) -> Problem:
    """The problem with more labels than a plan buys."""
    return problem.with_budget(min(PROVED_LABELS_A_TASK * problem.tasks, LARGEST))


def check_target(problem: Problem, target: float, root: float | None = None) -> None:
    """Refuse a target that no label is needed for (``root`` is what that gives), or that the truth would not reach."""
    low = float(overlap_values(problem, np.array([0]))[0]) if root is None else root
    ceiling = 1.0 if problem.workers else ceiling_value(problem)
    refuse((
        not low < target < ceiling,
        f"target {target:g} is not between {low:.4g}, what no label at all gives, and {ceiling:.4g}.",
        "Give the share of tasks to get right, e.g. --target 0.9."
        if problem.is_accuracy
        else "Give a value per task between the two.",
    ))  # fmt: skip


def _check(
    problem: Problem, policy: str | None, most: int | None, label_cost: float | None, turn_away: bool,
    target: float | None,
) -> None:  # fmt: skip
    if problem.workers:
        refuse(
            (
                policy not in (None, "crowd"),
                f"with workers who differ a plan simulates the policy crowd, and not {policy!r}.",
                "Leave it out.",
            ),
            (
                label_cost is not None,
                "with workers who differ a label's cost belongs to the type of worker.",
                "Write cost = 0.05 in [[workers]]; the plan's values are then net of it.",
            ),
        )
        return
    refuse(
        (
            turn_away,
            "turning away is for problems with workers who differ, and this one has none.",
            "Add [[workers]] to the problem file, or leave --turn-away out.",
        ),
        (
            problem.label_cost > 0,
            "a plan takes the cost of a label as an argument of its own.",
            "Give label_cost to the plan, not to the problem.",
        ),
        (
            policy not in (None, "index", "auto"),
            f"a plan does not know the policy {policy!r}.",
            "Use index or auto.",
        ),
    )
    if most is not None:
        whole("budget", most, 1, "Give at least one label, e.g. --budget 1200.")
    if target is not None:
        check_target(problem, target)
