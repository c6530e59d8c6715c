"""``python -m benchmarks.dashboard [--tasks 1000000] [--folder DIR]``: the dashboard's times with very many tasks.

A campaign on SQLite, some labels, then Chromium and plain requests. First paint is the browser's own entry
``first-contentful-paint``, counted from the navigation's start, without what browsers keep; ``largest`` is the last
piece of text that came. The table goes to stdout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from playwright.sync_api import sync_playwright

from nextlabel.application.service import CampaignService
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.service.access import first_token
from nextlabel.service.app import create_app
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.sql import open_store
from nextlabel.web.pages import mount_pages

LABELS, WORKERS = 3000, 40
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]  # fmt: skip
PAINT = """async () => {
  const painted = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
  while (painted() === undefined) await new Promise(done => setTimeout(done, 20));
  const paint = painted();
  const largest = await new Promise(done => {
    let last = paint;
    new PerformanceObserver(list => { last = list.getEntries().at(-1).startTime; })
      .observe({ type: 'largest-contentful-paint', buffered: true });
    setTimeout(() => done(last), 300);
  });
  const { responseStart, responseEnd } = performance.getEntriesByType('navigation')[0];
  return { paint, largest, first: responseStart, end: responseEnd };
}"""


def tasks(count: int) -> Iterator[dict[str, Any]]:
    for k in range(count):
        yield {"id": f"item-{k:07d}", "text": f"Text number {k} of a campaign that has very many of them."}


def built(campaign_service: CampaignService, count: int) -> str:
    """The campaign, with some labels."""
    begin = time.perf_counter()
    campaign_service.create(
        CampaignSettings(budget=3 * count, labels=("no", "yes"), name=f"{count:,} tasks", policy="index"), "many"
    )
    campaign_service.add_tasks("many", tasks(count))
    print(f"{count:,} tasks taken in: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    row = campaign_service.store.row("many")
    campaign_service.table_cache.prepare(row.config, campaign_service.store.classes("many"), row.rho).result()
    begin = time.perf_counter()
    for k in range(LABELS):
        lease = campaign_service["many"].ask(f"worker-{k % WORKERS}")
        assert isinstance(lease, Lease)
        campaign_service[lease.campaign].tell(lease.id, "yes" if k % 5 else "no")
    print(f"{LABELS:,} labels told: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    return "many"


def timed(call: Callable[[], Any], repeats: int = 7) -> tuple[float, float, float]:
    """First, median and worst milliseconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return times[0], statistics.median(times), max(times)


def requests(url: str, token: str, id: str) -> list[tuple[str, ...]]:
    """Times of the addresses, as plain requests."""
    rows = []
    with httpx.Client(base_url=url, timeout=120, headers={"origin": url}) as client:
        assert client.post("/sign-in", data={"token": token}).status_code == 303
        live: dict[str, Any] = {"after": 0, "seen": ""}

        def quiet() -> None:
            answer = client.get(f"/campaigns/{id}/live", params=live)
            if answer.status_code == 200:
                live.update(after=answer.json()["seq"], seen=answer.json()["seen"])

        def look(path: str) -> Callable[[], Any]:
            def call() -> None:
                answer = client.get(path)
                assert answer.status_code == 200, (path, answer.status_code)

            return call

        for name, call in (
            ("list", look("/")),
            ("campaign", look(f"/campaigns/{id}")),
            ("live, everything", look(f"/campaigns/{id}/live")),
            ("live, nothing new", quiet),
            ("task", look(f"/campaigns/{id}/tasks/0")),
            ("log, older", look(f"/campaigns/{id}?before=2000")),
            ("links", look(f"/campaigns/{id}/links")),
        ):
            rows.append((f"GET {name}", *(f"{ms:.0f} ms" for ms in timed(call))))
    return rows


def paints(url: str, token: str, id: str) -> list[tuple[str, ...]]:
    """Times in Chromium."""
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name, path in (("list", "/"), ("campaign", f"/campaigns/{id}")):
            seen: list[dict[str, float]] = []
            for _ in range(5):
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                page = context.new_page()
                page.goto(f"{url}/sign-in")
                page.get_by_label("Token").fill(token)
                page.get_by_role("button", name="Sign in").click()
                page.wait_for_url(f"{url}/")
                page.goto(url + path)
                seen.append(page.evaluate(PAINT))
                context.close()
            for key, what in (("paint", "first paint"), ("largest", "largest paint")):
                values = [one[key] for one in seen]
                shown = (values[0], statistics.median(values), max(values))
                rows.append((f"Chromium {name}, {what}", *(f"{ms:.0f} ms" for ms in shown)))
        browser.close()
    return rows


def background(url: str, token: str, id: str) -> list[tuple[str, ...]]:
    """Seconds after a cold look until the bound and the forecast are there."""
    begin = time.perf_counter()
    found: dict[str, float] = {}
    with httpx.Client(base_url=url, timeout=120, headers={"origin": url}) as client:
        assert client.post("/sign-in", data={"token": token}).status_code == 303
        while len(found) < 2 and time.perf_counter() - begin < 120:
            text = client.get(f"/campaigns/{id}").text
            if "No way of spending" in text:
                found.setdefault("bound", time.perf_counter() - begin)
            if "This policy is heading for" in text:
                found.setdefault("forecast", time.perf_counter() - begin)
            time.sleep(0.1)
    return [(f"{name} after the first look", f"{seconds:.1f} s", "", "") for name, seconds in found.items()]


@contextmanager
def served(campaign_service: CampaignService) -> Iterator[str]:
    """A service that has worked nothing out yet; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    app = create_app(campaign_service, ServiceSettings(port=port), pages=mount_pages)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="keep the database here and use it again")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="nextlabel-dashboard-"))
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "token"
    there = kept.exists()
    store = open_store(f"sqlite:///{folder / 'labels.db'}")
    campaign_service = CampaignService(store)
    token = kept.read_text() if there else first_token(store)
    assert token
    id = "many" if there else built(campaign_service, options.tasks)
    kept.write_text(token)
    size = store.row(id).tasks
    try:
        with served(campaign_service) as url:
            rows = background(url, token, id)
        with served(campaign_service) as url:  # again one that knows nothing yet
            rows += [*paints(url, token, id), *requests(url, token, id)]
    finally:
        campaign_service.close()
        if options.folder is None:
            shutil.rmtree(folder)
    print(f"{size:,} tasks on SQLite, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    for line in (("what", "first", "median", "worst"), ("---",) * 4, *rows):
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
