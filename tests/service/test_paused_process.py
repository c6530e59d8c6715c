"""A process that is stopped inside a transaction: others are told to come back, and go on without it or after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from benchmarks.live.campaign import prepare, snapshot
from benchmarks.live.server import Server

from nextlabel.application.service import CampaignService
from nextlabel.store.engine import LOCK_WAIT_S
from nextlabel.store.sql import open_store
from service_fixtures import PATIENCE_S
from stores import postgres_url

#: Asks a task and stops itself before the transaction ends.
PROGRAM = """
import os, signal, sys
from nextlabel.campaign.commands import Commands
from nextlabel.application.service import CampaignService
from nextlabel.errors import UnavailableError
from nextlabel.store import engine
from nextlabel.store.sql import open_store

engine.IDLE_TRANSACTION_S = 15.0  # less to wait for, and time enough for others to be refused

def stop(commands):
    commands.ask("stopped")
    print("inside", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)

service = CampaignService(open_store(sys.argv[1]))
try:
    service.run(sys.argv[2], stop)
    print("committed", flush=True)
except UnavailableError:
    print("refused", flush=True)
service.close()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'a.db'}" if request.param == "sqlite" else postgres_url("paused")


def ask(server: Server, id: str, token: str) -> tuple[httpx.Response, float]:
    begun = time.monotonic()
    headers = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{server.port}/api/v1/campaigns/{id}/ask"
    reply = httpx.post(address, headers=headers, timeout=PATIENCE_S)
    return reply, time.monotonic() - begun


def test_a_stopped_process_does_not_stop_the_others(url: str, tmp_path: Path) -> None:
    id, tokens = prepare(url, 50, 100, 8, policy="okg-pending")
    server = Server(url, log=tmp_path / "log")
    server.start()
    stopped = subprocess.Popen([sys.executable, "-c", PROGRAM, url, id], stdout=subprocess.PIPE, text=True)
    assert stopped.stdout is not None
    try:
        assert ask(server, id, tokens["w0"])[0].status_code == 200
        assert stopped.stdout.readline() == "inside\n"
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda token: ask(server, id, token), list(tokens.values())[1:]))
        # Without limits they would wait for as long as the other process is stopped: for ever.
        assert max(seconds for _, seconds in answers) < LOCK_WAIT_S
        for reply, _ in answers:
            assert reply.status_code == 503 and reply.headers["retry-after"] == "1"
            assert json.loads(reply.content)["detail"] == "the database is busy with another command."
        if url.startswith("postgresql"):  # the server ends the stopped transaction
            assert eventually(server, id, tokens["w1"])
        os.kill(stopped.pid, signal.SIGCONT)
        said, _ = stopped.communicate(timeout=PATIENCE_S)
        assert said == ("committed\n" if url.startswith("sqlite") else "refused\n")
        assert eventually(server, id, tokens["w2"])
    finally:
        stopped.kill()
        stopped.communicate()
        server.stop()
    campaign_service = CampaignService(open_store(url))
    before = snapshot(campaign_service, id)
    workers = sorted(lease.worker for lease in before["leases"])  # type: ignore[attr-defined]
    assert workers == (["stopped", "w0", "w2"] if url.startswith("sqlite") else ["w0", "w1", "w2"])
    campaign_service[id].rebuild()
    assert snapshot(campaign_service, id) == before
    campaign_service.close()


def eventually(server: Server, id: str, token: str) -> bool:
    """Ask as a client does, again and again while the service says so."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        reply, _ = ask(server, id, token)
        if reply.status_code == 200:
            return True
        assert reply.status_code == 503
        time.sleep(float(reply.headers["retry-after"]))
    return False
