"""A PostgreSQL whose own daemon has not come by yet chooses the right indexes."""

from __future__ import annotations

import time
from pathlib import Path

import sqlalchemy as sa

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease
from nextlabel.store.sql import SqlStore
from stores import Clock, opened, service_of_store, simple

#: Far more than it takes on the slowest machine.
PATIENCE_S = 120.0


def label(commands: Commands) -> None:
    for number in range(450):
        lease = commands[f"w{number % 3}"].ask()
        assert isinstance(lease, Lease)
        commands[lease.campaign].tell(lease.id, "yes")


def test_tables_that_have_doubled_are_analyzed(tmp_path: Path) -> None:
    with opened("postgresql", tmp_path) as store:
        assert isinstance(store, SqlStore)
        with store.engine.execution_options(writes=True).begin() as connection:
            for table in ("tasks", "leases", "payloads"):  # the daemon, if it comes by within the test
                connection.execute(sa.text(f"ALTER TABLE {table} SET (autovacuum_enabled = false)"))
        service = service_of_store(store, Clock())
        id = service.create(simple(2000), tasks=[f"item {k}" for k in range(500)]).id
        service.run(id, label)
        analyzed = sa.text("SELECT count(*) FROM pg_stat_user_tables WHERE last_analyze IS NOT NULL")
        end = time.monotonic() + PATIENCE_S
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while connection.execute(analyzed).scalar_one() < 3:
                assert time.monotonic() < end
                time.sleep(0.05)
            of_task = "SELECT * FROM leases WHERE campaign = 1 AND task = 7"
            plan = "\n".join(row[0] for row in connection.execute(sa.text(f"EXPLAIN {of_task}")))
        assert "uq_leases_campaign_task_worker" in plan, plan  # who has held a task
        service.table_cache.close()
