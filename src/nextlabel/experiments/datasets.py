"""The recorded labels of the paper's second experiment and ours: ``labels.csv`` and ``gold.csv`` of a set.

The order of the rows is kept: it is a task's 'file order'. RTE, TEMP and MRE are not part of this package: ``SOURCE``
says where they come from.
"""

from __future__ import annotations

from pathlib import Path

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.gold import Gold, read_gold
from nextlabel.files.label_table import LabelTable
from nextlabel.files.labels import read_labels
from nextlabel.simulation.crowd_record import CrowdRecord
from nextlabel.simulation.from_labels import to_recorded
from nextlabel.simulation.replay import Recorded

#: Sets of the paper's second experiment, and those whose workers are replayed.
SETS, CROWDS = ("rte", "temp"), ("rte", "temp", "mre")
SOURCE = (
    "RTE and TEMP are those of Snow, O'Connor, Jurafsky and Ng, 'Cheap and Fast - But is it Good?' (EMNLP 2008), MRE "
    "is the medical relation extraction of CrowdTruth (Dumitrache and others, 2018): save each as labels.csv (task, "
    "worker, label; MRE also started, submitted, batch) and gold.csv (task, label) in rte/, temp/ and mre/ of one "
    "folder, and give it with --data DIR."
)


def check_set(data: str | Path | None, name: str) -> Path:
    """The folder of the set called ``name`` below the folder ``data``; refused if a file is missing."""
    if data is None:
        raise InputError(f"the labels of {name.upper()} are needed and no folder is given.", SOURCE)
    folder = Path(data) / name
    for file in ("labels.csv", "gold.csv"):
        if not (folder / file).is_file():
            raise FileFormatError(f"there is no file {folder / file}.", SOURCE)
    return folder


def find_set(data: str | Path | None, name: str) -> Recorded:
    """The labels and the truth of a set."""
    table, gold = _read(data, name)
    return to_recorded(table, gold)


def find_crowd(data: str | Path | None, name: str) -> CrowdRecord:
    """The labels of a set with their workers, and with their times if it has them."""
    table, gold = _read(data, name)
    return CrowdRecord.from_table(table, gold.label)


def _read(data: str | Path | None, name: str) -> tuple[LabelTable, Gold]:
    folder = check_set(data, name)
    table = read_labels(folder / "labels.csv")
    return table, read_gold(folder / "gold.csv", table)
