"""A store from its address."""

from __future__ import annotations

from nextlabel.store.sql import SqlStore


def open_store(url: str, lock_wait_s: float | None = None, *, create: bool = True) -> SqlStore:
    """The store at that address (``store.engine``), its tables made if it has none.

    A command waits for another process for ``lock_wait_s`` seconds, or for as long as ``store.engine`` says. Without
    ``create``, a database that is not there, or has no tables, is not made: NotFoundError.
    """
    return SqlStore(url, create=create) if lock_wait_s is None else SqlStore(url, lock_wait_s, create=create)
