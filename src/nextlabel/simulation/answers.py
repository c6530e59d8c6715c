"""Answers other than a choice, replayed: recorded or drawn labels answer the allocators of live campaigns.

Workers come in random order, each as often as they have labels; an allocator gives them one of the items that they
labelled and were not given yet, and learns anew as often as a live campaign does. ``value`` is the live rule
(``policies.crowd``), ``even`` gives the item with the fewest labels. What the labels bought say is read out as learnt
and plainly, and held against the truth:

======== ========================= =========================== ====================================
answer   learnt                    plain                       figure (1 is best)
======== ========================= =========================== ====================================
rating   ``crowd.numbers``         mean of the labels          correlation with the truth
number   the same                  the same                    the same
multi    ``crowd.questions``       each label by majority      share of the labels that are right
pair     ``crowd.pairs``           comparisons won less lost   Kendall's tau with the true order
======== ========================= =========================== ====================================

Without gold the truth is what all labels together say as learnt, which favours that read-out. Nothing is certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import kendalltau

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.answers import Answer, Number, Pair, Rating
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.numbers import NumberLabels, fit_numbers
from nextlabel.crowd.pairs import SAID, Comparisons, LearntPairs, fit_pairs
from nextlabel.crowd.questions import Form, FormLabels, fit_form, form_of
from nextlabel.errors import InputError
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import LabelTable
from nextlabel.policies.allocation import Outlook
from nextlabel.policies.crowd.allocator import GrowingCrowd
from nextlabel.policies.crowd.forms import FormCrowd
from nextlabel.policies.crowd.valued import NumberCrowd, PairCrowd
from nextlabel.prose import counted
from nextlabel.reporting.report import Report, Table

Rule = Literal["value", "even"]
Progress = Callable[[float], None]
RULES: tuple[Rule, ...] = ("value", "even")
READOUTS = ("learnt", "plain")
FIGURES = {"rating": "correlation", "number": "correlation", "multi": "share right", "pair": "Kendall's tau"}
#: Labels of an item at most, and in flight.
LIMITS = 10_000, 24


@dataclass(frozen=True, eq=False)
class Recorded:
    """Labels to buy, and the truth (items,) to hold them against: nan where it is not known, of ``multi`` codes.

    ``pairs`` (tasks, 2) are the items of each task where two are compared; else tasks are items.
    """

    kind: Answer
    labels: CrowdLabels
    truth: Floats
    pairs: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    def crowd(self, seed: int) -> GrowingCrowd:
        """The allocator of a live campaign, with all items and workers."""
        kind = self.kind
        crowd: GrowingCrowd
        if isinstance(kind, Pair):
            crowd = PairCrowd(kind, seed)
            crowd.add_pairs([(str(i), str(j)) for i, j in self.pairs.tolist()])
        elif isinstance(kind, Form):
            crowd = FormCrowd(kind, seed)
        else:
            crowd = (
                NumberCrowd(kind, seed) if isinstance(kind, Number) else GrowingCrowd(np.ones(kind.width), seed=seed)
            )
        tasks = self.labels.tasks
        crowd.add_tasks(np.zeros((tasks, len(crowd.given_share))), *(np.full(tasks, most) for most in LIMITS))
        for _ in range(self.labels.workers):
            crowd.add_worker()
        return crowd

    def buy(self, budget: int, rule: Rule, seed: int) -> CrowdLabels:
        """The labels that a rule buys."""
        rng, labels, crowd = np.random.default_rng([seed, 7]), self.labels, self.crowd(seed)
        left: list[dict[int, int]] = [{} for _ in range(labels.workers)]
        for row, (task, worker) in enumerate(zip(labels.task.tolist(), labels.worker.tolist(), strict=True)):
            left[worker][task] = row
        bought, many, version, due = list[int](), np.zeros(labels.tasks), 0, 0
        for worker in labels.worker[rng.permutation(len(labels.worker))].tolist():
            n, there = len(bought), np.array(sorted(left[worker]), dtype=np.int64)
            if n >= budget:
                break
            if rule == "value" and n >= due:
                version += 1
                crowd.learn(version, n, budget - n)
                due = n + max(4, int(min(budget / 40, max(10, n / 5))))
            if rule == "even":
                x: int | str = int(there[np.lexsort((rng.random(len(there)), many[there]))[0]])
            else:
                x = crowd.choose(worker, Outlook(n, budget - n, n, eligible=there))
            if isinstance(x, str):
                continue
            bought.append(left[worker].pop(x))
            many[x] += 1
            if rule == "value":
                crowd.assign(n, x, worker)
                crowd.complete(n, int(labels.answer[bought[-1]]))
        return labels._replace(task=labels.task[bought], worker=labels.worker[bought], answer=labels.answer[bought])

    def read(self, labels: CrowdLabels, readout: str) -> Floats:
        """(items,) what these labels say of each item, nan of an item without any."""
        kind, plain = self.kind, readout == "plain"
        if isinstance(kind, Pair):
            data = self.comparisons(labels)
            both = np.append(data.first, data.second)
            told = np.bincount(both, minlength=data.items)
            won = np.bincount(both, np.append(data.said, -data.said), data.items) / np.maximum(told, 1)
            said = won if plain else fit_pairs(data).score
        elif isinstance(kind, Form):
            told, chosen = np.bincount(labels.task, minlength=labels.tasks), np.zeros((labels.tasks, len(kind.options)))
            np.add.at(chosen, labels.task, kind.options_of(labels.answer))
            forms = FormLabels(*labels[:3], kind.digits(labels.answer), labels.tasks, labels.workers)
            share = chosen / np.maximum(told, 1)[:, None]
            fit = share if plain else kind.flat(fit_form(kind, forms, np.full(labels.tasks, -1)).belief)
            said = kind.best(fit).astype(np.float64)
        else:
            assert isinstance(kind, Number | Rating)
            numbers = NumberLabels(*labels[:2], kind.value_of(labels.answer), labels.tasks, labels.workers)
            told = np.bincount(labels.task, minlength=labels.tasks)
            mean = np.bincount(labels.task, numbers.number, labels.tasks) / np.maximum(told, 1)
            said = mean if plain else fit_numbers(numbers, kind).estimate
        return np.where(told > 0, said, np.nan)

    def figure(self, said: Floats) -> float:
        """How near that comes to the truth, over the items that have labels."""
        at = np.isfinite(self.truth) & np.isfinite(said)
        said, truth = said[at], self.truth[at]
        if isinstance(self.kind, Form):
            return float(self.kind.shares_right(said.astype(np.int64), truth.astype(np.int64)).mean())
        if isinstance(self.kind, Pair):
            return float(kendalltau(said, truth)[0])
        return float(np.corrcoef(said, truth)[0, 1])

    def comparisons(self, labels: CrowdLabels) -> Comparisons:
        """Labels of pairs as comparisons of their items."""
        first, second = self.pairs[labels.task].T
        return Comparisons(first, second, labels.worker, SAID[labels.answer], int(self.pairs.max()) + 1, labels.workers)


class Replayed(NamedTuple):
    """The figure of one rule, read-out and budget: mean and half-width of its 95% interval over the replays."""

    rule: str
    readout: str
    budget: int
    mean: float
    half_width: float


def replay(
    data: Recorded, budgets: Sequence[int], replications: int = 8, seed: int = 0, progress: Progress | None = None
) -> list[Replayed]:
    """Every rule and read-out at every budget."""
    if not np.isfinite(data.truth).any():
        data = replace(data, truth=data.read(data.labels, "learnt"))
    if int(np.isfinite(data.truth).sum()) < 2:
        raise InputError("fewer than two items have gold and labels.", "Give the gold of these labels.")
    out, cells = list[Replayed](), [(budget, rule) for budget in budgets for rule in RULES]
    for k, (budget, rule) in enumerate(cells):
        bought = [data.buy(budget, rule, seed + r) for r in range(replications)]
        for readout in READOUTS:
            found = np.array([data.figure(data.read(one, readout)) for one in bought])
            half = 1.959963984540054 * found.std(ddof=1) / np.sqrt(replications) if replications > 1 else np.inf
            out.append(Replayed(rule, readout, budget, float(found.mean()), float(half)))
        if progress is not None:
            progress((k + 1) / len(cells))
    return out


def replay_report(
    data: Recorded,
    budgets: Sequence[int] | None = None,
    per_item: Sequence[float] | None = None,
    replications: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
    title: str = "Replayed",
) -> Report:
    """The same as a report; by default with 2, 3, 4 and 5 labels per item, of pairs with as many as there are items."""
    items, most = len(data.truth), len(data.labels.task)
    wanted = budgets or sorted({min(round(items * x), most) for x in per_item or (2.0, 3.0, 4.0, 5.0)})
    found = replay(data, wanted, replications, seed, progress)
    figure = FIGURES[data.kind.name]
    rows = [[f"{one.budget:,}", one.rule, one.readout, f"{one.mean:.3f}", f"±{one.half_width:.3f}"] for one in found]
    of = f"{counted(items, 'item')}, {counted(data.labels.workers, 'worker')}, {counted(most, 'label')} to buy from"
    return Report(
        title=title,
        tables=[Table(title, ("labels", "rule", "read out", figure, ""), rows, f"{of}. 1 is best.")],
        sentences=[
            "value: the live rule, the item whose next label is worth most; even: the item with the fewest labels. "
            f"± is the half-width of a 95% interval over {counted(replications, 'replay')}. Nothing is certified."
        ],
        heading=title, lead=of,
        fields={
            "answer": data.kind.name, "figure": figure, "rows": [one._asdict() for one in found],
            "replications": replications, "seed": seed, "items": items,
        },
        files=lambda: {"replays.csv": [one._asdict() for one in found]},
    )  # fmt: skip


def recorded(table: LabelTable, kind: Answer | None, gold: Mapping[str, str] | None = None) -> Recorded:
    """Labels of a file as answers of a kind, None for any of several labels; ``gold`` are known answers of items."""
    if table.worker is None or (table.worker < 0).any():
        raise InputError("the labels do not all say who gave them.", "Give a column of workers.")
    known = {} if gold is None else gold
    answers = form_of([*table.labels, *known.values()]) if kind is None else kind
    numbers = np.array([answers.number_of(cell_text(one)) for one in table.labels], dtype=np.int64)
    labels = CrowdLabels(table.task, table.worker, numbers[table.label], len(table.tasks), len(table.workers), 2)
    said = (known.get(cell_text(name)) for name in table.tasks)
    if isinstance(answers, Form):
        truth = [np.nan if one is None else answers.number_of(one) for one in said]
    else:
        truth = [np.nan if one is None else float(one) for one in said]
    return Recorded(answers, labels, np.array(truth, dtype=np.float64))


def recorded_pairs(found: LearntPairs, gold: Mapping[str, str] | None = None) -> Recorded:
    """Comparisons of a file; ``gold`` has a number for each item, larger for better ones."""
    data, known = found.data, {} if gold is None else gold
    low, high = np.minimum(data.first, data.second), np.maximum(data.first, data.second)
    said = np.where(data.first == low, data.said, -data.said)
    task, place = np.unique(low * data.items + high, return_inverse=True)
    labels = CrowdLabels(place, data.worker, np.where(said == 0, 2, (1 - said) // 2), len(task), data.workers, 3)
    truth = np.array([float(known[name]) if name in known else np.nan for name in found.item_names])
    return Recorded(Pair(), labels, truth, np.stack([task // data.items, task % data.items], axis=1))


def drawn_pairs(items: int, spread: float, right: Floats, seed: int = 0) -> Recorded:
    """What workers who say what they see as often as that would say of every pair of items with normal scores."""
    rng = np.random.default_rng([seed, 11])
    score = rng.normal(0.0, spread, items)
    pairs = np.stack(np.triu_indices(items, 1), axis=1)
    worker, task = (one.ravel() for one in np.indices((len(right), len(pairs))))
    ahead = rng.random(len(task)) < expit(score[pairs[task, 0]] - score[pairs[task, 1]])
    answer = (ahead != (rng.random(len(task)) < right[worker])).astype(np.int64)
    labels = CrowdLabels(task, worker, answer, len(pairs), len(right), 3)
    return Recorded(Pair(), labels, score, pairs)
