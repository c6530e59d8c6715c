"""The real service in processes of its own, to be loaded and killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path


def free_port() -> int:
    """A port that nobody listens on, from below those that systems hand out by themselves: nobody takes it later."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """``nextlabel serve`` on a port."""

    def __init__(
        self, url: str, port: int | None = None, *flags: str, log: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.url, self.port, self.flags, self.log = url, port or free_port(), flags, log
        self._environment = dict(os.environ) if environment is None else environment
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, patience: float = 300.0) -> float:
        """Start and wait until it answers; returns the seconds it took."""
        begun = time.perf_counter()
        command = [sys.executable, "-c", "from nextlabel.cli.app import main; main()", "serve",
                   "--port", str(self.port), "--log-level", "warning", *self.flags]  # fmt: skip
        with (self.log or Path(os.devnull)).open("ab") as out:
            environment = {**self._environment, "NEXTLABEL_DB": self.url}  # not an argument: it may have a password
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True)
        while time.perf_counter() - begun < patience:
            if self.process.poll() is not None:
                raise RuntimeError(f"the service ended with {self.process.returncode}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2) as reply:
                    json.load(reply)
                return time.perf_counter() - begun
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the service did not answer")

    def kill(self) -> None:
        """kill -9 of the service and all its processes."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop it as Ctrl-C does."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.kill()
