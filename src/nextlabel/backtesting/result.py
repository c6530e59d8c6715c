"""What a backtest found: accuracy over budgets, how sure it is, and how many labels are saved.

========== ========= ==========================================================================
symbol     shape     meaning
========== ========= ==========================================================================
a_r(U)     (R, B)    accuracy in replication r, one random order of the labels (``by_order``)
q_x(U)     (K, B)    share of the followed replications in which task x came out right (``by_task``)
A(U)       (B,)      accuracy of a policy with U labels, the mean of a_r
a_k        --        accuracy of overlap k on the same tasks, with L labels
U_k        --        where the mean of A, made monotone and linear in between, reaches the mean of a_k
========== ========= ==========================================================================

Two things could have been otherwise: the order in which labels came, and which tasks these happened to be. Both are
crossed, every task is in every replication, and the variance of the accuracy is

    Var = Var_r(a_r) / R  +  Var_x(q_x) / K.

The second term also holds what is left of the first after averaging, so intervals are, if anything, a little wide.

    saved = 1 - U_k / L.

Its interval is a bootstrap over replications and over tasks, the same ones for policy and overlap. Where the curve ends
below a_k nothing is said to be saved; where it begins above a_k, ``saved`` is what the first budget saves, and there is
more. Guarantee: normal 95% intervals for other orders and other tasks of the same kind with the same crowd.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.backtesting.pilot import PilotFit
from nextlabel.model.estimate import Z95, Estimate
from nextlabel.simulation.replay import ReplaySetup


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Accuracy of one rule by one read-out; nan in the columns of budgets at which it was not read out."""

    by_order: Floats
    by_task: Floats

    def __post_init__(self) -> None:
        assert self.by_order.shape[1] == self.by_task.shape[1], "one column per budget"

    @property
    def mean(self) -> Floats:
        """(B,) accuracy."""
        return np.asarray(self.by_order.mean(axis=0), dtype=np.float64)

    def known(self, b: int) -> bool:
        """Whether there is an accuracy at this budget."""
        return not bool(np.isnan(self.by_order[0, b]))

    def at(self, b: int) -> Estimate:
        """Accuracy at one budget."""
        return _estimate(self.by_order[:, b], self.by_task[:, b])

    def minus(self, other: Curve, b: int, other_b: int) -> Estimate:
        """This accuracy less another rule's on the same tasks, and in the same replications where both have them."""
        tasks = self.by_task[:, b] - other.by_task[:, other_b]
        mine, its = self.by_order[:, b], other.by_order[:, other_b]
        if len(mine) == len(its):
            return _estimate(mine - its, tasks)
        one, two = Estimate.of(mine), Estimate.of(its)
        half = np.hypot(np.hypot(one.half_width, two.half_width), Estimate.of(tasks).half_width)
        return Estimate(one.mean - two.mean, float(half))

    def drawn(self, orders: Floats, tasks: Floats) -> Floats:
        """(draws, B) accuracy with replications and tasks weighted by the rows of ``orders`` and ``tasks``."""
        by_task = tasks @ (self.by_task - self.by_task.mean(axis=0))
        return np.asarray(orders @ self.by_order + by_task, dtype=np.float64)


def _estimate(orders: Floats, tasks: Floats) -> Estimate:
    spread = float(orders.var(ddof=1)) / len(orders) if len(orders) > 1 else 0.0
    between = float(tasks.var(ddof=1)) / len(tasks) if len(tasks) > 1 else 0.0
    return Estimate(float(orders.mean()), float(Z95 * np.sqrt(spread + between)))


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


@dataclass(frozen=True, slots=True)
class PolicyAccuracy:
    """One policy with one budget and one read-out."""

    policy: str
    readout: str
    budget: int
    labels_per_task: float
    labels_used: float
    accuracy: Estimate
    #: Accuracy less the index's, and less the first policy's, on the same tasks in the same replications.
    minus_index: Estimate | None
    minus_first: Estimate | None
    #: The accuracy that the model behind the read-out expects after these labels; None for votes.
    believed: float | None
    asked: bool


@dataclass(frozen=True, slots=True)
class Backtest:
    """Curves, fixed overlaps, the ceiling, and labels saved."""

    setting: ReplaySetup = field(repr=False)
    pilot: PilotFit = field(repr=False)
    truth: str
    known: int
    undecided: int
    ties: str
    policies: tuple[str, ...]
    #: Policies that choose without looking at the prior.
    without_prior: tuple[str, ...]
    readouts: tuple[str, ...]
    points: tuple[PolicyAccuracy, ...] = field(repr=False)
    overlaps: tuple[PolicyAccuracy, ...] = field(repr=False)
    ceilings: dict[str, float]
    savings: tuple[Saving, ...] = field(repr=False)
    replications: int
    seconds: float
    #: Workers who gave the labels; None if that is not known.
    workers: int | None = None
    #: Policies that learn workers, the replay that they were in, and whether they could turn workers away.
    crowd: tuple[str, ...] = ()
    replay: str = "task-first"
    turn_away: bool = False
    #: Whether a policy or a read-out looks at prior and threshold.
    uses_prior: bool = True
    #: The name of the tasks' features, where there are some.
    features: str | None = None

    def __str__(self) -> str:
        from nextlabel.backtesting.report import backtest_report

        return backtest_report(self).text()

    def _repr_html_(self) -> str:
        from nextlabel.backtesting.report import backtest_report

        return backtest_report(self).notebook()

    @property
    def tasks(self) -> int:
        """K."""
        return len(self.setting.recorded.gold)

    @property
    def rho(self) -> float:
        """Labels in flight; 0 where they come back at once."""
        rho = self.setting.arrival_rate / self.setting.completion_rate
        return 0.0 if rho < 1e-3 else rho

    def find(self, readout: str, policy: str, budget: int) -> PolicyAccuracy | None:
        """The accuracy of one policy with one budget, if it was played."""
        wanted = readout, policy, budget
        return next((one for one in self.points if (one.readout, one.policy, one.budget) == wanted), None)
