"""Run replications in chunks, here on several cores or on a Dask cluster: the same code, the same digits.

A replication's randomness depends on (seed, replication) alone, so neither the chunks nor who runs them matter. Here a
chunk is as many replications as take about a second, for compiled code does not hear Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.errors import InputError
from nextlabel.prose import needs
from nextlabel.solve.progress import Progress

ENGINES = ("local", "dask")
#: Plays replications first .. first + count - 1; of each array that it returns the rows are replications.
Chunk = Callable[[int, int], tuple[Any, ...]]
#: Chunks per worker, at least: enough for a moving progress bar and an even load.
CHUNKS_A_WORKER = 8
#: Seconds that a chunk should take, and how many times larger than those before it may be.
CHUNK_SECONDS, GROWTH = 1.0, 8


@dataclass(frozen=True, slots=True)
class Engine:
    """Where replications run: ``local`` with ``jobs`` threads, or ``dask`` at a scheduler's address."""

    kind: str = "local"
    jobs: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ENGINES:
            raise InputError(f"engine {self.kind!r} is not known.", f"Known engines: {', '.join(ENGINES)}.")
        if self.kind == "dask" and self.scheduler is None:
            raise InputError("the dask engine needs a scheduler.", "Give --scheduler tcp://HOST:PORT.")
        if self.jobs < 1:
            raise InputError(
                f"jobs is {self.jobs}, which is less than 1.", "Give the number of cores to use, e.g. --jobs 2."
            )


def run_chunks(engine: Engine, chunk: Chunk, replications: int, progress: Progress | None) -> tuple[Any, ...]:
    """``chunk(first, count)`` over all replications, the pieces of each array put together in order."""
    from joblib import Parallel, delayed

    even = max(1, -(-replications // (CHUNKS_A_WORKER * engine.jobs)))
    pace = ChunkPacing(even if engine.kind == "dask" else 1, even)
    done: list[tuple[Any, ...]] = []
    ready = 0
    with backend(engine) as options:
        call = delayed(chunk if engine.kind == "dask" else partial(pace.timed, chunk))
        calls = (call(first, count) for first, count in pace.pieces(replications))
        for part in Parallel(return_as="generator", **options)(calls):
            done.append(part)
            ready += len(part[0])
            if progress is not None:
                progress(ready / replications)
    return tuple(np.concatenate(parts) for parts in zip(*done, strict=True))


class ChunkPacing:
    """How many replications the next chunk gets: from ``size`` up to ``most``, as the chunks so far took."""

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most

    def pieces(self, replications: int) -> Iterator[tuple[int, int]]:
        """(first, count) of each chunk; the size is looked at when a chunk is handed out."""
        first = 0
        while first < replications:
            count = min(self.size, replications - first)
            yield first, count
            first += count

    def timed(self, chunk: Chunk, first: int, count: int) -> tuple[Any, ...]:
        """Run a chunk and learn from it."""
        begin = perf_counter()
        out = chunk(first, count)
        seconds = max(perf_counter() - begin, 1e-9)
        self.size = max(1, min(self.most, GROWTH * count, int(count * CHUNK_SECONDS / seconds)))
        return out


@contextmanager
def backend(engine: Engine) -> Iterator[dict[str, object]]:
    """Options for joblib; a client to the cluster is open inside the block."""
    if engine.kind == "local":
        yield {"n_jobs": engine.jobs, "backend": "threading"}  # the kernel holds no lock, so threads are enough
        return
    with needs("the dask engine", "distributed", "'nextlabel[dask]'"):
        from distributed import Client
        from joblib import parallel_config
    try:
        client = Client(engine.scheduler, timeout="5s")
    except (OSError, ValueError, TimeoutError, AssertionError) as error:
        raise InputError(
            f"no Dask scheduler answers at {engine.scheduler}.", "Start one with dask scheduler and check the address."
        ) from error
    with client:
        if not client.scheduler_info(n_workers=1)["workers"]:
            raise InputError(
                f"the Dask scheduler at {engine.scheduler} has no workers.", "Start some with dask worker ADDRESS."
            )
        with parallel_config(backend="dask", client=client, wait_for_workers_timeout=10):
            yield {}
