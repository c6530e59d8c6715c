"""A store from its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.errors import InputError
from nextlabel.store.memory import MemoryStore

if TYPE_CHECKING:
    from nextlabel.store.sql import SqlStore


def open_store(url: str, lock_wait_s: float | None = None, *, create: bool = True) -> MemoryStore | SqlStore:
    """The store at that address (``store.engine``), its tables brought up to date, or made if it has none.

    A command waits for another process for ``lock_wait_s`` seconds, or for as long as ``store.engine`` says. Without
    ``create``, a database that is not there, or has no tables, is not made: NotFoundError.
    """
    if url.strip() == "memory:":
        return MemoryStore()
    try:
        from nextlabel.store.sql import SqlStore
    except ModuleNotFoundError as error:
        raise InputError(f"databases need the package {error.name}.", "pip install 'nextlabel[service]'.") from None
    return SqlStore(url, create=create) if lock_wait_s is None else SqlStore(url, lock_wait_s, create=create)
