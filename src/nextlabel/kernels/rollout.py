"""The event loop of a campaign: arrivals, completions, a budget and a policy, one replication after another.

========= ========= ============ ===========================================================
symbol    code      shape        meaning
========= ========= ============ ===========================================================
(i, w)    s         --           state w * nodes + i; nodes of all classes are numbered through
--        limit     (nodes,)     labels a task of that node's class can be given at most
w_x       flight    (K,)         labels of task x in flight at the start, or (0,)
l         ell       --           arrivals so far; n = budget - l are left
b         budgets   (B,)         budgets that one campaign passes through, rising; the last one is the problem's
R         --        --           rows of the policy's tables: from n = R on they are all the same
H         worth     (states,)    E[R after the w labels in flight], or R
========= ========= ============ ===========================================================

*Labels* are drawn from the predictive probability, label j of task x with the uniform of (x, j), the same under every
policy; or they are recorded ones, in the order of the replication's draw (``kernels.events``). So are the times of
arrival l and of its completion. What is left of a label in flight at the start is Exp(mu) again; its draw is that of
(number in flight, 1) where a new label has (arrival, 0).

*Tasks* of few classes form groups of equal state, doubly linked lists: an arrival looks at the groups that have
members, never at the tasks (``kernels.choice``). Tasks with priors of their own are ranked in a heap
(``kernels.ranked_tasks``); their randomness is the same, draw for draw, but for ties.

*Budgets*: while n >= R the choice does not depend on n, so that every budget has the same events up to arrival
b - R + 1. From there a copy of the campaign is played to its end with its own n. Where nothing is left to play (R = 0)
the campaign is read at arrival b: recorded labels in flight are known, drawn ones are averaged by H.
Guarantee: exact simulation of the model; what one campaign per budget gives, digit for digit where labels are awaited.
Cost: a visit to each non-empty group per arrival, or O(log K); O(log in flight) per completion; O(K) memory.

What arrivals lost against the best they could have done, the Lagrangian martingale (docs/theory.md, section 7):

========= ========= ============== ======================================================================
symbol    code      shape          meaning
========= ========= ============== ======================================================================
tau       tau       (m,)           time left at the layers, rising from 0
V(s,tau)  value     (m, C)         value of a task in state s at prices p(tau), of all classes side by side
dV/dtau   slope     (m, 2, C)      at both ends of the step from layer k to k + 1: it jumps where r does
p + c     price     (m,)           price of a label given with tau left and its cost; linear in between
--        column    (W + 2, N)     column of state [w, node], -1 where V is V_0
V_0       worth     (W + 2, N)     P^j R: what the task is worth after j more labels
========= ========= ============== ======================================================================

Without a deadline the term of an arrival is the sum over all tasks of what one more label could add at best, minus
A - lam of the label given (plus lam if none was), with A the advantage of one more label and lam the price of this
arrival (``policies.gap``).

Before a deadline V solves the equation of ``horizon.integrate``; V_0 is the value without another label, and

    G = sum over arrivals of { sum_x max{0, A_x - p - c} - (A - p - c) of the label given, or + p if none was }
        + sum_x (V - V_0) when the budget is spent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import (
    BY_LEVELS,
    PolicyArrays,
    StateScores,
    choose_group,
    scores_by_state,
)
from nextlabel.kernels.events import (
    ARRIVAL,
    DRAW,
    DURATION,
    LABEL,
    TIE,
    RecordedLabels,
    Timing,
    answer_of,
    arrival_after,
    arrivals_between,
    draw_recorded,
    pop,
    push,
    stream_key,
    uniform,
)
from nextlabel.kernels.inputs import between, layer_at
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.no_delay import Workspace, new_workspace
from nextlabel.kernels.ranked_tasks import JITTER, OF_CLASS, RankedTasks, ranked_answer, sift, task_score, tied


class TimedGap(NamedTuple):
    """Tables of the martingale in time; no layers switch it off."""

    tau: Floats
    value: Floats
    slope: Floats
    price: Floats
    column: Ints
    worth: Floats
    mu: float
    cost: float


_NONE, _NOWHERE = np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64)
#: Switches it off.
NO_TIMED_GAP = TimedGap(np.zeros(0), _NONE, np.zeros((0, 2, 0)), np.zeros(0), _NOWHERE, _NONE, 1.0, 0.0)


@uncounted
def worth_of(gap: TimedGap, w: int, i: int, q: float) -> float:
    """V_0 of state [w, i]: each of the w labels in flight comes in with the chance q."""
    if 1.0 - q < 1e-12:
        sure: float = gap.worth[w, i]
        return sure
    chance = (1.0 - q) ** w
    worth: float = chance * gap.worth[0, i]
    for j in range(w):
        chance *= (w - j) / (j + 1.0) * q / (1.0 - q)
        worth += chance * gap.worth[j + 1, i]
    return worth


@uncounted
def value_of(gap: TimedGap, w: int, i: int, k: int, u: float, q: float) -> float:
    """V of state [w, i] between layers k and k + 1, by the cubic through values and slopes."""
    c = gap.column[w, i]
    if c < 0:
        return worth_of(gap, w, i, q)
    h = gap.tau[k + 1] - gap.tau[k]
    value: float = (
        (1.0 + 2.0 * u) * (1.0 - u) ** 2 * gap.value[k, c]
        + u * (1.0 - u) ** 2 * h * gap.slope[k, 0, c]
        + u * u * (3.0 - 2.0 * u) * gap.value[k + 1, c]
        - u * u * (1.0 - u) * h * gap.slope[k, 1, c]
    )
    return value


@uncounted
def timed_loss(gap: TimedGap, node: Ints, flight: Ints, active: Ints, count: Ints, tau: float, chosen: int) -> float:
    """What the arrival with ``tau`` left lost; ``chosen`` is the state that it got, -1 for none."""
    k, u = between(gap.tau, tau)
    q = -np.expm1(-gap.mu * tau)
    price = gap.price[k] + u * (gap.price[k + 1] - gap.price[k])
    loss = price - gap.cost if chosen < 0 else 0.0
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        inside = gap.column[w, i] >= 0 and gap.column[w + 1, i] >= 0
        if not inside and s != chosen:
            continue
        gain = value_of(gap, w + 1, i, k, u, q) - value_of(gap, w, i, k, u, q) - price
        if inside and gain > 0.0:
            loss += count[s] * gain
        if s == chosen:
            loss -= gain
    return loss


@uncounted
def spent_loss(gap: TimedGap, node: Ints, flight: Ints, active: Ints, count: Ints, tau: float) -> float:
    """sum_x V - V_0 with ``tau`` left, when the last label was given out."""
    k, u = between(gap.tau, tau)
    q = -np.expm1(-gap.mu * tau)
    loss = 0.0
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        if gap.column[w, i] >= 0:
            loss += count[s] * (value_of(gap, w, i, k, u, q) - worth_of(gap, w, i, q))
    return loss


class GapTables(NamedTuple):
    """Tables of ``policies.gap`` for the martingale estimate of the gap; no prices and no layers switch it off."""

    best: Floats  # (R, core)
    gain: Floats
    core: Ints  # (W + 1, nodes)
    past_best: Floats  # (2, W + 1, nodes)
    past_gain: Floats
    price: Floats  # (U,)
    timed: TimedGap  # before a deadline, in place of the rest


#: Switches the estimate of the gap off.
NO_GAP = GapTables(
    _NONE, _NONE, _NOWHERE, np.zeros((2, 0, 0)), np.zeros((2, 0, 0)), np.zeros(0), NO_TIMED_GAP
)  # fmt: skip


@uncounted
def lagrangian_loss(
    gap: GapTables, node: Ints, flight: Ints, active: Ints, count: Ints, n: int, price: float, chosen: int
) -> float:
    """sum over all tasks of what the arrival could add at best, minus A - lam of the label given; lam if none was."""
    loss = price if chosen < 0 else 0.0
    row = min(n, gap.best.shape[0]) - 1
    more = 0 if n == 1 else 1
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        c = gap.core[w, i]
        best = gap.best[row, c] if c >= 0 else gap.past_best[more, w, i]
        loss += count[s] * best
        if s == chosen:
            loss -= (gap.gain[row, c] if c >= 0 else gap.past_gain[more, w, i]) - price
    return loss


class ProblemArrays(NamedTuple):
    """The problem: lattices of all classes one after another, tasks, budget and timing."""

    level: Ints
    reward: Floats
    prob: Floats
    child: Ints
    limit: Ints
    root: Ints  # node at which each task starts
    flight: Ints
    budget: int
    timing: Timing


class CampaignRun(NamedTuple):
    """A replication under way: groups as linked lists or a heap by score, the heap of completions, some counters."""

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
    clock: Floats  # next arrival, gap so far, lot of the last task that won a tie
    ranked: Ints  # tasks with priors of their own: the heap, the largest key on top
    place: Ints
    key: Floats
    lot: Floats
    room: Workspace
    ahead: Ints


@uncounted
def unlink(run: CampaignRun, x: int) -> None:
    """Take task x out of its group; a group that becomes empty leaves the list of active groups."""
    s, active, position = run.state[x], run.active, run.position
    if run.before[x] >= 0:
        run.after[run.before[x]] = run.after[x]
    else:
        run.head[s] = run.after[x]
    if run.after[x] >= 0:
        run.before[run.after[x]] = run.before[x]
    run.members[s] -= 1
    if run.members[s] == 0:
        last = active[-1] - 1
        active[-1] = last
        active[position[s]] = active[last]
        position[active[last]] = position[s]


@uncounted
def link(run: CampaignRun, x: int, s: int) -> None:
    """Put task x into group s, its state from now on."""
    run.state[x] = s
    run.before[x], run.after[x] = -1, run.head[s]
    if run.head[s] >= 0:
        run.before[run.head[s]] = x
    run.head[s] = x
    if run.members[s] == 0:
        run.position[s] = run.active[-1]
        run.active[run.active[-1]] = s
        run.active[-1] += 1
    run.members[s] += 1


@jit
def new_run(problem: ProblemArrays, policy: PolicyArrays, own: RankedTasks) -> CampaignRun:
    """Room for one replication after another."""
    K, ranked = problem.root.shape[0], own.class_of.shape[0]
    states = policy.static.size if ranked == 0 else 0
    groups = min(K, states) + 2
    most = problem.budget + problem.flight.sum() + 1
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
        np.zeros(3),
        np.zeros(ranked, dtype=np.int64),
        np.zeros(ranked, dtype=np.int64),
        np.zeros(ranked),
        np.zeros(ranked),
        new_workspace(own.first[-1], own.child.shape[1]),
        np.zeros(own.first[own.W + 1], dtype=np.int64),
    )


@jit
def copy_run(run: CampaignRun) -> CampaignRun:
    """A copy of the campaign as it stands, with the same scratch space; its tasks form groups."""
    return CampaignRun(
        run.head.copy(), run.members.copy(), run.position.copy(), run.active.copy(), run.after.copy(),
        run.before.copy(), run.state.copy(), run.scores, run.times.copy(), run.tasks.copy(), run.given.copy(),
        run.counters.copy(), run.clock.copy(), run.ranked, run.place, run.key, run.lot, run.room, run.ahead,
    )  # fmt: skip


@jit
def start_run(
    problem: ProblemArrays, own: RankedTasks, root: Ints, run: CampaignRun, seed: int, replication: int
) -> None:
    """All tasks at their roots, the labels in flight on their way, the first arrival drawn."""
    nodes, timing = problem.level.shape[0], problem.timing
    for g in range(run.active[-1]):
        run.head[run.active[g]] = -1
        run.members[run.active[g]] = 0
    run.active[-1] = 0
    run.given[:] = 0.0
    run.counters[:] = 0
    run.clock[:] = 0.0
    amount = -np.log(uniform(stream_key(seed, replication, ARRIVAL), 0, 0))
    run.clock[0] = arrival_after(0.0, amount, timing.starts, timing.rates)
    for x in range(root.shape[0]):
        run.state[x] = root[x]
    if run.ranked.shape[0] > 0:
        rank_tasks(own, run, stream_key(seed, replication, TIE))
        return
    for x in range(root.shape[0] - 1, -1, -1):
        link(run, x, root[x])
    k_duration = stream_key(seed, replication, DURATION)
    size = 0
    for x in range(problem.flight.shape[0] - 1, -1, -1):
        w = problem.flight[x]
        if w > 0:
            unlink(run, x)
            link(run, x, run.state[x] + w * nodes)
            for _ in range(w):
                size = push(run.times, run.tasks, size, -np.log(uniform(k_duration, size, 1)) / timing.mu, x)
    run.counters[0] = size


@jit
def rank_tasks(own: RankedTasks, run: CampaignRun, k_tie: np.uint64) -> None:
    """The heap of fresh tasks by their scores, ties by lot."""
    for x in range(run.ranked.shape[0]):
        run.lot[x] = -np.log(uniform(k_tie, x, 0))
        run.key[x] = task_score(own, x, 0, 0, 0, run.room, run.ahead) - JITTER * run.lot[x]
    order = np.argsort(-run.key)
    for k in range(order.shape[0]):
        run.ranked[k] = order[k]
        run.place[order[k]] = k


@jit
def advance(
    problem: ProblemArrays, policy: PolicyArrays, gap: GapTables, own: RankedTasks, run: CampaignRun, seed: int,
    replication: int, until: int,
) -> bool:  # fmt: skip
    """Play events until ``until`` workers have arrived, or to the end; True if the replication is over."""
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    drawn = np.zeros((0, 0), dtype=np.int64)
    return play_events(problem, policy, by_state, gap, own, drawn, run, seed, replication, problem.budget, until)


@uncounted
def play_events(
    problem: ProblemArrays,
    policy: PolicyArrays,
    by_state: StateScores,
    gap: GapTables,
    own: RankedTasks,
    recorded: Ints,
    run: CampaignRun,
    seed: int,
    replication: int,
    budget: int,
    until: int,
) -> bool:
    """``advance`` with the scores by state made before, and ``budget`` in place of the problem's.

    ``recorded`` (K, most) are the labels of each task in the order in which they come in; empty: drawn from the model.
    Groups are left when the arrival after ``until`` is there, ranked tasks right after that one was served.
    """
    nodes = problem.level.shape[0]
    timing = problem.timing
    with_gap, timed = gap.price.shape[0] > 0, gap.timed.tau.shape[0] > 0
    replay, ranked = recorded.shape[0] > 0, run.ranked.shape[0] > 0
    k_label = stream_key(seed, replication, LABEL)
    k_arrival = stream_key(seed, replication, ARRIVAL)
    k_duration = stream_key(seed, replication, DURATION)
    k_tie = stream_key(seed, replication, TIE)
    k_draw = stream_key(seed, replication, DRAW)
    count, active, state, scores = run.members, run.active, run.state, run.scores
    times, tasks = run.times, run.tasks
    size, ell, labels = run.counters[0], run.counters[1], run.counters[2]
    next_arrival, loss = run.clock[0], run.clock[1]
    over = False
    while not over:
        x, target, now, arrived = -1, 0, next_arrival, False
        if ell < budget and (size == 0 or next_arrival <= times[0]):
            if ell >= until:
                break
            if now > timing.horizon:
                over = True
                break
            arrived = True
            if ranked:
                x = run.ranked[0]
                if run.key[x] == -np.inf or run.key[x] < policy.price[ell]:
                    x = -1
                elif tied(run.key, run.ranked):
                    run.clock[2] = max(run.clock[2], run.lot[x])
            else:
                n = budget - ell
                layer, share = layer_at(policy.tau, policy.slack_time, n, timing.horizon - now)
                if policy.mode == BY_LEVELS:
                    share = float(n)
                    if timing.horizon < np.inf:
                        share = min(share, max(arrivals_between(now, timing), 1.0))
                chosen = choose_group(
                    policy, by_state, problem.level, problem.child, active, active, count, n, ell, layer, share, k_draw,
                    uniform(k_tie, ell, 0), policy.price[ell], run.given, scores,
                )  # fmt: skip
                x = run.head[chosen] if chosen >= 0 else -1
                if with_gap:
                    price = gap.price[ell]
                    loss += lagrangian_loss(gap, by_state.node, by_state.flight, active, count, n, price, chosen)
                if timed:
                    left = timing.horizon - now
                    loss += timed_loss(gap.timed, by_state.node, by_state.flight, active, count, left, chosen)
            if x >= 0:
                target = state[x] + nodes
                size = push(times, tasks, size, now - np.log(uniform(k_duration, ell, 0)) / timing.mu, x)
                labels += 1
            ell += 1
            next_arrival = arrival_after(now, -np.log(uniform(k_arrival, ell, 0)), timing.starts, timing.rates)
            over = ell == budget and not timing.wait
        elif size > 0:
            if times[0] > timing.horizon:
                over = True
                break
            x = tasks[0]
            size = pop(times, tasks, size)
            i = by_state.node[state[x]]
            j = 0
            if replay:
                j = recorded[x, problem.level[i]]
            else:
                u = uniform(k_label, x, problem.level[i])
                j = ranked_answer(own, x, i, problem.level[i], u) if ranked else answer_of(problem.prob[i], u)
            target = state[x] - nodes - i + problem.child[i, j]
        else:
            over = True
        if x >= 0:
            if ranked:
                state[x] = target
                i, w = by_state.node[target], by_state.flight[target]
                m = problem.level[i]
                run.lot[x] = run.clock[2] - np.log(uniform(k_tie, x, 2 * m + w))
                run.key[x] = -np.inf
                if by_state.score[target] > -np.inf:
                    run.key[x] = task_score(own, x, m, i, w, run.room, run.ahead) - JITTER * run.lot[x]
                sift(x, run.key, run.ranked, run.place)
            else:
                unlink(run, x)
                link(run, x, target)
        if arrived:
            if timed and ell == budget:
                loss += spent_loss(gap.timed, by_state.node, by_state.flight, active, count, timing.horizon - now)
            if ranked and ell >= until:
                break
    run.counters[0], run.counters[1], run.counters[2] = size, ell, labels
    run.clock[0], run.clock[1] = next_arrival, loss
    return over


@uncounted
def write_outcome(problem: ProblemArrays, own: RankedTasks, worth: Floats, run: CampaignRun, out: Floats) -> None:
    """out = (reward, labels given, most labels of one task, gap, arrivals).

    The reward of tasks with laws of their own is left to the caller.
    """
    nodes = problem.level.shape[0]
    total, most = 0.0, 0
    for x in range(run.ranked.shape[0]):
        i = run.state[x] % nodes
        if own.law == OF_CLASS:
            total += own.facts[own.class_of[x], i, 0]
        most = max(most, problem.level[i] + run.state[x] // nodes)
    for g in range(run.active[-1]):
        s = run.active[g]
        total += run.members[s] * (worth[s] if worth.shape[0] > 0 else problem.reward[s % nodes])
        most = max(most, problem.level[s % nodes] + s // nodes)
    out[0], out[1], out[2], out[3], out[4] = total, run.counters[2], most, run.clock[1], run.counters[1]


@uncounted
def write_ends(
    problem: ProblemArrays, by_state: StateScores, recorded: Ints, root: Ints, rows: Ints, run: CampaignRun, out: Ints
) -> None:
    """Where each task ends: its state with the labels in flight that will be in in time.

    Recorded labels that are in flight are known: the node to which they lead, in the lattice of the task's own class,
    by the row of the record; -1 for a row that was not drawn.
    """
    nodes = problem.level.shape[0]
    if recorded.shape[0] > 0:
        out[:] = -1
    for x in range(run.state.shape[0]):
        i = by_state.node[run.state[x]]
        if recorded.shape[0] > 0:
            for _ in range(by_state.flight[run.state[x]]):
                i = problem.child[i, recorded[x, problem.level[i]]]
            i -= root[x]
        out[rows[x]] = i
    if recorded.shape[0] == 0:
        for k in range(run.counters[0]):
            if run.times[k] <= problem.timing.horizon:
                out[run.tasks[k]] += nodes


@jit
def rollout(
    problem: ProblemArrays, policy: PolicyArrays, gap: GapTables, own: RankedTasks, recorded: RecordedLabels,
    worth: Floats, budgets: Ints, awaited: bool, seed: int, first: int, out: Floats, ends: Ints,
) -> None:  # fmt: skip
    """Replications first, first + 1, ...: ``write_outcome`` with budget b in out[replication, b].

    ``awaited``: the labels in flight when a budget is spent are waited for; otherwise they are averaged by ``worth``.
    ``ends`` (replications, B, tasks) gets ``write_ends``, if it has room for tasks.
    """
    K, last = problem.root.shape[0], budgets.shape[0] - 1
    late = max(policy.rows.shape[0] - 1, 0)
    replay, ranked = recorded.counts.shape[0] > 0, own.class_of.shape[0] > 0
    in_passing = late == 0 and (replay or (not awaited and (ranked or problem.timing.horizon == np.inf)))
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    run = new_run(problem, policy, own)
    root, rows = problem.root.copy(), np.arange(K)
    labels = np.zeros((K if replay else 0, recorded.labels.shape[1]), dtype=np.int64)
    for k in range(out.shape[0]):
        rep = first + k
        if replay:
            draw_recorded(recorded.labels, recorded.counts, seed, rep, recorded.order, rows, labels)
            for x in range(K):
                root[x] = recorded.start[recorded.counts[rows[x]]]
        start_run(problem, own, root, run, seed, rep)
        for b in range(last + 1):
            budget, end = budgets[b], run
            to_end = awaited and b == last
            if to_end:
                total, until = budget, budget + 1
            else:
                total = budgets[last] if awaited else budgets[last] + 1
                until = budget if in_passing else max(budget - late, run.counters[1])
            play_events(problem, policy, by_state, gap, own, labels, run, seed, rep, total, until)
            if not (to_end or in_passing):
                end = copy_run(run)
                play_events(problem, policy, by_state, gap, own, labels, end, seed, rep, budget, budget + 1)
            write_outcome(problem, own, worth, end, out[k, b])
            if ends.shape[2] > 0:
                write_ends(problem, by_state, labels, root, rows, end, ends[k, b])
