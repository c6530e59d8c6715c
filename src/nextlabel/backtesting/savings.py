"""How many labels a policy needs for the accuracy of a fixed overlap, and how sure that is.

======== ========= ============ =====================================================================
symbol   code      shape        meaning
======== ========= ============ =====================================================================
U        budgets   (B,)         labels of the policy, rising
A(U)     curve     --           its accuracy, by order and by task (``curves``)
a_k      level     --           accuracy of overlap k on the same tasks, with L labels
U_k      --        --           where the mean of A, made monotone and linear in between, reaches the mean of a_k
======== ========= ============ =====================================================================

    saved = 1 - U_k / L.

The interval is a bootstrap over replications and over tasks, the same ones for policy and overlap: what other orders of
the labels and other tasks of the same kind might give, not what another crowd might. Guarantee: none beyond that. Where
the curve ends below a_k nothing is said to be saved; where it begins above a_k, ``saved`` is what the first budget
saves, and there is more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.backtesting.curves import Curve

#: Policy and read-out.
Key = tuple[str, str]
DRAWS = 1000
ENDS = (0.025, 0.975)
#: A curve that rises by less than this from its first budget to its last is flat.
FLAT = 0.005
#: Weights of tasks that are held at once.
MOST_WEIGHTS = 20_000_000


@dataclass(frozen=True, slots=True)
class Saving:
    """Labels saved against one overlap; shares of the overlap's labels, None where the curve does not get there."""

    policy: str
    readout: str
    overlap: int
    overlap_readout: str
    overlap_accuracy: float
    overlap_labels: float
    labels: float | None
    saved: float | None
    low: float | None
    high: float | None
    #: Share of bootstrap draws in which the accuracy is reached.
    reached: float
    at_first: bool
    flat: bool


def resampled(some: Mapping[Key, Curve], seed: int, draws: int = DRAWS) -> dict[Key, Floats]:
    """(draws, B) accuracies of each curve with tasks and replications resampled.

    Tasks are the same for all curves; replications are for those that have equally many.
    """
    out = {key: np.empty((draws, curve.by_order.shape[1])) for key, curve in some.items()}
    sizes = {len(curve.by_order) for curve in some.values()}
    orders = {many: _weights(np.random.default_rng([seed, 95, many]), many, draws) for many in sizes}
    tasks = max((len(curve.by_task) for curve in some.values()), default=1)
    rng, size = np.random.default_rng([seed, 96]), max(1, MOST_WEIGHTS // tasks)
    for first in range(0, draws, size):
        rows = slice(first, min(first + size, draws))
        weights = _weights(rng, tasks, rows.stop - first)
        for key, curve in some.items():
            out[key][rows] = curve.drawn(orders[len(curve.by_order)][rows], weights)
    return out


def _weights(rng: np.random.Generator, many: int, draws: int) -> Floats:
    return np.asarray(rng.multinomial(many, np.full(many, 1.0 / many), size=draws) / many, dtype=np.float64)


def saving(
    budgets: Floats, mean: Floats, drawn: Floats, level: float, levels: Floats, labels: float
) -> dict[str, float | bool | None]:
    """The fields of ``Saving`` that numbers decide, from the curve, the overlap's level, and both resampled."""
    needed = float(_reach(budgets, mean[None, :], np.array([level]))[0])
    saved = 1.0 - _reach(budgets, drawn, levels) / labels
    low, high = (float(np.quantile(saved, end, method="inverted_cdf")) for end in ENDS)
    rising = np.maximum.accumulate(mean)
    ok = np.isfinite(needed)
    return {
        "labels": needed if ok else None,
        "saved": 1.0 - needed / labels if ok else None,
        "low": low if np.isfinite(low) else None,
        "high": high if np.isfinite(high) else None,
        "reached": float(np.isfinite(saved).mean()),
        "at_first": bool(rising[0] >= level),
        "flat": bool(rising[-1] - rising[0] < FLAT),
    }


def _reach(budgets: Floats, curves: Floats, levels: Floats) -> Floats:
    """(draws,) where each curve, made monotone, reaches its level; inf where it does not."""
    rising = np.maximum.accumulate(curves, axis=1)
    there = rising >= levels[:, None] - 1e-12
    k = there.argmax(axis=1)
    before = np.maximum(k - 1, 0)
    each = np.arange(len(k))
    low, high = rising[each, before], rising[each, k]
    share = np.where(high > low, (levels - low) / np.where(high > low, high - low, 1.0), 0.0)
    at = budgets[before] + np.clip(share, 0.0, 1.0) * (budgets[k] - budgets[before])
    return np.where(there.any(axis=1), at, np.inf)
