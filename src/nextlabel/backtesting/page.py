"""The page of a backtest."""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.backtesting.assumptions import assumptions
from nextlabel.backtesting.figure import accuracy_figure, savings_figure
from nextlabel.backtesting.result import Backtest
from nextlabel.backtesting.sentences import sentences
from nextlabel.backtesting.tables import accuracy_table, overlap_line, saving_table
from nextlabel.backtesting.verdicts import headline, opponents, percent_saved
from nextlabel.reporting.html import embedded, render_page


def backtest_page(found: Backtest, command: str, read: Sequence[str]) -> str:
    """The page to show around; ``read`` says what was in the files."""
    first = found.readouts[0]
    boxes = [
        (
            percent_saved(one.saved),
            f"fewer labels than {one.overlap} for every task by {one.overlap_readout}, at equal accuracy: {one.policy}",
        )
        for one in headline(found)
        if one.saved is not None and one.saved > 0
    ]
    saved = savings_figure(found)
    return render_page(
        "backtest",
        title="Backtest of recorded labels",
        lead=f"{found.tasks:,} tasks replayed under {len(found.policies)} policies.",
        command=command,
        boxes=[*boxes, (f"{found.ceilings[first]:.1%}", f"right with all labels, read out by {first}")],
        sentences=sentences(found),
        accuracy_figures=[embedded(accuracy_figure(found, name)) for name in found.readouts],
        savings_figure=None if saved is None else embedded(saved),
        readouts=[
            {
                "name": name,
                "accuracy": accuracy_table(found, name),
                "overlaps": overlap_line(found, name),
                "savings": [(other, *saving_table(found, name, other)) for other in opponents(found, name)],
            }
            for name in found.readouts
        ],
        assumptions=assumptions(found),
        read=read,
    )
