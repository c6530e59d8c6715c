"""The reports of what was learnt from answers other than a choice: numbers, ratings, several labels and pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.crowd.agreement import Agreement
from nextlabel.crowd.numbers import LearntNumbers
from nextlabel.crowd.pairs import LearntPairs
from nextlabel.crowd.questions import LearntLabels
from nextlabel.reporting.artifacts import to_eight_digits
from nextlabel.reporting.report import Report, Table, read_sentences
from nextlabel.reporting.style import BLUE, ORANGE, drawing
from nextlabel.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Workers in the table outside a page: those with the most labels, and those who are flagged.
SHOWN = 20
COLUMNS = {
    "worker": "{worker}", "labels": "{labels:,}", "bias": "{bias:+.3g}", "spread": "{spread:.3g}",
    "gain": "{gain:.2f} ({gain_low:.2f} to {gain_high:.2f})", "reliability": "{reliability:.2f}",
    "stands out": "{flags}",
}  # fmt: skip
NEAR = (
    "Against the known numbers of {known:,.0f} items: correlation {correlation:.3f} and root mean squared error "
    "{rmse:.3g}; of the labels' plain mean {mean_correlation:.3f} and {mean_rmse:.3g}."
)


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
    rows = [
        {
            "worker": one.name, "labels": one.labels, "bias": one.bias, "spread": one.spread, "gain": one.gain.mean,
            "gain_low": one.gain.low, "gain_high": one.gain.high, "reliability": one.reliability,
            "flags": "; ".join(one.flags),
        }
        for one in found.workers
    ]  # fmt: skip
    shown = [row | {"flags": ", ".join(one.flags)} for row, one in zip(rows, found.workers, strict=True)]
    more = [] if known is None else [NEAR.format_map(known)]
    flagged = sum(1 for one in found.workers if one.flags)
    counts = f"{counted(len(found.workers), 'worker')}, {counted(len(found.task_names), 'item')}"
    return Report(
        title=counts,
        tables=[
            Table.of(title, COLUMNS, shown, brief=lambda rows: [r for k, r in enumerate(rows) if k < SHOWN or r[-1]])
        ],
        sentences=[*found.sentences(), *more, *alike.sentences()],
        heading="Who the workers are",
        lead=f"{counts}, answers on the {found.answer}.",
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
            "workers.csv": to_eight_digits(rows),
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
    counts = f"{counted(len(workers), 'worker')}, {counted(len(found.task_names), 'item')}"
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


ITEMS = {
    "item": "{item}", "rank": "{rank:,}", "score": "{score:.3g}", "sd": "{sd:.3g}", "comparisons": "{comparisons:,}",
}  # fmt: skip
JUDGES = {
    "worker": "{worker}", "comparisons": "{comparisons:,}",
    "says what they see": "{mean:.2f} ({low:.2f} to {high:.2f})",
}  # fmt: skip
SCORE = "score: the chance that an item beats one that is 1 lower is .73; sd: its standard deviation."


def pairs_report(found: LearntPairs, title: str, top: int | None = None, **fields: Any) -> Report:
    """The report; with ``top`` the pairs to compare next are those that tell who is among the best so many."""
    items, pairs = list(found.tasks()), found.next_pairs(10, top)
    workers = [{"worker": name, "comparisons": many, **one.as_dict()} for name, many, one in found.workers()]
    counts = f"{counted(len(items), 'item')}, {counted(len(workers), 'worker')}"
    read = [one.as_dict() for one in found.read]
    return Report(
        title=counts,
        tables=[
            Table.of(title, ITEMS, items, SCORE, lambda rows: rows[:SHOWN]),
            Table.of("Workers", JUDGES, workers, brief=lambda rows: rows[:SHOWN]),
        ],
        sentences=[*found.sentences(), f"Compare next: {', '.join(f'{a} and {b}' for a, b in pairs[:3])}."],
        heading="The order of the items",
        lead=counts,
        facts=[(f"{found.discordant():.0%}", "of all pairs expected in the wrong order")],
        sections={"What was read": read_sentences(read)},
        fields={
            "answer": "pair", "tie": found.fit.tie, "discordant": found.discordant(), "items": items,
            "workers": workers, "next": [list(pair) for pair in pairs], **fields, "read": read,
        },
        files=lambda: {"items.csv": items, "workers.csv": to_eight_digits(workers)},
    )  # fmt: skip


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
