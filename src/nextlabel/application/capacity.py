"""What a process and its database hold, measured by a campaign of its own that is deleted again.

A process runs its commands one after the other and commits those that wait together (``service.command_queue``). With
``BATCH`` asks, then their answers, in one transaction each, a pair takes ``wall`` seconds, ``processor`` of them in
this process; the rest is the database and the disk. P processes with campaigns of their own do

    min(P / wall, cores / (processor + database))    pairs per second,

where ``database`` is what the server's processes take of the same cores, if it runs here, and 0 for SQLite, whose work
is in ``processor``; SQLite has one writer at a time, so that P is 1 for it. Over HTTP a request costs some more.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from secrets import token_hex

from nextlabel.application.service import CampaignService
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings

#: Commands in one transaction, and tasks of the campaign.
BATCH, TASKS = 64, 5_000
#: The policy of the campaign that is measured: what a choice costs does not grow with its labels.
POLICY = "index"
#: Bytes in memory for a task, for a lease, and for a task with the policy crowd besides (docs/operations.md).
TASK, LEASE, CROWD = 130, 75, 250


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is there, what it takes, and how many pairs of an ask and its answer one process does in a second."""

    campaigns: int
    tasks: int
    leases: int
    memory_mb: float
    pairs: int
    wall: float
    processor: float
    cores: int

    def pairs_per_second(self, processes: int = 1, database: float = 0.0) -> float:
        """How many pairs so many processes do, each with campaigns of its own."""
        return min(processes / self.wall, self.cores / (self.processor + database))

    def workers(self, seconds: float, processes: int = 1) -> float:
        """How many people can label at once who need so many seconds for a label."""
        return self.pairs_per_second(processes) * seconds

    def sentences(self) -> list[str]:
        """In words."""
        one, waits = self.pairs_per_second(), 1.0 - self.processor / self.wall
        limit = "the disk or the database" if waits > 0.5 else "this process's processor"
        return [
            f"One process does {one:,.0f} pairs of an ask and its answer a second here with the policy {POLICY}: "
            f"{self.workers(10):,.0f} people at once who take 10 seconds for a label, "
            f"{self.workers(60):,.0f} who take a minute; over HTTP fewer.",
            f"A pair takes {1e3 * self.wall:.2f} ms, {1e3 * self.processor:.2f} of them of processor: the next limit "
            f"is {limit}.",
            f"There are {self.campaigns:,} campaigns with {self.tasks:,} tasks and {self.leases:,} leases, which take "
            f"{self.memory_mb:,.0f} MB in a process that works on all of them.",
        ]


def capacity(service: CampaignService, seconds: float = 5.0) -> Capacity:
    """Measure for so many seconds."""
    rows = service.store.campaigns()
    tasks, leases = sum(row.tasks for row in rows), sum(row.given for row in rows)
    crowd = sum(row.tasks for row in rows if row.config.knows_workers)
    id = f"capacity_{token_hex(6)}"
    config = CampaignSettings.from_dict({"budget": 10**9, "policy": POLICY, "name": "measures what fits"})
    service.create(config, id, [{"id": str(k)} for k in range(TASKS)])
    try:
        _round(service, id, 0)  # tables, and kernels
        pairs, begun, used = 0, time.perf_counter(), time.process_time()
        while pairs == 0 or time.perf_counter() - begun < seconds:
            pairs += _round(service, id, pairs)
        wall, processor = time.perf_counter() - begun, time.process_time() - used
    finally:
        service.delete(id)
    memory = (TASK * tasks + LEASE * leases + CROWD * crowd) / 1e6
    return Capacity(
        len(rows), tasks, leases, memory, pairs, wall / pairs, processor / pairs, os.cpu_count() or 1
    )  # fmt: skip


def _round(service: CampaignService, id: str, first: int) -> int:
    """Some workers ask together, and answer together; how many got a task."""
    workers = [f"w{(first + k) % 1000}" for k in range(BATCH)]
    asked = service.run(id, lambda commands: [commands.ask(worker) for worker in workers])
    held = [one.id for one in asked if isinstance(one, Lease)]
    service.run(id, lambda commands: [commands.tell(lease, 0) for lease in held])
    return len(held)
