"""Which process is at work on which import, and which imports have lost theirs.

An import is owned by a process of a machine and, within the process, by one thread. Its row names the process; what
threads of this process own is known here, whatever the row says.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from threading import Lock

from nextlabel.campaign.imports import ImportRow
from nextlabel.campaign.ledger import Store

#: Seconds after which a process that was not heard of has lost its import.
SILENT_S = 60.0
#: Imports that threads of this process are at work on, in whatever store.
_OWN: set[str] = set()
_OWN_LOCK = Lock()


class ImportOwners:
    """The owners of the imports into one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, row: ImportRow) -> None:
        """A thread of this process is at work on an import."""
        with _OWN_LOCK:
            _OWN.add(row.id)

    def discard(self, row: ImportRow) -> None:
        """It no longer is."""
        with _OWN_LOCK:
            _OWN.discard(row.id)

    def claim(self, row: ImportRow) -> bool:
        """Take over an import that has lost its process; False if somebody else was faster."""
        with _OWN_LOCK:
            if row.id in _OWN or not self._store.imports.claim(row, this_process(), self._store.clock()):
                return False
            _OWN.add(row.id)
            return True

    def is_orphan(self, row: ImportRow) -> bool:
        """Whether nobody is at work on an import: its process is gone, or has been silent for long."""
        with _OWN_LOCK:
            if row.id in _OWN:
                return False
        if not row.owner or self._store.clock() > row.beat_at + SILENT_S:
            return True
        machine, _, process = row.owner.rpartition("/")
        return machine == _machine() and (process == str(os.getpid()) or not _runs(int(process)))


def this_process() -> str:
    """The name under which this process owns imports."""
    return f"{_machine()}/{os.getpid()}"


def _machine() -> str:
    """This machine, or the container in which processes have numbers of their own."""
    names = ""
    with suppress(OSError):
        names = os.readlink("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{names}"


def _runs(process: int) -> bool:
    if os.name != "posix":
        return True  # until it has been silent for long
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
