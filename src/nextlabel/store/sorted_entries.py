"""Entries in order: those of an index in memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any


class SortedEntries:
    """Tuples that can be compared, each of them once; adding one moves the later ones in memory, and looks at few."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: tuple[Any, ...]) -> None:
        """A new entry."""
        insort(self._entries, entry)

    def remove(self, entry: tuple[Any, ...]) -> None:
        """Take an entry out that is there."""
        place = bisect_left(self._entries, entry)
        if self._entries[place] != entry:
            raise LookupError(f"{entry} is not there")
        del self._entries[place]

    def around(self, start: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The entries from ``start`` on, then those before it."""
        place = bisect_left(self._entries, start)
        for k in range(place, len(self._entries)):
            yield self._entries[k]
        for k in range(place):
            yield self._entries[k]

    def upward(self, start: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The entries from ``start`` on."""
        place = bisect_left(self._entries, start)
        return (self._entries[k] for k in range(place, len(self._entries)))

    def downward(self, start: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """The entries before ``start``, the last first."""
        place = bisect_left(self._entries, start)
        return (self._entries[k] for k in range(place - 1, -1, -1))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._entries)

    def __reversed__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._entries[k] for k in range(len(self._entries) - 1, -1, -1))
