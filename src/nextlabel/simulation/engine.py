"""Run replications in chunks, here on several cores or on a Dask cluster: the same code, the same digits.

A replication's randomness depends on (seed, replication) alone, so neither the chunks nor who runs them matter. Here a
chunk is as many replications as take about a second, for compiled code does not hear Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.errors import InputError, refuse
from nextlabel.solve.progress import Progress
from nextlabel.wording import needs

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
        refuse(
            (self.kind not in ENGINES, f"engine {self.kind!r} is not known.", f"Known engines: {', '.join(ENGINES)}."),
            (
                self.kind == "dask" and self.scheduler is None,
                "the dask engine needs a scheduler.",
                "Give --scheduler tcp://HOST:PORT.",
            ),
            (self.jobs < 1, f"jobs is {self.jobs}, which is less than 1.", "Give the number of cores, e.g. --jobs 2."),
        )


def run_chunks(engine: Engine, chunk: Chunk, replications: int, progress: Progress | None) -> tuple[Any, ...]:
    """``chunk(first, count)`` over all replications, the pieces of each array put together in order."""
    from joblib import Parallel, delayed

    most = max(1, -(-replications // (CHUNKS_A_WORKER * engine.jobs)))
    size, ready, done = most if engine.kind == "dask" else 1, 0, list[tuple[Any, ...]]()

    def timed(first: int, count: int) -> tuple[Any, ...]:
        nonlocal size  # looked at when a chunk is handed out
        begin = perf_counter()
        out = chunk(first, count)
        seconds = max(perf_counter() - begin, 1e-9)
        size = max(1, min(most, GROWTH * count, int(count * CHUNK_SECONDS / seconds)))
        return out

    def pieces() -> Iterator[tuple[int, int]]:
        first = 0
        while first < replications:
            count = min(size, replications - first)
            yield first, count
            first += count

    with backend(engine) as options:
        call = delayed(chunk if engine.kind == "dask" else timed)
        for part in Parallel(return_as="generator", **options)(call(first, count) for first, count in pieces()):
            done.append(part)
            ready += len(part[0])
            if progress is not None:
                progress(ready / replications)
    return tuple(np.concatenate(parts) for parts in zip(*done, strict=True))


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
