"""Control questions: tasks whose answer is known, given among the others to learn about the worker.

========== =========================================================================================
when       given
========== =========================================================================================
to qualify all of the first tasks, if the campaign has a qualification
at first   ``START`` of the first ``FIRST`` tasks of a worker, at places drawn by chance
later      where what a control tells about the worker is worth more than a label (policy crowd), but at most
           every ``SPACING``-th task
========== =========================================================================================

What it is worth. f(A) is what a label of the worker with channel A adds on the tasks that they would get next, U the
number of labels that they are still expected to give, P(c) the share of the truths:

    f(A) = mean_x [ sum_y max_c p_x[c] A[c, y] - max_c p_x[c] ]
    a control is worth  U ( sum_c P(c) sum_y A[c, y] f(A after hearing y where c is true) - f(A) ),   a label  f(A)

One step ahead, as labels are judged; f is convex in A, so that a control is never worth less than nothing. Policies
that take workers to be alike learn nothing from it: with them there are controls at first alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.rows import WorkerRow
from nextlabel.crowd.answers import Choice, Rating
from nextlabel.policies.allocation import CONTROLS, chance, starting_place

if TYPE_CHECKING:
    from nextlabel.campaign.commands import Commands

#: Controls among a worker's first tasks; later at most every so many tasks is one.
START, FIRST, SPACING = 2, 6, 4

#: Tasks that are looked at, and of these the ones where the worker's label helps most.
LOOKED_AT, BEST = 256, 32


def choose_control(campaign: Commands, worker: str, tested: bool = False) -> int | None:
    """A control for the worker, None if it is not the time for one or they have had all; ``tested``: it is the time."""
    row = campaign.state.row
    tally = campaign.state.find_worker(worker) or WorkerRow(worker)
    if tested:
        wanted = True
    elif tally.given < FIRST:
        draw = chance(row.config.seed, CONTROLS, row.given)
        wanted = draw < (START - tally.tested) / (FIRST - tally.given)
    else:
        spaced = SPACING * (tally.tested + 1) <= tally.given + 1
        wanted = (
            spaced
            and row.config.knows_workers
            and is_worth_it(campaign.crowd(), campaign.state.numbers.get(worker, -1), row.left)
        )
    if not wanted:
        return None
    return campaign.state.control_for(worker, starting_place(row.config.seed, row.given))


def is_worth_it(model: CrowdModel, number: int, left: int) -> bool:
    """Whether a control tells more about the worker than a label is worth; of other answers the first ones do."""
    if not isinstance(model.kind, Choice | Rating):
        return False
    crowd = model.crowd
    worked = crowd.campaign.worked[: crowd.people]
    if not 0 <= number < crowd.people or crowd.tasks == 0 or worked.sum() == 0:
        return False
    state = crowd.campaign.state
    open_ = np.flatnonzero(crowd.gold[: crowd.tasks] < 0)
    some = open_[:: max(1, len(open_) // LOOKED_AT)]
    counts = state.pseudo + state.counts[number]
    uses = left * float(worked[number]) / float(worked.sum())
    control, label = worth_of_control(counts, crowd.start, state.belief[some], uses)
    return control > label


def worth_of_control(counts: Floats, share: Floats, beliefs: Floats, uses: float) -> tuple[float, float]:
    """What a control and a label of a worker are worth, in tasks right.

    ``counts`` (C, C) are the worker's, pseudo-counts included, ``share`` (C,) those of the truths, ``beliefs`` (n, C)
    what tasks are believed to be, ``uses`` the labels that the worker will still give.
    """
    channel = counts / counts.sum(axis=1, keepdims=True)
    gain = _gains(channel, beliefs)
    best = np.argsort(-gain, kind="stable")[:BEST]
    tasks, label = beliefs[best], float(gain[best].mean())
    after = 0.0
    for c in range(len(share)):
        for y in range(len(share)):
            heard = channel.copy()
            heard[c] = counts[c]
            heard[c, y] += 1.0
            heard[c] /= heard[c].sum()
            after += share[c] * channel[c, y] * float(_gains(heard, tasks).mean())
    return uses * max(after - label, 0.0), label


def _gains(channel: Floats, beliefs: Floats) -> Floats:
    """(n,) what a label adds to the probability that each task is right."""
    joint = beliefs[:, :, None] * channel[None]
    found: Floats = joint.max(axis=1).sum(axis=1) - beliefs.max(axis=1)
    return found
