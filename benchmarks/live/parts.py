"""``python -m benchmarks.live.parts``: what single parts of a live campaign cost, for docs/decisions/0014 and 0039."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

from sqlalchemy import Connection, bindparam, select

import nextlabel as nl
from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import load_or_solve_index
from nextlabel.campaign.policy_tables import PolicyTables
from nextlabel.campaign.rates import MOST_RHO
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.model.beta import Beta
from nextlabel.policies.index import Index, solve_table
from nextlabel.store.engine import Runner
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import tasks as task_table

RHOS = (0.25, 1.0, 4.0, 16.0, 32.0)
ROUNDS, EACH = 5, 2000
#: Problems with more labels in flight than tables are made for: tasks, labels, rho.
BEYOND = (
    (100, 300, 64.0),
    (100, 300, 128.0),
    (100, 300, 1e4),
    (300, 900, 64.0),
    (300, 900, 256.0),
    (1000, 3000, 128.0),
)
BEYOND_REPLICATIONS = 1000


def best(work: Callable[[], object]) -> float:
    """Least microseconds of one of EACH executions."""
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(EACH):
            work()
        times.append((time.perf_counter() - begun) / EACH)
    return 1e6 * min(times)


def statement() -> None:
    """One task looked up, through SQLAlchemy's execution and on the driver, in one run."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore(f"{folder}/parts.db")
        campaign_service = CampaignService(store)
        campaign_service.create(CampaignSettings(budget=10, policy="okg"), tasks=["a"] * 100)
        which = {"campaign": 1, "number": 50}
        by_number = select(task_table).where(
            task_table.c.campaign == bindparam("campaign"), task_table.c.number == bindparam("number")
        )

        def timed(connection: Connection) -> tuple[float, float]:
            run = Runner(connection)
            found = best(lambda: connection.execute(by_number, which).one())
            bare = best(lambda: run.one(by_number, which))
            return found, bare

        with store.engine.connect() as connection:
            through, past = timed(connection)
        campaign_service.close()
    sys.stdout.write(
        f"A task by number on SQLite: {through:.0f} us through SQLAlchemy's execution, {past:.0f} us on the driver, "
        f"{through / past:.0f} : 1.\n\n"
    )


def _solve(rho: float) -> PolicyTables:
    config, classes = CampaignSettings(budget=10, policy="index"), [Beta(1, 1)]
    index = Index(load_or_solve_index(config, classes, rho)[0])
    return PolicyTables.of(config, classes, rho, index)


def tables() -> None:
    """Index tables of one prior by rho: seconds, and the labels left from which rows no longer change."""
    _solve(RHOS[0])  # compiles
    sys.stdout.write("| rho | seconds | rows until settled | rows / rho |\n|---|---|---|---|\n")
    for rho in RHOS:
        begun = time.perf_counter()
        tables_now = _solve(rho)
        rows = len(tables_now.tables.rows)
        sys.stdout.write(f"| {rho:g} | {time.perf_counter() - begun:.1f} | {rows} | {rows / rho:.0f} |\n")
        sys.stdout.flush()


def limit() -> None:
    """What it costs that campaigns with more labels in flight than MOST_RHO use the tables for MOST_RHO."""
    sys.stdout.write("\n| tasks | labels | rho | own tables, per task | tables for the limit: difference |\n")
    sys.stdout.write("|---|---|---|---|---|\n")
    for tasks, budget, rho in BEYOND:
        study = limited_and_own(tasks, budget, rho, BEYOND_REPLICATIONS)
        own, gain = study.result("own").per_task, study.difference("limit", "own")
        sys.stdout.write(
            f"| {tasks} | {budget} | {rho:g} | {own.mean:.4f} | {gain.mean:+.5f} ± {gain.half_width:.5f} |\n"
        )
        sys.stdout.flush()


def limited_and_own(tasks: int, budget: int, rho: float, replications: int) -> nl.results.Study:
    """The index with tables for MOST_RHO and with the problem's own."""
    own, limited = (nl.Problem.identical(tasks, budget, arrival_rate=r, completion_rate=1.0) for r in (rho, MOST_RHO))
    rules = [Index(solve_table(limited), name="limit"), Index(solve_table(own), name="own")]
    return nl.simulate(own, rules, replications=replications, seed=0)


if __name__ == "__main__":
    statement()
    tables()
    limit()
