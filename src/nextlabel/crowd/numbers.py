"""Numbers and ratings learnt from workers who differ: ``learn_numbers``, what the labels of each item say together.

========= ============ ======= ===============================================================================
symbol    code         shape   meaning
========= ============ ======= ===============================================================================
y         number       (L,)    the labels
z         z            (L,)    y bent to z = sign(y - o) |y - o|^p about an origin o, and standardised
x         x, vx        (K,)    what an item is, in units of z, and its posterior variance
b, a      line         (W, 2)  a worker's bias and gain, with posterior covariance ``cov`` (W, 2, 2)
tau       tau          (W,)    a worker's precision, in 1 / z^2
========= ============ ======= ===============================================================================

    z = b_j + a_j x_i + e,   e ~ N(0, 1 / tau_j),   x ~ N(m, s),   b ~ N(0, s_b),   a ~ N(1, s_a),   tau ~ Gamma

by variational Bayes; m, s, s_b, s_a and the mean precision by empirical Bayes, s_a and tau held by ``GAIN_HOLD``
workers and ``PRECISION_HOLD`` labels. Who answers at random has a gain near 0, and adds nothing to an item; who answers
the wrong way round has a negative one, and is worth as much as others.

**Why numbers are bent.** On the recorded sets the noise of a number grows with it: nearly all say 0 of a headline
without anger, and 10 to 90 of one with. A fit of bias and precision to y then trusts whoever says 0 of everything, for
small residuals, which lifts its correlation with gold on one set and lowers it on another. p and o are those under
which items explain the largest share of the variance of labels, p = 1 unless another is better by ``CLEARLY``.

**Back to y**: the straight line that predicts a label best, by least squares, from x as the item's *other* labels have
it, workers weighted by the share of their variance that x explains. It shrinks an item as far as it is uncertain, which
minimises the squared error. Bending back with 1 / p instead gives the large labels a say that they do not deserve.

Guarantee: none; ``benchmarks/number_crowds.py`` measures it. Cost: O(labels) a sweep, at most ``SWEEPS``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.agreement import numbers_of
from nextlabel.crowd.answers import Z95, Number, Rating, Scaled, check_numbers
from nextlabel.crowd.noise import weighted_median
from nextlabel.crowd.skill import Estimate
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import LabelTable, as_label_table
from nextlabel.files.tables import Frame
from nextlabel.wording import counted

#: Powers that are tried, and by how much the best one's reliability must exceed that of 1.
POWERS, CLEARLY = (0.25, 0.35, 0.5, 0.7, 1.0), 0.02
#: Labels that the mean precision is worth in each worker's, and workers and variance behind the spread of gains.
PRECISION_HOLD, GAIN_HOLD, GAIN_VARIANCE = 12.0, 30.0, 0.5
#: Items that the first idea of the items' variance is worth: without it, a few single labels say that all are alike.
ITEM_HOLD = 5.0
#: Labels for which the line back to y follows the labels as they are, until twice as many have others to compare with.
LINE_HOLD = 12.0
#: Share of the usual reliability below which answers may be noise, and the least that must be usual before any are.
OF_USUAL, LEAST_USUAL = 0.25, 0.1
#: Sweeps at most, and the change of x, in its standard deviations, at which they end.
SWEEPS, TOLERANCE = 300, 1e-5
#: Labels before anything is said of a worker.
NOBODY = 10


class NumberLabels(NamedTuple):
    """``task``, ``worker`` and ``number`` (L,) of each label, numbered from 0; how many tasks and workers there are."""

    task: Ints
    worker: Ints
    number: Floats
    tasks: int
    workers: int


@dataclass(frozen=True, slots=True, eq=False)
class NumberFit:
    """Items and workers as learnt; ``estimate`` and ``sd`` (K,) are in the units of the labels.

    ``says`` (W + 1, 3) is what a label z of each worker adds to the precision of its item and, times z and less a
    constant, to the precision times x; the last row is somebody who has not come yet. ``first`` is (m, s) of an item
    without labels, ``scale`` (centre, unit) of z and (start, slope) of the estimate in x, ``line`` (W, 2) b and a of
    each worker. ``at_random``: a gain of 0 is in the worker's interval, and items explain less than ``OF_USUAL`` of the
    share of their variance that is usual.
    """

    estimate: Floats
    sd: Floats
    says: Floats
    first: tuple[float, float]
    scale: tuple[float, float, float, float]
    line: Floats
    bias: Floats
    gain: Floats
    gain_sd: Floats
    spread: Floats
    reliability: Floats
    at_random: Bools
    power: float
    origin: float

    def precisions(self, worker: Ints) -> Floats:
        """What a label of each of these workers adds to the precision of its item, in units of x; -1 is anybody."""
        return np.asarray(self.says[np.clip(worker, -1, len(self.says) - 1), 0])

    def read(self, data: NumberLabels) -> tuple[Floats, Floats]:
        """Estimate and standard deviation of each item by these labels, of workers as they were learnt: O(labels)."""
        start, slope = self.scale[2:]
        z = standardised(self, data.number)
        own, pull, off = self.says[np.minimum(data.worker, len(self.says) - 1)].T
        total = np.bincount(data.task, own, data.tasks) + 1.0 / self.first[1]
        drawn = np.bincount(data.task, pull * z - off, data.tasks) + self.first[0] / self.first[1]
        return start + slope * drawn / total, np.abs(slope) / np.sqrt(total)


def standardised(fit: NumberFit, number: Floats) -> Floats:
    """Numbers as the model has them: z."""
    centre, unit = fit.scale[:2]
    return (_bend(number, fit.power, fit.origin) - centre) / unit


def _bend(y: Floats, power: float, origin: float) -> Floats:
    return np.asarray(np.sign(y - origin) * np.abs(y - origin) ** power)


def fit_numbers(data: NumberLabels, answer: Scaled) -> NumberFit:
    """Learn from all labels."""
    t, w, y, K, W = data
    n, many = np.bincount(t, minlength=K), np.bincount(w, minlength=W)
    power, origin = _bent(data, answer)
    z = _bend(y, power, origin)
    usual = 1.0 if answer.low is None or answer.high is None else (answer.high - answer.low) / 12.0**0.5
    centre, unit, spread_of_labels = float(z.mean()), float(z.std()) or usual, float(y.std()) or usual
    z = (z - centre) / unit
    m, s, s_b, s_a, noise = 0.0, 0.5, 0.1, GAIN_VARIANCE, 0.5
    line, cov, tau = np.tile([0.0, 1.0], (W, 1)), np.zeros((W, 2, 2)), np.full(W, 2.0)
    told, seen, x = many > 0, n > 0, np.zeros(K)
    hold = PRECISION_HOLD / 2.0
    for _ in range(SWEEPS):
        own = tau[w] * (line[w, 1] ** 2 + cov[w, 1, 1])  # of a label, what it adds to the precision of its item
        pull = tau[w] * (line[w, 1] * (z - line[w, 0]) - cov[w, 0, 1])
        total, drawn = np.bincount(t, own, K) + 1.0 / s, np.bincount(t, pull, K) + m / s
        before, x, vx = x, drawn / total, 1.0 / total
        m = float(x[seen].mean())
        s = (ITEM_HOLD * 0.5 + float(((x[seen] - m) ** 2 + vx[seen]).sum())) / (ITEM_HOLD + float(seen.sum()))
        at, square = x[t], x[t] ** 2 + vx[t]
        sums = [np.bincount(w, tau[w] * one, W) for one in (np.ones(len(y)), at, square, z, z * at)]
        inverse = np.empty((W, 2, 2))
        inverse[:, 0, 0], inverse[:, 1, 1] = sums[0] + 1.0 / s_b, sums[2] + 1.0 / s_a
        inverse[:, 0, 1] = inverse[:, 1, 0] = sums[1]
        cov = np.asarray(np.linalg.inv(inverse))
        line = np.einsum("wij,wj->wi", cov, np.stack([sums[3], sums[4] + 1.0 / s_a], axis=1))
        s_b = max(float((line[told, 0] ** 2 + cov[told, 0, 0]).mean()), 1e-4)
        apart = float(((line[told, 1] - 1.0) ** 2 + cov[told, 1, 1]).sum())
        s_a = (GAIN_HOLD * GAIN_VARIANCE + apart) / (GAIN_HOLD + told.sum())
        b, a = line[w, 0], line[w, 1]
        error = (z - b - a * at) ** 2 + cov[w, 0, 0] + 2.0 * cov[w, 0, 1] * at + cov[w, 1, 1] * square + a * a * vx[t]
        tau = (hold + many / 2.0) / (hold * noise + np.bincount(w, error, W) / 2.0)
        noise = 1.0 / float(tau[told].mean())
        if np.abs(x - before).max() < TOLERANCE * np.sqrt(s):
            break
    reliability = line[:, 1] ** 2 * s / (line[:, 1] ** 2 * s + 1.0 / tau)
    others = n[t] > 1
    known = (drawn[t] - pull) / (total[t] - own)  # x by the item's other labels
    usual = unit if power == 1.0 else _straight(z, y, np.ones(len(y)), 0.0)[1]
    weight = (reliability * (line[:, 1] > 0))[w] * others
    hold = max(LINE_HOLD - float(others.sum()) / 2.0, 0.0) * s
    start, slope = _straight(known, y, weight + 1e-9, hold, max(usual, 0.0))
    if slope <= 0:  # nothing to compare: as they are
        start, slope = float(y.mean()), spread_of_labels
    estimate, sd = start + slope * x, np.abs(slope) * np.sqrt(vx)
    off = y - estimate[t]
    bias = np.bincount(w, off, W) / (many + 1.0 / max(s_b, 1e-9))
    spread = np.sqrt(np.bincount(w, (off - bias[w]) ** 2, W) / np.maximum(many, 1))
    usual, sd_a = weighted_median(reliability, many.astype(np.float64)), np.sqrt(cov[:, 1, 1])
    at_random = (np.abs(line[:, 1]) <= Z95 * sd_a) & (reliability < OF_USUAL * usual) & (usual >= LEAST_USUAL)
    b, a = line.T
    says = np.stack([tau * (a * a + cov[:, 1, 1]), tau * a, tau * (a * b + cov[:, 0, 1])], axis=1)
    says = np.vstack([says, [(1.0 + s_a) / noise, 1.0 / noise, 0.0]])
    return NumberFit(
        estimate, sd, says, (m, s), (centre, unit, start, slope), line, bias,
        line[:, 1], sd_a, spread, reliability, at_random, power, origin,
    )  # fmt: skip


def _bent(data: NumberLabels, answer: Scaled) -> tuple[float, float]:
    """The power and the origin under which items explain the largest share of the variance of labels.

    Nothing is bent before every other item has a second label. Whoever's labels rank items as nobody else's do says
    nothing of the scale, and is left out: a few guesses can make any bend look better than none.
    """
    agreed, many = _rank_agreement(data)
    usual = weighted_median(agreed, many)
    said = ((many < NOBODY) | (agreed >= OF_USUAL * usual) | (usual < LEAST_USUAL))[data.worker]
    t, y, K = data.task[said], data.number[said], data.tasks
    first, last = (
        float(y.min() if answer.low is None else answer.low),
        float(y.max() if answer.high is None else answer.high),
    )
    origins = [0.0] if first < 0 < last else sorted({first, last}, key=abs)
    n = np.bincount(t, minlength=K).astype(np.float64)
    if len(y) < 1.5 * (n > 0).sum() or (n > 0).sum() < 2 or y.min() == y.max():
        return 1.0, 0.0
    found = {(p, o): _reliability(t, _bend(y, p, o), n) for o in origins for p in POWERS}
    best = max(found, key=lambda one: found[one])
    return best if found[best] > found[1.0, origins[0]] + CLEARLY else (1.0, 0.0)


def _rank_agreement(data: NumberLabels) -> tuple[Floats, Floats]:
    """(W,) each worker's correlation, label by label, with the others' mean on the item, all by rank; and how many."""
    t, w, y, K, W = data
    _, place, alike = np.unique(y, return_inverse=True, return_counts=True)
    rank, n = (np.cumsum(alike) - 0.5 * alike)[place] / len(y) - 0.5, np.bincount(t, minlength=K)
    others = n[t] > 1
    mean = ((np.bincount(t, rank, K)[t] - rank) / np.maximum(n[t] - 1, 1))[others]
    w, rank = w[others], rank[others]
    many = np.bincount(w, minlength=W).astype(np.float64)
    pairs = (rank, mean, rank * rank, mean * mean, rank * mean)
    a, b, aa, bb, ab = (np.bincount(w, one, W) / np.maximum(many, 1.0) for one in pairs)
    return (ab - a * b) / np.sqrt(np.maximum((aa - a * a) * (bb - b * b), 1e-12)), many


def _reliability(t: Ints, z: Floats, n: Floats) -> float:
    """Share of the variance of labels that lies between items: the intraclass correlation of an unequal design."""
    K, L = int((n > 0).sum()), len(t)
    mean = np.bincount(t, z, len(n)) / np.maximum(n, 1)
    within = float(((z - mean[t]) ** 2).sum()) / (L - K)
    between = float((n * (mean - z.mean()) ** 2).sum()) / (K - 1)
    each = (L - float((n * n).sum()) / L) / (K - 1)
    total = between + (each - 1.0) * within
    return (between - within) / total if total > 0 else 0.0


def _straight(x: Floats, y: Floats, weight: Floats, hold: float, usual: float = 0.0) -> tuple[float, float]:
    """Start and slope of the line of weighted least squares, with a slope that is ``usual`` held by so much spread."""
    total = float(weight.sum())
    mx, my = float(weight @ x) / total, float(weight @ y) / total
    spread = float(weight @ (x - mx) ** 2) + hold
    slope = (float(weight @ ((x - mx) * (y - my))) + hold * usual) / spread if spread > 0 else 0.0
    return my - slope * mx, slope


def learn_numbers(labels: LabelTable | str | os.PathLike[str] | Frame, answer: Scaled | None = None) -> LearntNumbers:
    """Learn what every item is, and how each worker answers, from labels that are numbers or ratings.

    ``labels`` as ``learn_crowd`` takes them; ``answer`` is ``nl.results.Number(low, high)`` with the ends of the range
    that workers were given, if they were given any, or ``nl.results.Rating(1, 5, "absolute")``. No gold is needed.

    >>> rows = [(f"t{x}", f"w{j}", 10 * x + j) for x in range(8) for j in range(3)]
    >>> found = learn_numbers(dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True)))
    >>> [round(value) for value in found.predict()[:3]]
    [1, 11, 21]
    """
    table, kind = as_label_table(labels), answer or Number()
    data = number_labels(table, kind)
    return LearntNumbers(kind, table.tasks, table.workers, table.per_task, data, fit_numbers(data, kind))


def number_labels(table: LabelTable, answer: Scaled) -> NumberLabels:
    """The labels of a table that names the workers, as numbers."""
    worker, workers = table.givers()
    number = numbers_of(table.labels)[table.label]
    check_numbers(answer, number)
    if number.min() == number.max():
        raise InputError(f"all of the {counted(len(number), 'label')} are {number[0]:g}.", "Give labels that differ.")
    return NumberLabels(table.task, worker, number, len(table.tasks), workers)


@dataclass(frozen=True, slots=True)
class NumberWorker:
    """One worker: labels, bias and spread in the units of the labels, gain (1: uses the scale as others do), flags.

    ``reliability`` is the share of the variance of their labels that comes from the items.
    """

    name: Any
    labels: int
    bias: float
    spread: float
    gain: Estimate
    reliability: float
    flags: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        numbers = asdict(self)
        return {"worker": numbers.pop("name"), **numbers}


@dataclass(frozen=True, eq=False)
class LearntNumbers:
    """Items and workers, learnt together; arrays are in the order of ``task_names``."""

    answer: Scaled
    task_names: tuple[Any, ...]
    worker_names: tuple[Any, ...]
    labels_per_task: Ints
    data: NumberLabels
    fit: NumberFit

    @cached_property
    def values(self) -> Floats:
        """(K,) what is read out of each item: the number, or the step, that minimises the expected loss."""
        return self.answer.read_out(self.fit.estimate, self.fit.sd)

    @cached_property
    def means(self) -> Floats:
        """(K,) the plain mean of each item's labels."""
        return np.asarray(np.bincount(self.data.task, self.data.number, self.data.tasks) / self.labels_per_task)

    @cached_property
    def workers(self) -> tuple[NumberWorker, ...]:
        """The named workers, those with the most labels first."""
        fit, w, y = self.fit, self.data.worker, self.data.number
        many, first = np.bincount(w, minlength=self.data.workers), np.zeros(self.data.workers)
        first[w[::-1]] = y[::-1]
        same = np.bincount(w, y != first[w], self.data.workers) == 0
        found = []
        for j in map(int, np.argsort(-many[: len(self.worker_names)], kind="stable")):
            gain = Estimate(
                float(fit.gain[j]), float(fit.gain[j] - Z95 * fit.gain_sd[j]), float(fit.gain[j] + Z95 * fit.gain_sd[j])
            )
            flags = ["always the same answer"] if same[j] else []
            flags += ["against the grain"] if gain.high < 0 else ["noise"] if fit.at_random[j] else []
            numbers = float(fit.bias[j]), float(fit.spread[j]), gain, float(fit.reliability[j])
            shown = tuple(flags) if many[j] >= NOBODY else ()
            found.append(NumberWorker(self.worker_names[j], int(many[j]), *numbers, shown))
        return tuple(found)

    def predict(self) -> list[float]:
        """The number or the step of each item."""
        return [float(one) for one in self.values]

    def tasks(self) -> Iterator[dict[str, Any]]:
        """One row for each item, as files have it: the label that is read out, the belief, the labels' plain mean."""
        rating = self.answer if isinstance(self.answer, Rating) else None
        beliefs = None if rating is None else rating.beliefs(self.fit.estimate, self.fit.sd)
        for k, name in enumerate(self.task_names):
            steps = {}
            if rating is not None and beliefs is not None:
                steps = {f"p_{step}": round(float(p), 6) for step, p in zip(rating.steps, beliefs[k], strict=True)}
            said = int(self.values[k]) if rating is not None else round(float(self.values[k]), 4)
            numbers = {"estimate": self.fit.estimate[k], "sd": self.fit.sd[k], "mean": self.means[k]}
            yield {
                "task": name, "label": said, **{key: round(float(one), 4) for key, one in numbers.items()}, **steps,
                "labels": int(self.labels_per_task[k]),
            }  # fmt: skip

    def against(self, gold: Mapping[str, str]) -> dict[str, float]:
        """How near the read-out and the labels' plain mean come to known numbers: correlation and root mean error."""
        at = [k for k, name in enumerate(self.task_names) if cell_text(name) in gold]
        if len(at) < 2:
            raise InputError("the gold has fewer than two items that have labels.", "Give the gold of these labels.")
        known = numbers_of(tuple(gold[cell_text(self.task_names[k])] for k in at))
        said = {"": self.fit.estimate[at], "mean_": self.means[at]}
        found: dict[str, float] = {"known": float(len(at))}
        for name, one in said.items():
            alike = np.corrcoef(one, known)[0, 1] if one.std() > 0 and known.std() > 0 else np.nan
            found |= {f"{name}correlation": float(alike), f"{name}rmse": float(np.sqrt(np.mean((one - known) ** 2)))}
        return found

    def sentences(self) -> list[str]:
        """What was learnt, in plain English."""
        fit, loss = self.fit, self.answer.loss if isinstance(self.answer, Rating) else "squared"
        bent = "Labels enter as they are: their noise does not grow with the number."
        if fit.power != 1.0:
            bent = (
                f"The noise of a label grows with its distance from {fit.origin:g}: labels enter with their distance "
                f"to the power {fit.power:g}, and what is read out is on the scale of the labels."
            )
        return [
            "bias: how far above the others' numbers a worker is on average; spread: standard deviation around that; "
            "gain: 1 if they use the scale as others do, 0 if their numbers do not follow the items, negative if they "
            "run against them; reliability: share of the variance of their labels that comes from the items; noise: "
            "their gain may be 0, and their reliability is below a quarter of the usual.",
            bent,
            f"What is read out of an item minimises the expected {loss} error; the standard deviation of an item is "
            f"{fit.sd.mean():.3g} on average, by the model's own word.",
        ]

    def __repr__(self) -> str:
        return f"LearntNumbers({self.answer}, workers={len(self.worker_names)}, tasks={len(self.task_names)})"
