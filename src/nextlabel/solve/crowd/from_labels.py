"""What any rule can still do with more labels of workers whose labels are recorded: the bound after the first labels.

======== ========= =============== ========================================================================
symbol   code      shape           meaning
======== ========= =============== ========================================================================
A        channels  (M, C, C)       a whole crowd drawn from the posterior (``posterior``)
p_x(A)   beliefs   (tasks, C)      what the recorded labels say about each task if that is the crowd
U, N     budget    (), (M,)        labels still to come in all, and those that each worker can give
V        values    (R, G)          values on a grid of beliefs, R candidates, at least the reward
c_m      price     (M,)            the least that a label of m must cost, so that it gains nothing anywhere
======== ========= =============== ========================================================================

    c_m = max_i ( sum_e weight[m, i, e] V(to[m, i, e]) - V(i) )^+
    bound(A) = min over the candidates V of   sum_x V(p_x(A))  +  the U dearest of the labels N, each at its c_m

Whatever V >= R is, it satisfies V >= T V at the costs c (docs/theory_workers.md, sections 4 and 6); with the price of
the U-th label as lam and the rest as nu_m the bound of the relaxation follows. So V may come from anywhere: it is the
optimum for a few of the crowds drawn, their workers merged into a few types (``relaxation``), and each crowd takes the
best of these. With two answers c_m, which is convex in the channel, is read off a lattice of channels, where
interpolation errs upwards: cost depends neither on the number of tasks nor on that of workers.

    E[ bound(A) ]  <=  upper_limit(bounds of the crowds drawn)       with probability ``CONFIDENCE`` over the draws

which holds for any law of a bound between 0 and 1 (a test by betting): a rare crowd that no draw has shown is allowed
for. Guarantee: that limit, if the model is right: answers independent given the truth, workers as the prior says, no
more labels of anybody than assumed. Cost: ``CROWDS`` chains, and some milliseconds for each crowd.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from nextlabel.arrays import Floats
from nextlabel.crowd.fit import crowd_labels
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError
from nextlabel.files.labels import Gold, LabelTable, as_gold, as_label_table
from nextlabel.files.tables import Frame
from nextlabel.kernels.crowd_grid import Chain, SimplexGrid, place
from nextlabel.model.tasks import whole
from nextlabel.solve.crowd.cutting_planes import Limits
from nextlabel.solve.crowd.posterior import CrowdPosterior, DrawnCrowd
from nextlabel.solve.crowd.relaxation import solve_interior
from nextlabel.solve.crowd.single_task import SingleTask, chain_of, make_grid
from nextlabel.solve.progress import Progress

#: Crowds that are drawn, and how sure the limit of the mean of their bounds is.
CROWDS, CONFIDENCE = 100, 0.95
#: Crowds that are solved, their workers in so many types, to this accuracy.
SOLVED, TYPES, TOLERANCE = 8, 8, 1e-5
#: Grid points by the number of answers, about; further answers have as many as the last.
POINTS = {2: 200, 3: 253, 4: 455, 5: 715}
#: Channels of two answers are read off a lattice of so many steps for each truth; of more answers, so many workers,
#: drawn by lot for each crowd, stand for all.
STEPS, MOST_WORKERS = 25, 64
#: Added to every price for rounding.
ROUNDING = 1e-12
#: Shares of its capital that the test bets.
BETS = np.geomspace(0.02, 1.0, 8)


def upper_limit(values: Floats) -> float:
    """A number that the mean of the law of independent ``values`` in 0 to 1 exceeds with chance 1 - CONFIDENCE at most.

    If the mean is m or more, a capital that is multiplied by 1 + b (m - x)/(1 - m) at each value x does not grow in
    expectation, and exceeds 1/(1 - CONFIDENCE) with that chance at most; the mean over several b neither.
    """
    low, high = min(float(values.mean()), 1.0 - 1e-9), 1.0
    while high - low > 1e-9:
        m = 0.5 * (low + high)
        with np.errstate(divide="ignore"):  # a bet that was lost altogether
            grown = np.log(np.maximum(1.0 + BETS[:, None] * (m - values) / (1.0 - m), 0.0)).sum(axis=1)
        if logsumexp(grown) - np.log(len(BETS)) >= -np.log(1.0 - CONFIDENCE):
            high = m
        else:
            low = m
    return high


class CrowdSupply(NamedTuple):
    """Labels that each worker can still give (W,), those that people who have not come will give, and how many come."""

    labels: Floats
    newcomers: float = 0.0
    people: int = 0


@dataclass(frozen=True, slots=True)
class BoundFromLabels:
    """No rule gets more than ``per_task`` of the tasks right in expectation with ``budget`` more labels.

    ``now`` is the share expected to be right without them, ``mean`` the mean of the bounds of the ``crowds`` drawn, of
    which ``per_task`` is the limit with that ``confidence``; ``price`` is what one more label can add, over all tasks.
    """

    per_task: float
    value: float
    mean: float
    now: float
    budget: int
    arrivals: int
    price: float
    crowds: int
    confidence: float
    assumes: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def sentences(self) -> list[str]:
        """What may be said of it."""
        return [
            f"With {self.budget:,} more labels of these workers no rule gets more than {self.per_task:.2%} of the "
            f"tasks right in expectation (now {self.now:.2%}), if the model holds. {self.assumes}"
        ]


def bound_from_labels(
    labels: LabelTable | str | os.PathLike[str] | Frame,
    budget: int,
    gold: Gold | str | os.PathLike[str] | Frame | None = None,
    *,
    arrivals: int | None = None,
    prior: CrowdPrior | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> BoundFromLabels:
    """Bound what ``budget`` more labels can do, from the labels given so far and who gave them.

    ``labels`` and ``gold`` are as in ``learn_crowd``. ``arrivals`` is the number of workers still to come, who come as
    often as they did; by default as many as labels, so that nobody can be turned away. Without a ``prior`` what the
    crowd is like is learnt from the labels.
    """
    begin = perf_counter()
    whole("budget", budget, 1, "Give the number of labels still to buy, e.g. --budget 1000.")
    coming = budget if arrivals is None else arrivals
    whole("arrivals", coming, 1, "Give the number of workers still to come, e.g. --arrivals 2000.")
    if coming < budget:
        raise InputError(
            f"{coming:,} arrivals cannot give {budget:,} labels.", "Give at least as many arrivals as labels to buy."
        )
    table = as_label_table(labels)
    truth, data = as_gold(gold, table).label, crowd_labels(table)
    posterior = CrowdPosterior(data, prior or CrowdPrior.default(data.answers), truth)
    supply = CrowdSupply(coming * np.bincount(data.worker, minlength=data.workers) / len(data.task))
    found = bound_crowds(posterior, supply, budget, data.tasks, seed=seed, progress=progress)
    away = "nobody is turned away" if coming == budget else f"workers may be turned away, {coming:,} come"
    return BoundFromLabels(
        found.limit, found.limit * data.tasks, float(found.values.mean()), found.now, budget, coming, found.price,
        len(found.values), CONFIDENCE,
        "Assumed: each worker answers by a channel of their own, independently given the truth; the workers of the "
        f"record keep coming as often as they did, and {away}; their channels are revealed, which can only help. The "
        f"number is a {CONFIDENCE:.0%} confidence limit of the mean over {len(found.values)} crowds drawn from what "
        "the labels say about the workers. It is not corrected by an audit.",
        perf_counter() - begin,
    )  # fmt: skip


class CrowdsBound(NamedTuple):
    """The ``limit`` of the mean of the bounds ``values`` of the crowds drawn, per task; ``now`` is without a label."""

    limit: float
    values: Floats
    now: float
    price: float


def bound_crowds(
    posterior: CrowdPosterior,
    supply: CrowdSupply,
    budget: float,
    tasks: int,
    *,
    crowds: int = CROWDS,
    seed: int = 0,
    progress: Progress | None = None,
    utility: Floats | None = None,
) -> CrowdsBound:
    """The bound for ``tasks`` tasks with that posterior, of crowds drawn from it.

    With a ``utility`` (answers, truths) a task is worth that of the answer read out, in place of 1 if it is right.
    """
    each = np.append(supply.labels, np.full(supply.people, supply.newcomers / max(supply.people, 1))) / tasks
    U, able, drawn = budget / tasks, np.flatnonzero(each > 0), list[tuple[DrawnCrowd, Floats, Floats]]()
    for number in range(crowds):
        crowd = posterior.draw(seed, number, supply.people)
        C = crowd.beliefs.shape[1]
        chosen = able
        if C > 2 and len(able) > MOST_WORKERS:
            chosen = np.random.default_rng([seed, number, 1]).choice(able, MOST_WORKERS, replace=False)
        drawn.append((crowd, crowd.channels[chosen], each[chosen] * (each.sum() / max(each[chosen].sum(), 1e-300))))
        if progress is not None:
            progress(0.9 * (number + 1) / crowds)
    u = np.eye(C) if utility is None else utility
    least = float(u.min())
    scale = max(float(u.max()) - least, 1e-12)
    worth = (u - least) / scale  # in 0 to 1
    grid = grid_for(C)
    stop, told = (grid.points @ worth.T).max(axis=1), grid.points @ worth.max(axis=0)
    masses = np.zeros((crowds, len(grid.points)))
    for mass, (crowd, _, _) in zip(masses, drawn, strict=True):
        place(grid, np.ascontiguousarray(crowd.beliefs), crowd.weights, mass)
    some = zip(masses[:SOLVED], drawn, strict=False)
    values = [_solved(grid, stop, told, mass, channel, N, U) for mass, (_, channel, N) in some]
    V = np.array([*values, told])  # the last one: all truths are told
    prices = _Prices(grid, V)
    bounds, marginal = np.empty(crowds), np.empty(crowds)
    for k, (mass, (_, channel, N)) in enumerate(zip(masses, drawn, strict=True)):
        found, last = _dearest(prices.of(channel), N, U)
        total = V @ mass + found
        best = int(total.argmin())
        bounds[k], marginal[k] = min(float(total[best]), 1.0), last[best]
    if posterior.whole:
        mean = np.mean([crowd.beliefs for crowd, _, _ in drawn], axis=0)
        now = float(drawn[0][0].weights @ (mean @ worth.T).max(axis=1))
    else:  # every crowd has looked at tasks of its own
        now = float(np.mean([crowd.weights @ (crowd.beliefs @ worth.T).max(axis=1) for crowd, _, _ in drawn]))
    limit, price = least + scale * upper_limit(bounds), scale * float(marginal.mean())
    return CrowdsBound(limit, least + scale * bounds, least + scale * now, price)


@lru_cache(maxsize=8)
def grid_for(answers: int) -> SimplexGrid:
    """The grid of beliefs."""
    grid: SimplexGrid = make_grid(answers, POINTS.get(answers, max(POINTS.values())))
    return grid


def _solved(
    grid: SimplexGrid, stop: Floats, told: Floats, mass: Floats, channel: Floats, N: Floats, U: float
) -> Floats:
    """(G,) values near the optimum for a crowd with its workers merged into a few types."""
    C = channel.shape[1]
    if not len(channel) or U <= 0:
        return stop
    order = np.argsort(channel.diagonal(axis1=1, axis2=2).sum(axis=1), kind="stable")
    before = np.cumsum(N[order]) - 0.5 * N[order]
    kind = np.minimum((before / N.sum() * TYPES).astype(np.int64), TYPES - 1) if len(N) > TYPES else np.arange(len(N))
    kinds, kind = np.unique(kind, return_inverse=True)
    supply = np.bincount(kind, N[order]).astype(np.float64)
    merged = np.zeros((len(kinds), C, C))
    np.add.at(merged, kind, N[order, None, None] * channel[order])
    merged /= supply[:, None, None]
    chain = Chain(*chain_of(grid, merged), stop)
    task = SingleTask(grid, merged, chain, told, mass)
    solved = solve_interior(task, Limits(U, supply, np.zeros(len(supply))), TOLERANCE)
    return np.asarray(np.maximum(_convex(grid.points[:, 1], solved.V) if C == 2 else solved.V, stop))


def _convex(x: Floats, V: Floats) -> Floats:
    """The largest convex function below V."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and (V[kept[-1]] - V[kept[-2]]) * (x[i] - x[kept[-2]]) >= (V[i] - V[kept[-2]]) * (
            x[kept[-1]] - x[kept[-2]]
        ):
            kept.pop()
        kept.append(i)
    return np.asarray(np.interp(x, x[kept], V[kept]))


def _least(grid: SimplexGrid, V: Floats, channel: Floats) -> Floats:
    """(R, M) the least price of a label of each channel under each V."""
    to, weight = chain_of(grid, channel)
    return np.asarray([np.maximum(np.einsum("mie,mie->mi", weight, v[to]) - v, 0.0).max(axis=1) for v in V]) + ROUNDING


class _Prices:
    """c_m for any channels under the candidates V."""

    def __init__(self, grid: SimplexGrid, V: Floats) -> None:
        self._grid, self._V = grid, V
        if len(grid.points[0]) == 2:
            coin = np.linspace(0.0, 1.0, STEPS + 1)
            s, t = (x.ravel() for x in np.meshgrid(coin, coin, indexing="ij"))
            lattice = np.stack([np.stack([s, 1.0 - s], 1), np.stack([1.0 - t, t], 1)], 1)
            self._table = _least(grid, V, lattice).reshape(len(V), STEPS + 1, STEPS + 1)

    def of(self, channel: Floats) -> Floats:
        """(R, M)."""
        if len(self._grid.points[0]) > 2:
            return _least(self._grid, self._V, channel)
        s, t = channel[:, 0, 0] * STEPS, channel[:, 1, 1] * STEPS
        i, j = (np.minimum(x.astype(np.int64), STEPS - 1) for x in (s, t))
        u, v = s - i, t - j
        at = self._table
        low = at[:, i, j] * (1.0 - v) + at[:, i, j + 1] * v
        return np.asarray(low * (1.0 - u) + (at[:, i + 1, j] * (1.0 - v) + at[:, i + 1, j + 1] * v) * u)


def _dearest(price: Floats, N: Floats, U: float) -> tuple[Floats, Floats]:
    """(R,) what the U dearest labels cost, and the price of the last of them."""
    if not len(N):
        return np.zeros(len(price)), np.zeros(len(price))
    order = np.argsort(-price, axis=1)
    sorted_price = np.take_along_axis(price, order, axis=1)
    upto = np.minimum(np.cumsum(N[order], axis=1), U)
    taken = np.diff(upto, axis=1, prepend=0.0)
    last = np.where(upto < U, 0.0, 1.0).argmax(axis=1)
    marginal = np.where(upto[:, -1] < U, 0.0, np.take_along_axis(sorted_price, last[:, None], axis=1)[:, 0])
    return (taken * sorted_price).sum(axis=1), marginal
