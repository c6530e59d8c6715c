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
from nextlabel.policies.crowd.allocator import GrowingCrowd

if TYPE_CHECKING:
    from nextlabel.campaign.crowd_model import CrowdLog, CrowdModel


@dataclass(eq=False)
class Expectation:
    """The accuracy to be expected of a crowd as it was: all tasks, the interval from a part of them if they are many.

    ``learnt`` are its channels, shares, and the tasks behind those; ``counts`` are the prior's and the labels' of them.
    """

    labels: CrowdLabels
    beliefs: Floats
    tilt: Floats
    gold: Ints
    counts: tuple[Floats, Floats]
    learnt: tuple[Floats, Floats, float]
    draws: int

    @cached_property
    def value(self) -> ExpectedAccuracy:
        """It takes ``draws`` passes over the labels, once."""
        labels, beliefs, tilt = _asked(self.labels, self.beliefs, self.tilt, self.gold)
        if not labels.tasks:
            return ExpectedAccuracy(np.nan, 0.0, 1.0, 0.0)
        people, every = labels.workers, -(-labels.tasks // MOST_TASKS)
        channels, share, share_strength = self.learnt
        learnt = LearntChannels(channels, row_strength(labels, beliefs, *self.counts), share, share_strength)
        some = np.flatnonzero(labels.task % every == 0)
        part = CrowdLabels(
            labels.task[some] // every, labels.worker[some], labels.answer[some], len(beliefs[::every]), people,
            labels.answers,
        )  # fmt: skip
        found = expected_accuracy(part, beliefs[::every], tilt[::every], learnt, labels.tasks, self.draws)
        mean = float(beliefs.max(axis=1).mean())
        half = 0.5 * (found.high - found.low)
        return ExpectedAccuracy(mean, max(mean - half, 0.0), min(mean + half, 1.0), found.learnt)


@dataclass(frozen=True, slots=True, eq=False)
class CrowdSnapshot:
    """What was believed after event ``seq``.

    ======== ========== ===================================================================================
    code     shape      meaning
    ======== ========== ===================================================================================
    beliefs  (K, C)     probability of each truth of each task
    told     (K,)       labels of each task that count
    gold     (K,)       the answer of a control question, else -1
    shares   (C,)       of a task without labels
    expectation --      what ``expected`` is computed from when it is asked for: that takes many passes over the labels,
                        and whoever makes a snapshot has the campaign locked
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
    expectation: Expectation
    workers: tuple[str, ...]
    channels: Floats
    stranger: Floats
    labels: Ints
    agreeing: Ints
    answers: CrowdLabels
    history: tuple[tuple[int, float, float, float], ...]

    @property
    def expected(self) -> ExpectedAccuracy:
        """The share of the tasks that are right by the model's own word, with its interval."""
        return self.expectation.value

    @property
    def expected_accuracy(self) -> float:
        """Mean over the tasks but controls of the probability of the likeliest truth: the model's own word."""
        return self.expected.mean

    @property
    def accuracies(self) -> Floats:
        """(W,) the chance that a label of each worker is right."""
        return np.asarray(np.einsum("c,wcc->w", self.shares, self.channels))


def snapshot_of(model: CrowdModel, log: CrowdLog, draws: int = DRAWS) -> CrowdSnapshot:
    """All that a model believes now, as a copy."""
    crowd, tasks, people = model.crowd, log.row.tasks, len(model.workers)
    shares = usual_share(crowd.given_share, crowd.start, crowd.campaign.state.total, TASKS)
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
        expectation=_expectation(crowd, answers, beliefs, tilt, gold, draws),
        workers=tuple(model.workers),
        channels=crowd.channels[:people].copy(),
        stranger=crowd.channels[people].copy(),
        labels=np.bincount(worker, minlength=people)[:people],
        agreeing=np.bincount(worker, agree, minlength=people)[:people].astype(np.int64),
        answers=answers,
        history=tuple((int(n), mean, low, high) for n, mean, low, high in model.history),
    )


def _expectation(
    crowd: GrowingCrowd, answers: CrowdLabels, beliefs: Floats, tilt: Floats, gold: Ints, draws: int
) -> Expectation:
    """What is expected of a crowd is computed from a copy: the crowd goes on."""
    state, people = crowd.campaign.state, answers.workers
    return Expectation(
        answers,
        beliefs,
        tilt,
        gold,
        (state.pseudo.copy(), state.counts[:people].copy()),
        (crowd.channels[:people].copy(), crowd.start.copy(), float(TASKS + state.total.sum())),
        draws,
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
