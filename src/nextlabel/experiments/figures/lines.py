"""Rows of a study picked out, and drawn as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pick(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def values_of(rows: Sequence[Row], key: str) -> list[Any]:
    """Distinct values in the order of their first row."""
    return list(dict.fromkeys(row[key] for row in rows))


def draw_line(axes: Axes, rows: Sequence[Row], x: str, y: str, half: str, shift: float = 1.0, **more: Any) -> None:
    """A policy's curve with its 95% intervals."""
    axes.errorbar(
        [row[x] * shift for row in rows], [row[y] for row in rows], yerr=[row[half] or 0.0 for row in rows],
        capsize=2, elinewidth=1, **more,
    )  # fmt: skip
