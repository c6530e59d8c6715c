"""A real browser for tests of pages: Debian's Chromium by Playwright, and the axe accessibility check.

Fixtures to import: ``chromium`` (one browser a test module). ``at(chromium, size)`` opens a window in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Frame, Page, expect, sync_playwright

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
#: Findings of axe that a page must not have.
GRAVE = ("serious", "critical")
#: How long a test waits for a page: far more than the slowest machine needs, kernels to be compiled included.
TIMEOUT_MS = 180_000
expect.set_options(timeout=TIMEOUT_MS)
AXE = Axe()


def executable() -> str:
    """Where Chromium is; a test without it fails."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail("There is no Chromium for the tests of pages: install Debian's package chromium.", pytrace=False)
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """The browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@contextmanager
def context(browser: Browser, size: dict[str, int] = DESKTOP, **options: Any) -> Iterator[BrowserContext]:
    """Windows with cookies of their own; a phone's size has a phone's finger. Other sites cannot be reached."""
    phone = {"has_touch": True, "is_mobile": True} if size == PHONE else {}
    made = browser.new_context(viewport=size, **{"timezone_id": "UTC", **phone, **options})
    made.set_default_timeout(TIMEOUT_MS)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def at(browser: Browser, size: dict[str, int] = DESKTOP, **options: Any) -> Iterator[Page]:
    """One window."""
    with context(browser, size, **options) as windows:
        yield windows.new_page()


def check_accessible(page: Page | Frame, *rules: str, grave: bool = True) -> None:
    """No finding of axe that is serious or critical, once everything stands still; by all rules or those named.

    Without ``grave``, no finding at all.
    """
    page.evaluate("Promise.allSettled(document.getAnimations().map(animation => animation.finished))")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.axe_script)
    only = {"runOnly": list(rules)} if rules else {}
    found = page.evaluate("options => axe.run(options)", {"resultTypes": ["violations"], **only})
    wrong = [v for v in found["violations"] if not grave or v["impact"] in GRAVE]
    assert not wrong, "\n".join(
        f"{v['id']} ({v['impact']}): {v['help']}: {[node['html'][:200] for node in v['nodes']]}" for v in wrong
    )
