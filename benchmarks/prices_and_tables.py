"""``python -m benchmarks.prices_and_tables [--against FOLDER]``: prices and index tables that have to be there in time.

``--against`` is the root of another version of the project (``git archive COMMIT src | tar -x -C FOLDER``): each job is
then run by both, in turn and in processes of their own, and the ratio of processor times is printed. Times are those of
the processor, so that they hold on a busy machine; index tables use two threads.

A floor is the counted work at the speed of one core: four flops a nanosecond, 24 where prices are side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

import nextlabel as nl
from benchmarks.timing import seconds as in_words

#: Flops for a state and arrival (and layer of time) in a sweep, and for a state, arrival and price of a table.
SWEEP, TABLE = 20, 16
#: The same with layers of slack time, for each of them.
LAYER = 32
FLOP = 0.25e-9
#: Prices of a table are side by side, so that several are done at once.
LANES = 6

if TYPE_CHECKING:
    from nextlabel.kernels.sweep import Brackets

Answer = dict[str, float | str]


def index() -> Answer:
    """The index table of K = 1000, U = 3000 with 25 labels in flight."""
    nl.index_table(nl.Problem.identical(tasks=10, budget=12), tolerance=1e-6)
    problem = nl.Problem.identical(tasks=1000, budget=3000, arrival_rate=10.0)
    from nextlabel.solve.index_roots import IndexWork

    work, narrow = [0.0], IndexWork._narrow

    def counted(self: IndexWork, prices: np.ndarray, at: np.ndarray, lo: np.ndarray, *rest: np.ndarray) -> None:
        work[0] += len(prices) * int(at[-1]) * lo[0].size
        narrow(self, prices, at, lo, *rest)

    IndexWork._narrow = counted  # type: ignore[method-assign, assignment]
    begun = process_time()
    table = nl.index_table(problem, tolerance=1e-6)
    taken = process_time() - begun
    return {
        "seconds": taken,
        "floor": work[0] * TABLE * FLOP / LANES,
        "answer": f"settled at {table.settled} arrivals left",
    }


def index_deadline() -> Answer:
    """The index table of K = 100, U = 300 with 25 labels in flight and a deadline at T = 60."""
    nl.index_table(nl.Problem.identical(tasks=10, budget=12), tolerance=1e-6)
    nl.index_table(nl.Problem.identical(tasks=2, budget=3, horizon=10.0), tolerance=1e-6)
    problem = nl.Problem.identical(tasks=100, budget=300, arrival_rate=10.0, horizon=60.0)
    updates = [0.0]
    with suppress(ImportError):  # versions that had no layers of slack time have no count
        from nextlabel.solve import index_roots

        nl.index_table(nl.Problem.identical(tasks=100, budget=50, arrival_rate=10.0, horizon=60.0), tolerance=1e-2)
        narrow = index_roots.SlackTimeWork._sweep

        def counted(self: index_roots.SlackTimeWork, prices: np.ndarray, at: np.ndarray, *rest: Brackets) -> None:
            updates[0] += len(prices) * int(at[-1]) * self.states * self.layers
            narrow(self, prices, at, *rest)

        index_roots.SlackTimeWork._sweep = counted  # type: ignore[assignment, method-assign]
    begun = process_time()
    table = nl.index_table(problem, tolerance=1e-6)
    taken = process_time() - begun
    return {
        "seconds": taken,
        "floor": updates[0] * LAYER * FLOP / LANES,
        "answer": f"{len(table.tau)} layers, error {table.error:.1e}",
    }


def per_arrival() -> Answer:
    """The per-arrival bound of K = 1000, U = 3000, r = 100."""
    nl.upper_bound(nl.Problem.identical(tasks=2, budget=400, arrival_rate=10.0), "per-arrival")
    return _bound(nl.Problem.identical(tasks=1000, budget=3000, arrival_rate=100.0))


def deadline() -> Answer:
    """The per-arrival bound of K = 10, U = 30, r = 1, T = 40."""
    nl.upper_bound(nl.Problem.identical(tasks=2, budget=3, horizon=10.0), "per-arrival")
    return _bound(nl.Problem.identical(tasks=10, budget=30, arrival_rate=1.0, horizon=40.0))


def _bound(problem: nl.Problem) -> Answer:
    from nextlabel.solve.per_arrival import PricedProblem

    work, backward = [0.0], PricedProblem.backward

    def counted(self: PricedProblem, *rest: object) -> float:
        work[0] += 2.0 * self.V.size
        return backward(self, *rest)  # type: ignore[arg-type]

    PricedProblem.backward = counted  # type: ignore[assignment, method-assign]
    begun = process_time()
    bound = nl.upper_bound(problem, "per-arrival")
    taken = process_time() - begun
    answer = f"{bound.value:.5f}, relative gap {bound.gap / bound.value:.1e}"
    return {"seconds": taken, "floor": work[0] * SWEEP * FLOP, "answer": answer}


def warm() -> Answer:
    """Prices of 100,000 tasks a hundred labels after the last ones, the slowest of twenty; 300,000 labels at first."""
    from nextlabel.model.tasks import Groups, fresh_groups
    from nextlabel.solve.per_arrival import PriceSolver

    problem = nl.Problem.identical(tasks=100_000, budget=300_000, arrival_rate=10_000.0)
    solver = PriceSolver(problem)
    found = solver.solve(fresh_groups(problem.classes), problem.budget)
    begun = process_time()
    solver.solve(fresh_groups(problem.classes), problem.budget)
    cold = process_time() - begun
    slowest, work, gap = 0.0, 0.0, 0.0
    none = np.zeros(4, dtype=np.int64)
    for step in range(1, 21):
        given = 100 * step
        back = given // 4
        members = np.array([problem.tasks - given, given - back, back - back // 2, back // 2])
        groups = Groups(none, np.array([0, 0, 1, 2]), np.array([0, 1, 0, 0]), members)
        begun = process_time()
        found = solver.solve(groups, problem.budget - given, found)
        slowest = max(slowest, process_time() - begun)
        work = max(work, 2.0 * found.evaluations * len(found.size) * found.advantage.size)
        gap = max(gap, found.gap / found.value)
    answer = f"relative gap at most {gap:.1e}; without prices to start from {1e3 * cold:.0f} ms"
    return {"seconds": slowest, "floor": work * SWEEP * FLOP, "answer": answer}


JOBS: dict[str, tuple[str, Callable[[], Answer]]] = {
    "index": ("index table, K=1000, U=3000, r/mu=25", index),
    "index-deadline": ("index table, K=100, U=300, r/mu=25, T=60", index_deadline),
    "per-arrival": ("per-arrival bound, K=1000, U=3000, r=100", per_arrival),
    "deadline": ("per-arrival bound, K=10, U=30, r=1, T=40", deadline),
    "warm": ("prices again after 100 labels, 100,000 tasks", warm),
}


def run(job: str, source: Path) -> Answer:
    """A job in a process of its own, with the sources of one version."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.prices_and_tables", "--job", job],
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    answer: Answer = json.loads(done.stdout)
    return answer


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prices_and_tables", description=__doc__)
    parser.add_argument("--job", choices=JOBS, help="run one job here and print its numbers")
    parser.add_argument("--against", type=Path, help="root of another version")
    options = parser.parse_args()
    if options.job is not None:
        print(json.dumps(JOBS[options.job][1]()))
        return
    here = Path(nl.__file__).resolve().parent.parent
    print("| what | before | now | ratio | floor | answer before | answer now |\n|---|---|---|---|---|---|---|")
    for job, (what, _) in JOBS.items():
        old = run(job, options.against / "src") if options.against is not None and job != "warm" else None
        new = run(job, here)
        now = float(new["seconds"])
        cells = [what, "", in_words(now), "", in_words(float(new["floor"])), "", str(new["answer"])]
        if old is not None:
            before = float(old["seconds"])
            cells[1], cells[3], cells[5] = in_words(before), f"{before / now:.1f} : 1", str(old["answer"])
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
