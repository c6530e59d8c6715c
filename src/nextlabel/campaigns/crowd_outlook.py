"""What a campaign with the policy ``crowd`` will come to, by what it has learnt of its workers.

    forecast   what the policy's plan (``crowd.relaxation``) is worth with the labels left, workers as learnt so
               far who keep coming as they have; its price is what one more label adds, in items right
    at most    the bound of ``solve.crowd.from_labels``: no rule is expected to do better with these workers, if they
               answer independently of each other; for small campaigns, because it takes a minute

Guarantee: the forecast is the plan's own word, near to what the policy reaches in simulations (decision 29); its range
is that of chance and of what is not known of the workers, scaled with what is left to get right.
Cost: some 20 ms for each point of the curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.campaign.crowd_snapshot import CrowdSnapshot
from nextlabel.campaign.predictions import PREFIX
from nextlabel.policies.crowd.relaxation import LEARNT_GAP, Chain, RelaxationSolver, group_workers

#: Points of the curve below the budget and above it.
BELOW, ABOVE = 5, 6
#: Two-sided 90%, of the forecast's range.
RANGE = 1.645


@dataclass(frozen=True, slots=True)
class CrowdOutlook:
    """The forecast at the end of the budget with its 90% range, the price of a label, and the forecast by budget."""

    mean: float
    low: float
    high: float
    price: float
    curve: tuple[tuple[int, float], ...]


def crowd_outlook(crowd: CrowdSnapshot, left: int, most_extra: int) -> CrowdOutlook:
    """The outlook with ``left`` labels to come, and with fewer or with up to ``most_extra`` more of them."""
    people = [j for j, name in enumerate(crowd.workers) if crowd.labels[j] and not name.startswith(PREFIX)]
    channels = crowd.channels[people] if people else crowd.stranger[None]
    types = group_workers(channels, crowd.labels[people].astype(np.float64) if people else np.ones(1))
    chain = Chain(types.channels)
    free = np.zeros(len(types.share))
    members = _members(crowd.beliefs, chain.grid)
    tasks, now = len(crowd.beliefs), crowd.expected.mean
    # Rounding to the grid is the same before and after: what is gained is what counts.
    begin = float(members @ chain.reward) / tasks

    def solved(labels: int) -> tuple[float, float]:
        if labels <= 0:
            return now, 0.0
        solver = RelaxationSolver(chain.tables, chain.reward, free)
        found = solver.solve(members, float(labels), types.share * labels, LEARNT_GAP)
        return min(now + max(found.value / tasks - begin, 0.0), 1.0), found.price + float(types.share @ found.extra)

    mean, price = solved(max(left, 1))
    mean = mean if left else now
    curve = [(int(extra), solved(left + int(extra))[0]) for extra in _extras(left, most_extra)]
    values = np.maximum.accumulate([value for _, value in curve])
    wrong = (1.0 - mean) / max(1.0 - now, 1e-9)
    spread = RANGE * float(np.sqrt(mean * (1.0 - mean) / tasks + crowd.expected.learnt * wrong**2))
    return CrowdOutlook(
        mean, max(mean - spread, 0.0), min(mean + spread, 1.0), price,
        tuple((extra, float(value)) for (extra, _), value in zip(curve, values, strict=True)),
    )  # fmt: skip


def _members(beliefs: Floats, grid: Floats) -> Floats:
    """(G,) tasks by the grid belief that is nearest."""
    shown = beliefs[:, 1] if beliefs.shape[1] == 2 else beliefs.max(axis=1)
    middle = 0.5 * (grid[1:] + grid[:-1])
    found: Floats = np.bincount(np.searchsorted(middle, shown), minlength=len(grid)).astype(np.float64)
    return found


def _extras(left: int, most: int) -> Ints:
    """Numbers of labels more than the budget, those below it included."""
    below = -np.linspace(0, 1, BELOW)[::-1] * left
    above = np.linspace(0, 1, ABOVE) ** 2 * most
    return np.unique(np.round(np.concatenate([below, above])).astype(np.int64))
