"""A real MLflow server in a process of its own, with traces of its own client, to be used and killed.

It lives in a virtual environment of its own (``.venv-mlflow``, made by ``make test-mlflow``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from benchmarks.live.server import free_port

PROGRAMS = Path(__file__).parents[2] / ".venv-mlflow" / "bin"
PASSWORD = "a-long-password-1"
#: Logs traces as an application does: a span with inputs and outputs, and one inside it.
LOG = """
import json, sys, mlflow
experiment, pairs = json.load(sys.stdin)
mlflow.set_experiment(experiment)
for question, answer in pairs:
    with mlflow.start_span("answer") as span:
        span.set_inputs({"question": question})
        with mlflow.start_span("look up") as inner:
            inner.set_outputs(["a page"])
        span.set_outputs(answer)
mlflow.flush_trace_async_logging()
"""


class MLflowServer:
    """``mlflow server`` on a port, with its database in a folder; with ``auth`` it asks for admin's password."""

    def __init__(self, folder: Path, auth: bool = False) -> None:
        self.folder, self.port, self._auth = folder, free_port(), auth
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "PYTHONPATH"))}
        self._environment = {
            **kept, "MLFLOW_TRACKING_USERNAME": "admin", "MLFLOW_TRACKING_PASSWORD": PASSWORD,
            "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_TRACKING_URI": self.url,
            "MLFLOW_FLASK_SERVER_SECRET_KEY": "the same after a restart",
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, patience: float = 600.0) -> None:
        """Start and wait until it answers."""
        begun = time.monotonic()
        command = [
            str(PROGRAMS / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
            "--backend-store-uri", f"sqlite:///{self.folder / 'mlflow.db'}",
            "--artifacts-destination", str(self.folder / "artifacts"),
            *(["--app-name", "basic-auth"] if self._auth else []),
        ]  # fmt: skip
        with (self.folder / "mlflow.log").open("ab") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env=self._environment, cwd=self.folder, start_new_session=True
            )
        while time.monotonic() - begun < patience:
            if self.process.poll() is not None:
                raise RuntimeError(f"MLflow ended: {(self.folder / 'mlflow.log').read_text()[-2000:]}")
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
        raise RuntimeError("MLflow did not answer")

    def kill(self) -> None:
        """kill -9 of the server and all its processes."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def log(self, experiment: str, pairs: Sequence[tuple[Any, Any]]) -> None:
        """One trace for each question with its answer."""
        subprocess.run(
            [str(PROGRAMS / "python"), "-c", LOG], input=json.dumps([experiment, pairs]).encode(), check=True,
            env=self._environment, capture_output=True,
        )  # fmt: skip
