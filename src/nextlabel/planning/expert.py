"""The cheapest way to labels with a guarantee: how many labels to buy for each item before an expert looks.

====== ============ ==================================================================================================
symbol code         meaning
====== ============ ==================================================================================================
n      items        items of the campaign that is planned
m      labels_each  labels bought for each item; 0: experts alone, or a model's labels that are there already
K      audits       items drawn for the expert (``crowd.guarantee``), chosen from the probabilities as a campaign would
--     expert_share share of the items that the expert answers in the end, the audit included
====== ============ ==================================================================================================

    cost(m) = n m (price of a label) + n expert_share(m) (price of an answer)

A pilot of recorded labels stands for the campaign: m labels of each of its items are drawn at random, read out and
walked as ``nextlabel guarantee`` walks them; the sequence of right and wrong labels, the least certain first, is drawn
again to the length n. With gold, right and wrong are facts. Without, they are drawn from the model's own probabilities,
with 0, 5 and 10 points more errors everywhere, because models are too sure of themselves: the range then is wide.
Guarantee: an estimate for a crowd like the pilot's; the statement itself holds whatever comes. Cost: a fit for each
replication and m, about 5 ns per label and sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdLabels, crowd_labels, fit_crowd
from nextlabel.crowd.guarantee import (
    BATCH,
    LEAST_BATCH,
    OVERCONFIDENCE,
    SWEEPS,
    BestOrder,
    allowed_errors,
    choose_audits,
    first_too_many,
    recalibrated,
)
from nextlabel.errors import refuse
from nextlabel.files.columns import cell_text, folded
from nextlabel.files.labels import Gold, LabelTable, ResultTable
from nextlabel.reporting.report import Table
from nextlabel.reporting.style import drawing
from nextlabel.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Labels for each item that are tried, as far as the pilot has them; draws of the audit for each replication.
LABELS_EACH, DRAWS = (1, 2, 3, 4, 5, 7, 10), 20
#: Shares of wrong labels for which the costs are drawn.
SHARES = ("0.01", "0.02", "0.05", "0.1", "0.15", "0.2")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the guarantee, with the range that holds 90% of the replications.

    ``by_share`` are its costs at each of ``SHARES``, ``by_doubt`` its costs at each share of errors beyond the model's.
    """

    name: str
    labels_each: int
    audits: int
    expert_share: float
    cost: float
    low: float
    high: float
    by_share: tuple[float, ...]
    by_doubt: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GuaranteePlan:
    """Ways to the guarantee, experts alone first; ``judged_by_gold``: facts, not the model, judged the pilot."""

    items: int
    at_most_wrong: str
    sure: str
    label_cost: float
    expert_cost: float
    ways: tuple[Way, ...]
    judged_by_gold: bool

    @property
    def best(self) -> Way:
        """The cheapest way; without gold, the one that costs least too much whichever share of errors is true."""
        doubts = max(len(way.by_doubt) for way in self.ways)
        costs = np.array([np.broadcast_to(way.by_doubt, doubts) for way in self.ways])
        return self.ways[int(np.argmin((costs - costs.min(axis=0)).max(axis=1)))]

    def sentences(self) -> list[str]:
        """The plan in plain English."""
        best, alone = self.best, self.ways[0]
        promise = f"at most {float(self.at_most_wrong):.1%} of {self.items:,} labels wrong, {float(self.sure):.0%} sure"
        if best is alone:
            out = [
                f"For {promise}, experts alone are cheapest: about {alone.cost:,.0f}. Labels of this crowd do not pay."
            ]
        else:
            buy = f"buy {counted(best.labels_each, 'label')} for each item"
            does = buy if best.labels_each else "keep the model's labels"
            out = [
                f"For {promise}, {does} and have the expert answer "
                f"about {best.expert_share:.0%} of the items, {best.audits:,} of them drawn first: about "
                f"{best.cost:,.0f} (90% range {best.low:,.0f} to {best.high:,.0f}). Experts alone cost "
                f"{alone.cost:,.0f}."
            ]
        if not self.judged_by_gold:
            out.append(
                "No gold judged the pilot: the range assumes that up to 10 points more labels are wrong than the model "
                "says, and this way costs least too much whichever is true. Give --gold for some of its items, and the "
                "plan rests on facts."
            )
        return out

    def as_dict(self) -> dict[str, Any]:
        """The plan as ``--json`` prints it."""
        rows = [asdict(way) for way in self.ways]
        return {
            "items": self.items, "at_most_wrong": float(self.at_most_wrong), "sure": float(self.sure),
            "label_cost": self.label_cost, "expert_cost": self.expert_cost, "judged_by_gold": self.judged_by_gold,
            "ways": rows, "shares": list(map(float, SHARES)), "best": rows[self.ways.index(self.best)],
            "sentences": self.sentences(),
        }  # fmt: skip


def plan_guarantee(
    pilot: LabelTable,
    gold: Gold | None = None,
    *,
    at_most_wrong: str = "0.05",
    sure: str = "0.95",
    expert_cost: float = 10.0,
    label_cost: float = 1.0,
    items: int | None = None,
    model: ResultTable | None = None,
    replications: int = 20,
    seed: int = 0,
) -> GuaranteePlan:
    """The cheapest way to at most so many wrong labels, from a pilot with workers and, better, some gold.

    ``model`` has a model's labels of such items with their probabilities, which cost nothing more.
    """
    labels = crowd_labels(pilot)
    truth = np.full(labels.tasks, -1, dtype=np.int64) if gold is None else gold.label
    n = labels.tasks if items is None else items
    free = min(expert_cost, label_cost) <= 0
    refuse((free, "a label and an expert's answer must cost something.", "Give prices above 0."))

    def way_of(name: str, m: int, walks: Callable[[np.random.Generator], list[LabelWalk]]) -> Way:
        rng = np.random.default_rng((seed, m))
        shares: dict[str, list[float]] = {share: [] for share in (at_most_wrong, *SHARES)}
        for _ in range(replications):
            for walk in [_stretched(one, n, rng) for one in walks(rng)]:
                for share, found in shares.items():
                    seen, _, audits = expert_shares(walk, share, sure, DRAWS, rng)
                    found.append(float(seen.mean()))
                    if share == at_most_wrong:
                        drawn = audits
        cost = {share: n * (m * label_cost + np.array(found) * expert_cost) for share, found in shares.items()}
        low, high = np.quantile(cost[at_most_wrong], [0.05, 0.95])
        seen_by_expert, mean = float(np.mean(shares[at_most_wrong])), float(cost[at_most_wrong].mean())
        curve = tuple(float(cost[share].mean()) for share in SHARES)
        by_doubt = tuple(cost[at_most_wrong].reshape(replications, -1).mean(axis=0).tolist())
        return Way(name, m, drawn, seen_by_expert, mean, float(low), float(high), curve, by_doubt)

    answers, *at_shares = (n - first_too_many(n, share) + 1 for share in (at_most_wrong, *SHARES))
    alone = answers * expert_cost
    curve = tuple(some * expert_cost for some in at_shares)
    ways = [Way("experts alone", 0, answers, answers / n, alone, alone, alone, curve, (alone,))]
    if model is not None:
        said = {} if gold is None else {pilot.tasks[k]: pilot.labels[g] for k, g in enumerate(gold.label) if g >= 0}
        ways.append(way_of("model, then expert", 0, partial(_model_walks, model, said)))
    deepest = int(np.median(np.bincount(labels.task, minlength=labels.tasks)))
    ways += [way_of(f"{m}", m, partial(_walks, labels, truth, m)) for m in LABELS_EACH if m <= deepest]
    return GuaranteePlan(n, at_most_wrong, sure, label_cost, expert_cost, tuple(ways), bool((truth >= 0).any()))


def _model_walks(model: ResultTable, said: dict[Any, Any], rng: np.random.Generator) -> list[LabelWalk]:
    """A model's labels, walked as its probabilities are recalibrated: by gold, or by each share of errors beyond it."""
    words = sorted({*map(folded, model.labels), *map(folded, said.values())})
    label, probability = np.array([words.index(folded(one)) for one in model.labels]), np.array(model.probability)
    known = {cell_text(task): folded(one) for task, one in said.items()}
    truth = np.array([words.index(known[cell_text(t)]) if cell_text(t) in known else -1 for t in model.tasks])
    if (truth >= 0).any():
        order = BestOrder(probability, label, [recalibrated(probability, label, len(words))])
        return [walk_labels(probability, label, truth, order, rng)]
    return _doubted(probability, rng)


def _doubted(probability: Floats, rng: np.random.Generator) -> list[LabelWalk]:
    """Walks without a truth: errors by the probabilities, and by each share of errors beyond them."""
    order = np.lexsort((rng.permutation(len(probability)), probability))
    wrong, draws = 1.0 - probability[order], rng.random(len(probability))
    return [LabelWalk(probability[order], draws < wrong + more * (1.0 - wrong)) for more in OVERCONFIDENCE]


@dataclass(frozen=True, slots=True)
class LabelWalk:
    """Labels in the order in which they are taken away: their probabilities, and which of them are wrong."""

    probability: Floats
    errors: Bools


def _walks(labels: CrowdLabels, truth: Ints, m: int, rng: np.random.Generator) -> list[LabelWalk]:
    """m labels of each item read out and walked: one walk by gold, or one for each share of errors beyond the model."""
    some = even_labels(labels, m, rng)
    beliefs = fit_crowd(some).beliefs
    return [walk_of_crowd(some, beliefs, truth, rng)] if (truth >= 0).any() else _doubted(beliefs.max(axis=1), rng)


def even_labels(labels: CrowdLabels, m: int, rng: np.random.Generator) -> CrowdLabels:
    """At most m labels of each task, drawn at random."""
    order = rng.permutation(len(labels.task))
    task = labels.task[order]
    by_task = np.argsort(task, kind="stable")
    counts = np.bincount(task, minlength=labels.tasks)
    rank = np.arange(len(task)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.sort(order[by_task[rank < m]])
    return labels._replace(task=labels.task[kept], worker=labels.worker[kept], answer=labels.answer[kept])


def walk_of_crowd(labels: CrowdLabels, beliefs: Floats, truth: Ints, rng: np.random.Generator) -> LabelWalk:
    """The walk over the tasks whose truth is known, the workers fitted again as answers come in."""
    label = beliefs.argmax(axis=1)
    rows = np.arange(len(label))

    def refitted(told: Ints) -> Floats:
        again: Floats = fit_crowd(labels, told, most_iterations=SWEEPS).beliefs[rows, label]
        return again

    order = BestOrder(beliefs.max(axis=1), label, [refitted])
    return walk_labels(beliefs.max(axis=1), label, truth, order, rng)


def walk_labels(probability: Floats, label: Ints, truth: Ints, order: BestOrder, rng: np.random.Generator) -> LabelWalk:
    """Labels whose truth is known in the order in which they are taken away, if nothing stops the walk."""
    kept, told, tie = truth >= 0, np.full(len(label), -1), rng.permutation(len(label))
    batch = max(LEAST_BATCH, round(BATCH * int(kept.sum())))
    sequence: list[int] = []
    while kept.any():
        rest, certainty = np.flatnonzero(kept), order.certainty(told)
        taken = rest[np.lexsort((tie[rest], certainty[rest]))][:batch]
        sequence.extend(taken.tolist())
        kept[taken] = False
        told[taken] = truth[taken]
    return LabelWalk(probability[sequence], (label != truth)[sequence])


def _stretched(walk: LabelWalk, n: int, rng: np.random.Generator) -> LabelWalk:
    """The walk drawn again to the length n, in its order."""
    if n == len(walk.errors):
        return walk
    at = np.sort(rng.integers(0, len(walk.errors), n))
    return LabelWalk(walk.probability[at], walk.errors[at])


def expert_shares(
    walk: LabelWalk, at_most_wrong: str, sure: str, draws: int, rng: np.random.Generator, audits: int | None = None
) -> tuple[Floats, Bools, int]:
    """The share that the expert sees and whether too many errors stay, for each draw of the audit; and K.

    Without ``audits`` K is chosen from the probabilities.
    """
    n = len(walk.errors)
    r, alpha = first_too_many(n, at_most_wrong), str(round(1.0 - float(sure), 12))
    K = min(choose_audits(walk.probability, r, alpha)[0] if audits is None else audits, n)
    allowed = allowed_errors(n, K, r, alpha)
    assert allowed is not None, "so few audits say nothing"
    share, missed = np.zeros(draws), np.zeros(draws, dtype=np.bool_)
    for d in range(draws):
        audited = np.zeros(n, dtype=np.bool_)
        audited[rng.choice(n, K, replace=False)] = True
        after = np.cumsum((audited & walk.errors)[::-1])[::-1]  # audited errors from here to the most certain label
        cut = int(np.argmax(after <= allowed)) if (after <= allowed).any() else n
        unchecked = np.flatnonzero(~audited)
        if len(unchecked) >= r - 1 > 0:
            cut = min(cut, int(unchecked[len(unchecked) - (r - 1)]))
        stays = ~audited
        stays[:cut] = False
        share[d], missed[d] = 1.0 - stays.mean(), (walk.errors & stays).sum() >= r
    return share, missed, K


def guarantee_tables(plan: GuaranteePlan, title: str) -> list[Table]:
    """The ways with their costs, and the cheapest way at each share of wrong labels."""
    ways = {
        "labels for each item": "{name}", "audits": "{audits:,}", "expert answers": "{expert_share:.1%}",
        "cost": "{cost:,.0f}", "90% range": "{low:,.0f} to {high:,.0f}",
    }  # fmt: skip
    shares = {"wrong labels allowed": "{share:.0%}", "cheapest: labels for each item": "{name}", "cost": "{cost:,.0f}"}
    best = []
    for k, share in enumerate(map(float, SHARES)):
        cost, _, name = min((way.by_share[k], way.labels_each, way.name) for way in plan.ways)
        best.append({"share": share, "name": name, "cost": cost})
    return [
        Table.of(title, ways, [asdict(way) for way in plan.ways]),
        Table.of("By the share of wrong labels", shares, best, "Every share has a draw of its own."),
    ]


def cost_figure(plan: GuaranteePlan) -> Figure:
    """The cost of each way against the share of wrong labels that is allowed."""
    with drawing(figsize=(7.0, 4.2)) as (figure, axes):
        for way in plan.ways:
            axes.plot([100 * float(share) for share in SHARES], way.by_share, marker=".", label=way.name)
        axes.set(xlabel="wrong labels allowed, %", ylabel="cost", ylim=(0, None))
        axes.legend(frameon=False, title="labels for each item", ncols=2)
    return figure
