"""``python docs/images/platform_shots.py``: a campaign on platforms: the requester's page, and a frame as MTurk's.

The frame is in a page of a local server that stands for Mechanical Turk, and says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import httpx
from PIL import Image
from playwright.sync_api import Browser, Page

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))

from browser import at, launched  # noqa: E402
from framing_site import platform  # noqa: E402
from nextlabel.integrations.prolific import StatusChange  # noqa: E402
from nextlabel.web.pages import mount_pages  # noqa: E402
from service_fixtures import Service, on_sqlite  # noqa: E402

TEXTS = (
    "The first hour drags, but the last act is so good that I forgave everything.",
    "Two hours of people looking out of windows. I want my evening back.",
    "Funny, warm and ten minutes too long. My children asked to see it again.",
)
#: The page around the frame.
AROUND = """<style>body { margin: 0; font: 15px sans-serif; background: #f2f3f3 }
header { background: #232f3e; color: white; padding: 10px 16px } iframe { border: 1px solid #bbb; margin: 12px 16px }
</style><header>A page of another site, as Mechanical Turk's: the HIT is in a frame</header>{frame}"""
PARTICIPANTS = (
    ("60ffe5c8371090c7041d43f8", "6735f0a1b2c3d4e5f6a7b8c9", 3, "APPROVED"),
    ("5e8a1f0c9b7d6a0012c4e381", "6735f1b7c2d3e4f5a6b7c8d0", 2, "RETURNED"),
    ("614b2a9d8e7f6c0013d5f492", "6735f2c8d3e4f5a6b7c8d9e1", 3, "AWAITING REVIEW"),
    ("62c91e3f7a8b5d0014e6a503", "6735f3d9e4f5a6b7c8d9e0f2", 1, "ACTIVE"),
)


def campaign(service: Service, id: str) -> None:
    """A campaign with items."""
    service.campaign(
        id, tasks=0, name="Film reviews", question="Does the reviewer recommend the film?", budget=60, seed=3,
        labels=["No", "Yes", "Can't tell"], lease_seconds=600, most_labels_per_worker=3, pay_per_label=0.08,
        completion_code="C1A2B3C4",
    )  # fmt: skip
    with service.http() as http:
        tasks = [{"id": f"t{k}", "text": TEXTS[k % 3]} for k in range(30)]
        assert http.post(f"/campaigns/{id}/tasks", json=tasks).is_success


def participants(service: Service, id: str) -> None:
    """People come from Prolific and label."""
    with service.http() as http:
        token = http.post(f"/campaigns/{id}/links", json={}).json()["join"]["token"]
    for participant, submission, labels, status in PARTICIPANTS:
        given = {"PROLIFIC_PID": participant, "STUDY_ID": "6735e0000000000000000001", "SESSION_ID": submission}
        with httpx.Client(follow_redirects=True, timeout=120) as browser:
            page = browser.get(f"{service.url}/j/{token}", params=given)
            for _ in range(labels):
                lease = page.text.split('data-lease="')[1].split('"')[0]
                page = browser.post(f"{service.url}/work/{id}", data={"lease": lease, "answer": "1"})
        change = StatusChange(submission, participant, status)
        service.campaign_service.visits.status_changed(change, service.clock())


def shoot(page: Page, name: str) -> None:
    """A picture with few colours."""
    path = HERE / name
    page.screenshot(path=path, full_page=True)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    sys.stdout.write(f"{path.name}: {path.stat().st_size / 1000:.0f} kB\n")


def requesters_page(browser: Browser, folder: Path) -> None:
    """The dashboard's page."""
    folder.mkdir()
    address = {"public_url": "https://labels.example.org", "cookie_secure": False}
    with on_sqlite(folder, pages=mount_pages, prolific_secret="secret", **address) as service:
        campaign(service, "films")
        participants(service, "films")
        with at(browser, {"width": 1280, "height": 900}, device_scale_factor=1.25) as page:
            page.goto(f"{service.url}/sign-in?next=/campaigns/films/platforms")
            page.get_by_label("Token").fill(service.token)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="Platforms").wait_for()
            page.wait_for_timeout(400)
            shoot(page, "prolific.png")


def frame(browser: Browser, folder: Path) -> None:
    """The workers' page in a frame."""
    folder.mkdir()
    with (
        platform(around=AROUND) as turk,
        on_sqlite(folder, pages=mount_pages, frame_hosts=turk.url, submit_hosts=turk.url) as service,
    ):
        campaign(service, "films")
        with service.http() as http:
            link = http.post("/campaigns/films/links", json={}).json()["join"]["frame"]
        with at(browser, {"width": 940, "height": 790}, device_scale_factor=1.25) as page:
            page.goto(turk.framing(f"{link}?{urlencode(turk.parameters('A1EXAMPLE'))}"))
            inside = page.frame_locator("iframe")
            inside.get_by_role("heading", name="Item 1").wait_for()
            page.wait_for_timeout(400)
            inside.get_by_role("button", name="Yes").click()
            inside.get_by_role("heading", name="Item 2").wait_for()
            page.mouse.move(2, 2)
            page.wait_for_timeout(400)
            shoot(page, "mturk.png")


def main() -> None:
    """Make both pictures."""
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        requesters_page(browser, Path(folder) / "prolific")
        frame(browser, Path(folder) / "mturk")


if __name__ == "__main__":
    main()
