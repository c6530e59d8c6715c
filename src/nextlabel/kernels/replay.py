"""Recorded labels replayed under one policy for several budgets at once: one campaign passes through all of them.

========= ========= ============== ==================================================================
symbol    code      shape          meaning
========= ========= ============== ==================================================================
b         budgets   (B,)           labels to give out, rising; the last one is the problem's own budget
k         overlaps  (B,)           labels of every task, or all of a task that has fewer
l, n      --        --             arrivals so far; n = b - l are left
R         --        --             rows of the policy's tables: from n = R on they are all the same
========= ========= ============== ==================================================================

While n >= R the choice does not depend on n, so that every budget has the same events up to arrival b - R + 1. From
there a copy of the campaign is played to its end with its own n. Without rows (R = 0) nothing is left to play: at
arrival b the labels in flight are known, and each task is where they will take it.

What is kept of a campaign is where its tasks end. Any read-out that looks at counts alone (posterior, majority)
follows from that, with any threshold and tie rule, so one pass serves them all.
Guarantee: what one campaign per budget gives, digit for digit. Cost: one campaign of the largest budget, and for every
other one a copy and R arrivals, or O(K).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.gap import GapTables
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.policy import PolicyArrays, StateScores, scores_by_state
from nextlabel.kernels.recorded import draw_recorded
from nextlabel.kernels.rollout import CampaignRun, ProblemArrays, copy_run, new_run, play_events, start_run


class RecordedLabels(NamedTuple):
    """Recorded labels and the truth."""

    labels: Ints  # (N, most)
    counts: Ints  # (N,)
    gold: Ints  # (N,) -1 where it is not known
    start: Ints  # (most + 1,) node at which a task with that many labels starts
    order: int


class Ends(NamedTuple):
    """Where the tasks of each replication end, for each budget; the labels in flight are awaited."""

    tasks: Ints  # (replications, B, nodes, 2) tasks whose truth is 0 or 1, by their node (all classes have one lattice)
    used: Ints  # (replications, B) labels given
    most: Ints  # (replications, B) labels of the task that got most
    taken: Ints  # (replications, B, K) labels of each task, by its row; empty if nobody asks


@uncounted
def count_ends(
    problem: ProblemArrays, by_state: StateScores, gold: Ints, run: CampaignRun, rows: Ints, labels: Ints, tasks: Ints,
    taken: Ints,
) -> int:  # fmt: skip
    """Add each task to the node that the labels in flight will take it to; return the labels of the longest one."""
    most = 0
    for x in range(rows.shape[0]):
        s = run.state[x]
        i = by_state.node[s]
        for _ in range(by_state.flight[s]):
            i = problem.child[i, labels[x, problem.level[i]]]
        most = max(most, problem.level[i])
        truth = gold[rows[x]]
        if truth >= 0:
            tasks[i - problem.root[x], truth] += 1
        if taken.shape[0] > 0:
            taken[rows[x]] = problem.level[i]
    return most


@jit
def replay_budgets(
    problem: ProblemArrays, policy: PolicyArrays, gap: GapTables, records: RecordedLabels, budgets: Ints, seed: int,
    first: int, out: Ends,
) -> None:  # fmt: skip
    """Replications first, first + 1, ... under one policy; ``problem.root`` is written to."""
    K = problem.root.shape[0]
    late = max(policy.rows.shape[0] - 1, 0)
    last = budgets.shape[0] - 1
    rows = np.zeros(K, dtype=np.int64)
    labels = np.zeros((K, records.labels.shape[1]), dtype=np.int64)
    run, branch = new_run(problem, policy, 0), new_run(problem, policy, 0)
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    for k in range(out.used.shape[0]):
        rep = first + k
        draw_recorded(records.labels, records.counts, seed, rep, records.order, rows, labels)
        for x in range(K):
            problem.root[x] = records.start[records.counts[rows[x]]]
        start_run(problem, run, seed, rep)
        for b in range(last + 1):
            budget = budgets[b]
            whole = b == last or late == 0
            until = budget if whole else budget - late
            play_events(problem, policy, by_state, gap, labels, run, seed, rep, budgets[last], until)
            if not whole:
                copy_run(run, branch)
                play_events(problem, policy, by_state, gap, labels, branch, seed, rep, budget, budget)
            end = run if whole else branch
            out.most[k, b] = count_ends(
                problem, by_state, records.gold, end, rows, labels, out.tasks[k, b], out.taken[k, b]
            )
            out.used[k, b] = end.counters[2]


@jit
def replay_overlaps(records: RecordedLabels, overlaps: Ints, seed: int, first: int, out: Ends) -> None:
    """The same draws with a fixed number of labels for every task."""
    K = records.labels.shape[0]
    rows = np.zeros(K, dtype=np.int64)
    labels = np.zeros((K, records.labels.shape[1]), dtype=np.int64)
    for k in range(out.used.shape[0]):
        draw_recorded(records.labels, records.counts, seed, first + k, records.order, rows, labels)
        for x in range(K):
            truth = records.gold[rows[x]]
            ones, m = 0, 0
            for b in range(overlaps.shape[0]):
                while m < min(overlaps[b], records.counts[rows[x]]):
                    ones += labels[x, m]
                    m += 1
                if truth >= 0:
                    out.tasks[k, b, m * (m + 1) // 2 + ones, truth] += 1
                out.used[k, b] += m
                out.most[k, b] = max(out.most[k, b], m)
                if out.taken.shape[2] > 0:
                    out.taken[k, b, rows[x]] = m
