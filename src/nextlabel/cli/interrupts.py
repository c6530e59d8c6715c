"""Whether the user has pressed Ctrl-C, also where the interrupt is lost on the way.

LLVM calls back into Python while kernels are compiled, and an exception raised in such a callback goes no further: the
compiler fails later with an error of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """The interrupts that have come so far; each of them still raises KeyboardInterrupt."""
    come: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        come.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield come  # ignored, or handled by the program that runs the command
        return
    try:
        signal.signal(signal.SIGINT, note)
    except ValueError:  # not the main thread, which signals do not reach
        yield come
        return
    try:
        yield come
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
