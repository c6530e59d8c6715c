"""Hooks of the documentation site (mkdocs.yml).

Pages link to files of the repository that are not part of the site (``../README.md``, ``../examples/``). On the site
such a link becomes plain text, so that no link leads nowhere.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page's text without links that leave ``docs``."""
    folder = posixpath.dirname(page.file.src_uri)

    def inside(match: re.Match[str]) -> str:
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        return text if posixpath.normpath(posixpath.join(folder, target)).startswith("..") else match[0]

    return LINK.sub(inside, markdown)
