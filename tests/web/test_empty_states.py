"""Pages that have nothing to show yet say so, and downloads are within reach, on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser import PHONE, at, check_accessible, chromium
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("empty"), pages=mount_pages) as running:
        yield running


def test_from_nothing_to_the_first_label(service: Service, chromium: Browser) -> None:
    with at(chromium, PHONE) as page:
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{service.url}/sign-in")
        page.fill("[name=token]", service.token)
        page.click("button[type=submit]")
        expect(page.get_by_text("No campaigns yet")).to_be_visible()
        service.campaign("learns", tasks=0, policy="crowd", labels=["no", "yes"])
        service.campaign("new", tasks=0, labels=["no", "yes"])
        page.goto(f"{service.url}/campaigns/learns")
        expect(page.locator("[data-part=imports]")).to_contain_text("nextlabel campaign add learns FILE")
        page.goto(f"{service.url}/campaigns/new")
        expect(page.locator("[data-part=imports]")).to_contain_text("nextlabel campaign add new FILE")
        for chart, said in (("labels", "There are no items yet."), ("probability", "No item has a label yet.")):
            shown = page.locator(f"#chart-{chart}").evaluate("chart => getComputedStyle(chart, '::after').content")
            assert shown == f'"{said}"'
        expect(page.locator("[data-part=workers]")).to_contain_text("Nobody has worked")
        check_accessible(page)
        with service.http() as http:
            http.post("/campaigns/new/tasks", json=[{"id": "a", "text": "x"}, {"id": "b", "text": "y"}])
            lease = http.post("/campaigns/new/ask", json={"worker": "ann"}).json()["lease"]["id"]
            http.post(f"/leases/{lease}/tell", json={"label": "yes"})
        expect(page.locator("#chart-labels canvas")).to_be_visible()  # without loading the page again
        expect(page.locator("#chart-probability canvas")).to_be_visible()
        expect(page.locator("[data-part=imports]")).not_to_contain_text("no items")
        page.locator(".menu summary").click()
        for link in page.locator(".menu a").all():
            box = link.bounding_box()
            assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
            with page.expect_download() as download:
                link.click()
            assert download.value.path().stat().st_size > 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert wrong == []
