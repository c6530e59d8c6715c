"""The page, the tables and the sentences of a learnt crowd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from nextlabel.crowd.learnt import Estimate, LearntCrowd, LearntWorker
from nextlabel.prose import counted, listed
from nextlabel.reporting.html import embedded, render_page
from nextlabel.reporting.tables import to_eight_digits
from nextlabel.reporting.workers_figure import workers_figure


def worker_table(found: LearntCrowd, shown: Sequence[int], *, wide: bool) -> tuple[list[str], list[list[str]]]:
    """Header and rows of some workers; ``wide`` with the intervals of every number."""
    two = [f"{name} if {name}" for name in reversed(found.answers)] if len(found.answers) == 2 else []
    header = ["worker", "labels", "accuracy", *two, "worth", "stands out"]
    return header, [_cells(found.workers[k], wide) for k in shown]


def _cells(one: LearntWorker, wide: bool) -> list[str]:
    two = [x for x in (one.sensitivity, one.specificity) if x is not None]
    more = [_brief(x) if wide else f"{x.mean:.2f}" for x in two]
    return [one.name, f"{one.labels:,}", _brief(one.accuracy), *more, f"{one.worth:.3f}", ", ".join(one.flags)]


def _brief(estimate: Estimate) -> str:
    low, high = (f"{end:.2f}".removeprefix("0") for end in (estimate.low, estimate.high))
    return f"{estimate.mean:.2f} ({low}-{high})"


def worker_rows(found: LearntCrowd) -> list[dict[str, Any]]:
    """One row for each worker, as files have it."""
    rows = []
    for one in found.workers:
        row: dict[str, Any] = {"worker": one.name, "labels": one.labels}
        named = {"accuracy": one.accuracy, "balanced_accuracy": one.balanced}
        for truth, row_of in zip(found.answers, one.confusion, strict=True):
            named |= {f"says_{answer}_when_{truth}": x for answer, x in zip(found.answers, row_of, strict=True)}
        for name, estimate in named.items():
            row |= {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        row |= {"bits": one.bits, "worth": one.worth, "flags": "; ".join(one.flags)}
        rows.append(row)
    return to_eight_digits(rows)


def sentences(found: LearntCrowd) -> list[str]:
    """What was learnt, in plain English."""
    flags = Counter(flag for one in found.workers for flag in one.flags)
    no, yes = found.answers[0], found.answers[-1]
    two = f"'{yes} if {yes}', '{no} if {no}': how often they say so if it is true; " if len(found.answers) == 2 else ""
    out = [
        f"accuracy: chance that a label is right on tasks like these, with a 95% interval; {two}worth: tasks that one "
        "more label is expected to set right, on the task where it helps most."
    ]
    shares = listed([f"{name} {share:.0%}" for name, share in zip(found.answers, found.fit.share, strict=True)])
    out.append(f"Shares of the truths: {shares}.")
    if flags:
        said = listed([f"{flag} ({many})" for flag, many in flags.most_common()])
        out.append(f"Workers who stand out: {said}.")
    for one in found.copying:
        out.append(
            f"{one.workers[0]} and {one.workers[1]} gave the same answer to {one.alike} of the {one.shared} tasks that "
            f"both labelled; skill and hard tasks explain at most {one.excused:.1f} (p {one.p_value:.1g})."
        )
    if found.pairs > 0:
        result = "" if found.copying else " and nothing was found"
        out.append(
            f"{counted(found.pairs, 'pair')} of workers with 10 shared tasks or more looked at for copying{result}; "
            "the chance of one false alarm or more is at most 1%."
        )
    out.append(
        f"Expected accuracy {found.expected_accuracy:.1%}: the model's own word, which tends to be too high. "
        "'nextlabel audit' corrects it with a few tasks whose truth is found out."
    )
    return [*out, *found.notes]


def workers_page(found: LearntCrowd, command: str, read: Sequence[str], more: Sequence[str] = ()) -> str:
    """The page to show around; ``read`` says what was in the files, ``more`` is said besides."""
    flagged = sum(1 for one in found.workers if one.flags)
    return render_page(
        "workers",
        title="Who the workers are",
        lead=f"{counted(len(found.workers), 'worker')}, {counted(len(found.task_names), 'task')}, "
        f"{counted(int(found.labels_per_task.sum()), 'label')}.",
        command=command,
        boxes=[
            (f"{found.expected_accuracy:.1%}", "of the labels are right, by the model's own word"),
            (f"{flagged:,}", "workers stand out"),
        ],
        sentences=[*sentences(found), *more],
        skill_figure=embedded(workers_figure(found)),
        workers=worker_table(found, range(len(found.workers)), wide=True),
        read=read,
    )
