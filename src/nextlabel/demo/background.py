"""The service in a thread of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from nextlabel.errors import SolverError


@contextmanager
def served(app: FastAPI, host: str, port: int) -> Iterator[None]:
    """Serve the app on that port inside the block."""
    config = uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="service", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise SolverError(f"the service did not start at {host}:{port}.", "Give another --port.")
            time.sleep(0.02)
        yield
    finally:
        server.should_exit = True
        thread.join()
