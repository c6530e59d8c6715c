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
from nextlabel.kernels.choice import Tables, look_up
from nextlabel.kernels.gap import Gap
from nextlabel.kernels.groups import link, unlink
from nextlabel.kernels.heap import push
from nextlabel.kernels.jit import jit
from nextlabel.kernels.random import DURATION, stream_key, uniform
from nextlabel.kernels.rollout import Run, World, begin, new_run, outcome, play
from nextlabel.kernels.uncounted import uncounted


@uncounted
def launch(world: World, run: Run, flight: Ints, seed: int, replication: int) -> None:
    """Put the labels in flight on their way; the run has just begun."""
    nodes = world.level.shape[0]
    k_duration = stream_key(seed, replication, DURATION)
    size = 0
    for x in range(flight.shape[0] - 1, -1, -1):
        if flight[x] == 0:
            continue
        unlink(x, run.state[x], run.head, run.after, run.before, run.members, run.active, run.place)
        run.state[x] += flight[x] * nodes
        link(x, run.state[x], run.head, run.after, run.before, run.members, run.active, run.place)
        for _ in range(flight[x]):
            size = push(run.times, run.tasks, size, -np.log(uniform(k_duration, size, 1)) / world.mu, x)
    run.counters[0] = size


@jit
def rollout_standing(
    world: World, tables: Tables, gap: Gap, recorded: Ints, flight: Ints, seed: int, first: int, out: Floats
) -> None:
    """Replications first, first + 1, ...; ``rollout.outcome`` of each in out."""
    room = new_run(world, tables.static.shape[0] - 1, tables.planned.shape[1])
    most = world.budget + flight.sum() + 1
    run = Run(
        room.head,
        room.members,
        room.place,
        room.active,
        room.after,
        room.before,
        room.state,
        room.scores,
        np.zeros(most),
        np.zeros(most, dtype=np.int64),
        room.given,
        room.counters,
        room.clock,
    )
    lookup = look_up(tables, world.level, world.limit, world.child)
    for rep in range(out.shape[0]):
        begin(world, run, seed, first + rep)
        launch(world, run, flight, seed, first + rep)
        play(world, tables, lookup, gap, recorded, run, seed, first + rep, world.budget, world.budget)
        outcome(world, run, out[rep])
