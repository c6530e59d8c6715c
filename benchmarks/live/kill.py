"""kill -9 of the service at random moments while a crowd works; it is started again at once on the same port."""

from __future__ import annotations

import asyncio
from random import Random

from benchmarks.live.crowd import Account, crowd
from benchmarks.live.server import Server


async def killed(
    server: Server, campaign: str, tokens: dict[str, str], *, kills: int, random: Random, least: float, most: float
) -> tuple[Account, int]:
    """Kill so many times, ``least`` to ``most`` seconds after each start, then let the crowd finish."""
    await asyncio.to_thread(server.start)
    account = Account()
    working = asyncio.create_task(crowd("127.0.0.1", [server.port], campaign, tokens, account=account))
    done = 0
    while done < kills and not working.done():
        await asyncio.sleep(random.uniform(least, most))
        if working.done():
            break
        server.kill()
        done += 1
        await asyncio.to_thread(server.start)
    await working
    return account, done
