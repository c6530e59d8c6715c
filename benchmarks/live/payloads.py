"""``python -m benchmarks.live.payloads [--rows N]``: what payloads take in a database that has each twice.

Tasks with texts of 200 bytes are added, and a tenth of them labelled. Said are the size of the file, and the bytes of
the payloads in the log and in the rows of the tasks.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

import sqlalchemy as sa

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.store.open import open_store
from nextlabel.store.sql import SqlStore

TEXT = "Is this the review of somebody who liked what they bought and would buy it once more some day? " * 3


def label(commands: Commands, worker: str, pairs: int) -> None:
    """Some labels, as workers give them."""
    for _ in range(pairs):
        lease = commands.ask(worker)
        assert lease
        commands.tell(lease.id, "1")  # type: ignore[union-attr]


def main() -> None:
    """Make the database and count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.payloads", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/labels.db"
        store = open_store(path)
        assert isinstance(store, SqlStore)
        service = CampaignService(store)
        tasks = ({"id": f"row{k}", "text": f"{k} {TEXT}"[:200]} for k in range(rows))
        id = service.create(CampaignSettings(budget=rows, policy="okg-pending"), tasks=tasks).id
        for k in range(rows // 1000):
            service.run(id, lambda commands, k=k: label(commands, f"ann {k}", 100))  # type: ignore[misc]
        with store.engine.connect() as connection:
            (log,), (task_rows,), (number,) = (
                connection.execute(sa.text(text)).one()
                for text in (
                    "SELECT sum(length(data)) FROM events WHERE kind = 'tasks_added'",
                    "SELECT sum(length(payload)) FROM tasks",
                    "SELECT count(*) FROM tasks",
                )
            )
        service.close()
        size = os.path.getsize(path)
    sys.stdout.write(
        f"{number:,} tasks, {rows // 10:,} labels: {size / number:.0f} bytes of the file per task; "
        f"{log / number:.0f} in the log with ids, places and classes, {task_rows / number:.0f} for the payload in the "
        f"task's row, which is {task_rows / size:.0%} of the file\n"
    )


if __name__ == "__main__":
    main()
