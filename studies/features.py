"""Items teach: recorded labels with features, bought evenly and by policies, read out with and without the features.

LabelMe (vectors) and RTE (texts). Evenly: every item gets the same number of labels (half a label: a random half of the
items one), in random order. ``people`` are the labels alone, ``learner`` what a learner says that has not seen the
item's labels, ``joint`` both, ``crowdlab`` the weighted mean of Goh and others. Bought: a label per item on average, by
``crowd``, the least certain first or ActiveLab, task first, all with features.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.crowdlab import crowdlab
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.learner import expected_jointly, learn_jointly
from nextlabel.files.features import Features, read_features
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing
from nextlabel.simulation.crowd_replay import replay_crowd
from nextlabel.simulation.replay import CrowdRecord
from nextlabel.solve.progress import Progress
from studies.study import ExperimentOutcome, StudyOptions, find_set, pick, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Labels per item, 99 for all; the file of the features.
SETS = {"labelme": ((0.5, 1.0, 99.0), "features.csv"), "rte": ((2.0, 3.0, 5.0), "items.csv")}
BOUGHT = {"labelme": ("crowd", "crowd-uncertainty", "activelab")}
ORDERS, QUICK_ORDERS, BOUGHT_ORDERS = 20, 2, 5


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Every set at every number of labels; ``replications`` are orders."""
    orders = config.count(ORDERS, QUICK_ORDERS)
    rows: list[Row] = []
    for place, (name, (numbers, file)) in enumerate(SETS.items()):
        crowd = find_set(config.data, name)
        features = read_features(Path(config.data or ".") / name / file)
        for k, each in enumerate(numbers):
            found: dict[str, list[tuple[float, float, float]]] = {}
            for order in range(orders if each < crowd.counts.max() else 1):
                labels = evenly(crowd, each, np.random.default_rng((config.seed, order)))
                for how, three in _read_out(labels, crowd, features).items():
                    found.setdefault(how, []).append(three)
            rows += [_row(name, "evenly", how, each, crowd, some) for how, some in found.items()]
            progress((place + (k + 1) / len(numbers)) / (len(SETS) + 1))
        for policy in BOUGHT.get(name, ()):
            played = replay_crowd(
                crowd, [policy], [crowd.labels.tasks], replications=min(orders, BOUGHT_ORDERS), seed=config.seed,
                features=features,
            )[0]  # fmt: skip
            pairs = zip(played.accuracies(), played.expected, strict=True)
            rows.append(_row(name, policy, "joint", 1.0, crowd, [(float(a), float("nan"), float(e)) for a, e in pairs]))
    return ExperimentOutcome(rows, {"orders": orders, "bought_orders": min(orders, BOUGHT_ORDERS)})


def evenly(crowd: CrowdRecord, each: float, rng: np.random.Generator) -> CrowdLabels:
    """``each`` labels of every item in random order; a fraction goes to a random part of the items."""
    labels, K = crowd.labels, crowd.labels.tasks
    order = rng.permutation(len(labels.task))
    order = order[np.argsort(labels.task[order], kind="stable")]
    rank = np.arange(len(order)) - np.searchsorted(labels.task[order], labels.task[order])
    limit = np.full(K, int(each))
    limit[rng.permutation(K)[: round((each - int(each)) * K)]] += 1
    rows = order[rank < limit[labels.task[order]]]
    return labels._replace(task=labels.task[rows], worker=labels.worker[rows], answer=labels.answer[rows])


def _read_out(labels: CrowdLabels, crowd: CrowdRecord, features: Features) -> dict[str, tuple[float, float, float]]:
    """(right, log loss, expected) by way to read out."""
    none = np.full(labels.tasks, -1)
    fit, taught = learn_jointly(labels, none, features, crowd.tasks)
    says = taught.prior is not None
    prior = np.tile(fit.share, (labels.tasks, 1)) if taught.prior is None else taught.prior
    expected = expected_jointly(fit.beliefs, fit.share, prior, taught.bits, none).mean if says else np.nan
    chance = np.where(np.isfinite(taught.chance), taught.chance, fit.share)
    return {
        "people": (*_judged(taught.alone.beliefs, crowd.gold), float(taught.alone.beliefs.max(axis=1).mean())),
        "learner": (*_judged(prior, crowd.gold), float(prior.max(axis=1).mean())),
        "joint": (*_judged(fit.beliefs, crowd.gold), float(expected)),
        "crowdlab": (*_judged(crowdlab(labels, chance), crowd.gold), float("nan")),
    }


def _judged(beliefs: Floats, gold: Ints) -> tuple[float, float]:
    known = np.flatnonzero(gold >= 0)
    chance = np.maximum(beliefs[known, gold[known]], 1e-9)
    return float((beliefs[known].argmax(axis=1) == gold[known]).mean()), float(-np.log(chance).mean())


def _row(
    name: str, bought: str, how: str, each: float, crowd: CrowdRecord, some: list[tuple[float, float, float]]
) -> Row:
    right = np.array([one[0] for one in some])
    return {
        "set": name,
        "bought": bought,
        "read_out": how,
        "labels": min(each, len(crowd) / crowd.labels.tasks),
        "right": float(right.mean()),
        "half_width": float(1.96 * right.std(ddof=1) / np.sqrt(len(right))) if len(right) > 1 else 0.0,
        "log_loss": float(np.mean([one[1] for one in some])),
        "expected": float(np.mean([one[2] for one in some])),
        "orders": len(right),
    }


def draw(rows: list[Row]) -> Figure:
    """Share of the items right against labels per item, a panel for each set."""
    names = values_of(rows, "set")
    with drawing(1, len(names), figsize=(10.0, 4.0), squeeze=False) as (figure, panels):
        for panel, name in zip(panels.flat, names, strict=True):
            for how in values_of(rows, "read_out"):
                some = pick(rows, set=name, bought="evenly", read_out=how)
                panel.plot([r["labels"] for r in some], [100 * r["right"] for r in some], marker="o", label=how)
            for row in (r for r in rows if r["set"] == name and r["bought"] != "evenly"):
                panel.plot([row["labels"]], [100 * row["right"]], "*", markersize=12, label=f"joint, {row['bought']}")
            panel.set(xlabel="labels per item", ylabel="items right, %", title=name)
            panel.legend(frameon=False)
    return figure
