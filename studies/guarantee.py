"""Labels with a guarantee on recorded labels: how many items the expert sees, and how often the statement is wrong.

Crowds: five labels for every item with gold, drawn evenly and at random in several orders, read out by the model of
workers, which is fitted again as answers come in. ``stance``: a language model's labels and probabilities. The order in
which labels are taken away does not depend on the draw, so that all draws of one set of labels share it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.crowd.fit import fit_crowd
from nextlabel.crowd.guarantee import BestOrder, recalibrated
from nextlabel.planning.expert import LabelWalk, even_labels, expert_shares, walk_labels, walk_of_crowd
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


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Every set at every share and chance; ``replications`` are draws for each order."""
    draws = config.count(DRAWS, QUICK_DRAWS)
    orders = QUICK_ORDERS if config.quick else ORDERS
    walks: dict[str, list[LabelWalk]] = {}
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
                each, sure = max(1, draws // len(some)), str(round(1 - float(alpha), 12))
                rng = np.random.default_rng((config.seed, 100 + k))
                seen, missed, _ = zip(*(expert_shares(walk, eps, sure, each, rng) for walk in some), strict=True)
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


def _crowd_walk(crowd: CrowdRecord, rng: np.random.Generator) -> LabelWalk:
    """Five labels for every item with gold, read out, and taken away as the expert's answers teach who is good."""
    task, gold = crowd.labels.task, crowd.gold
    known = np.flatnonzero(gold >= 0)
    number = np.full(crowd.labels.tasks, -1)
    number[known] = np.arange(len(known))
    kept = gold[task] >= 0
    judged = crowd.labels._replace(
        task=number[task[kept]], worker=crowd.labels.worker[kept], answer=crowd.labels.answer[kept], tasks=len(known)
    )
    labels = even_labels(judged, LABELS_EACH, rng)
    return walk_of_crowd(labels, fit_crowd(labels).beliefs, gold[known], rng)


def _stance_walk(file: Path) -> LabelWalk:
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    words = sorted({row["label"] for row in rows} | {row["truth"] for row in rows})
    label = np.array([words.index(row["label"]) for row in rows])
    truth = np.array([words.index(row["truth"]) for row in rows])
    probability = np.array([float(row["probability"]) for row in rows])
    order = BestOrder(probability, label, [recalibrated(probability, label, len(words))])
    return walk_labels(probability, label, truth, order, np.random.default_rng(0))


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
