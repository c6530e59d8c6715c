"""``python -m benchmarks.number_crowds``: numbers learnt from workers who differ against the labels' plain mean.

For each set of ``../shared/data/affect`` (or of the folder in ``NEXTLABEL_DATA``) and 2, 4, 6 and 10 labels per item
drawn in 20 orders: the correlation with gold of the plain mean, and by how much that of ``nl.learn_numbers`` is above.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from nextlabel.crowd.answers import Number
from nextlabel.crowd.numbers import NumberLabels, fit_numbers, number_labels
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import read_answers, read_labels

SETS = ("anger", "joy", "valence")


def correlations(folder: Path, each: int, orders: int) -> list[tuple[float, float]]:
    """Of ``each`` labels per item in random orders: the correlation with gold of the plain mean, and of the fit."""
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
        fit = fit_numbers(part, Number()).estimate
        found.append((float(np.corrcoef(mean, known)[0, 1]), float(np.corrcoef(fit, known)[0, 1])))
    return found


def margins(folder: Path, each: int, orders: int) -> list[float]:
    """By how much the fit's correlation is above the plain mean's, order by order."""
    return [fit - mean for mean, fit in correlations(folder, each, orders)]


def main() -> None:
    """Print the table."""
    data = Path(os.environ.get("NEXTLABEL_DATA", "../shared/data")) / "affect"
    for name in SETS:
        for each in (2, 4, 6, 10):
            mean, fit = np.mean(correlations(data / name, each, 20), axis=0)
            print(f"{name:8} {each:2} labels  plain mean {mean:.3f}  learnt {fit:.3f}  {fit - mean:+.3f}")


if __name__ == "__main__":
    main()
