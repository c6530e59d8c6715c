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
S, L, e     at            sums over tasks of S_x, of the labels bought, and of what the end of lattices may add
D           depth         last level of a class's lattice: its deepest task and at least ``margin`` labels more
=========== ============= ======================================================================================

    E[final reward - c (labels to come in) | all that was seen]  <=  min over lam >= 0 of  sum_x S_x(i_x) + lam N,

with N = min(n, A) + f: sum_x S_x - (c + lam) (labels that come in) is a supermartingale under any policy, and a label
that comes in is in flight now or is given to a worker who comes. It uses neither how long labels take nor whether they
come at all, but it assumes, beside equal workers and the prior, that both do not depend on the answer given what was
seen, and that the policy does not change who comes and when.

S is convex in lam, so the bound is concave in N, and as lam falls with N it tells what more labels can buy (``curve``).
Classes whose deepest tasks are alike share a chunk, hence a depth. Chunks run on all cores; their lattices are kept
from call to call where they fit. More than a thousand scores of a model are grouped. The no-delay value of a task is
that of a fresh task with its posterior as prior, and the score after m labels is again one of a family: Beta of
strength s + m, or one coin. Tasks with as many labels are one family, and ``solve.grouping`` puts two problems with few
priors around it; ``slack`` has what that costs.
Guarantee: upper bound, whatever the depth of the lattices and the prices tried; ``slack`` is what better ones could
still take off. Cost: some hundred sweeps over the lattices, whatever the number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.kernels.inputs import Lattices
from nextlabel.kernels.no_delay import no_delay_sums
from nextlabel.model.simplex import MOST_NODES, deepest, nodes_of, simplex
from nextlabel.model.tasks import (
    Groups,
    ScoreClasses,
    TaskClass,
    check_groups,
    fresh_groups,
    many_lattices,
    stack_classes,
    whole,
)
from nextlabel.solve.grouping import Grouped, group_scores, make_score_grid, scores_of
from nextlabel.solve.price_search import PriceLines, fine_prices, minimise, refine, refine_corners, trace
from nextlabel.solve.progress import Progress
from nextlabel.solve.relaxed import on_all_cores

#: Priors from which tasks are grouped, and priors that stand for them, over all levels and for each at least.
MANY_PRIORS, PRIORS, LEAST_PRIORS = 1000, 1200, 64


class GroupedTasks(NamedTuple):
    """Tasks around those of a campaign, and what all of these are worth now and were the truth known."""

    upper: tuple[list[TaskClass], Groups]
    lower: tuple[list[TaskClass], Groups]
    above: float
    below: float
    now: float
    ceiling: float


def group_present(classes: Sequence[TaskClass], groups: Groups) -> GroupedTasks | None:
    """The tasks around; None if there are few priors, or no family of scores."""
    used, entry = np.unique(groups.entry, return_inverse=True)
    if len(used) <= MANY_PRIORS or classes[0].answers != 2:
        return None
    found = scores_of([classes[c] for c in used])
    if found is None or found.accuracy == 1.0:
        return None
    families = [*_families(found, entry, groups)]
    cells = max(PRIORS // len(families), LEAST_PRIORS)
    around: list[Grouped] = []
    now = ceiling = 0.0
    for scores in families:
        for tasks, roots in many_lattices(scores, 0):
            now, ceiling = now + float(tasks @ roots.reward[:, 0]), ceiling + float(tasks @ roots.ceiling[:, 0])
        if len(scores) <= cells:
            around.append(Grouped(scores, scores, 0.0, 0.0))
            continue
        grid = make_score_grid(scores)
        around.append(group_scores(scores, grid if len(grid) <= cells + 1 else make_score_grid(scores, cells)))
    upper, lower, above, below = zip(*around, strict=True)
    return GroupedTasks(_placed(upper), _placed(lower), sum(above), sum(below), now, ceiling)


def _families(found: ScoreClasses, entry: Ints, groups: Groups) -> Iterator[ScoreClasses]:
    """The scores of the tasks after their labels, those of one family together."""
    level = groups.levels(2)
    counts = simplex(2, int(level.max()))[2]
    zeros, ones = counts[groups.node].T
    p, s, members = found.values[entry], found.strength, groups.members.astype(np.float64)
    if s is None:
        assert found.accuracy is not None
        with np.errstate(divide="ignore"):
            after = expit(logit(p) + (ones - zeros) * logit(found.accuracy))
        yield _different(found, after, members)
        return
    for m in np.unique(level):
        here = level == m
        after = (s * p[here] + ones[here]) / (s + m)
        yield _different(replace(found, strength=s + float(m)), after, members[here])


def _different(family: ScoreClasses, p: Floats, members: Floats) -> ScoreClasses:
    different, place = np.unique(p, return_inverse=True)
    return family.of(different, np.asarray(np.bincount(place, members), dtype=np.float64))


def _placed(parts: Sequence[ScoreClasses]) -> tuple[list[TaskClass], Groups]:
    """Fresh tasks of each score, as many as count, whole or not."""
    classes = [entry for part in parts for entry in part]
    return classes, fresh_groups(classes)._replace(members=np.concatenate([part.counts for part in parts]))


#: Classes of a chunk.
CHUNK = 32
#: Numbers that lattices may take up to be kept between calls, and that a sweep may hold at once.
KEPT, HELD = 50_000_000, 2_000_000
#: Depths that lattices have, so that their shapes are shared; then multiples of the last, with more answers of STEP.
STEP = 4
SHARED_DEPTHS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
#: Levels below the deepest task that are looked at even where that makes a large lattice: two answers, and more.
LEAST, LEAST_OF_MANY = 64, 4


class Chunk(NamedTuple):
    """Some classes and their groups; ``reach``: labels that the furthest task has, ``depth`` of the lattices."""

    classes: Sequence[TaskClass]
    groups: Groups
    reach: int
    depth: int


class PlacedTasks(NamedTuple):
    """Lattices of a chunk, and how many tasks of each class are at each node."""

    lattices: Lattices
    weight: Floats


class NoDelaySums:
    """Evaluates S, L and e at any prices; ``more`` is added to S."""

    def __init__(
        self,
        classes: Sequence[TaskClass],
        groups: Groups,
        margin: int,
        *,
        label_cost: float = 0.0,
        more: float = 0.0,
    ) -> None:
        self.tasks = groups.tasks
        self.label_cost, self.more = label_cost, more
        self._chunks = split_by_depth(classes, groups, margin)
        answers = classes[0].answers
        self.nodes = sum(len(c.classes) * nodes_of(answers, c.depth) for c in self._chunks)
        #: Whether any lattice could be deeper.
        self.open = any(c.depth < deepest_useful(answers, c.reach) for c in self._chunks)
        self._place: Callable[[int], PlacedTasks] = lambda k: lattices_with_tasks(
            self._chunks[k], self._chunks[k].depth
        )
        if self.nodes * (3 + answers) <= KEPT:
            self._place = cache(self._place)
        facts = np.array(list(on_all_cores(self._facts, range(len(self._chunks)))))
        #: Sums over the tasks of R and of the ceiling now; from ``top`` on nobody buys a label.
        self.now, self.ceiling = float(facts[:, 0].sum()), float(facts[:, 1].sum())
        self.top = max(float(facts[:, 2].max()) - label_cost, 0.0)

    def at(self, prices: Floats, progress: Progress | None = None) -> Floats:
        """(3, P) S, L and e at ``prices``, which fall."""
        parts = on_all_cores(lambda k: self._sums(k, prices + self.label_cost), range(len(self._chunks)), progress)
        total = np.sum(list(parts), axis=0)
        total[0] += self.more
        return np.asarray(total, dtype=np.float64)

    def _sums(self, k: int, prices: Floats) -> Floats:
        placed = self._place(k)
        block = max(4, HELD // (6 * int(np.diff(placed.lattices.first).max())))
        parts = []
        for start in range(0, len(prices), block):
            some = prices[start : start + block]
            parts.append(np.zeros((3, len(some))))
            no_delay_sums(*placed, some, parts[-1])
        return np.concatenate(parts, axis=1)

    def _facts(self, k: int) -> tuple[float, float, float]:
        """Sums of R and of the ceiling, and the most that the truth would add to a task that may get a label."""
        chunk = self._chunks[k]
        on, weight = lattices_with_tasks(chunk, chunk.reach)
        gap = (on.ceiling - on.reward)[weight > 0]
        return float((weight * on.reward).sum()), float((weight * on.ceiling).sum()), float(gap.max())


def split_by_depth(classes: Sequence[TaskClass], groups: Groups, margin: int) -> list[Chunk]:
    """The classes that have tasks, by the labels that the furthest of them has, in chunks."""
    answers = classes[0].answers
    labels = groups.levels(answers)
    furthest = np.full(len(classes), -1, dtype=np.int64)
    np.maximum.at(furthest, groups.entry, labels)
    used = np.flatnonzero(furthest >= 0)
    used = used[np.argsort(furthest[used], kind="stable")]
    place = np.zeros(len(classes), dtype=np.int64)
    place[used] = np.arange(len(used))
    order = np.argsort(place[groups.entry], kind="stable")
    entry = place[groups.entry][order]
    chunks = []
    for start in range(0, len(used), CHUNK):
        here = used[start : start + CHUNK]
        lo, hi = np.searchsorted(entry, [start, start + CHUNK])
        rows = order[lo:hi]
        some = Groups(entry[lo:hi] - start, groups.node[rows], groups.w[rows], groups.members[rows])
        reach = int(furthest[here[-1]])
        depth = max(reach, min(shared_depth(answers, reach + margin), deepest_useful(answers, reach)))
        chunks.append(Chunk([classes[c] for c in here], some, reach, depth))
    return chunks


def shared_depth(answers: int, depth: int) -> int:
    """The next depth that lattices have."""
    step = SHARED_DEPTHS[-1] if answers == 2 else STEP
    return next((r for r in SHARED_DEPTHS if r >= depth and answers == 2), -(-depth // step) * step)


def deepest_useful(answers: int, reach: int) -> int:
    """The deepest lattice worth its time below a task with ``reach`` labels."""
    if answers == 2:
        return max(deepest(2), reach + LEAST)
    return max(deepest(answers), min(reach + LEAST_OF_MANY, deepest(answers, 8 * MOST_NODES)))


def lattices_with_tasks(chunk: Chunk, depth: int) -> PlacedTasks:
    """Lattices of that depth with the tasks at their nodes."""
    lattices, groups = stack_classes(chunk.classes, depth, lumped=False), chunk.groups
    weight = np.zeros(lattices.reward.shape)
    np.add.at(weight, (groups.entry, groups.node), groups.members)
    return PlacedTasks(lattices, weight)


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
DEPTH_TOLERANCE, MOST_CHEAP_NODES = 1e-8, 20_000_000
DEAR_DEPTH_TOLERANCE, MOST_DEAR_NODES = 1e-6, 1_200_000


@dataclass(frozen=True, slots=True)
class PresentBound:
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

    def curve(self, extra: Any) -> Floats:
        """``upper`` if there were ``extra`` more labels to give out, for an array of such numbers."""
        left = self.labels_left + np.asarray(extra, dtype=np.float64)
        if np.any(~(left >= 0)):
            raise ProblemError("there are not so many labels left to take away.", f"Only {self.labels_left} are left.")
        N = np.minimum(left, self.mean_arrivals) + self.in_flight
        return self.lines.value(N) / self.tasks


def present_bound(
    classes: Sequence[TaskClass],
    groups: Sequence[Any],
    labels_left: int,
    *,
    label_cost: float = 0.0,
    mean_arrivals: float = inf,
) -> PresentBound:
    """Bound what any policy can make of tasks that stand in ``groups``; the classes' own counts do not matter."""
    begin = perf_counter()
    present = check_groups(groups, classes)
    left = whole("labels left", labels_left, 0, "Give the number of labels that may still be given out.")
    if not 0 <= label_cost < inf:
        raise ProblemError(f"label cost {label_cost!r} is not a number of at least 0.", "Give e.g. 0.02.")
    if not mean_arrivals >= 0:
        raise ProblemError(f"mean arrivals {mean_arrivals!r} is not a number of at least 0.", "Leave it out.")
    out = present.in_flight
    N = min(left, mean_arrivals) + out
    K = present.tasks
    around = group_present(classes, present)
    if around is None:
        sums, lines = _DepthSearch(classes, present, label_cost).run(N)
        best = lines.optimum(N)
        now, ceiling, least = sums.now, sums.ceiling, best.lower - best.slack
    else:
        lines = _DepthSearch(*around.upper, label_cost, around.above).run(N)[1]
        best = lines.optimum(N)
        lower = _DepthSearch(*around.lower, label_cost, -around.below).run(N)[1].optimum(N)
        now, ceiling, least = around.now, around.ceiling, lower.lower - lower.slack
    upper = best.value
    return PresentBound(
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
    )


class _DepthSearch:
    """Finds how deep the lattices must be, and traces the prices on them."""

    def __init__(
        self, classes: Sequence[TaskClass], groups: Groups, label_cost: float, more: float | None = None
    ) -> None:
        """``more`` is of tasks that were grouped."""
        self.classes, self.groups, self.label_cost, self.more = classes, groups, label_cost, more
        self.used: Ints = np.unique(groups.entry)
        self.answers = classes[0].answers

    def run(self, N: float) -> tuple[NoDelaySums, PriceLines]:
        """Sums and lines that are good at N."""
        if len(self.used) <= MANY:
            return self._deepened(N, TOLERANCE, DEPTH_TOLERANCE if self.answers == 2 else DEAR_DEPTH_TOLERANCE)[:2]
        if self.more is not None:
            return self._deepened(N, MANY_TOLERANCE, GROUPED_DEPTH_TOLERANCE)[:2]
        # Learn price and depth from a spread-out sample of the classes, then go through all of them once or twice.
        some = np.isin(self.groups.entry, self.used[:: max(1, len(self.used) // SAMPLE)])
        sample = _DepthSearch(self.classes, Groups(*(c[some] for c in self.groups)), self.label_cost)
        there = N * sample.groups.tasks / self.groups.tasks
        grown = len(self.used) / len(sample.used)
        _, lines, margin = sample._deepened(there, MANY_TOLERANCE, 0.3 * MANY_TOLERANCE, grown)
        sums = self._sums(margin)
        guess = float(lines.price(np.array([there]))[0])
        return sums, minimise(sums, N, fine_prices(sums.top, MANY_PRICES, guess), MANY_TOLERANCE)

    def _deepened(
        self, N: float, tolerance: float, depth_tolerance: float, grown: float = 1.0
    ) -> tuple[NoDelaySums, PriceLines, int]:
        """Deepen until the ends of the lattices add next to nothing; each node here stands for ``grown`` of them."""
        reach = int(self.groups.levels(self.answers).mean())
        fits = (m for m in MARGINS if len(self.used) * nodes_of(self.answers, reach + m) <= START)
        margin = next(fits, MARGINS[-1])
        most = (MOST_CHEAP_NODES if self.answers == 2 else MOST_DEAR_NODES) / grown
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

    def _sums(self, margin: int) -> NoDelaySums:
        return NoDelaySums(self.classes, self.groups, margin, label_cost=self.label_cost, more=self.more or 0.0)
