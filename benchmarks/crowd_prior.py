"""``python -m benchmarks.crowd_prior [DATA]``: what learning the crowd's mean is worth, as a table in Markdown.

Every task gets the same number of labels in random order; the labels are fitted with the crowd's mean held at the
default (known), learnt and held to it (default), and learnt freely. Sets: drawn crowds whose workers' activity is heavy
tailed, and the recorded sets in the folder DATA.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.files.labels import read_gold, read_labels

TASKS, DRAWS, EACH = 500, 20, (2, 3, 5)
#: Mean confusion of a drawn crowd's workers (weight 5), share of workers who answer at random, and their number.
DRAWN = {
    "even, 50 workers": ([[0.7, 0.3], [0.3, 0.7]], 0.0, 50),
    "leaning, 50 workers": ([[0.9, 0.1], [0.45, 0.55]], 0.0, 50),
    "leaning, 200 workers": ([[0.9, 0.1], [0.45, 0.55]], 0.0, 200),
    "spam, 50 workers": ([[0.7, 0.3], [0.3, 0.7]], 0.3, 50),
    "spam, 200 workers": ([[0.7, 0.3], [0.3, 0.7]], 0.3, 200),
    "three answers, 100 workers": ([[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]], 0.0, 100),
}
HOLDS = {"known": math.inf, "held": None, "free": 0.0}


def crowd(name: str, each: int, seed: int) -> tuple[CrowdLabels, Ints]:
    """Labels of a drawn crowd and the truths."""
    mean, spam, workers = DRAWN[name]
    rng = np.random.default_rng(seed)
    C = len(mean)
    activity = rng.pareto(1.0, workers) + 0.2
    activity /= activity.sum()
    truth = rng.choice(C, TASKS, p=rng.dirichlet(np.full(C, 5.0)))
    channels: Floats = np.array([[rng.dirichlet(5 * np.array(row)) for row in mean] for _ in range(workers)])
    for j in np.flatnonzero(rng.random(workers) < spam):
        channels[j] = rng.dirichlet(np.ones(C))
    pairs = [(x, j) for x in range(TASKS) for j in rng.choice(workers, each, replace=False, p=activity)]
    said = [rng.choice(C, p=channels[j, truth[x]]) for x, j in pairs]
    task, worker = np.array(pairs).T
    return CrowdLabels(task, worker, np.array(said), TASKS, workers, C), truth


def recorded(folder: Path, each: int, seed: int) -> tuple[CrowdLabels, Ints]:
    """A recorded set with ``each`` of every task's labels, drawn at random."""
    table = read_labels(folder / "labels.csv")
    assert table.worker is not None
    order = np.random.default_rng(seed).permutation(len(table))
    order = order[np.argsort(table.task[order], kind="stable")]
    rank = np.arange(len(order)) - np.searchsorted(table.task[order], table.task[order])
    rows = order[rank < each]
    many = (len(table.tasks), len(table.workers), len(table.labels))
    labels = CrowdLabels(table.task[rows], table.worker[rows], table.label[rows], *many)
    return labels, read_gold(folder / "gold.csv", table).label


def rows(data: Path | None) -> Iterator[tuple[str, ...]]:
    """Accuracy at 2, 3 and 5 labels per task under each way to treat the crowd's mean."""
    folders = [] if data is None else [data / name for name in ("rte", "temp")]
    sources: list[str | Path] = [*DRAWN, *folders]
    for source in sources:
        cells = []
        for hold in HOLDS.values():
            found = []
            for each in EACH:
                right = []
                for seed in range(DRAWS):
                    labels, truth = (
                        recorded(source, each, seed) if isinstance(source, Path) else crowd(source, each, seed)
                    )
                    prior = CrowdPrior.default(labels.answers)
                    fit = fit_crowd(labels, prior=prior if hold is None else replace(prior, hold=hold))
                    known = truth >= 0
                    right.append((fit.beliefs.argmax(axis=1) == truth)[known].mean())
                found.append(f"{np.mean(right):.3f}")
            cells.append(" / ".join(found))
        yield (source.name if isinstance(source, Path) else source, *cells)


def main() -> None:
    """Print the table."""
    print("| set |", " | ".join(HOLDS), "|")
    print("|---|" + "---|" * len(HOLDS))
    for row in rows(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
