"""Labels with the workers who gave them, as numbers, in the order in which they came in."""

from __future__ import annotations

from typing import NamedTuple

from nextlabel.arrays import Ints


class CrowdLabels(NamedTuple):
    """``task``, ``worker`` and ``answer`` (n,) of each label, numbered from 0; how many of each there are."""

    task: Ints
    worker: Ints
    answer: Ints
    tasks: int
    workers: int
    answers: int
