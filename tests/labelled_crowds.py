"""Labels of workers who differ: drawn from a model, or recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from nextlabel.arrays import Ints
from nextlabel.crowd.fit import CrowdFit, CrowdLabels
from nextlabel.files.labels import read_gold, read_labels
from nextlabel.model.prior_weights import LabelCounts
from nextlabel.simulation.replay import CrowdRecord


def drawn(seed: int, tasks: int = 60, workers: int = 8, answers: int = 2, each: int = 4) -> tuple[CrowdLabels, Ints]:
    """Labels of a drawn crowd in random order, and the truths."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, answers, tasks)
    weights = 1.0 + 4.0 * np.eye(answers)
    channels = np.array([[rng.dirichlet(weights[c]) for c in range(answers)] for _ in range(workers)])
    pairs = np.array([(x, j) for x in range(tasks) for j in rng.choice(workers, each, replace=False)])
    rng.shuffle(pairs)
    said = np.array([rng.choice(answers, p=channels[j, truth[x]]) for x, j in pairs])
    return CrowdLabels(pairs[:, 0], pairs[:, 1], said, tasks, workers, answers), truth


def recorded(data: Path, name: str, each: int | None = None, seed: int = 0) -> tuple[CrowdLabels, Ints]:
    """The labels of a recorded set, or ``each`` of a task's labels drawn at random, and the gold."""
    table = read_labels(data / name / "labels.csv")
    gold = read_gold(data / name / "gold.csv", table).label
    assert table.worker is not None
    order = np.random.default_rng(seed).permutation(len(table))
    order = order[np.argsort(table.task[order], kind="stable")]
    rank = np.arange(len(order)) - np.searchsorted(table.task[order], table.task[order])
    rows = order if each is None else order[rank < each]
    return CrowdLabels(
        table.task[rows], table.worker[rows], table.label[rows], len(table.tasks), len(table.workers), 2
    ), gold


def padded(tasks: Sequence[str], said: Ints, gold: Ints, workers: Ints | None = None) -> CrowdRecord:
    """A record from what was said of each task, -1 past its last label; without workers each is a stranger's."""
    task, place = np.nonzero(said >= 0)
    worker = np.arange(len(task)) if workers is None else workers[task, place]
    labels = CrowdLabels(task, worker, said[task, place], len(tasks), int(worker.max()) + 1, 2)
    return CrowdRecord(labels, gold, tuple(tasks), named=workers is not None)


def of_ones(ones: ArrayLike, labels: ArrayLike) -> LabelCounts:
    """Counts from the number of ones and the number of labels of each task."""
    a, m = np.broadcast_arrays(ones, labels)
    return LabelCounts.of_counts(np.column_stack([m - a, a]))


def of_padded(said: Ints, answers: int = 2) -> LabelCounts:
    """Counts from the (N, most) labels of each task, negative past a task's last."""
    return LabelCounts.of_counts(np.column_stack([(said == j).sum(axis=1) for j in range(answers)]))


def right(fit: CrowdFit, gold: Ints) -> float:
    known = gold >= 0
    return float((fit.beliefs.argmax(axis=1) == gold)[known].mean())
