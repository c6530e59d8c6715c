"""The report of items in their order, and of workers, learnt from comparisons."""

from __future__ import annotations

from typing import Any

from nextlabel.crowd.pairs import LearntPairs
from nextlabel.prose import counted
from nextlabel.reporting.artifacts import to_eight_digits
from nextlabel.reporting.report import Report, Table, read_sentences

#: Rows of a table outside a page.
SHOWN = 20
SCORE = "score: the chance that an item beats one that is 1 lower is .73; sd: its standard deviation."


def pairs_report(found: LearntPairs, title: str, top: int | None = None, **fields: Any) -> Report:
    """The report; with ``top`` the pairs to compare next are those that tell who is among the best so many."""
    items, pairs = list(found.tasks()), found.next_pairs(10, top)
    workers = [{"worker": name, "comparisons": many, **one.as_dict()} for name, many, one in found.workers()]
    rows = [
        [one["item"], f"{one['rank']:,}", f"{one['score']:.3g}", f"{one['sd']:.3g}", f"{one['comparisons']:,}"]
        for one in items
    ]
    people = [
        [str(one["worker"]), f"{one['comparisons']:,}", f"{one['mean']:.2f} ({one['low']:.2f} to {one['high']:.2f})"]
        for one in workers
    ]
    counts = f"{counted(len(items), 'item')}, {counted(len(workers), 'worker')}"
    read = [one.as_dict() for one in found.read]
    return Report(
        title=counts,
        tables=[
            Table(title, ("item", "rank", "score", "sd", "comparisons"), rows, SCORE, rows[:SHOWN]),
            Table("Workers", ("worker", "comparisons", "says what they see"), people, brief=people[:SHOWN]),
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
