"""Errors of a database that does not answer, or not in time, as ours: the request may be sent again.

======================================== ==============================================================
error of the database                    becomes
======================================== ==============================================================
a lock that was not to be had in time    BusyError: another process holds the campaign or the database
no connection, or a connection lost      UnavailableError
a statement or a transaction ended       UnavailableError: it took longer than ``store.engine`` allows
by the server
======================================== ==============================================================
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import exc

from nextlabel.errors import BusyError, UnavailableError
from nextlabel.prose import without_passwords

try:
    import psycopg

    _DRIVER_ERRORS: tuple[type[Exception], ...] = (
        sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,
    )  # fmt: skip
except ModuleNotFoundError:  # PostgreSQL is an extra
    _DRIVER_ERRORS = (sqlite3.OperationalError,)

_ERRORS: tuple[type[Exception], ...] = (
    exc.OperationalError, exc.InterfaceError, exc.TimeoutError, exc.PendingRollbackError, exc.InternalError,
    *_DRIVER_ERRORS,
)  # fmt: skip
#: PostgreSQL's code for a lock that could not be had within lock_timeout.
_LOCK_NOT_AVAILABLE = "55P03"


@contextmanager
def errors_as_unavailable() -> Iterator[None]:
    """Turn a database's refusal to answer into an UnavailableError."""
    try:
        yield
    except _ERRORS as error:
        cause: Any = getattr(error, "orig", None) or error
        if isinstance(error, exc.InternalError) and not isinstance(cause, _DRIVER_ERRORS):
            raise
        if getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE or _sqlite_is_locked(cause):
            raise busy() from error
        raise UnavailableError(f"the database does not answer: {_first_line(cause)}.", "Try again.") from error


def busy() -> BusyError:
    """Somebody else holds what is needed."""
    return BusyError("the database is busy with another command.", "Try again in a moment.")


def _sqlite_is_locked(cause: Any) -> bool:
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _first_line(cause: Any) -> str:
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return without_passwords(lines[0].rstrip("."))[:200]
