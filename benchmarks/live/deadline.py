"""A live campaign that its deadline cuts short: ``auto``, which knows, beside the patient index, in virtual time.

    python -m benchmarks.live.deadline [campaigns] [labels in flight]

200 tasks with uniform priors and a budget of 800 labels, of which workers come for 600 before the deadline. Both
policies meet the same workers, times of arrival, times of answering and answers: those of the l-th lease are drawn from
(seed, l), the j-th answer on a task from (seed, task, j). What is in flight at the deadline is lost.
"""

from __future__ import annotations

import heapq
import sys
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import TableCache
from nextlabel.arrays import Floats
from nextlabel.campaign.policy_tables import load_of
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.model.simplex import simplex
from nextlabel.store.sql import open_store

TASKS, BUDGET, COME = 200, 800, 600
POLICIES = ("auto", "index")
CAMPAIGNS, IN_FLIGHT = 40, 100.0
#: Mean seconds of a label, and the virtual time at which campaigns begin.
SECONDS, BEGIN = 60.0, 1.8e9


@dataclass(slots=True)
class VirtualClock:
    """A clock that stands still until it is told."""

    now: float = BEGIN

    def __call__(self) -> float:
        return self.now


def play(policy: str, in_flight: float, seed: int, tables: TableCache) -> tuple[float, float, int]:
    """Expected accuracy and share of right answers at the deadline, and the labels that came in."""
    rate = in_flight / SECONDS
    clock = VirtualClock()
    service = CampaignService(open_store("memory:"), clock, tables)
    config = CampaignSettings(
        budget=BUDGET, labels=("no", "yes"), policy=policy, deadline=BEGIN + COME / rate, rho=in_flight, seed=seed,
        lease_seconds=100 * SECONDS,
    )  # fmt: skip
    id = service.create(config, tasks=[{"id": str(x)} for x in range(TASKS)]).id
    theta = np.random.default_rng([seed, 0]).random(TASKS)
    answer = np.random.default_rng([seed, 1]).random((TASKS, 64)) < theta[:, None]
    draws = np.random.default_rng([seed, 2]).exponential(1.0, (4 * COME, 2))
    due: list[tuple[float, int, str, int]] = []
    asked = np.zeros(TASKS, dtype=np.int64)
    end = BEGIN + COME / rate
    at, number = BEGIN + draws[0, 0] / rate, 0
    while at < end or (due and due[0][0] < end):
        if due and due[0][0] <= at:
            clock.now, _, lease_id, x = heapq.heappop(due)
            service[lease_id].tell(lease_id, "yes" if answer[x, asked[x]] else "no")
            asked[x] += 1
            continue
        clock.now = at
        # A second is nothing to a campaign, but virtual time does not wait for tables that are made in the background.
        tables.prepare(config, service.store.classes(id), load_of(service.store.row(id), at)).result()
        lease = service[id].ask(f"w{number}")
        if lease:
            heapq.heappush(due, (at + SECONDS * draws[number, 1], number, lease.id, int(lease.task)))
        number += 1
        at += draws[number, 0] / rate
    _, _, counts = simplex(2, 64)
    nodes = [task.node for task in service.store.tasks(id, -1, TASKS)]
    reward = config.class_of(None).lattice(64).reward
    ones, zeros = counts[nodes, 1], counts[nodes, 0]
    right = np.where(ones == zeros, 0.5, (ones > zeros) == (theta > 0.5))
    return float(reward[nodes].mean()), float(right.mean()), int(asked.sum())


def half_width(values: Floats) -> float:
    """Of a 95% interval."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    """Play and print."""
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else CAMPAIGNS
    in_flight = float(sys.argv[2]) if len(sys.argv) > 2 else IN_FLIGHT
    tables = TableCache()
    begin = perf_counter()
    played = []
    for seed in range(campaigns):
        played.append([play(policy, in_flight, seed, tables) for policy in POLICIES])
        print(f"campaign {seed + 1} of {campaigns}", file=sys.stderr, flush=True)
    found = np.array(played)
    print(f"{campaigns} campaigns, {in_flight:g} labels in flight, {perf_counter() - begin:.0f} s")
    for k, policy in enumerate(POLICIES):
        expected, right, labels = found[:, k].mean(axis=0)
        print(f"{policy}: expected accuracy {expected:.4f}, right {right:.4f}, labels in time {labels:.1f}")
    for k, what in enumerate(("expected accuracy", "right")):
        ahead = found[:, 0, k] - found[:, 1, k]
        print(f"{POLICIES[0]} ahead of {POLICIES[1]}, {what}: {ahead.mean():.4f} +- {half_width(ahead):.4f}")
    tables.close()


if __name__ == "__main__":
    main()
