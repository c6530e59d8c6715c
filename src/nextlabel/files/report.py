"""What was met while a table was read, in numbers for programs and in sentences for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nextlabel.prose import counted, listed

#: Delimiters that are understood, with the word for them.
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(slots=True)
class TableReport:
    """How a table is written and what was left out of it; the counts are complete when its last row has been read."""

    name: str = ""
    format: str = ""
    encoding: str | None = None
    delimiter: str | None = None
    rows: int = 0
    blank_rows: int = 0
    empty_columns: int = 0
    decimal_commas: int = 0
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """Format, delimiter and encoding in a few words."""
        parts = [self.format]
        if self.delimiter is not None:
            parts.append(DELIMITERS.get(self.delimiter, f"delimiter {self.delimiter!r}"))
        if self.encoding is not None:
            parts.append(self.encoding)
        return ", ".join(parts)

    def notes(self) -> list[str]:
        """Which columns were used, and what was left out or taken for something else."""
        out = []
        if self.columns:
            used = [column if column == role else f"{column} ({role})" for role, column in self.columns.items()]
            out.append(f"{'Columns' if len(used) > 1 else 'Column'} used: {listed(used)}.")
        if self.blank_rows:
            out.append(f"{counted(self.blank_rows, 'blank row')} left out.")
        if self.empty_columns:
            out.append(f"{counted(self.empty_columns, 'empty column')} at the right edge left out.")
        if self.decimal_commas:
            out.append(f"{counted(self.decimal_commas, 'number')} with a decimal comma.")
        if self.encoding in ("Windows-1252", "Latin-1"):
            out.append(f"The file is not UTF-8 and was read as {self.encoding}: check letters with accents.")
        return out

    def sentences(self) -> list[str]:
        """The report in plain English, nothing said about what did not happen."""
        return [f"{self.name}: {counted(self.rows, 'row')} read ({self.form}).", *self.notes()]

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        return {name: getattr(self, name) for name in self.__slots__} | {"sentences": self.sentences()}
