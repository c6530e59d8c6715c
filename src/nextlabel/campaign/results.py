"""What a campaign has found out: each task's most likely label, how sure, from how many labels, and what ended it.

    label = what is read out of the belief (``crowd.answers``),   probability = the chance that it is right.

With the policy ``crowd`` the probabilities are those of the model of its workers (``campaign.crowd_model``), else those
of workers who are alike. A task is closed by the event that gave it the last label it can have, or by the event that
closed the campaign.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.campaign.rows import CampaignRow, LeaseRow, TaskRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.transitions import LeaseStatus
from nextlabel.crowd.answers import Answer
from nextlabel.model.prior import Prior
from nextlabel.model.simplex import counts_of_node
from nextlabel.wording import iso, iso_or_none

#: Beliefs are worked out this many labels deep at a time.
STEP = 8

#: Classes whose beliefs are computed together.
TOGETHER = 2000


#: Where a label comes from: what the labels say, the known answer of a control question, the requester's
#: word, what an audit found, or under a guarantee the frozen label or the expert's answer.
ResultSource = Literal["labels", "control", "adjudicated", "audited", "frozen", "expert"]


@dataclass(frozen=True, slots=True)
class Result:
    """What is known of one task; ``source`` says where its label comes from (``ResultSource``).

    A number has an ``interval``, the numbers among several questions have ``intervals`` by the names of these.
    """

    task: str
    label: str
    probability: float
    labels: int
    counts: dict[str, int]
    in_flight: int
    closed: bool
    closed_by: int | None
    closed_reason: str | None
    payload: Any
    control: bool = False
    source: ResultSource = "labels"
    probabilities: dict[str, float] = field(default_factory=dict)
    interval: tuple[float, float] | None = None
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)


def results_of(
    row: CampaignRow,
    classes: Sequence[Prior],
    tasks: Sequence[TaskRow],
    beliefs: Floats | None = None,
    final: Mapping[int, tuple[int, float, ResultSource]] | None = None,
) -> list[Result]:
    """Results of some tasks; ``beliefs`` (K, C) of all tasks where workers were learnt.

    ``final``: answer, probability and source of the tasks whose labels are frozen (``campaign.guarantee``).
    """
    answers = row.config.answer_type
    out: list[Result] = []
    adjudicated, audited = set(row.adjudicated), row.audited
    if beliefs is None:
        states = np.array([(one.class_number, one.node, one.labels) for one in tasks], dtype=np.int64).reshape(-1, 3)
        found = truths(row.config, classes, *states.T)
    else:
        found = beliefs[[one.number for one in tasks]]
    for task, truth in zip(tasks, found, strict=True):
        known = audited.get(task.number) if task.gold is None else task.gold
        if known is not None:
            truth = answers.known(known, truth)
        best, probability = int(answers.best(truth[None, :])[0]), float(answers.certainty(truth[None, :])[0])
        source: ResultSource = "labels" if known is None else "audited" if task.gold is None else "control"
        if task.number in adjudicated:
            source = "adjudicated"
        if final is not None and task.number in final:
            best, probability, source = final[task.number]
        intervals = answers.intervals(truth)
        event, reason = (task.closed_seq, "most_labels") if task.closed_seq else (row.closed_seq, row.closed_reason)
        out.append(
            Result(
                task.key,
                answers.name_of(best),
                probability,
                task.labels,
                answers.counts(truth, label_counts(row.config, task.node)),
                task.w,
                event is not None,
                event,
                reason,
                task.payload,
                source == "control",
                source,
                answers.probabilities(truth),
                intervals.pop("", None),
                intervals,
            )
        )
    return out


def label_counts(config: CampaignSettings, node: int) -> tuple[int, ...]:
    """The labels of each answer of a task in ``node``."""
    counts = counts_of_node(config.answers, node) if config.labels else ()
    return counts[::-1] if config.answers == 2 else counts


def truths(config: CampaignSettings, classes: Sequence[Prior], class_id: Ints, node: Ints, level: Ints) -> Floats:
    """Probability of each truth (groups, answers) in each state; classes of one kind are computed together."""
    out = np.zeros((len(node), config.answers))
    order = np.argsort(class_id, kind="stable")
    used, start = np.unique(class_id[order], return_index=True)
    ends = np.append(start[1:], len(order))
    kinds: dict[type[Prior], list[int]] = {}
    for place, number in enumerate(used):
        kinds.setdefault(type(classes[number]), []).append(place)
    for kind, places in kinds.items():
        for first in range(0, len(places), TOGETHER):
            some = places[first : first + TOGETHER]
            rows = np.concatenate([order[start[p] : ends[p]] for p in some])
            which = np.repeat(np.arange(len(some)), [ends[p] - start[p] for p in some])
            depth = STEP * (1 + int(level[rows].max()) // STEP)
            priors = [classes[int(used[p])] for p in some]
            _, truth = kind.believe_all(priors, np.full(len(some), config.threshold), depth)
            out[rows] = truth[which, node[rows]]
    return out


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """One worker's answer to one task.

    ``state`` is that of the lease: ``labelled``, ``late``, or without an answer ``leased``, ``expired``, ``released``.
    ``counted`` says whether the label was bought: late ones may find the budget spent. ``dropped`` ones were bought,
    and the requester has left them out of the results. A model's labels are not bought and have no times.
    ``comment`` is what the worker said with the answer or, without one, with the skip.
    """

    task: str
    worker: str
    label: str | None
    started: str | None
    submitted: str | None
    state: LeaseStatus
    counted: bool
    dropped: bool = False
    comment: str | None = None


def given_labels(
    answers: Answer,
    tasks: Iterable[TaskRow],
    leases: Iterable[LeaseRow],
    unanswered: bool = False,
    dropped: bool = False,
    dropped_models: Collection[str] = (),
) -> list[GivenLabel]:
    """The answers to some tasks in the order in which they were given out.

    With ``unanswered`` also leases without an answer, with ``dropped`` also labels that were dropped.
    """
    keys = {task.number: task.key for task in tasks}
    return [
        GivenLabel(
            task=keys[lease.task],
            worker=lease.worker,
            label=None if lease.label is None else answers.name_of(lease.label),
            started=None if lease.predicted else iso(lease.leased_at),
            submitted=None if lease.predicted or lease.label is None else iso_or_none(lease.ended_at),
            state=lease.status,
            counted=bool(lease.counted),
            dropped=left_out,
            comment=lease.comment,
        )
        for lease in leases
        for left_out in (lease.dropped or (lease.predicted and lease.worker in dropped_models),)
        if (unanswered or lease.label is not None) and (dropped or not left_out)
    ]
