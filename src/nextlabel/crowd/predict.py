"""What workers who are known say about tasks that are not: their channels, used on other labels.

P(c | labels of x) is proportional to share_c times the product over its labels of P(worker j says y | c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.crowd.fit import CrowdFit
from nextlabel.errors import InputError
from nextlabel.files.label_table import LabelTable
from nextlabel.prose import listed


def beliefs_of(table: LabelTable, answers: Sequence[str], channels: Mapping[str, Floats], fit: CrowdFit) -> Floats:
    """(K, C) probability of each of ``answers`` for the tasks of a table, in the table's order.

    ``channels`` (C, C) are those of the workers who are known, by name; anybody else is a stranger, who has the mean
    channel of the crowd.
    """
    number = {answer: k for k, answer in enumerate(answers)}
    strange = [answer for answer in table.labels if answer not in number]
    if strange:
        raise InputError(
            f"the crowd has never given the answer {listed(strange)}; it was learnt from {listed(answers)}.",
            "Give labels with the same answers, or learn the crowd from labels that have them.",
        )
    stranger = fit.prior.pseudo / fit.prior.pseudo.sum(axis=1, keepdims=True)
    logs = np.log([*(channels.get(name, stranger) for name in table.workers), stranger])
    who = np.full(len(table), -1) if table.worker is None else table.worker
    said = np.array([number[answer] for answer in table.labels])[table.label]
    logp = np.tile(np.log(fit.share), (len(table.tasks), 1))
    np.add.at(logp, table.task, logs[who, :, said])
    odds = np.exp(logp - logp.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
