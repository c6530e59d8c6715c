"""A report: facts, tables, sentences and figures in one object, which terminal, JSON, page and notebook render.

A result makes its report once. The command line prints it (``cli.output.deliver``); ``fields`` is its JSON; ``page`` is
self-contained HTML from the template beside this module, every text escaped; ``text`` and ``notebook`` are its title,
its first table and its sentences.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any

from nextlabel.notebook import table_html
from nextlabel.version import __version__
from nextlabel.wording import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cells = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and cells; ``brief`` are the rows outside a page, where all of them are too many: () for no table."""

    title: str
    header: Sequence[str]
    rows: Cells
    caption: str = ""
    brief: Cells | None = None

    @classmethod
    def of(
        cls, title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], caption: str = "",
        brief: Callable[[Cells], Cells] | None = None, nothing: str = "",
    ) -> Table:  # fmt: skip
        """A table of rows by the format of each column, such as ``{tasks:,}``; ``nothing`` where something is None."""
        cells = [[_filled(text, row, nothing) for text in columns.values()] for row in rows]
        return cls(title, list(columns), cells, caption, None if brief is None else brief(cells))

    @property
    def shown(self) -> Cells:
        """The rows outside a page."""
        return self.rows if self.brief is None else self.brief


@dataclass(frozen=True, slots=True)
class Report:
    """What a result says, for every renderer."""

    title: str
    tables: Sequence[Table]
    sentences: Sequence[str]
    #: Of a page: its heading and the line below, numbers to look at first with what they are, figures to draw with
    #: their captions, and lists of sentences by their headings.
    heading: str = ""
    lead: str = ""
    facts: Sequence[tuple[str, str]] = ()
    figures: Sequence[tuple[Callable[[], Figure], str]] = ()
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Said before everything else; and, on the terminal, between table and sentences, and below everything.
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    closing: Sequence[str] = ()
    #: The answer as ``--json`` prints it, and the files that ``--out`` writes.
    fields: Mapping[str, Any] = field(default_factory=dict)
    files: Callable[[], Mapping[str, Any]] = dict

    def text(self) -> str:
        """The report in plain text."""
        first = self.tables[0]
        return text_table(self.title, first.header, first.shown, *self._below(first))

    def notebook(self) -> str:
        """The report as notebooks show it."""
        first = self.tables[0]
        return table_html(self.title, first.header, first.shown, self._below(first))

    def _below(self, table: Table) -> list[str]:
        return [*([table.caption] if table.caption else []), *self.sentences]

    def page(self, command: str) -> str:
        """The page to show around; ``command`` is what was typed to make it."""
        with needs("a page", "jinja2", "'nextlabel[figures]'"):
            from jinja2 import Environment, PackageLoader, StrictUndefined
        loader = PackageLoader("nextlabel.reporting")
        pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
        drawn = [(_embedded(draw()), caption) for draw, caption in self.figures]
        return pages.get_template("page.html").render(report=self, figures=drawn, command=command, version=__version__)


def _filled(text: str, row: Mapping[str, Any], nothing: str) -> str:
    known = all(name is None or row[name] is not None for _, name, _, _ in Formatter().parse(text))
    return text.format_map(row) if known else nothing


def _embedded(figure: Figure) -> str:
    """The figure as the address of an image that is inside the page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def text_table(title: str, header: Sequence[str], rows: Cells, *notes: str) -> str:
    """A title, aligned columns (the first to the left, the others to the right), and notes below."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    return "\n".join([title, "", lines[0], "  ".join("-" * width for width in widths), *lines[1:], *notes])


def read_sentences(read: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was in the files, from what ``read`` of ``--json`` says about each of them."""
    return [sentence for one in read for sentence in one["sentences"]]
