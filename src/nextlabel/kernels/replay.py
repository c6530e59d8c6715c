"""Recorded labels replayed under one policy for several budgets at once: one campaign passes through all of them.

========= ========= ============ ==================================================================
symbol    code      shape        meaning
========= ========= ============ ==================================================================
b         budgets   (B,)         labels to give out, rising; the last one is the world's own budget
l, n      --        --           arrivals so far; n = b - l are left
R         --        --           rows of the policy's tables: from n = R on they are all the same
w         flight    (states,)    labels in flight
========= ========= ============ ==================================================================

While n >= R the choice does not depend on n, so that every budget has the same events up to arrival b - R + 1. From
there a copy of the campaign is played to its end with its own n. Without rows (R = 0) nothing is left to play: at
arrival b the labels in flight are known, and each task is where they will take it.
Guarantee: what one campaign a budget gives, digit for digit. Cost: one campaign of the largest budget, and for every
other one a copy and R arrivals, or O(K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import Lookup, Tables, look_up
from nextlabel.kernels.gap import Gap
from nextlabel.kernels.jit import jit
from nextlabel.kernels.recorded import draw_recorded
from nextlabel.kernels.rollout import Run, World, begin, new_run, play
from nextlabel.kernels.uncounted import uncounted


class Crowd(NamedTuple):
    """Recorded labels, the truth, and what a task's node at the end is decided as."""

    labels: Ints  # (N, most)
    counts: Ints  # (N,)
    gold: Ints  # (N,) -1 where it is not known
    start: Ints  # (most + 1,) node at which a task with that many labels starts
    order: int
    decision: Ints  # (nodes,) -1 for a tie
    tie: int  # what a tie is decided as, -1 for half a task


@uncounted
def fork(run: Run, out: Run) -> None:
    """A copy of the campaign as it stands."""
    for s in range(run.head.shape[0]):
        out.head[s], out.members[s], out.place[s] = run.head[s], run.members[s], run.place[s]
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
def judge(world: World, lookup: Lookup, crowd: Crowd, run: Run, rows: Ints, labels: Ints, out: Floats) -> None:
    """out = (accuracy where the truth is known, labels given, most labels of one task), those in flight awaited."""
    right, known, most = 0.0, 0, 0
    for x in range(rows.shape[0]):
        s = run.state[x]
        i = lookup.node[s]
        for _ in range(lookup.flight[s]):
            i = world.child[i, labels[x, world.level[i]]]
        most = max(most, world.level[i])
        truth = crowd.gold[rows[x]]
        if truth >= 0:
            known += 1
            said = crowd.decision[i] if crowd.decision[i] >= 0 else crowd.tie
            if said < 0:
                right += 0.5
            elif said == truth:
                right += 1.0
    out[0] = right / known if known > 0 else np.nan
    out[1], out[2] = run.counters[2], most


@jit
def replay_budgets(
    world: World, tables: Tables, gap: Gap, crowd: Crowd, budgets: Ints, seed: int, first: int, out: Floats
) -> None:
    """Replications first, first + 1, ...: out[replication, b] = ``judge`` of budget b. ``world.root`` is written to."""
    K = world.root.shape[0]
    late = max(tables.rows.shape[0] - 1, 0)
    last = budgets.shape[0] - 1
    rows = np.zeros(K, dtype=np.int64)
    labels = np.zeros((K, crowd.labels.shape[1]), dtype=np.int64)
    run = new_run(world, tables.static.shape[0] - 1, tables.planned.shape[1])
    branch = new_run(world, tables.static.shape[0] - 1, tables.planned.shape[1])
    lookup = look_up(tables, world.level, world.limit, world.child)
    for k in range(out.shape[0]):
        rep = first + k
        draw_recorded(crowd.labels, crowd.counts, seed, rep, crowd.order, rows, labels)
        for x in range(K):
            world.root[x] = crowd.start[crowd.counts[rows[x]]]
        begin(world, run, seed, rep)
        for b in range(last + 1):
            budget = budgets[b]
            whole = b == last or late == 0
            until = budget if whole else budget - late
            play(world, tables, lookup, gap, labels, run, seed, rep, budgets[last], until)
            if not whole:
                fork(run, branch)
                play(world, tables, lookup, gap, labels, branch, seed, rep, budget, budget)
            judge(world, lookup, crowd, run if whole else branch, rows, labels, out[k, b])
