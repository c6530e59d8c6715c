"""``python -m benchmarks.crowd_gap [REPLICATIONS]``: what ``crowd`` loses by not knowing its workers, in Markdown.

K = 1000, U = 3000, twenty workers each who are right with .9, .75 and .6 and can give 1000, 2000 and 3000 labels,
turning away. The campaign is played with channels learnt as labels come in, and again with something told to the
policy:

    all from n labels on    channels and beliefs are the true ones after n labels
    beliefs from n on       beliefs are those under the true channels; who is how good is learnt
    types                   the plan knows who is how good; beliefs are learnt

``composition`` is the part of the gap that the labels by type explain: it is that of the bound with just these labels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.crowd_campaign import LEARNT, TRIAL
from nextlabel.kernels.crowd_rollout import (
    ARRIVED,
    GIVEN,
    NO_RECORD,
    CrowdWorld,
    draw_truths,
    new_crowd_run,
    play_crowd,
    score_crowd,
)
from nextlabel.model.fact import Fact
from nextlabel.model.problem import Problem, WorkerType
from nextlabel.model.tasks import TaskClass
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.policies import CrowdTypes
from nextlabel.simulation.crowd import CrowdSetting, reference_values
from nextlabel.solve.bound import upper_bound

TASKS, BUDGET, PEOPLE, SEED = 1000, 3000, 20, 0
SKILLS, SUPPLY = (0.9, 0.75, 0.6), (1000, 2000, 3000)
NEVER = BUDGET + 1


class Told(NamedTuple):
    """From how many labels on the policy is told beliefs, channels, and who is of which type."""

    beliefs: int = NEVER
    channels: int = NEVER
    types: bool = False


ROWS = {
    "nothing": Told(),
    "all from 600 labels on": Told(600, 600),
    "all from 1500 labels on": Told(1500, 1500),
    "all from 2500 labels on": Told(2500, 2500),
    "beliefs from 1000 labels on": Told(beliefs=1000),
    "types": Told(types=True),
}


class ToldAllocator(CrowdAllocator):
    """The policy with the true channels of all workers at hand, used for the plan where ``told`` says so."""

    true: Floats | None = None

    def _group(self) -> tuple[CrowdTypes, Floats, Floats]:
        if self.true is None:
            return super()._group()
        learnt = self.campaign.channels.copy()
        self.campaign.channels[:] = self.true
        found = super()._group()
        self.campaign.channels[:] = learnt
        return found


def problem(supply: tuple[int, ...]) -> Problem:
    """The campaign with ``supply`` labels by type."""
    workers = [WorkerType.of_accuracy(a, supply=n, count=PEOPLE) for a, n in zip(SKILLS, supply, strict=True)]
    return Problem(classes=(TaskClass(TASKS, Fact(0.5)),), budget=BUDGET, workers=tuple(workers))


def play(setting: CrowdSetting, values: Floats, told: Told, replication: int) -> tuple[float, Floats]:
    """Reward less the martingale, and labels by type, of one campaign."""
    people = len(setting.kind)
    channels, order = setting.channels(SEED, replication), setting.order(SEED, replication)
    allocator = ToldAllocator(
        setting.beliefs, BUDGET, CrowdSettings(turn_away=True, seed=SEED),
        workers=people, arrivals=len(order), replication=replication,
    )  # fmt: skip
    campaign = allocator.campaign
    if told.types:
        allocator.true = channels
        campaign.options[TRIAL] = 0
    world = CrowdWorld(
        draw_truths(setting.beliefs, SEED, replication), order, channels, np.arange(people), allocator.grid, values,
        BUDGET, setting.timing, NO_RECORD,
    )  # fmt: skip
    run = new_crowd_run(world, setting.beliefs, SEED, replication)
    over = False
    while not over:
        over = play_crowd(world, run, campaign, allocator.plan, True, SEED, replication, allocator.next_due)
        allocator.given = int(run.counters[GIVEN])
        allocator.arrivals = setting.arrivals_left(order, int(run.counters[ARRIVED]), float(run.clock[0]))
        allocator.refit()
        if allocator.given >= told.channels and allocator.learnt:
            allocator.learnt, allocator._plans = False, None
            campaign.options[LEARNT] = campaign.options[TRIAL] = 0
            campaign.channels[:] = channels
        if allocator.given >= told.channels or told.types:
            allocator.supply = np.maximum(setting.supply - campaign.arrived, 0.0)
        if allocator.given >= told.beliefs:
            campaign.state.belief[:] = run.exact
            campaign.state.logp[:] = np.log(np.maximum(run.exact, 1e-300))
        if not over:
            allocator.resolve()
    out = np.zeros(7)
    score_crowd(world, run, campaign, out)
    by_type = np.bincount(campaign.history.worker[: allocator.given] // PEOPLE, minlength=len(SKILLS))
    return float(out[1]), by_type.astype(np.float64)


def rows(replications: int) -> Iterator[str]:
    """The lines of the table."""
    full = problem(SUPPLY)
    setting = CrowdSetting.of(full)
    values, best = reference_values(setting, True), upper_bound(full).value
    for name, told in ROWS.items():
        played = [play(setting, values, told, replication) for replication in range(replications)]
        gaps = 100.0 * (1.0 - np.array([reward for reward, _ in played]) / best)
        labels = np.mean([by_type for _, by_type in played], axis=0)
        limited = upper_bound(problem(tuple(max(1, round(n)) for n in labels))).value
        error = 1.96 * gaps.std(ddof=1) / np.sqrt(replications)
        counts = " / ".join(f"{n:.0f}" for n in labels)
        yield f"| {name} | {gaps.mean():.2f}% ± {error:.2f} | {100.0 * (1.0 - limited / best):.2f}% | {counts} |"


def main() -> None:
    """Print the table."""
    print("| told | gap | composition | labels of .9 / .75 / .6 |")
    print("|---|---|---|---|")
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        print(row, flush=True)


if __name__ == "__main__":
    main()
