"""A policy of one's own that knows workers: the task on which a label of this worker adds most, net of its cost.

In the folder of this file, with [[workers]] in crowd.toml and a column of workers in labels.csv:

    nextlabel simulate --problem crowd.toml --policy gain_by_worker:GainByWorker --policy crowd
    nextlabel backtest labels.csv --gold gold.csv --policy gain_by_worker:GainByWorker --policy crowd
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import nextlabel as nl


class GainByWorker(nl.policies.WorkerPolicy):
    """Look one label ahead, with the worker who is there."""

    name = "gain-by-worker"

    def score(self, view: nl.policies.CrowdView) -> NDArray[np.float64]:
        """(types, beliefs): what a label of each type of worker adds to the chance that the task is right."""
        return view.after(view.reward) - view.reward - view.cost[:, None]


def write_labels(folder: Path, tasks: int = 60, workers: int = 12, each: int = 6) -> tuple[Path, Path]:
    """Labels of workers of whom a third are at chance, and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=tasks)
    rows = []
    for task in range(tasks):
        for worker in rng.permutation(workers)[:each]:
            right = rng.random() < (0.5 if worker % 3 == 0 else 0.9)
            rows.append(f"{task},w{worker},{truth[task] if right else 1 - truth[task]}")
    labels, gold = folder / "labels.csv", folder / "gold.csv"
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    gold.write_text("task,label\n" + "\n".join(f"{x},{y}" for x, y in enumerate(truth)) + "\n")
    return labels, gold


def main() -> None:
    workers = tuple(nl.WorkerType.of_accuracy(a, supply=n) for a, n in ((0.9, 60), (0.65, 200)))
    problem = nl.Problem((nl.TaskClass(40, nl.priors.Fact(0.5)),), 120, workers=workers)
    print(nl.simulate(problem, [GainByWorker(), "crowd", "uniform"], replications=4, turn_away=True))
    with TemporaryDirectory() as folder:
        labels, gold = write_labels(Path(folder))
        found = nl.backtest(labels, gold, policies=[GainByWorker(), "crowd"], labels_per_task=[3], replications=2)
    print(found)


if __name__ == "__main__":
    main()
