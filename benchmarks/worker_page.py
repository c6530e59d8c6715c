"""``python -m benchmarks.worker_page [--answers N]``: from a click on an answer to the next item, as a table.

The real service in a process of its own on a SQLite file, Chromium on the same machine, one worker. *In the page* is
when the next item is in the document and can be answered, *painted* the frame after it. *Over HTTP* is the same request
without a browser.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from playwright.sync_api import Browser

from benchmarks.__main__ import machine, others
from benchmarks.live.campaign import prepare
from benchmarks.live.server import Server

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser import DESKTOP, PHONE, at, launched

TASKS = 1000
#: One answer, timed inside the page, which takes none in the first 0.3 s of an item.
CLICK = """async () => {
  await new Promise(go => setTimeout(go, 330));
  const lease = () => document.querySelector("[data-lease]").dataset.lease;
  const before = lease();
  const begin = performance.now();
  const seen = new Promise(done => new MutationObserver((_, watch) => {
    if (lease() === before) return;
    watch.disconnect();
    done(performance.now() - begin);
  }).observe(document.getElementById("panel"), {childList: true, subtree: true}));
  document.querySelectorAll(".choice")[1].click();
  const inPage = await seen;
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return [inPage, performance.now() - begin];
}"""

Row = tuple[str, float, float, float]


def row(what: str, seconds: list[float]) -> Row:
    """Median, 95th percentile and largest, in milliseconds."""
    ms = 1000 * np.array(seconds)
    return what, float(np.median(ms)), float(np.percentile(ms, 95)), float(ms.max())


def by_http(base: str, link: str, answers: int) -> list[float]:
    """Answer and next item without a browser."""
    times = []
    with httpx.Client(base_url=base, headers={"accept": "application/json"}, follow_redirects=True) as http:
        lease = http.get(link).json()["lease"]
        address = next(cookie.path for cookie in http.cookies.jar)
        for _ in range(answers):
            begin = time.perf_counter()
            lease = http.post(address, data={"lease": lease, "answer": "1"}).json()["lease"]
            times.append(time.perf_counter() - begin)
    return times


def by_click(browser: Browser, link: str, answers: int, size: dict[str, int], slower: int) -> list[list[float]]:
    """The same by a browser on a processor so many times slower: in the page, and painted."""
    with at(browser, size) as page:
        page.goto(link)
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
        for _ in range(3):
            page.evaluate(CLICK)
        times = [page.evaluate(CLICK) for _ in range(answers)]
    return [[ms / 1000 for ms in column] for column in zip(*times, strict=True)]


def measure(answers: int) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/page.db"
        _, tokens = prepare(url, TASKS, 3 * TASKS, 3)
        server = Server(url)
        server.start()
        base = f"http://127.0.0.1:{server.port}"
        links = [f"{base}/w/{token}" for token in tokens.values()]
        try:
            rows = [row("over HTTP", by_http(base, links[0], answers))]
            with launched() as browser:
                for name, link, size, slower in (
                    ("desk", links[1], DESKTOP, 1),
                    ("phone, processor 4 times slower", links[2], PHONE, 4),
                ):
                    in_page, painted = by_click(browser, link, answers, size, slower)
                    rows += [row(f"{name}: in the page", in_page), row(f"{name}: painted", painted)]
        finally:
            server.stop()
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker_page", description=__doc__)
    parser.add_argument("--answers", type=int, default=100, help="answers a row")
    load = others()
    answers = parser.parse_args().answers
    print("| answer to next item | p50 | p95 | largest |\n| --- | --- | --- | --- |")
    for what, *times in measure(answers):
        print(f"| {what} | " + " | ".join(f"{ms:.1f} ms" for ms in times) + " |")
    print(f"\n{TASKS} tasks, index policy, {answers} answers a row, wanted at a desk: p95 under 100 ms.")
    print(f"{machine().split(';')[0]}. Load of the machine when it began: {load}.")


if __name__ == "__main__":
    main()
