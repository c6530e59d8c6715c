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
from nextlabel.kernels.random import ARRIVAL, DRAW, DURATION, LABEL, TIE, stream_key, uniform

#: Quantiles are kept for logits of the level up to this.
Z_END = 30.0
#: Deficits closer than this are equal.
EVEN = 1e-9
#: Ways to choose: by the tables; by the tables among the groups that lack most of their planned share; by an upper
#: confidence bound that grows with the labels given so far; by a draw from the posterior.
BY_TABLE, BY_DEFICIT, BY_CONFIDENCE, BY_DRAW = 0, 1, 2, 3


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
    tied: float  # scores closer than this are tied
    price: Floats  # (U,) an arrival whose best score is below it is turned away (-inf: never)
    facts: Floats  # (nodes, 2) BY_CONFIDENCE: what is added to the bonus, and phat; BY_DRAW: gains of answers 0 and 1
    quantiles: Floats  # (nodes, Q) BY_DRAW: theta at the logit-spaced levels of ``spaced_quantile``


class Gap(NamedTuple):
    """Tables of ``solve.advantage`` for the martingale estimate of the gap; no prices switch it off."""

    best: Floats  # (R, core)
    gain: Floats
    core: Ints  # (W + 1, nodes)
    past_best: Floats  # (2, W + 1, nodes)
    past_gain: Floats
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
def confidence(facts: Floats, level: int, w: int, i: int, ell: int) -> float:
    """UCB1-tuned: base + sqrt(ln N / m min(1/4, v)), v = phat (1 - phat) + sqrt(2 ln N / m); m = 0 comes first."""
    m = level + w
    if m == 0:
        return np.inf
    log_n = np.log(max(ell, 1))
    phat = facts[i, 1]
    v = phat * (1.0 - phat) + np.sqrt(2.0 * log_n / m)
    value: float = facts[i, 0] + np.sqrt(log_n / m * min(0.25, v))
    return value


@jit
def spaced_quantile(quantiles: Floats, i: int, u: float) -> float:
    """theta at level u, linear between levels 1 / (1 + e^-z) with z evenly spaced over [-Z_END, Z_END]."""
    last = quantiles.shape[1] - 1
    z = np.log(u / (1.0 - u)) if u < 1.0 else Z_END
    at = (min(max(z, -Z_END), Z_END) + Z_END) / (2.0 * Z_END) * last
    k = min(int(at), last - 1)
    value: float = quantiles[i, k] + (at - k) * (quantiles[i, k + 1] - quantiles[i, k])
    return value


@jit
def drawn(
    tables: Tables, child: Ints, w: int, i: int, members: int, key: np.uint64, ell: int, draws: int
) -> tuple[float, int]:
    """Thompson: the best of ``members`` draws of theta R1 + (1 - theta) R2 in state (i, w), and the draws used up.

    With nothing in flight the score is linear in theta, so the best of g draws is one draw at level u^(1/g). Labels in
    flight are drawn from theta, task by task; the last level has no gains and no children.
    """
    if w == 0:
        u = uniform(key, ell, draws) ** (1.0 / members)
        slope = tables.facts[i, 1] - tables.facts[i, 0]
        theta = spaced_quantile(tables.quantiles, i, u if slope > 0.0 else 1.0 - u)
        return tables.facts[i, 0] + theta * slope, draws + 1
    best = -np.inf
    for _ in range(members):
        theta = spaced_quantile(tables.quantiles, i, uniform(key, ell, draws))
        draws += 1
        node = i
        for _label in range(w):
            answer = 1 if uniform(key, ell, draws) < theta else 0
            draws += 1
            if child[node, answer] > node:
                node = child[node, answer]
        best = max(best, tables.facts[node, 0] + theta * (tables.facts[node, 1] - tables.facts[node, 0]))
    return best, draws


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


class Run(NamedTuple):
    """A replication under way: groups as linked lists, the heap of completions, and a few counters."""

    head: Ints
    members: Ints
    place: Ints
    active: Ints  # the non-empty groups; the last entry counts them
    after: Ints
    before: Ints
    state: Ints  # of each task
    scores: Floats
    times: Floats
    tasks: Ints
    given: Floats  # labels given to each core state, for BY_DEFICIT
    counters: Ints  # heap size, arrivals so far, labels given
    clock: Floats  # next arrival, gap so far


@jit
def new_run(world: World, flight: int, core: int) -> Run:
    """Room for one replication after another."""
    K, nodes = world.root.shape[0], world.level.shape[0]
    states = (flight + 1) * nodes
    groups = min(K, states) + 2
    return Run(
        np.full(states, -1, dtype=np.int64),
        np.zeros(states, dtype=np.int64),
        np.zeros(states, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
        np.zeros(K, dtype=np.int64),
        np.zeros(K, dtype=np.int64),
        np.zeros(K, dtype=np.int64),
        np.zeros(groups),
        np.zeros(world.budget + 1),
        np.zeros(world.budget + 1, dtype=np.int64),
        np.zeros(core),
        np.zeros(3, dtype=np.int64),
        np.zeros(2),
    )


@jit
def begin(world: World, run: Run, seed: int, replication: int) -> None:
    """All tasks fresh, nothing in flight, the first arrival drawn."""
    head, count, place, active = run.head, run.members, run.place, run.active
    for g in range(active[-1]):
        head[active[g]] = -1
        count[active[g]] = 0
    active[-1] = 0
    for x in range(world.root.shape[0] - 1, -1, -1):
        run.state[x] = world.root[x]
        link(x, run.state[x], head, run.after, run.before, count, active, place)
    run.given[:] = 0.0
    run.counters[:] = 0
    run.clock[0] = -np.log(uniform(stream_key(seed, replication, ARRIVAL), 0, 0)) / world.r
    run.clock[1] = 0.0


@jit
def advance(
    world: World, tables: Tables, gap: Gap, recorded: Ints, run: Run, seed: int, replication: int, until: int
) -> bool:
    """Play events until ``until`` workers have arrived, or to the end; True if the replication is over."""
    nodes = world.level.shape[0]
    W = tables.static.shape[0] - 1
    J = world.prob.shape[1]
    layers = tables.tau.shape[0]
    with_gap = gap.price.shape[0] > 0
    replay = recorded.shape[0] > 0
    k_label = stream_key(seed, replication, LABEL)
    k_arrival = stream_key(seed, replication, ARRIVAL)
    k_duration = stream_key(seed, replication, DURATION)
    k_tie = stream_key(seed, replication, TIE)
    k_draw = stream_key(seed, replication, DRAW)
    head, count, place, active = run.head, run.members, run.place, run.active
    after, before, state, scores = run.after, run.before, run.state, run.scores
    times, tasks = run.times, run.tasks
    size, ell, labels = run.counters[0], run.counters[1], run.counters[2]
    next_arrival, loss = run.clock[0], run.clock[1]
    over = False
    while not over:
        if ell < world.budget and (size == 0 or next_arrival <= times[0]):
            if ell >= until:
                break
            now = next_arrival
            if now > world.horizon:
                over = True
                break
            n = world.budget - ell
            layer, share = 0, 0.0
            if layers > 1:
                left = world.horizon - now
                layer = min(max(np.searchsorted(tables.tau, left, side="right") - 1, 0), layers - 2)
                share = (left - tables.tau[layer]) / (tables.tau[layer + 1] - tables.tau[layer])
            best = -np.inf
            draws = 0
            for g in range(active[-1]):
                s = active[g]
                w, i = s // nodes, s % nodes
                if w >= W or world.level[i] + w >= world.limit[i]:
                    scores[g] = -np.inf
                    continue
                if tables.mode == BY_CONFIDENCE:
                    scores[g] = confidence(tables.facts, world.level[i], w, i, ell)
                elif tables.mode == BY_DRAW:
                    scores[g], draws = drawn(tables, world.child, w, i, count[s], k_draw, ell, draws)
                else:
                    scores[g] = score_of(tables.static, tables.rows, tables.core, n, layer, share, w, i)
                best = max(best, scores[g])
            chosen = -1
            if best > -np.inf and best >= tables.price[ell]:
                chosen = pick(active, scores, count, best, tables, run.given, ell, nodes, uniform(k_tie, ell, 0))
            if with_gap:
                loss += lagrangian_loss(gap, active, count, nodes, n, gap.price[ell], chosen)
            if chosen >= 0:
                x = head[chosen]
                unlink(x, chosen, head, after, before, count, active, place)
                state[x] = chosen + nodes
                link(x, state[x], head, after, before, count, active, place)
                size = push(times, tasks, size, now - np.log(uniform(k_duration, ell, 0)) / world.mu, x)
                labels += 1
            ell += 1
            next_arrival = now - np.log(uniform(k_arrival, ell, 0)) / world.r
            over = ell == world.budget and not world.wait
        elif size > 0:
            if times[0] > world.horizon:
                over = True
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
            over = True
    run.counters[0], run.counters[1], run.counters[2] = size, ell, labels
    run.clock[0], run.clock[1] = next_arrival, loss
    return over


@jit
def lagrangian_loss(gap: Gap, active: Ints, count: Ints, nodes: int, n: int, price: float, chosen: int) -> float:
    """sum over all tasks of what the arrival could add at best, minus A - lam of the label given; lam if none was."""
    loss = price if chosen < 0 else 0.0
    row = min(n, gap.best.shape[0]) - 1
    more = 0 if n == 1 else 1
    for g in range(active[-1]):
        s = active[g]
        w, i = s // nodes, s % nodes
        c = gap.core[w, i]
        best = gap.best[row, c] if c >= 0 else gap.past_best[more, w, i]
        loss += count[s] * best
        if s == chosen:
            loss -= (gap.gain[row, c] if c >= 0 else gap.past_gain[more, w, i]) - price
    return loss


@jit
def outcome(world: World, run: Run, out: Floats) -> None:
    """out = (reward, labels given, most labels of one task, gap, arrivals)."""
    nodes = world.level.shape[0]
    total, most = 0.0, 0
    for g in range(run.active[-1]):
        s = run.active[g]
        total += run.members[s] * world.reward[s % nodes]
        most = max(most, world.level[s % nodes] + s // nodes)
    out[0], out[1], out[2], out[3], out[4] = total, run.counters[2], most, run.clock[1], run.counters[1]


@jit
def rollout(
    world: World, tables: Tables, gap: Gap, recorded: Ints, seed: int, first: int, out: Floats, final: Ints
) -> None:
    """Replications first, first + 1, ...; ``outcome`` of each in out.

    ``recorded`` (K, most) are labels to replay, in the order in which they come (empty: draw from the model);
    ``final`` (replications, K) gets the node in which each task ends, if it is not empty.
    """
    nodes = world.level.shape[0]
    run = new_run(world, tables.static.shape[0] - 1, tables.planned.shape[1])
    for rep in range(out.shape[0]):
        begin(world, run, seed, first + rep)
        advance(world, tables, gap, recorded, run, seed, first + rep, world.budget)
        outcome(world, run, out[rep])
        if final.shape[0] > 0:
            for x in range(world.root.shape[0]):
                final[rep, x] = run.state[x] % nodes


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
    floor = best - tables.tied
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
        if scores[g] < best - tables.tied:
            continue
        s = active[g]
        w, i = s // nodes, s % nodes
        c = tables.core[w, i]
        short = tables.planned[ell, c] - given[c] if c >= 0 else -np.inf
        if short > lack + EVEN or (short > lack - EVEN and tables.static[w, i] > second):
            chosen, lack, second = s, short, tables.static[w, i]
    if chosen >= 0:
        c = tables.core[chosen // nodes, chosen % nodes]
        if c >= 0:
            given[c] += 1.0
    return chosen
