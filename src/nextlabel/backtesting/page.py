"""The page of a backtest."""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.backtesting.figure import backtest_figure
from nextlabel.backtesting.result import Backtest
from nextlabel.backtesting.sentences import assumptions, headline, percent_saved, sentences, strongest
from nextlabel.backtesting.tables import accuracy_table, overlap_line, saving_table
from nextlabel.reporting.html import embedded, render_page


def backtest_page(found: Backtest, command: str, read: Sequence[str]) -> str:
    """The page to show around; ``read`` says what was in the files."""
    first = found.readouts[0]
    boxes = [
        (percent_saved(one.saved), f"fewer labels than overlap {one.overlap} at its accuracy, {one.policy}")
        for one in headline(found)
        if one.saved is not None and one.saved > 0
    ]
    return render_page(
        "backtest",
        title="Backtest of recorded labels",
        lead=f"{found.tasks:,} tasks replayed under {len(found.policies)} policies.",
        command=command,
        boxes=[*boxes, (f"{found.ceilings[first]:.1%}", f"with all labels, by {first}: the ceiling")],
        sentences=sentences(found),
        accuracy_figure=embedded(backtest_figure(found)),
        readouts=[
            {
                "name": name,
                "accuracy": accuracy_table(found, name),
                "overlaps": overlap_line(found, name),
                "savings": saving_table(found, name) if strongest(found, name) else None,
            }
            for name in found.readouts
        ],
        assumptions=assumptions(found),
        read=read,
    )
