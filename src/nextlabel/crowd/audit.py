"""How many labels are right: a random sample of tasks whose truth was found out corrects what a model expects.

====== ========= ===== =========================================================================
symbol code      shape meaning
====== ========= ===== =========================================================================
N      tasks     --    tasks with a label that the method was not told
n      audited   --    of these, drawn at random and audited
e      expected  (N,)  probability of each task's label, the method's own word
r      right     (n,)  1 where the audit found the label right, else 0
====== ========= ===== =========================================================================

    accuracy  =  mean_N(e) + mean_n(r - e)                                            [ABFJZ23]

Interval. With ``FEW`` audited tasks or fewer, or with fewer than ``LEAST`` right or wrong ones, it is exact: the
accuracies M / N under which drawing n of N tasks without replacement gives as many right ones, and as few, with a
chance above (1 - level) / 2 each (hypergeometric test inversion). Otherwise it is that of Student's t for r - e with
the finite-population factor 1 - n/N. Of several questions each has an audit of its own, about the items of which an
answer to it is read out; of all answers together the share is the questions' mean by their answers, and so are the ends
of its interval, at a level at which the intervals of all Q questions hold: 1 - (1 - level) / Q. Guarantee: the audited
tasks must be drawn at random, nothing is asked of the model; exact intervals hold at every n, the others approximately.
Cost: O(N + n log N).
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln, stdtrit

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.answers import Answer, Choice
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import folded
from nextlabel.files.labels import ResultTable, Said, read_results, read_said
from nextlabel.files.tables import Frame, TableSummary
from nextlabel.wording import counted, tallied

if TYPE_CHECKING:
    from nextlabel.crowd.learn import LearntCrowd

#: Audited tasks up to which, and right and wrong ones below which, the interval is exact.
FEW, LEAST = 100, 10


@dataclass(frozen=True, slots=True)
class Audit:
    """The share of right labels among ``tasks`` tasks, from ``audited`` of them.

    ``accuracy`` is the corrected estimate, ``low`` and ``high`` are the ends of its interval at ``level``, ``expected``
    is what the method expected of all tasks, ``expected_audited`` of the audited ones, ``right`` counts the audited
    labels that are right; ``method`` is ``exact`` or ``prediction-powered``. ``read`` tells what was in the files.
    Of several questions the shares are those of all answers, ``right`` items are right in each, and ``questions`` has
    the audit of each by its name.
    """

    accuracy: float
    low: float
    high: float
    level: float
    expected: float
    expected_audited: float
    tasks: int
    audited: int
    right: int
    method: str
    read: tuple[dict[str, Any], ...] = ()
    questions: dict[str, Audit] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """The result in plain English."""
        what, each = ("label", "") if not self.questions else ("form", " in every answer")
        whole = counted(self.tasks, "task") if not self.questions else f"answers to {counted(self.tasks, 'item')}"
        out = [
            f"{self.right:,} of {counted(self.audited, f'audited {what}')} are right{each}. Of all {whole}, "
            f"{self.accuracy:.1%} are right, with a {self.level:.0%} interval from {self.low:.1%} to {self.high:.1%}.",
        ]
        gap = f"The method itself expected {self.expected:.1%}"
        if self.expected > self.high:
            out.append(f"{gap}, above the interval: its probabilities are too sure.")
        elif self.expected < self.low:
            out.append(f"{gap}, below the interval: its probabilities are not sure enough.")
        else:
            out.append(f"{gap}, which the audit does not contradict.")
        out.append(
            "This holds whatever the model, if the audited tasks were drawn at random and their truth was not used for "
            "the labels. A bound on what any rule could reach is not corrected by it."
        )
        return out

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def audit(
    expected: ResultTable | LearntCrowd | str | os.PathLike[str] | Frame | Sequence[float] | Floats,
    audited: Any,
    *,
    level: float = 0.95,
    task: str = "task",
    label: str = "label",
) -> Audit:
    """The accuracy of labels, corrected by an audit of tasks that were drawn at random.

    ``expected`` are the results: a crowd that ``learn_crowd`` has learnt, or a path or data frame with one row per task
    (task, label, probability; as ``nextlabel campaign export`` and ``nextlabel workers --save`` write it). ``audited``
    has the truth of some tasks (task, label). Or ``expected`` are the probabilities alone, and ``audited`` is an array
    of the same length: 1 where the label was found right, 0 where wrong, nan where the task was not audited. ``task``
    and ``label`` name the columns.

    >>> found = audit([0.9] * 100, [1] * 18 + [0] * 2 + [float("nan")] * 80)
    >>> round(found.accuracy, 3), found.right, found.method
    (0.9, 18, 'exact')
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level:g}.", "Give a number between 0 and 1, e.g. 0.95.")
    if isinstance(expected, np.ndarray | Sequence) and not isinstance(expected, str):
        e, seen = np.asarray(expected, dtype=np.float64), np.asarray(audited, dtype=np.float64)
        if e.ndim != 1 or e.shape != seen.shape or not ((e >= 0) & (e <= 1)).all():
            raise InputError(
                f"expected has the shape {e.shape} and audited the shape {seen.shape}.",
                "Give a probability for each task, and 1, 0 or nan for each task.",
            )
        known = ~np.isnan(seen)
        return estimate(e, known, seen[known] > 0.5, level)
    results = _results(expected, task, label)
    if all(str(one).startswith("{") for one in results.labels):
        raise InputError(
            "the results are answers to several questions, and have one probability for all of a task's.",
            "Audit the campaign, which knows each: nextlabel campaign audit ID.",
        )
    known, right, report = _compare(results, read_said(audited, task, label))
    of = ~results.told
    read = [] if not results.table.name else [results.as_dict()]
    return estimate(results.probability[of], known[of], right[of][known[of]], level, (*read, report))


def estimate(e: Floats, known: Bools, right: Bools, level: float, read: tuple[dict[str, Any], ...] = ()) -> Audit:
    """The audit of tasks with expected accuracies ``e`` (N,): ``known`` (N,) marks those whose truth was found out."""
    N, n, x = len(e), int(known.sum()), int(right.sum())
    if n == 0:
        raise InputError("no task was audited.", "Give the truth of at least one task that has a result.")
    apart = right - e[known]
    accuracy = float(e.mean() + apart.mean())
    if n <= FEW or min(x, n - x) < LEAST:
        method = "exact"
        low, high = exact_interval(N, n, x, level)
    else:
        method = "prediction-powered"
        error = float(np.sqrt(apart.var(ddof=1) / n * (1.0 - n / N)))
        half = float(stdtrit(n - 1, 0.5 + 0.5 * level)) * error
        low, high = max(x / N, accuracy - half), min(1.0 - (n - x) / N, accuracy + half)
    accuracy = min(max(accuracy, low), high)
    ours = float(e.mean()), float(e[known].mean())
    return Audit(accuracy, low, high, level, *ours, N, n, x, method, read)


def audited_accuracy(
    beliefs: Floats, audited: Mapping[int, int], gold: Ints | None = None, answers: Answer | None = None
) -> Audit | None:
    """The accuracy of all tasks, from the true answers of some that were drawn at random: task number to answer.

    Tasks with ``gold`` that is not negative are left out: their truth was not found by labels.
    """
    answers = Choice(()) if answers is None else answers
    truth = np.full(len(beliefs), -1)
    truth[list(audited)] = list(audited.values())
    if gold is not None:
        beliefs, truth = beliefs[gold < 0], truth[gold < 0]
    known = truth >= 0
    if not known.any():
        return None
    parts = [
        (name, e[asked], known[asked], right[asked & known])
        for name, e, right in answers.judged(beliefs, truth)
        for asked in (~np.isnan(e),)
    ]
    if len(parts) == 1:
        return estimate(*parts[0][1:], 0.95)
    return _together(parts, known, answers.agrees(answers.best(beliefs), truth), 0.95)


def _together(parts: Sequence[tuple[str, Floats, Bools, Bools]], known: Bools, right: Bools, level: float) -> Audit:
    """The audit of several questions: name, chances, audited items and which are right of each."""
    own = {name: estimate(e, audited, hits, level) for name, e, audited, hits in parts if audited.any()}
    shares, weights = [], [len(e) for _, e, _, _ in parts]
    for name, e, audited, hits in parts:
        if name in own:
            wide, one = estimate(e, audited, hits, 1.0 - (1.0 - level) / len(parts)), own[name]
            shares.append((one.accuracy, wide.low, wide.high, one.expected, one.expected_audited))
        else:  # nobody knows
            mean = float(e.mean()) if len(e) else 0.0
            shares.append((mean, 0.0, 1.0, mean, mean))
    accuracy, low, high, mean, seen = np.average(shares, axis=0, weights=weights).tolist()
    method = next((one.method for one in own.values() if one.method != "exact"), "exact")
    N, n, x = len(known), int(known.sum()), int(right[known].sum())
    return Audit(accuracy, low, high, level, mean, seen, N, n, x, method, questions=own)


def exact_interval(N: int, n: int, x: int, level: float) -> tuple[float, float]:
    """Shares M / N that ``x`` right ones among ``n`` of N drawn without replacement do not rule out."""

    def first(low: int, high: int, x: int) -> int:
        """The smallest M from ``low`` on under which so many draws or more of M are likely enough."""
        some = range(low, high)
        return low + bisect_left(some, True, key=lambda M: hypergeometric(N, M, n, np.arange(x, n + 1)).sum() > tail)

    tail = 0.5 * (1.0 - level)
    # the same with right and wrong exchanged
    return first(x, N - (n - x), x) / N, (N - first(n - x, N - x, n - x)) / N


def hypergeometric(items: int, marked: int, draws: int, h: Ints) -> Floats:
    """P(h of ``draws`` drawn without replacement are among the ``marked`` ones of so many items)."""
    possible = (h <= marked) & (h <= draws) & (draws - h <= items - marked)
    at = np.where(possible, h, max(0, draws - (items - marked)))
    logs = _log_choose(marked, at) + _log_choose(items - marked, draws - at) - _log_choose(items, draws)
    return np.where(possible, np.exp(logs), 0.0)


def _log_choose(n: int, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _results(expected: Any, task: str, label: str) -> ResultTable:
    if isinstance(expected, ResultTable):
        return expected
    from nextlabel.crowd.learn import LearntCrowd  # it uses ``exact_interval``

    if isinstance(expected, LearntCrowd):
        return ResultTable(
            expected.task_names,
            tuple(expected.predict()),
            expected.fit.beliefs.max(axis=1),
            expected.gold >= 0,
            TableSummary(),
        )
    return read_results(expected, task=task, label=label)


def _compare(results: ResultTable, found: Said) -> tuple[Bools, Bools, dict[str, Any]]:
    """Which results were audited, which of them are right, and what was read."""
    name = found.table.name
    words = [folded(label) for label in results.labels]
    hint = "Give the truth of tasks that the results have, with the same names, and that were not gold before."
    there = found.by_number(results.tasks, "audited task that has a result", "results", hint)
    truth = {k: folded(said) for k, said in there.items() if not results.told[k]}
    unknown, told = len(found.labels) - len(there), len(there) - len(truth)
    if truth and not set(words) & set(truth.values()):
        raise FileFormatError(
            f"no label of {name} is a label of the results: {min(truth.values())!r} against {min(words)!r}.",
            "Use the same words for labels in both files.",
        )
    known, right = np.zeros(len(results), dtype=np.bool_), np.zeros(len(results), dtype=np.bool_)
    known[list(truth)] = True
    right[list(truth)] = [words[k] == said for k, said in truth.items()]
    left = tallied(
        (unknown, "audited task", "without a result left out."),
        (told, "audited task", "that the method was told left out."),
    )
    sentences = [f"{name}: {counted(len(truth), 'audited task')}.", *left]
    return known, right, found.table.as_dict() | {"unknown_tasks": unknown, "told": told, "sentences": sentences}
