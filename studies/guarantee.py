"""Labels with a guarantee on recorded labels: how many items the expert sees, and how often the statement is wrong.

Crowds: five labels for every item with gold, drawn evenly and at random in several orders, read out by the model of
workers, which is fitted again as answers come in. ``stance``: a language model's labels and probabilities. The order in
which labels are taken away does not depend on the draw, so that all draws of one set of labels share it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.guarantee import (
    BATCH,
    LEAST_BATCH,
    SWEEPS,
    BestOrder,
    allowed_errors,
    choose_audits,
    first_too_many,
    recalibrated,
)
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing, finish
from nextlabel.simulation.crowd_replay import CrowdRecord
from nextlabel.solve.progress import Progress
from studies.study import CROWDS, ExperimentOutcome, StudyOptions, find_crowd, pick, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES, CHANCES = ("0.02", "0.05", "0.10"), ("0.05", "0.10")
LABELS_EACH = 5
ORDERS, QUICK_ORDERS = 20, 3
DRAWS, QUICK_DRAWS = 1000, 100


class Walk(NamedTuple):
    """Frozen labels of one set: their probabilities, and errors in the order in which labels are taken away."""

    probability: Floats
    errors: Bools


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Every set at every share and chance; ``replications`` are draws for each order."""
    draws = config.count(DRAWS, QUICK_DRAWS)
    orders = QUICK_ORDERS if config.quick else ORDERS
    walks: dict[str, list[Walk]] = {}
    for name in CROWDS:
        crowd = find_crowd(config.data, name)
        rng = np.random.default_rng((config.seed, len(walks)))
        walks[name] = [_crowd_walk(crowd, rng) for _ in range(orders)]
        progress(0.2 * len(walks))
    stance = Path(config.data or ".") / "stance" / "predictions.csv"
    if stance.is_file():
        walks["stance"] = [_stance_walk(stance)]
    rows: list[Row] = []
    for k, (name, some) in enumerate(walks.items()):
        for eps in SHARES:
            for alpha in CHANCES:
                each = max(1, draws // len(some))
                rng = np.random.default_rng((config.seed, 100 + k))
                seen, missed = zip(*(_draw(walk, eps, alpha, each, rng) for walk in some), strict=True)
                share, miss = np.concatenate(seen), np.concatenate(missed)
                rows.append(
                    {
                        "set": name,
                        "at_most_wrong": float(eps),
                        "alpha": float(alpha),
                        "items": len(some[0].errors),
                        "wrong": float(np.mean([walk.errors.mean() for walk in some])),
                        "expert_sees": float(share.mean()),
                        "half_width": float(1.96 * np.std([s.mean() for s in seen]) / np.sqrt(len(seen))),
                        "missed": float(miss.mean()),
                        "draws": len(miss),
                    }
                )
    return ExperimentOutcome(rows, {"draws": draws, "orders": orders, "labels_each": LABELS_EACH})


def _crowd_walk(crowd: CrowdRecord, rng: np.random.Generator) -> Walk:
    """Five labels for every item, read out, and taken away as the expert's answers teach who is good."""
    task, worker, answer, tasks, workers, answers = crowd.labels
    gold = crowd.gold
    order = rng.permutation(len(task))
    rank = np.zeros(len(task), dtype=np.int64)
    seen = np.zeros(tasks, dtype=np.int64)
    for k in order:
        rank[k] = seen[task[k]]
        seen[task[k]] += 1
    kept = (rank < LABELS_EACH) & (gold[task] >= 0)
    known = np.flatnonzero(gold >= 0)
    number = np.full(tasks, -1)
    number[known] = np.arange(len(known))
    labels = CrowdLabels(number[task[kept]], worker[kept], answer[kept], len(known), workers, answers)
    beliefs = fit_crowd(labels).beliefs
    label, truth = beliefs.argmax(axis=1), gold[known]

    def refitted(told: Ints) -> Floats:
        again = fit_crowd(labels, told, most_iterations=SWEEPS).beliefs
        out: Floats = again[np.arange(len(known)), label]
        return out

    return _walk(beliefs.max(axis=1), label, truth, BestOrder(beliefs.max(axis=1), label, [refitted]), rng)


def _stance_walk(file: Path) -> Walk:
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    words = sorted({row["label"] for row in rows} | {row["truth"] for row in rows})
    label = np.array([words.index(row["label"]) for row in rows])
    truth = np.array([words.index(row["truth"]) for row in rows])
    probability = np.array([float(row["probability"]) for row in rows])
    order = BestOrder(probability, label, [recalibrated(probability, label, len(words))])
    return _walk(probability, label, truth, order, np.random.default_rng(0))


def _walk(probability: Floats, label: Ints, truth: Ints, order: BestOrder, rng: np.random.Generator) -> Walk:
    """Errors in the order in which labels are taken away, if nothing stops the walk."""
    n = len(label)
    kept, told, tie = np.ones(n, dtype=np.bool_), np.full(n, -1), rng.permutation(n)
    sequence: list[int] = []
    while kept.any():
        rest, certainty = np.flatnonzero(kept), order.certainty(told)
        batch = rest[np.lexsort((tie[rest], certainty[rest]))][: max(LEAST_BATCH, round(BATCH * n))]
        sequence.extend(batch.tolist())
        kept[batch] = False
        told[batch] = truth[batch]
    return Walk(probability, (label != truth)[sequence])


def _draw(walk: Walk, eps: str, alpha: str, draws: int, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """The share that the expert sees and whether too many errors stay, for each draw."""
    n = len(walk.errors)
    r = first_too_many(n, eps)
    K = min(choose_audits(walk.probability, r, alpha), n)
    c = allowed_errors(n, K, r, alpha)
    assert c is not None
    share, miss = np.zeros(draws), np.zeros(draws, dtype=np.bool_)
    for d in range(draws):
        audited = np.zeros(n, dtype=np.bool_)
        audited[rng.choice(n, K, replace=False)] = True
        met = np.cumsum((audited & walk.errors)[::-1])[::-1]  # audited errors from here to the most certain label
        cut = int(np.argmax(met <= c)) if (met <= c).any() else n
        unchecked = np.flatnonzero(~audited)
        if len(unchecked) >= r - 1 > 0:
            cut = min(cut, int(unchecked[len(unchecked) - (r - 1)]))
        stays = ~audited
        stays[:cut] = False
        share[d], miss[d] = 1.0 - stays.mean(), (walk.errors & stays).sum() >= r
    return share, miss


def draw(rows: list[Row]) -> Figure:
    """What the expert sees against the share of wrong labels that is allowed; and misses against their limit."""
    with drawing() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
        for name in values_of(rows, "set"):
            some = pick(rows, set=name, alpha=0.05)
            x = [100 * row["at_most_wrong"] for row in some]
            left.plot(x, [100 * row["expert_sees"] for row in some], marker="o", label=name)
            cells = pick(rows, set=name)
            right.plot([100 * c["alpha"] for c in cells], [100 * c["missed"] for c in cells], "o", label=name)
        left.set(xlabel="wrong labels allowed, %", ylabel="items that the expert sees, %", ylim=(0, 100))
        limit = [0, 12]
        right.plot(limit, limit, color="0.6", linewidth=1, label="the limit")
        right.set(xlabel="chance of a miss that is allowed, %", ylabel="draws with too many wrong labels, %")
        left.legend(frameon=False)
        right.legend(frameon=False)
        return finish(figure)
