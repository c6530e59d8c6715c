"""The exact optimum of a small problem, and the exact value of an index policy, over multisets of task states.

====== ======== ==================================================================
symbol code     meaning
====== ======== ==================================================================
n      n        arrivals left
g, c   g, c     labels given out, labels come in: a layer of multisets
V      value    expected sum of rewards (less ``price`` for each label given out)
tau_k  tau      time left, k T / m; the one value inf if T is
B(h)   --       value by the trapezoidal rule with step h = T / m
s, m   --       labels given out to one task, and labels come in; w = s - m in flight
x      id       state (class, node of level m, w) of one task, ordered by class, s falling, m falling
R      now      (I,) its reward of deciding now
H      end      (I, M) its expected reward when no arrival is left and tau_t is the time left
a_m    width    (U+1,) nodes of level m of a task's lattice (lumped)
N(g,c) layers   (U+1, U+1) multisets with g labels given out and c of them come in
====== ======== ==================================================================

    q V(s, n) = r max_x V(s + e_x, n-1) + mu sum_x w_x E[V(s after a label on x, n)],    q = r + mu sum_x w_x

and V(s, 0) = sum_x H(x), for with no arrival left the tasks no longer compete:

    H(node, w; tau) = sum_j Binomial(j; w, 1 - exp(-mu tau)) E[R after j more labels]       (tau infinite: j = w).

The multisets of one class, z <= count being the touched tasks, are counted by a generating function,

    sum_{z,g,c} N(z; g,c) Z^z Y^g X^c = product over 1 <= s <= U, 0 <= m <= s of (1 - Z Y^s X^m)^(-a_m),

and classes are convolved; counts are exact below 2^53. With finite T the same right-hand side less q V is dV/dtau.
Layer (g, c) needs only (g+1, c) and (g, c+1), so at most two rows of layers are in memory. A free label never hurts, so
an arrival is declined only if a label has a price. With finite T

    value = (4 B(h/2) - B(h)) / 3,  error = |value - the same from the step twice as long|;

if the arrival rate varies, each piece of constant rate has equal steps of its own, all halved together.
Guarantee: T infinite exact up to rounding; T finite fourth order where the best choice does not change with tau, second
order in general: m doubles until the error is below ``TOLERANCE`` or the work or memory allowed is used up.
Cost: the states counted by ``count_groups`` times the distinct task states in each, times the time points.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError, SolverError, TooLargeError
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.joint import (
    BEST,
    FIRST,
    GROUPS,
    RANDOM,
    Layer,
    Rule,
    TaskStates,
    build_table,
    list_layer,
    solve_layer,
)
from nextlabel.model.lattice import Lattice, after_labels, lump
from nextlabel.model.problem import Problem, in_units, refuse_workers
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import Timeline, halve_steps, make_timeline


class TaskGroup(NamedTuple):
    """Tasks that share a lattice; ``to_node`` maps the nodes of the class's own lattice to it."""

    tasks: int
    lattice: Lattice
    to_node: Ints


def groups_of(problem: Problem, depth: int, *, lumped: bool, merged: bool) -> list[TaskGroup]:
    """One group a class; ``lumped``: nodes alike in law are one; ``merged``: classes alike in law are one."""
    groups: dict[object, TaskGroup] = {}
    for k, task_class in enumerate(problem.classes):
        lattice = task_class.lattice(depth)
        to_new = np.arange(lattice.nodes)
        if lumped:
            lattice, to_new = lump(lattice)
        name: object = _law(lattice) if merged else k
        before = groups[name].tasks if name in groups else 0
        groups[name] = TaskGroup(before + task_class.count, lattice, to_new)
    return list(groups.values())


def _law(lattice: Lattice) -> tuple[bytes, ...]:
    """Equal for lattices with the same rewards, probabilities and children, the order of the answers aside."""
    order = np.lexsort((lattice.prob, lattice.child), axis=1)
    answers = (np.take_along_axis(x, order, axis=1) for x in (lattice.prob, lattice.child))
    return tuple(x.tobytes() for x in (lattice.first, lattice.reward, *answers))


def number_states(groups: Sequence[TaskGroup], U: int) -> TaskStates:
    """Number every (group, node, w) with at most U labels, block by block of one size and level; no salt yet."""
    blocks = [(k, s, m) for k in range(len(groups)) for s in range(U, 0, -1) for m in range(s, -1, -1)]
    block = np.array([*blocks, *((k, 0, 0) for k in range(len(groups)))])
    first = np.array([group.lattice.first[: U + 2] for group in groups])
    many = first[block[:, 0], block[:, 2] + 1] - first[block[:, 0], block[:, 2]]
    ends = np.cumsum(many)
    start = np.zeros((len(groups), U + 1, U + 1), dtype=np.int64)
    start[tuple(block.T)] = ends - many
    cls, size, level = np.repeat(block, many, axis=0).T.copy()
    place = np.arange(ends[-1]) - start[cls, size, level]
    node, fresh = first[cls, level] + place, start[:, 0, 0].copy()
    up = np.where(size < U, start[cls, np.minimum(size + 1, U), level] + place, 0)
    answers = max(group.lattice.answers for group in groups)
    child, prob = np.zeros((len(node), answers), dtype=np.int64), np.zeros((len(node), answers))
    for k, (_, lattice, _) in enumerate(groups):
        ids = np.flatnonzero(cls == k)
        prob[ids, : lattice.answers] = lattice.prob[node[ids]]
        ids = ids[size[ids] > level[ids]]
        after = level[ids] + 1
        ways = np.minimum(np.arange(answers), lattice.answers - 1)
        child[ids] = lattice.child[node[ids]][:, ways] + (start[k, size[ids], after] - first[k, after])[:, None]
    enter = start.diagonal(axis1=1, axis2=2).copy()
    enter[:, 0] = np.searchsorted(cls[: fresh[0]], np.arange(len(groups)), side="right")
    tasks = np.array([group.tasks for group in groups], dtype=np.int64)
    skip = np.repeat(ends, many)
    return TaskStates(tasks, fresh, enter, cls, size, level, skip, up, child, prob, np.zeros_like(up), node)


def salted(states: TaskStates, seed: int) -> TaskStates:
    """The states with salts for their keys. Sums of at most U salts stay below 2^62, so a key never overflows."""
    salt = np.random.default_rng(seed).integers(1, 2**62 // max(int(states.size.max()), 1), size=len(states.node))
    return states._replace(salt=np.where(states.size > 0, salt, 0))


def value_at_end(groups: Sequence[TaskGroup], states: TaskStates, mu: float, taus: Floats) -> Floats:
    """H of every id at every time left in ``taus`` (inf: every label comes in)."""
    from scipy.stats import binom  # imported here: it takes half a second, which other commands need not pay

    out = np.zeros((len(states.node), len(taus)))
    in_flight, comes_in = states.size - states.level, -np.expm1(-mu * taus)
    for k, group in enumerate(groups):
        ids = np.flatnonzero(states.cls == k)
        node, w = states.node[ids], in_flight[ids]
        most = int(w.max())
        for j, after in enumerate(after_labels(group.lattice, group.lattice.reward, most)):
            some, chance = w >= j, binom.pmf(j, np.arange(most + 1)[:, None], comes_in[None, :])
            out[ids[some]] += after[node[some], None] * chance[w[some]]
    return out


#: Up to this budget a refusal names the exact number; above it the first lower bound that is too large.
EXACT_COUNT_UP_TO = 30


@cache
def class_layers(count: int, width: tuple[int, ...]) -> Floats:
    """N(g, c) of one class with so many tasks, and so many nodes at each level up to U."""
    U = len(width) - 1
    P = min(count, U)
    n = np.zeros((P + 1, U + 1, U + 1))
    n[0, 0, 0] = 1.0
    for s in range(1, U + 1):
        for m in range(s + 1):
            grown = n.copy()
            for z in range(1, min(P, U // s) + 1):
                ways = special.binom(width[m] + z - 1, z)
                grown[z:, z * s :, z * m :] += ways * n[: P + 1 - z, : U + 1 - z * s, : U + 1 - z * m]
            n = grown
    return np.asarray(np.round(n).sum(axis=0))


def states_in(layers: Floats, *, finite: bool, decline: bool) -> float:
    """Joint states with their n: one n a multiset, or every n <= U - g when arrivals may be declined.

    With T infinite the states with nothing in flight and no arrival left are over and not counted.
    """
    U = len(layers) - 1
    horizons = U + 1.0 - np.arange(U + 1) if decline else np.ones(U + 1)
    total = float(horizons @ layers.sum(axis=1))
    if finite:
        return total
    return total - float(np.trace(layers) if decline else layers[U, U])


def count_layers(
    groups: Sequence[TaskGroup], U: int, limit: float, *, finite: bool, decline: bool
) -> tuple[Floats, bool]:
    """N(g, c) of the whole problem, and whether it is complete: it stops at the first class that passes ``limit``."""
    from scipy.signal import convolve2d  # imported here, as in value_at_end

    total = np.ones((1, 1))
    for k, group in enumerate(groups):
        widths = tuple(np.diff(group.lattice.first[: U + 2]).tolist())
        total = convolve2d(total, class_layers(min(group.tasks, U), widths))[: U + 1, : U + 1]
        if states_in(total, finite=finite, decline=decline) > limit and k + 1 < len(groups):
            return total, False
    return total, True


def count_groups(
    problem: Problem, limit: float, *, lumped: bool = True, merged: bool = True, decline: bool = False
) -> tuple[list[TaskGroup], Floats, int]:
    """The groups, N(g, c) and the number of joint states; TooLargeError when they are more than ``limit``.

    A smaller budget has fewer states, so a large problem is refused at the first small budget that is too large.
    """
    U = problem.budget
    small = U <= EXACT_COUNT_UP_TO and len(problem.classes) <= EXACT_COUNT_UP_TO
    trial = U if small else min(U, 3)
    while True:
        groups = groups_of(problem, trial, lumped=lumped, merged=merged)
        most = np.inf if small else limit
        layers, complete = count_layers(groups, trial, most, finite=problem.finite, decline=decline)
        states = states_in(layers, finite=problem.finite, decline=decline)
        complete = complete and trial == U
        if states > limit:
            number = f"{states:,.0f}" if states < 2**53 else f"{states:.3g}"
            raise TooLargeError(
                f"the exact solution of {problem.tasks} tasks with a budget of {U} needs "
                f"{'' if complete else 'more than '}{number} joint states; at most {limit:,.0f} are allowed.",
                "Take fewer tasks or a smaller budget, or use `nextlabel bound` for an upper bound.",
                states=int(states),
            )
        if complete:
            return groups, layers, int(states)
        trial = min(U, trial * 2)


@dataclass(frozen=True, slots=True)
class ExactResult:
    """The value, per task too, the joint states it took, its estimated numerical error (0 when T is infinite)."""

    value: float
    per_task: float
    states: int
    error: float
    seconds: float


#: index(class, arrivals left with the present one, time left) -> array [w, node] over the class's own lattice
IndexTable = Callable[[int, int, float], Floats]
TIE_RULES = {"random": RANDOM, "groups": GROUPS, "first": FIRST}


class NotLumpableError(Exception):
    """The index tells nodes apart that are alike in law; caught inside the package."""


def index_by_id(
    groups: Sequence[TaskGroup], states: TaskStates, index: IndexTable, n: int, g: int, taus: Floats
) -> Floats:
    """The index of every id with at most ``g`` labels given out, n arrivals left, at each time left in ``taus``."""
    out = np.full((len(states.node), len(taus)), -np.inf)
    for k, group in enumerate(groups):
        ids = np.flatnonzero((states.cls == k) & (states.size <= g))
        node, w, nodes = states.node[ids], states.size[ids] - states.level[ids], group.lattice.nodes
        alike = np.argsort(group.to_node, kind="stable")
        starts = np.searchsorted(group.to_node[alike], np.arange(nodes))
        for t, tau in enumerate(taus):
            # With no time left the choice is worth nothing, and the index may not be defined.
            table = index(k, n, float(tau if tau > 0 else taus[1]))
            values = np.asarray(table, dtype=np.float64)[:, : len(group.to_node)][:, alike]
            high = np.maximum.reduceat(values, starts, axis=1)[w, node]
            low = np.minimum.reduceat(values, starts, axis=1)[w, node]
            if np.isnan(low).any():
                raise ProblemError(
                    f"the index of class {k} with {n} arrivals left is not a number.",
                    "Give an index for every state with level + w below the budget.",
                )
            if np.any(low < high - TIED):
                raise NotLumpableError
            out[ids, t] = high
    return out


TOLERANCE = 2e-10
LEAST_STEPS = 64
#: Limits: numbers held at once (8 bytes each), states x time points of a sweep, time points of a sweep.
MOST_NUMBERS = 250_000_000
MOST_WORK = 400_000_000
MOST_STEPS = 2**17
#: An index is asked for at every time point and arrival, in Python, and may jump in tau: no use in going further.
MOST_INDEX_STEPS = 2**11
SALTS = 5


class CollisionError(Exception):
    """Two multisets of one layer have one key."""


class JointSweep:
    """One problem, ready to be swept with any time points; ``kind`` is that of ``kernels.joint.Rule``."""

    def __init__(
        self,
        problem: Problem,
        groups: Sequence[TaskGroup],
        layers: Floats,
        kind: int,
        index: IndexTable | None,
        price: float,
        *,
        wait: bool,
        progress: Progress | None,
    ) -> None:
        self.problem, self._groups, self._layers = problem, groups, layers
        self._kind, self._index, self._price, self._wait, self._progress = kind, index, price, wait, progress
        self._states = number_states(groups, problem.budget)
        U = problem.budget
        rows = layers[:U].sum(axis=1) * (np.arange(U, 0, -1) if price > 0 else 1.0)
        self.work = max(1.0, float(rows.sum()))
        self.peak = float((rows + np.append(rows[1:], 0.0)).max(initial=1.0))
        self.most_steps = MOST_STEPS if index is None else MOST_INDEX_STEPS

    def run(self, line: Timeline) -> float:
        """V at the start."""
        for seed in range(SALTS):
            try:
                return self._run(line, seed)
            except CollisionError:
                continue
        raise SolverError(f"{SALTS} random numberings of the states all collided.", "Report this as a bug.")

    def _run(self, line: Timeline, seed: int) -> float:
        problem, U, taus, states = self.problem, self.problem.budget, line.tau, salted(self._states, seed)
        now = value_at_end(self._groups, states, problem.completion_rate, np.zeros(1))
        end = np.repeat(now, len(taus), axis=1)
        if self._wait:
            end = value_at_end(self._groups, states, problem.completion_rate, taus)
        if U == 0:
            return float(states.tasks @ end[states.fresh, -1])
        steps, decline, width = line.steps(problem.completion_rate), self._price > 0, min(U, problem.tasks)
        order = np.argsort(np.lexsort((states.size - states.level, states.node, states.cls)))  # of ids, for ties
        score = np.zeros((1, 1, 1))
        empty = Layer(np.zeros(1, np.int64), np.full(1, -1, np.int64), 0, np.zeros((1, 1, len(taus))))
        above: list[Layer] = []
        done, total = 0, int(self._layers[:U].sum())
        for g in range(U - 1, -1, -1):
            first = 1 if decline else U - g
            columns = U - first - g + 1
            if self._index is not None:
                left = range(first, first + columns)
                score = np.stack([index_by_id(self._groups, states, self._index, n, g, taus) for n in left])
            rule = Rule(self._kind, decline, self._price, score, order)
            row: list[Layer] = [empty] * (g + 1)
            right = empty
            for c in range(g, -1, -1):
                size = int(self._layers[g, c])
                rows, keys = np.empty((size, width), np.int64), np.empty(size, np.int64)
                if list_layer(states, g, c, rows, keys) != size:
                    raise SolverError(f"layer ({g}, {c}) does not have {size} states.", "Report this as a bug.")
                value = np.empty((size, columns, len(taus)))
                over = above[c] if above else empty
                solve_layer(states, rule, steps, rows, keys, g - c, end, now[:, 0], over, right, first, value)
                if above:
                    above[c] = empty
                slots = 1 << (2 * size - 1).bit_length()
                slot_key, slot_row = np.zeros(slots, np.int64), np.full(slots, -1, np.int64)
                if not build_table(keys, slot_key, slot_row):
                    raise CollisionError
                right = row[c] = Layer(slot_key, slot_row, first, value)
                done += size
                if self._progress is not None:
                    self._progress(done / total)
            above = row
        return float(above[0].value[0, -1, -1])


def extrapolate(sweep: JointSweep) -> tuple[float, float]:
    """Value with finite T, and its estimated error."""
    problem = sweep.problem
    T, U = problem.horizon, problem.budget
    fastest = problem.peak_rate + problem.completion_rate * U
    line = make_timeline(problem, max(LEAST_STEPS, math.ceil(T * fastest / 2)))
    numbers = 4 * (line.layers - 1) * sweep.peak
    if numbers > MOST_NUMBERS:
        raise TooLargeError(
            f"the exact solution with horizon {T:g} needs {numbers:,.0f} numbers in memory; "
            f"at most {MOST_NUMBERS:,} are allowed.",
            "Take fewer tasks, a smaller budget or a shorter horizon, or use `nextlabel bound` for an upper bound.",
            states=int(sweep.work),
        )
    most = min(MOST_NUMBERS / sweep.peak, MOST_WORK / sweep.work, sweep.most_steps)
    runs = [sweep.run(line)]
    while True:
        line = halve_steps(problem, line)
        runs.append(sweep.run(line))
        if len(runs) > 2:
            before, value = ((4 * finer - one) / 3 for one, finer in pairwise(runs[-3:]))
            if abs(value - before) <= TOLERANCE or 2 * (line.layers - 1) > most:
                return value, abs(value - before)


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
        from nextlabel.solve.crowd.exact import exact_crowd_value

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
    if ties not in TIE_RULES:
        raise ProblemError(f"ties is {ties!r}.", f"Give one of {', '.join(TIE_RULES)}.")
    rest = (TIE_RULES[ties], pending, problem.label_cost, max_states, progress)
    try:
        return _value(problem, index, *rest, lumped=ties != "first")
    except NotLumpableError:
        return _value(problem, index, *rest, lumped=False)


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
    in_unit = None if index is None else lambda c, n, tau: index(c, n, tau) / unit
    groups, layers, states = count_groups(problem, max_states, lumped=lumped, merged=index is None, decline=price > 0)
    sweep = JointSweep(problem, groups, layers, kind, in_unit, price, wait=pending == "wait", progress=progress)
    if problem.finite:
        value, error = extrapolate(sweep)
    else:
        value, error = sweep.run(make_timeline(problem)), 0.0
    return ExactResult(unit * value, unit * value / problem.tasks, states, unit * error, time.perf_counter() - began)
