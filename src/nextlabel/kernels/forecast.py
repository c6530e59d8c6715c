"""Replications of a campaign that is under way: tasks start at any belief, with labels already in flight.

Notation of ``kernels.rollout``, and

========= ========= ============ =======================================================
symbol    code      shape        meaning
========= ========= ============ =======================================================
w_x       flight    (K,)         labels of task x in flight at the start
========= ========= ============ =======================================================

A label takes Exp(mu), which has no memory: what is left of one in flight is Exp(mu) from now on, however long it has
been out. Its draw is that of (number in flight, 1) where a new label has (arrival, 0).
Guarantee: exact simulation of the model; with nothing in flight it is ``rollout`` draw for draw. Cost: that of it.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.gap import GapTables
from nextlabel.kernels.groups import link, unlink
from nextlabel.kernels.heap import push
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.policy import PolicyArrays, scores_by_state
from nextlabel.kernels.random import DURATION, stream_key, uniform
from nextlabel.kernels.rollout import CampaignRun, ProblemArrays, new_run, play_events, start_run, write_outcome


@uncounted
def put_in_flight(problem: ProblemArrays, run: CampaignRun, flight: Ints, seed: int, replication: int) -> None:
    """Put the labels in flight on their way; the run has just begun."""
    nodes = problem.level.shape[0]
    k_duration = stream_key(seed, replication, DURATION)
    size = 0
    for x in range(flight.shape[0] - 1, -1, -1):
        if flight[x] == 0:
            continue
        unlink(x, run.state[x], run.head, run.after, run.before, run.members, run.active, run.position)
        run.state[x] += flight[x] * nodes
        link(x, run.state[x], run.head, run.after, run.before, run.members, run.active, run.position)
        for _ in range(flight[x]):
            size = push(run.times, run.tasks, size, -np.log(uniform(k_duration, size, 1)) / problem.timing.mu, x)
    run.counters[0] = size


@jit
def rollout_under_way(
    problem: ProblemArrays,
    policy: PolicyArrays,
    gap: GapTables,
    recorded: Ints,
    flight: Ints,
    seed: int,
    first: int,
    out: Floats,
) -> None:
    """Replications first, first + 1, ...; ``rollout.write_outcome`` of each in out."""
    run = new_run(problem, policy, flight.sum())
    by_state = scores_by_state(policy, problem.level, problem.limit, problem.child)
    for rep in range(out.shape[0]):
        start_run(problem, run, seed, first + rep)
        put_in_flight(problem, run, flight, seed, first + rep)
        play_events(problem, policy, by_state, gap, recorded, run, seed, first + rep, problem.budget, problem.budget)
        write_outcome(problem, run, out[rep])
