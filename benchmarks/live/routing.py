"""``python -m benchmarks.live.routing``: what a shorter way to the busiest routes would gain, for docs/decisions/0022.

Three services run side by side on campaigns alike, whose policy needs no tables, and take turns: ``FastAPI`` finds and
calls the endpoints of ``service.routes.work`` itself, ``route class`` calls them by a FastAPI route class without
dependency injection, and ``WorkRouter`` is the service as it is. Load of 1, 8 and 64 workers. The processor time of the
service per request depends least on what else the machine does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from statistics import median
from typing import Any

import uvicorn
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from benchmarks.__main__ import others, processor
from benchmarks.live.campaign import prepare
from benchmarks.live.crowd import Account, crowd
from benchmarks.live.server import free_port
from nextlabel.application.service import CampaignService
from nextlabel.service.app import create_app
from nextlabel.service.routes import work
from nextlabel.store.sql import open_store

VARIANTS = ("FastAPI", "route class", "WorkRouter")
WORKERS = (1, 8, 64)


class PlainRoute(APIRoute):
    """Calls ``endpoint(id, request)`` without dependency injection."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        (parameter,) = self.param_convertors
        endpoint = self.endpoint

        async def handler(request: Request) -> Response:
            return await endpoint(request.path_params[parameter], request)

        return handler


def serve(variant: str, url: str, port: int) -> None:
    """One service, until it is killed."""
    if variant == "route class":
        for route in work.router.routes:
            route.__class__ = PlainRoute
    app = create_app(CampaignService(open_store(url)), close_service=True)
    if variant != "WorkRouter":
        app.work_router = None
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", log_config=None, access_log=False)


def start(variant: str, url: str) -> tuple[subprocess.Popen[bytes], int]:
    """A service of its own process that answers."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.live.routing", "--serve", variant, url, str(port)])
    for _ in range(3000):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2).close()
            return process, port
        except OSError:
            assert process.poll() is None, f"the service {variant!r} ended"
            time.sleep(0.02)
    raise RuntimeError(f"the service {variant!r} did not answer")


def processor_seconds(process: subprocess.Popen[bytes]) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantiles(account: Account, used: float) -> tuple[float, float, float, float]:
    """Processor time per request, requests per second, and the median and 99% quantile of an ask; in milliseconds."""
    asks, requests = sorted(account.ask_s), len(account.ask_s) + len(account.tell_s)
    low, high = asks[len(asks) // 2], asks[int(0.99 * (len(asks) - 1))]
    return 1e3 * used / requests, requests / account.seconds, 1e3 * low, 1e3 * high


def compare(pairs: int, rounds: int, crowds: list[int]) -> None:
    """The table: medians over the rounds."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        services = {}
        for variant in VARIANTS:
            url = str(Path(folder) / f"{variant.replace(' ', '-')}.db")
            id, tokens = prepare(url, 20_000, 60_000, max(WORKERS), policy="okg-pending")
            services[variant] = (id, tokens, *start(variant, url))
        print("| workers | way to the route | service's CPU per request | requests per second | ask p50 | ask p99 |")
        print("|---|---|---|---|---|---|")
        try:
            for workers in crowds:
                found: dict[str, list[tuple[float, float, float, float]]] = {variant: [] for variant in VARIANTS}
                for turn in range(rounds + 1):
                    for variant in VARIANTS:
                        id, tokens, process, port = services[variant]
                        some = dict(list(tokens.items())[:workers])
                        before = processor_seconds(process)
                        account = asyncio.run(crowd("127.0.0.1", [port], id, some, most=pairs))
                        if turn:  # the first turn warms up
                            found[variant].append(quantiles(account, processor_seconds(process) - before))
                for variant in VARIANTS:
                    cpu, requests, p50, p99 = (median(column) for column in zip(*found[variant], strict=True))
                    figures = f"{cpu:.3f} ms | {requests:,.0f} | {p50:.2f} ms | {p99:.2f} ms"
                    print(f"| {workers} | {variant} | {figures} |", flush=True)
        finally:
            for *_, process, _ in services.values():
                process.kill()
                process.wait()


def main() -> None:
    """Either side."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.routing", description=__doc__)
    parser.add_argument("--serve", nargs=3, metavar=("VARIANT", "URL", "PORT"), help="run one service")
    parser.add_argument("--pairs", type=int, default=600, help="asks and tells of one turn")
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS), help="workers at once")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each service")
    options = parser.parse_args()
    if options.serve:
        variant, url, port = options.serve
        serve(variant, url, int(port))
        return
    before = others()
    compare(options.pairs, options.rounds, options.workers)
    print(f"\n{processor()}, {os.cpu_count()} cores, load of the machine when it began: {before}.")


if __name__ == "__main__":
    main()
