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
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.answers import Answer, Number, Pair, Rating, answer_type, check_options
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.numbers import fit_numbers
from nextlabel.crowd.pairs import SAID, Comparisons, fit_pairs, learn_pairs
from nextlabel.crowd.questions import Form, FormLabels, Question, fit_form, form_of
from nextlabel.errors import InputError, ProblemError
from nextlabel.files.columns import cell_text
from nextlabel.files.labels import LabelSummary, read_answers, read_labels
from nextlabel.files.tables import TableSummary
from nextlabel.model.estimate import Z95
from nextlabel.model.fact import Fact
from nextlabel.model.prior import positive
from nextlabel.model.problem import Problem
from nextlabel.model.tables import known_keys, labels_asked
from nextlabel.model.tasks import whole
from nextlabel.policies.allocation import Outlook
from nextlabel.policies.crowd.forms import new_crowd
from nextlabel.policies.crowd.valued import PairCrowd, numbers_of
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.report import Report, Table
from nextlabel.wording import counted

Rule = Literal["value", "even"]
Progress = Callable[[float], None]
RULES: tuple[Rule, ...] = ("value", "even")
READOUTS = ("learnt", "plain")
FIGURES = {"rating": "correlation", "number": "correlation", "multi": "share right", "pair": "Kendall's tau"}
#: Labels of an item at most, and in flight.
LIMITS = 10_000, 24
#: Labels of a worker whose supply has no limit.
ENDLESS = 10**9


@dataclass(frozen=True, eq=False)
class Recorded:
    """Labels to buy, and the truth (items,) to hold them against: nan where it is not known, of ``multi`` codes.

    ``pairs`` (tasks, 2) are the items of each task where two are compared; else tasks are items. ``supply`` (workers,)
    is how often each comes at most, and ``judged`` says where the truth comes from.
    """

    kind: Answer
    labels: CrowdLabels
    truth: Floats
    pairs: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    supply: Ints | None = None
    judged: str = "what was drawn"

    def buy(self, budget: int, rule: Rule, seed: int) -> CrowdLabels:
        """The labels that a rule buys."""
        rng, labels, crowd = np.random.default_rng([seed, 7]), self.labels, new_crowd(self.kind, seed)
        if isinstance(crowd, PairCrowd):
            crowd.add_pairs([(str(i), str(j)) for i, j in self.pairs.tolist()])
        no_offsets = np.zeros((labels.tasks, len(crowd.given_share)))
        crowd.add_tasks(no_offsets, *LIMITS)
        left: dict[int, dict[int, int]] = {crowd.add_worker(): {} for _ in range(labels.workers)}
        for row, (task, worker) in enumerate(zip(labels.task.tolist(), labels.worker.tolist(), strict=True)):
            left[worker][task] = row
        bought, many, version, due = list[int](), np.zeros(labels.tasks), 0, 0
        # of two labels of one item the last is there
        visits = np.minimum([len(one) for one in left.values()], ENDLESS if self.supply is None else self.supply)
        for worker in rng.permutation(np.repeat(np.arange(labels.workers), visits)).tolist():
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
            numbers = numbers_of(kind, labels)
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
            from scipy.stats import kendalltau  # imported here: it takes half a second

            return float(kendalltau(said, truth)[0])
        return float(np.corrcoef(said, truth)[0, 1])

    def comparisons(self, labels: CrowdLabels) -> Comparisons:
        """Labels of pairs as comparisons of their items."""
        first, second = self.pairs[labels.task].T
        return Comparisons(first, second, labels.worker, SAID[labels.answer], int(self.pairs.max()) + 1, labels.workers)


def replay(
    draw: Callable[[int], Recorded],
    budgets: Sequence[int],
    replications: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Row]:
    """The figure of every rule and read-out at every budget: mean and half-width of its 95% interval over the replays.

    ``draw`` has the labels of a replication by its number.
    """
    out, cells = list[Row](), [(budget, rule) for budget in budgets for rule in RULES]
    for k, (budget, rule) in enumerate(cells):
        found: dict[str, list[float]] = {readout: [] for readout in READOUTS}
        for r in range(replications):
            data = draw(seed + r)
            bought = data.buy(budget, rule, seed + r)
            for readout in READOUTS:
                found[readout].append(data.figure(data.read(bought, readout)))
        for readout, one in found.items():
            half = Z95 * np.std(one, ddof=1) / np.sqrt(replications) if replications > 1 else np.inf
            mean = {"mean": float(np.mean(one)), "half_width": float(half)}
            out.append({"rule": rule, "readout": readout, "budget": budget, **mean})
        if progress is not None:
            progress((k + 1) / len(cells))
    return out


def replay_report(
    draw: Callable[[int], Recorded],
    budgets: Sequence[int],
    replications: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
    title: str = "Replayed",
) -> Report:
    """The same as a report."""
    data, rows = draw(seed), replay(draw, budgets, replications, seed, progress)
    figure, items, most = FIGURES[data.kind.name], len(data.truth), len(data.labels.task)
    columns = {
        "labels": "{budget:,}", "rule": "{rule}", "read out": "{readout}", figure: "{mean:.3f}",
        "": "±{half_width:.3f}",
    }  # fmt: skip
    of = f"{counted(items, 'item')}, {counted(data.labels.workers, 'worker')}, {counted(most, 'label')} to buy from"
    return Report(
        title=title,
        tables=[Table.of(title, columns, rows)],
        sentences=[
            f"{of}. 1 is best, and the truth is {data.judged}.",
            "value: the live rule, the item whose next label is worth most; even: the item with the fewest labels. "
            f"± is the half-width of a 95% interval over {counted(replications, 'replay')}. Nothing is certified.",
        ],
        heading=title, lead=of,
        fields={
            "answer": data.kind.name, "figure": figure, "rows": rows,
            "replications": replications, "seed": seed, "items": items,
        },
        files=lambda: {"replays.csv": rows},
    )  # fmt: skip


def read_recorded(
    source: Any,
    gold: str | None,
    name: Any,
    scale: str | None = None,
    range_: str | None = None,
    columns: Mapping[str, str] | None = None,
    duplicates: Any = "first",
) -> tuple[Recorded, TableSummary | LabelSummary]:
    """Labels of a file as answers of a kind, and what was read; ``gold`` has the answers of items, of pairs numbers."""
    check_options(name, scale=scale, range=range_)
    names = {"task": "task", "worker": "worker", "label": "label"} if columns is None else columns
    known = {} if gold is None else read_answers(gold, names["task"], names["label"])
    if name == "pair":
        found = learn_pairs(source)
        data = found.data
        low, high = np.minimum(data.first, data.second), np.maximum(data.first, data.second)
        said = np.where(data.first == low, data.said, -data.said)
        task, place = np.unique(low * data.items + high, return_inverse=True)
        labels = CrowdLabels(place, data.worker, np.where(said == 0, 2, (1 - said) // 2), len(task), data.workers, 3)
        truth = [_number(known.get(item)) for item in found.item_names]
        pairs = np.stack([task // data.items, task % data.items], axis=1)
        return _known_or_learnt(Recorded(Pair(), labels, np.array(truth), pairs)), found.read[0]
    table = read_labels(source, **names, duplicates=duplicates)
    if table.worker is None or (table.worker < 0).any():
        raise InputError("the labels do not all say who gave them.", "Give a column of workers.")
    kind = form_of([*table.labels, *known.values()]) if name == "multi" else answer_type(name, (), scale, range_)
    numbers = np.array([kind.number_of(cell_text(one)) for one in table.labels], dtype=np.int64)
    labels = CrowdLabels(table.task, table.worker, numbers[table.label], len(table.tasks), len(table.workers), 2)
    answers = [known.get(cell_text(item)) for item in table.tasks]
    if isinstance(kind, Form):
        truth = [np.nan if one is None else float(kind.number_of(one)) for one in answers]
    else:
        truth = [_number(one) for one in answers]
    return _known_or_learnt(Recorded(kind, labels, np.array(truth))), table.report


def _number(text: str | None) -> float:
    try:
        return np.nan if text is None else float(text)
    except ValueError:
        raise InputError(f"the gold answer {text!r} is not a number.", "Give numbers.") from None


def _known_or_learnt(data: Recorded) -> Recorded:
    """The labels with the truth that is known, or else what all of them say; refused with too little of it."""
    known = int(np.isfinite(data.truth).sum())
    if known == 1 or len(data.truth) < 2:
        raise InputError("fewer than two items have gold and labels.", "Give the gold of these labels.")
    if known:
        return replace(data, judged=f"the gold of {counted(known, 'item')}")
    said = "what all of the labels say as learnt, which favours that read-out"
    return replace(data, truth=data.read(data.labels, "learnt"), judged=said)


def drawn_pairs(score: Floats, right: Floats, rng: np.random.Generator, supply: Ints | None = None) -> Recorded:
    """What workers say of every pair of items with these scores; they say what they see as often as ``right``."""
    pairs = np.stack(np.triu_indices(len(score), 1), axis=1)
    worker, task = (one.ravel() for one in np.indices((len(right), len(pairs))))
    ahead = rng.random(len(task)) < expit(score[pairs[task, 0]] - score[pairs[task, 1]])
    answer = (ahead != (rng.random(len(task)) < right[worker])).astype(np.int64)
    return Recorded(Pair(), CrowdLabels(task, worker, answer, len(pairs), len(right), 3), score, pairs, supply)


def _each(supplies: Sequence[int | None], counts: Sequence[int]) -> Ints:
    """(W,) the labels of each worker: those of a type are spread over its workers."""
    parts = [
        [ENDLESS if all_ is None else all_ // many + (k < all_ % many) for k in range(many)]
        for all_, many in zip(supplies, counts, strict=True)
    ]
    return np.array([one for part in parts for one in part], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A campaign to simulate: what is drawn in each replication, its budget, and what it is called."""

    draw: Callable[[int], Recorded]
    budget: int
    title: str

    @classmethod
    def pairs(cls, table: Mapping[str, Any]) -> Drawn:
        """Of a problem file with ``[question] answer = "pair"``."""
        for name, keys in (("tasks", ("count", "sd")), ("workers", ("accuracy", "count", "supply"))):
            for entry in table.get(name, ()):
                known_keys(entry, keys, f"[[{name}]] of a question for pairs")
        tasks, people, hint = table.get("tasks", []), table.get("workers", []), "Give a number above 0, e.g. 1."
        spread = np.repeat(
            [positive("sd", one.get("sd", 1.0), hint) for one in tasks],
            [whole("count", one.get("count", 1), 1, hint) for one in tasks],
        )
        many = [whole("count", one.get("count", 1), 1, hint) for one in people]
        right = np.repeat([positive("accuracy", one.get("accuracy", 1.0), hint) for one in people], many)
        if len(spread) < 2 or len(right) < 1 or not ((right > 0.5) & (right <= 1.0)).all() or "budget" not in table:
            raise ProblemError(
                "a problem of pairs needs a budget, two items and workers who are right more often than not.",
                "Give budget, [[tasks]] with count and sd, and [[workers]] with count and accuracy.",
            )
        supply = _each([whole("supply", one["supply"], 1, hint) if "supply" in one else None for one in people], many)

        def draw(seed: int) -> Recorded:
            rng = np.random.default_rng([seed, 11])
            return drawn_pairs(rng.normal(0.0, spread), right, rng, supply)

        return cls(draw, whole("budget", table["budget"], 1, hint), f"Pairs of {counted(len(spread), 'item')}")

    @classmethod
    def labels(cls, problem: Problem, labels: object) -> Drawn:
        """Of a problem of one label, of which so many are asked together."""
        many, channels = labels_asked(labels), [one.channel for one in problem.workers for _ in range(one.count)]
        facts = [one.prior for one in problem.classes]
        if not channels or None in channels or not all(isinstance(one, Fact) for one in facts):
            raise ProblemError(
                "several labels are drawn for workers with known channels and items with a fact prior.",
                'Give [[workers]] with accuracy, and prior = {kind = "fact", probability = 0.2}.',
            )
        true = [one.probabilities[1] for one in facts if isinstance(one, Fact)]
        share, K = np.repeat(true, [one.count for one in problem.classes]), problem.tasks
        supply = _each([one.supply for one in problem.workers], [one.count for one in problem.workers])
        known, bits = np.array(channels, dtype=np.float64), 2 ** np.arange(many)
        form = Form((Question("", "multi", tuple(f"label {k + 1}" for k in range(many))),))

        def draw(seed: int) -> Recorded:
            """Each label is true as often as its item's share, and workers answer by their channels."""
            rng, (worker, task) = np.random.default_rng([seed, 11]), (x.ravel() for x in np.indices((len(known), K)))
            truth = (rng.random((K, many)) < share[:, None]).astype(np.int64)
            said = rng.random((len(task), many)) < known[worker[:, None], truth[task], 1]
            answers = CrowdLabels(task, worker, said @ bits, K, len(known), 2)
            return Recorded(form, answers, (truth @ bits).astype(np.float64), supply=supply)

        return cls(draw, problem.budget, f"{counted(many, 'label')} of each of {counted(K, 'item')}")
