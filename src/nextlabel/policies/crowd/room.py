"""Room for more tasks, workers and entries of a crowd: arrays with as many rows, which double when they are full.

New rows stand for what nothing is known of: a task or a worker like the row beyond the last one, no entry at all.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_bins import IN_FLIGHT
from nextlabel.kernels.crowd_campaign import CrowdCampaign

A = TypeVar("A", Floats, Ints)


def doubled(room: int, wanted: int) -> int:
    """``room``, doubled until ``wanted`` rows fit."""
    while room < wanted:
        room *= 2
    return room


def longer(array: A, room: int, rest: object) -> A:
    """The array with ``room`` rows, the new ones filled with ``rest``."""
    out = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    out[len(array) :] = rest
    return out


def with_more_tasks(campaign: CrowdCampaign, room: int) -> CrowdCampaign:
    """The campaign with so many rows for tasks."""
    state, bins, history = campaign.state, campaign.bins, campaign.history
    return campaign._replace(
        state=state._replace(
            logp=longer(state.logp, room, state.logp[-1]), belief=longer(state.belief, room, state.belief[-1])
        ),
        bins=bins._replace(
            bin=longer(bins.bin, room, -1),
            plan=longer(bins.plan, room, 0),
            after=longer(bins.after, room, -1),
            before=longer(bins.before, room, -1),
        ),
        history=history._replace(last=longer(history.last, room, -1)),
        given=longer(campaign.given, room, 0),
    )


def with_more_workers(campaign: CrowdCampaign, room: int) -> CrowdCampaign:
    """The campaign with so many rows for workers."""
    state = campaign.state
    return campaign._replace(
        state=state._replace(counts=longer(state.counts, room, 0.0)),
        channels=longer(campaign.channels, room, campaign.channels[-1]),
        kind=longer(campaign.kind, room, campaign.kind[-1]),
        arrived=longer(campaign.arrived, room, 0),
        worked=longer(campaign.worked, room, 0),
        named=longer(campaign.named, room, 1),
    )


def with_more_entries(campaign: CrowdCampaign, room: int) -> CrowdCampaign:
    """The campaign with so many rows for what was given out."""
    history = campaign.history
    return campaign._replace(
        history=history._replace(
            earlier=longer(history.earlier, room, -1),
            task=longer(history.task, room, 0),
            worker=longer(history.worker, room, 0),
            answer=longer(history.answer, room, IN_FLIGHT),
        )
    )
