"""Results as notebooks show them: small HTML tables with plain attributes, every text escaped.

A notebook calls ``_repr_html_`` of what a cell ends with. Colours are those of the notebook's own theme
(``currentColor``), so that tables can be read on light and dark pages. No template engine is needed: the base
installation has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

#: Size of the picture of an interval, in pixels.
WIDTH, HEIGHT = 120, 12


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is HTML already."""

    text: str


def cell(content: object) -> str:
    """What a cell of a table shows."""
    return content.text if isinstance(content, Html) else escape(str(content))


def table_html(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()) -> str:
    """A title, a table whose first column is to the left and whose others are to the right, and notes below."""
    head = "".join(f'<th style="text-align:{_side(k)}">{escape(name)}</th>' for k, name in enumerate(header))
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:{_side(k)}">{cell(one)}</td>' for k, one in enumerate(row)) + "</tr>"
        for row in rows
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<div><p><strong>{escape(title)}</strong></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{below}</div>"
    )


def facts_html(title: str, facts: Iterable[tuple[str, object]], notes: Sequence[str] = ()) -> str:
    """A title, a row for each fact, and notes below."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{cell(one)}</td></tr>'
        for name, one in facts
    )
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<div><p><strong>{escape(title)}</strong></p><table><tbody>{rows}</tbody></table>{below}</div>"


def interval_picture(mean: float, low: float, high: float, least: float = 0.0, most: float = 1.0) -> Html:
    """An interval as a line with a dot at the mean, on a scale from ``least`` to ``most``."""

    def place(value: float) -> float:
        share = 0.0 if most <= least else (min(max(value, least), most) - least) / (most - least)
        return 3.0 + share * (WIDTH - 6)

    middle = HEIGHT / 2
    return Html(
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{mean:.3f}, from {low:.3f} to {high:.3f}">'
        f'<line x1="3" x2="{WIDTH - 3}" y1="{middle}" y2="{middle}" stroke="currentColor" stroke-opacity="0.2"/>'
        f'<line x1="{place(low):.1f}" x2="{place(high):.1f}" y1="{middle}" y2="{middle}" stroke="currentColor" '
        f'stroke-width="3" stroke-opacity="0.5"/><circle cx="{place(mean):.1f}" cy="{middle}" r="3" '
        f'fill="currentColor"/></svg>'
    )


def _side(column: int) -> str:
    return "right" if column else "left"
