"""``python -m benchmarks.number_crowds``: numbers learnt from workers who differ against the labels' plain mean.

For each set of ``../shared/data/affect`` (or of the folder in ``NEXTLABEL_DATA``) and 2, 4, 6 and 10 labels per item
drawn in 20 orders: the correlation with gold of the plain mean, by how much that of ``nl.learn_numbers`` is above, and
for how many items the 95% interval holds gold.
Then, for crowds that are drawn: the share of numbers that the model expects to be right, and how many are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.crowd.answers import Number
from nextlabel.crowd.number_draws import expected_numbers
from nextlabel.crowd.numbers import NumberLabels, fit_numbers, number_labels
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import read_answers, read_labels

SETS = ("anger", "joy", "valence")


def correlations(folder: Path, each: int, orders: int) -> list[tuple[float, float, float]]:
    """Of ``each`` labels per item in random orders: the correlation with gold of the plain mean, and of the fit; then
    the share of the items whose 95% interval holds gold."""
    table, gold = read_labels(folder / "labels.csv"), read_answers(folder / "gold.csv")
    data = number_labels(table, Number())
    known = np.array([float(gold[cell_text(name)]) for name in table.tasks])
    found = []
    for order in range(orders):
        drawn = np.random.default_rng((0, order)).permutation(len(data.task))
        drawn = drawn[np.argsort(data.task[drawn], kind="stable")]
        rank = np.arange(len(drawn)) - np.searchsorted(data.task[drawn], data.task[drawn])
        some = drawn[rank < each]
        part = NumberLabels(data.task[some], data.worker[some], data.number[some], data.tasks, data.workers)
        mean = np.bincount(part.task, part.number, part.tasks) / np.bincount(part.task, minlength=part.tasks)
        fit, sd = fit_numbers(part, Number()).read(part)
        held = float((np.abs(fit - known) <= 1.96 * sd).mean())
        found.append((float(np.corrcoef(mean, known)[0, 1]), float(np.corrcoef(fit, known)[0, 1]), held))
    return found


def margins(folder: Path, each: int, orders: int) -> list[float]:
    """By how much the fit's correlation is above the plain mean's, order by order."""
    return [fit - mean for mean, fit, _ in correlations(folder, each, orders)]


def drawn_crowd(seed: int, labels: int, sds: Sequence[float]) -> tuple[Floats, NumberLabels, Floats]:
    """100 numbers, labels of eight workers, each of one of these ``sds``, who never label an item twice, and the sds.

    Whoever comes gets an item with the fewest labels.
    """
    rng = np.random.default_rng((1, seed))
    truth, sd = np.clip(rng.normal(50, 15, 100), 0, 100), rng.choice(sds, 8)
    bias, had, given = rng.normal(0, 1, 8), np.zeros((100, 8), dtype=np.bool_), list[tuple[int, int]]()
    while len(given) < labels:
        worker = int(rng.choice(np.flatnonzero(~had.all(axis=0))))
        task = int(np.where(had[:, worker], np.inf, had.sum(axis=1) + rng.random(100)).argmin())
        had[task, worker] = True
        given.append((task, worker))
    task, worker = np.array(given).T
    said = np.clip(truth[task] + bias[worker] + sd[worker] * rng.standard_normal(labels), 0, 100)
    return truth, NumberLabels(task, worker, said, 100, 8), sd


def own_word(seed: int, labels: int, sds: Sequence[float]) -> tuple[float, float, float, float]:
    """The share that is expected to be right with its interval, and the share that is."""
    kind = Number(0.0, 100.0)
    truth, data, _ = drawn_crowd(seed, labels, sds)
    read = kind.beliefs(*(fit := fit_numbers(data, kind)).read(data))[:, 0]
    said = expected_numbers(kind, fit, data, np.ones(100, dtype=np.bool_), read)
    return said.mean, said.low, said.high, float((np.abs(read - truth) <= kind.tolerance).mean())


def main() -> None:
    """Print the tables."""
    data = Path(os.environ.get("NEXTLABEL_DATA", "../shared/data")) / "affect"
    for name in SETS:
        for each in (2, 4, 6, 10):
            mean, fit, held = np.mean(correlations(data / name, each, 20), axis=0)
            print(
                f"{name:8} {each:2} labels  plain mean {mean:.3f}  learnt {fit:.3f}  {fit - mean:+.3f}; "
                f"intervals hold for {held:.0%} of the items"
            )
    for sds in ((3.0, 8.0, 20.0), (5.0,), (10.0, 20.0, 25.0)):
        for labels in (150, 200, 400, 600):
            said, low, high, right = np.array([own_word(seed, labels, sds) for seed in range(40)]).T
            held = ((low <= right) & (right <= high)).mean()
            off = f"{100 * (said - right).mean():+.1f} points on average, interval holds in {held:.0%}"
            print(f"workers' sd {sds}, {labels} labels: expected {said.mean():.3f}, right {right.mean():.3f}; {off}")


if __name__ == "__main__":
    main()
