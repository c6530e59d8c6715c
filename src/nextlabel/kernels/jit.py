"""The one place where Numba's flags are set, and where a user is told that compilation is going on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event

from nextlabel.kernels.compile_once import compile_once

F = TypeVar("F", bound=Callable[..., Any])

#: Taken by the first compilation that is announced, and never given back: a command has several blocks to announce it.
_told = Lock()


def version_of(folder: Path) -> str:
    """What compiled kernels are valid for: this Numba, and these sources."""
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    return f"{numba.__version__} {sha256(sources).hexdigest()}"


VERSION = version_of(Path(__file__).parent)


def jit(function: F) -> F:
    """Compile in nopython mode, cached on disk, without the GIL; fastmath stays off because ties matter.

    Numba would keep a compiled kernel until its own file changes, but a kernel also holds what it calls in other files.
    So the cache is of one version of all kernels.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        # Compiled whole numbers wrap around in silence; so shall these.
        return np.errstate(over="ignore")(function)
    kernel: Any = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
    kernel._cache._cache_file._version = VERSION
    compile_once(kernel)
    return cast(F, kernel)


class _Announce(event.Listener):
    def __init__(self, say: Callable[[], None]) -> None:
        self._say = say

    def on_start(self, event: Any) -> None:
        if _told.acquire(blocking=False):
            self._say()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announce_compilation(say: Callable[[], None]) -> Iterator[None]:
    """Call ``say`` if a kernel has to be compiled inside the block (not when the cache has it), once in a process."""
    with event.install_listener("numba:compile", _Announce(say)):
        yield
