"""How many labels a policy needs for the accuracy of a fixed overlap, and how sure that is.

======== ========= ============ =====================================================================
symbol   code      shape        meaning
======== ========= ============ =====================================================================
U        budgets   (B,)         labels of the policy, rising
A(U)     curve     (reps, B)    its accuracy in each replication
a_k      level     (reps,)      accuracy of overlap k in the same replications, with L labels
U_k      --        --           where the mean of A, made monotone and linear in between, reaches the mean of a_k
======== ========= ============ =====================================================================

    saved = 1 - U_k / L.

The interval is a bootstrap over replications, the same ones for policy and overlap: what another drawing of the same
recorded labels might give, not what another crowd might. Guarantee: none beyond that. Where the curve ends below a_k
nothing is said to be saved; where it begins above a_k, ``saved`` is what the first budget saves, and there is more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints

DRAWS = 1000
ENDS = (0.025, 0.975)
#: A curve that rises by less than this from its first budget to its last is flat.
FLAT = 0.005


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


def saving(
    budgets: Ints, curve: Floats, level: Floats, labels: float, seed: int, draws: int = DRAWS
) -> dict[str, float | bool | None]:
    """The fields of ``Saving`` that numbers decide."""
    reps = len(level)
    needed = float(_reach(budgets, curve.mean(axis=0)[None, :], level.mean()[None])[0])
    weights = np.random.default_rng([seed, 95]).multinomial(reps, np.full(reps, 1.0 / reps), size=draws) / reps
    drawn = 1.0 - _reach(budgets, weights @ curve, weights @ level) / labels
    low, high = (float(np.quantile(drawn, end, method="inverted_cdf")) for end in ENDS)
    rising = np.maximum.accumulate(curve.mean(axis=0))
    ok = np.isfinite(needed)
    return {
        "labels": needed if ok else None,
        "saved": 1.0 - needed / labels if ok else None,
        "low": low if np.isfinite(low) else None,
        "high": high if np.isfinite(high) else None,
        "reached": float(np.isfinite(drawn).mean()),
        "at_first": bool(rising[0] >= level.mean()),
        "flat": bool(rising[-1] - rising[0] < FLAT),
    }


def _reach(budgets: Ints, curves: Floats, levels: Floats) -> Floats:
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
