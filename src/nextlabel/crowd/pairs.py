"""Comparisons: which of two items is better, by workers who differ; the order of all items, and which pair to ask next.

======== ======== =========================================================================
symbol   code     meaning
======== ======== =========================================================================
s_i      score    how good item i is: normal, mean 0, with a spread that is learnt
r_k      trust    worker k: 1 compares, 0 tosses a coin, -1 says the opposite
t        tie      half the width of the scores between which a worker sees no difference
======== ======== =========================================================================

A worker sees ``i`` ahead with probability ``a = sigma(s_i - s_j - t)``, ``j`` with ``b = sigma(s_j - s_i - t)``, else a
tie (Rao and Kupper 1967); without ties ``t = 0``, which is Bradley and Terry's model. What they saw they say with
probability ``(1 + r_k) / 2``, else the opposite (Crowd-BT: Chen et al., WSDM 2013).

Scores have Laplace's posterior: mode, and covariance ``S`` from the expected information. Workers have theirs on a
grid, with the prior ``Beta(4, 2)`` on ``(1 + r) / 2``, averaged over what is not known of the scores.

The next pair is the one that takes away most of the pairs that are expected to be in the wrong order. With ``d`` the
difference of two scores and ``V`` its variance, that is the sum of ``E phi(d / sqrt(V)) |d| / (2 V^1.5)`` times the
fall of ``V``: a quadratic form in ``S``, so that one product of matrices values all pairs. It is a heuristic, and
nothing is certified. Cost: K^3 a step of the fit and a choice, for K items.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, ndtr

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.numbers import OF_USUAL
from nextlabel.crowd.skill import Estimate, Intervals
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import cell_text
from nextlabel.files.tables import Frame, TableSummary, open_table
from nextlabel.wording import counted, listed

COLUMNS = ("first", "second", "worker", "label")
TIE = "tie"
#: What each answer says, by its number.
SAID: Ints = np.array([1, -1, 0])
#: Steps of a worker's trust, and the prior's Beta(4, 2) on them.
GRID: Floats = np.linspace(-0.95, 0.95, 39)
PRIOR: Floats = 3 * np.log1p(GRID) + np.log1p(-GRID)
#: Widths of ties that are tried; no spread of scores is smaller than the least.
TIES: Floats = np.linspace(0.02, 2.0, 100)
LEAST_SPREAD, ROUNDS, NEWTON_STEPS = 0.5, 12, 3
#: Variance of scores and trust of workers at first.
SPREAD, START_TRUST = 2.0, 0.6
#: Trust that is assumed, at least, of who comes next: a pair has to be chosen for a coin as well.
LEAST_TRUST = 0.2


class Comparisons(NamedTuple):
    """(L,) the two items of each comparison, who compared them, and what was said: 1 first, -1 second, 0 a tie."""

    first: Ints
    second: Ints
    worker: Ints
    said: Ints
    items: int
    workers: int


@dataclass(frozen=True, slots=True)
class PairFit:
    """Scores (K,), their covariance (K, K), the workers' posterior on the grid (W, steps), half the width of ties."""

    score: Floats
    covariance: Floats
    posterior: Floats
    tie: float

    @classmethod
    def without_labels(cls, items: int) -> PairFit:
        """What is known of so many items before any comparison."""
        return cls(np.zeros(items), SPREAD * np.eye(items), np.zeros((0, len(GRID))), 0.0)

    @property
    def trust(self) -> Floats:
        """(W,) the mean trust of each worker."""
        return np.asarray(self.posterior @ GRID)

    @property
    def skill(self) -> Intervals:
        """(W,) how often each worker says what they see, and in the last row somebody of whom nothing is known."""
        below = np.cumsum(np.vstack([self.posterior, np.exp(PRIOR) / np.exp(PRIOR).sum()]), axis=1)
        low, high = (GRID[(below < level).sum(axis=1)] for level in (0.025, 0.975))
        mean = np.append(self.trust, START_TRUST)
        return Intervals(*(np.asarray((1.0 + one) / 2.0) for one in (mean, low, high)))

    @property
    def at_random(self) -> Bools:
        """(W,) whose trust may be 0 and is below a quarter of the usual."""
        coin = np.cumsum(self.posterior, axis=1)[:, len(GRID) // 2] > 0.025
        return np.asarray(coin & (self.trust < OF_USUAL * usual_trust(self)))

    def order_chances(self, i: Ints, j: Ints) -> Floats:
        """(n, 3) the chance that the first is better, that the second is, and that their scores are within a tie."""
        d, sd = self.score[i] - self.score[j], np.sqrt(np.maximum(_variance(self.covariance, i, j), 1e-12))
        better, worse = ndtr((d - self.tie) / sd), ndtr((-d - self.tie) / sd)
        return np.stack([better, worse, np.maximum(1.0 - better - worse, 0.0)], axis=1)


def usual_trust(fit: PairFit) -> float:
    """The trust that is assumed of who comes next."""
    return max(LEAST_TRUST, float(fit.trust.mean())) if len(fit.posterior) else START_TRUST


def _chances(d: Floats, trust: Floats, tie: float) -> tuple[Floats, Floats]:
    """(3, n) probabilities of 'second', 'tie' and 'first', and their derivatives by the difference ``d``."""
    a, b, right = expit(d - tie), expit(-d - tie), (1 + trust) / 2
    da, db = a * (1 - a), -b * (1 - b)
    chance = np.array([right * b + (1 - right) * a, 1 - a - b, right * a + (1 - right) * b])
    slope = np.array([right * db + (1 - right) * da, -da - db, right * da + (1 - right) * db])
    return np.maximum(chance, 1e-12), slope


def _moderated(d: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The difference that has the same expected chance as one with that variance (MacKay 1992), and what shrank it."""
    shrink = 1 / np.sqrt(1 + np.pi * variance / 8)
    return d * shrink, shrink


def _variance(covariance: Floats, i: Ints, j: Ints) -> Floats:
    return np.asarray(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])


def fit_pairs(data: Comparisons, before: PairFit | None = None, rounds: int = ROUNDS) -> PairFit:
    """Scores, workers and ties, learnt together; ``before`` is where to start, e.g. the fit of fewer comparisons."""
    i, j, k, said = data.first, data.second, data.worker, data.said
    score = np.zeros(data.items) if before is None else before.score
    trust = np.full(data.workers, START_TRUST) if before is None else before.trust
    ties, tie, spread = bool((said == 0).any()), 0.0 if before is None else before.tie, SPREAD
    rows = np.arange(len(i))
    for _ in range(rounds):
        for _ in range(NEWTON_STEPS):
            chance, slope = _chances(score[i] - score[j], trust[k], tie)
            pull, weight = slope[said + 1, rows] / chance[said + 1, rows], (slope**2 / chance).sum(0)
            gradient = np.bincount(i, pull, data.items) - np.bincount(j, pull, data.items) - score / spread
            information = np.zeros((data.items, data.items))
            np.add.at(information, (i, j), -weight)
            information += information.T
            information += np.diag(1 / spread - information.sum(1))
            covariance: Floats = np.asarray(np.linalg.inv(information), dtype=np.float64)
            step = covariance @ gradient
            score = score + step * min(1.0, 2 / max(1e-9, float(np.abs(step).max())))
        spread = max(LEAST_SPREAD**2, float((score @ score + np.trace(covariance) + 2) / (data.items + 2)))
        d, _ = _moderated(score[i] - score[j], _variance(covariance, i, j))
        if ties:
            wide = TIES[:, None]
            a, b = expit(d - wide), expit(-d - wide)
            likely = np.log(np.where(said == 0, 1 - a - b, a + b)).sum(1)
            tie = float(TIES[likely.argmax()])
        a, b = expit(d - tie), expit(-d - tie)
        told = np.where(said == 0, 0.0, said * (a - b) / (a + b))[:, None]
        log = np.zeros((data.workers, len(GRID))) + PRIOR
        np.add.at(log, k, np.log1p(GRID * told))
        posterior = np.exp(log - log.max(1, keepdims=True))
        posterior /= posterior.sum(1, keepdims=True)
        trust = posterior @ GRID
    return PairFit(score, covariance, posterior, tie)


def pair_values(score: Floats, covariance: Floats, trust: float, tie: float = 0.0, top: int | None = None) -> Floats:
    """(K, K) what a comparison of two items by a worker takes away of the pairs that are expected in the wrong order.

    With ``top`` only pairs count of which one item is among the best so many, as far as is known.
    """
    spread = np.diag(covariance)
    variance = spread[:, None] + spread - 2 * covariance
    np.fill_diagonal(variance, 1.0)
    d = score[:, None] - score
    half, sd = np.abs(d) / 2, np.sqrt(variance / 2)
    apart = sd * np.sqrt(2 / np.pi) * np.exp(-(half**2) / (2 * sd**2)) + half * (1 - 2 * ndtr(-half / sd))
    weight = np.exp(-(d**2) / (4 * variance)) / np.sqrt(4 * np.pi * variance) * apart / (2 * variance)
    if top is not None:
        best = np.argsort(np.argsort(-score)) < top
        weight = weight * (best[:, None] != best)
    np.fill_diagonal(weight, 0.0)
    form = covariance @ (np.diag(weight.sum(1)) - weight) @ covariance
    fall = np.diag(form)[:, None] + np.diag(form) - 2 * form
    near, shrink = _moderated(d, variance)
    chance, slope = _chances(near, np.asarray(trust), tie)
    told = ((slope * shrink) ** 2 / chance).sum(0)
    value = told / (1 + told * variance) * fall
    np.fill_diagonal(value, -np.inf)
    return np.asarray(value)


def choose_pairs(fit: PairFit, many: int, trust: float, top: int | None = None) -> list[tuple[int, int]]:
    """The next pairs, the most valuable first, each as if those before it had been compared."""
    covariance, found = fit.covariance, list[tuple[int, int]]()
    for _ in range(many):
        i, j = np.unravel_index(pair_values(fit.score, covariance, trust, fit.tie, top).argmax(), covariance.shape)
        found.append((int(i), int(j)))
        covariance = compared(fit, covariance, found[-1:], trust)
    return found


def compared(fit: PairFit, covariance: Floats, pairs: Iterable[tuple[int, int]], trust: float) -> Floats:
    """The covariance that is left when these pairs have been compared, too, whatever was said."""
    for i, j in pairs:
        chance, slope = _chances(fit.score[i] - fit.score[j], np.asarray(trust), fit.tie)
        told = float((slope**2 / chance).sum())
        u = covariance[:, i] - covariance[:, j]
        covariance = covariance - np.outer(u, u) * (told / (1 + told * (u[i] - u[j])))
    return covariance


def learn_pairs(labels: str | os.PathLike[str] | Frame) -> LearntPairs:
    """Learn the order of items, and how each worker compares, from comparisons: a file or a data frame.

    Columns ``first``, ``second``, ``worker``, ``label``; a label is the name of the better item, ``first``, ``second``
    or ``tie``. No gold is needed.

    >>> rows = [("a", "b", "ann", "a"), ("b", "c", "ann", "b"), ("a", "c", "bob", "first"), ("b", "c", "bob", "b")]
    >>> learn_pairs(dict(zip(["first", "second", "worker", "label"], zip(*rows, strict=True), strict=True))).predict()
    ['a', 'b', 'c']
    """
    rows: list[tuple[str, ...]] = []
    with open_table(labels, "comparisons") as table:
        names = [str(one) for one in table.columns]
        missing = [column for column in COLUMNS if names.count(column) != 1]
        if missing:
            raise FileFormatError(
                f"the comparisons have no column {missing[0]!r}; they have {listed(names)}.",
                f"Give the columns {listed(COLUMNS)}.",
            )
        for _, *cells in table.rows([names.index(column) for column in COLUMNS]):
            rows.append(tuple(cell_text(cell).strip() for cell in cells))
        read = table.report
    kept = [row for row in rows if all(row)]
    items = {name: n for n, name in enumerate(dict.fromkeys(name for row in kept for name in row[:2]))}
    workers = {name: n for n, name in enumerate(dict.fromkeys(row[2] for row in kept))}
    if not kept:
        raise InputError("there are no comparisons of two items.", "Give rows with first, second, worker and label.")
    numbers = [(items[row[0]], items[row[1]], workers[row[2]], _said(row)) for row in kept]
    first, second, worker, said = np.array(numbers, dtype=np.int64).T
    data = Comparisons(first, second, worker, said, len(items), len(workers))
    return LearntPairs(tuple(items), tuple(workers), data, fit_pairs(data), (read,), len(rows) - len(kept))


def _said(row: tuple[str, ...]) -> int:
    """What a row says."""
    first, second, _, label = row
    if first == second:
        raise InputError(f"item {first[:60]!r} is compared with itself.", "Give two items.")
    meanings = {TIE: 0, "first": 1, "second": -1, first: 1, second: -1}
    if label not in meanings:
        raise InputError(
            f"the label {label[:60]!r} is neither {first[:60]!r} nor {second[:60]!r}.",
            "Give the name of the better item, first, second or tie.",
        )
    return meanings[label]


@dataclass(frozen=True, eq=False)
class LearntPairs:
    """Items and workers, learnt together from comparisons."""

    item_names: tuple[str, ...]
    worker_names: tuple[str, ...]
    data: Comparisons
    fit: PairFit
    read: Sequence[TableSummary] = ()
    incomplete: int = 0

    @cached_property
    def order(self) -> Ints:
        """(K,) the items, the best first."""
        return np.argsort(-self.fit.score, kind="stable")

    def predict(self) -> list[str]:
        """The names of the items, the best first."""
        return [self.item_names[k] for k in self.order]

    def next_pairs(self, many: int = 10, top: int | None = None) -> list[tuple[str, str]]:
        """Which pairs to compare next, the most valuable first, by workers like those of before.

        With ``top`` only who is among the best so many matters.
        """
        if many < 1 or (top is not None and not 1 <= top < len(self.item_names)):
            raise InputError(
                f"{many} pairs for the best {top} of {len(self.item_names)} items cannot be asked for.",
                "Ask for 1 pair or more, and for fewer of the best than there are items.",
            )
        chosen = choose_pairs(self.fit, many, usual_trust(self.fit), top)
        return [(self.item_names[i], self.item_names[j]) for i, j in chosen]

    def tasks(self) -> Iterator[dict[str, Any]]:
        """One row for each item, the best first."""
        many = np.bincount(np.append(self.data.first, self.data.second), minlength=len(self.item_names))
        for rank, k in enumerate(self.order, 1):
            score, sd = float(self.fit.score[k]), float(np.sqrt(self.fit.covariance[k, k]))
            yield {
                "item": self.item_names[k], "rank": rank, "score": round(score, 4), "sd": round(sd, 4),
                "comparisons": int(many[k]),
            }  # fmt: skip

    def workers(self) -> Iterator[tuple[str, int, Estimate]]:
        """The workers, who compared most first: name, comparisons, and how often they say what they see."""
        many, skill = np.bincount(self.data.worker, minlength=self.data.workers), self.fit.skill
        for k in np.argsort(-many[: len(self.fit.posterior)], kind="stable"):
            yield self.worker_names[k], int(many[k]), skill.at(int(k))

    def discordant(self) -> float:
        """The share of all pairs that is expected to be in the wrong order, by the model's own word."""
        i, j = np.triu_indices(len(self.fit.score), 1)
        apart = np.abs(self.fit.score[i] - self.fit.score[j]) / np.sqrt(_variance(self.fit.covariance, i, j))
        return float(ndtr(-apart).mean()) if len(apart) else 0.0

    def sentences(self) -> list[str]:
        """What was learnt, in plain English."""
        left = f" {counted(self.incomplete, 'row')} without item, worker or label left out." if self.incomplete else ""
        ties = int((self.data.said == 0).sum())
        said = f"{counted(len(self.data.said), 'comparison')}, {counted(ties, 'tie')}.{left}"
        return [
            said,
            f"About {self.discordant():.0%} of all pairs of items are expected to be in the wrong order, by the "
            "model's own word; nothing is certified.",
            "says what they see: how often a worker names the item that they see ahead; .5 is a coin, less is the "
            "opposite.",
        ]
