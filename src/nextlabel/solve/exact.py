"""The exact optimum of a small problem, and the exact value of an index policy, over multisets of task states.

====== ======== ==================================================================
symbol code     meaning
====== ======== ==================================================================
n      n        arrivals left
g, c   g, c     labels given out, labels come in: a layer of multisets
V      value    expected sum of rewards (less ``price`` for each label given out)
====== ======== ==================================================================

    q V(s, n) = r max_x V(s + e_x, n-1) + mu sum_x w_x E[V(s after a label on x, n)],    q = r + mu sum_x w_x

and V(s, 0) = sum_x H(x); with finite T the same right-hand side less q V is dV/dtau. Layer (g, c) needs only (g+1, c)
and (g, c+1), so at most two rows of layers are in memory. A free label never hurts, so an arrival is declined only if
a label has a price.

Guarantee: T infinite exact up to rounding; T finite by the trapezoidal rule, extrapolated, with its estimated error.
Cost: the states counted by ``count_states`` times the distinct task states in each, times the time points.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError
from nextlabel.kernels.joint import BEST
from nextlabel.problem.problem import Problem, in_units
from nextlabel.problem.workers import refuse_workers
from nextlabel.solve.crowd.exact import exact_crowd_value
from nextlabel.solve.exact_result import ExactResult
from nextlabel.solve.joint.counting import count_groups, count_states
from nextlabel.solve.joint.rule import NotLumpableError, index_rule
from nextlabel.solve.joint.sweep import JointSweep, extrapolate
from nextlabel.solve.progress import Progress
from nextlabel.solve.timeline import make_timeline

__all__ = ["ExactResult", "count_states", "exact_value", "index_value"]

#: index(class, arrivals left with the present one, time left) -> array [w, node] over the class's own lattice
IndexTable = Callable[[int, int, float], Floats]

MAX_STATES = 20_000_000


def exact_value(
    problem: Problem,
    *,
    pending: str = "wait",
    price: float | None = None,
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> ExactResult:
    """The optimal value. ``pending``: labels in flight at the last arrival come in ("wait") or are dropped ("discard").

    ``price``, the problem's label cost if not given, is charged for every label; an arrival may then be turned away.
    With workers who differ arrivals come in random order of the supply (``solve.crowd.exact``).
    """
    price = problem.label_cost if price is None else price
    if not (math.isfinite(price) and price >= 0):
        raise ProblemError(f"price is {price!r}, which is not a number of at least 0.", "Give e.g. price=0.05.")
    if problem.workers:
        return exact_crowd_value(replace(problem, label_cost=float(price)))
    return _value(problem, None, BEST, pending, float(price), max_states, progress, lumped=True)


def index_value(
    problem: Problem,
    index: IndexTable,
    *,
    ties: str = "random",
    pending: str = "wait",
    max_states: int = MAX_STATES,
    progress: Progress | None = None,
) -> ExactResult:
    """The value of giving each arrival to a task with the largest index.

    ``index(c, n, tau)`` is an array [w, node] for class c's own lattice of depth U, n >= 1 arrivals being left, the
    present one included, and tau > 0 the time left. Indices within 1e-9 (of the reward's unit) are tied; ``ties``:
    "random" (each tied task is as likely), "groups" (each distinct tied state is as likely; nodes alike in law and
    index are one), "first" (lowest class, then node, then w). If labels cost something, they are charged, and an
    arrival whose largest index is below the cost is turned away. An index that jumps in tau makes ``error`` fall only
    like the time step.
    """
    refuse_workers(problem, "the exact value of a policy")
    kind = index_rule(ties)
    try:
        return _value(problem, index, kind, pending, problem.label_cost, max_states, progress, lumped=ties != "first")
    except NotLumpableError:
        return _value(problem, index, kind, pending, problem.label_cost, max_states, progress, lumped=False)


def _value(
    problem: Problem,
    index: IndexTable | None,
    kind: int,
    pending: str,
    price: float,
    max_states: int,
    progress: Progress | None,
    *,
    lumped: bool,
) -> ExactResult:
    if pending not in ("wait", "discard"):
        raise ProblemError(f"pending is {pending!r}.", 'Give "wait" or "discard".')
    began = time.perf_counter()
    problem, unit = in_units(problem)
    price /= unit
    if index is not None and unit != 1.0:
        index = partial(_in_unit, index, unit)
    groups, layers, states = count_groups(problem, max_states, lumped=lumped, merged=index is None, decline=price > 0)
    sweep = JointSweep(problem, groups, layers, kind, index, price, wait=pending == "wait", progress=progress)
    if problem.finite:
        value, error = extrapolate(sweep)
    else:
        value, error = sweep.run(make_timeline(problem)), 0.0
    return ExactResult(unit * value, unit * value / problem.tasks, states, unit * error, time.perf_counter() - began)


def _in_unit(index: IndexTable, unit: float, c: int, n: int, tau: float) -> Floats:
    """An index in units of the reward."""
    return index(c, n, tau) / unit
