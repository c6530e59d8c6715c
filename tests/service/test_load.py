"""The real service under load, in processes of its own: concurrent workers, kill -9, several processes on one database.

``python -m benchmarks.live`` does the same at full size.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from benchmarks.live.campaign import judge, prepare
from benchmarks.live.crowd import Account, crowd
from benchmarks.live.kill import killed
from benchmarks.live.server import Server

from stores import postgres_url

WORKERS = 64


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'load.db'}" if request.param == "sqlite" else postgres_url("load")


def test_64_workers_at_once(url: str, tmp_path: Path) -> None:
    id, tokens = prepare(url, 130, 390, WORKERS, policy="okg-pending")
    server = Server(url, log=tmp_path / "log")
    server.start()
    try:
        account = asyncio.run(crowd("127.0.0.1", [server.port], id, tokens))
    finally:
        server.stop()
    verdict = judge(url, id, account)
    assert verdict.good and verdict.spent == 390 == len(account.labels)


def test_kill_9_under_load(url: str, tmp_path: Path) -> None:
    """Whatever was acknowledged is there, the budget is exact, and the state is what the events say."""
    id, tokens = prepare(url, 100, 300, 24, policy="okg-pending")
    server = Server(url, log=tmp_path / "log")
    account, kills = asyncio.run(killed(server, id, tokens, kills=2, random=Random(1), most=100))
    server.stop()
    assert kills == 2 and account.broken > 0
    verdict = judge(url, id, account)
    assert verdict.good and verdict.spent == 300
    assert len(account.labels) == 300  # everything was sent again until it was acknowledged


def test_two_processes_on_one_postgresql(tmp_path: Path) -> None:
    url = postgres_url("two")
    id, tokens = prepare(url, 100, 300, 32, policy="okg-pending")
    servers = [Server(url, log=tmp_path / f"log{k}") for k in range(2)]
    for server in servers:
        server.start()
    try:
        account: Account = asyncio.run(crowd("127.0.0.1", [server.port for server in servers], id, tokens))
    finally:
        for server in servers:
            server.stop()
    verdict = judge(url, id, account)
    assert verdict.good and verdict.spent == 300 == len(account.labels)
