"""Who are these workers, and what do their labels say together: ``learn_crowd``.

What workers who are known say about tasks that are not: their channels, used on other labels.

P(c | labels of x) is proportional to share_c times the product over its labels of P(worker j says y | c).

How many labels are right. Without a known truth it is what the model expects (``crowd.expected``), which is called
*agreement*: on the recorded crowds at hand the truth was ``RECORDED`` lower. With known truths each of their tasks is
judged as if its truth were not known, from its labels, no more of them than a task usually has, and from the workers'
*other* labels (cross-fitting); x of n are right, and

    accuracy = (x + k (1 - f)) / (n + k),    f = ``TOO_SURE`` (1 - expected accuracy),    k = (1 - f) / (f ``SPREAD``^2)

with the exact interval of drawing n tasks at random (``crowd.audit``), which holds whatever the model. If the known
tasks contradict the model (``crowd.controls``), the model's word is withheld and the accuracy is x / n. On the recorded
crowds there were 1.9 to 3.3 times as many wrong labels as the model expects, hence f; k makes the standard deviation of
that guess ``SPREAD`` times f.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.audit import Audit, exact_interval
from nextlabel.crowd.controls import Contradiction, Controls, held_out, judge_by_truths
from nextlabel.crowd.copying import Copying, copying_groups, find_copying
from nextlabel.crowd.expected import ExpectedAccuracy, expected_accuracy
from nextlabel.crowd.fit import CrowdFit, CrowdLabels, crowd_labels, fit_crowd
from nextlabel.crowd.learner import ItemLearner, Learner, Taught, expected_jointly, learn_jointly
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.skill import (
    Estimate,
    accuracies,
    bits,
    channel_variance,
    flags_by_worker,
    intervals,
    worth,
)
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text, folded
from nextlabel.files.features import read_features
from nextlabel.files.labels import Gold, LabelTable, as_gold, as_label_table
from nextlabel.files.tables import Frame
from nextlabel.notebook import interval_picture, table_html
from nextlabel.wording import counted, listed

#: By how much the truth was below what was expected on recorded crowds.
RECORDED = "3 to 11 points"
#: Wrong labels for each one that the model expects, and the standard deviation of that guess as a share of it.
TOO_SURE, SPREAD = 2.2, 0.5
#: Workers that a notebook shows.
MOST_SHOWN = 50


def learn_crowd(
    labels: LabelTable | str | os.PathLike[str] | Frame,
    gold: Gold | str | os.PathLike[str] | Frame | None = None,
    *,
    prior: CrowdPrior | None = None,
    features: Any = None,
    learner: Learner | None = None,
) -> LearntCrowd:
    """Learn every worker's channel and every task's truth from labels with a column of workers.

    ``labels`` is a path, a data frame or a table that ``read_labels`` has read; ``gold`` the truth about some of the
    tasks in the same forms. Workers come with intervals and flags, in the order of their numbers of labels; tasks with
    the most probable answer. No gold is needed. A model's labels are those of one more worker.

    With ``features`` (``files.features`` has the forms) labels say something about items like theirs too
    (``crowd.learner``), and items with features and no label have an answer. ``learner`` is one of your own, with
    ``fit`` and ``predict_proba`` as scikit-learn's classifiers have them.

    >>> rows = [("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 0), ("b", "bob", 0), ("c", "ann", 1), ("c", "bob", 0)]
    >>> crowd = learn_crowd(dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True)))
    >>> crowd.predict()[:2], [worker.name for worker in crowd.workers]
    ([1, 0], ['ann', 'bob'])
    """
    table = as_label_table(labels)
    truth, data = as_gold(gold, table).label, crowd_labels(table)
    names, taught, alone = table.tasks, None, prior
    if prior is None and (truth < 0).all() and np.bincount(data.task, minlength=1).max() < 2:
        # One label each, and no truth: they cannot say how good the crowd is, so nothing is learnt of it.
        alone = replace(CrowdPrior.default(data.answers), hold=np.inf)
    if features is None:
        fit = fit_crowd(data, truth, alone)
    else:
        read = read_features(features, table.tasks)
        there = {cell_text(name) for name in table.tasks}
        everything = (*table.tasks, *(name for name in read.tasks if name not in there))
        wide, told = data._replace(tasks=len(everything)), np.append(truth, np.full(len(everything) - len(truth), -1))
        fit, taught = learn_jointly(wide, told, read, everything, learner, prior, table.labels)
        if taught.learner is None:
            fit = fit_crowd(data, truth, alone)
        else:
            names, data, truth = everything, wide, told
    copying, pairs = find_copying(data, fit)
    controls = judge_by_truths(data, fit, truth)
    if taught is None or taught.prior is None:
        usual = CrowdPrior.default(data.answers) if prior is None else prior
        expected = expected_accuracy(data, fit.beliefs, usual, truth)
    else:
        expected = expected_jointly(fit.beliefs, fit.share, taught.prior, taught.bits, truth)
    return LearntCrowd(
        answers=table.labels,
        workers=_workers(table, data, fit, copying, controls),
        task_names=names,
        labels_per_task=np.bincount(data.task, minlength=data.tasks).astype(np.int64),
        gold=truth,
        fit=fit,
        copying=tuple(replace(one, workers=_named(table, one.workers)) for one in copying),
        groups=tuple(_named(table, group) for group in copying_groups(copying)),
        pairs=pairs,
        expected=expected,
        audit=_audit(data, fit, truth, expected, controls.contradiction, taught),
        contradiction=controls.contradiction,
        notes=(*_notes(data, fit, truth, pairs), *([] if taught is None else taught.sentences())),
        taught=taught,
    )


def _audit(
    data: CrowdLabels,
    fit: CrowdFit,
    gold: Ints,
    expected: ExpectedAccuracy,
    contradiction: Contradiction | None,
    taught: Taught | None,
) -> Audit | None:
    """The accuracy as known truths say, each task judged without its truth; None without any."""
    known = np.flatnonzero((gold >= 0) & (np.bincount(data.task, minlength=data.tasks) > 0))
    if not len(known):
        return None
    one = held_out(
        data, fit.prior.pseudo + fit.counts, fit.share, gold, None if taught is None else taught.prior_offset
    )
    beliefs = softmax(one.logp[known], axis=1)
    right = beliefs.argmax(axis=1) == gold[known]
    N, n, x = int((np.bincount(data.task, minlength=data.tasks) > 0).sum()), len(known), int(right.sum())
    low, high = exact_interval(N, n, x, 0.95)
    accuracy = x / n
    if n < N and contradiction is None:
        wrong = min(max((TOO_SURE if taught is None else 1.0) * (1.0 - expected.mean), 1e-3), 1.0 - 1.0 / data.answers)
        weight = (1.0 - wrong) / (wrong * SPREAD**2)
        accuracy = min(max((x + weight * (1.0 - wrong)) / (n + weight), low), high)
    said = (float(expected.mean), float(beliefs.max(axis=1).mean()))
    return Audit(accuracy, low, high, 0.95, *said, N, n, x, "exact, cross-fitted")


def _workers(
    table: LabelTable, data: CrowdLabels, fit: CrowdFit, copying: Sequence[Copying], controls: Controls
) -> tuple[LearntWorker, ...]:
    """The named workers, those with the most labels first."""
    accuracy, balanced = accuracies(data, fit)
    variance = channel_variance(data, fit)
    many = np.bincount(data.worker, minlength=data.workers)
    bias = fit.channels.mean(axis=1) - 1.0 / data.answers
    information, gain = bits(fit), worth(fit)
    flags = flags_by_worker(data, fit, balanced, copying, controls)
    order = np.argsort(-many[: len(table.workers)], kind="stable")
    return tuple(
        LearntWorker(
            name=table.workers[j],
            labels=int(many[j]),
            accuracy=accuracy.at(j),
            balanced=balanced.at(j),
            channel=fit.channels[j],
            variance=variance[j],
            bias=tuple(float(x) for x in bias[j]),
            bits=float(information[j]),
            worth=float(gain[j]),
            flags=flags[j],
            controls=int(controls.answered[j]),
            controls_right=int(controls.right[j]),
        )
        for j in map(int, order)
    )


def _named(table: LabelTable, workers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(table.workers[j] if j < len(table.workers) else "(no name)" for j in workers)


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
    controls         labels on tasks whose truth is known, ``controls_right`` of them right
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
    controls: int
    controls_right: int

    def says(self, answer: int, truth: int) -> Estimate:
        """P(says ``answer`` | ``truth``), both by number."""
        return intervals(self.channel, self.variance).at((truth, answer))

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
            "controls": self.controls,
            "controls_right": self.controls_right,
        }


@dataclass(frozen=True, eq=False)
class LearntCrowd:
    """Workers and tasks, learnt together.

    ``answers`` are the names of the answers, ``task_names`` those of the tasks, in the order of ``fit.beliefs``;
    ``labels_per_task`` (K,); ``gold`` (K,) is the truth that was given, -1 where none was. ``pairs`` is the number of
    pairs of workers that were looked at for copying, ``groups`` are workers linked by pairs that copy. ``expected`` is
    the accuracy by the model's own word, ``audit`` the accuracy as known truths say (None without any),
    ``contradiction`` says that the two do not fit. ``notes`` say what could not be learnt.
    """

    answers: tuple[Any, ...]
    workers: tuple[LearntWorker, ...]
    task_names: tuple[Any, ...]
    labels_per_task: Ints
    gold: Ints
    fit: CrowdFit
    copying: tuple[Copying, ...]
    groups: tuple[tuple[str, ...], ...]
    pairs: int
    expected: ExpectedAccuracy
    audit: Audit | None
    contradiction: Contradiction | None
    notes: tuple[str, ...]
    taught: Taught | None = None

    @property
    def learner(self) -> ItemLearner | None:
        """The trained learner, for items that are not here: None without features, and where they say nothing."""
        return None if self.taught is None else self.taught.learner

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
        """The share of labels that is expected to be right: as known truths say, else by the model's own word."""
        return float(self.expected.mean if self.audit is None else self.audit.accuracy)

    def tasks(self) -> Iterator[dict[str, Any]]:
        """One row for each task, as files have it: task, label, probability, labels, gold.

        With features also what the learner says of the task, and what people say without it.
        """
        taught = None if self.taught is None or self.taught.prior is None else self.taught
        best = np.argmax(self.fit.beliefs, axis=1)
        for k, name in enumerate(self.task_names):
            row = {
                "task": name,
                "label": self.answers[best[k]],
                "probability": round(float(self.fit.beliefs[k, best[k]]), 6),
                "labels": int(self.labels_per_task[k]),
                "gold": None if self.gold[k] < 0 else self.answers[self.gold[k]],
            }
            if taught is not None and taught.prior is not None:
                for who, chances in (("learner", taught.prior[k]), ("people", taught.alone.beliefs[k])):
                    said = int(chances.argmax())
                    row |= {who: self.answers[said], f"{who}_probability": round(float(chances[said]), 6)}
            yield row

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
    return np.asarray(softmax(logp, axis=1))
