"""Asks in a campaign of a million tasks: how long the service takes to start, and an ask and a tell to be answered."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from benchmarks.live.campaign import prepare
from benchmarks.live.crowd import Account, crowd
from benchmarks.live.server import Server


def large(folder: Path, tasks: int, labels: int = 2000) -> list[str]:
    """With one worker at a time and with eight."""
    url = f"{folder}/large.db"
    begun = time.perf_counter()
    id, tokens = prepare(url, tasks, 3 * tasks, 8)
    made = time.perf_counter() - begun
    server = Server(url)
    start = server.start()
    try:
        lines = []
        for workers in (1, 8):
            some = dict(list(tokens.items())[:workers])
            asyncio.run(crowd("127.0.0.1", [server.port], id, some, most=20))
            lines.append((workers, asyncio.run(crowd("127.0.0.1", [server.port], id, some, most=labels))))
    finally:
        server.stop()
    size = sum(file.stat().st_size for file in folder.glob("large.db*")) / 1e6
    return [
        "",
        f"{tasks:,} tasks on SQLite: taken in within {made:.0f} s, {size:,.0f} MB on disk; the service started in "
        f"{start:.1f} s.",
        "",
        "| workers at once | ask p50 | ask p99 | tell p50 | tell p99 |",
        "|---|---|---|---|---|",
        *(f"| {workers} | {_times(account)} |" for workers, account in lines),
    ]


def _times(account: Account) -> str:
    def at(seconds: list[float], level: float) -> str:
        return f"{1e3 * sorted(seconds)[int(level * (len(seconds) - 1))]:.1f} ms"

    return " | ".join(at(s, level) for s in (account.ask_s, account.tell_s) for level in (0.5, 0.99))
