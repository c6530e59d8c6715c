"""Markdown that a requester wrote, as HTML that is safe on a worker's page.

markdown-it-py renders CommonMark and tables, with HTML in the text taken for text. nh3 (ammonia, the sanitiser of
Rust's documentation) then keeps the elements below and nothing else, so that a mistake in either leaves the other.
Pictures become links, so that nothing is loaded from elsewhere before somebody clicks; links open in a new tab, and
their sites do not hear where they were clicked. Headings begin one level below the page's own.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

TAGS: Final = frozenset({
    "a", "blockquote", "br", "code", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
})  # fmt: skip
ATTRIBUTES: Final = {"a": {"href", "title"}, "ol": {"start"}, "pre": {"tabindex"}}
SCHEMES: Final = frozenset({"http", "https", "mailto"})
DEEPEST = 6


@lru_cache(maxsize=256)
def safe_html(text: str) -> Markup:
    """The text as HTML; empty if there is none."""
    clean = nh3.clean(
        _renderer().render(text),
        tags=set(TAGS),
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )
    return Markup(clean)


@cache
def _renderer() -> MarkdownIt:
    renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    renderer.core.ruler.push("page", _fit_page)
    return renderer


def _fit_page(state: StateCore) -> None:
    """Move headings below the page's own, and put links in the place of pictures."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 1, DEEPEST)}"
        if token.children:
            token.children = _without_pictures(token.children)


def _without_pictures(tokens: list[Token]) -> list[Token]:
    out: list[Token] = []
    depth = 0  # of links: one cannot be inside another
    for token in tokens:
        depth += token.nesting if token.type.startswith("link_") else 0
        if token.type != "image":
            out.append(token)
            continue
        address = str(token.attrGet("src") or "")
        text = Token("text", "", 0, content=token.content.strip() or address)
        if depth or not address.startswith(("http://", "https://")):
            out.append(text)
        else:
            out += [Token("link_open", "a", 1, attrs={"href": address}), text, Token("link_close", "a", -1)]
    return out
