"""A backtest as rows and tables."""

from __future__ import annotations

from nextlabel.backtesting.result import Backtest, PolicyAccuracy
from nextlabel.backtesting.savings import Saving
from nextlabel.backtesting.sentences import sentences
from nextlabel.backtesting.verdicts import against, percent_saved, verdicts
from nextlabel.notebook import table_html
from nextlabel.reporting.artifacts import Row, text_table


def point_rows(found: Backtest, *, asked: bool = False) -> list[Row]:
    """One row for each policy, read-out and budget, then the overlaps, then the ceiling."""
    some = [one for one in found.points if one.asked or not asked]
    rows = [_row(one) for one in (*some, *found.overlaps)]
    total = int(found.setting.recorded.counts.sum())
    for readout, accuracy in found.ceilings.items():
        rows.append(
            {
                **dict.fromkeys(rows[0]),
                "policy": "all labels",
                "readout": readout,
                "budget": total,
                "labels_per_task": total / found.tasks,
                "labels_used": float(total),
                "accuracy": accuracy,
                "asked": True,
            }
        )
    return rows


def _row(one: PolicyAccuracy) -> Row:
    against = one.minus_index
    return {
        "policy": one.policy,
        "readout": one.readout,
        "budget": round(one.labels_used) if one.policy.startswith("overlap ") else one.budget,
        "labels_per_task": one.labels_per_task,
        "labels_used": one.labels_used,
        "accuracy": one.accuracy.mean,
        "half_width": one.accuracy.half_width,
        "minus_index": None if against is None else against.mean,
        "minus_index_half_width": None if against is None else against.half_width,
        "model_expects": one.believed,
        "asked": one.asked,
    }


def verdict_rows(found: Backtest) -> list[Row]:
    """One row for each read-out."""
    return [
        {
            "readout": one.readout,
            "policy": one.policy,
            "overlap": one.overlap,
            **{f"saved_against_{saving.overlap_readout}": saving.saved for saving in one.savings},
            "sentence": one.sentence,
        }
        for one in verdicts(found)
    ]


def saving_rows(found: Backtest) -> list[Row]:
    """One row for each policy, read-out, overlap and read-out of the overlap."""
    return [{name: getattr(one, name) for name in one.__slots__} for one in found.savings]


def accuracy_table(found: Backtest, readout: str) -> tuple[list[str], list[list[str]]]:
    """Policies down, asked budgets across; overlaps and the ceiling below."""
    points = [one for one in found.points if one.asked and one.readout == readout]
    budgets = sorted({one.budget for one in points})
    header = ["policy", *(f"{U / found.tasks:.3g} per task" for U in budgets)]
    at = {(one.policy, one.budget): one for one in points}
    rows = []
    for name in found.policies:
        cells = [at.get((name, U)) for U in budgets]
        if any(one is not None for one in cells):
            rows.append([name, *("" if one is None else with_interval(one) for one in cells)])
    return header, rows


def overlap_line(found: Backtest, readout: str) -> str:
    """Fixed overlaps and the ceiling in one line."""
    parts = [f"{one.budget}: {with_interval(one)}" for one in found.overlaps if one.readout == readout]
    total = found.setting.recorded.counts.mean()
    noun = "label" if total == 1 else "labels"
    passed = any(one.readout == readout and one.accuracy.mean > found.ceilings[readout] for one in found.points)
    what = "no ceiling: it helps to leave some workers' labels out" if passed else "the ceiling"
    end = f"all {total:.3g} {noun} per task: {found.ceilings[readout]:.3f} ({what})"
    return f"The same number of labels for every task by {readout}: {'; '.join(parts)}; {end}."


def with_interval(one: PolicyAccuracy) -> str:
    """Mean and half-width, short enough for four budgets in 80 columns."""
    return f"{one.accuracy.mean:.3f} ±" + f"{one.accuracy.half_width:.3f}".lstrip("0")


def saving_table(found: Backtest, readout: str, other: str) -> tuple[list[str], list[list[str]]]:
    """Labels saved by a read-out against each overlap read out by another one or the same."""
    mine = against(found, readout, other)
    ks = sorted({one.overlap for one in mine})
    accuracy = {one.overlap: one for one in mine}
    header = ["policy", *(f"overlap {k} ({accuracy[k].overlap_accuracy:.3f})" for k in ks)]
    at = {(one.policy, one.overlap): one for one in mine}
    rows = [
        [name, *(_saved_cell(at.get((name, k))) for k in ks)]
        for name in found.policies
        if any((name, k) in at for k in ks)
    ]
    return header, rows


def saving_caption(rows: list[list[str]]) -> str:
    """What the intervals of a table of savings mean."""
    open_end = any("(?" in cell for row in rows for cell in row)
    unknown = " A ? stands where some of the resampled sets do not get there at all." if open_end else ""
    return f"The interval is 95%, over orders and tasks.{unknown}\n"


def _saved_cell(one: Saving | None) -> str:
    if one is None:
        return ""
    if one.saved is None:
        return "not reached"
    more = "≥ " if one.at_first else ""
    low = "?" if one.low is None else percent_saved(one.low)
    high = "?" if one.high is None else percent_saved(one.high)
    return f"{more}{percent_saved(one.saved)} ({low} to {high})"


def backtest_text(found: Backtest) -> str:
    """The backtest in plain text: accuracy by the first read-out, and the answers in words."""
    title, (header, rows), notes = _summary(found)
    return text_table(title, header, rows, *notes)


def backtest_html(found: Backtest) -> str:
    """The same as notebooks show it."""
    title, (header, rows), notes = _summary(found)
    return table_html(title, header, rows, notes)


def _summary(found: Backtest) -> tuple[str, tuple[list[str], list[list[str]]], list[str]]:
    """Title, table and sentences."""
    first = found.readouts[0]
    title = f"{found.tasks:,} tasks replayed: accuracy, read out by {first}"
    return title, accuracy_table(found, first), [overlap_line(found, first), *sentences(found)]
