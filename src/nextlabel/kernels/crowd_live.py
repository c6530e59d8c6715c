"""The steps of a live campaign: those of ``kernels.crowd_campaign``, with tasks that open and close and answers undone.

A task is open while it may be given to somebody: it has room for one more label. Whether it has is for the caller to
say (``open_``) with every step. Cost: O(1) per step; an answer taken back looks at the other labels of its task.
"""

from __future__ import annotations

import math

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_bins import GONE, IN_FLIGHT, TaskBins, put, take
from nextlabel.kernels.crowd_campaign import CrowdCampaign, assign, come_in, drop, task_bin
from nextlabel.kernels.crowd_choice import CrowdPlan, rebin
from nextlabel.kernels.crowd_state import channel_of, normalise
from nextlabel.kernels.jit import jit


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
