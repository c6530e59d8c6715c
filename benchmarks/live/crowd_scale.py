"""``python -m benchmarks.live.crowd_scale``: what a campaign with the policy ``crowd`` costs at its largest.

1,000,000 tasks, 10,000 workers and 300,000 labels, without a store: the steps of one label, a refit, the copy that a
refit in the background begins with, and what is shown, each with its time and the memory of the process.
"""

from __future__ import annotations

import argparse
import copy
import resource
from time import perf_counter

import numpy as np

from nextlabel.application.table_cache import exercise
from nextlabel.policies.allocation import Outlook
from nextlabel.policies.crowd.allocator import GrowingCrowd


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=300_000)
    given = parser.parse_args()
    exercise()
    rng = np.random.default_rng(0)
    truth, skill = rng.integers(0, 2, given.tasks), rng.uniform(0.55, 0.95, given.workers)
    crowd = GrowingCrowd(np.array([0.5, 0.5]))
    print("| step | each | memory |")
    print("|---|---|---|")

    def show(what: str, seconds: float) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        unit = f"{1e6 * seconds:.0f} us" if seconds < 1e-3 else f"{seconds:.2f} s"
        print(f"| {what} | {unit} | {peak:,.0f} MB |", flush=True)

    begun = perf_counter()
    crowd.add_tasks(np.zeros((given.tasks, 2)), 5, 5)
    for _ in range(given.workers):
        crowd.add_worker()
    show("tasks and workers are there", perf_counter() - begun)
    budget, done = 3 * given.tasks, 0
    for version, labels in enumerate((0, given.labels // 2, given.labels), start=1):
        begun = perf_counter()
        while done < labels:
            worker = int(rng.integers(given.workers))
            task = crowd.choose(worker, Outlook(done, budget - done))
            assert isinstance(task, int)
            crowd.assign(done, task, worker)
            right = rng.random() < skill[worker]
            crowd.complete(done, int(truth[task] if right else 1 - truth[task]))
            done += 1
        if labels:
            show(f"choose, lease and label, up to {labels:,}", (perf_counter() - begun) / (given.labels // 2))
        begun = perf_counter()
        crowd.learn(version, done, budget - done)
        show(f"refit of {labels:,} labels", perf_counter() - begun)
    begun = perf_counter()
    copy.deepcopy(crowd)
    show("copy for the first refit in the background", perf_counter() - begun)


if __name__ == "__main__":
    main()
