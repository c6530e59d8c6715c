"""The recorded labels of the paper's second experiment and ours: ``labels.csv`` and ``gold.csv`` of a set.

The order of the rows is kept: it is a task's 'file order'. RTE and TEMP are not part of this package: ``find_set`` says
where they come from.
"""

from __future__ import annotations

from pathlib import Path

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.gold import read_gold
from nextlabel.files.labels import read_labels
from nextlabel.simulation.from_labels import to_recorded
from nextlabel.simulation.replay import Recorded

SETS = ("rte", "temp")
SOURCE = (
    "The sets are those of Snow, O'Connor, Jurafsky and Ng, 'Cheap and Fast - But is it Good?' (EMNLP 2008): save them "
    "as rte/labels.csv (task,worker,label), rte/gold.csv (task,label), temp/labels.csv and temp/gold.csv in one folder "
    "and give it with --data DIR."
)


def find_set(data: str | Path | None, name: str) -> Recorded:
    """The set called ``name`` below the folder ``data``."""
    if data is None:
        raise InputError(f"the labels of {name.upper()} are needed and no folder is given.", SOURCE)
    folder = Path(data) / name
    for file in ("labels.csv", "gold.csv"):
        if not (folder / file).is_file():
            raise FileFormatError(f"there is no file {folder / file}.", SOURCE)
    table = read_labels(folder / "labels.csv")
    return to_recorded(table, read_gold(folder / "gold.csv", table))
