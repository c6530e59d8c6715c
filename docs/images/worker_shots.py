"""``python docs/images/worker_shots.py``: pictures of the worker's page, at a desk and on a phone."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))

from browser import DESKTOP, PHONE, at, launched  # noqa: E402
from nextlabel.web.pages import mount_pages  # noqa: E402
from service_fixtures import Service, on_sqlite  # noqa: E402

#: Colours that are enough for flat pictures; more would be larger and look the same.
COLOURS = 128
REVIEWS = (
    ("The Long Harbour", "Two hours of people looking out of windows. I want my evening back."),
    ("Paper Lanterns", "The first hour drags, but the last act is so good that I forgave everything. See it on a big "
     "screen if you can, and stay for the music."),
    ("Northbound", "Funny, warm and ten minutes too long. My children asked to see it again."),
)  # fmt: skip


def campaign(service: Service) -> str:
    """A campaign in which others have worked; the link of a worker who comes now."""
    id = service.campaign(
        "films", tasks=0, name="Film reviews", question="Does the reviewer recommend the film?", budget=60, seed=3,
        labels=["No", "Yes", "Can't tell"], lease_seconds=600,
    )  # fmt: skip
    tasks = []
    for k in range(30):
        film, text = REVIEWS[k % 3]
        tasks.append({"id": f"t{k}", "text": text, "film": film, "written": f"2026-0{1 + k % 9}-12"})
    with service.http() as http:
        assert http.post(f"/campaigns/{id}/tasks", json=tasks).is_success
        for k in range(21):
            lease = service.campaign_service[id].ask(f"other {k % 4}")
            assert lease
            service.campaign_service[lease.campaign].tell(lease.id, ("No", "Yes", "Can't tell")[k % 3])
        return str(http.post(f"/campaigns/{id}/links", json={"workers": ["ann"]}).json()["links"][0]["url"])


def work(page: Page, link: str) -> None:
    """Answer until the longest review is there."""
    page.goto(link)
    for turn in range(20):
        page.wait_for_timeout(400)
        done = int(page.locator("#mine").inner_text())
        if turn > 0 and "last act" in page.locator(".text").inner_text():
            break
        page.get_by_role("button", name="Yes").click()
        expect(page.locator("#mine")).to_have_text(str(done + 1))
    page.mouse.move(2, 2)
    page.wait_for_timeout(400)


def shoot(page: Page, name: str) -> None:
    """A picture with few colours."""
    path = HERE / name
    page.screenshot(path=path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    sys.stdout.write(f"{path.name}: {path.stat().st_size / 1000:.0f} kB\n")


def main() -> None:
    """Make both pictures."""
    with tempfile.TemporaryDirectory() as folder, on_sqlite(Path(folder), pages=mount_pages) as service:
        link = campaign(service)
        with launched() as browser:
            for name, size, scale in (("desktop", {**DESKTOP, "height": 640}, 1.5), ("phone", PHONE, 2)):
                with at(browser, size, device_scale_factor=scale) as page:
                    work(page, link)
                    shoot(page, f"worker-{name}.png")


if __name__ == "__main__":
    main()
