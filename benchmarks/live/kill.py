"""kill -9 of the service at random points of a crowd's work; it is started again at once on the same port."""

from __future__ import annotations

import asyncio
from random import Random

from benchmarks.live.crowd import Account, crowd
from benchmarks.live.server import Server


async def killed(
    server: Server, campaign: str, tokens: dict[str, str], *, kills: int, random: Random, most: int
) -> tuple[Account, int]:
    """Kill so many times, each time after at most ``most`` further labels, then let the crowd finish."""
    await asyncio.to_thread(server.start)
    account = Account()
    working = asyncio.create_task(crowd("127.0.0.1", [server.port], campaign, tokens, account=account))
    done = 0
    for _ in range(kills):
        goal = len(account.labels) + random.randint(1, most)
        while len(account.labels) < goal and not working.done():
            await asyncio.sleep(0.001)
        if working.done():
            break
        server.kill()
        done += 1
        await asyncio.to_thread(server.start)
    await working
    return account, done
