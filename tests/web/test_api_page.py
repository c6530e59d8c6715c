"""The page of the API, made from its document: every call and every model, by no script and from no other site."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser import DESKTOP, PHONE, at, check_accessible, chromium
from nextlabel.web.pages import mount_pages
from service_fixtures import Service, on_sqlite

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with on_sqlite(tmp_path_factory.mktemp("api"), pages=mount_pages) as service:
        yield service


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_call_and_every_model(service: Service, chromium: Browser, size: dict[str, int]) -> None:
    with service.http() as http:
        http.get("/campaigns")
        document = http.get("/openapi.json").json()
    calls = [one for operations in document["paths"].values() for one in operations.values()]
    with at(chromium, size, base_url=service.url) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto("/sign-in?next=/help/api")
        page.get_by_label("Token").fill(service.token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="API", exact=True)).to_be_visible()
        assert page.locator("details.data").count() == len(calls) > 50
        page.locator("#create summary").click()
        expect(page.locator("#create")).to_contain_text("the same id with the same settings is the same campaign")
        page.locator("#create").get_by_role("link", name="CreateCampaignRequest").click()
        expect(page.locator("[id='model-CreateCampaignRequest']")).to_be_in_viewport()
        links = page.eval_on_selector_all(
            "a[href^='#model-']", "all => all.map(one => one.getAttribute('href').slice(1))"
        )
        ids = set(page.eval_on_selector_all("[id]", "all => all.map(one => one.id)"))
        assert links and set(links) <= ids
        check_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert all(url.startswith(service.url) for url in asked)
