"""Labels with a guarantee: at most a share eps of them is wrong, except with probability alpha over a random draw.

====== ============ ==================================================================================================
symbol code         meaning
====== ============ ==================================================================================================
n      items        labels that the statement is about
eps    at_most      the largest share of wrong labels that is allowed, as an exact fraction
alpha  1 - sure     the chance of a miss: more than eps n labels are wrong in the end
r      too_many     floor(eps n) - floor(q n) + 1: the first number of wrong labels that is too many
q      expert_wrong share of all items on which the expert may be wrong
K      audits       items that are drawn at random for the expert before anything else
c      allowed      audited errors that may stay among the labels that nobody replaces
H      --           audited errors among the first r + c errors: hypergeometric, r + c draws from n items, K marked
====== ============ ==================================================================================================

The rule. Labels are frozen; K items, drawn uniformly without replacement, go to the expert, whose answers replace the
labels. c is the largest number with P(H <= c) <= alpha. While more than c audited errors are among the labels that are
kept, the least certain label goes to the expert too; r - 1 labels that nobody has checked may always stay.

``docs/guarantee.md`` has the theorems with their proofs: the rule (1), an order that learns from the answers for labels
taken away and never sees which items were drawn, as ``Order`` below does (2), several looks along one permutation (3).

Guarantee: exact in a finite population, nothing is assumed of workers, models or items. It needs that the expert is
right (or wrong on at most q n items), that K does not depend on answers, and that labels are frozen before the draw.
Cost: O(c) per chance; an order is sorted once per batch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.audit import hypergeometric
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import cell_text, folded
from nextlabel.files.labels import LabelTable, ResultTable, read_results
from nextlabel.files.write import whole_file
from nextlabel.wording import counted

FORMAT: Final = "nextlabel guarantee 1"
#: What a statement is about, unless it is about one of several questions.
LABELS, FORMS = "labels", "forms"
#: The smallest share that a statement may be about, and the largest is as far from 1.
SMALLEST: Final = Fraction(1, 10_000)
_OWN_FILE: Final = "Give the file that the draw has written."
#: Share of the items that goes to the expert before the rest is ordered again, and so many items at least.
BATCH, LEAST_BATCH = 0.025, 10
#: Items from which answers may recalibrate probabilities; below, too few of them are taken away to learn from.
LEAST_LEARNING: Final = 100
#: Shares of errors beyond the model's own word for which the number of audits is chosen (``choose_audits``).
OVERCONFIDENCE: Final = (0.0, 0.05, 0.1)
#: What a record has of a guarantee as it is.
RECORDED: Final = ("look", "draws", "given", "frozen_at", "entropy", "seed", "ordered_by", "known", "answers")
#: Sweeps of a refit between two batches, and the labels that the prior of a recalibration is worth.
SWEEPS, RIDGE = 50, 10.0
#: Labels up to which each has a coefficient of its own in a recalibration.
MOST_OWN: Final = 30

# ---------------------------------------------------------------------------------------------------------------------
# The rule
# ---------------------------------------------------------------------------------------------------------------------


def exactly(share: float | str | Fraction) -> Fraction:
    """A share as the fraction that a person means: 0.05 is 1/20."""
    return share if isinstance(share, Fraction) else Fraction(str(share))


def first_too_many(items: int, at_most: float | str | Fraction, expert_wrong: float | str | Fraction = 0) -> int:
    """r: the first number of wrong labels that is too many.

    >>> first_too_many(1000, 0.05), first_too_many(1000, 0.05, expert_wrong=0.01)
    (51, 41)
    """
    return math.floor(exactly(at_most) * items) - math.floor(exactly(expert_wrong) * items) + 1


def _masses(items: int, marked: int, draws: int, most: int) -> Floats:
    """P(H = 0), ..., P(H = most) for ``draws`` draws without replacement from ``items`` of which some are marked."""
    return hypergeometric(items, marked, draws, np.arange(most + 1))


def chance_of_miss(items: int, audits: int, too_many: int, allowed: int) -> float:
    """P(H <= c): the largest chance, over all labels and orders, that too many labels stay wrong."""
    return float(_masses(items, audits, too_many + allowed, allowed).sum())


def _holds(items: int, audits: int, too_many: int, allowed: int, alpha: Fraction) -> bool:
    """Whether P(H <= c) <= alpha; in whole numbers where rounding could decide."""
    chance = chance_of_miss(items, audits, too_many, allowed)
    if abs(chance - float(alpha)) > 1e-9:
        return chance < float(alpha)
    draws = too_many + allowed
    ways = sum(math.comb(audits, h) * math.comb(items - audits, draws - h) for h in range(allowed + 1) if h <= draws)
    return Fraction(ways, math.comb(items, draws)) <= alpha


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest whole number from ``low`` to ``high`` for which ``holds``, given that it does at ``low``."""
    return low + bisect_left(range(low + 1, high + 1), True, key=lambda one: not holds(one))


def allowed_errors(items: int, audits: int, too_many: int, alpha: float | str | Fraction) -> int | None:
    """c: the largest number of audited errors that may stay; None if the audit is too small for any.

    >>> allowed_errors(1000, 200, 51, 0.05), allowed_errors(100, 30, 6, 0.05)
    (6, None)
    """
    share = exactly(alpha)
    most = min(audits, items - too_many)  # c <= K, and r + c errors must fit
    if audits > items - too_many:  # so few are left unchecked that they cannot be too many
        return audits
    if not _holds(items, audits, too_many, 0, share):
        return None
    return _last(0, most, lambda c: _holds(items, audits, too_many, c, share))


def fewest_audits(items: int, allowed: int, too_many: int, alpha: float | str | Fraction) -> int:
    """The smallest K whose allowance is at least c; so many that nothing is left unchecked if none smaller will do.

    >>> fewest_audits(300, 0, 16, 0.05), fewest_audits(300, 1, 16, 0.05)
    (50, 74)
    """
    share = exactly(alpha)
    enough = max(items - too_many + 1, 0)
    if allowed + too_many > items or not _holds(items, enough - 1, too_many, allowed, share):
        return enough
    least = min(allowed, enough - 1)
    return enough - 1 - _last(0, enough - 1 - least, lambda d: _holds(items, enough - 1 - d, too_many, allowed, share))


def choose_audits(certainty: Floats, too_many: int, alpha: float | str | Fraction) -> tuple[int, float]:
    """K from the probabilities of the labels alone, and the share of the items that the expert is expected to see.

    K is the smallest that allows the c with the fewest answers expected. With c allowed errors and K audits the walk
    passes about (c + 1) n / K errors. Errors are expected where the model expects them, and a share more everywhere
    (``OVERCONFIDENCE``), because models are too sure of themselves.
    """
    n = len(certainty)
    doubt = np.sort(1.0 - np.clip(certainty, 0.0, 1.0))
    base = too_many**0.7 / 4
    best, fewest = 1.0, fewest_audits(n, 0, too_many, alpha)
    for allowed in sorted({round(base * m) for m in np.arange(0.5, 5.1, 0.5)}):
        audits = fewest_audits(n, allowed, too_many, alpha)
        if audits > n - too_many:
            break
        seen = 0.0
        for more in OVERCONFIDENCE:
            passed = int(np.searchsorted(np.cumsum(doubt + more * (1.0 - doubt)), (allowed + 1) * n / audits))
            seen += (audits / n + (1.0 - audits / n) * (1.0 - passed / n)) / len(OVERCONFIDENCE)
        if seen < best - 1e-12:
            best, fewest = seen, audits
    return fewest, best


def supported_share(terms: GuaranteeTerms, look: int, items: int, errors: int) -> float:
    """The smallest share that the same rule would certify now, with ``errors`` audited errors among the labels kept."""
    alpha = (1 - exactly(terms.sure)) / len(terms.audits)

    def too_strict(r: int) -> bool:
        allowed = allowed_errors(items, terms.audits[look], r, alpha)
        return allowed is None or allowed < errors

    spare = math.floor(exactly(terms.expert_wrong) * terms.items)
    return (_last(0, items, lambda r: r == 0 or too_strict(r)) + spare) / terms.items


def allowed_at_looks(
    items: int, audits: Sequence[int], too_many: int, alpha: float | str | Fraction
) -> tuple[int | None, ...]:
    """c_1, c_2, ...: allowances at looks after K_1 < K_2 < ... audits along one permutation; None: no look there yet.

    With d_k = r + c_k and a the audited among the first d_k errors (a > c_k to go on), one look follows from the other
    by two hypergeometric draws:

        x ~ Hyp(n - d_k items, K_k - a marked, d_(k+1) - d_k draws),          b = a + x
        y ~ Hyp(n - K_k items, d_(k+1) - b marked, K_(k+1) - K_k draws),      a <- b + y

    and the mass with a <= c_k is the chance of a miss, for the worst number of errors, d_L. The first k looks may spend
    k / L of alpha; what they leave raises allowances, those of the last looks first.

    >>> allowed_at_looks(1000, (80, 150, 250), 51, 0.05)
    (0, 3, 8)
    """
    share, looks = float(exactly(alpha)), len(audits)

    def spent(allowances: Sequence[int]) -> float:
        mass, errors, drawn, total = np.ones(1), 0, 0, 0.0
        for K, c in zip(audits, allowances, strict=False):
            if c >= 0:
                mass = _next_look(items, too_many, c, K, mass, errors, drawn)
                total += float(mass[: c + 1].sum())
                mass[: c + 1] = 0.0
                errors, drawn = too_many + c, K
        return total

    chosen: list[int] = []
    for k, K in enumerate(audits, start=1):
        c, next_c = -1, max([0, *chosen])
        while next_c <= min(K, items - too_many) and spent([*chosen, next_c]) <= share * k / looks:
            c, next_c = next_c, next_c + 1
        chosen.append(c)
    for k in reversed(range(looks)):
        while chosen[k] >= 0 and chosen[k] < min([*chosen[k + 1 :], audits[k], items - too_many]):
            raised = [*chosen[:k], chosen[k] + 1, *chosen[k + 1 :]]
            if spent(raised) > share:
                break
            chosen = raised
    return tuple(c if c >= 0 else None for c in chosen)


def _next_look(n: int, r: int, c: int, K: int, mass: Floats, errors: int, drawn: int) -> Floats:
    """The mass of audited errors among the first r + c errors after K audits, from that of the look before."""
    more, after = r + c - errors, np.zeros(r + c + 1)
    for a in np.flatnonzero(mass).tolist():
        seen = _masses(n - errors, drawn - a, more, more)
        for x in np.flatnonzero(seen).tolist():
            b = a + x
            new = _masses(n - drawn, r + c - b, K - drawn, r + c - b)
            after[b : b + len(new)] += mass[a] * seen[x] * new
    return after


# ---------------------------------------------------------------------------------------------------------------------
# Orders: how certain each frozen label is, given the answers for labels that were taken away
# ---------------------------------------------------------------------------------------------------------------------

#: P(the frozen label is right) for each item, from the truths of items that were taken away (-1: not taken away).
Order = Callable[[Ints], Floats]


def recalibrated(probability: Floats, label: Ints, answers: int) -> Order:
    """A logistic regression of 'right' on the log-odds of the probability and the label, held near the identity."""
    odds = logit(np.clip(probability, 1e-6, 1.0 - 1e-6))
    own = range(answers if answers <= MOST_OWN else 0)
    X = np.column_stack([odds, *((label == c).astype(np.float64) for c in own)])
    identity = np.zeros(X.shape[1])
    identity[0] = 1.0

    def order(truth: Ints) -> Floats:
        known = truth >= 0
        right = (truth == label)[known].astype(np.float64)
        beta = identity.copy()
        for _ in range(12):
            mean = expit(X[known] @ beta)
            slope = X[known].T @ (right - mean) - RIDGE * (beta - identity)
            curve = (X[known] * (mean * (1.0 - mean))[:, None]).T @ X[known] + RIDGE * np.eye(len(beta))
            beta = beta + np.linalg.solve(curve, slope)
        out: Floats = expit(X @ beta)
        return out

    return order


class BestOrder:
    """Several orders at once: the one that has foretold the answers so far best, batch by batch, orders the rest."""

    def __init__(self, probability: Floats, label: Ints, orders: Sequence[Order]) -> None:
        self._label = label
        self._orders: tuple[Order, ...] = (lambda _: probability, *orders)
        self._said = [np.clip(order(np.full(len(label), -1)), 1e-6, 1 - 1e-6) for order in self._orders]
        self._loss = np.zeros(len(self._orders))
        self._known = np.zeros(len(label), dtype=np.bool_)

    @property
    def learns(self) -> bool:
        """Whether answers can change the order."""
        return len(self._orders) > 1

    def certainty(self, truth: Ints) -> Floats:
        """P(right) of each frozen label, by the order whose forecasts of ``truth`` have lost least."""
        fresh = (truth >= 0) & ~self._known
        if fresh.any():
            right = truth[fresh] == self._label[fresh]
            for k, said in enumerate(self._said):
                self._loss[k] -= float(np.log(np.where(right, said[fresh], 1.0 - said[fresh])).sum())
            self._known |= fresh
            self._said = [np.clip(order(truth), 1e-6, 1 - 1e-6) for order in self._orders]
        # among equals the last one, which has learnt most
        best = len(self._loss) - 1 - int(np.argmin(self._loss[::-1]))
        return self._said[best]


# ---------------------------------------------------------------------------------------------------------------------
# A guarantee under way
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GuaranteeTerms:
    """What is promised, fixed before the draw.

    ``of`` limits the statement to items with that label; ``audits`` are the numbers of audits at each look, and
    ``allowed`` the audited errors that may stay after each.
    """

    at_most_wrong: str
    sure: str
    items: int
    too_many: int
    audits: tuple[int, ...]
    allowed: tuple[int | None, ...]
    expert_wrong: str = "0"
    of: str | None = None
    #: What the items are; a form is wrong if one of its answers is.
    what: str = LABELS


@dataclass(slots=True)
class Guarantee:
    """Frozen labels, a draw and the expert's answers so far; ``guarantee`` makes one, ``to_answer`` says what is next.

    >>> import nextlabel as nl
    >>> results = {"task": list(range(200)), "label": ["yes"] * 200, "probability": [0.9] * 200}
    >>> promise = nl.guarantee(results, at_most_wrong=0.1, sure=0.9)
    >>> while promise.to_answer:  # ask your expert
    ...     promise.tell({task: "yes" for task in promise.to_answer})
    >>> promise.certified
    True
    """

    terms: GuaranteeTerms
    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    probability: tuple[float, ...]
    #: Truths that were known before the freeze (teaching answers, controls, gold): they count as right.
    known: dict[str, str]
    entropy: str
    frozen_at: str
    #: Hash of the results as they were given.
    given: str
    seed: int | None = None
    #: Hash of the workers' labels that order the items, if any do.
    ordered_by: str | None = None
    answers: dict[str, str] = field(default_factory=dict)
    #: Items that the walk has taken away, batch by batch.
    batches: list[list[str]] = field(default_factory=list)
    look: int = 0
    #: How many draws there were, of labels that changed in between: together they miss with so many times the chance.
    draws: int = 1
    #: Items that the expert must answer next: first the audit, then the least certain labels, batch by batch.
    to_answer: list[str] = field(default_factory=list, init=False)
    #: The guarded items by number, in the order of the draw.
    permutation: list[int] = field(default_factory=list, init=False)
    _place: dict[str, int] = field(init=False)
    #: Words as numbers; (n,) the frozen labels, what is known or the expert has said (-1: nothing), which items are
    #: kept, and how ties are broken.
    _code: dict[str, int] = field(init=False)
    _label: Ints = field(init=False)
    _said: Ints = field(init=False)
    _kept: Bools = field(init=False)
    _tie: Ints = field(init=False)
    _order: BestOrder = field(init=False)

    @property
    def frozen(self) -> str:
        """SHA-256 of the frozen tasks, labels and probabilities."""
        return _hash([*zip(self.tasks, self.labels, map(repr, map(float, self.probability)), strict=True)])

    def start(self, crowd: LabelTable | None = None) -> None:
        """Number the items and find out what is next; ``crowd`` has the labels of the workers, if they order items."""
        n, spelt = len(self.tasks), [folded(label) for label in self.labels]
        self._place = {task: k for k, task in enumerate(self.tasks)}
        self._code = {word: c for c, word in enumerate(dict.fromkeys(spelt))}
        self._label = np.array([self._code[word] for word in spelt], dtype=np.int64)
        of = None if self.terms.of is None else folded(self.terms.of)
        guarded = [k for k, task in enumerate(self.tasks) if task not in self.known and (of is None or spelt[k] == of)]
        self.permutation = _shuffled(self.entropy, guarded)
        self._kept, self._said, self._tie = np.zeros(n, dtype=np.bool_), np.full(n, -1), np.arange(n)
        self._kept[guarded] = True
        self._tie[_shuffled(self.frozen, range(n))] = np.arange(n)
        self._hear(self.known)
        probability, orders = np.array(self.probability), list[Order]()
        if crowd is not None:
            orders.append(self._crowd_order(crowd))
        elif len(guarded) >= LEAST_LEARNING:
            orders.append(recalibrated(probability, self._label, len(self._code)))
        self._order = BestOrder(probability, self._label, orders)
        self._hear(self.answers)
        for batch in self.batches:  # the order learns batch by batch, as it did when they were taken away
            self._certainty()
            self._kept[[self._place[task] for task in batch]] = False
        self._advance()

    def _crowd_order(self, crowd: LabelTable) -> Order:
        """The workers' model of the items; items that no worker has labelled keep their probability."""
        if crowd.worker is None:
            raise InputError("the workers' labels do not say who gave them.", "Give a column 'worker'.")
        words = {folded(str(word)): c for c, word in enumerate(crowd.labels)}
        at = {str(task): k for k, task in enumerate(crowd.tasks)}
        place = np.array([at.get(task, -1) for task in self.tasks], dtype=np.int64)
        code = np.array([words.get(word, -1) for word in self._code], dtype=np.int64)
        labels = CrowdLabels(
            crowd.task, crowd.worker, crowd.label, len(crowd.tasks), len(crowd.workers), len(crowd.labels)
        )
        met = (place >= 0) & (code[self._label] >= 0)

        def order(truth: Ints) -> Floats:
            gold = np.full(labels.tasks, -1, dtype=np.int64)
            told = met & (truth >= 0) & (truth < len(code))
            gold[place[told]] = code[truth[told]]
            beliefs = fit_crowd(labels, gold, most_iterations=SWEEPS).beliefs
            out = np.array(self.probability)
            out[met] = beliefs[place[met], code[self._label[met]]]
            return out

        return order

    def _hear(self, answers: Mapping[str, str]) -> None:
        for task, said in answers.items():
            self._said[self._place[task]] = self._code.setdefault(folded(said), len(self._code))

    def _certainty(self) -> Floats:
        """P(right) of each frozen label, learnt from the answers for items that are not kept, and from no others."""
        return self._order.certainty(np.where(self._kept, -1, self._said))

    @property
    def drawn(self) -> list[str]:
        """The items of the audit, in the order of the draw."""
        return [self.tasks[k] for k in self.permutation[: self.terms.audits[self.look]]]

    def _audit(self) -> tuple[Bools, Bools]:
        """(n,) which items were drawn, and which of them have an answer that is not their label."""
        drawn = np.zeros(len(self.tasks), dtype=np.bool_)
        drawn[self.permutation[: self.terms.audits[self.look]]] = True
        return drawn, drawn & (self._said >= 0) & (self._said != self._label)

    @property
    def audited_errors(self) -> int:
        """Wrong labels among the audited ones that have an answer."""
        return int(self._audit()[1].sum())

    @property
    def so_far(self) -> float | None:
        """The largest share of wrong labels that the answers so far speak for; None before all drawn items have one."""
        if self.certified:
            return float(self.terms.at_most_wrong)
        if any(task not in self.answers for task in self.drawn):
            return None
        errors = int((self._audit()[1] & self._kept).sum())
        return supported_share(self.terms, self.look, len(self.permutation), errors)

    @property
    def certified(self) -> bool:
        """Whether the statement holds as it stands."""
        return not self.to_answer and self.terms.allowed[self.look] is not None

    def tell(self, answers: Mapping[Any, Any]) -> None:
        """Take the expert's answers, ``{task: label}``: all so far, or only new ones; wrong ones change nothing."""
        spelling = {folded(label): label for label in reversed(self.labels)}
        given = {str(task): spelling.get(folded(str(said)), str(said)) for task, said in answers.items()}
        asked = {*self.to_answer, *self.answers}
        strange = [task for task in given if task not in asked]
        if strange:
            raise InputError(
                f"the answers name {counted(len(strange), 'item')} that nobody asked for, {strange[0]!r} first.",
                "Give answers for the drawn items alone.",
            )
        changed = [task for task, said in given.items() if task in self.answers and self.answers[task] != said]
        if changed:
            raise InputError(
                f"the answer for {changed[0]!r} was {self.answers[changed[0]]!r} and is {given[changed[0]]!r} now.",
                "An answer that was told counts: give the same one.",
            )
        fresh = [said for task, said in given.items() if task not in self.answers]
        if len(fresh) >= 5 and not {*self.labels} & {*fresh}:
            raise InputError(
                f"no answer is one of the labels: {fresh[0]!r} against {self.labels[0]!r}.",
                "Use the same words in both files.",
            )
        self.answers |= {task: said for task, said in given.items() if task not in self.answers}
        self._hear(given)
        self._advance()

    def next_look(self) -> None:
        """Draw more audits along the same permutation before labels are taken away."""
        if self.look + 1 >= len(self.terms.audits):
            raise InputError("there is no further look.", "Plan several before the draw, e.g. --audits 80,150,250.")
        if self.batches:
            raise InputError("the walk has begun, so that the audits are final.", "Answer what is asked.")
        self.look += 1
        self._advance()

    def _advance(self) -> None:
        """Take labels away while too many audited errors are kept, up to the first items without an answer."""
        self.to_answer = [task for task in self.drawn if task not in self.answers]
        size = max(LEAST_BATCH, round(BATCH * len(self.permutation))) if self._order.learns else len(self.tasks)
        while not self.to_answer and (batch := self._walk(size)):
            self.to_answer = [self.tasks[k] for k in batch if self._said[k] < 0]
            if not self.to_answer:
                self.batches.append([self.tasks[k] for k in batch])
                self._kept[batch] = False

    def _walk(self, most: int) -> list[int]:
        """The least certain of the kept items, up to so many, until few enough audited errors are left.

        Ties were broken before the draw. So many unchecked labels as ``too_many`` less one can never be too many.
        """
        allowed, (drawn, wrong) = self.terms.allowed[self.look], self._audit()
        errors, unchecked = int((wrong & self._kept).sum()), int((self._kept & ~drawn).sum())
        kept, certainty, out = np.flatnonzero(self._kept), self._certainty(), list[int]()
        for k in kept[np.lexsort((self._tie[kept], certainty[kept]))[:most]].tolist():
            if allowed is None or errors <= allowed or (not drawn[k] and unchecked < self.terms.too_many):
                break
            out.append(k)
            errors, unchecked = errors - bool(wrong[k]), unchecked - (not drawn[k])
        return out

    def to_answer_in_all(self) -> int:
        """Answers that are missing if the order of the labels stays as it is now."""
        return int((self._said[self._walk(len(self.tasks))] < 0).sum())

    def final_labels(self) -> list[str]:
        """The labels with the expert's answers in place, in the order of the file."""
        better = self.known | self.answers
        return [better.get(task, label) for task, label in zip(self.tasks, self.labels, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """The state of the promise as ``--json`` prints it."""
        allowed = self.terms.allowed[self.look]
        return {
            "certified": self.certified,
            "items": self.terms.items,
            "audits": self.terms.audits[self.look],
            "too_many": self.terms.too_many,
            "allowed": allowed,
            "audited_errors": self.audited_errors,
            "to_answer": len(self.to_answer),
            "at_most_wrong": float(self.terms.at_most_wrong),
            "sure": float(self.terms.sure),
            "expert_answers": len(self.answers),
            "known_before": len(self.known),
            "of": self.terms.of,
            "drawn_at": self.frozen_at,
            "for_tests": self.seed is not None,
            "so_far": self.so_far,
            "sentences": self.sentences(),
        }

    def sentences(self) -> list[str]:
        """The certificate, or what is missing, in plain English."""
        terms = self.terms
        eps, sure = f"{float(terms.at_most_wrong):.1%}", f"{float(terms.sure):.4g}"
        share = f"{float(terms.sure):.0%}" if round(float(terms.sure), 2) == float(terms.sure) else sure
        of = "" if terms.of is None else f" that said {terms.of!r} when they were frozen"
        wrong = "have a wrong answer" if terms.what == FORMS else "are wrong"
        if self.certified:
            again = f", draw {self.draws} of this campaign" if self.draws > 1 else ""
            out = [
                f"At most {eps} of the {terms.items:,} {terms.what}{of} {wrong} ({share} sure; "
                f"{counted(len(self.answers), 'answer')} by an expert; drawn {self.frozen_at[:10]}{again}; no "
                "assumption about the workers)."
            ]
            if terms.expert_wrong != "0":
                out.append(f"It allows for an expert who is wrong on at most {float(terms.expert_wrong):.2%} of them.")
        elif not self.batches and any(task not in self.answers for task in self.drawn):
            out = [
                f"{counted(len(self.to_answer), 'drawn item')} of {terms.audits[self.look]:,} "
                f"{'has' if len(self.to_answer) == 1 else 'have'} no answer yet: the expert must answer all of them."
            ]
        elif terms.allowed[self.look] is None:
            out = ["This look has too few audits to say anything: go on to the next one (--next-look)."]
        else:
            out = [
                f"{self.audited_errors:,} of {terms.audits[self.look]:,} audited labels are wrong, and "
                f"{terms.allowed[self.look]:,} may stay, so that the expert must answer the least certain labels too: "
                f"{self.to_answer_in_all():,} at most, {len(self.to_answer):,} of them next."
            ]
        if self.seed is not None:
            out.append(f"For tests only: the draw was made with the seed {self.seed}, which anybody can choose.")
        return out

    # -- the file that holds everything -------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """Everything that is needed to go on, and to check the certificate without this program."""
        return {
            "format": FORMAT,
            **asdict(self.terms),
            **{name: getattr(self, name) for name in RECORDED},
            "frozen": self.frozen,
            "labels": [list(row) for row in zip(self.tasks, self.labels, self.probability, strict=True)],
            "removed": self.batches,
            "certified": self.certified,
            "sentence": self.sentences()[0],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the record."""
        with whole_file(path) as stream:
            json.dump(self.record(), stream, indent=1, ensure_ascii=False)
            stream.write("\n")

    @staticmethod
    def peek(path: str | os.PathLike[str]) -> dict[str, Any]:
        """The content of a guarantee's file, as it is."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["format"] == FORMAT:
                return dict(content)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path} cannot be read as the file of a guarantee.", _OWN_FILE) from error
        raise FileFormatError(f"{path} is not the file of a guarantee.", _OWN_FILE)

    @classmethod
    def load(cls, path: str | os.PathLike[str], crowd: LabelTable | None = None) -> Self:
        """A guarantee from its file; ``crowd`` has the workers' labels again, if they order the items."""
        content = cls.peek(path)
        try:
            tasks, labels, probability = zip(*content["labels"], strict=True)
            promised = {one.name: content[one.name] for one in fields(GuaranteeTerms) if one.name in content}
            promised |= {name: tuple(content[name]) for name in ("audits", "allowed")}
            made = cls(
                GuaranteeTerms(**promised), tasks, labels, tuple(map(float, probability)), batches=content["removed"],
                **{name: content[name] for name in RECORDED},
            )  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{path} lacks a part of a guarantee: {error}.", _OWN_FILE) from error
        if made.frozen != content["frozen"]:
            raise InputError(f"{path} was changed after the draw.", "Use the file as it was written.")
        if (made.ordered_by or None) != (None if crowd is None else hash_of_labels(crowd)):
            raise InputError(
                "the workers' labels are not those of the draw.",
                "Give the same file again with --worker-labels." if made.ordered_by else "Leave --worker-labels out.",
            )
        made.start(crowd)
        return made


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def hash_of_results(table: ResultTable) -> str:
    """SHA-256 of tasks, labels, probabilities and what was told, as they were given."""
    told = np.asarray(table.told).tolist()
    probability = map(repr, map(float, table.probability))
    return _hash([*zip(map(str, table.tasks), map(str, table.labels), probability, told, strict=True)])


def hash_of_labels(crowd: LabelTable) -> str:
    """SHA-256 of the labels that workers gave."""
    assert crowd.worker is not None
    columns = (crowd.task, crowd.worker, crowd.label)
    names = [list(map(str, crowd.tasks)), list(map(str, crowd.workers)), list(map(str, crowd.labels))]
    return _hash([names, *(column.tolist() for column in columns)])


def _shuffled(entropy: str, numbers: Iterable[int]) -> list[int]:
    """Numbers in the order of SHA-256(entropy:number): anybody can draw them again."""
    return sorted(numbers, key=lambda k: hashlib.sha256(f"{entropy}:{k}".encode()).digest())


def guarantee(
    results: ResultTable | Any,
    *,
    at_most_wrong: float | str = 0.05,
    sure: float | str = 0.95,
    audits: int | Sequence[int] | None = None,
    labels: LabelTable | None = None,
    known: Mapping[Any, Any] | None = None,
    of: str | None = None,
    expert_wrong: float | str = 0,
    seed: int | None = None,
    task: str = "task",
    label: str = "label",
    what: str = LABELS,
) -> Guarantee:
    """Freeze labels and draw the audit for the promise 'at most so many are wrong'.

    ``results``: a path, a data frame or columns with one row per item (task, label, probability of the label).
    ``audits``: K, or its values at several looks; left out, it is chosen from the probabilities alone. ``labels``: the
    labels of the workers (``nl.read_labels``); they are fitted again as answers come in, so that the least certain
    labels are found better. ``known``: truths that were known before, ``{task: label}``; they teach and are not drawn.
    ``of``: the promise is about the items with this label at the freeze. ``expert_wrong``: share of the items on which
    the expert may err. ``seed``: for tests; without it the draw takes fresh entropy after the freeze. ``what``: the
    statement's word for the labels.
    """
    eps, confidence = checked_share("at_most_wrong", at_most_wrong), checked_share("sure", sure)
    q = exactly(expert_wrong)
    table = results if isinstance(results, ResultTable) else read_results(results, task=task, label=label)
    # the record is JSON, and answers come from files: names are words here, whatever type they came with
    table = replace(table, tasks=tuple(map(cell_text, table.tasks)), labels=tuple(map(cell_text, table.labels)))
    place = {name: k for k, name in enumerate(table.tasks)}
    truth = {str(name): str(said) for name, said in (known or {}).items()}
    strange = [name for name in truth if name not in place]
    if strange:
        raise InputError(f"the known truths name {strange[0]!r}, which has no label.", "Give truths of labelled items.")
    truth |= {name: table.labels[k] for name, k in place.items() if table.told[k] and name not in truth}
    spelling = {folded(said): said for said in reversed(table.labels)}
    frozen = [spelling[folded(said)] for said in table.labels]
    truth = {name: spelling.get(folded(said), said) for name, said in truth.items()}
    frozen = [truth.get(name, said) for name, said in zip(table.tasks, frozen, strict=True)]
    of = None if of is None else spelling.get(folded(str(of)), str(of))
    about = [k for k, said in enumerate(frozen) if of is None or said == of]
    if not about:
        words = sorted({*table.labels})
        raise InputError(f"no item has the label {of!r}.", f"Give one of {', '.join(words[:8])}.")
    guarded = [k for k in about if table.tasks[k] not in truth]
    if not 0 <= q < eps:
        raise InputError(
            f"an expert who is wrong on {float(q):g} of the items cannot show that at most {float(eps):g} are wrong.",
            "Give a smaller share for the expert's errors.",
        )
    n, r, alpha = len(guarded), first_too_many(len(about), eps, q), 1 - confidence
    planned: tuple[int, ...] = (audits,) if isinstance(audits, int) else tuple(audits or ())
    if audits is None:
        planned = (min(choose_audits(np.array(table.probability)[guarded], r, alpha)[0], n) if n else 0,)
    else:
        _check_audits(planned, n, r, alpha, eps, confidence)
    single = len(planned) == 1
    allowed = (allowed_errors(n, planned[0], r, alpha),) if single else allowed_at_looks(n, planned, r, alpha)
    terms = GuaranteeTerms(
        _spelt(eps),
        _spelt(confidence),
        len(about),
        r,
        planned,
        allowed,
        _spelt(q),
        None if of is None else str(of),
        what,
    )
    entropy = secrets.token_hex(32) if seed is None else _hash(["seed", seed])
    promise = Guarantee(
        terms, tuple(table.tasks), tuple(frozen), tuple(map(float, table.probability)), truth, entropy,
        datetime.now(UTC).isoformat(timespec="seconds"), hash_of_results(table), seed,
        None if labels is None else hash_of_labels(labels),
    )  # fmt: skip
    promise.start(labels)
    return promise


def checked_share(name: str, share: float | str) -> Fraction:
    """A share between 0 and 1, exactly."""
    try:
        value = exactly(share)
    except ValueError:
        value = Fraction(0)
    if not SMALLEST <= value <= 1 - SMALLEST:
        raise InputError(f"{name} is {share}.", "Give a share between 0.0001 and 0.9999, e.g. 0.05 or 0.95.")
    return value


def _spelt(share: Fraction) -> str:
    """A share as a decimal number."""
    with localcontext(prec=50):
        return format((Decimal(share.numerator) / Decimal(share.denominator)).normalize(), "f")


def _check_audits(planned: Sequence[int], n: int, r: int, alpha: Fraction, eps: Fraction, confidence: Fraction) -> None:
    if any(not 1 <= K <= n for K in planned) or any(b <= a for a, b in pairwise(planned)):
        raise InputError(
            f"audits are {', '.join(map(str, planned))} and {counted(n, 'item')} can be drawn.",
            "Give a number from 1 to that, or growing numbers for several looks.",
        )
    least = fewest_audits(n, 0, r, alpha if len(planned) == 1 else alpha / len(planned))
    if planned[-1] < least:
        raise InputError(
            f"{counted(planned[-1], 'audit')} {'is' if planned[-1] == 1 else 'are'} too few to show that at most "
            f"{float(eps):.4g} of {n:,} labels are wrong, {float(confidence):.4g} sure.",
            f"Give at least {least:,}.",
        )
