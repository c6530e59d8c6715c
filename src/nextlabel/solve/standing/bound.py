"""Where a running campaign stands: what it is worth now, and, if workers are alike, what no policy can pass.

=========== ============= ======================================================================================
symbol      code          meaning
=========== ============= ======================================================================================
i_x, w_x    groups        belief node of task x and its labels in flight, tasks in groups
n, f        labels_left,  labels that may still be given out, and those in flight
            in_flight
A           mean_arrivals at most so many workers are expected before the deadline (inf: no deadline)
c           label_cost    what a label costs, in the unit of the reward, paid when it comes in
S_x(i)      --            no-delay value at cost c + lam: S = max{ R, sum_j p_j S(child_j) - c - lam }
P^w         --            expectation over w labels
=========== ============= ======================================================================================

    E[final reward - c (labels to come in) | all that was seen]  <=  min over lam >= 0 of  sum_x S_x(i_x) + lam N,

with N = min(n, A) + f. *Proof.* Fix any policy and any lam >= 0. Let C be the labels that come in from now on. Then
sum_x S_x(i_x) - (c + lam) C is a supermartingale: nothing but a label that comes in changes it, and in the mean that
changes it by sum_j p_j S(child_j) - c - lam - S <= 0. At the end R <= S, so E[sum_x R_x - c C] <= sum_x S_x(i_x) + lam
E[C]. A label that comes in is in flight now or is given to a worker who comes: C <= f + min(n, workers who come), and
E[min(n, .)] <= min(n, A). QED. It uses neither how long labels take nor whether they come at all: a label that lapses
may be given out again, a deadline may cut labels off, waiting is free.

It does assume, beside equal workers and the prior, that how long a label takes and whether it lapses do not depend on
the answer given what was seen, and that the policy does not change who comes and when.

If labels in flight are ``sure`` to come in (none lapses), P^w S takes the place of S: giving a label out changes sum_x
P^{w_x} S_x - (c + lam) (labels given) by P^w (P S - c - lam - S) <= 0, a label that comes in does not in the mean, and
R <= P^w S at the end. So the bound is min over lam of sum_x P^{w_x} S_x(i_x) - c f + lam min(n, A): never above the
other one, for P^w S <= S + w (c + lam).

S is convex in lam, so the bound is concave in N, and as lam falls with N it tells what more labels can buy (``curve``).
More than a thousand scores of a model are grouped (``grouped``), and slack has what that costs.
Guarantee: upper bound, whatever the depth of the lattices and the prices tried; ``slack`` is what better ones could
still take off. Cost: some hundred sweeps over the lattices, whatever the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import nodes_of
from nextlabel.errors import ProblemError
from nextlabel.problem.problem import TaskClass, whole
from nextlabel.problem.state import Groups, check_groups
from nextlabel.solve.price_search import PriceLines, fine_prices, minimise, refine, refine_corners, trace
from nextlabel.solve.standing.grouped import group_standing
from nextlabel.solve.standing.sums import StandingSums

#: Prices of the first grid and rounds of refinement, for as many price-nodes as this; the last digits that are wanted.
PRICES, LEAST_PRICES, REFINEMENTS, WORK = 160, 32, 5, 300_000_000
TOLERANCE = 1e-10
#: Corners are refined where that may lower the curve by at least this share.
CORNER = 1e-6
#: More classes than this: price and depth are learnt from a sample, and the last digits are left.
MANY, SAMPLE, MANY_PRICES, MANY_TOLERANCE = 256, 1024, 20, 1e-6
#: Tasks that were grouped are off by more than this anyway.
GROUPED_DEPTH_TOLERANCE = 1e-5
#: Labels that lattices reach beyond the furthest task: at first the most of these that make no more nodes than that.
MARGINS, START = (64, 32, 16, 8), 300_000
#: Lattices are deepened while their ends may add this share, up to so many nodes; those of more answers are dearer.
#: One request for a certificate may have this computed: ``benchmarks.live.many_priors`` says what so many nodes take,
#: and what they leave; ``slack`` says how much the bound could still fall.
DEPTH_TOLERANCE, MOST_NODES = 1e-8, 20_000_000
DEAR_DEPTH_TOLERANCE, MOST_DEAR_NODES = 1e-6, 1_200_000


@dataclass(frozen=True, slots=True)
class Standing:
    """Per task: worth ``now``, at most ``upper`` in the end (``gap`` more), ``ceiling`` were the truth known.

    ``price`` is the slope of the bound: what the next label adds to it, over all tasks. ``slack`` is what better prices
    or deeper lattices could still take off ``upper``.
    """

    tasks: int
    labels_left: int
    in_flight: int
    now: float
    upper: float
    gap: float
    slack: float
    price: float
    ceiling: float
    seconds: float
    lines: PriceLines = field(repr=False)
    mean_arrivals: float = inf
    returned: int = 0

    def curve(self, extra: Any) -> Floats:
        """``upper`` if there were ``extra`` more labels to give out, for an array of such numbers."""
        left = self.labels_left + np.asarray(extra, dtype=np.float64)
        if np.any(~(left >= 0)):
            raise ProblemError("there are not so many labels left to take away.", f"Only {self.labels_left} are left.")
        N = np.minimum(left, self.mean_arrivals) + self.returned
        return self.lines.value(N) / self.tasks


def standing_bound(
    classes: Sequence[TaskClass],
    groups: Sequence[Any],
    labels_left: int,
    in_flight: int | None = None,
    *,
    label_cost: float = 0.0,
    mean_arrivals: float = inf,
    sure: bool = False,
) -> Standing:
    """Bound what any policy can make of tasks that stand in ``groups``; the classes' own counts do not matter.

    ``in_flight`` are all labels out, those of the groups if not given; more than those are of tasks not in the groups
    and may be given out again. ``sure``: no label in flight lapses, which makes the bound a little sharper.
    """
    begin = perf_counter()
    stand = check_groups(groups, classes)
    left = whole("labels left", labels_left, 0, "Give the number of labels that may still be given out.")
    known = stand.in_flight
    out = known if in_flight is None else whole("labels in flight", in_flight, 0, "Give the number of labels out.")
    if out < known:
        raise ProblemError(f"{out} labels are in flight, but the groups have {known}.", "Leave the number out.")
    if not 0 <= label_cost < inf:
        raise ProblemError(f"label cost {label_cost!r} is not a number of at least 0.", "Give e.g. 0.02.")
    if not mean_arrivals >= 0:
        raise ProblemError(f"mean arrivals {mean_arrivals!r} is not a number of at least 0.", "Leave it out.")
    returned = out - known if sure else out
    N = min(left, mean_arrivals) + returned
    K = stand.tasks
    around = None if sure else group_standing(classes, stand)
    if around is None:
        sums, lines = _DepthSearch(classes, stand, label_cost, sure).run(N)
        best = lines.optimum(N)
        now, ceiling, least = sums.now, sums.ceiling, best.lower - best.slack
    else:
        lines = _DepthSearch(*around.upper, label_cost, sure, around.above).run(N)[1]
        best = lines.optimum(N)
        lower = _DepthSearch(*around.lower, label_cost, sure, -around.below).run(N)[1].optimum(N)
        now, ceiling, least = around.now, around.ceiling, lower.lower - lower.slack
    upper = best.value
    return Standing(
        tasks=K,
        labels_left=left,
        in_flight=out,
        now=now / K,
        upper=upper / K,
        gap=(upper - now) / K,
        slack=(upper - least) / K,
        price=float(lines.price(np.array([N]))[0]),
        ceiling=ceiling / K,
        seconds=perf_counter() - begin,
        lines=lines,
        mean_arrivals=mean_arrivals,
        returned=returned,
    )


class _DepthSearch:
    """Finds how deep the lattices must be, and traces the prices on them."""

    def __init__(
        self,
        classes: Sequence[TaskClass],
        groups: Groups,
        label_cost: float,
        sure: bool,
        more: float | None = None,
    ) -> None:
        self.classes, self.groups, self.label_cost, self.sure = classes, groups, label_cost, sure
        self.more = more  # of tasks that were grouped
        self.used: Ints = np.unique(groups.entry)

    def run(self, N: float) -> tuple[StandingSums, PriceLines]:
        """Sums and lines that are good at N."""
        if len(self.used) <= MANY:
            depth_tolerance = DEPTH_TOLERANCE if self.classes[0].answers == 2 else DEAR_DEPTH_TOLERANCE
            sums, lines, _ = self._deepened(N, TOLERANCE, depth_tolerance, 1.0)
            return sums, lines
        if self.more is not None:
            sums, lines, _ = self._deepened(N, MANY_TOLERANCE, GROUPED_DEPTH_TOLERANCE, 1.0)
            return sums, lines
        # Learn price and depth from a spread-out sample of the classes, then go through all of them once or twice.
        some = np.isin(self.groups.entry, self.used[:: max(1, len(self.used) // SAMPLE)])
        sample = _DepthSearch(self.classes, Groups(*(c[some] for c in self.groups)), self.label_cost, self.sure)
        there = N * sample.groups.tasks / self.groups.tasks
        grown = len(self.used) / len(sample.used)
        _, lines, margin = sample._deepened(there, MANY_TOLERANCE, 0.3 * MANY_TOLERANCE, grown)
        sums = self._sums(margin)
        guess = float(lines.price(np.array([there]))[0])
        return sums, minimise(sums, N, fine_prices(sums.top, MANY_PRICES, guess), MANY_TOLERANCE)

    def _deepened(
        self, N: float, tolerance: float, depth_tolerance: float, grown: float
    ) -> tuple[StandingSums, PriceLines, int]:
        """Deepen until the ends of the lattices add next to nothing; each node here stands for ``grown`` of them."""
        margin = self._first_margin()
        most = (MOST_NODES if self.classes[0].answers == 2 else MOST_DEAR_NODES) / grown
        while True:
            sums = self._sums(margin)
            count = int(np.clip(WORK // (4 * sums.nodes), LEAST_PRICES, PRICES))
            rounds = REFINEMENTS if count == PRICES and grown == 1.0 else 0
            lines = refine_corners(sums, trace(sums, fine_prices(sums.top, count)), rounds, CORNER)
            lines = refine(sums, N, lines, tolerance)
            enough = lines.optimum(N).slack <= depth_tolerance * lines.scale
            if enough or not sums.open or 2.5 * sums.nodes > most:
                return sums, lines, margin
            margin = 3 * margin // 2

    def _first_margin(self) -> int:
        answers = self.classes[0].answers
        reach = int(self.groups.levels(answers).mean())
        fits = (m for m in MARGINS if len(self.used) * nodes_of(answers, reach + m) <= START)
        return next(fits, MARGINS[-1])

    def _sums(self, margin: int) -> StandingSums:
        return StandingSums(
            self.classes, self.groups, margin, label_cost=self.label_cost, sure=self.sure, more=self.more or 0.0
        )
