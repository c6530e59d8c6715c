"""Campaigns of the model under one policy for several budgets at once: one campaign passes through all of them.

Notation of ``kernels.replay``, whose trick this is: while n >= R arrivals are left the choice does not depend on n, so
all budgets share their events up to arrival b - R + 1; from there a copy is played to its end with its own n.

========= ========= ============ ==================================================================
symbol    code      shape        meaning
========= ========= ============ ==================================================================
b         budgets   (B,)         labels to give out, rising; the last one is the problem's own budget
H         worth     (states,)    E[R after the w labels in flight]; R itself with a horizon
========= ========= ============ ==================================================================

The value of budget b is the sum of H over the tasks: a copy awaits the labels in flight (until the horizon, if there is
one); without copies (R = 0) H averages over them when arrival b has been served.
Guarantee: unbiased for each budget; all budgets share their randomness. Cost: one campaign of the largest budget, and R
arrivals and a copy for every other one.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.gap import GapTables
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.policy import PolicyArrays, scores_by_state
from nextlabel.kernels.rollout import CampaignRun, ProblemArrays, copy_run, new_run, play_events, start_run


@uncounted
def write_value(run: CampaignRun, worth: Floats, out: Floats) -> None:
    """out = (sum of H, labels given, arrivals)."""
    total = 0.0
    for g in range(run.active[-1]):
        s = run.active[g]
        total += run.members[s] * worth[s]
    out[0], out[1], out[2] = total, run.counters[2], run.counters[1]


@jit
def rollout_budgets(
    problem: ProblemArrays, policy: PolicyArrays, gap: GapTables, recorded: Ints, worth: Floats, budgets: Ints,
    seed: int, first: int, out: Floats,
) -> None:  # fmt: skip
    """Replications first, first + 1, ...: out[replication, b] = ``write_value`` at budget b."""
    late = max(policy.rows.shape[0] - 1, 0)
    endless = problem.timing.horizon == np.inf
    last = budgets.shape[0] - 1
    run = new_run(problem, policy, 0)
    branch = new_run(problem, policy, 0)
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    for rep in range(out.shape[0]):
        start_run(problem, run, seed, first + rep)
        for b in range(last + 1):
            budget = budgets[b]
            until = max(budget - late, run.counters[1])
            play_events(problem, policy, by_state, gap, recorded, run, seed, first + rep, budgets[last] + 1, until)
            if late == 0 and endless:
                write_value(run, worth, out[rep, b])
                continue
            copy_run(run, branch)
            # With a horizon the labels in flight are awaited until then: past the last arrival only completions come.
            end = budget if endless else budget + 1
            play_events(problem, policy, by_state, gap, recorded, branch, seed, first + rep, budget, end)
            write_value(branch, worth, out[rep, b])
