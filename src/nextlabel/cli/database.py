"""The database that a command works on, and what its errors become."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nextlabel.cli.serve import needs_service
from nextlabel.errors import UnavailableError

if TYPE_CHECKING:
    from nextlabel.store.memory import MemoryStore
    from nextlabel.store.sql import SqlStore


@contextmanager
def opened_store(db: str, create: bool = False) -> Iterator[MemoryStore | SqlStore]:
    """The store at an address; one that is not there is made only with ``create``."""
    needs_service()
    from sqlalchemy.exc import InterfaceError, OperationalError

    from nextlabel.store.open import open_store

    try:
        store = open_store(db, create)
        try:
            yield store
        finally:
            store.close()
    except (OperationalError, InterfaceError) as error:
        why = str(error.orig).strip().splitlines()[0].rstrip(".")[:200]
        raise UnavailableError(
            f"the database cannot do this: {why}.", "Check that it can be written to and is not busy, then try again."
        ) from None
