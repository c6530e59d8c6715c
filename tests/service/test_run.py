"""``serve`` as a user runs it: a process of its own, one or several, until a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from nextlabel.client import Client
from nextlabel.errors import InputError
from nextlabel.service.run import serve
from nextlabel.service.settings import Settings
from service_fixtures import QUICK, free_port

PROGRAM = """
import sys
from nextlabel.service.run import serve
from nextlabel.service.settings import Settings
if __name__ == "__main__":
    serve(Settings(port={port}), {url!r}, workers={workers}, show_token=lambda token: print(token, flush=True))
"""


@contextmanager
def served(folder: Path, workers: int) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    port = free_port()
    program = folder / "program.py"
    program.write_text(PROGRAM.format(port=port, url=f"sqlite:///{folder / 'a.db'}", workers=workers))
    process = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        token = process.stdout.readline().strip()
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + 180
        while True:
            try:
                if httpx.get(f"{url}/healthz").status_code == 200:
                    break
            except httpx.TransportError:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.05)
        yield url, token, process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_serve_until_a_signal(tmp_path: Path, workers: int) -> None:
    settings = {key: value for key, value in QUICK.items() if key != "budget"}
    with served(tmp_path, workers) as (url, token, process):
        with Client(url, token) as client:
            id = client.create(budget=20, **settings)["id"]
            client.add_tasks(id, [{"id": f"t{k}"} for k in range(20)])
            for k in range(20):
                lease = client.ask(id, worker=f"w{k}")
                assert lease
                client.tell(lease.id, "yes")
            assert client.status(id)["closed_reason"] == "budget_spent"
            assert client.certificate(id)["left"] == 0
        page = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}).text
        assert 'nextlabel_tells_total{status="labelled"} 20.0' in page  # of all processes together
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    requests = [line for line in lines if "method" in line]
    assert sum(line["path"].endswith("/tell") for line in requests) == 20
    assert {line["status"] for line in requests} <= {200, 201}
    assert "Traceback" not in errors


def test_what_cannot_be_served() -> None:
    with pytest.raises(InputError, match="share a store in memory"):
        serve(Settings(), "memory:", workers=2)
    with pytest.raises(InputError, match="0 processes"):
        serve(Settings(), "memory:", workers=0)


@pytest.mark.parametrize(
    "wrong", [{"port": 70_000}, {"host": "a b"}, {"log_level": "loud"}, {"most_body": 0}, {"public_url": "labels.org"}]
)
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Settings(**wrong)  # type: ignore[arg-type]


def test_settings_go_over() -> None:
    settings = Settings(public_url="https://labels.example.org/", port=81)
    assert Settings.from_json(settings.to_json()) == settings
    assert settings.cookie_secure is True
    assert settings.base_url == "https://labels.example.org"
    assert Settings(host="::1").base_url == "http://[::1]:8000"
    assert Settings().cookie_secure is False
