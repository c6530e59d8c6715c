"""One self-contained page: text, tables and figures, nothing fetched from anywhere, readable on a phone."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; color: #1f2933; background: #fff;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p.lead { color: #52606d; margin: 0 0 1.5rem; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.answer { border: 1px solid #e4e7eb; border-left: 4px solid #0072b2; border-radius: 4px; padding: .7rem .9rem; }
.answer b { display: block; font-size: 1.45rem; line-height: 1.2; }
.answer span { color: #52606d; font-size: .9rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; display: block; }
figcaption { color: #52606d; font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #e4e7eb; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: #52606d; font-weight: 600; }
pre { background: #f5f7fa; padding: .8rem; overflow-x: auto; border-radius: 4px; font-size: .85rem; }
footer { margin-top: 3rem; color: #52606d; font-size: .85rem; }
"""


class HtmlPage:
    """Collects the parts of a page; every text is escaped."""

    def __init__(self, title: str, lead: str) -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']

    def heading(self, text: str) -> None:
        """A section begins."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        """Plain prose."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def bullets(self, items: Sequence[str]) -> None:
        """A list."""
        self._parts.append("<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>")

    def answers(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Numbers to look at first, each with what it is."""
        boxes = "".join(f'<div class="answer"><b>{escape(n)}</b><span>{escape(w)}</span></div>' for n, w in pairs)
        self._parts.append(f'<div class="answers">{boxes}</div>')

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table that scrolls sideways where it must."""
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        self._parts.append(
            f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def figure(self, figure: Figure, caption: str) -> None:
        """A figure inside the page."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=130)
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        self._parts.append(
            f'<figure><img alt="{escape(caption, quote=True)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def figures(self, *pairs: tuple[Figure, str]) -> None:
        """Figures side by side, below each other where the page is narrow."""
        self._parts.append('<div class="figures">')
        for figure, caption in pairs:
            self.figure(figure, caption)
        self._parts.append("</div>")

    def code(self, text: str) -> None:
        """What was typed."""
        self._parts.append(f"<pre>{escape(text)}</pre>")

    def render(self, footer: str) -> str:
        """The whole page."""
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
            f"<footer>{escape(footer)}</footer>\n</body>\n</html>\n"
        )
