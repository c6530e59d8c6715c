"""What a campaign with the policy ``crowd`` believes at one moment, for results, tables and certificates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.expected import (
    DRAWS,
    MOST_TASKS,
    ExpectedAccuracy,
    LearntChannels,
    expected_accuracy,
    row_strength,
    usual_share,
)
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import TASKS

if TYPE_CHECKING:
    from nextlabel.campaign.crowd_model import CrowdModel
    from nextlabel.campaign.state import CampaignState


@dataclass(frozen=True, eq=False)
class CrowdSnapshot:
    """What was believed after event ``seq``.

    ======== ========== ===================================================================================
    code     shape      meaning
    ======== ========== ===================================================================================
    beliefs  (K, C)     probability of each truth of each task
    told     (K,)       labels of each task that count
    gold     (K,)       the answer of a control question, else -1
    shares   (C,)       of a task without labels
    tilt     (K, C)     log beliefs without labels, less those of a usual task
    counts   --         the prior's and the labels' counts of each worker
    start    (C,)       shares of the truths, learnt from ``strength`` tasks
    draws    --         crowds that are drawn for ``expected``
    channels (W, C, C)  P(worker says y | truth c), in the order of ``workers``
    stranger (C, C)     the same of somebody who has not come yet
    labels   (W,)       labels of theirs that count, ``agreeing`` of them with the likeliest truth
    answers  --         these labels one by one: task, worker, answer
    history  --         (labels, expected accuracy, ends of its interval) at the refits so far
    ======== ========== ===================================================================================
    """

    seq: int
    version: int
    beliefs: Floats
    told: Ints
    gold: Ints
    shares: Floats
    tilt: Floats
    counts: tuple[Floats, Floats]
    start: Floats
    strength: float
    draws: int
    workers: tuple[str, ...]
    channels: Floats
    stranger: Floats
    labels: Ints
    agreeing: Ints
    answers: CrowdLabels
    history: tuple[tuple[int, float, float, float], ...]

    @cached_property
    def expected(self) -> ExpectedAccuracy:
        """The share of the tasks that are right by the model's own word; its interval is from a part of many tasks.

        It takes ``draws`` passes over the labels, once, and not while the campaign is locked for the snapshot.
        """
        labels, beliefs, tilt = _asked(self.answers, self.beliefs, self.tilt, self.gold)
        if not labels.tasks:
            return ExpectedAccuracy(np.nan, 0.0, 1.0, 0.0)
        people, every = labels.workers, -(-labels.tasks // MOST_TASKS)
        rows = row_strength(labels, beliefs, *self.counts)
        learnt = LearntChannels(self.channels, rows, self.start, self.strength)
        some = np.flatnonzero(labels.task % every == 0)
        part = CrowdLabels(
            labels.task[some] // every, labels.worker[some], labels.answer[some], len(beliefs[::every]), people,
            labels.answers,
        )  # fmt: skip
        drawn = expected_accuracy(part, beliefs[::every], tilt[::every], learnt, labels.tasks, self.draws)
        mean = float(beliefs.max(axis=1).mean())
        half = 0.5 * (drawn.high - drawn.low)
        return ExpectedAccuracy(mean, max(mean - half, 0.0), min(mean + half, 1.0), drawn.learnt)

    @property
    def expected_accuracy(self) -> float:
        """Mean over the tasks but controls of the probability of the likeliest truth: the model's own word."""
        return self.expected.mean

    @property
    def accuracies(self) -> Floats:
        """(W,) the chance that a label of each worker is right."""
        return np.asarray(np.einsum("c,wcc->w", self.shares, self.channels))


def snapshot_of(model: CrowdModel, log: CampaignState, draws: int = DRAWS) -> CrowdSnapshot:
    """All that a model believes now, as a copy."""
    crowd, tasks, people = model.crowd, log.row.tasks, len(model.workers)
    state = crowd.campaign.state
    shares = usual_share(crowd.given_share, crowd.start, state.total, TASKS)
    beliefs, tilt = np.empty((tasks, len(shares))), np.zeros((tasks, len(shares)))
    beliefs[: crowd.tasks], tilt[: crowd.tasks] = crowd.beliefs[: crowd.tasks], crowd.offsets[: crowd.tasks]
    told = _padded(crowd.came[: crowd.tasks], tasks)
    if tasks > crowd.tasks:  # without labels until the next refit
        classes = np.asarray(log.task_classes(crowd.tasks, tasks), dtype=np.int64)
        tilt[crowd.tasks :] = model.tilts(log.classes)[classes]
    history = crowd.campaign.history
    came = np.flatnonzero(history.answer[: crowd.entries] >= 0)
    task, worker, answer = history.task[came], history.worker[came], history.answer[came]
    bare = np.bincount(task, minlength=tasks)[:tasks] == 0
    bare[crowd.tasks :] = True  # until the next refit
    odds = shares * np.exp(tilt[bare])
    beliefs[bare] = odds / odds.sum(axis=1, keepdims=True)
    gold = _padded(crowd.gold[: min(tasks, len(crowd.gold))], tasks, -1)
    known = np.flatnonzero(gold >= 0)
    beliefs[known] = np.eye(len(shares))[gold[known]]
    agree = answer == beliefs.argmax(axis=1)[task]
    answers = CrowdLabels(task, worker, answer, tasks, people, len(shares))
    return CrowdSnapshot(
        seq=model.seq,
        version=model.version,
        beliefs=beliefs,
        told=told,
        gold=gold,
        shares=shares,
        tilt=tilt,
        counts=(state.pseudo.copy(), state.counts[:people].copy()),
        start=crowd.start.copy(),
        strength=float(TASKS + state.total.sum()),
        draws=draws,
        workers=tuple(model.workers),
        channels=crowd.channels[:people].copy(),
        stranger=crowd.channels[people].copy(),
        labels=np.bincount(worker, minlength=people)[:people],
        agreeing=np.bincount(worker, agree, minlength=people)[:people].astype(np.int64),
        answers=answers,
        history=tuple((int(n), mean, low, high) for n, mean, low, high in model.history),
    )


def _asked(labels: CrowdLabels, beliefs: Floats, tilt: Floats, gold: Ints) -> tuple[CrowdLabels, Floats, Floats]:
    """The same without control questions, tasks numbered anew."""
    asked = gold < 0
    if asked.all():
        return labels, beliefs, tilt
    number, some = np.cumsum(asked) - 1, asked[labels.task]
    task, worker, answer = number[labels.task[some]], labels.worker[some], labels.answer[some]
    return (
        CrowdLabels(task, worker, answer, int(asked.sum()), labels.workers, labels.answers),
        beliefs[asked],
        tilt[asked],
    )


def _padded(counts: Ints, size: int, rest: int = 0) -> Ints:
    return np.concatenate([counts, np.full(size - len(counts), rest, dtype=np.int64)])
