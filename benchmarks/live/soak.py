"""``python -m benchmarks.live.soak [--minutes 30] [--store postgresql] [--log FILE]``: everything at once, for long.

Workers on three campaigns (tables, ranked tasks, workers who are learnt) ask, tell, release, renew, take back, come
late, are blocked and have their links revoked; a requester imports tasks, pauses, resumes and changes campaigns, and
drops and restores labels; two dashboards and a program read everything that there is to read.

Said are the statuses of all requests, what was answered with 503 and when, the memory of the service over time, and
whether replaying the logs leads to the same state. The exit code is 1 if a request was answered with a 5xx other than a
503 with Retry-After, if memory grew by more than a tenth in the second half, or if a state is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import httpx

from benchmarks.__main__ import others
from benchmarks.live.faults import Postgres
from benchmarks.live.imports import memory_mb
from benchmarks.live.server import Server
from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.service.access import first_token
from nextlabel.store.sql import open_store

TASKS, BUDGET, LEASE_S = 8_000, 30_000, 20.0
#: Seconds between two asks of a worker, reads of a requester, changes, and imports.
THINK_S, READ_S, CHANGE_S, IMPORT_S = 0.6, 2.0, 15.0, 90.0
CAMPAIGNS: dict[str, dict[str, Any]] = {
    "tables": {"policy": "okg-pending"},
    "ranked": {"policy": "okg"},
    "learnt": {"policy": "crowd"},
}


def prepare(url: str, labels: int) -> str:
    """The campaigns, each with so many labels; returns the requester's token."""
    service = CampaignService(open_store(url))
    for id, settings in CAMPAIGNS.items():
        config = CampaignSettings(budget=BUDGET, labels=("no", "yes"), lease_seconds=LEASE_S, **settings)
        service.create(config, id, tasks=(task(id, k) for k in range(TASKS)))
        for first in range(0, labels, 200):
            service.run(id, lambda commands, first=first: answer(commands, range(first, min(first + 200, labels))))  # type: ignore[misc]
    token = first_token(service.store)
    service.close()
    assert token is not None
    return token


def answer(commands: Commands, numbers: range) -> None:
    """Labels of workers in turn, as they were given before the soak."""
    for number in numbers:
        lease = commands.ask(f"{commands.state.row.id}-early{number % 12}")
        assert isinstance(lease, Lease)
        commands.tell(lease.id, "yes" if number % 3 else "no")


def task(campaign: str, k: int) -> dict[str, Any]:
    """A task; those of the ranked campaign have a hundred different priors."""
    prior = {"score": 0.2 + 0.006 * (k % 100)} if campaign == "ranked" else {}
    return {"id": f"{campaign}-{k}", "text": f"Is item {k} of {campaign} good?", **prior}


def _kind(path: str) -> str:
    """A path without what is different in every request."""
    return re.sub(r"/leases/[^/]+", "/leases/...", path.split("?")[0])


def _detail(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["detail"])
    except (ValueError, KeyError):
        return "a page"


class Soak:
    """What goes on at once, and what came of it."""

    def __init__(self, server: Server, token: str, pace: float = 1.0) -> None:
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.memory: list[float] = []
        self.slowest: list[tuple[float, str]] = []
        self.over = asyncio.Event()
        self._begun = time.monotonic()
        self._server, self._token, self._pace = server, token, pace
        self._imported = TASKS
        self._program, self._browser = (
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=60) for _ in range(2)
        )

    async def call(self, who: str, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        """A request; what it was answered with is counted."""
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})} if token else more.pop("headers", {})
        client = self._browser if who == "dashboard" else self._program
        begun = time.monotonic()
        try:
            reply = await client.request(method, path, headers=headers, **more)
        except httpx.TransportError as error:
            self.wrong.append(f"minute {self._minute(begun):.0f}, {method} {path}: {error!r}")
            return httpx.Response(503)
        self.slowest.append((time.monotonic() - begun, f"minute {self._minute(begun):.0f}, {who} {method} {path}"))
        self.slowest = sorted(self.slowest, reverse=True)[:10]
        self.statuses[who, reply.status_code] += 1
        if reply.status_code == 503:
            self.refused[f"minute {self._minute(begun):.0f}, {who} {method} {_kind(path)}: {_detail(reply)}"] += 1
        if reply.status_code >= 500 and not (reply.status_code == 503 and "retry-after" in reply.headers):
            self.wrong.append(f"{method} {path}: {reply.status_code} {reply.text[:200]}")
        return reply

    def _minute(self, at: float) -> float:
        return (at - self._begun) / 60

    async def api(self, method: str, path: str, **more: Any) -> httpx.Response:
        """A request of the requester's program."""
        return await self.call("program", method, f"/api/v1{path}", self._token, **more)

    async def worker(self, campaign: str, name: str) -> None:
        """Ask, and do with the lease what people do."""
        random, token = Random(name), await self._link(campaign, name)
        while not self.over.is_set():
            reply = await self.call("worker", "POST", f"/api/v1/campaigns/{campaign}/ask", token, json={})
            if reply.status_code in (401, 403):
                token = await self._link(campaign, name)
            lease = reply.json().get("lease") if reply.status_code == 200 else None
            if lease is not None:
                await self._use(random, token, f"/api/v1/leases/{lease['id']}")
            await self._pause(random.uniform(0.5, 1.5) * THINK_S / self._pace)

    async def _use(self, random: Random, token: str, lease: str) -> None:
        async def move(what: str, body: dict[str, str] | None = None) -> None:
            await self.call("worker", "POST", f"{lease}/{what}", token, json=body or {})

        label, kind = {"label": random.choice(("no", "yes"))}, random.random()
        if kind < 0.06:
            await move("release")
        elif kind < 0.12:
            await move("renew")
            await move("tell", label)
        elif kind < 0.2:
            await move("tell", label)
            await move("undo")
            await move("tell", label)
        elif kind < 0.22:
            await self._pause(LEASE_S + 2)
            await move("tell", label)
        elif kind < 0.98:
            await move("tell", label)  # the others let it expire

    async def _link(self, campaign: str, name: str) -> str:
        reply = await self.api("POST", f"/campaigns/{campaign}/links", json={"workers": [name]})
        while reply.status_code != 200:
            await self._pause(1.0)
            reply = await self.api("POST", f"/campaigns/{campaign}/links", json={"workers": [name]})
        return str(reply.json()["links"][0]["token"])

    async def change(self, random: Random) -> None:
        """Pause and resume, change the budget, revoke a worker's link, block a worker or drop their labels."""
        id = random.choice(list(CAMPAIGNS))
        kind, worker = random.randrange(5), f"{id}-w{random.randrange(8)}"
        if kind == 0:
            await self.api("POST", f"/campaigns/{id}/pause")
            await self._pause(1.0)
            await self.api("POST", f"/campaigns/{id}/resume")
        elif kind == 1:
            await self.api("PATCH", f"/campaigns/{id}", json={"budget": BUDGET + random.randrange(1000)})
        elif kind == 2:
            await self.api("POST", f"/campaigns/{id}/links/revoke", json={"workers": [worker]})
        elif kind == 3:
            for standing in ("blocked", "active"):
                await self.api(
                    "POST", f"/campaigns/{id}/workers/standing", json={"worker": worker, "standing": standing}
                )
                await self._pause(3.0)
        else:
            for what in ("drop-labels", "restore-labels"):
                await self.api("POST", f"/campaigns/{id}/workers/{what}", json={"worker": worker})
                await self._pause(3.0)

    async def bring_in(self, random: Random) -> None:
        """An import in steps, sent twice: the second time nothing is added."""
        id, first = random.choice(("tables", "ranked")), self._imported
        self._imported += 2_500
        rows = [task(id, k) for k in range(first, self._imported)]
        columns = list(rows[0])
        text = "\n".join([",".join(columns), *(",".join(str(row[name]) for name in columns) for row in rows)])
        headers = {"Content-Type": "text/csv", "Idempotency-Key": f"import {first}"}
        for _ in range(2):
            await self.api("POST", f"/campaigns/{id}/tasks", content=text.encode(), headers=headers)

    async def read(self, random: Random) -> None:
        """A page of everything that a program reads."""
        id = random.choice(list(CAMPAIGNS))
        what = random.choice(["", "/workers", "/events?after=100", "/results", "/labels", "/certificate", "/imports"])
        await self.api("GET", f"/campaigns/{id}{what}")
        await self.api("GET", "/campaigns")
        await self.call("program", "GET", "/metrics", self._token)

    async def watch(self, random: Random) -> None:
        """A dashboard: the pages that a requester opens, with what they ask for every few seconds."""
        if not self._browser.cookies:
            await self.call("dashboard", "POST", "/sign-in", data={"token": self._token, "next": "/"})
        id = random.choice(list(CAMPAIGNS))
        for path in ("/", f"/campaigns/{id}", f"/campaigns/{id}/live?after=1", f"/campaigns/{id}/tasks/7"):
            await self.call("dashboard", "GET", path)

    async def every(self, seconds: float, what: Callable[[Random], Awaitable[None]]) -> None:
        """Do something again and again."""
        random = Random(what.__name__)
        while not self.over.is_set():
            await self._pause(random.uniform(0.5, 1.5) * seconds / self._pace)
            await what(random)

    async def measure(self, minutes: float) -> None:
        """Sample the memory of the service until the time is over."""
        assert self._server.process is not None
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            await self._pause(5.0)
            self.memory.append(memory_mb(self._server.process.pid))
        self.over.set()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.over.wait(), seconds)
        except TimeoutError:
            return

    async def run(self, minutes: float, workers: int) -> None:
        """Everything at once."""
        names = [(id, f"{id}-w{k}") for k in range(-(-workers // 3)) for id in CAMPAIGNS][:workers]
        jobs = [self.worker(id, name) for id, name in names]
        jobs += [self.every(READ_S, self.read), self.every(READ_S, self.watch), self.every(READ_S, self.watch)]
        jobs += [self.every(CHANGE_S, self.change), self.every(IMPORT_S, self.bring_in), self.measure(minutes)]
        await asyncio.gather(*jobs)
        for client in (self._program, self._browser):
            await client.aclose()


def main() -> None:
    """Run it and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.soak", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--labels", type=int, default=0, help="labels that each campaign has when it begins")
    parser.add_argument("--pace", type=float, default=1.0, help="everything happens so many times as often")
    parser.add_argument("--log", type=Path, help="where to leave the log of the service")
    options = parser.parse_args()
    loaded = others()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        url = Postgres(folder).url if options.store == "postgresql" else f"sqlite:///{folder / 'labels.db'}"
        token = prepare(url, options.labels)
        server = Server(url, log=folder / "log")
        server.start()
        soak = Soak(server, token, options.pace)
        try:
            asyncio.run(soak.run(options.minutes, options.workers))
        finally:
            server.stop()
            if options.log is not None:
                shutil.copy(folder / "log", options.log)
            for line in (folder / "log").read_text(encoding="utf-8").splitlines()[-20:]:
                sys.stderr.write(f"{line[:300]}\n")
        service = CampaignService(open_store(url))
        right = {id: service[id].verify().right for id in CAMPAIGNS}
        events = sum(service.store.row(id).seq for id in CAMPAIGNS)
        service.close()
    quarters = [median(soak.memory[k * len(soak.memory) // 4 : (k + 1) * len(soak.memory) // 4]) for k in range(4)]
    say = sys.stdout.write
    say(f"{options.store}, {options.minutes:g} minutes, {options.workers} workers, {events:,} events; ")
    say(f"load of the machine when it began: {loaded}\n")
    say(f"requests: {', '.join(f'{who} {code}: {n:,}' for (who, code), n in sorted(soak.statuses.items()))}\n")
    say(f"memory of the service, medians of the quarters: {', '.join(f'{mb:.0f} MB' for mb in quarters)}\n")
    say(f"state = replay: {right}\n")
    for what, n in soak.refused.items():
        say(f"503: {what}, {n} times\n")
    say(f"slowest: {'; '.join(f'{what} {seconds:.1f} s' for seconds, what in soak.slowest)}\n")
    for line in soak.wrong[:20]:
        say(f"WRONG {line}\n")
    flat = quarters[3] <= 1.1 * quarters[1]
    sys.exit(0 if flat and not soak.wrong and all(right.values()) else 1)


if __name__ == "__main__":
    main()
