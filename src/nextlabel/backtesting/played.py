"""What a rule made of recorded labels: an accuracy curve for each read-out, whichever engine played it.

Counting rules and fixed overlaps are played by ``replays``; this module reads their outcomes out by posterior and
majority, and, in the replications whose tasks were followed one by one, by read-outs that ask who gave which label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.backtesting.collected import CollectedReadout
from nextlabel.backtesting.curves import Curve
from nextlabel.backtesting.readout import decisions, drawn_labels
from nextlabel.backtesting.replays import BacktestSetup, OutcomeCounts
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.simulation.replay import Recorded, accuracy_of_ends, credits

#: Replications in which every task is followed, and cells of the table that this makes.
MOST_FOLLOWED, MOST_CELLS = 20, 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRule:
    """One rule over rising budgets (for overlaps: numbers of labels per task), with the labels that it used."""

    name: str
    budgets: Ints
    used: Floats
    curves: dict[str, Curve] = field(default_factory=dict)
    #: (B,) the accuracy that the model behind a read-out expects after these labels, where it has an opinion.
    believed: dict[str, Floats] = field(default_factory=dict)


def followed(tasks: int, budgets: int, replications: int) -> int:
    """Replications whose tasks can be followed one by one."""
    return max(2, min(MOST_FOLLOWED, replications, MOST_CELLS // max(1, tasks * budgets)))


def judged(recorded: Recorded) -> Ints:
    """Rows of the tasks whose truth is known."""
    return np.flatnonzero(recorded.gold >= 0)


def count_votes(setting: BacktestSetup, played: OutcomeCounts, readouts: Iterable[str], ties: str) -> PlayedRule:
    """Curves of the read-outs that look at a task's counts alone."""
    rows = judged(setting.recorded)
    nodes = _nodes(setting, played, rows)
    curves, truth = {}, setting.recorded.gold[rows]
    for readout in readouts:
        credit = credits(decisions(readout, setting.prior, setting.threshold, setting.depth), ties)
        by_task = np.mean([credit[each, truth[:, None]] for each in nodes], axis=0)
        curves[readout] = Curve(accuracy_of_ends(played.ends, credit), by_task)
    above = setting.prior.above(setting.threshold, *triangle_counts(setting.depth))
    many = played.ends.sum(axis=(0, 3))
    believed = many @ np.maximum(above, 1.0 - above) / np.maximum(many.sum(axis=1), 1)
    return PlayedRule(played.name, played.budgets, played.used.mean(axis=0), curves, {"posterior": believed})


def _nodes(setting: BacktestSetup, played: OutcomeCounts, rows: Ints) -> list[Ints]:
    """For each followed replication (K, B) where each judged task ends, from how many of its labels it was given."""
    out = []
    for rep, taken in enumerate(played.taken):
        drawn = drawn_labels(setting.recorded, setting.order, setting.seed, rep)[rows]
        said = np.take_along_axis(setting.recorded.labels[rows], np.maximum(drawn, 0), axis=1)
        ones = np.cumsum(np.concatenate([np.zeros((len(rows), 1), dtype=np.int64), said == 1], axis=1), axis=1)
        mine = taken[:, rows].T
        out.append(mine * (mine + 1) // 2 + np.take_along_axis(ones, mine, axis=1))
    return out


def collected_curve(
    setting: BacktestSetup, played: OutcomeCounts, read_out: CollectedReadout, only: Sequence[int] | None
) -> Curve:
    """The curve of a read-out that sees who gave which label, at some budgets (nan at the others)."""
    rows = judged(setting.recorded)
    by_order = np.full(played.taken.shape[:2], np.nan)
    by_task = np.zeros((len(rows), len(played.budgets)))
    for rep, taken in enumerate(played.taken):
        drawn = drawn_labels(setting.recorded, setting.order, setting.seed, rep)
        for b, U in enumerate(played.budgets.tolist()):
            if only is None or U in only:
                right = read_out(drawn, taken[b])[rows]
                by_order[rep, b] = right.mean()
                by_task[:, b] += right / len(played.taken)
    return Curve(by_order, by_task)
