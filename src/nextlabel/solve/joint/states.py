"""States of single tasks, numbered for the joint problem, and what each is worth when no arrival is left.

====== ======= ============ =====================================================================
symbol code    shape        meaning
====== ======= ============ =====================================================================
s, m   --      --           labels given out to the task, and labels come in; w = s - m in flight
x      id      (I,)         (class, node of level m, w), ordered by class, s falling, m falling
R      now     (I,)         reward of deciding now
H      end     (I, M)       expected reward when no arrival is left and tau_t is the time left
====== ======= ============ =====================================================================

    H(node, w; tau) = sum_j Binomial(j; w, 1 - exp(-mu tau)) E[R after j more labels]       (tau infinite: j = w)

With no arrival left the tasks no longer compete, so the joint value is the sum of H and is never enumerated.
Guarantee: exact. Cost: O(K classes x U^3) numbers for the binary triangle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import LUMP_GAP, Lattice, lump
from nextlabel.kernels.multisets import TaskStates
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
    # Shifted off the dyadic numbers, where rewards like to lie and rounding would tell equal ones apart.
    reward, prob = (np.floor(x / (10 * LUMP_GAP) + 1 / np.pi) for x in (lattice.reward, lattice.prob))
    order = np.lexsort((prob, lattice.child), axis=1)
    answers = (np.take_along_axis(x, order, axis=1) for x in (prob, lattice.child))
    return tuple(x.tobytes() for x in (lattice.first, reward, *answers))


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
        chance = [binom.pmf(j, np.arange(most + 1)[:, None], comes_in[None, :]) for j in range(most + 1)]
        out[ids] = 0.0
        for j in range(most + 1):
            some = w >= j
            out[ids[some]] += after[node[some], None] * chance[j][w[some]]
            after = np.sum(lattice.prob * after[lattice.child], axis=1)
    return out
