"""The report of numbers, ratings or several labels that were learnt: the figure, the table and the sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.crowd.agreement import Agreement
from nextlabel.crowd.numbers import LearntNumbers, NumberWorker
from nextlabel.crowd.questions import LearntLabels
from nextlabel.prose import counted
from nextlabel.reporting.artifacts import to_eight_digits
from nextlabel.reporting.report import Report, Table, read_sentences
from nextlabel.reporting.style import BLUE, ORANGE, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Workers in the table outside a page: those with the most labels, and those who are flagged.
SHOWN = 20
HEADER = ("worker", "labels", "bias", "spread", "gain", "reliability", "stands out")


def numbers_report(
    found: LearntNumbers,
    alike: Agreement,
    title: str,
    gold: Mapping[str, str] | None = None,
    read: Sequence[Mapping[str, Any]] = (),
    **fields: Any,
) -> Report:
    """The report of items and workers; with ``gold``, how near the read-out and the plain mean come to it."""
    known = None if gold is None else found.against(gold)
    rows = [_cells(one) for one in found.workers]
    brief = [row for k, row in enumerate(rows) if k < SHOWN or row[-1]]
    more = []
    if known is not None:
        more.append(
            f"Against the known numbers of {known['known']:,.0f} items: correlation {known['correlation']:.3f} and "
            f"root mean squared error {known['rmse']:.3g}; of the labels' plain mean {known['mean_correlation']:.3f} "
            f"and {known['mean_rmse']:.3g}."
        )
    flagged = sum(1 for one in found.workers if one.flags)
    counts = [counted(len(found.workers), "worker"), counted(len(found.task_names), "item")]
    return Report(
        title=", ".join(counts),
        tables=[Table(title, HEADER, rows, brief=brief)],
        sentences=[*found.sentences(), *more, *alike.sentences()],
        heading="Who the workers are",
        lead=f"{', '.join(counts)}, answers on the {found.answer}.",
        facts=[(f"{found.fit.sd.mean():.3g}", "standard deviation of an item"), (f"{flagged:,}", "workers stand out")],
        figures=[(lambda: numbers_figure(found), "Estimates against plain means; each worker's bias and spread.")],
        sections={"What was read": read_sentences(read)},
        fields={
            "answer": found.answer.name,
            "power": found.fit.power,
            "origin": found.fit.origin,
            "gold": known,
            "agreement": alike.as_dict(),
            "workers": [one.as_dict() for one in found.workers],
            "tasks": list(found.tasks()),
            **fields,
            "read": read,
        },
        files=lambda: {
            "workers.csv": to_eight_digits([_row(one) for one in found.workers]),
            "tasks.csv": list(found.tasks()),
            "agreement.csv": alike.rows(),
            "workers.png": numbers_figure(found),
        },
    )  # fmt: skip


def labels_report(found: LearntLabels, title: str, read: Sequence[Mapping[str, Any]] = (), **fields: Any) -> Report:
    """The report of items of which any of some labels may be true, and of the workers."""
    workers = list(found.workers())
    header = ["worker", "labels", "balanced accuracy", *found.form.labels]
    rows = [[str(one["worker"]), f"{one['labels']:,}", *(f"{x:.2f}" for x in [*one.values()][2:])] for one in workers]
    counts = ", ".join([counted(len(workers), "worker"), counted(len(found.task_names), "item")])
    return Report(
        title=counts,
        tables=[Table(title, header, rows, brief=rows[:SHOWN])],
        sentences=[*found.sentences(), *found.agreement.sentences()],
        heading="Who the workers are",
        lead=f"{counts}, any of {counted(len(found.form.labels), 'label')}.",
        sections={"What was read": read_sentences(read)},
        fields={
            "answer": "multi", "labels": list(found.form.labels), "strength": found.fit.strength[0],
            "agreement": found.agreement.as_dict(), "workers": workers, "tasks": list(found.tasks()), **fields,
            "read": read,
        },
        files=lambda: {
            "workers.csv": workers, "tasks.csv": list(found.tasks()), "agreement.csv": found.agreement.rows(),
        },
    )  # fmt: skip


def _cells(one: NumberWorker) -> list[str]:
    gain = f"{one.gain.mean:.2f} ({one.gain.low:.2f} to {one.gain.high:.2f})"
    return [
        str(one.name), f"{one.labels:,}", f"{one.bias:+.3g}", f"{one.spread:.3g}", gain, f"{one.reliability:.2f}",
        ", ".join(one.flags),
    ]  # fmt: skip


def _row(one: NumberWorker) -> dict[str, Any]:
    gain = {"gain": one.gain.mean, "gain_low": one.gain.low, "gain_high": one.gain.high}
    return {
        "worker": one.name, "labels": one.labels, "bias": one.bias, "spread": one.spread, **gain,
        "reliability": one.reliability, "flags": "; ".join(one.flags),
    }  # fmt: skip


def numbers_figure(found: LearntNumbers) -> Figure:
    """The read-out of each item against the plain mean on the left; bias and spread of the workers on the right."""
    with drawing(1, 2, figsize=(11.0, 4.8)) as (figure, (left, right)):
        left.errorbar(found.means, found.fit.estimate, found.fit.sd, fmt="o", color=BLUE, alpha=0.5, markersize=3)
        left.set(xlabel="mean of the item's labels", ylabel="estimate, with one standard deviation")
        for one in found.workers:
            colour, marker = (ORANGE, "X") if one.flags else (BLUE, "o")
            right.plot(one.bias, one.spread, marker=marker, color=colour, alpha=0.6, linestyle="")
        right.set(xlabel="bias", ylabel="spread", title="Workers; crosses stand out")
    return figure
