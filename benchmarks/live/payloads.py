"""``python -m benchmarks.live.payloads [--before TREE] [--rows N] [--store postgresql]``: what payloads take.

Tasks with texts of 20, 200 and 2,000 bytes, words at random, are added to a new database, and some labels given. Said
are the bytes of the log, the tasks and their payloads with all indexes per task, and the seconds that adding tasks and
a pair of ask and tell took: of this version, and of the one in another tree, which take turns. Processor time depends
least on what else the machine does; on PostgreSQL it leaves out the server's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import sqlalchemy as sa

from benchmarks.__main__ import others
from benchmarks.live.__main__ import _postgres
from benchmarks.live.ratios import HERE, environment
from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import SqlStore, open_store

#: Words at random, as many as a language has that people use: repeated sentences would be compressed to nothing.
WORDS = tuple("".join(Random(k).choices("etaoinshrdlucmfwypvbgk", k=2 + k % 9)) for k in range(4000))
LENGTHS, PAIRS = (20, 200, 2000), 500
TABLES = ("events", "tasks", "payloads")
HEADER = "| store | text | version | bytes per task | adding a task, CPU and time | a pair, CPU and time |"


def pairs(commands: Commands, worker: str, many: int) -> None:
    """Some labels, as workers give them."""
    for _ in range(many):
        lease = commands.ask(worker)
        assert lease
        commands.tell(lease.id, "1")


def measured(url: str, rows: int, length: int) -> dict[str, float]:
    """The figures of the version that is imported, on a database that is empty."""
    store = open_store(url)
    assert isinstance(store, SqlStore)
    service = CampaignService(store)
    random = Random(length)
    texts = [" ".join(random.choices(WORDS, k=2 + length // 5))[:length] for _ in range(rows)]
    begun = time.perf_counter(), time.process_time()
    tasks = ({"id": f"row{k}", "text": text} for k, text in enumerate(texts))
    id = service.create(CampaignSettings(budget=10**6, policy="okg-pending"), tasks=tasks).id
    added = time.perf_counter(), time.process_time()
    for k in range(PAIRS // 5):
        service.run(id, lambda commands, k=k: pairs(commands, f"ann {k % 10}", 5))  # type: ignore[misc]
    labelled = time.perf_counter(), time.process_time()
    figures = {
        "add_ms": 1e3 * (added[0] - begun[0]) / rows, "add_cpu_ms": 1e3 * (added[1] - begun[1]) / rows,
        "pair_ms": 1e3 * (labelled[0] - added[0]) / PAIRS, "pair_cpu_ms": 1e3 * (labelled[1] - added[1]) / PAIRS,
        "bytes": size(store) / rows,
    }  # fmt: skip
    service.close()
    return figures


def size(store: SqlStore) -> int:
    """Bytes of the tables in which payloads are, with their indexes."""
    with store.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            found = connection.execute(
                sa.text("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE c.relname = ANY(:names)"),
                {"names": list(TABLES)},
            )
        else:
            found = connection.execute(
                sa.text(
                    "SELECT sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name "
                    "WHERE s.aggregate = 1 AND m.tbl_name IN ('events', 'tasks', 'payloads')"
                )
            )
        return int(found.scalar_one())


def run(tree: Path, url: str, rows: int, length: int) -> dict[str, float]:
    """The figures of the version in ``tree``."""
    code = "import sys, json; from benchmarks.live.payloads import measured; "
    code += "print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))"
    command = [sys.executable, "-c", code, url, str(rows), str(length)]
    made = subprocess.run(command, env=environment(tree), check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(made.stdout)
    return figures


def main() -> None:
    """All lengths, both versions in turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.payloads", description=__doc__)
    parser.add_argument("--before", type=Path, help="another source tree")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    trees = {"before": options.before.resolve()} if options.before else {}
    trees["after"] = HERE
    loaded = others()
    sys.stdout.write(HEADER + "\n" + "|---" * (HEADER.count(" | ") + 1) + "|\n")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = _postgres(folder) if options.store == "postgresql" else ""
        for length in LENGTHS:
            turns: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
            for turn in range(options.rounds):
                for name, tree in trees.items():
                    url = (
                        new_database(server, f"{name}{length}n{turn}")
                        if server
                        else f"{folder}/{name}{length}n{turn}.db"
                    )
                    turns[name].append(run(tree, url, options.rows, length))
            for name, some in turns.items():
                sys.stdout.write(line(options.store, length, name, some) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{options.rows:,} tasks, medians of {options.rounds} turns; load when it began: {loaded}.\n")


def new_database(server: str, name: str) -> str:
    """An empty database of a PostgreSQL server."""
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


def line(store: str, length: int, name: str, turns: list[dict[str, Any]]) -> str:
    """A row of the table."""
    middle = {key: median(turn[key] for turn in turns) for key in turns[0]}
    return (
        f"| {store} | {length} | {name} | {middle['bytes']:.0f} "
        f"| {middle['add_cpu_ms']:.3f}, {middle['add_ms']:.3f} ms "
        f"| {middle['pair_cpu_ms']:.2f}, {middle['pair_ms']:.2f} ms |"
    )


if __name__ == "__main__":
    main()
