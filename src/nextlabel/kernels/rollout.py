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
from nextlabel.kernels.arrivals import Timing, arrival_after, arrivals_between
from nextlabel.kernels.choice import break_tie, score_groups
from nextlabel.kernels.gap import GapTables, lagrangian_loss, spent_loss, timed_loss
from nextlabel.kernels.groups import link, unlink
from nextlabel.kernels.heap import pop, push
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.policy import BY_LEVELS, PolicyArrays, StateScores, layer_at, scores_by_state
from nextlabel.kernels.random import ARRIVAL, DRAW, DURATION, LABEL, TIE, stream_key, uniform


class ProblemArrays(NamedTuple):
    """The problem: lattices of all classes one after another, tasks, budget and timing."""

    level: Ints
    reward: Floats
    prob: Floats
    child: Ints
    limit: Ints
    root: Ints  # node at which each task starts
    budget: int
    timing: Timing


class CampaignRun(NamedTuple):
    """A replication under way: groups as linked lists, the heap of completions, and a few counters."""

    head: Ints
    members: Ints
    position: Ints
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
def new_run(problem: ProblemArrays, policy: PolicyArrays, pending: int) -> CampaignRun:
    """Room for one replication after another; ``pending`` labels are in flight at the start."""
    K, states = problem.root.shape[0], policy.static.size
    groups = min(K, states) + 2
    most = problem.budget + pending + 1
    return CampaignRun(
        np.full(states, -1, dtype=np.int64),
        np.zeros(states, dtype=np.int64),
        np.zeros(states, dtype=np.int64),
        np.zeros(groups, dtype=np.int64),
        np.zeros(K, dtype=np.int64),
        np.zeros(K, dtype=np.int64),
        np.zeros(K, dtype=np.int64),
        np.zeros(groups + 2 * policy.levels.level.shape[0]),
        np.zeros(most),
        np.zeros(most, dtype=np.int64),
        np.zeros(policy.planned.shape[1]),
        np.zeros(3, dtype=np.int64),
        np.zeros(2),
    )


@uncounted
def copy_run(run: CampaignRun, out: CampaignRun) -> None:
    """A copy of the campaign as it stands."""
    for s in range(run.head.shape[0]):
        out.head[s], out.members[s], out.position[s] = run.head[s], run.members[s], run.position[s]
    for g in range(run.active.shape[0]):
        out.active[g] = run.active[g]
    for x in range(run.state.shape[0]):
        out.after[x], out.before[x], out.state[x] = run.after[x], run.before[x], run.state[x]
    for k in range(run.counters[0]):
        out.times[k], out.tasks[k] = run.times[k], run.tasks[k]
    for c in range(run.given.shape[0]):
        out.given[c] = run.given[c]
    for c in range(run.counters.shape[0]):
        out.counters[c] = run.counters[c]
    for c in range(run.clock.shape[0]):
        out.clock[c] = run.clock[c]


@uncounted
def start_run(problem: ProblemArrays, run: CampaignRun, seed: int, replication: int) -> None:
    """All tasks fresh, nothing in flight, the first arrival drawn."""
    head, count, position, active = run.head, run.members, run.position, run.active
    for g in range(active[-1]):
        head[active[g]] = -1
        count[active[g]] = 0
    active[-1] = 0
    for x in range(problem.root.shape[0] - 1, -1, -1):
        run.state[x] = problem.root[x]
        link(x, run.state[x], head, run.after, run.before, count, active, position)
    run.given[:] = 0.0
    run.counters[:] = 0
    timing, amount = problem.timing, -np.log(uniform(stream_key(seed, replication, ARRIVAL), 0, 0))
    run.clock[0] = arrival_after(0.0, amount, timing.starts, timing.rates)
    run.clock[1] = 0.0


@jit
def advance(
    problem: ProblemArrays,
    policy: PolicyArrays,
    gap: GapTables,
    recorded: Ints,
    run: CampaignRun,
    seed: int,
    replication: int,
    until: int,
) -> bool:
    """Play events until ``until`` workers have arrived, or to the end; True if the replication is over."""
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    return play_events(problem, policy, by_state, gap, recorded, run, seed, replication, problem.budget, until)


@uncounted
def play_events(
    problem: ProblemArrays,
    policy: PolicyArrays,
    by_state: StateScores,
    gap: GapTables,
    recorded: Ints,
    run: CampaignRun,
    seed: int,
    replication: int,
    budget: int,
    until: int,
) -> bool:
    """``advance`` with the scores by state made before, and ``budget`` in place of the problem's."""
    nodes = problem.level.shape[0]
    J, timing = problem.prob.shape[1], problem.timing
    layers = policy.tau.shape[0]
    with_gap, timed = gap.price.shape[0] > 0, gap.timed.tau.shape[0] > 0
    replay = recorded.shape[0] > 0
    k_label = stream_key(seed, replication, LABEL)
    k_arrival = stream_key(seed, replication, ARRIVAL)
    k_duration = stream_key(seed, replication, DURATION)
    k_tie = stream_key(seed, replication, TIE)
    k_draw = stream_key(seed, replication, DRAW)
    head, count, position, active = run.head, run.members, run.position, run.active
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
            if now > timing.horizon:
                over = True
                break
            n = budget - ell
            layer, share = 0, 0.0
            if layers > 1:
                layer, share = layer_at(policy, n, timing.horizon - now)
            elif policy.mode == BY_LEVELS:
                share = float(n)
                if timing.horizon < np.inf:
                    share = min(share, max(arrivals_between(now, timing), 1.0))
            best = score_groups(
                policy, by_state, problem.level, problem.child, active, count, n, ell, layer, share, k_draw, scores
            )
            chosen = -1
            if best > -np.inf and best >= policy.price[ell]:
                u = uniform(k_tie, ell, 0)
                chosen = break_tie(policy, by_state, active, count, scores, best, run.given, ell, u)
            if with_gap:
                loss += lagrangian_loss(gap, by_state.node, by_state.flight, active, count, n, gap.price[ell], chosen)
            if timed:
                left = timing.horizon - now
                loss += timed_loss(gap.timed, by_state.node, by_state.flight, active, count, left, chosen)
            if chosen >= 0:
                x = head[chosen]
                unlink(x, chosen, head, after, before, count, active, position)
                state[x] = chosen + nodes
                link(x, state[x], head, after, before, count, active, position)
                size = push(times, tasks, size, now - np.log(uniform(k_duration, ell, 0)) / timing.mu, x)
                labels += 1
            ell += 1
            if timed and ell == budget:
                loss += spent_loss(gap.timed, by_state.node, by_state.flight, active, count, timing.horizon - now)
            next_arrival = arrival_after(now, -np.log(uniform(k_arrival, ell, 0)), timing.starts, timing.rates)
            over = ell == budget and not timing.wait
        elif size > 0:
            if times[0] > timing.horizon:
                over = True
                break
            x = tasks[0]
            size = pop(times, tasks, size)
            s = state[x]
            i = by_state.node[s]
            j = 0
            if replay:
                j = recorded[x, problem.level[i] - problem.level[problem.root[x]]]
            else:
                u = uniform(k_label, x, problem.level[i])
                while j < J - 1 and u >= problem.prob[i, j]:
                    u -= problem.prob[i, j]
                    j += 1
            unlink(x, s, head, after, before, count, active, position)
            state[x] = s - nodes - i + problem.child[i, j]
            link(x, state[x], head, after, before, count, active, position)
        else:
            over = True
    run.counters[0], run.counters[1], run.counters[2] = size, ell, labels
    run.clock[0], run.clock[1] = next_arrival, loss
    return over


@uncounted
def write_outcome(problem: ProblemArrays, run: CampaignRun, out: Floats) -> None:
    """out = (reward, labels given, most labels of one task, gap, arrivals)."""
    nodes = problem.level.shape[0]
    total, most = 0.0, 0
    for g in range(run.active[-1]):
        s = run.active[g]
        total += run.members[s] * problem.reward[s % nodes]
        most = max(most, problem.level[s % nodes] + s // nodes)
    out[0], out[1], out[2], out[3], out[4] = total, run.counters[2], most, run.clock[1], run.counters[1]


@jit
def rollout(
    problem: ProblemArrays,
    policy: PolicyArrays,
    gap: GapTables,
    recorded: Ints,
    seed: int,
    first: int,
    out: Floats,
    final: Ints,
) -> None:
    """Replications first, first + 1, ...; ``write_outcome`` of each in out.

    ``recorded`` (K, most) are labels to replay, in the order in which they come (empty: draw from the model);
    ``final`` (replications, K) gets the node in which each task ends, if it is not empty.
    """
    nodes = problem.level.shape[0]
    run = new_run(problem, policy, 0)
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    for rep in range(out.shape[0]):
        start_run(problem, run, seed, first + rep)
        play_events(problem, policy, by_state, gap, recorded, run, seed, first + rep, problem.budget, problem.budget)
        write_outcome(problem, run, out[rep])
        if final.shape[0] > 0:
            for x in range(problem.root.shape[0]):
                final[rep, x] = run.state[x] % nodes
