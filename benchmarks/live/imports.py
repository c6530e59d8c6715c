"""``python -m benchmarks.live.imports [--rows N] [--postgres URL] [--only sqlite]``: an import while workers ask.

Sixteen workers ask and tell on two campaigns, with a short pause after each label, without an import for ``--quiet``
seconds and then while a CSV file is sent to one of the two over HTTP. Said are the slowest asks in both, the memory of
the service before and at most during the import, and whether replaying the log leads to the same state. The load
generator runs beside the service on the same machine, and so may others: the load of the machine is said for both.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.__main__ import others, processor
from benchmarks.live.__main__ import _postgres, quantile
from benchmarks.live.campaign import prepare
from benchmarks.live.crowd import label_of
from benchmarks.live.http import Connection
from benchmarks.live.server import Server
from nextlabel.application.service import CampaignService
from nextlabel.service.access import first_token
from nextlabel.store.sql import open_store

WORKERS, THINK_S, WARM_UP_S = 8, 0.05, 10.0
HEADER = (
    "| store | rows, file | import | asks: p50, p99, longest, over 1 s without an import | load "
    "| the same during it, campaign of the import | other campaign | load | refused | memory before, most "
    "| state = replay |"
)


@dataclass
class Asks:
    """When each ask was answered, and how long it took."""

    answered: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refused: int = 0

    def between(self, start: float, end: float) -> list[float]:
        """The seconds of the asks that were answered between two times."""
        return [took for at, took in zip(self.answered, self.seconds, strict=True) if start <= at <= end] or [0.0]


async def worker(port: int, campaign: str, name: str, token: str, asks: Asks, over: asyncio.Event) -> None:
    """Ask, tell, think, again and again; a refusal with 503 is part of the ask."""
    connection = Connection("127.0.0.1", port, token)

    async def post(path: str, body: dict[str, str] | None = None) -> dict[str, object]:
        while True:
            status, said = await connection.post(path, body)
            if status == 200:
                return said
            assert status == 503, (status, said)
            asks.refused += 1
            await asyncio.sleep(0.02)

    while not over.is_set():
        begun = time.perf_counter()
        lease = (await post(f"/api/v1/campaigns/{campaign}/ask"))["lease"]
        asks.answered.append(time.perf_counter())
        asks.seconds.append(asks.answered[-1] - begun)
        if isinstance(lease, dict):
            await post(f"/api/v1/leases/{lease['id']}/tell", {"label": label_of(str(lease["task"]), name)})
        await asyncio.sleep(THINK_S)


def make_file(path: Path, rows: int) -> None:
    """A CSV file of 200 bytes per row."""
    text = "Is this the review of somebody who liked what they bought and would buy it once more some day? " * 2
    with path.open("w", encoding="utf-8") as file:
        file.write("id,text\n")
        file.writelines(f"row{k},{text[: 190 - len(str(k))]}\n" for k in range(rows))


def memory_mb(process: int) -> float:
    """The memory of a process that is its own."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return sum(int(line.split()[1]) for line in status.splitlines() if line.startswith(("RssAnon", "RssShmem"))) / 1e3


async def watch(process: int, most: list[float], over: asyncio.Event) -> None:
    """Keep the most memory of a process."""
    while not over.is_set():
        most[0] = max(most[0], memory_mb(process))
        await asyncio.sleep(0.1)


def send(url: str, campaign: str, token: str, path: Path) -> int:
    """Send the file; returns how many tasks were added."""

    def pieces() -> Iterator[bytes]:
        with path.open("rb") as file:
            while piece := file.read(1 << 16):
                yield piece

    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv", "Idempotency-Key": "import"}
    reply = httpx.post(f"{url}/api/v1/campaigns/{campaign}/tasks", content=pieces(), headers=headers, timeout=3600)
    assert reply.status_code == 200, reply.text
    return int(reply.json()["added"])


def told(seconds: list[float]) -> str:
    """The slowest of some asks."""
    slow = sum(1 for one in seconds if one > 1.0)
    return (
        f"{quantile(seconds, 0.5)}, {quantile(seconds, 0.99)}, {1e3 * max(seconds):.0f} ms, {slow} of {len(seconds):,}"
    )


def load_average() -> str:
    """The load of the machine in the last minute."""
    return f"{os.getloadavg()[0]:.0f}"


async def measured(
    server: Server, ids: list[str], tokens: list[dict[str, str]], token: str, path: Path, quiet_s: float
) -> list[str]:
    """Everything but the replay, as cells of the table."""
    assert server.process is not None
    over, asks = asyncio.Event(), [Asks(), Asks()]
    crowd = [
        asyncio.create_task(worker(server.port, id, name, secret, account, over))
        for id, names, account in zip(ids, tokens, asks, strict=True)
        for name, secret in names.items()
    ]
    await asyncio.sleep(WARM_UP_S)
    warm = time.perf_counter()
    await asyncio.sleep(quiet_s)
    load_before = load_average()
    before = memory_mb(server.process.pid)
    most = [before]
    watching = asyncio.create_task(watch(server.process.pid, most, over))
    begun = time.perf_counter()
    added = await asyncio.to_thread(send, f"http://127.0.0.1:{server.port}", ids[0], token, path)
    ended = time.perf_counter()
    await asyncio.sleep(2.0)
    over.set()
    await asyncio.gather(*crowd, watching)
    during = [account.between(begun, ended + 2.0) for account in asks]
    quiet = asks[0].between(warm, begun) + asks[1].between(warm, begun)
    return [
        f"{added:,}, {path.stat().st_size / 1e6:.0f} MB", f"{ended - begun:.0f} s",
        told(quiet), load_before, *(told(one) for one in during), load_average(),
        str(sum(one.refused for one in asks)),
        f"{before:.0f} MB, {most[0]:.0f} MB",
    ]  # fmt: skip


def run(what: str, url: str, folder: Path, rows: int, quiet_s: float, **settings: object) -> None:
    """Write one line of the table, the replay's verdict when it is there: it takes minutes."""
    made = [prepare(url, 20_000, 10**6, WORKERS, **settings) for _ in range(2)]
    store = open_store(url)
    token = first_token(store)
    store.close()
    assert token is not None
    path = folder / "tasks.csv"
    if not path.exists():
        make_file(path, rows)
    server = Server(url, log=folder / f"{what}.log")
    server.start()
    try:
        ids, tokens = [id for id, _ in made], [names for _, names in made]
        cells = asyncio.run(measured(server, ids, tokens, token, path, quiet_s))
    finally:
        server.stop()
    sys.stdout.write(" | ".join([f"| {what}", *cells]))
    sys.stdout.flush()
    service = CampaignService(open_store(url))
    right = all(service[id].verify().right for id in ids)
    service.close()
    sys.stdout.write(f" | {'yes' if right else 'NO'} |\n")
    sys.stdout.flush()


def main() -> None:
    """Both stores."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.imports", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the file")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds of asks without an import")
    parser.add_argument("--only", choices=("sqlite", "postgresql"), help="one of the stores")
    parser.add_argument("--postgres", default="", help="address of an empty PostgreSQL database")
    options = parser.parse_args()
    before = others()
    sys.stdout.write(HEADER + "\n" + "|---" * (HEADER.count(" | ") + 1) + "|\n")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for what in ("sqlite", "postgresql"):
            if options.only in (None, what):
                url = f"{folder}/imports.db" if what == "sqlite" else options.postgres or _postgres(folder)
                run(what, url, Path(folder), options.rows, options.quiet)
    sys.stdout.write(f"\n{processor()}, {os.cpu_count()} cores. Load of the machine when it began: {before}.\n")


if __name__ == "__main__":
    main()
