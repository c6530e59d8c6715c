"""What a command is going to look at, so that a store can read it for many commands at once."""

from __future__ import annotations

from typing import NamedTuple


class Need(NamedTuple):
    """The worker who sends a command, the lease that it is about, and whether a task may be chosen for the worker.

    Only a hint: whatever a need leaves out is read when the command asks for it.
    """

    worker: str | None = None
    lease: str | None = None
    asks: bool = False


#: Nothing is known about the command.
NO_NEED = Need()
