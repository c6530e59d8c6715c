"""Who are these workers, and what do their labels say together: ``learn_crowd``."""

from __future__ import annotations

import os

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.crowd.copying import find_copying
from nextlabel.crowd.fit import CrowdFit, fit_crowd
from nextlabel.crowd.flags import flags_by_worker
from nextlabel.crowd.labels import CrowdLabels, crowd_labels
from nextlabel.crowd.learnt import CopyingPair, Estimate, LearntCrowd, LearntWorker
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.skill import Intervals, accuracies, bits, channel_variance, worth
from nextlabel.files.frames import Frame
from nextlabel.files.gold import Gold, read_gold
from nextlabel.files.label_table import LabelTable
from nextlabel.files.labels import as_label_table
from nextlabel.prose import counted


def learn_crowd(
    labels: LabelTable | str | os.PathLike[str] | Frame,
    gold: Gold | str | os.PathLike[str] | Frame | None = None,
    *,
    prior: CrowdPrior | None = None,
) -> LearntCrowd:
    """Learn every worker's channel and every task's truth from labels with a column of workers.

    ``labels`` is a path, a data frame or a table that ``read_labels`` has read; ``gold`` the truth about some of the
    tasks in the same forms. Workers come with intervals and flags, in the order of their numbers of labels; tasks with
    the most probable answer. No gold is needed. A model's labels are those of one more worker.

    >>> rows = [("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 0), ("b", "bob", 0), ("c", "ann", 1), ("c", "bob", 0)]
    >>> crowd = learn_crowd(dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True)))
    >>> crowd.predict()[:2], [worker.name for worker in crowd.workers]
    (['1', '0'], ['ann', 'bob'])
    """
    table = as_label_table(labels)
    known = gold if gold is None or isinstance(gold, Gold) else read_gold(gold, table)
    data = crowd_labels(table)
    truth = np.full(data.tasks, -1, dtype=np.int64) if known is None else known.label
    fit = fit_crowd(data, truth, prior)
    copying, pairs = find_copying(data, fit)
    return LearntCrowd(
        answers=table.labels,
        workers=_workers(table, data, fit, [(one.one, one.other) for one in copying]),
        task_names=table.tasks,
        labels_per_task=table.per_task,
        gold=truth,
        fit=fit,
        copying=tuple(
            CopyingPair((_name(table, c.one), _name(table, c.other)), c.shared, c.alike, c.excused, c.p_value)
            for c in copying
        ),
        pairs=pairs,
        notes=tuple(_notes(data, fit, truth, pairs)),
    )


def _workers(
    table: LabelTable, data: CrowdLabels, fit: CrowdFit, copying: list[tuple[int, int]]
) -> tuple[LearntWorker, ...]:
    """The named workers, those with the most labels first."""
    accuracy, balanced = accuracies(data, fit)
    variance = channel_variance(data, fit)
    many = np.bincount(data.worker, minlength=data.workers)
    bias = fit.channels.mean(axis=1) - 1.0 / data.answers
    information, gain = bits(fit), worth(fit)
    flags = flags_by_worker(data, fit, balanced, {worker for pair in copying for worker in pair})
    order = np.argsort(-many[: len(table.workers)], kind="stable")
    return tuple(
        LearntWorker(
            name=table.workers[j],
            labels=int(many[j]),
            accuracy=_estimate(accuracy, j),
            balanced=_estimate(balanced, j),
            channel=fit.channels[j],
            variance=variance[j],
            bias=tuple(float(x) for x in bias[j]),
            bits=float(information[j]),
            worth=float(gain[j]),
            flags=flags[j],
        )
        for j in map(int, order)
    )


def _estimate(found: Intervals, place: int) -> Estimate:
    return Estimate(float(found.mean[place]), float(found.low[place]), float(found.high[place]))


def _name(table: LabelTable, worker: int) -> str:
    return table.workers[worker] if worker < len(table.workers) else "(no name)"


def _notes(data: CrowdLabels, fit: CrowdFit, gold: Ints, pairs: int) -> list[str]:
    """What the labels cannot tell, in plain English."""
    out = []
    known = int((gold >= 0).sum())
    doubled = int((np.bincount(data.task, minlength=data.tasks) > 1).sum())
    if data.workers == 1:
        alone = "There is one worker, whose answers nobody else's can be compared with"
    elif doubled == 0:
        alone = "No task has labels of two workers, so that no two answers can be compared"
    else:
        alone = ""
    if alone:
        cure = (
            f"skill is learnt from the {counted(known, 'gold task')} alone."
            if known
            else "skill cannot be learnt, and what is shown of it is what a stranger is taken to be. Give gold labels, "
            "or labels of several workers for the same tasks."
        )
        out.append(f"{alone}: {cure}")
    if not fit.converged:
        out.append(f"The fit stopped after {fit.iterations} sweeps before it had converged: mind the last digits.")
    if pairs < 0:
        out.append("There are too many labels per task to look for workers who copy each other.")
    return out
