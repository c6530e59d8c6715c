"""Where to stop when labels cost money."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nextlabel.planning.bounds import plan_bounds
from nextlabel.planning.result import Money
from nextlabel.problem.problem import Problem
from nextlabel.simulation.curve import ValueCurve


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
