"""The store that the commands of ``nextlabel token`` work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nextlabel.cli.serve import needs_service

if TYPE_CHECKING:
    from nextlabel.store.memory import MemoryStore
    from nextlabel.store.sql import SqlStore


@contextmanager
def store_at(db: str) -> Iterator[MemoryStore | SqlStore]:
    """The store at an address."""
    needs_service()
    from nextlabel.store.open import open_store

    store = open_store(db)
    try:
        yield store
    finally:
        store.close()
