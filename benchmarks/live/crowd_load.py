"""``python -m benchmarks.live.crowd_load``: asks and tells over HTTP, the policies ``index`` and ``crowd`` in turns.

Both campaigns live in one SQLite database behind one service; each turn is so many labels by 64 workers who ask again
at once, so that a noisy machine is noisy for both. With ``--tasks 1000000 --workers 8`` it shows asks in a large one.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from benchmarks.live.campaign import prepare
from benchmarks.live.crowd import Account, crowd
from benchmarks.live.server import Server

POLICIES = ("index", "crowd")


def main() -> None:
    """Print a line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--labels", type=int, default=1000, help="labels in each turn")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"{Path(folder)}/load.db"
        made = {policy: prepare(url, given.tasks, 3 * given.tasks, given.workers, policy=policy) for policy in POLICIES}
        server = Server(url)
        server.start()
        found: dict[str, list[Account]] = {policy: [] for policy in POLICIES}
        try:
            for turn in range(given.turns + 1):
                for policy, (id, tokens) in made.items():
                    most = given.labels if turn else 20
                    account = asyncio.run(crowd("127.0.0.1", [server.port], id, tokens, most=most))
                    if turn:  # the first warms up
                        found[policy].append(account)
        finally:
            server.stop()
    print("| policy | pairs per second | ask p50 | ask p99 | ask max | tell p50 |")
    print("|---|---|---|---|---|---|")
    for policy, accounts in found.items():
        asks, tells = (sorted(s for one in accounts for s in getattr(one, name)) for name in ("ask_s", "tell_s"))
        pairs = sum(len(one.labels) for one in accounts) / sum(one.seconds for one in accounts)
        cells = [1e3 * asks[int(level * (len(asks) - 1))] for level in (0.5, 0.99, 1.0)]
        cells.append(1e3 * tells[len(tells) // 2])
        print(f"| {policy} | {pairs:,.0f} | " + " | ".join(f"{cell:.1f} ms" for cell in cells) + " |")


if __name__ == "__main__":
    main()
