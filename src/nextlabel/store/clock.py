"""The time of a database server: one clock for all processes and machines that use it.

The server is asked in the statement that locks a campaign, so that a command's time costs nothing extra. Between two
answers this process counts on by a clock that nobody sets.
"""

from __future__ import annotations

import time


def _seconds_since_boot() -> float:
    """A steady clock, which counts while the machine sleeps where the system has one that does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServerClock:
    """Seconds since 1970 by the server's clock, as it was last heard."""

    def __init__(self) -> None:
        self._ahead = time.time() - _seconds_since_boot()  # until the server is heard

    def __call__(self) -> float:
        """How late it is by the server's clock."""
        return _seconds_since_boot() + self._ahead

    def hear(self, seconds: float) -> None:
        """The server says that it is so late now."""
        self._ahead = seconds - _seconds_since_boot()
