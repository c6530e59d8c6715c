"""``python -m benchmarks.live.at_most``: the dashboard's 'at most' with its real computation, beside asks and tells.

The real service with a campaign of the policy ``crowd``; a crowd with one who guesses spends half of the budget over
HTTP, somebody looks at the dashboard, which orders the bound, and asks and tells go on while it is computed. Printed:
seconds until the page shows it, processor time and memory of the service, and how long asks took before, meanwhile and
after it was there, the last two with somebody looking at the page between any two of them.
``--screenshot FILE`` takes a picture of the page in Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from benchmarks.live.http_campaign import HttpCampaign, RunningService

WORKERS, RIGHT, PAGE = 8, 0.85, os.sysconf("SC_PAGE_SIZE")


def label(campaign: HttpCampaign, worker: int, rng: np.random.Generator) -> float | None:
    """One ask and its answer (item k is of kind k modulo 2; worker 0 guesses); seconds that the ask took."""
    begun = time.perf_counter()
    given = campaign.ask(f"w{worker}")
    seconds = time.perf_counter() - begun
    if given.reason:
        return None
    right = rng.random() < (0.5 if worker == 0 else RIGHT)
    campaign.tell(given.lease, given.item % 2 if right else 1 - given.item % 2)
    return seconds


def used(process: int) -> tuple[float, float]:
    """Processor seconds and megabytes of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks, int(fields[21]) * PAGE / 1e6


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--each", type=float, default=3.0, help="labels per item in the budget")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds after which to give up")
    parser.add_argument("--screenshot", type=Path)
    given = parser.parse_args()
    rng, budget = np.random.default_rng(0), int(given.each * given.items)
    with tempfile.TemporaryDirectory() as folder:
        service = RunningService(f"sqlite:///{folder}/bound.db")
        url = f"http://127.0.0.1:{service.server.port}"
        try:
            assert service.server.process is not None
            process = service.server.process.pid
            campaign = HttpCampaign(service, list(range(given.items)), budget=budget, labels=["no", "yes"])
            asks = [label(campaign, k % WORKERS, rng) for k in range(budget // 2)]
            before = [one for one in asks if one is not None]
            with httpx.Client(base_url=url, timeout=120, headers={"origin": url}) as browser:
                browser.post("/sign-in", data={"token": service.token})
                browser.get(f"/campaigns/{campaign.id}")
                begun, (cpu, memory), upper = time.perf_counter(), used(process), None
                meanwhile, turn = list[float](), 0
                most, load = memory, os.getloadavg()[0]
                while upper is None and time.perf_counter() - begun < given.patience:
                    if len(meanwhile) < budget // 8:
                        turn += 1  # whoever is turned away gets nothing
                        seconds = label(campaign, turn % WORKERS, rng)
                        meanwhile += [] if seconds is None else [seconds]
                    else:
                        time.sleep(0.2)
                    browser.get(f"/campaigns/{campaign.id}/live")
                    upper = campaign.call("GET", f"/campaigns/{campaign.id}/certificate")["upper"]
                    most = max(most, used(process)[1])
                took, spent = time.perf_counter() - begun, used(process)[0] - cpu
                after: list[float] = []
                for k in range(max(len(meanwhile), 100)):
                    seconds = label(campaign, k % WORKERS, rng)
                    after += [] if seconds is None else [seconds]
                    browser.get(f"/campaigns/{campaign.id}/live")
                    campaign.call("GET", f"/campaigns/{campaign.id}/certificate")
            said = "not there" if upper is None else f"{upper:.4f}"
            print(
                f"{given.items} items, {len(before)} labels: at most {said} after {took:.0f} s, "
                f"{spent:.0f} s of processor"
            )
            print(f"memory {memory:.0f} MB before, {most:.0f} MB at most; load of the machine {load:.1f}")
            for name, some in (("before", before), ("meanwhile", meanwhile), ("after", after)):
                half, high = np.quantile(some, [0.5, 0.99]) * 1e3
                print(f"asks {name}: {len(some)}, median {half:.1f} ms, p99 {high:.1f} ms")
            if given.screenshot:
                _picture(url, service.token, campaign.id, given.screenshot)
            campaign.close()
        finally:
            service.close()


def _picture(url: str, token: str, id: str, target: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{url}/sign-in")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{url}/campaigns/{id}")
        page.wait_for_timeout(2000)
        page.screenshot(path=str(target), full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
