"""Accuracies read off replays: curves over budgets, the points asked for, and labels saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.backtesting.readout import accuracy_of, dawid_skene, decisions, drawn_labels
from nextlabel.backtesting.replays import FIXED, BacktestSetup, OutcomeCounts
from nextlabel.backtesting.result import PolicyAccuracy
from nextlabel.backtesting.savings import Saving, saving
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.problem.estimate import Estimate
from nextlabel.simulation.replay import accuracy_of_ends, credits


def accuracy_curve(setting: BacktestSetup, played: OutcomeCounts, readout: str, ties: str) -> Floats:
    """(reps, B) accuracy of one policy, read off the counts of labels."""
    decision = decisions(readout, setting.prior, setting.threshold, setting.depth)
    return accuracy_of_ends(played.ends, credits(decision, ties))


def dawid_skene_curves(
    setting: BacktestSetup, workers: Ints, ties: str
) -> Callable[[OutcomeCounts, Sequence[int] | None], Floats]:
    """Dawid-Skene on the labels that a rule collected, at some of its budgets (nan at the others)."""
    orders: dict[int, Ints] = {}

    def fit(played: OutcomeCounts, only: Sequence[int] | None) -> Floats:
        out = np.full(played.taken.shape[:2], np.nan)
        for rep in range(len(out)):
            if rep not in orders:
                orders[rep] = drawn_labels(setting.recorded, setting.order, setting.seed, rep)
            for b, U in enumerate(played.budgets.tolist()):
                if only is None or U in only:
                    said = dawid_skene(setting.recorded, workers, orders[rep], played.taken[rep, b])
                    out[rep, b] = accuracy_of(said, setting.recorded.gold, ties)
        return out

    return fit


def accuracies(
    setting: BacktestSetup,
    played: OutcomeCounts,
    readout: str,
    curves: dict[tuple[str, str], Floats],
    asked: Sequence[int],
    index: OutcomeCounts | None,
) -> list[PolicyAccuracy]:
    """One policy's accuracy by one read-out at each of its budgets, paired with the index's if that was played."""
    curve, out = curves[played.name, readout], []
    for b, U in enumerate(played.budgets.tolist()):
        if np.isnan(curve[0, b]):
            continue
        against = None
        if index is not None and index is not played:
            at = index.budgets.tolist().index(U)
            against = Estimate.of(curve[:, b] - curves[index.name, readout][:, at])
        used = float(played.used[:, b].mean())
        out.append(
            PolicyAccuracy(
                policy=played.name if played.name != FIXED else f"overlap {U}",
                readout=readout,
                budget=U,
                labels_per_task=used / len(setting.recorded),
                labels_used=used,
                accuracy=Estimate.of(curve[:, b]),
                minus_index=against,
                believed=_believed(setting, played.ends[:, b]) if readout == "posterior" else None,
                asked=U in asked,
            )
        )
    return out


def _believed(setting: BacktestSetup, ends: Ints) -> float:
    """Mean of max(I, 1 - I) over the tasks with a known truth."""
    above = setting.prior.above(setting.threshold, *triangle_counts(setting.depth))
    many = ends.sum(axis=(0, 2))
    return float(many @ np.maximum(above, 1.0 - above) / many.sum())


def savings(
    found: Sequence[OutcomeCounts],
    fixed: OutcomeCounts,
    curves: dict[tuple[str, str], Floats],
    readouts: Sequence[str],
    seed: int,
) -> list[Saving]:
    """Labels saved against every fixed overlap, by each read-out against each."""
    out = []
    for played in found:
        for readout in readouts:
            for b, k in enumerate(fixed.budgets.tolist()):
                for other in readouts if k > 1 else ():
                    level, labels = curves[fixed.name, other][:, b], float(fixed.used[:, b].mean())
                    numbers = saving(played.budgets, curves[played.name, readout], level, labels, seed)
                    rest: dict[str, object] = dict(numbers)
                    out.append(
                        Saving(played.name, readout, k, other, float(level.mean()), labels, **rest)  # type: ignore[arg-type]
                    )
    return out
