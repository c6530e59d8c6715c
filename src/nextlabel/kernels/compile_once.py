"""Processes that need the same kernel at the same time: one of them compiles it, the others wait and read the cache.

Without this, processes that start together (the processes of a service, a demo and its crowd, tests side by side) all
compile the same kernels, and two that write the index of one kernel's cache can lose each other's entry.

A kernel's lock is an advisory lock on a file beside its cache. A process that holds it waits only for kernels that
this one calls. Calls have no cycles, so that no two processes wait for each other; threads of one process take turns
by Numba's own lock, which is taken first. The system gives a lock back when its process ends, however it ends. A
process that is stopped (SIGSTOP) keeps it, so that nobody waits for longer than LONGEST_S seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # not on Windows: everybody compiles
    fcntl = None  # type: ignore[assignment]


#: Seconds that a process waits for another, and between two looks.
LONGEST_S, LOOK_S = 60.0, 0.02


@contextmanager
def only_process(file: Path) -> Iterator[None]:
    """One process at a time is inside, as far as the file system can tell: where it has no locks, all are."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # a folder that only others may write to
        yield
        return
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int) -> None:
    """Take the lock, or go on without it after a while: compiling twice does no harm."""
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOOK_S)


def compile_once(kernel: Any) -> None:
    """Let ``kernel`` be compiled by one process at a time; those that waited find it in the cache."""
    compile: Callable[..., Any] = kernel.compile
    file = Path(kernel._cache.cache_path) / f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}.lock"

    def compile_or_wait(signature: Any) -> Any:
        with global_compiler_lock, only_process(file):
            return compile(signature)

    kernel.compile = compile_or_wait
