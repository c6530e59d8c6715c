"""Items teach: a learner of the items' features, and people's labels, learnt together.

====== ============ ========= =============================================================================
symbol code         shape     meaning
====== ============ ========= =============================================================================
phi    design       (K, d)    what is seen of each item, its rows of length 1 (``Encoder``)
theta  weights      (d+1, C)  of a softmax learner, for each fold of the items one that has not seen them
l      likelihood   (K, C)    P(labels of x | truth c), by the workers' channels
pi     chance       (K, C)    what the learner of the other folds says of each item
rho    prior        (K, C)    (1 - doubt) pi^sharpness + doubt share, normalised
t      prior_offset         (K, C)    log rho - log share, which the fit adds to the log shares (``crowd.fit``)
====== ============ ========= =============================================================================

  theta  maximises  sum over labelled x of the other folds of log sum_c softmax(phi_x theta)_c l_x(c) - lam/2 |theta|^2
  lam, the encoding, sharpness and doubt maximise  sum over labelled x of log sum_c rho_x(c) l_x(c)

and the workers' channels are learnt from all labels with these priors, in turns (``TURNS``). Gold counts as a label
without error; otherwise it teaches nothing and chooses nothing. Four things keep the learner from being believed for
what it has been told:

- *No echo.* What is said of an item comes from a learner that has seen none of its labels. Folds go by items' names.
- *No collapse.* Without two labels on the same item nobody can tell a learner that repeats people's errors from people
  who make none. So the crowd's mean is held to a modest first idea (``MODEST``), as firmly as there are few such pairs.
- *Alike is not independent.* With more than two answers a wrong label is often the one that the features suggest too.
  ``ALIKE`` of the errors are taken to go where the learner says.
- *Nothing is nothing.* Unless the learner makes the labels more probable by ``LEAST_GAIN`` nats and by ``SURE``
  standard errors, there is no learner, and the fit is that without features, bit for bit.

Cost: about 30 climbs of 20 to 60 steps, each a product with the design; ``MOST_SEARCHED`` items choose lam.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.expected import WIDTH, ExpectedAccuracy
from nextlabel.crowd.fit import CrowdFit, CrowdLabels, fit_crowd
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text
from nextlabel.files.features import Features, read_features
from nextlabel.kernels.crowd_fit import stiffness

#: Parts of the items of which each is foretold from the others, turns of learner and channels, steps of one climb, and
#: of one where items are many.
FOLDS, TURNS, STEPS, FEWER_STEPS = 5, 3, 60, 20
#: Ridge weights: the first, the factor between two, the ends.
RIDGE, FACTOR, LEAST_RIDGE, MOST_RIDGE = 0.3, 3.0, 0.01, 30.0
#: Items that choose the encoding and the ridge weight.
MOST_SEARCHED = 10_000
#: Numbers per item from which on their direction may be all that counts.
WIDE = 32
#: Nats and standard errors by which the labels must be more probable with the learner.
LEAST_GAIN, SURE = 3.0, 2.0
#: How far from chance (0) to perfect (1) a crowd beside a learner is at first, and the share of errors that go its way.
MODEST, ALIKE = 0.4, 0.3
#: The least chance that is believed.
LEAST = 1e-6

Matrix = Any  # a dense float32 array, or a sparse one of SciPy


class Learner(Protocol):
    """A learner of one's own, with the methods of scikit-learn's classifiers; ``classes_`` names the columns."""

    def fit(self, inputs: Any, labels: Any) -> Any:
        """Learn from inputs and the numbers of their labels, with weights if there is an argument ``sample_weight``."""

    def predict_proba(self, inputs: Any) -> Any:
        """A row of probabilities for each input."""


# What is seen of an item ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Encoder:
    """Features as rows of length 1 on average: numbers standardised, words and pairs of words.

    ``even``: every row has length 1. ``raw``: numbers on the scale that they came with.
    """

    even: bool = False
    raw: bool = False
    length: float = 1.0
    mean: Any = None
    scale: Any = None
    kept: Any = None
    words: tuple[Any, ...] = ()

    def fit(self, features: Features) -> Encoder:
        """Learn the columns' means and scales, and the words that occur in two texts or more."""
        numbers = features.numbers.astype(np.float64)
        seen = np.isfinite(numbers)
        many = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, numbers, 0.0).sum(axis=0) / many
        scale = np.sqrt((np.where(seen, numbers - mean, 0.0) ** 2).sum(axis=0) / many)
        self.kept = scale > 1e-9 * np.maximum(np.abs(mean), 1e-12)
        self.mean, self.scale = mean[self.kept], scale[self.kept]
        if self.raw and self.kept.any():
            self.mean, self.scale = np.zeros_like(self.mean), np.full_like(self.scale, np.median(self.scale))
        self.words = tuple(self._vectoriser(column) for column in features.texts)
        if not self.even and self.kept.any():
            self.length = float(np.sqrt((self._scaled(features) ** 2).sum(axis=1).mean()))
        return self

    def _scaled(self, features: Features) -> Any:
        numbers = features.numbers[:, self.kept]
        block = np.where(np.isfinite(numbers), (numbers - self.mean) / self.scale, 0.0)
        most = 1e3 if self.raw else 6.0
        return np.clip(block, -most, most).astype(np.float32)

    def _vectoriser(self, texts: Sequence[str]) -> Any:
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError as error:
            raise InputError(
                "texts are learnt from by scikit-learn, which is not installed.", "pip install 'nextlabel[learn]'."
            ) from error
        for least in (2, 1):
            try:
                found = TfidfVectorizer(
                    ngram_range=(1, 2), min_df=least, max_features=100_000, sublinear_tf=True, dtype=np.float32
                )
                return found.fit(texts)
            except ValueError:  # no words
                continue
        return None

    def encode(self, features: Features) -> Matrix:
        """(n, d) the design; a missing number is its column's mean."""
        blocks = []
        if self.kept.any():
            block = self._scaled(features)
            lengths = np.linalg.norm(block, axis=1, keepdims=True) if self.even else self.length
            blocks.append(block / np.maximum(lengths, np.float32(1e-6)))
        blocks += [w.transform(column) for w, column in zip(self.words, features.texts, strict=True) if w is not None]
        if not blocks:
            return np.zeros((len(features), 0), dtype=np.float32)
        if all(isinstance(block, np.ndarray) for block in blocks):
            return blocks[0]
        from scipy import sparse

        return sparse.hstack([block / np.sqrt(len(blocks)) for block in blocks], format="csr", dtype=np.float32)


# The softmax learner --------------------------------------------------------------------------------------------------


def _softmax(logits: Any) -> Any:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _climb(design: Matrix, like: Any, ridge: float, start: Any, steps: int) -> Any:
    """(d + 1, C) weights, the last row without features; in coordinates in which all of them are about as curved."""
    d, C = design.shape[1], like.shape[1]
    squares = design.multiply(design).sum(axis=0) if hasattr(design, "multiply") else (design**2).sum(axis=0)
    curve = np.sqrt(0.1 * np.append(np.asarray(squares).ravel(), len(like)) + ridge)[:, None].astype(np.float32)
    turned = design.T.tocsr() if hasattr(design, "multiply") else design.T

    def objective(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(d + 1, C).astype(np.float32) / curve
        chance = _softmax(design @ weights[:-1] + weights[-1])
        joint = chance * like
        whole = np.maximum(joint.sum(axis=1, keepdims=True), 1e-30)
        apart = chance - joint / whole
        slope = np.vstack([turned @ apart + ridge * weights[:-1], apart.sum(axis=0)]) / curve
        value = 0.5 * ridge * float((weights[:-1] ** 2).sum()) - float(np.log(whole).sum(dtype=np.float64))
        return value, slope.astype(np.float64).ravel()

    found = minimize(
        objective, (start * curve).astype(np.float64).ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 8, "ftol": 1e-6},
    )  # fmt: skip
    return found.x.reshape(d + 1, C).astype(np.float32) / curve


@dataclass(slots=True)
class _Softmax:
    """The learner that is built in: how it sees items, and its ridge weight."""

    encoder: Encoder
    ridge: float = RIDGE

    def inputs(self, features: Features) -> Matrix:
        """The design."""
        numbers, texts = features.numbers.shape[1], len(features.texts)
        if (numbers, texts) != (len(self.encoder.kept), len(self.encoder.words)):
            raise InputError(
                f"{features.name} has {numbers:,} numbers and {texts:,} texts per item; the learner was taught with "
                f"{len(self.encoder.kept):,} and {len(self.encoder.words):,}.",
                "Give the same columns.",
            )
        return self.encoder.encode(features)

    def learn(self, design: Matrix, like: Floats, share: Floats, start: Any, steps: int) -> Any:
        """The weights, from those of the turn before if there are any."""
        if start is None:
            start = np.vstack([np.zeros((design.shape[1], len(share))), np.log(share)]).astype(np.float32)
        return _climb(design, like.astype(np.float32), self.ridge, start, steps)

    def says(self, weights: Any, design: Matrix, n: int, answers: int) -> Floats:
        """(n, C) chances."""
        return np.asarray(_softmax(design @ weights[:-1] + weights[-1]), dtype=np.float64)


# Chance, prior and what it is worth -----------------------------------------------------------------------------------


class Tempered(NamedTuple):
    """How far the learner is believed, and by how many nats it makes the labels more probable, ``error`` at one sd."""

    sharpness: float
    doubt: float
    gain: float
    error: float

    @property
    def says_something(self) -> bool:
        """Whether it is believed at all."""
        return self.gain > max(LEAST_GAIN, SURE * self.error)


def prior_of(chance: Floats, share: Floats, tempered: Tempered) -> Floats:
    """rho."""
    sharp = _softmax(tempered.sharpness * np.log(np.maximum(chance, LEAST)))
    return np.asarray(np.maximum((1.0 - tempered.doubt) * sharp + tempered.doubt * share, LEAST))


def _temper(chance: Floats, share: Floats, like: Floats) -> Tempered:
    """The sharpness and the doubt under which the labels are most probable."""
    alone = np.log(like @ share)
    found = Tempered(0.0, 0.0, 0.0, 0.0)
    for sharpness in np.geomspace(0.25, 4.0, 13):
        sharp = _softmax(sharpness * np.log(np.maximum(chance, LEAST)))
        inside, outside = (sharp * like).sum(axis=1), like @ share
        for doubt in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7):
            more = np.log((1.0 - doubt) * inside + doubt * outside) - alone
            if (total := float(more.sum())) > found.gain:
                found = Tempered(float(sharpness), doubt, total, float(more.std() * np.sqrt(len(more))))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Taught:
    """What the learner said of the items; ``chance`` (K, C) out of fold, ``prior`` what is believed of it.

    ``alone`` is the fit without features, ``prior_offset`` (K, C) what it was made with. ``bits`` say the features per
    labelled item that has some; ``without`` and ``with_`` are the labels' log loss per such item. Where features say
    nothing, ``prior``, ``prior_offset`` and ``learner`` are None, and the fit is ``alone``.
    """

    alone: CrowdFit
    chance: Floats
    prior: Floats | None = None
    prior_offset: Floats | None = None
    bits: float = 0.0
    without: float = float("nan")
    with_: float = float("nan")
    learner: ItemLearner | None = None

    def sentences(self) -> list[str]:
        """How much features say, in plain English."""
        if self.learner is None:
            return ["The features say nothing about the answers that the labels do not: they are left out."]
        return [
            f"The features say {self.bits:.2f} bits about an item before any label of its own: the labels' log loss is "
            f"{self.with_:.3f} per item with them and {self.without:.3f} without, each item foretold by a learner that "
            f"has not seen its labels. That learner alone agrees with {self.learner.accuracy:.1%} of the labels."
        ]


@dataclass(slots=True, eq=False)
class ItemLearner:
    """A learner that is trained, to be used on items it has not seen; it can be pickled.

    ``members`` were each taught without one fold of the items and speak together.
    """

    answers: tuple[Any, ...]
    kind: _Softmax | _Own
    members: list[Any]
    share: Floats
    tempered: Tempered
    #: Share of the people's labels that the learner foretold, out of fold.
    accuracy: float

    def predict_proba(self, features: Any) -> Floats:
        """(n, C) probability of each answer for items in any of the forms that ``learn_crowd`` takes as features."""
        read = read_features(features)
        inputs = self.kind.inputs(read)
        chance = sum(self.kind.says(one, inputs, len(read), len(self.answers)) for one in self.members)
        prior = prior_of(np.asarray(chance) / len(self.members), self.share, self.tempered)
        return np.asarray(prior / prior.sum(axis=1, keepdims=True))

    def predict(self, features: Any) -> list[Any]:
        """The most probable answer for each item."""
        return [self.answers[k] for k in np.argmax(self.predict_proba(features), axis=1)]


# Learners of one's own ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Own:
    """A learner of one's own; the arguments are those of ``_Softmax``."""

    learner: Learner

    def inputs(self, features: Features) -> Any:
        """What it is given: numbers, a list of texts, both by item, or what the items came with."""
        if features.inputs is not None:
            return list(features.inputs)
        if not features.texts:
            return features.numbers
        if len(features.texts) == 1 and not features.numbers.shape[1]:
            return list(features.texts[0])
        return [
            {"numbers": features.numbers[k], "texts": [column[k] for column in features.texts]}
            for k in range(len(features))
        ]

    def learn(self, inputs: Any, like: Floats, share: Floats, start: Any, steps: int) -> Any:
        """A copy, fitted to soft targets (n, C) by weights where it takes them, else to the likeliest answers."""
        fresh, target = deepcopy(self.learner), like * share / (like * share).sum(axis=1, keepdims=True)
        try:
            if "sample_weight" in inspect.signature(fresh.fit).parameters:
                at, answer = np.nonzero(target > 0.02)
                done = fresh.fit(_picked(inputs, at), answer, sample_weight=target[at, answer])  # type: ignore[call-arg]
            else:
                done = fresh.fit(inputs, target.argmax(axis=1))
        except Exception as error:
            raise InputError(
                f"the learner could not be fitted: {type(error).__name__}: {str(error)[:200]}.",
                "It needs fit(inputs, labels) and predict_proba(inputs), as scikit-learn's classifiers have them.",
            ) from error
        return fresh if done is None else done

    def says(self, fitted: Any, inputs: Any, n: int, answers: int) -> Floats:
        """(n, C) what a fitted learner says; an answer that it has not met is improbable."""
        try:
            if hasattr(fitted, "predict_proba"):
                found = np.asarray(fitted.predict_proba(inputs), dtype=np.float64)
                classes = np.asarray(getattr(fitted, "classes_", np.arange(answers)), dtype=np.int64)
            else:
                found, classes = np.eye(answers)[np.asarray(fitted.predict(inputs), dtype=np.int64)], np.arange(answers)
        except Exception as error:
            raise InputError(
                f"the learner was fitted and cannot predict: {type(error).__name__}: {str(error)[:200]}.",
                "It needs predict_proba(inputs) or predict(inputs), as scikit-learn's classifiers have them.",
            ) from error
        known = np.isin(classes, np.arange(answers)).all()
        if found.shape != (n, len(classes)) or not known or not np.isfinite(found).all() or (found < 0).any():
            raise InputError(
                f"predict_proba returned an array of shape {found.shape} for {n:,} items and {len(classes)} answers.",
                "Return a row of probabilities for each item, with a column for each of classes_.",
            )
        out = np.full((n, answers), LEAST)
        out[:, classes] = np.maximum(found, LEAST)
        return np.asarray(out / out.sum(axis=1, keepdims=True))


def _picked(inputs: Any, rows: Ints) -> Any:
    return inputs[rows] if hasattr(inputs, "shape") else [inputs[k] for k in rows]


# Learner and people together ------------------------------------------------------------------------------------------


def folds_of(tasks: Sequence[Any]) -> Ints:
    """The part of each item, by its name: it stays when others come."""
    return np.array([crc32(cell_text(task).encode()) % FOLDS for task in tasks], dtype=np.int64)


class _Told(NamedTuple):
    """By rows of features: the likelihood of each item's labels, its fold, whether it teaches; shares of the truths."""

    like: Floats
    fold: Ints
    teaches: Bools
    share: Floats

    def cross_fit(self, kind: _Softmax | _Own, inputs: Any, before: list[Any] | None) -> tuple[Floats, list[Any]]:
        """(n, C) chances out of fold, and what was taught without each fold; ``before`` are those of the last turn."""
        chance, members = np.tile(self.share, (len(self.fold), 1)), list[Any]()
        steps = STEPS if len(self.fold) <= MOST_SEARCHED else FEWER_STEPS
        for part in range(FOLDS):
            rows, others = np.flatnonzero(self.teaches & (self.fold != part)), np.flatnonzero(self.fold == part)
            if len(rows):
                start = None if before is None else before[len(members)]
                members.append(kind.learn(_picked(inputs, rows), self.like[rows], self.share, start, steps))
                if len(others):
                    chance[others] = kind.says(members[-1], _picked(inputs, others), len(others), len(self.share))
        return chance, members

    def gain(self, kind: _Softmax, design: Matrix) -> float:
        """By how many nats such a learner makes the labels more probable."""
        return _temper(self.cross_fit(kind, design, None)[0], self.share, self.like).gain

    def search(self, features: Features) -> _Softmax:
        """The encoding and the ridge weight under which the labels are most probable, from some of the items."""
        some = np.flatnonzero(self.teaches)[:MOST_SEARCHED]
        told = _Told(self.like[some], self.fold[some], np.ones(len(some), dtype=np.bool_), self.share)
        found, most = _Softmax(Encoder()), -np.inf
        ways = ((False, False), (True, False), (True, True)) if features.numbers.shape[1] >= WIDE else ((False, False),)
        for even, raw in ways:
            kind = _Softmax(Encoder(even, raw).fit(features))
            design = kind.inputs(features)[some]
            best = told.gain(kind, design)
            for step in (FACTOR, 1.0 / FACTOR):
                while LEAST_RIDGE < kind.ridge * step < MOST_RIDGE:
                    other = replace(kind, ridge=kind.ridge * step)
                    gain = told.gain(other, design)
                    if gain <= best:
                        break
                    best, kind = gain, other
            if best > most:
                found, most = kind, best
        return found


def learn_jointly(
    labels: CrowdLabels,
    gold: Ints,
    features: Features,
    tasks: Sequence[Any],
    learner: Learner | None = None,
    prior: CrowdPrior | None = None,
    answers: Sequence[Any] = (),
) -> tuple[CrowdFit, Taught]:
    """The fit of labels and features, and what the learner has learnt; that without features where they say nothing."""
    K, C = labels.tasks, labels.answers
    row = features.rows_of(tasks)
    many = np.bincount(labels.task, minlength=K)
    told = (many > 0) | (gold >= 0)
    here = np.flatnonzero(row >= 0)
    fit = alone = fit_crowd(labels, gold, prior)
    nothing = Taught(alone, np.full((K, C), np.nan))
    judged = here[told[here] & (many[here] > 0) & (gold[here] < 0)]
    if len(judged) < 2 * FOLDS:
        return alone, nothing
    seen, fold = features.kept(row[here]), folds_of([tasks[k] for k in here.tolist()])
    kind: _Softmax | _Own | None = None if learner is None else _Own(learner)
    inputs, members = None, None
    usual = modest_prior(labels, gold, CrowdPrior.default(C) if prior is None else prior)
    full, tempered = np.zeros((K, C)), None
    chance = np.full((K, C), np.nan)
    for _ in range(TURNS):
        like = _likelihood(fit, full, gold)
        taught = _Told(like[here], fold, told[here], fit.share)
        with threadpool_limits(1):  # people ask meanwhile, and on a busy machine threads wait for each other
            kind = taught.search(seen) if kind is None else kind
            inputs = kind.inputs(seen) if inputs is None else inputs
            chance[here], members = taught.cross_fit(kind, inputs, members)
        tempered = _temper(chance[judged], fit.share, like[judged])
        if not tempered.says_something:
            return alone, replace(nothing, chance=chance)
        full = tilt_of(labels, fit, chance, tempered)
        fit = fit_crowd(labels, gold, usual, prior_offset=full)
    assert tempered is not None and kind is not None and members is not None
    bits = tempered.gain / len(judged) / np.log(2.0)
    without = -float(np.log(like[judged] @ fit.share).mean())
    said = labels.answer == np.nan_to_num(chance)[labels.task].argmax(axis=1)
    right = float(said[np.isin(labels.task, judged)].mean())
    found = ItemLearner(tuple(answers), kind, members, fit.share, tempered, right)
    prior_ = believed(chance, fit.share, tempered)
    return fit, Taught(alone, chance, prior_, full, bits, without, without - bits * float(np.log(2.0)), found)


def believed(chance: Floats, share: Floats, tempered: Tempered) -> Floats:
    """(K, C) rho, the shares where nothing is known of an item."""
    prior = np.tile(share, (len(chance), 1))
    here = np.isfinite(chance[:, 0])
    prior[here] = prior_of(chance[here], share, tempered)
    return prior


def expected_jointly(beliefs: Floats, share: Floats, prior: Floats, bits: float, gold: Ints) -> ExpectedAccuracy:
    """How many answers are right, between what the fit says and what the learner alone says of the same answers.

    People who are wrong together teach the learner to be wrong with them, so that the fit is too sure; the learner, to
    whom an item's labels are unknown, knows nothing of what they add. The more of all there is to know the learner
    knows, the more its word counts. The interval holds both words.
    """
    asked = np.flatnonzero(gold < 0)
    if not len(asked):
        return ExpectedAccuracy(np.nan, 0.0, 1.0, 0.0)
    best, joint = beliefs[asked].argmax(axis=1), beliefs[asked].max(axis=1)
    alone = float(prior[asked, best].mean())
    weight = min(bits / -float((share * np.log2(share)).sum()), 1.0)
    mean = weight * alone + (1.0 - weight) * float(joint.mean())
    chance = float((joint * (1.0 - joint)).sum()) / len(asked) ** 2
    half = WIDTH * chance**0.5
    low, high = min(alone, mean - half), max(float(joint.mean()), mean + half)
    return ExpectedAccuracy(mean, max(low, 0.0), min(high, 1.0), 0.0)


def modest_prior(labels: CrowdLabels, gold: Ints, prior: CrowdPrior) -> CrowdPrior:
    """The first idea of a crowd that a learner sits beside: modest, and held as firmly as two labels are rare."""
    C = labels.answers
    accuracy = 1.0 / C + MODEST * (1.0 - 1.0 / C)
    pseudo = np.full((C, C), (1.0 - accuracy) / (C - 1))
    np.fill_diagonal(pseudo, accuracy)
    first = np.concatenate([[0], np.cumsum(np.bincount(labels.task, minlength=labels.tasks))])
    return CrowdPrior(pseudo * prior.pseudo.sum() / C, prior.share, prior.hold * stiffness(first, gold))


def _likelihood(fit: CrowdFit, prior_offset: Floats, gold: Ints) -> Floats:
    """(K, C) of each item's labels by the channels, the largest 1."""
    logs = np.log(np.maximum(fit.beliefs, 1e-12)) - np.log(fit.share) - prior_offset
    like = np.exp(np.maximum(logs - logs.max(axis=1, keepdims=True), -40.0))
    known = np.flatnonzero(gold >= 0)
    like[known] = np.maximum(np.eye(fit.beliefs.shape[1])[gold[known]], 1e-12)
    return np.asarray(like)


def tilt_of(labels: CrowdLabels, fit: CrowdFit, chance: Floats, tempered: Tempered) -> Floats:
    """(K, C) what is added to the log shares of each item: the learner's word, and errors that go its way."""
    prior = believed(chance, fit.share, tempered)
    prior_offset = np.log(prior) - np.log(fit.share)
    if labels.answers > 2:
        mean = fit.prior.pseudo / fit.prior.pseudo.sum(axis=1, keepdims=True)
        usual = (mean / (1.0 - np.diag(mean))[:, None])[:, labels.answer].T
        others = np.maximum(1.0 - prior[labels.task], LEAST)
        suggested = np.minimum(prior[labels.task, labels.answer][:, None] / others, 1.0)
        more = np.log(1.0 - ALIKE + ALIKE * suggested / usual)
        more[np.arange(len(more)), labels.answer] = 0.0
        more[~np.isfinite(chance[labels.task, 0])] = 0.0
        np.add.at(prior_offset, labels.task, more)
    return np.asarray(prior_offset)
