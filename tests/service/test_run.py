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
from benchmarks.live.server import free_port

from nextlabel.client import Client
from nextlabel.errors import InputError
from nextlabel.service.run import serve
from nextlabel.service.settings import ServiceSettings
from service_fixtures import PATIENCE_S, QUICK

PROGRAM = """
import sys
from nextlabel.service.run import serve
from nextlabel.service.settings import ServiceSettings
if __name__ == "__main__":
    settings = ServiceSettings(port={port}, processes={workers})
    serve(settings, {url!r}, show_token=lambda token: print(token, flush=True))
"""


@contextmanager
def served(folder: Path, workers: int, token: str = "") -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """The service on a database, which prints its token at its first start."""
    port = free_port()
    program = folder / "program.py"
    program.write_text(PROGRAM.format(port=port, url=f"sqlite:///{folder / 'a.db'}", workers=workers))
    process = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        token = token or process.stdout.readline().strip()
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE_S
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
            id = client.create(budget=20, **settings).id
            client.add_tasks(id, [{"id": f"t{k}"} for k in range(20)])
            for k in range(20):
                lease = client.ask(id, worker=f"w{k}")
                while not lease and lease.reason == "preparing":  # kernels may still be compiled
                    time.sleep(lease.retry_after)
                    lease = client.ask(id, worker=f"w{k}")
                assert lease
                client.tell(lease.id, "yes")
            assert client.status(id).closed_reason == "budget_spent"
            assert client.certificate(id).left == 0
        page = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}).text
        assert 'nextlabel_tells_total{status="labelled"} 20.0' in page  # of all processes together
        until = time.monotonic() + PATIENCE_S
        while httpx.get(f"{url}/readyz").status_code != 200:  # kernels may still be compiled
            assert time.monotonic() < until
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    assert any(line.get("message", "").startswith("ready after") for line in lines)
    requests = [line for line in lines if "method" in line]
    assert sum(line["path"].endswith("/tell") for line in requests) == 20
    assert {line["status"] for line in requests} <= {200, 201}
    assert "Traceback" not in errors


def test_a_signal_in_the_middle_of_an_import_and_the_request_again(tmp_path: Path) -> None:
    many = 6_000
    body = "id,text\n" + "".join(f"t{k},text {k}\n" for k in range(many))
    headers = {"idempotency-key": "once"}
    with served(tmp_path, 1) as (url, token, process):
        headers["authorization"] = f"Bearer {token}"
        with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=PATIENCE_S) as http:
            assert http.post("/campaigns", json={**QUICK, "id": "demo"}).status_code == 201
            headers["content-type"] = "text/csv"
            begun = http.post("/campaigns/demo/tasks", content=body, headers={**headers, "prefer": "respond-async"})
            assert begun.status_code == 202
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
    with (
        served(tmp_path, 1, token) as (url, token, process),
        httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=PATIENCE_S) as http,
    ):
        assert http.get("/campaigns/demo").json()["tasks"] in (0, many)
        until = time.monotonic() + PATIENCE_S
        while (sent := http.post("/campaigns/demo/tasks", content=body)).status_code == 503:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert sent.status_code == 200 and sent.json()["tasks"] == many


def test_what_cannot_be_served() -> None:
    with pytest.raises(InputError, match="share a store in memory"):
        serve(ServiceSettings(processes=2), "memory:")


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 70_000}, {"host": "a b"}, {"log_level": "loud"}, {"max_body_bytes": 0}, {"public_url": "labels.org"},
        {"port": "many"}, {"processes": 0}, {"unknown": 1},
    ],
)  # fmt: skip
def test_settings_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        ServiceSettings(**wrong)


def test_settings_come_from_arguments_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXTLABEL_PORT", "82")
    monkeypatch.setenv("NEXTLABEL_OPEN_METRICS", "true")
    assert (ServiceSettings().port, ServiceSettings(port=81).port, ServiceSettings(port=None).port) == (82, 81, 82)
    assert ServiceSettings().open_metrics
    monkeypatch.setenv("NEXTLABEL_PORT", "many")
    with pytest.raises(InputError, match=r"port 'many' is not allowed.*NEXTLABEL_PORT"):
        ServiceSettings()


def test_another_process_reads_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ServiceSettings(public_url="https://labels.example.org/", port=81)
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    assert ServiceSettings() == settings
    monkeypatch.undo()
    assert settings.cookie_secure is True
    assert settings.base_url == "https://labels.example.org"
    assert ServiceSettings(host="::1").base_url == "http://[::1]:8000"
    assert ServiceSettings().cookie_secure is False
