"""The database that a command works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nextlabel.cli.serve import needs_service

if TYPE_CHECKING:
    from nextlabel.store.memory import MemoryStore
    from nextlabel.store.sql import SqlStore


@contextmanager
def opened_store(db: str, create: bool = False) -> Iterator[MemoryStore | SqlStore]:
    """The store at an address; one that is not there is made only with ``create``."""
    needs_service()
    from nextlabel.store.open import open_store

    store = open_store(db, create=create)
    try:
        yield store
    finally:
        store.close()
