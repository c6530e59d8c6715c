"""What a budget buys, what a target needs, and what the next label is worth, from one solve and one simulation.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
U         budgets      labels to buy; the curve has some dozen of them
--        index        simulated value per task of the index policy, with half-widths (``simulation.curve``)
B(U)      bound        no policy has more (``solve.curve``)
lam(U)    price        the price of the bound: its slope, B(U + 1) - B(U) times the tasks, to first order
--        overlap      value per task of 1, 3, 5, 7 labels for every task
========= ============ ==========================================================================

The index table is solved once, for the largest budget; every replication plays one campaign that passes through all
budgets. With a deadline the index is the patient one, of a campaign without deadline; labels not in by then are lost.
Guarantee: the index's values are unbiased, with 95% intervals; ``needed`` is where the interpolated curve reaches the
target, between ``needed_low`` and ``needed_high`` where the ends of the intervals do; ``needed_by_any`` is proved. The
price is not: B(U) is above the best policy, and so may be flatter there than what that policy gains by a label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.policies.budget_rollout import POINTS, curve_budgets, patient_index
from nextlabel.policies.own_priors import FEW_CLASSES
from nextlabel.problem.problem import LARGEST, Problem, whole
from nextlabel.simulation.curve import ValueCurve, value_curve
from nextlabel.simulation.engine import Engine
from nextlabel.solve.curve import bound_curve, overlap_values
from nextlabel.solve.progress import Progress, part

OVERLAPS = (1, 3, 5, 7)
#: Labels per task at the end of the curve when neither budget nor target says how far.
SHOWN_LABELS_A_TASK = 8
#: Labels a task up to which the bound is looked at when no budget is given.
PROVED_LABELS_A_TASK = 64
#: The curve is extended so often, by half each time, until it reaches the target.
EXTENSIONS = 6
#: A task is simulated at least so often in all, whatever the number of replications.
TASKS_SEEN, LEAST_REPLICATIONS, MOST_REPLICATIONS = 400_000, 20, 2000


@dataclass(frozen=True, slots=True)
class Money:
    """What labels cost, what right tasks earn, and where to stop.

    net(U) = value K index(U) - cost E[labels used with budget U]; with a deadline fewer than U may be used.
    """

    label_cost: float
    value: float
    best_budget: int
    best_net: float
    best_value: float
    #: The index policy that turns workers away when no task is worth the cost: labels it buys, its net value.
    stopping_labels: float
    stopping_net: float
    stopping_half_width: float
    #: No policy with a budget up to the curve's last nets more.
    most_net: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The curve and the answers."""

    problem: Problem
    budgets: Ints
    index: Floats
    half_width: Floats
    bound: Floats
    price: Floats
    labels_used: Floats
    overlaps: tuple[int, ...]
    overlap: Floats
    target: float | None
    needed: int | None
    needed_low: int | None
    needed_high: int | None
    needed_by_any: int | None
    money: Money | None
    replications: int
    seed: int
    seconds: float

    def value_at(self, budget: float) -> float:
        """The index's value per task, interpolated."""
        return float(np.interp(budget, self.budgets, self.index))

    def next_labels(self, budget: int, more: int = 100) -> float | None:
        """What ``more`` labels add to ``budget`` under the index policy; None if the curve ends before."""
        if budget + more > self.budgets[-1]:
            return None
        return self.problem.tasks * (self.value_at(budget + more) - self.value_at(budget))

    def budget_like(self, overlap: int) -> int | None:
        """The budget at which the index is as good as that overlap; None if the curve does not get there."""
        value = self.overlap[self.overlaps.index(overlap)]
        return _crossing(self.budgets, self.index, float(value))


def make_plan(
    problem: Problem,
    *,
    target: float | None = None,
    most: int | None = None,
    label_cost: float | None = None,
    value: float = 1.0,
    replications: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan ``problem``, whose own budget is not looked at; ``most`` is the largest budget of the curve."""
    begin = perf_counter()
    _check(problem, target, most)
    count = replications
    if count is None:
        count = int(np.clip(TASKS_SEEN // problem.tasks, LEAST_REPLICATIONS, MOST_REPLICATIONS))
    bounds = bound_curve(roomy(problem) if most is None else problem.with_budget(most))
    needed_by_any = None if target is None else bounds.budget_for(target)
    top = _first_top(problem, target, needed_by_any) if most is None else most
    curve = _curve(problem, top, count, seed, engine, part(progress, 0, 2))
    for _ in range(EXTENSIONS if most is None and needed_by_any is not None else 0):
        further = min(int(1.5 * top), _last_top(problem))
        if target is None or curve.mean[-1] - curve.half_width[-1] >= target or further <= top:
            break
        top = further
        curve = _curve(problem, top, count, seed, engine, part(progress, 0, 2))
    low, needed, high = (
        (None, None, None)
        if target is None
        else tuple(_crossing(curve.budgets, curve.mean + side * curve.half_width, target) for side in (1, 0, -1))
    )
    if needed_by_any is not None:  # what is proved narrows what was simulated
        low, needed, high = (None if x is None else max(x, needed_by_any) for x in (low, needed, high))
    money = None
    if label_cost is not None:
        money = _money(problem, curve, label_cost, value, count, seed, engine)
    if progress is not None:
        progress(1.0)
    return Plan(
        problem=problem,
        budgets=curve.budgets,
        index=curve.mean,
        half_width=curve.half_width,
        bound=bounds.value(curve.budgets),
        price=bounds.price(curve.budgets),
        labels_used=curve.labels_used,
        overlaps=OVERLAPS,
        overlap=overlap_values(problem, np.array(OVERLAPS)),
        target=target,
        needed=needed,
        needed_low=low,
        needed_high=high,
        needed_by_any=needed_by_any,
        money=money,
        replications=count,
        seed=seed,
        seconds=perf_counter() - begin,
    )


def roomy(problem: Problem) -> Problem:
    """The problem with more labels than a plan buys."""
    return problem.with_budget(min(PROVED_LABELS_A_TASK * problem.tasks, LARGEST))


def check_target(problem: Problem, target: float) -> None:
    """Refuse a target that no label is needed for, or that even the truth would not reach."""
    root = float(overlap_values(problem, np.array([0]))[0])
    ceiling = sum(c.count * float(c.lattice(0).ceiling[0]) for c in problem.classes) / problem.tasks
    if not root < target < ceiling:
        raise InputError(
            f"target {target:g} is not between {root:.4g}, what no label at all gives, and {ceiling:.4g}.",
            "Give the share of tasks to get right, e.g. --target 0.9."
            if problem.is_accuracy
            else "Give a value per task between the two.",
        )


def _check(problem: Problem, target: float | None, most: int | None) -> None:
    if len(problem.classes) > FEW_CLASSES:
        raise InputError(
            f"a plan takes up to {FEW_CLASSES} kinds of tasks, and here are {len(problem.classes):,}.",
            "Round the scores to steps of 0.02, or use nextlabel bound and simulate, which take any number.",
        )
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


def _curve(
    problem: Problem, top: int, count: int, seed: int, engine: Engine | None, progress: Progress | None
) -> ValueCurve:
    policy = patient_index(problem.with_budget(top))
    return value_curve(
        problem, policy, curve_budgets(top).tolist(), replications=count, seed=seed, engine=engine, progress=progress
    )


def _crossing(budgets: Ints, values: Floats, target: float) -> int | None:
    """The first budget at which the curve, made monotone and linear in between, reaches the target."""
    rising = np.maximum.accumulate(values)
    if rising[-1] < target:
        return None
    k = int(np.argmax(rising >= target))
    if k == 0:
        return int(budgets[0])
    share = (target - rising[k - 1]) / (rising[k] - rising[k - 1])
    return int(np.ceil(budgets[k - 1] + share * (budgets[k] - budgets[k - 1]) - 1e-9))


def _money(
    problem: Problem,
    curve: ValueCurve,
    cost: float,
    value: float,
    count: int,
    seed: int,
    engine: Engine | None,
) -> Money:
    """Along the curve, and with the policy that may stop."""
    K = problem.tasks
    net = value * K * curve.mean - cost * curve.labels_used
    best = int(net.argmax())
    stops = replace(problem, budget=int(curve.budgets[-1]), label_cost=cost / value)
    stopped = value_curve(
        stops, patient_index(stops), [int(curve.budgets[-1])], replications=count, seed=seed, engine=engine
    )
    most = float(bound_curve(stops).value(curve.budgets[-1:])[0])
    return Money(
        label_cost=cost,
        value=value,
        best_budget=int(curve.budgets[best]),
        best_net=float(net[best]),
        best_value=float(curve.mean[best]),
        stopping_labels=float(stopped.labels_used[0]),
        stopping_net=value * K * float(stopped.mean[0]),
        stopping_half_width=value * K * float(stopped.half_width[0]),
        most_net=value * K * most,
    )
