"""The one place where Numba's flags are set, kernels are compiled once and kept, and a user is told that it happens.

Compiled kernels are kept where Numba keeps them: in ``NUMBA_CACHE_DIR``, beside the source, or in the user's cache. A
user who may write to none of these has a folder among the temporary files, which no other user can write to.

Processes that need the same kernel at the same time: one of them compiles it, the others wait and read the cache.
Without this, processes that start together (the processes of a service, a demo and its crowd, tests side by side) all
compile the same kernels, and two that write the index of one kernel's cache can lose each other's entry.

A kernel's lock is an advisory lock on a file beside its cache. A process that holds it waits only for kernels that
this one calls. Calls have no cycles, so that no two processes wait for each other; threads of one process take turns
by Numba's own lock, which is taken first. The system gives a lock back when its process ends, however it ends. A
process that is stopped (SIGSTOP) keeps it, so that nobody waits for longer than LONGEST_S seconds.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import unliteral
from numba.misc.appdirs import AppDirs

try:
    import fcntl
except ImportError:  # not on Windows: everybody compiles
    fcntl = None  # type: ignore[assignment]


#: Seconds that a process waits for another, and between two looks.
LONGEST_S, LOOK_S = 60.0, 0.02
log = logging.getLogger("nextlabel.kernels")


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def choose_cache() -> bool:
    """See to it that compiled kernels can be kept; False if they cannot be anywhere."""
    of_user = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)  # type: ignore[no-untyped-call]
    usual = [Path(__file__).parent / "__pycache__", of_user]
    given = [Path(os.environ["NUMBA_CACHE_DIR"])] if os.environ.get("NUMBA_CACHE_DIR") else []
    if any(map(is_writable, [*given, *usual])):
        return True
    tried = ", ".join(map(str, [*given, *usual]))
    try:
        user = getattr(os, "getuid", int)()
        folder = Path(tempfile.gettempdir()) / f"nextlabel-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid != user or found.st_mode & 0o170077 != 0o040000:  # somebody else's, or open to others
            folder = Path(tempfile.mkdtemp(prefix="nextlabel-"))
    except OSError:
        log.warning("Compiled code cannot be kept: nothing can be written to %s. Set NUMBA_CACHE_DIR.", tried)
        return False
    log.warning(
        "Compiled code is kept in %s, since nothing can be written to %s. Set NUMBA_CACHE_DIR to choose.", folder, tried
    )
    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    return True


CACHE = choose_cache()


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
        if isinstance(signature, tuple):  # else each constant that a kernel hands to another is compiled by itself
            signature = tuple(map(unliteral, signature))
        with global_compiler_lock, only_process(file):
            return compile(signature)

    kernel.compile = compile_or_wait


F = TypeVar("F", bound=Callable[..., Any])


def version_of(folder: Path) -> str:
    """What compiled kernels are valid for: this Numba, and these sources."""
    sources = b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))
    return f"{numba.__version__} {sha256(sources).hexdigest()}"


VERSION = version_of(Path(__file__).parent)


def jit(function: F) -> F:
    """Compile in nopython mode, cached on disk, without the GIL; fastmath stays off because ties matter.

    Numba would keep a compiled kernel until its own file changes, but a kernel also holds what it calls in other files.
    So the cache is of one version of all kernels, whenever their files were written: it may be copied with them.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        # Compiled whole numbers wrap around in silence; so shall these.
        return np.errstate(over="ignore")(function)
    kernel: Any = numba.njit(cache=CACHE, nogil=True, fastmath=False, error_model="numpy")(function)
    if CACHE:
        kernel._cache._cache_file._version, kernel._cache._cache_file._source_stamp = VERSION, None
        compile_once(kernel)
    return cast(F, kernel)


class Announcement(event.Listener):
    """Says in the log, once in a process, that kernels have to be compiled; not when the cache has them."""

    told = False

    def on_start(self, event: Any) -> None:
        """A function is compiled."""
        if not self.told and event.data["dispatcher"].py_func.__module__.startswith(__package__):
            self.told = True
            log.warning("Compiling numerical kernels, once per installation, which takes a minute or two ...")

    def on_end(self, event: Any) -> None:
        """It is done."""


event.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]


def uncounted(function: F) -> F:
    """``jit`` without reference counts, for inner functions that make no array and return none.

    A compiled function counts the users of every array that it is handed, one atomic operation each on entering and on
    leaving, and a NamedTuple of arrays counts them all. Small functions in a loop then spend most of their time on it,
    and threads that share the arrays wait for each other. Whoever calls from outside holds the arrays anyway.
    """
    compiled = jit(function)
    options = getattr(compiled, "targetoptions", None)
    if options is not None:  # None when compilation is switched off
        options["_nrt"] = False
    return compiled
