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

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.kernels.gap import GapTables
from nextlabel.kernels.policy import PolicyArrays
from nextlabel.kernels.rollout import ProblemArrays, rollout
from nextlabel.solve.progress import Progress

ENGINES = ("local", "dask")
NOTHING = np.zeros((0, 0), dtype=np.int64)
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


def run_chunk(
    arrays: ProblemArrays,
    tables: PolicyArrays,
    gap: GapTables,
    recorded: Ints,
    seed: int,
    first: int,
    count: int,
    keep: bool,
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1; module level, so that a cluster's workers can import it."""
    out = np.zeros((count, 5))
    final = np.zeros((count, len(arrays.root)), dtype=np.int64) if keep else NOTHING
    rollout(arrays, tables, gap, recorded, seed, first, out, final)
    return out, final


def run(
    engine: Engine,
    arrays: ProblemArrays,
    tables: PolicyArrays,
    gap: GapTables,
    replications: int,
    seed: int,
    *,
    recorded: Ints = NOTHING,
    keep: bool = False,
    progress: Progress | None = None,
) -> tuple[Floats, Ints]:
    """(replications, 5) outcomes, and the final node of every task if ``keep``."""
    chunk = partial(run_chunk, arrays, tables, gap, recorded, seed, keep=keep)
    out, final = run_chunks(engine, chunk, replications, progress)
    return out, final if keep else NOTHING


def run_chunks(
    engine: Engine, chunk: Callable[[int, int], tuple[Floats, Ints]], replications: int, progress: Progress | None
) -> tuple[Floats, Ints]:
    """``chunk(first, count)`` over all replications, the pieces put together in order."""
    from joblib import Parallel, delayed

    even = max(1, -(-replications // (CHUNKS_A_WORKER * engine.jobs)))
    pace = ChunkPacing(even if engine.kind == "dask" else 1, even)
    done: list[tuple[Floats, Ints]] = []
    ready = 0
    with _backend(engine) as options:
        call = delayed(chunk if engine.kind == "dask" else partial(pace.timed, chunk))
        calls = (call(first, count) for first, count in pace.pieces(replications))
        for part in Parallel(return_as="generator", **options)(calls):
            done.append(part)
            ready += len(part[0])
            if progress is not None:
                progress(ready / replications)
    return np.concatenate([d[0] for d in done]), np.concatenate([d[1] for d in done])


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

    def timed(self, chunk: Callable[[int, int], tuple[Floats, Ints]], first: int, count: int) -> tuple[Floats, Ints]:
        """Run a chunk and learn from it."""
        begin = perf_counter()
        out = chunk(first, count)
        seconds = max(perf_counter() - begin, 1e-9)
        self.size = max(1, min(self.most, GROWTH * count, int(count * CHUNK_SECONDS / seconds)))
        return out


@contextmanager
def _backend(engine: Engine) -> Iterator[dict[str, object]]:
    """Options for joblib; a client to the cluster is open inside the block."""
    if engine.kind == "local":
        yield {"n_jobs": engine.jobs, "backend": "threading"}  # the kernel holds no lock, so threads are enough
        return
    try:
        from distributed import Client
        from joblib import parallel_config
    except ImportError as error:
        raise InputError("the dask engine needs the package distributed.", "pip install nextlabel[dask].") from error
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
