"""Points and savings read off curves: the budgets asked for, and labels saved against fixed overlaps."""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.backtesting.curves import Curve
from nextlabel.backtesting.played import PlayedRule
from nextlabel.backtesting.replays import FIXED
from nextlabel.backtesting.result import PolicyAccuracy
from nextlabel.backtesting.savings import Key, Saving, resampled, saving
from nextlabel.problem.estimate import Estimate


def accuracies(
    played: PlayedRule, readout: str, tasks: int, asked: Sequence[int], rivals: Sequence[PlayedRule | None]
) -> list[PolicyAccuracy]:
    """One policy's accuracy by one read-out at each of its budgets, paired with the rivals': index, first policy."""
    out = []
    curve = played.curves.get(readout)
    for b, U in enumerate(played.budgets.tolist() if curve is not None else ()):
        if curve is None or not curve.known(b):
            continue
        index, first = (_difference(played, other, readout, b) for other in rivals)
        used = float(played.used[b])
        out.append(
            PolicyAccuracy(
                policy=played.name if played.name != FIXED else f"overlap {U}",
                readout=readout,
                budget=U,
                labels_per_task=used / tasks,
                labels_used=used,
                accuracy=curve.at(b),
                minus_index=index,
                minus_first=first,
                believed=float(played.believed[readout][b]) if readout in played.believed else None,
                asked=U in asked,
            )
        )
    return out


def _difference(played: PlayedRule, rival: PlayedRule | None, readout: str, b: int) -> Estimate | None:
    """Accuracy less the rival's with the same budget, if that was played and read out the same way."""
    U = int(played.budgets[b])
    if rival is None or rival is played or readout not in rival.curves or U not in rival.budgets:
        return None
    other, at = rival.curves[readout], rival.budgets.tolist().index(U)
    return played.curves[readout].minus(other, b, at) if other.known(at) else None


def savings(found: Sequence[PlayedRule], fixed: PlayedRule, seed: int) -> list[Saving]:
    """Labels saved against every fixed overlap, by each read-out against each, where whole curves are known."""
    some: dict[Key, Curve] = {
        (one.name, readout): curve
        for one in (*found, fixed)
        for readout, curve in one.curves.items()
        if all(curve.known(b) for b in range(len(one.budgets)))
    }
    drawn, out = resampled(some, seed), []
    overlaps = [(b, k) for b, k in enumerate(fixed.budgets.tolist()) if k > 1]
    for one in found:
        for key in [key for key in some if key[0] == one.name]:
            for b, k in overlaps:
                for other in [other for name, other in some if name == fixed.name]:
                    level, levels = float(some[fixed.name, other].mean[b]), drawn[fixed.name, other][:, b]
                    labels = float(fixed.used[b])
                    numbers = saving(one.used, some[key].mean, drawn[key], level, levels, labels)
                    rest: dict[str, object] = dict(numbers)
                    out.append(Saving(one.name, key[1], k, other, level, labels, **rest))  # type: ignore[arg-type]
    return out
