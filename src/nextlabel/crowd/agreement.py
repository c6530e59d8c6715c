"""How far labels of the same items agree: Krippendorff's alpha, Fleiss' and Cohen's kappa, with bootstrap intervals.

========= ============ ======= ==============================================================================
symbol    code         shape   meaning
========= ============ ======= ==============================================================================
n_uc      counts       (K, C)  labels c of item u; items with one label say nothing and are left out
n_u, n    --           --      labels of item u, of all items that are left
d         --           --      1 for unlike answers (nominal); squared distance of values (interval), or of mean
                               ranks in all labels (ordinal)
P_u       by_item      (K,)    share of the pairs of labels of item u that are alike
========= ============ ======= ==============================================================================

    alpha  = 1 - (n - 1) sum_u sum_{i, j of u} d_ij / (n_u - 1)  /  sum_{i, j} d_ij                   [Kri04]
    Fleiss = (mean P_u - sum_c p_c^2) / (1 - sum_c p_c^2),   p_c = share of c in all labels           [Fle71]
    Cohen  = (share alike - e) / (1 - e),   e = sum_c share of c in one's labels x in the other's     [Coh60]

All distances are squared differences of one number per answer, so that sums over pairs are n sum v^2 - (sum v)^2.
Fleiss' kappa is written for any number of labels per item. Cohen's is of two workers: every pair with
``LEAST_SHARED`` items together, and the mean over pairs by what they share. Intervals are percentiles over items, or
random blocks of them, drawn again with replacement; that of Cohen's mean is the limit of the same, the infinitesimal
jackknife over items. Cost: O(labels), and O(pairs of labels of an item) for Cohen's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.copying import LEAST_SHARED, MOST_PAIRS, pairs_of_labels
from nextlabel.crowd.skill import Estimate
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import LabelTable, as_label_table
from nextlabel.files.tables import Frame
from nextlabel.wording import counted

Level = Literal["nominal", "ordinal", "interval"]
#: Draws of the bootstrap; with more items than so many, random blocks of items are drawn in their stead.
DRAWS, MOST_BLOCKS = 1000, 1000
#: Different answers of a rating at most.
MOST_RANKS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Agreement of the labels of ``items`` items with two labels or more.

    ``alpha`` is at the ``level`` of measurement; ``fleiss`` and ``cohen`` are None where no two workers share enough
    items or every label is the same. ``pairs`` are the workers of Cohen's kappa by name, the items that they share
    and their kappa; ``tasks`` and ``by_item`` the items with the share of alike pairs, nan with one label.
    """

    level: Level
    items: int
    labels: int
    alpha: Estimate | None
    fleiss: Estimate | None
    cohen: Estimate | None
    pairs: tuple[tuple[Any, Any, int, float], ...]
    tasks: tuple[Any, ...]
    by_item: Floats
    #: The same of each question, or label of which any may be true, by its name; above it is of the answers as a whole.
    parts: tuple[tuple[str, Agreement], ...] = ()

    def sentences(self) -> list[str]:
        """The measures in plain English, and what they do not say."""
        if self.alpha is None:
            why = "no item has labels of two workers" if not self.items else "all labels are the same"
            return [f"Agreement is not defined: {why}."]
        pairs = counted(len(self.pairs), "pair of workers", "pairs of workers")
        kappas = [
            *([] if self.fleiss is None else [f"Fleiss' kappa {self.fleiss:.3f}"]),
            *([] if self.cohen is None else [f"Cohen's kappa {self.cohen:.3f} (mean of {pairs})"]),
        ]
        more = f"; {', '.join(kappas)}" if kappas else ""
        each = ", ".join(f"{name} {one.alpha.mean:.3f}" if one.alpha else f"{name} –" for name, one in self.parts)
        return [
            f"Krippendorff's alpha ({self.level}) {self.alpha:.3f} over {counted(self.items, 'item')} with two labels "
            f"or more{more}; in brackets 95% intervals over items.",
            *([f"That is of whole answers; of each question: {each}."] if each else []),
            "Alpha and kappa say how alike the labels are beyond chance, not how right: workers who are wrong together "
            "agree, and a few careless workers lower the number although what is read out may be right.",
        ]

    def as_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        measures = {"alpha": self.alpha, "fleiss": self.fleiss, "cohen": self.cohen}
        return {
            "level": self.level,
            "items": self.items,
            "labels": self.labels,
            **{name: None if one is None else one.as_dict() for name, one in measures.items()},
            "pairs": len(self.pairs),
            **({"questions": {name: one.as_dict() for name, one in self.parts}} if self.parts else {}),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row for each item with two labels or more, as files have it."""
        told = np.flatnonzero(np.isfinite(self.by_item))
        return [{"task": self.tasks[k], "agreement": round(float(self.by_item[k]), 6)} for k in told]


def agreement(
    labels: LabelTable | str | os.PathLike[str] | Frame, level: Level = "nominal", *, seed: int = 0
) -> Agreement:
    """How far the labels of the same items agree beyond chance, with 95% intervals.

    ``labels`` as ``learn_crowd`` takes them. At the levels *ordinal* and *interval* the answers must be numbers.

    >>> rows = [("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 0), ("b", "bob", 0), ("c", "ann", 1), ("c", "bob", 0)]
    >>> found = agreement(dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True)))
    >>> round(found.alpha.mean, 4)
    0.4444
    """
    table = as_label_table(labels)
    values = None if level == "nominal" else numbers_of(table.labels)
    worker = np.full(len(table), -1) if table.worker is None else table.worker
    return measure(table.task, worker, table.label, values, level, table.tasks, table.workers, seed)


def numbers_of(answers: tuple[Any, ...]) -> Floats:
    """The answers as numbers."""
    values = np.empty(len(answers))
    for k, one in enumerate(answers):
        try:
            values[k] = float(cell_text(one).replace(",", "."))
        except ValueError:
            values[k] = np.nan
        if not np.isfinite(values[k]):
            raise InputError(f"the answer {one!r} is no number.", "Give numbers, or say that answers are a choice.")
    return values


def measure(
    task: Ints, worker: Ints, answer: Ints, values: Floats | None, level: Level,
    tasks: tuple[Any, ...], workers: tuple[Any, ...], seed: int = 0,
) -> Agreement:  # fmt: skip
    """``agreement`` of labels that are numbered already; ``values`` (C,) are the answers' numbers, None for words."""
    if values is not None:  # numbers in their order, however they are spelt
        values, number = np.unique(values, return_inverse=True)
        answer = number[answer]
    K, C = len(tasks), int(answer.max(initial=0)) + 1
    per_task = np.bincount(task, minlength=K)
    kept = per_task[task] > 1
    of = np.cumsum(per_task > 1) - 1  # the item's number among those with two labels or more
    items, n = int((per_task > 1).sum()), per_task[per_task > 1].astype(np.float64)
    by_item = np.full(K, np.nan)
    if not items or len(np.unique(answer[kept])) < 2:
        by_item[per_task > 1] = 1.0
        return Agreement(level, items, int(kept.sum()), None, None, None, (), tasks, by_item)
    counts = sparse.csr_array((np.ones(int(kept.sum())), (of[task[kept]], answer[kept])), shape=(items, C))
    counts.sum_duplicates()
    alike = counts.power(2).sum(axis=1)
    by_item[per_task > 1] = (alike - n) / (n * (n - 1))
    statistics, measured = _alpha(level, counts, n, alike, values)
    rng = np.random.default_rng(seed)
    G = min(items, MOST_BLOCKS)
    block = np.arange(items) if items == G else rng.permutation(items) % G
    blocks = sparse.csr_array((np.ones(items), (block, np.arange(items))), shape=(G, items)) @ statistics
    drawn = rng.multinomial(G, np.full(G, 1.0 / G), DRAWS).astype(np.float64) @ blocks
    now, then = measured(blocks.sum(axis=0, keepdims=True)), measured(drawn)
    alpha, *more = (_estimate(float(x[0]), y) for x, y in zip(now, then, strict=True))
    cohen, found = _cohen(task, worker, answer, K, C) if level == "nominal" else (None, [])
    pairs = tuple((workers[i], workers[j], shared, kappa) for i, j, shared, kappa in found)
    fleiss = more[0] if level == "nominal" else None
    return Agreement(level, items, int(kept.sum()), alpha, fleiss, cohen, pairs, tasks, by_item)


def _alpha(
    level: Level, counts: sparse.csr_array, n: Floats, alike: Floats, values: Floats | None
) -> tuple[Floats, Callable[[Floats], list[Floats]]]:
    """Per item the numbers of which sums tell the measures; the function from (draws, numbers) to alpha and Fleiss."""
    C = counts.shape[1]
    if level == "ordinal":
        if C > MOST_RANKS:
            raise InputError(
                f"a rating has at most {MOST_RANKS} different answers, and these labels have {C}.",
                "Call them numbers (--answer number).",
            )
        dense = counts.toarray()
        pairs = np.einsum("uc,ud->ucd", dense, dense)
        pairs[:, range(C), range(C)] -= dense
        pairs /= (n - 1)[:, None, None]

        def ordinal(sums: Floats) -> list[Floats]:
            o = sums.reshape(-1, C, C)
            m = o.sum(axis=2)
            v = np.cumsum(m, axis=1) - m / 2.0
            apart = np.einsum("bcd,bcd->b", o, (v[:, :, None] - v[:, None, :]) ** 2)
            many = m.sum(axis=1)
            middle = (m * v).sum(axis=1, keepdims=True) / many[:, None]
            return [_one_less(many, apart, 2.0 * many * (m * (v - middle) ** 2).sum(axis=1))]

        return pairs.reshape(len(n), -1), ordinal
    if values is None:  # unlike answers are 1 apart: half the squared distance of unit vectors
        points = np.eye(C) / np.sqrt(2.0)
    else:
        points = np.asarray(values - float(counts.sum(axis=0) @ values) / float(n.sum()))[:, None]
    total, square = counts @ points, counts @ (points**2).sum(axis=1)
    apart = 2.0 * (n * square - (total**2).sum(axis=1)) / (n - 1)

    def squared(sums: Floats) -> list[Floats]:
        (many, items, seen, apart, square), total = sums[:, :5].T, sums[:, 5:]
        whole = (total**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = 2.0 * whole / many**2
            fleiss = (seen / items - expected) / (1.0 - expected)
        return [_one_less(many, apart, 2.0 * (many * square - whole)), fleiss]

    seen = (alike - n) / (n * (n - 1))
    return np.column_stack([n, np.ones(len(n)), seen, apart, square, total]), squared


def _one_less(many: Floats, apart: Floats, chance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(chance > 0, 1.0 - (many - 1.0) * apart / chance, np.nan)


def _estimate(mean: float, drawn: Floats) -> Estimate | None:
    if not np.isfinite(mean):
        return None
    low, high = np.nanpercentile(drawn, (2.5, 97.5)) if np.isfinite(drawn).any() else (mean, mean)
    return Estimate(mean, float(low), float(high))


def _cohen(
    task: Ints, worker: Ints, answer: Ints, K: int, C: int
) -> tuple[Estimate | None, list[tuple[int, int, int, float]]]:
    """The mean kappa over pairs of workers, and each pair (by number) with the tasks that it shares and its kappa."""
    named = worker >= 0
    task, worker, answer = task[named], worker[named], answer[named]
    per_task, W = np.bincount(task, minlength=K), int(worker.max(initial=0)) + 1
    if int((per_task * (per_task - 1) // 2).sum()) > MOST_PAIRS:
        return None, []
    first, second = pairs_of_labels(per_task, np.argsort(task, kind="stable"))
    turned = worker[first] > worker[second]
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    pair, place, many = np.unique(worker[first] * W + worker[second], return_inverse=True, return_counts=True)
    enough = (many >= LEAST_SHARED) & (pair // W != pair % W)
    rows, P = np.flatnonzero(enough[place]), int(enough.sum())
    if not P:
        return None, []
    place, pair, shared = (np.cumsum(enough) - 1)[place[rows]], pair[enough], many[enough].astype(np.float64)
    mine, yours = answer[first[rows]], answer[second[rows]]
    p, q = (np.bincount(place * C + x, minlength=P * C).reshape(P, C) / shared[:, None] for x in (mine, yours))
    seen, chance = np.bincount(place, mine == yours, P) / shared, (p * q).sum(axis=1)
    told = chance < 1.0
    rest = np.where(told, 1.0 - chance, 1.0)
    kappa, weight = np.where(told, (seen - chance) / rest, 0.0), np.where(told, shared, 0.0)
    if not told.any():
        return None, []
    mean = float(kappa @ weight / weight.sum())
    # what a row more of its item moves the mean by, times the rows in all
    moved = ((mine == yours) - seen[place]) / rest[place]
    moved -= (1.0 - seen[place]) / rest[place] ** 2 * (q[place, mine] + p[place, yours] - 2.0 * chance[place])
    moved = np.where(told[place], moved + kappa[place] - mean, 0.0)
    half = 1.959963984540054 * float(np.sqrt((np.bincount(task[first[rows]], moved) ** 2).sum())) / float(weight.sum())
    order = [k for k in np.argsort(-shared, kind="stable") if told[k]]
    found = [(int(pair[k] // W), int(pair[k] % W), int(shared[k]), float(kappa[k])) for k in order]
    return Estimate(mean, max(mean - half, -1.0), min(mean + half, 1.0)), found
