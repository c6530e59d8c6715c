"""One replication of a campaign after another: arrivals, completions, and a policy given as tables.

========= ========= ============ ===========================================================
symbol    code      shape        meaning
========= ========= ============ ===========================================================
(i, w)    s         --           state w * nodes + i; nodes of all classes are numbered through
--        limit     (nodes,)     labels a task of that node's class can be given at most
l         ell       --           arrivals so far; n = budget - l are left
========= ========= ============ ===========================================================

Tasks in the same state form one group (``kernels.groups``); an arrival looks at the groups that have members, never at
the tasks (``kernels.choice``). Label j of task x is drawn from the predictive probability with the uniform of (x, j),
the same under every policy; so are the times of arrival l and of its completion.
Guarantee: exact simulation of the model. Cost: a visit to each non-empty group per arrival, O(log in flight) per
completion, O(K) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.arrivals import arrival_after
from nextlabel.kernels.choice import Lookup, Tables, look_up, pick, score_groups
from nextlabel.kernels.gap import Gap, lagrangian_loss
from nextlabel.kernels.groups import link, unlink
from nextlabel.kernels.heap import pop, push
from nextlabel.kernels.jit import jit
from nextlabel.kernels.random import ARRIVAL, DRAW, DURATION, LABEL, TIE, stream_key, uniform
from nextlabel.kernels.uncounted import uncounted


class World(NamedTuple):
    """The problem: lattices of all classes one after another, tasks, rates and what happens at the end."""

    level: Ints
    reward: Floats
    prob: Floats
    child: Ints
    limit: Ints
    root: Ints  # node at which each task starts
    budget: int
    starts: Floats  # of the pieces of constant arrival rate
    rates: Floats
    mu: float
    horizon: float
    wait: bool


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


@uncounted
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
    amount = -np.log(uniform(stream_key(seed, replication, ARRIVAL), 0, 0))
    run.clock[0] = arrival_after(0.0, amount, world.starts, world.rates)
    run.clock[1] = 0.0


@jit
def advance(
    world: World, tables: Tables, gap: Gap, recorded: Ints, run: Run, seed: int, replication: int, until: int
) -> bool:
    """Play events until ``until`` workers have arrived, or to the end; True if the replication is over."""
    lookup = look_up(tables, world.level, world.limit, world.child)
    return play(world, tables, lookup, gap, recorded, run, seed, replication, world.budget, until)


@uncounted
def play(
    world: World,
    tables: Tables,
    lookup: Lookup,
    gap: Gap,
    recorded: Ints,
    run: Run,
    seed: int,
    replication: int,
    budget: int,
    until: int,
) -> bool:
    """``advance`` with the tables looked up before, and ``budget`` in the place of the world's."""
    nodes = world.level.shape[0]
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
        if ell < budget and (size == 0 or next_arrival <= times[0]):
            if ell >= until:
                break
            now = next_arrival
            if now > world.horizon:
                over = True
                break
            n = budget - ell
            layer, share = 0, 0.0
            if layers > 1:
                left = world.horizon - now
                layer = min(max(np.searchsorted(tables.tau, left, side="right") - 1, 0), layers - 2)
                share = (left - tables.tau[layer]) / (tables.tau[layer + 1] - tables.tau[layer])
            best = score_groups(
                tables, lookup, world.level, world.child, active, count, n, ell, layer, share, k_draw, scores
            )
            chosen = -1
            if best > -np.inf and best >= tables.price[ell]:
                chosen = pick(active, scores, count, best, tables, lookup, run.given, ell, uniform(k_tie, ell, 0))
            if with_gap:
                loss += lagrangian_loss(gap, lookup.node, lookup.flight, active, count, n, gap.price[ell], chosen)
            if chosen >= 0:
                x = head[chosen]
                unlink(x, chosen, head, after, before, count, active, place)
                state[x] = chosen + nodes
                link(x, state[x], head, after, before, count, active, place)
                size = push(times, tasks, size, now - np.log(uniform(k_duration, ell, 0)) / world.mu, x)
                labels += 1
            ell += 1
            next_arrival = arrival_after(now, -np.log(uniform(k_arrival, ell, 0)), world.starts, world.rates)
            over = ell == budget and not world.wait
        elif size > 0:
            if times[0] > world.horizon:
                over = True
                break
            x = tasks[0]
            size = pop(times, tasks, size)
            s = state[x]
            i = lookup.node[s]
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


@uncounted
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
    lookup = look_up(tables, world.level, world.limit, world.child)
    for rep in range(out.shape[0]):
        begin(world, run, seed, first + rep)
        play(world, tables, lookup, gap, recorded, run, seed, first + rep, world.budget, world.budget)
        outcome(world, run, out[rep])
        if final.shape[0] > 0:
            for x in range(world.root.shape[0]):
                final[rep, x] = run.state[x] % nodes
