"""Who are these workers, and what do their labels say together: ``learn_crowd``.

What workers who are known say about tasks that are not: their channels, used on other labels.

P(c | labels of x) is proportional to share_c times the product over its labels of P(worker j says y | c).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.copying import find_copying
from nextlabel.crowd.fit import CrowdFit, CrowdLabels, crowd_labels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.skill import Intervals, accuracies, bits, channel_variance, flags_by_worker, intervals, worth
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text, folded
from nextlabel.files.labels import Gold, LabelTable, as_label_table, read_gold
from nextlabel.files.tables import Frame
from nextlabel.notebook import interval_picture, table_html
from nextlabel.prose import counted, listed

#: Workers that a notebook shows.
MOST_SHOWN = 50


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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the ends of its 95% interval."""

    mean: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """As ``--json`` prints it."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    def __format__(self, spec: str) -> str:
        return f"{format(self.mean, spec)} [{format(self.low, spec)}, {format(self.high, spec)}]"


@dataclass(frozen=True, slots=True, eq=False)
class LearntWorker:
    """One worker.

    ================ ==============================================================================================
    code             meaning
    ================ ==============================================================================================
    labels           labels of theirs
    accuracy         chance that a label of theirs is right on tasks like these
    balanced         the same if all truths were equally frequent; 1 / answers is chance
    channel          P(says y | truth c), an array with a row for each truth
    variance         of these, the posterior variance
    bias             by answer: how much more often than 1 / answers they would give it, all truths equally frequent
    bits             what a label of theirs says about the truth, in bits
    worth            expected tasks right that one more label of theirs adds, on the task where it adds most
    flags            what stands out (``crowd.skill``)
    ================ ==============================================================================================
    """

    name: Any
    labels: int
    accuracy: Estimate
    balanced: Estimate
    channel: Floats
    variance: Floats
    bias: tuple[float, ...]
    bits: float
    worth: float
    flags: tuple[str, ...]

    def says(self, answer: int, truth: int) -> Estimate:
        """P(says ``answer`` | ``truth``), both by number."""
        place = [truth], [answer]
        return Estimate(*(float(part[0]) for part in intervals(self.channel[place], self.variance[place])))

    @property
    def confusion(self) -> tuple[tuple[Estimate, ...], ...]:
        """P(says y | truth c): a row for each truth, each entry with its interval."""
        found = [part.tolist() for part in intervals(self.channel, self.variance)]
        return tuple(tuple(map(Estimate, *rows)) for rows in zip(*found, strict=True))

    @property
    def sensitivity(self) -> Estimate | None:
        """P(says 1 | truth 1), with two answers."""
        return self.says(1, 1) if len(self.bias) == 2 else None

    @property
    def specificity(self) -> Estimate | None:
        """P(says 0 | truth 0), with two answers."""
        return self.says(0, 0) if len(self.bias) == 2 else None

    def as_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        two = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        return {
            "worker": self.name,
            "labels": self.labels,
            "accuracy": self.accuracy.as_dict(),
            "balanced_accuracy": self.balanced.as_dict(),
            **{name: one.as_dict() for name, one in two.items() if one is not None},
            "bias": list(self.bias),
            "confusion": [[one.as_dict() for one in row] for row in self.confusion],
            "bits": self.bits,
            "worth": self.worth,
            "flags": list(self.flags),
        }


@dataclass(frozen=True, slots=True)
class CopyingPair:
    """Two workers who agree on ``alike`` of ``shared`` tasks; skill and hard items explain at most ``excused``."""

    workers: tuple[str, str]
    shared: int
    alike: int
    excused: float
    p_value: float


@dataclass(frozen=True, eq=False)
class LearntCrowd:
    """Workers and tasks, learnt together.

    ``answers`` are the names of the answers, ``task_names`` those of the tasks, in the order of ``fit.beliefs``;
    ``labels_per_task`` (K,); ``gold`` (K,) is the truth that was given, -1 where none was. ``pairs`` is the number of
    pairs of workers that were looked at for copying. ``notes`` say what could not be learnt.
    """

    answers: tuple[Any, ...]
    workers: tuple[LearntWorker, ...]
    task_names: tuple[Any, ...]
    labels_per_task: Ints
    gold: Ints
    fit: CrowdFit
    copying: tuple[CopyingPair, ...]
    pairs: int
    notes: tuple[str, ...]

    @property
    def evidence(self) -> float:
        """The bound on the log probability of the labels that the fit climbed."""
        return self.fit.evidence

    @property
    def converged(self) -> bool:
        """Whether the climb came to an end before its limit of sweeps."""
        return self.fit.converged

    @cached_property
    def by_name(self) -> dict[str, LearntWorker]:
        """The workers by their names."""
        return {one.name: one for one in self.workers}

    def predict_proba(self, labels: LabelTable | str | os.PathLike[str] | Frame | None = None) -> Floats:
        """(K, C) probability of each of ``answers`` for each task, in the order of ``task_names``.

        With ``labels``, in any form that ``learn_crowd`` takes, for the tasks there, in the order of their first
        labels: from what is known of the workers, without learning anything new. A worker who is not known counts as
        one of this crowd's strangers.
        """
        if labels is None:
            return self.fit.beliefs.copy()
        channels = {cell_text(one.name): one.channel for one in self.workers}
        return beliefs_of(as_label_table(labels), self.answers, channels, self.fit)

    def predict(self, labels: LabelTable | str | os.PathLike[str] | Frame | None = None) -> list[Any]:
        """The most probable answer of each task (see ``predict_proba``), as it came; of answers alike, the first."""
        return [self.answers[k] for k in np.argmax(self.predict_proba(labels), axis=1)]

    @property
    def expected_accuracy(self) -> float:
        """Mean over the tasks without gold of the probability of the answer given: the model's own word."""
        unknown = self.gold < 0
        return float(self.fit.beliefs.max(axis=1)[unknown].mean()) if unknown.any() else 1.0

    def tasks(self) -> Iterator[dict[str, Any]]:
        """One row for each task, as files have it: task, label, probability, labels, gold."""
        best = np.argmax(self.fit.beliefs, axis=1)
        for k, name in enumerate(self.task_names):
            yield {
                "task": name,
                "label": self.answers[best[k]],
                "probability": round(float(self.fit.beliefs[k, best[k]]), 6),
                "labels": int(self.labels_per_task[k]),
                "gold": None if self.gold[k] < 0 else self.answers[self.gold[k]],
            }

    def __str__(self) -> str:
        rows = [f"{len(self.workers):,} workers, {len(self.task_names):,} tasks, {self.labels_per_task.sum():,} labels"]
        for one in self.workers[:10]:
            flags = f"  ({', '.join(one.flags)})" if one.flags else ""
            rows.append(f"{one.name}: {one.labels:,} labels, accuracy {one.accuracy:.3f}{flags}")
        if len(self.workers) > 10:
            rows.append(f"and {len(self.workers) - 10:,} more")
        return "\n".join([*rows, *self.notes])

    def _repr_html_(self) -> str:
        title = f"{len(self.workers):,} workers, {len(self.task_names):,} tasks, {self.labels_per_task.sum():,} labels"
        rows = [
            (
                one.name, f"{one.labels:,}", f"{one.accuracy.mean:.1%}",
                interval_picture(one.accuracy.mean, one.accuracy.low, one.accuracy.high), ", ".join(one.flags),
            )
            for one in self.workers[:MOST_SHOWN]
        ]  # fmt: skip
        hidden = len(self.workers) - len(rows)
        more = [f"and {counted(hidden, 'more worker', 'more workers')}"] if hidden else []
        header = ("worker", "labels", "accuracy", "95% interval, 0 to 1", "flags")
        return table_html(title, header, rows, [*more, *self.notes])

    def __repr__(self) -> str:
        return (
            f"LearntCrowd(workers={len(self.workers)}, tasks={len(self.task_names)}, "
            f"labels={int(self.labels_per_task.sum())}, evidence={self.evidence:.6g}, converged={self.converged})"
        )


def beliefs_of(table: LabelTable, answers: Sequence[Any], channels: Mapping[str, Floats], fit: CrowdFit) -> Floats:
    """(K, C) probability of each of ``answers`` for the tasks of a table, in the table's order.

    ``channels`` (C, C) are those of the workers who are known, by name; anybody else is a stranger, who has the mean
    channel of the crowd.
    """
    number = {folded(answer): k for k, answer in enumerate(answers)}
    strange = [answer for answer in table.labels if folded(answer) not in number]
    if strange:
        raise InputError(
            f"the crowd has never given the answer {listed(strange)}; it was learnt from {listed(answers)}.",
            "Give labels with the same answers, or learn the crowd from labels that have them.",
        )
    stranger = fit.prior.pseudo / fit.prior.pseudo.sum(axis=1, keepdims=True)
    logs = np.log([*(channels.get(cell_text(name), stranger) for name in table.workers), stranger])
    who = np.full(len(table), -1) if table.worker is None else table.worker
    said = np.array([number[folded(answer)] for answer in table.labels])[table.label]
    logp = np.tile(np.log(fit.share), (len(table.tasks), 1))
    np.add.at(logp, table.task, logs[who, :, said])
    odds = np.exp(logp - logp.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
