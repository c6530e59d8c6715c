"""Keys of tasks in a temporary file, so that memory does not grow with the number of tasks in an import."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

#: Keys in one statement, and KiB of the file that are kept in memory.
KEYS, CACHE_KIB = 500, 16_384


class KeysOnDisk:
    """The ``SeenKeys`` of an import (``campaign.intake``); the file goes away at the end."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="nextlabel-keys-", ignore_cleanup_errors=True)
        self._file = sqlite3.connect(Path(self._folder.name) / "keys.db", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{CACHE_KIB}"):
            self._file.execute(f"PRAGMA {pragma}")
        self._file.execute("CREATE TABLE keys (key TEXT PRIMARY KEY, fingerprint BLOB NOT NULL) WITHOUT ROWID")

    def find(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Those of the keys that were met."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), KEYS):
            some = keys[start : start + KEYS]
            marks = ", ".join("?" * len(some))
            found.update(self._file.execute(f"SELECT key, fingerprint FROM keys WHERE key IN ({marks})", some))
        return found

    def add(self, pairs: Sequence[tuple[str, bytes]]) -> None:
        """More keys."""
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO keys VALUES (?, ?)", pairs)
        self._file.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._folder.cleanup()
