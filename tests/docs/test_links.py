"""Links between pages lead somewhere, and no image lies unused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from documents import ROOT, pages

LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
PAGES = [*pages(), *sorted(ROOT.glob("*.md"))]
IMAGES = sorted(path for folder in ("figures", "images") for path in (ROOT / "docs" / folder).glob("*.png"))


def links(page: Path) -> Iterator[str]:
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^    [^-*\d].*$", "", text, flags=re.MULTILINE)
    for target in LINK.findall(text):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = set()
    for heading in re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        bare = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", bare)))
    return found


@pytest.mark.parametrize("page", sorted(set(PAGES)), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} leads nowhere"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{target}: there is no such heading, only {sorted(anchors(file))}"


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_images_are_shown(image: Path) -> None:
    assert any(image.name in page.read_text(encoding="utf-8") for page in PAGES), "no page shows it"
