"""One replication of a campaign after another: arrivals, completions, and a policy given as tables.

========= ========= ============================ ===========================================================
symbol    code      shape                        meaning
========= ========= ============================ ===========================================================
(i, w)    s         --                           state w * nodes + i; nodes of all classes are numbered through
--        static    (W + 1, nodes)               score of a state whatever n is
--        rows      (R, core, layers)            score of a core state with n arrivals left (last row: all larger n)
--        core      (W + 1, nodes)               number of a core state, -1 elsewhere (there ``static`` counts)
--        limit     (nodes,)                     labels a task of that node's class can be given at most
========= ========= ============================ ===========================================================

Tasks in the same state form one group, a doubly linked list; an arrival looks at the groups that have members and never
at the tasks. Label j of task x is drawn from the predictive probability with the uniform of (x, j), so it is the same
under every policy; so are the times of arrival l and of its completion.
Guarantee: exact simulation of the model. Cost: a visit to each non-empty group per arrival, O(log in flight) per
completion, O(K) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit
from nextlabel.kernels.random import ARRIVAL, DURATION, LABEL, TIE, stream_key, uniform

#: Scores closer than this are tied.
TIED = 1e-9
#: Ways to choose: by the tables, or by the tables among the groups that lack most of their planned share.
BY_TABLE, BY_DEFICIT = 0, 1


class World(NamedTuple):
    """The problem: lattices of all classes one after another, tasks, rates and what happens at the end."""

    level: Ints
    reward: Floats
    prob: Floats
    child: Ints
    limit: Ints
    root: Ints  # node at which each task starts
    budget: int
    r: float
    mu: float
    horizon: float
    wait: bool


class Tables(NamedTuple):
    """Scores of one policy."""

    static: Floats
    rows: Floats
    core: Ints
    tau: Floats
    random_ties: bool
    mode: int
    planned: Floats  # (U, core) cumulative share of each core state, for BY_DEFICIT
    price: Floats  # (U,) an arrival whose best score is below it is turned away (0: never)


class Gap(NamedTuple):
    """Advantages at the bound's prices, for the martingale estimate of the gap; empty rows switch it off."""

    static: Floats
    rows: Floats
    core: Ints
    price: Floats  # (U,)


@jit
def score_of(static: Floats, rows: Floats, core: Ints, n: int, layer: int, share: float, w: int, i: int) -> float:
    """Score of state (i, w) with n arrivals left, interpolated between two time layers."""
    c = core[w, i]
    value: float = static[w, i]
    if c < 0 or rows.shape[0] == 0:
        return value
    row = min(n, rows.shape[0]) - 1
    value = rows[row, c, layer]
    if share > 0.0:
        value += share * (rows[row, c, layer + 1] - value)
    return value


@jit
def push(times: Floats, tasks: Ints, size: int, time: float, task: int) -> int:
    """Add to the heap of completions; the earliest is on top."""
    k = size
    while k > 0:
        above = (k - 1) // 2
        if times[above] <= time:
            break
        times[k], tasks[k] = times[above], tasks[above]
        k = above
    times[k], tasks[k] = time, task
    return size + 1


@jit
def pop(times: Floats, tasks: Ints, size: int) -> int:
    """Remove the top of the heap; return the new size."""
    size -= 1
    time, task = times[size], tasks[size]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= size:
            break
        if below + 1 < size and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[k], tasks[k] = times[below], tasks[below]
        k = below
    times[k], tasks[k] = time, task
    return size


@jit
def unlink(x: int, s: int, head: Ints, after: Ints, before: Ints, count: Ints, active: Ints, place: Ints) -> None:
    """Take task x out of group s; a group that becomes empty leaves the list of active groups (active[-1] counts)."""
    if before[x] >= 0:
        after[before[x]] = after[x]
    else:
        head[s] = after[x]
    if after[x] >= 0:
        before[after[x]] = before[x]
    count[s] -= 1
    if count[s] == 0:
        last = active[-1] - 1
        active[-1] = last
        active[place[s]] = active[last]
        place[active[last]] = place[s]


@jit
def link(x: int, s: int, head: Ints, after: Ints, before: Ints, count: Ints, active: Ints, place: Ints) -> None:
    """Put task x into group s."""
    before[x] = -1
    after[x] = head[s]
    if head[s] >= 0:
        before[head[s]] = x
    head[s] = x
    if count[s] == 0:
        place[s] = active[-1]
        active[active[-1]] = s
        active[-1] += 1
    count[s] += 1


@jit
def rollout(
    world: World, tables: Tables, gap: Gap, recorded: Ints, seed: int, first: int, out: Floats, final: Ints
) -> None:
    """Replications first, first + 1, ...: out[i] = (reward, labels given, most labels of one task, gap, arrivals).

    ``recorded`` (K, most) are labels to replay, in the order in which they come (empty: draw from the model);
    ``final`` (replications, K) gets the node in which each task ends, if it is not empty.
    """
    K = world.root.shape[0]
    nodes = world.level.shape[0]
    W = tables.static.shape[0] - 1
    J = world.prob.shape[1]
    states = (W + 1) * nodes
    head = np.full(states, -1, dtype=np.int64)
    count = np.zeros(states, dtype=np.int64)
    place = np.zeros(states, dtype=np.int64)
    active = np.zeros(min(K, states) + 2, dtype=np.int64)
    after = np.zeros(K, dtype=np.int64)
    before = np.zeros(K, dtype=np.int64)
    state = np.zeros(K, dtype=np.int64)
    scores = np.zeros(active.shape[0])
    times = np.zeros(world.budget + 1)
    tasks = np.zeros(world.budget + 1, dtype=np.int64)
    given = np.zeros(tables.planned.shape[1])
    layers = tables.tau.shape[0]
    with_gap = gap.price.shape[0] > 0
    replay = recorded.shape[0] > 0
    for rep in range(out.shape[0]):
        k_label = stream_key(seed, first + rep, LABEL)
        k_arrival = stream_key(seed, first + rep, ARRIVAL)
        k_duration = stream_key(seed, first + rep, DURATION)
        k_tie = stream_key(seed, first + rep, TIE)
        for g in range(active[-1]):
            head[active[g]] = -1
            count[active[g]] = 0
        active[-1] = 0
        for x in range(K - 1, -1, -1):
            state[x] = world.root[x]
            link(x, state[x], head, after, before, count, active, place)
        given[:] = 0.0
        size, ell, labels, loss = 0, 0, 0, 0.0
        next_arrival = -np.log(uniform(k_arrival, 0, 0)) / world.r
        while True:
            if ell < world.budget and (size == 0 or next_arrival <= times[0]):
                now = next_arrival
                if now > world.horizon:
                    break
                n = world.budget - ell
                layer, share = 0, 0.0
                if layers > 1:
                    left = world.horizon - now
                    layer = min(max(np.searchsorted(tables.tau, left, side="right") - 1, 0), layers - 2)
                    share = (left - tables.tau[layer]) / (tables.tau[layer + 1] - tables.tau[layer])
                best = -np.inf
                for g in range(active[-1]):
                    s = active[g]
                    w, i = s // nodes, s % nodes
                    if w >= W or world.level[i] + w >= world.limit[i]:
                        scores[g] = -np.inf
                        continue
                    scores[g] = score_of(tables.static, tables.rows, tables.core, n, layer, share, w, i)
                    best = max(best, scores[g])
                chosen = -1
                if best > -np.inf and best >= tables.price[ell]:
                    chosen = pick(active, scores, count, best, tables, given, ell, nodes, uniform(k_tie, ell, 0))
                if with_gap:
                    price = gap.price[ell]
                    for g in range(active[-1]):
                        s = active[g]
                        w, i = s // nodes, s % nodes
                        if w < W:
                            A = score_of(gap.static, gap.rows, gap.core, n, 0, 0.0, w, i) - price
                            loss += count[s] * max(A, 0.0)
                            if s == chosen:
                                loss -= A
                    if chosen < 0:
                        loss += price
                if chosen >= 0:
                    x = head[chosen]
                    unlink(x, chosen, head, after, before, count, active, place)
                    state[x] = chosen + nodes
                    link(x, state[x], head, after, before, count, active, place)
                    size = push(times, tasks, size, now - np.log(uniform(k_duration, ell, 0)) / world.mu, x)
                    labels += 1
                ell += 1
                next_arrival = now - np.log(uniform(k_arrival, ell, 0)) / world.r
                if ell == world.budget and not world.wait:
                    break
            elif size > 0:
                if times[0] > world.horizon:
                    break
                x = tasks[0]
                size = pop(times, tasks, size)
                s = state[x]
                i = s % nodes
                j = 0
                if replay:
                    j = recorded[x, world.level[i] - world.level[world.root[x]]]
                else:
                    u = uniform(k_label, x, world.level[i])
                    while j < J - 1 and u >= world.prob[i, j]:
                        u -= world.prob[i, j]
                        j += 1
                unlink(x, s, head, after, before, count, active, place)
                state[x] = s - nodes - i + world.child[i, j]
                link(x, state[x], head, after, before, count, active, place)
            else:
                break
        total, most = 0.0, 0
        for g in range(active[-1]):
            s = active[g]
            w, i = s // nodes, s % nodes
            total += count[s] * world.reward[i]
            most = max(most, world.level[i] + w)
        out[rep, 0], out[rep, 1], out[rep, 2], out[rep, 3], out[rep, 4] = total, labels, most, loss, ell
        if final.shape[0] > 0:
            for x in range(K):
                final[rep, x] = state[x] % nodes


@jit
def pick(
    active: Ints,
    scores: Floats,
    count: Ints,
    best: float,
    tables: Tables,
    given: Floats,
    ell: int,
    nodes: int,
    u: float,
) -> int:
    """A group among those whose score ties with the best: by deficit, by lot among their tasks, or the lowest state."""
    groups = active[-1]
    if tables.mode == BY_DEFICIT:
        return pick_by_deficit(active, scores, best, tables, given, ell, nodes)
    floor = best - TIED
    if not tables.random_ties:
        chosen = -1
        for g in range(groups):
            if scores[g] >= floor and (chosen < 0 or active[g] < chosen):
                chosen = active[g]
        return chosen
    total = 0
    for g in range(groups):
        if scores[g] >= floor:
            total += count[active[g]]
    draw = u * total
    chosen = -1
    for g in range(groups):
        if scores[g] >= floor:
            chosen = active[g]
            draw -= count[chosen]
            if draw < 0.0:
                break
    return chosen


@jit
def pick_by_deficit(
    active: Ints, scores: Floats, best: float, tables: Tables, given: Floats, ell: int, nodes: int
) -> int:
    """The tied group that lacks most of what the relaxed solution gave it by now; then the better static score."""
    chosen, lack, second = -1, -np.inf, -np.inf
    for g in range(active[-1]):
        if scores[g] < best - TIED:
            continue
        s = active[g]
        w, i = s // nodes, s % nodes
        c = tables.core[w, i]
        short = tables.planned[ell, c] - given[c] if c >= 0 else -np.inf
        if short > lack + TIED or (short > lack - TIED and tables.static[w, i] > second):
            chosen, lack, second = s, short, tables.static[w, i]
    if chosen >= 0:
        c = tables.core[chosen // nodes, chosen % nodes]
        if c >= 0:
            given[c] += 1.0
    return chosen
