"""Labels with a guarantee on recorded labels: what the expert sees, how often it is wrong, how to buy, what it costs.

======== ==============================================================================================================
part     what is measured
======== ==============================================================================================================
misses   five labels for every item with gold, drawn evenly and at random: items that the expert sees, and draws in
         which too many labels stay wrong. ``stance``: a language model's labels and probabilities
buying   the same after 3 and 5 labels on average that a campaign has bought from workers as they come: evenly, for
         accuracy (``crowd``), and for accuracy with an expert waiting (``crowd.expert``)
cost     a label costs 1, an expert's answer 10: a pilot of some items, the plan that the program makes of it without
         gold, the campaign; against experts alone and the best fixed plan of a grid of labels for each item and
         audits, chosen with gold
======== ==============================================================================================================

Labels are read out by the model of workers, which is fitted again as answers come in. The order in which labels are
taken away does not depend on the draw, so that all draws of one set of labels share it.
"""

from __future__ import annotations

import csv
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed

from nextlabel.arrays import Ints
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.guarantee import BestOrder, allowed_errors, first_too_many, recalibrated
from nextlabel.files.labels import LabelTable
from nextlabel.planning.expert import (
    LABELS_EACH,
    LabelWalk,
    even_labels,
    expert_shares,
    plan_guarantee,
    walk_labels,
    walk_of_crowd,
)
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing
from nextlabel.simulation.crowd_replay import CrowdReplaySetup, labels_given
from nextlabel.simulation.engine import backend
from nextlabel.simulation.replay import CrowdRecord
from nextlabel.solve.progress import Progress
from studies.study import CROWDS, ExperimentOutcome, StudyOptions, find_set, pick, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES, CHANCES = ("0.02", "0.05", "0.10"), ("0.05", "0.10")
EACH = 5
ORDERS, QUICK_ORDERS = 20, 3
DRAWS, QUICK_DRAWS = 1000, 100
#: Labels on average that a campaign buys, and orders of arrival.
BOUGHT, ARRIVALS, QUICK_ARRIVALS = (3, 5), 5, 1
#: Rules, and what a task is worth at least because an expert waits: 1 - 2 eps.
WAYS = {"even": ("uniform", 0.0), "crowd": ("crowd", 0.0), "expert": ("crowd", 0.9)}
#: Prices of a label and of an answer; items and labels of each in the pilot; audits as shares of the items.
LABEL, ANSWER = 1.0, 10.0
PILOTS, COST_DRAWS, COST_ORDERS, PLANS = ((100, 3),), 50, 6, 8
AUDITS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8)
COSTED = ("rte", "mre")


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Every set at every share and chance; ``replications`` are draws for each order."""
    draws = config.count(DRAWS, QUICK_DRAWS)
    orders, arrivals = (QUICK_ORDERS, QUICK_ARRIVALS) if config.quick else (ORDERS, ARRIVALS)
    crowds = {name: _judged(find_set(config.data, name)) for name in CROWDS}
    cells = [delayed(_misses)(name, crowd, orders, draws, config.seed) for name, crowd in crowds.items()]
    stance = Path(config.data or ".") / "stance" / "predictions.csv"
    if stance.is_file():
        cells.append(delayed(_stance)(stance, draws, config.seed))
    cells += [
        delayed(_bought)(name, crowds[name], way, each, arrivals, draws, config.seed)
        for name in crowds
        for way in WAYS
        for each in BOUGHT
    ]
    cells += [
        delayed(_costs)(name, crowds[name], eps, min(orders, COST_ORDERS), config.seed + 300)
        for name in COSTED
        for eps in ("0.05", "0.10")
    ]
    rows: list[Row] = []
    local = config.engine.kind == "local"
    with nullcontext({"n_jobs": config.engine.jobs}) if local else backend(config.engine) as where:
        for k, some in enumerate(Parallel(return_as="generator", **where)(cells), start=1):
            rows += some
            progress(k / len(cells))
    return ExperimentOutcome(rows, {"draws": draws, "orders": orders, "arrivals": arrivals, "labels_each": EACH})


def _misses(name: str, crowd: CrowdRecord, orders: int, draws: int, seed: int) -> list[Row]:
    rng = np.random.default_rng((seed, 1))
    walks = [_walk(even_labels(crowd.labels, EACH, rng), crowd.gold, rng) for _ in range(orders)]
    return [_row(name, "even", eps, alpha, EACH, walks, draws, rng) for eps in SHARES for alpha in CHANCES]


def _stance(file: Path, draws: int, seed: int) -> list[Row]:
    rng, walks = np.random.default_rng((seed, 1)), [_stance_walk(file)]
    return [_row("stance", "model", eps, alpha, 1, walks, draws, rng) for eps in SHARES for alpha in CHANCES]


def _bought(
    name: str, crowd: CrowdRecord, way: str, each: int, arrivals: int, draws: int, seed: int
) -> list[Row]:  # fmt: skip
    rng, (rule, expert) = np.random.default_rng((seed, 2)), WAYS[way]
    setup, budget = CrowdReplaySetup(crowd, "worker-first", seed=seed, expert=expert), each * crowd.labels.tasks
    given = [labels for r in range(arrivals) for _, labels, _ in labels_given(setup, rule, [budget], r)]
    walks = [_walk(labels, crowd.gold, rng) for labels in given]
    return [_row(name, way, "0.05", "0.05", each, walks, draws, rng, part="buying")]


def _judged(crowd: CrowdRecord) -> CrowdRecord:
    """The tasks whose truth is known."""
    task, gold = crowd.labels.task, crowd.gold
    known = np.flatnonzero(gold >= 0)
    number = np.full(crowd.labels.tasks, -1)
    number[known] = np.arange(len(known))
    kept = gold[task] >= 0
    labels = crowd.labels._replace(
        task=number[task[kept]], worker=crowd.labels.worker[kept], answer=crowd.labels.answer[kept], tasks=len(known)
    )
    return CrowdRecord(labels, gold[known])


def _walk(labels: CrowdLabels, gold: Ints, rng: np.random.Generator) -> LabelWalk:
    return walk_of_crowd(labels, fit_crowd(labels).beliefs, gold, rng)


def _row(
    name: str, way: str, eps: str, alpha: str, each: float, walks: list[LabelWalk], draws: int,
    rng: np.random.Generator, part: str = "misses",
) -> Row:  # fmt: skip
    count, sure = max(1, draws // len(walks)), str(round(1 - float(alpha), 12))
    seen, missed, _ = zip(*(expert_shares(walk, eps, sure, count, rng) for walk in walks), strict=True)
    return {
        "part": part, "set": name, "way": way, "at_most_wrong": float(eps), "alpha": float(alpha),
        "labels_each": each, "items": len(walks[0].errors),
        "wrong": float(np.mean([walk.errors.mean() for walk in walks])),
        "expert_sees": float(np.concatenate(seen).mean()),
        "half_width": float(1.96 * np.std([s.mean() for s in seen]) / np.sqrt(len(seen))),
        "missed": float(np.concatenate(missed).mean()), "draws": count * len(walks), "cost": 0.0, "times_best": 0.0,
    }  # fmt: skip


def _costs(name: str, crowd: CrowdRecord, eps: str, orders: int, seed: int) -> list[Row]:
    """Experts alone, fixed plans with the best audits of a grid, and what the program plans from a pilot."""
    rng, n = np.random.default_rng(seed), crowd.labels.tasks
    r, deepest = first_too_many(n, eps), int(np.median(np.bincount(crowd.labels.task)))
    alone = (n - r + 1) * ANSWER
    rows: list[Row] = [_cost_row(name, "experts alone", eps, 0, n, [], [alone])]
    for m in LABELS_EACH:
        walks = [
            _walk(even_labels(crowd.labels, m, rng), crowd.gold, rng) for _ in range(orders if m <= deepest else 0)
        ]
        found = [
            _cost_row(name, "fixed", eps, m, n, walks, _campaigns(walks, eps, n * m * LABEL, rng, round(share * n)))
            for share in AUDITS
            if walks and allowed_errors(n, round(share * n), r, "0.05") is not None
        ]
        rows += [min(found, key=lambda row: float(row["cost"]))] if found else []
    for items, each in PILOTS:
        costs, walks, chosen = [], list[LabelWalk](), []
        for order in range(orders):
            plan, bought = _piloted(crowd, items, each, eps, seed + order, rng)
            chosen.append(plan)
            if bought is None:
                costs.append(items * each * LABEL + alone)
            else:
                walks.append(_walk(bought, crowd.gold, rng))
                costs += _campaigns(walks[-1:], eps, len(bought.task) * LABEL, rng)
        rows.append(_cost_row(name, f"planned from {items} x {each}", eps, float(np.mean(chosen)), n, walks, costs))
    best = min(float(row["cost"]) for row in rows if not str(row["way"]).startswith("planned"))
    return [{**row, "times_best": float(row["cost"]) / best} for row in rows]


def _piloted(
    crowd: CrowdRecord, items: int, each: int, eps: str, seed: int, rng: np.random.Generator
) -> tuple[int, CrowdLabels | None]:
    """Labels for each item by a plan from a pilot of some items, and all labels that are bought then, if any."""
    items = min(items, crowd.labels.tasks)
    some = rng.choice(crowd.labels.tasks, items, replace=False)
    labels = even_labels(crowd.labels, each, rng)
    inside = np.isin(labels.task, some)
    place = np.full(labels.tasks, -1)
    place[some] = np.arange(items)
    used, worker = np.unique(labels.worker[inside], return_inverse=True)
    pilot = LabelTable(
        place[labels.task[inside]], worker, labels.answer[inside], tuple(range(items)), tuple(used.tolist()),
        tuple(range(labels.answers)),
    )  # fmt: skip
    plan = plan_guarantee(
        pilot,
        at_most_wrong=eps,
        expert_cost=ANSWER,
        label_cost=LABEL,
        items=labels.tasks,
        replications=PLANS,
        seed=seed,
    )
    m = plan.best.labels_each
    if m == 0:
        return 0, None
    rest = even_labels(crowd.labels, m, rng)
    outside = ~np.isin(rest.task, some)
    return m, rest._replace(
        task=np.concatenate([labels.task[inside], rest.task[outside]]),
        worker=np.concatenate([labels.worker[inside], rest.worker[outside]]),
        answer=np.concatenate([labels.answer[inside], rest.answer[outside]]),
    )


def _campaigns(
    walks: list[LabelWalk], eps: str, labels: float, rng: np.random.Generator, audits: int | None = None
) -> list[float]:
    """The cost of a campaign with each of these walks, the mean of some draws."""
    shares = [expert_shares(walk, eps, "0.95", COST_DRAWS, rng, audits)[0].mean() for walk in walks]
    return [labels + ANSWER * len(walks[0].errors) * float(share) for share in shares]


def _cost_row(
    name: str, way: str, eps: str, each: float, items: int, walks: list[LabelWalk], costs: list[float]
) -> Row:
    wrong = float(np.mean([walk.errors.mean() for walk in walks])) if walks else 0.0
    return {
        "part": "cost", "set": name, "way": way, "at_most_wrong": float(eps), "alpha": 0.05, "labels_each": each,
        "items": items, "wrong": wrong, "expert_sees": 0.0,
        "half_width": float(1.96 * np.std(costs) / np.sqrt(len(costs))), "missed": 0.0,
        "draws": COST_DRAWS * len(costs), "cost": float(np.mean(costs)), "times_best": 0.0,
    }  # fmt: skip


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
    """What the expert sees against the share that is allowed, misses against their limit, and costs by plan."""
    misses, costs = pick(rows, part="misses"), pick(rows, part="cost")
    with drawing(1, 3, figsize=(14.0, 4.0)) as (figure, (left, middle, right)):
        for name in values_of(misses, "set"):
            some = pick(misses, set=name, alpha=0.05)
            x = [100 * row["at_most_wrong"] for row in some]
            left.plot(x, [100 * row["expert_sees"] for row in some], marker="o", label=name)
            cells = pick(misses, set=name)
            middle.plot([100 * c["alpha"] for c in cells], [100 * c["missed"] for c in cells], "o", label=name)
        left.set(xlabel="wrong labels allowed, %", ylabel="items that the expert sees, %", ylim=(0, 100))
        limit = [0, 12]
        middle.plot(limit, limit, color="0.6", linewidth=1, label="the limit")
        middle.set(xlabel="chance of a miss that is allowed, %", ylabel="draws with too many wrong labels, %")
        for name in values_of(costs, "set"):
            for eps in values_of(costs, "at_most_wrong"):
                own = pick(costs, set=name, at_most_wrong=eps)
                plans = [row for row in own if row["way"] in ("experts alone", "fixed")]
                (line,) = right.plot(
                    [row["labels_each"] for row in plans], [row["cost"] for row in plans], marker=".",
                    label=f"{name}, {100 * eps:g}%",
                )  # fmt: skip
                planned = [row for row in own if row["way"].startswith("planned")]
                right.plot(
                    [row["labels_each"] for row in planned], [row["cost"] for row in planned], "*", markersize=10,
                    color=line.get_color(),
                )  # fmt: skip
        right.set(xlabel="labels for each item (stars: planned from a pilot)", ylabel="cost, in labels")
        for axes in (left, middle, right):
            axes.legend(frameon=False)
    return figure
