"""``python docs/images/dashboard_shots.py``: the dashboard, with a campaign that a simulated crowd works on.

The campaign is labelled by people of different skill and pace, by a clock that the script moves, so that the pictures
are the same whenever they are made but for the dates.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Page

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent.parent / "tests")]

from benchmarks.live.server import free_port  # noqa: E402

from browser import PHONE, at, launched  # noqa: E402
from nextlabel.application.service import CampaignService  # noqa: E402
from nextlabel.campaign.replies import Lease  # noqa: E402
from nextlabel.campaign.settings import CampaignSettings  # noqa: E402
from nextlabel.service.access import first_token  # noqa: E402
from nextlabel.service.app import create_app  # noqa: E402
from nextlabel.service.settings import ServiceSettings  # noqa: E402
from nextlabel.store.sql import open_store  # noqa: E402
from nextlabel.web.pages import mount_pages  # noqa: E402

DESKTOP = {"width": 1280, "height": 900}
TASKS, BUDGET, TOLD = 1200, 3600, 2150
NOUNS = ("charger", "kettle", "backpack", "lamp", "keyboard", "jacket", "speaker", "blender", "tent", "watch")
GOOD = (
    "The {n} works exactly as described; I would buy it again.",
    "Arrived a day early and the {n} is better than the pictures.",
    "Solid {n}, no complaints after three months of daily use.",
    "My second {n} from this shop. Still very happy with it.",
)
MIXED = (
    "The {n} is fine, though the manual is hard to follow.",
    "Good {n} for the price, but the box was damaged.",
    "It does what a {n} should do. Not sure it will last.",
)
BAD = (
    "The {n} stopped working after a week and nobody answers my mails.",
    "Not what I ordered: the {n} is smaller and scratched.",
    "Cheap plastic. I sent the {n} back the same day.",
)
PEOPLE = (
    ("amara", 0.94, 14), ("jonas", 0.9, 11), ("mei", 0.92, 19), ("tomas", 0.81, 8), ("priya", 0.95, 23),
    ("luca", 0.86, 13), ("sofia", 0.89, 16), ("noah", 0.5, 5), ("prolific:5f2c81e7", 0.84, 12), ("ines", 0.91, 17),
)  # fmt: skip


class Clock:
    """Time as the script says, so that days pass in seconds."""

    def __init__(self) -> None:
        self.now = time.time() - 3.5 * 3600

    def __call__(self) -> float:
        """Seconds since 1970."""
        return self.now


def review(chance: random.Random) -> tuple[str, float]:
    """A text, and the probability that a perfect reader calls it positive."""
    kind = chance.random()
    texts, p = (GOOD, 0.97) if kind < 0.5 else (MIXED, 0.55) if kind < 0.68 else (BAD, 0.03)
    return chance.choice(texts).format(n=chance.choice(NOUNS)), p


def worked_on(campaign_service: CampaignService, clock: Clock) -> str:
    """The campaign of the pictures."""
    chance = random.Random(7)
    id = "reviews"
    campaign_service.create(
        CampaignSettings(
            budget=BUDGET, labels=("negative", "positive"), name="Product reviews, autumn",
            question="Is this review positive?", deadline=clock() + 2.4 * 86_400, seed=3,
        ),
        id,
    )  # fmt: skip
    items = [review(chance) for _ in range(TASKS)]
    campaign_service.add_tasks(
        id, [{"id": f"review-{k + 1:04d}", "payload": {"text": text}} for k, (text, _) in enumerate(items)]
    )
    truth = {f"review-{k + 1:04d}": p for k, (_, p) in enumerate(items)}
    out: list[tuple[float, Lease, float]] = []
    told = 0
    while told < TOLD:
        clock.now += chance.expovariate(1 / 4.2)
        out.sort(key=lambda entry: entry[0])
        while out and out[0][0] <= clock():
            _, lease, skill = out.pop(0)
            draw = chance.random()
            if draw < 0.01:
                continue  # went to lunch
            if draw < 0.02:
                campaign_service[lease.campaign].release(lease.id)
                continue
            right = chance.random() < truth[lease.task]
            said = right if chance.random() < skill else not right
            campaign_service[lease.campaign].tell(lease.id, "positive" if said else "negative")
            told += 1
        name, skill, pace = chance.choice(PEOPLE)
        if any(lease.worker == name for _, lease, _ in out):
            continue
        lease = campaign_service[id].ask(name)
        if isinstance(lease, Lease):
            out.append((clock() + chance.gammavariate(3, pace / 3), lease, skill))
    return id


def others(campaign_service: CampaignService) -> None:
    """More campaigns for the list."""
    quick = {"policy": "uncertainty", "labels": ("no", "yes")}
    campaign_service.create(CampaignSettings(budget=400, name="Duplicate questions", **quick), "duplicates")
    campaign_service.add_tasks("duplicates", [{"id": f"q{k}", "text": "?"} for k in range(150)])
    campaign_service["duplicates"].pause()
    campaign_service.create(CampaignSettings(budget=8, name="Pilot: tone of voice", **quick), "pilot")
    campaign_service.add_tasks("pilot", [{"id": f"p{k}", "text": "?"} for k in range(4)])
    for k in range(8):
        lease = campaign_service["pilot"].ask(f"w{k}")
        if isinstance(lease, Lease):
            campaign_service[lease.campaign].tell(lease.id, "yes" if k % 3 else "no")


def sign_in(page: Page, url: str, token: str) -> None:
    """Through the form."""
    page.goto(f"{url}/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")


def few_colours(path: Path) -> None:
    """The same picture in less room."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    """Make the pictures."""
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        clock = Clock()
        store = open_store(f"sqlite:///{folder}/labels.db")
        campaign_service = CampaignService(store, clock)
        token = first_token(store)
        assert token is not None
        others(campaign_service)
        id = worked_on(campaign_service, clock)
        port = free_port()
        app = create_app(campaign_service, ServiceSettings(port=port), pages=mount_pages)
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        url = f"http://127.0.0.1:{port}"
        try:
            for name, size in (("dashboard", DESKTOP), ("dashboard-phone", PHONE)):
                if only and name not in only:
                    continue
                scale = 2 if size == PHONE else 1.25
                with at(browser, size, device_scale_factor=scale) as page:
                    sign_in(page, url, token)
                    page.goto(f"{url}/campaigns/{id}")
                    page.get_by_text("at the end").first.wait_for(timeout=120_000)
                    page.locator(".uplot").nth(2).wait_for()
                    page.wait_for_timeout(1500)
                    target = HERE / f"{name}.png"
                    if size == PHONE:
                        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
                        page.set_viewport_size({**PHONE, "height": 1900})
                        page.wait_for_timeout(300)
                        page.screenshot(path=target)
                    else:
                        page.screenshot(path=target, full_page=True)
                        page.set_viewport_size({**DESKTOP, "height": 860})
                        page.screenshot(path=HERE / "dashboard-top.png")
                        few_colours(HERE / "dashboard-top.png")
                    few_colours(target)
            if not only or "new-campaign" in only:
                with at(browser, DESKTOP, device_scale_factor=1.25) as page:
                    sign_in(page, url, token)
                    page.goto(f"{url}/new")
                    chance = random.Random(11)
                    lines = ["id,text,score"]
                    for k in range(2000):
                        text, p = review(chance)
                        score = min(max(chance.gauss(p, 0.15), 0.02), 0.98)
                        lines.append(f'r{k + 1:04d},"{text}",{score:.2f}')
                    file = {"name": "spring-reviews.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
                    page.locator("#file").set_input_files([file])
                    page.get_by_label("Question").fill("Is this review positive?")
                    page.get_by_label("Labels one per line").fill("negative\npositive")
                    page.get_by_text("labels per item").wait_for(timeout=60_000)
                    page.wait_for_timeout(500)
                    page.screenshot(path=HERE / "new-campaign.png", full_page=True)
                    few_colours(HERE / "new-campaign.png")
        finally:
            server.should_exit = True
            thread.join(30)
            campaign_service.close()


if __name__ == "__main__":
    main()
