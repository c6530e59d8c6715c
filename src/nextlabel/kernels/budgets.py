"""Campaigns of the model under one policy for several budgets at once: one campaign passes through all of them.

Notation of ``kernels.replay``, whose trick this is: while n >= R arrivals are left the choice does not depend on n, so
all budgets share their events up to arrival b - R + 1; from there a copy is played to its end with its own n.

========= ========= ============ ==================================================================
symbol    code      shape        meaning
========= ========= ============ ==================================================================
b         budgets   (B,)         labels to give out, rising; the last one is the world's own budget
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
from nextlabel.kernels.choice import Tables, look_up
from nextlabel.kernels.gap import Gap
from nextlabel.kernels.jit import jit
from nextlabel.kernels.replay import fork
from nextlabel.kernels.rollout import Run, World, begin, new_run, play
from nextlabel.kernels.uncounted import uncounted


@uncounted
def settle(run: Run, worth: Floats, out: Floats) -> None:
    """out = (sum of H, labels given, arrivals)."""
    total = 0.0
    for g in range(run.active[-1]):
        s = run.active[g]
        total += run.members[s] * worth[s]
    out[0], out[1], out[2] = total, run.counters[2], run.counters[1]


@jit
def rollout_budgets(
    world: World, tables: Tables, gap: Gap, recorded: Ints, worth: Floats, budgets: Ints, seed: int, first: int,
    out: Floats,
) -> None:  # fmt: skip
    """Replications first, first + 1, ...: out[replication, b] = ``settle`` at budget b."""
    late = max(tables.rows.shape[0] - 1, 0)
    endless = world.horizon == np.inf
    last = budgets.shape[0] - 1
    run = new_run(world, tables.static.shape[0] - 1, tables.planned.shape[1])
    branch = new_run(world, tables.static.shape[0] - 1, tables.planned.shape[1])
    lookup = look_up(tables, world.level, world.limit, world.child)
    for rep in range(out.shape[0]):
        begin(world, run, seed, first + rep)
        for b in range(last + 1):
            budget = budgets[b]
            until = max(budget - late, run.counters[1])
            play(world, tables, lookup, gap, recorded, run, seed, first + rep, budgets[last] + 1, until)
            if late == 0 and endless:
                settle(run, worth, out[rep, b])
                continue
            fork(run, branch)
            # With a horizon the labels in flight are awaited until then: past the last arrival only completions come.
            end = budget if endless else budget + 1
            play(world, tables, lookup, gap, recorded, branch, seed, first + rep, budget, end)
            settle(branch, worth, out[rep, b])
