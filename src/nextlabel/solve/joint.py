"""States of single tasks, numbered for the joint problem; their worth at the end; how many joint states there are.

====== ======= ============ =====================================================================
symbol code    shape        meaning
====== ======= ============ =====================================================================
s, m   --      --           labels given out to the task, and labels come in; w = s - m in flight
x      id      (I,)         (class, node of level m, w), ordered by class, s falling, m falling
R      now     (I,)         reward of deciding now
H      end     (I, M)       expected reward when no arrival is left and tau_t is the time left
a_m    width   (U+1,)       nodes of level m of a task's lattice (lumped)
N(g,c) layers  (U+1, U+1)   multisets with g labels given out and c of them come in
====== ======= ============ =====================================================================

    H(node, w; tau) = sum_j Binomial(j; w, 1 - exp(-mu tau)) E[R after j more labels]       (tau infinite: j = w)

With no arrival left the tasks no longer compete, so the joint value is the sum of H and is never enumerated.

    sum_{z,g,c} N(z; g,c) Z^z Y^g X^c = product over 1 <= s <= U, 0 <= m <= s of (1 - Z Y^s X^m)^(-a_m)

for one class, z <= count being the touched tasks; classes are convolved.
Guarantee: exact, counts below 2^53. Cost: O(K classes x U^3) numbers for the binary triangle, and O(min(K,U) U^4)
multiply-adds per class to count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats
from scipy.signal import convolve2d

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import Lattice, lump
from nextlabel.errors import TooLargeError
from nextlabel.kernels.joint import TaskStates
from nextlabel.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """Tasks that share a lattice; ``to_node`` maps the nodes of the class's own lattice to it."""

    count: int
    lattice: Lattice
    to_node: Ints


@dataclass(frozen=True, slots=True)
class Numbering:
    """The kernel's tables, and (group, node, w) of every id, fresh states included."""

    tables: TaskStates
    group: Ints
    node: Ints
    w: Ints


def groups_of(problem: Problem, depth: int, *, lumped: bool, merged: bool) -> list[TaskGroup]:
    """One group a class; ``lumped``: nodes alike in law are one; ``merged``: classes alike in law are one."""
    groups: dict[object, TaskGroup] = {}
    for k, task_class in enumerate(problem.classes):
        lattice = task_class.lattice(depth)
        to_new = np.arange(lattice.nodes)
        if lumped:
            lattice, to_new = lump(lattice)
        name: object = k
        if merged:
            name = _law(lattice)
        before = groups[name].count if name in groups else 0
        groups[name] = TaskGroup(before + task_class.count, lattice, to_new)
    return list(groups.values())


def _law(lattice: Lattice) -> tuple[bytes, ...]:
    """Equal for lattices with the same rewards, probabilities and children, the order of the answers aside."""
    order = np.lexsort((lattice.prob, lattice.child), axis=1)
    answers = (np.take_along_axis(x, order, axis=1) for x in (lattice.prob, lattice.child))
    return tuple(x.tobytes() for x in (lattice.first, lattice.reward, *answers))


def number_states(groups: Sequence[TaskGroup], budget: int, seed: int) -> Numbering:
    """Number every (group, node, w) with at most ``budget`` labels; ``seed`` salts the keys."""
    U = budget
    start = 0
    enter = np.zeros((len(groups), U + 1), dtype=np.int64)
    parts: list[list[Ints]] = []
    for k, group in enumerate(groups):
        first = group.lattice.first
        for s in range(U, 0, -1):
            enter[k, s] = start
            for m in range(s, -1, -1):
                node = np.arange(first[m], first[m + 1])
                stop = start + len(node)
                full = np.ones_like(node)
                parts.append([k * full, node, (s - m) * full, s * full, m * full, stop * full])
                start = stop
        enter[k, 0] = start
    touched = start
    fresh = touched + np.arange(len(groups))
    nothing = np.zeros_like(fresh)
    parts.append([np.arange(len(groups)), nothing, nothing, nothing, nothing, nothing])
    group_of, node_of, w_of, size, level, skip = (np.concatenate(x) for x in zip(*parts, strict=True))

    answers = max((g.lattice.answers for g in groups), default=1)
    up = np.zeros(len(node_of), dtype=np.int64)
    child = np.zeros((len(node_of), answers), dtype=np.int64)
    prob = np.zeros((len(node_of), answers))
    for k, group in enumerate(groups):
        ids = np.flatnonzero(group_of == k)
        node, w = node_of[ids], w_of[ids]
        first = group.lattice.first

        def id_of(node: Ints, s: Ints, m: Ints, k: int = k, first: Ints = first) -> Ints:
            return np.asarray(enter[k, s] + first[s + 1] - first[m + 1] + node - first[m])

        sizes, levels = size[ids], level[ids]
        more = sizes < U
        up[ids[more]] = id_of(node[more], sizes[more] + 1, levels[more])
        flying = w > 0
        for a in range(group.lattice.answers):
            child[ids[flying], a] = id_of(group.lattice.child[node[flying], a], sizes[flying], levels[flying] + 1)
            prob[ids, a] = group.lattice.prob[node, a]
        for a in range(group.lattice.answers, answers):
            child[ids, a] = child[ids, 0]
    # Sums of at most U salts stay below 2^62, so a key never overflows.
    salt = np.random.default_rng(seed).integers(1, 2**62 // max(U, 1), size=len(node_of), dtype=np.int64)
    salt[touched:] = 0
    tasks = np.array([g.count for g in groups], dtype=np.int64)
    ends = enter[:, 0].copy()
    tables = TaskStates(tasks, fresh, enter, ends, group_of, size, level, skip, up, child, prob, salt)
    return Numbering(tables, group_of, node_of, w_of)


def value_now(groups: Sequence[TaskGroup], numbering: Numbering) -> Floats:
    """R of every id."""
    out = np.empty(len(numbering.node))
    for k, group in enumerate(groups):
        ids = numbering.group == k
        out[ids] = group.lattice.reward[numbering.node[ids]]
    return out


def value_at_end(groups: Sequence[TaskGroup], numbering: Numbering, mu: float, taus: Floats) -> Floats:
    """H of every id at every time left in ``taus`` (inf: every label comes in)."""
    out = np.empty((len(numbering.node), len(taus)))
    comes_in = -np.expm1(-mu * taus)
    for k, group in enumerate(groups):
        lattice = group.lattice
        after = lattice.reward
        ids = np.flatnonzero(numbering.group == k)
        node, w = numbering.node[ids], numbering.w[ids]
        most = int(w.max(initial=0))
        chance = [stats.binom.pmf(j, np.arange(most + 1)[:, None], comes_in[None, :]) for j in range(most + 1)]
        out[ids] = 0.0
        for j in range(most + 1):
            some = w >= j
            out[ids[some]] += after[node[some], None] * chance[j][w[some]]
            after = np.sum(lattice.prob * after[lattice.child], axis=1)
    return out


#: Up to this budget a refusal names the exact number; above it the first lower bound that is too large.
EXACT_COUNT_UP_TO = 30


def class_layers(count: int, width: Floats, U: int) -> Floats:
    """N(g, c) of one class."""
    P = min(count, U)
    if P <= 1:
        alone = np.tril(np.broadcast_to(width, (U + 1, U + 1))).astype(np.float64)
        alone[0, 0] = 1.0
        return alone
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
    groups: Sequence[TaskGroup], U: int, limit: float = np.inf, *, finite: bool = True, decline: bool = False
) -> tuple[Floats, bool]:
    """N(g, c) of the whole problem, and whether it is complete: it stops at the first class that passes ``limit``."""
    known: dict[tuple[int, bytes], Floats] = {}
    total = np.zeros((U + 1, U + 1))
    for k, group in enumerate(groups):
        width = np.diff(group.lattice.first[: U + 2]).astype(np.float64)
        name = (min(group.count, U), width.tobytes())
        if name not in known:
            known[name] = class_layers(group.count, width, U)
        total = convolve2d(total, known[name])[: U + 1, : U + 1] if k else known[name]
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
        layers, complete = count_layers(
            groups, trial, np.inf if small else limit, finite=problem.finite, decline=decline
        )
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


def count_states(problem: Problem, limit: int = 20_000_000, *, decline: bool = False) -> int:
    """Number of joint states ``exact_value`` would report; TooLargeError when more than ``limit``.

    Counted are the states (multiset, n) of the model, n = 0 included, except, when T is infinite, those in which
    nothing can happen any more: 50,641 at K = 10, U = 12 with a symmetric prior.
    """
    return count_groups(problem, limit, decline=decline)[2]
