"""``python docs/images/label_studio_shot.py``: a picture of Label Studio's page, opened from an annotator's link.

It needs a server (``make test-label-studio`` installs one); ``--port`` uses one that runs already.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "tests"), str(HERE.parent.parent)]

from benchmarks.live.label_studio_server import PASSWORD, TOKEN, StudioServer  # noqa: E402

from browser import at, launched  # noqa: E402
from nextlabel.application.service import CampaignService  # noqa: E402
from nextlabel.integrations.label_studio.api import LabelStudio  # noqa: E402
from nextlabel.integrations.label_studio.connection import Wishes, connect  # noqa: E402
from nextlabel.store.sql import open_store  # noqa: E402

#: Colours that are enough for flat pictures.
COLOURS = 128
SIZE = {"width": 1120, "height": 560}
REVIEWS = (
    "The first hour drags, but the last act is so good that I forgave everything. See it on a big screen if you can.",
    "Two hours of people looking out of windows. I want my evening back.",
    "Funny, warm and ten minutes too long. My children asked to see it again.",
)


def shoot(server: StudioServer, file: Path) -> None:
    """The page with an annotator's task."""
    email = f"ann{server.port}@example.org"
    server.sign_up(email)
    project = server.make_project(list(REVIEWS), title="Film reviews")
    service = CampaignService(open_store("memory:"))
    with LabelStudio(server.url, TOKEN) as studio:
        bridge = connect(studio, project, service, Wishes(budget=9, annotators=[email]), print)
        bridge.reconcile()
        link = bridge.annotators.link(bridge.annotators.all[0].user)
    service.close()
    with launched() as browser, at(browser, SIZE) as page:
        page.goto(f"{server.url}/user/login/")
        page.fill("input[name=email]", email)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_load_state("networkidle")
        page.goto(link)
        page.get_by_test_id("bottombar-submit-button").wait_for()
        page.locator("label:has-text('positive')").first.click()
        page.mouse.move(2, 2)
        page.wait_for_timeout(1500)
        page.screenshot(path=file)
    Image.open(file).convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS).save(file, optimize=True)


def main() -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, help="a server of the tests that runs already")
    port = parser.parse_args().port
    with tempfile.TemporaryDirectory() as folder:
        server = StudioServer(Path(folder), port)
        if port is None:
            server.start()
        try:
            shoot(server, HERE / "label-studio.png")
        finally:
            if port is None:
                server.kill()


if __name__ == "__main__":
    main()
