"""Allocators of live campaigns that ask for more than one of a few answers: the most valuable item comes next.

============= ================= =====================================================================================
allocator     answers           value of a label
============= ================= =====================================================================================
RatingCrowd,  ratings, numbers  the item's variance v: a label of precision t takes it to 1 / (1 / v + t), and the
NumberCrowd                     fall grows with v whatever t is (``solve.numbers``)
PairCrowd     which is better   pairs of items that it is expected to bring into the right order (``crowd.pairs``)
FormCrowd     several questions share of the answers that it is expected to make right (``policies.crowd.forms``)
============= ================= =====================================================================================

Labels in flight count as if they had come in. ``learn`` learns workers and items from all labels; between two of them a
label moves its own item (of a pair: the covariance of all scores). Nobody is turned away here but, by the campaign, who
answers at random (``at_random``).

Guarantee: heuristic, deterministic under the seed, and a function of entries, like any crowd's
(``policies.crowd.allocator``). Cost: O(items) a choice, O(K^3) for pairs of K items.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import erf

from nextlabel.arrays import Bools, Floats
from nextlabel.crowd.answers import Answer, Number, Pair, Rating, Scaled
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.numbers import NumberFit, NumberLabels, fit_numbers
from nextlabel.crowd.pairs import SAID, Comparisons, LearntPairs, PairFit, compared, fit_pairs, pair_values, usual_trust
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.policies.allocation import GONE, Outlook, Refusal
from nextlabel.policies.crowd.allocator import GrowingCrowd


class ValuedCrowd(GrowingCrowd):
    """Items, workers and what was given out; what the base plans for one question is not used.

    ``right_rates`` (W + 1,) is how often each worker is right, and a stranger.
    """

    def __init__(self, kind: Answer, seed: int = 0) -> None:
        super().__init__(np.full(2, 0.5), "crowd", seed)
        self.kind, self.right_rates, self.learnt_tasks = kind, np.full(1, 0.5), 0

    # What an answer needs

    @abstractmethod
    def read(self, tasks: int) -> Floats:
        """(tasks, width) what is believed of each item."""

    @abstractmethod
    def at_random(self) -> Bools:
        """(W,) whose answers have nothing to do with the items."""

    @abstractmethod
    def _values(self, worker: int) -> Floats:
        """(items learnt,) what a label of the worker's is worth."""

    @abstractmethod
    def _learn(self, labels: CrowdLabels) -> None:
        """Learn workers and items from these labels."""

    def _moved(self, task: int) -> None:
        """Something happened to an item since ``learn``."""

    @property
    def start(self) -> Floats:
        """None: there are no shares of answers."""
        return np.zeros(0)

    def _follow(self, task: int) -> None:
        if task < self.learnt_tasks:
            self._moved(task)

    # Learning and choosing

    def learn(self, version: int, given: int, left: int, arrivals: float | None = None, expert: float = 0.0) -> None:
        """Learn workers and items from all labels, for the labels to come."""
        self.given, self.budget = given, given + left
        self.settings = replace(self.settings, turn_away=arrivals is not None, expert=expert)
        self.learnt_tasks = self.tasks
        self._learn(self.labels(len(self.gold)))

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The item for this worker, or why there is none; -1 is a worker nobody knows."""
        return self.most_valuable(self._values(worker), worker, outlook)


def numbers_of(kind: Scaled, labels: CrowdLabels) -> NumberLabels:
    """Labels of ratings or numbers as numbers."""
    return NumberLabels(labels.task, labels.worker, kind.value_of(labels.answer), labels.tasks, labels.workers)


def variances(crowd: GrowingCrowd, fit: NumberFit | None, tasks: int) -> Floats:
    """(tasks,) the variance of each item, in units of ``fit``, when all labels that are in flight have come."""
    there = np.flatnonzero(crowd.campaign.history.answer[: crowd.entries] != GONE)
    task, worker = crowd.campaign.history.task[there], crowd.campaign.history.worker[there]
    own = np.ones(len(there)) if fit is None else fit.precisions(worker)
    first = 1.0 if fit is None else 1.0 / fit.first[1]
    return np.asarray(np.round(1.0 / (first + np.bincount(task, own, len(crowd.gold))[:tasks]), 9))


def number_beliefs(kind: Number, fit: NumberFit | None, labels: NumberLabels) -> Floats:
    """(tasks, 2) mean and standard deviation of each item, without labels those of the range."""
    low, high = kind.ends
    beliefs = np.tile([(low + high) / 2.0, (high - low) / np.sqrt(12.0)], (labels.tasks, 1))
    if fit is not None:
        told = np.bincount(labels.task, minlength=labels.tasks) > 0
        beliefs[told] = kind.beliefs(*fit.read(labels))[told]
    return beliefs


def number_rates(kind: Number, fit: NumberFit) -> Floats:
    """(W + 1,) how often each worker is within the tolerance; a stranger, and who shows no spread yet, as is usual."""
    shown = fit.spread > 0
    usual = np.median(fit.spread[shown]) if shown.any() else 1e-9
    near = kind.tolerance / np.append(np.where(shown, fit.spread, usual), usual)
    return np.asarray(erf(near / np.sqrt(2.0)), np.float64)


class NumberCrowd(ValuedCrowd):
    """Items of which the number with the largest variance comes next."""

    kind: Number

    def __init__(self, kind: Number, seed: int = 0) -> None:
        super().__init__(kind, seed)
        self.fit: NumberFit | None = None

    def _values(self, worker: int) -> Floats:
        return variances(self, self.fit, self.learnt_tasks)

    def _learn(self, labels: CrowdLabels) -> None:
        self.fit = fit_numbers(numbers_of(self.kind, labels), self.kind) if len(labels.task) else None
        if self.fit is not None:
            self.right_rates = number_rates(self.kind, self.fit)

    def read(self, tasks: int) -> Floats:
        """(tasks, 2) mean and standard deviation."""
        return number_beliefs(self.kind, self.fit, numbers_of(self.kind, self.labels(tasks)))

    def at_random(self) -> Bools:
        """(W,) whose numbers do not follow the items."""
        found = np.zeros(self.people, dtype=np.bool_)
        if self.fit is not None:
            found[: len(self.fit.gain)] = self.fit.at_random
        return found


class RatingCrowd(GrowingCrowd):
    """Ratings: who gets something is a matter of the plan for a choice, what they get of the loss.

    It is the item with the largest variance, as of numbers: the chance of the exact step, which the plan looks at, says
    little of how far off a rating is.
    """

    def __init__(self, kind: Rating, share: Floats, rule: str, seed: int, prior: CrowdPrior | None = None) -> None:
        super().__init__(share, rule, seed, prior)
        self.kind = kind
        self.fit: NumberFit | None = None

    def learn(self, version: int, given: int, left: int, arrivals: float | None = None, expert: float = 0.0) -> None:
        """Learn workers and items from all labels, as names and as numbers, and solve for the labels to come."""
        labels = self.labels(len(self.gold))
        self.fit = fit_numbers(numbers_of(self.kind, labels), self.kind) if len(labels.task) else None
        super().learn(version, given, left, arrivals, expert)

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The item for this worker, or why there is none; -1 is a worker nobody knows."""
        planned = super().choose(worker, outlook)
        if isinstance(planned, str) or self.settings.rule != "crowd":
            return planned
        return self.most_valuable(variances(self, self.fit, self.tasks), worker, outlook)


class PairCrowd(ValuedCrowd):
    """Pairs of ``items``: the one comes next that is expected to put most pairs, or the best ``top``, into order."""

    kind: Pair

    def __init__(self, kind: Pair, seed: int = 0, top: int | None = None) -> None:
        super().__init__(kind, seed)
        self.top, self.items = top, dict[str, int]()
        #: (pairs,) the two items of each pair, by number.
        self.first, self.second = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.fit = PairFit.without_labels(0)
        self._known, self._value, self._covariance = np.zeros(0, dtype=np.bool_), np.zeros(0), self.fit.covariance
        self._counted: list[int] = []  # entries that are no part of the fit, and make the covariance less

    def add_pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """The items of further tasks."""
        found = [[self.items.setdefault(name, len(self.items)) for name in pair] for pair in pairs]
        new = np.array(found, dtype=np.int64).reshape(-1, 2)
        self.first, self.second = np.append(self.first, new[:, 0]), np.append(self.second, new[:, 1])

    def _moved(self, task: int) -> None:
        self._value = np.zeros(0)

    def _values(self, worker: int) -> Floats:
        """By what a comparison adds on average: who compares makes all pairs worth more or less alike."""
        if not len(self._value):
            there = self.campaign.history.answer[: self.entries] != GONE
            there[: len(self._known)] &= ~self._known
            entries, before = np.flatnonzero(there).tolist(), self._counted
            if entries[: len(before)] != before:
                self._covariance, before = self.fit.covariance, []
            task = self.campaign.history.task[entries[len(before) :]]
            trust, self._counted = usual_trust(self.fit), entries
            pairs = list(zip(self.first[task].tolist(), self.second[task].tolist(), strict=True))
            self._covariance = compared(self.fit, self._covariance, pairs, trust)
            value = pair_values(self.fit.score, self._covariance, trust, self.fit.tie, self.top)
            self._value = value[self.first, self.second]
        return self._value[: self.learnt_tasks]

    def _learn(self, labels: CrowdLabels) -> None:
        if len(labels.task):
            self.fit = fit_pairs(self.comparisons(labels))
            self.right_rates = (1.0 + np.append(self.fit.trust, usual_trust(self.fit))) / 2.0
        else:
            self.fit = PairFit.without_labels(len(self.items))
        self._known, self._counted = self.campaign.history.answer[: self.entries] >= 0, []
        self._covariance, self._value = self.fit.covariance, np.zeros(0)

    def comparisons(self, labels: CrowdLabels) -> Comparisons:
        """Labels as comparisons of items, as far as the pairs have been learnt."""
        known = labels.task < len(self.first)
        task, worker, said = labels.task[known], labels.worker[known], SAID[labels.answer[known]]
        return Comparisons(self.first[task], self.second[task], worker, said, len(self.items), max(self.people, 1))

    def read(self, tasks: int) -> Floats:
        """(tasks, 2 or 3) the probability of each answer."""
        n = min(tasks, self.learnt_tasks)
        found = np.full((tasks, self.kind.width), 1.0 / self.kind.width)
        found[:n] = self.fit.order_chances(self.first[:n], self.second[:n])[:, : self.kind.width]
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def order(self, labels: CrowdLabels, workers: Iterable[str]) -> LearntPairs:
        """The order of the items, by these labels of workers with these names."""
        return LearntPairs(tuple(self.items), tuple(workers), self.comparisons(labels), self.fit)

    def at_random(self) -> Bools:
        """(W,) whose comparisons do not follow the order of the items."""
        found = np.zeros(self.people, dtype=np.bool_)
        found[: len(self.fit.posterior)] = self.fit.at_random
        return found
