"""``python -m benchmarks.live.scale CASE [--policy P] [--tasks N] [--labels N]``: what large campaigns cost.

======== =======================================================================================================
case     what is measured, in processor seconds and megabytes, so that a busy machine says the same
======== =======================================================================================================
join     a process that has never seen the campaign gives out its first task, without a snapshot and with one
workers  as many workers as ``--workers`` ask and tell, two labels each
memory   ``--campaigns`` campaigns, asked in turns, under ``NEXTLABEL_MEMORY`` of ``--limit`` megabytes; a list of all
failure  a transaction that fails after an ask, and the next ask
======== =======================================================================================================
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from nextlabel.application.refits import BackgroundRefits
from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import crowd_compiled
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.rows import lease_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import open_store

#: Labels in one transaction of a campaign that is made for a measurement.
AT_ONCE = 5000


def memory() -> float:
    """Megabytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * resource.getpagesize() / 2**20


def made(url: str, policy: str, tasks: int, budget: int, campaigns: int = 1) -> list[str]:
    """Campaigns with so many tasks each."""
    service = CampaignService(open_store(url))
    config = CampaignSettings(budget=budget, labels=("no", "yes"), policy=policy, lease_seconds=600.0, turn_away=False)
    ids = []
    for _ in range(campaigns):
        ids.append(service.create(config, tasks=({"id": f"t{k}", "text": f"Is {k} good?"} for k in range(tasks))).id)
    if policy == "index":
        service.table_cache.prepare(config, service.store.classes(ids[0]), config.rho).result()
    service.close()
    return ids


def label(url: str, id: str, labels: int, workers: int = 1000) -> None:
    """Write a log in which every task has a label, as fast as the log can be written."""
    service, random, done = CampaignService(open_store(url)), np.random.default_rng(0), 0
    how = {"model": 0} if service.store.row(id).config.knows_workers else {"rho": 0.25}

    def some(commands: Commands) -> None:
        state = commands.state
        for _ in range(done, min(done + AT_ONCE, labels)):
            k = state.row.given
            lease, worker, task = lease_id(id, k), f"w{(k + k // state.row.tasks) % workers}", k % state.row.tasks
            given = {"lease": lease, "task": task, "worker": worker, "expires_at": commands.now + 600.0}
            commands.record("leased", {**given, "left": state.row.left, "state": list(state.group_of(task)), **how})
            told = {"lease": lease, "label": int(random.random() < 0.5), "counted": True, "last": False}
            commands.record("labelled", told)

    while done < labels:
        service.run(id, some)
        done += AT_ONCE
    service.close()


def join(url: str, id: str) -> None:
    """In a process of its own: the first ask and tell of a campaign, and the second."""
    service = CampaignService(open_store(url))
    if service.store.row(id).config.knows_workers:
        crowd_compiled().result()
    before, begun, wall = memory(), time.process_time(), time.perf_counter()
    for turn in ("first", "second"):
        lease = service[id].ask(f"new {turn}")
        assert isinstance(lease, Lease), lease
        service[lease.campaign].tell(lease.id, "yes")
        used = f"{time.process_time() - begun:.2f} s of processor, {time.perf_counter() - wall:.2f} s in all"
        print(f"  {turn} ask and tell: {used}, {memory() - before:,.0f} MB more")
        begun, wall = time.process_time(), time.perf_counter()
    service.close()


def compare_joins(url: str, given: argparse.Namespace) -> None:
    """A process without a snapshot, and one with it."""
    (id,) = made(url, given.policy, given.tasks, 10 * given.labels)
    label(url, id, given.labels)
    command = [sys.executable, "-m", "benchmarks.live.scale", "child", "--url", url, "--id", id]
    print("without a snapshot:", flush=True)
    subprocess.run(command, check=True)
    if given.policy != "crowd":
        return
    label(url, id, given.labels // 4)  # the first ask has learnt all of them; a refit is due after some more
    service = CampaignService(open_store(url))
    refits = BackgroundRefits(service)
    begun = time.process_time()
    refits._step(id)
    print(f"  a refit of all labels: {time.process_time() - begun:.1f} s of processor")
    service.close()
    print("with a snapshot:", flush=True)
    subprocess.run(command, check=True)


def many_workers(url: str, given: argparse.Namespace) -> None:
    """Workers ask and tell in turns, and nothing is lost or given twice."""
    (id,) = made(url, given.policy, given.tasks, 10 * given.labels)
    service = CampaignService(open_store(url))
    if given.policy == "crowd":
        crowd_compiled().result()
    service.refit_in_background()
    service[id].ask("first")
    before, begun, pairs = memory(), time.process_time(), 0
    for turn in range(2):
        for worker in range(given.workers):
            lease = service[id].ask(f"w{worker}")
            if isinstance(lease, Lease):
                service[lease.campaign].tell(lease.id, "no" if (worker + turn) % 3 else "yes")
                pairs += 1
    used = time.process_time() - begun
    row = service.store.row(id)
    per_pair = f"{1e3 * used / max(pairs, 1):.2f} ms of processor a pair, refits included"
    print(f"{pairs:,} pairs by {given.workers:,} workers on {row.tasks:,} tasks: {per_pair}")
    print(f"{memory():,.0f} MB in all, {memory() - before:,.0f} MB more than after the first ask; spent {row.spent:,}")
    print("replay = state:", service[id].verify().right)
    service.close()


def under_limit(url: str, given: argparse.Namespace) -> None:
    """Campaigns in turns under a limit on memory."""
    ids = made(url, given.policy, given.tasks, 1000, given.campaigns)
    os.environ["NEXTLABEL_MEMORY"] = str(given.limit)
    service = CampaignService(open_store(url))
    before, begun = memory(), time.process_time()
    rows = service.store.campaigns()
    print(f"a list of {len(rows)} campaigns: {time.process_time() - begun:.2f} s, {memory() - before:,.0f} MB more")
    most, begun = 0.0, time.process_time()
    for _ in range(2):
        for id in ids:
            assert isinstance(service[id].ask(f"w{time.monotonic_ns()}"), Lease)
            most = max(most, memory())
            time.sleep(0.01)
    held = sum(one.state.nbytes for one in service.store._residents.values() if one.state is not None) / 2**20
    each = 1e3 * (time.process_time() - begun) / (2 * len(ids))
    print(f"{sum(row.tasks for row in rows):,} tasks, limit {given.limit} MB: {held:,.0f} MB of campaigns at the end, ")
    print(f"the process at most {most - before:,.0f} MB more; {each:.1f} ms of processor an ask, reading included")
    service.close()


def after_failure(url: str, given: argparse.Namespace) -> None:
    """A failure inside a transaction, after it has changed the campaign."""
    (id,) = made(url, given.policy, given.tasks, 10 * given.labels)
    service = CampaignService(open_store(url))
    for k in range(3):
        service[id].ask(f"w{k}")

    def failing(commands: Commands) -> None:
        commands.ask("somebody")
        raise RuntimeError("the disk is full")

    def timed(what: str, call: Callable[[], object]) -> None:
        begun, wall = time.process_time(), time.perf_counter()
        with suppress(RuntimeError):
            call()
        used = f"{1e3 * (time.process_time() - begun):.1f} ms of processor"
        print(f"{what}: {used}, {1e3 * (time.perf_counter() - wall):.1f} ms in all")

    given_before = service.store.row(id).given
    timed("an ask", lambda: service[id].ask("before"))
    timed("a transaction that fails", lambda: service.run(id, failing))
    timed("the next ask", lambda: service[id].ask("after"))
    assert service.store.row(id).given == given_before + 2
    print("replay = state:", service[id].verify().right)
    service.close()


CASES = {"join": compare_joins, "workers": many_workers, "memory": under_limit, "failure": after_failure}


def main() -> None:
    """Measure one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=[*CASES, "child"])
    parser.add_argument("--policy", default="crowd", choices=["crowd", "index"])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=20_000)
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--limit", type=int, default=256, help="megabytes")
    parser.add_argument("--url", default="")
    parser.add_argument("--id", default="")
    given = parser.parse_args()
    if given.case == "child":
        join(given.url, given.id)
        return
    with tempfile.TemporaryDirectory() as folder:
        CASES[given.case](f"{folder}/scale.db", given)


if __name__ == "__main__":
    main()
