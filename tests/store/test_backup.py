"""The documented copy of a SQLite database, made beside workers, is whole."""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from nextlabel.application.service import CampaignService
from nextlabel.store.sql import open_store
from stores import simple

ROOT = Path(__file__).parents[2]


def test_a_copy_beside_workers_is_of_one_moment(tmp_path: Path) -> None:
    said = re.search(r"VACUUM INTO '(copy\.db)'", (ROOT / "docs" / "operations.md").read_text())
    assert said is not None
    service = CampaignService(open_store(f"sqlite:///{tmp_path / 'labels.db'}"))
    id = service.create(simple(budget=5000), "demo", [{"id": f"t{k}", "text": "x" * 500} for k in range(400)]).id
    over, written = threading.Event(), threading.Event()

    def label(worker: str) -> None:
        while not over.is_set() and (lease := service[id].ask(worker)):
            service[lease.campaign].tell(lease.id, "yes")
            written.set()

    workers = [threading.Thread(target=label, args=(f"w{k}",)) for k in range(4)]
    for one in workers:
        one.start()
    try:
        assert written.wait(300)
        with closing(sqlite3.connect(tmp_path / "labels.db")) as database:
            database.execute(said[0].replace("copy.db", str(tmp_path / "copy.db")))
    finally:
        over.set()
        for one in workers:
            one.join()
        service.close()
    copy = CampaignService(open_store(f"sqlite:///{tmp_path / 'copy.db'}", create=False))
    assert copy.store.row(id).kept > 0 and copy[id].verify().right
    copy.close()
