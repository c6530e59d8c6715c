"""Recorded labels replayed, and counted instead of judged: how many tasks of each truth end with which labels.

========= ========= ============== ==================================================================
symbol    code      shape          meaning
========= ========= ============== ==================================================================
b         budgets   (B,)           labels to give out, rising; the last one is the world's own budget
k         overlaps  (B,)           labels of every task, or all of a task that has fewer
--        out       (reps, B, nodes, 2) tasks whose truth is 0 or 1, by their node at the end
--        used      (reps, B)      labels given
--        taken     (reps, B, K)   labels of each task, by its row; empty if nobody asks
========= ========= ============== ==================================================================

Any read-out that looks at counts alone (posterior, majority) follows from ``out``, with any threshold and tie rule, so
one pass serves them all. The nodes are those of one class: all classes have the same lattice.
Guarantee: the campaigns of ``kernels.replay``, whose trick for several budgets this is. Cost: the same.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.choice import Lookup, Tables, look_up
from nextlabel.kernels.gap import Gap
from nextlabel.kernels.jit import jit
from nextlabel.kernels.recorded import draw_recorded
from nextlabel.kernels.replay import Crowd, fork
from nextlabel.kernels.rollout import Run, World, begin, new_run, play
from nextlabel.kernels.uncounted import uncounted


@uncounted
def count_ends(
    world: World, lookup: Lookup, gold: Ints, run: Run, rows: Ints, labels: Ints, out: Ints, taken: Ints
) -> None:
    """Add each task to the node that the labels in flight will take it to."""
    for x in range(rows.shape[0]):
        s = run.state[x]
        i = lookup.node[s]
        for _ in range(lookup.flight[s]):
            i = world.child[i, labels[x, world.level[i]]]
        truth = gold[rows[x]]
        if truth >= 0:
            out[i - world.root[x], truth] += 1
        if taken.shape[0] > 0:
            taken[rows[x]] = world.level[i]


@jit
def tally_budgets(
    world: World, tables: Tables, gap: Gap, crowd: Crowd, budgets: Ints, seed: int, first: int, out: Ints, used: Ints,
    taken: Ints,
) -> None:  # fmt: skip
    """Replications first, first + 1, ... of every task of ``crowd`` under one policy; ``world.root`` is written to."""
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
            end = run if whole else branch
            count_ends(world, lookup, crowd.gold, end, rows, labels, out[k, b], taken[k, b])
            used[k, b] = end.counters[2]


@jit
def tally_overlaps(crowd: Crowd, overlaps: Ints, seed: int, first: int, out: Ints, used: Ints, taken: Ints) -> None:
    """The same draws with a fixed number of labels for every task."""
    K = crowd.labels.shape[0]
    rows = np.zeros(K, dtype=np.int64)
    labels = np.zeros((K, crowd.labels.shape[1]), dtype=np.int64)
    for k in range(out.shape[0]):
        draw_recorded(crowd.labels, crowd.counts, seed, first + k, crowd.order, rows, labels)
        for x in range(K):
            truth = crowd.gold[rows[x]]
            ones, m = 0, 0
            for b in range(overlaps.shape[0]):
                while m < min(overlaps[b], crowd.counts[rows[x]]):
                    ones += labels[x, m]
                    m += 1
                if truth >= 0:
                    out[k, b, m * (m + 1) // 2 + ones, truth] += 1
                used[k, b] += m
                if taken.shape[2] > 0:
                    taken[k, b, rows[x]] = m
