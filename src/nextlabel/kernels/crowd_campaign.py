"""A campaign with workers who differ, moved by arrivals and labels: the same steps in simulator, replay and service.

======== =========== =========================================================================================
code     shape       meaning
======== =========== =========================================================================================
belief   --          ``CrowdState`` of ``kernels.crowd_state``: beliefs of tasks, expected counts of workers
channels (W, C, C)   P(worker says y | truth c): known, or the posterior mean as it moves
kind     (W,)        type of each worker in the present plan
given    (K,)        labels given to each task, those in flight counted
arrived  (W,)        arrivals of each worker
worked   (W,)        labels given to each worker, those in flight counted
named    (W,)        1 for a worker who gets a task at most once, 0 for many people under one name
options  (4,)        ``LEARNT``: channels are learnt; ``NAMED``: what ``named`` is at first; ``BY_COUNT``: the bin
                     is the number of labels given, not the belief; ``TRIAL``: a worker with fewer
                     labels than this is not turned away
after    (C,)        room for one belief
======== =========== =========================================================================================

Cost: O(1) and the look of ``choose_task`` per step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_bins import GONE, IN_FLIGHT, History, TaskBins, give_out, new_bins, new_history, put, take
from nextlabel.kernels.crowd_choice import (
    Beliefs,
    CrowdPlan,
    belief_bin,
    choose_among,
    choose_task,
    counted_pending,
    expected_certainty,
    largest,
    outcome,
    rebin,
)
from nextlabel.kernels.crowd_state import CrowdState, channel_of, new_state, normalise, stream_label
from nextlabel.kernels.jit import jit

LEARNT, NAMED, BY_COUNT, TRIAL = 0, 1, 2, 3


class CrowdCampaign(NamedTuple):
    """Tasks, workers, what was given out, and how the rule bins tasks."""

    state: CrowdState
    channels: Floats
    kind: Ints
    bins: TaskBins
    history: History
    given: Ints
    arrived: Ints
    worked: Ints
    named: Ints
    options: Ints
    after: Floats


@jit
def new_campaign(
    tasks: int, workers: int, most: int, groups: int, pseudo: Floats, share: Floats, hold: float, options: Ints
) -> CrowdCampaign:
    """All tasks closed, at the prior shares of the truths; every worker at the prior mean, learnt with ``hold``."""
    C = share.shape[0]
    state = new_state(tasks, workers, pseudo, share, hold)
    channels = np.empty((workers, C, C))
    for j in range(workers):
        channel_of(state, j, channels[j])
    return CrowdCampaign(
        state,
        channels,
        np.zeros(workers, dtype=np.int64),
        new_bins(tasks, groups),
        new_history(tasks, most),
        np.zeros(tasks, dtype=np.int64),
        np.zeros(workers, dtype=np.int64),
        np.zeros(workers, dtype=np.int64),
        np.full(workers, options[NAMED]),
        options,
        np.empty(C),
    )


@jit
def task_bin(campaign: CrowdCampaign, grid: Floats, x: int) -> int:
    """The bin in which task x belongs now; bins of the second half are for tasks with labels in flight."""
    if campaign.options[BY_COUNT]:
        return int(min(campaign.given[x], grid.shape[0] - 1))
    belief, history = campaign.state.belief[x], campaign.history
    pending = counted_pending(history, x, belief.shape[0])
    if pending == 0:
        return belief_bin(grid, belief, largest(belief))
    certainty = expected_certainty(belief, campaign.channels, history, x, pending, campaign.after)
    return int(grid.shape[0] + belief_bin(grid, belief, certainty))


@jit
def task_bins(campaign: CrowdCampaign, grid: Floats, out: Ints) -> None:
    """``task_bin`` of every task."""
    for x in range(out.shape[0]):
        out[x] = task_bin(campaign, grid, x)


@jit
def rebin_all(campaign: CrowdCampaign, plan: CrowdPlan) -> None:
    """After a refit: every open task goes to the bin of its new belief and keeps its plan."""
    for x in range(campaign.given.shape[0]):
        if campaign.bins.bin[x] >= 0:
            rebin(campaign.bins, plan, x, task_bin(campaign, plan.grid, x))


@jit
def count_members(campaign: CrowdCampaign, grid: Floats, members: Floats) -> None:
    """``members`` (G,) gets the open tasks by belief, those with labels in flight by the beliefs that may follow."""
    members[:] = 0.0
    history, after = campaign.history, campaign.after
    for x in range(campaign.given.shape[0]):
        if campaign.bins.bin[x] >= 0:
            belief = campaign.state.belief[x]
            pending = counted_pending(history, x, belief.shape[0])
            for code in range(belief.shape[0] ** pending):
                chance = outcome(belief, campaign.channels, history, x, pending, code, after)
                if chance > 0.0:
                    members[belief_bin(grid, after, largest(after))] += chance


@jit
def assign(campaign: CrowdCampaign, plan: CrowdPlan, x: int, worker: int) -> int:
    """Give task x to the worker; return the number of the history's entry."""
    entry = give_out(campaign.history, x, worker)
    campaign.given[x] += 1
    campaign.worked[worker] += 1
    if campaign.bins.bin[x] >= 0:
        rebin(campaign.bins, plan, x, task_bin(campaign, plan.grid, x))
    return entry


@jit
def next_task(campaign: CrowdCampaign, plan: CrowdPlan, worker: int, must: bool) -> int:
    """The task for the worker who is here, or -1; nothing is noted."""
    who = worker if campaign.named[worker] else -1
    must = must or campaign.worked[worker] < campaign.options[TRIAL]
    tasks = Beliefs(campaign.state.belief, campaign.channels, campaign.after)
    return choose_task(campaign.bins, plan, campaign.history, tasks, campaign.kind[worker], who, must)


@jit
def next_among(campaign: CrowdCampaign, plan: CrowdPlan, worker: int, must: bool, eligible: Ints, size: int) -> int:
    """``next_task`` where only ``eligible[:size]`` may be given."""
    who = worker if campaign.named[worker] else -1
    must = must or campaign.worked[worker] < campaign.options[TRIAL]
    tasks = Beliefs(campaign.state.belief, campaign.channels, campaign.after)
    kind = campaign.kind[worker]
    return choose_among(campaign.bins, plan, campaign.history, tasks, kind, who, must, eligible, size)


@jit
def next_for_anyone(campaign: CrowdCampaign, plan: CrowdPlan) -> int:
    """The task for whoever comes, under a plan for one mixed type; -1 if no task is open."""
    tasks = Beliefs(campaign.state.belief, campaign.channels, campaign.after)
    return choose_task(campaign.bins, plan, campaign.history, tasks, 0, -1, True)


@jit
def come_in(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, answer: int) -> None:
    """The label of that entry has come in."""
    history, state = campaign.history, campaign.state
    x, j = history.task[entry], history.worker[entry]
    if history.answer[entry] != IN_FLIGHT:
        return
    history.answer[entry] = answer
    if campaign.options[LEARNT]:
        stream_label(state, x, j, answer)
        channel_of(state, j, campaign.channels[j])
    else:
        for c in range(state.logp.shape[1]):
            said = campaign.channels[j, c, answer]
            state.logp[x, c] += math.log(said) if said > 0.0 else -700.0
        normalise(state.logp[x], state.belief[x])
    if campaign.bins.bin[x] >= 0:
        rebin(campaign.bins, plan, x, task_bin(campaign, plan.grid, x))


@jit
def drop(campaign: CrowdCampaign, plan: CrowdPlan, entry: int) -> None:
    """The work of that entry will never be handed in."""
    history = campaign.history
    if history.answer[entry] != IN_FLIGHT:
        return
    x = history.task[entry]
    history.answer[entry] = GONE
    campaign.given[x] -= 1
    campaign.worked[history.worker[entry]] -= 1
    if campaign.bins.bin[x] >= 0:
        rebin(campaign.bins, plan, x, task_bin(campaign, plan.grid, x))


@jit
def lease_out(campaign: CrowdCampaign, plan: CrowdPlan, x: int, worker: int, open_: bool) -> None:
    """Task x is given to the worker."""
    assign(campaign, plan, x, worker)
    place_task(campaign, plan, x, open_)


@jit
def label_in(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, answer: int, open_: bool) -> None:
    """The label of an entry has come in; work that was given up (GONE) may come in late."""
    history = campaign.history
    x = history.task[entry]
    if history.answer[entry] == GONE:
        _revive(campaign, entry)
    come_in(campaign, plan, entry, answer)
    place_task(campaign, plan, x, open_)


@jit
def give_up(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, open_: bool) -> None:
    """The work of an entry is not expected any more."""
    x = campaign.history.task[entry]
    drop(campaign, plan, entry)
    place_task(campaign, plan, x, open_)


@jit
def take_back(campaign: CrowdCampaign, plan: CrowdPlan, entry: int, start: Floats, open_: bool) -> None:
    """An answer is taken back and the worker has the task again.

    ``start`` (C,) is the task's log belief without labels. The task's belief follows from its other labels by the
    channels as they are now; the next refit is exact again.
    """
    history, state = campaign.history, campaign.state
    x, j, answer = history.task[entry], history.worker[entry], history.answer[entry]
    if answer == GONE:
        _revive(campaign, entry)
    elif answer >= 0:
        C = start.shape[0]
        for c in range(C):
            state.counts[j, c, answer] = max(state.counts[j, c, answer] - state.belief[x, c], 0.0)
            state.logp[x, c] = start[c]
        channel_of(state, j, campaign.channels[j])
        history.answer[entry] = IN_FLIGHT
        k = history.last[x]
        while k >= 0:
            if history.answer[k] >= 0:
                for c in range(C):
                    state.logp[x, c] += math.log(campaign.channels[history.worker[k], c, history.answer[k]])
            k = history.earlier[k]
        normalise(state.logp[x], state.belief[x])
    if campaign.bins.bin[x] >= 0:
        rebin(campaign.bins, plan, x, task_bin(campaign, plan.grid, x))
    place_task(campaign, plan, x, open_)


@jit
def open_tasks(bins: TaskBins, open_: Ints, plans: int) -> None:
    """Put the tasks whose ``open_`` (K,) is 1 into the first bin, in their order, and no others anywhere."""
    bins.head[:] = -1
    bins.tail[:] = -1
    bins.members[:] = 0
    bins.bin[:] = -1
    bins.plan[:] = 0
    for x in range(open_.shape[0]):
        if open_[x]:
            put(bins, x, 0, 0, plans)


@jit
def _revive(campaign: CrowdCampaign, entry: int) -> None:
    """Work that was given up is in flight again."""
    history = campaign.history
    history.answer[entry] = IN_FLIGHT
    campaign.given[history.task[entry]] += 1
    campaign.worked[history.worker[entry]] += 1


@jit
def place_task(campaign: CrowdCampaign, plan: CrowdPlan, x: int, open_: bool) -> None:
    """Open or close task x."""
    bins, plans = campaign.bins, plan.wants.shape[0]
    if bins.bin[x] >= 0 and not open_:
        take(bins, x, plans)
    elif bins.bin[x] < 0 and open_:
        put(bins, x, task_bin(campaign, plan.grid, x), bins.plan[x], plans)
