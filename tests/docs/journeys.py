"""Which files of the package a call passes through: those in which it runs a function (imports do not count)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import nextlabel

PACKAGE = str(Path(nextlabel.__file__).parent) + "/"


@contextmanager
def traced() -> Iterator[dict[str, None]]:
    """Files of the package, relative to it, in the order in which a function of theirs is first called."""
    found: dict[str, None] = {}

    def see(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            found[file.removeprefix(PACKAGE)] = None

    profile: Callable[..., None] = see
    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
