"""A crowd that asks and tells over HTTP as fast as it can, sends everything again that was not acknowledged, and keeps
account of what was."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from zlib import crc32

from benchmarks.live.http import BROKEN, Connection

#: Reasons after which a worker goes home.
OVER = ("budget_spent", "finished", "nothing_left_for_you", "deadline_passed")
RETRY_S = 0.02


@dataclass
class Account:
    """What the service acknowledged: lease -> (task, worker, label, counted); seconds of asks and tells."""

    leases: dict[str, tuple[str, str]] = field(default_factory=dict)
    labels: dict[str, tuple[str, str, str, bool]] = field(default_factory=dict)
    ask_s: list[float] = field(default_factory=list)
    tell_s: list[float] = field(default_factory=list)
    broken: int = 0
    refused: int = 0
    started: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0


def label_of(task: str, worker: str) -> str:
    """What a worker says of a task, always the same."""
    return "yes" if crc32(f"{task}/{worker}".encode()) % 3 else "no"


async def work(
    host: str, ports: list[int], campaign: str, worker: str, token: str, account: Account, most: int | None
) -> None:
    """One worker: ask, tell, again and again; a broken connection is tried again on the next port."""
    turn = crc32(worker.encode())
    connection = Connection(host, ports[turn % len(ports)], token)

    async def post(path: str, body: dict[str, str] | None = None) -> dict[str, object]:
        nonlocal connection, turn
        while True:
            try:
                status, said = await connection.post(path, body)
            except BROKEN:
                account.broken += 1
                turn += 1
                connection = Connection(host, ports[turn % len(ports)], token)
                await asyncio.sleep(RETRY_S)
                continue
            if status == 503:
                account.refused += 1
                await asyncio.sleep(RETRY_S)
                continue
            assert status == 200, (status, said)
            return said

    while most is None or len(account.labels) < most:
        begun = time.perf_counter()
        said = await post(f"/api/v1/campaigns/{campaign}/ask")
        account.ask_s.append(time.perf_counter() - begun)
        lease = said["lease"]
        if lease is None:
            if said["reason"] in OVER:
                break
            await asyncio.sleep(RETRY_S)
            continue
        assert isinstance(lease, dict)
        account.leases[lease["id"]] = (lease["task"], worker)
        label = label_of(lease["task"], worker)
        begun = time.perf_counter()
        told = await post(f"/api/v1/leases/{lease['id']}/tell", {"label": label})
        account.tell_s.append(time.perf_counter() - begun)
        account.labels[lease["id"]] = (lease["task"], worker, label, bool(told["counted"]))
    connection.close()


async def crowd(
    host: str,
    ports: list[int],
    campaign: str,
    tokens: dict[str, str],
    most: int | None = None,
    account: Account | None = None,
) -> Account:
    """All workers at once, until there is nothing left for them or ``most`` labels were acknowledged."""
    account = account or Account()
    account.started = time.perf_counter()
    jobs = [work(host, ports, campaign, name, token, account, most) for name, token in tokens.items()]
    await asyncio.gather(*jobs)
    account.seconds = time.perf_counter() - account.started
    return account
