"""What each policy would have made of labels that were really given, and how many of them it would have saved.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
K         tasks        tasks that are replayed; the pilot's are not among them
U         budgets      labels to buy; the asked ones and a fine grid, for the savings
k         overlaps     odd numbers of labels for every task: an even one wastes its last label
d         threshold    the share of ones above which a task is a 1
========= ============ ==========================================================================

Fifty random tasks, the pilot, give the prior (and with gold the threshold). The others are replayed under every policy,
labels in random order unless told otherwise, none used twice. Accuracy is against gold or, without gold, against what
all recorded labels say together, which flatters every rule.
Guarantee: exact for these recorded labels up to the replay's own randomness, which the intervals cover: nothing about
another crowd. Cost: one campaign a policy and replication, whatever the number of budgets; the index table first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.backtest.pilot import HeldOut, hold_out
from nextlabel.backtest.readout import (
    COUNTING,
    READOUTS,
    accuracy_of,
    dawid_skene,
    decisions,
    drawn_labels,
    needs_crowdkit,
    with_all_labels,
)
from nextlabel.backtest.savings import Saving, saving
from nextlabel.backtest.tally import FIXED, BudgetStage, EndCounts, tally_overlap, tally_policy
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.lattice import triangle_counts
from nextlabel.errors import InputError
from nextlabel.policies.registry import make_policy
from nextlabel.problem.estimate import Estimate
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.replay import ORDERS, TIES, Recorded, accuracy_of_ends, credits
from nextlabel.solve.progress import Progress, part

POLICIES = ("index", "okg", "okg-pending", "ucb1-tuned", "uncertainty", "uniform")
LABELS_PER_TASK = (3.0, 4.0, 5.0, 6.0)
#: Budgets of the grid, and labels a task up to which it goes if there are so many.
POINTS, LARGEST_OVERLAP = 25, 7
#: Dawid-Skene is fitted for so many replications.
FITS = 5
#: An overlap is compared with if so many of the tasks have the labels for it.
ENOUGH_TASKS = 0.5


@dataclass(frozen=True, slots=True)
class Point:
    """One rule with one budget and one read-out."""

    policy: str
    readout: str
    budget: int
    labels_per_task: float
    labels_used: float
    accuracy: Estimate
    #: Accuracy less the index's in the same replications.
    minus_index: Estimate | None
    #: The accuracy that the model expects after these labels (posterior only).
    believed: float | None
    asked: bool


@dataclass(frozen=True, slots=True)
class Backtest:
    """Curves, fixed overlaps, the ceiling, and labels saved."""

    stage: BudgetStage
    pilot: HeldOut
    truth: str
    known: int
    undecided: int
    ties: str
    policies: tuple[str, ...]
    readouts: tuple[str, ...]
    points: tuple[Point, ...]
    overlaps: tuple[Point, ...]
    ceilings: dict[str, float]
    savings: tuple[Saving, ...]
    replications: int
    seconds: float

    @property
    def tasks(self) -> int:
        """K."""
        return len(self.stage.recorded)

    @property
    def rho(self) -> float:
        """Labels in flight; 0 where they come back at once."""
        rho = self.stage.arrival_rate / self.stage.completion_rate
        return 0.0 if rho < 1e-3 else rho

    def find(self, readout: str, policy: str, budget: int) -> Point | None:
        """One point."""
        for one in self.points:
            if (one.readout, one.policy, one.budget) == (readout, policy, budget):
                return one
        return None


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How recorded labels are replayed; without ``budgets`` and ``labels_per_task`` some usual ones are taken."""

    policies: Sequence[str] = POLICIES
    labels_per_task: Sequence[float] | None = None
    budgets: Sequence[int] | None = None
    pilot: int = 50
    prior: Beta | None = None
    method: str = "moments"
    threshold: float | None = None
    arrival_rate: float = 1.0
    completion_rate: float = 1e7
    order: str = "random"
    ties: str = "half"
    readouts: Sequence[str] = COUNTING
    replications: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        for what, given, known in (("order", self.order, ORDERS), ("ties", self.ties, TIES)):
            if given not in known:
                raise InputError(f"{what} {given!r} is not known.", f"Use one of {', '.join(known)}.")
        for what, names in (("policy", self.policies), ("read-out", self.readouts)):
            for name in names:
                if list(names).count(name) > 1:
                    raise InputError(f"{what} {name!r} is given twice.", "Give each one once.")
        for name in self.policies:
            make_policy(name)
            if name == "resolve":
                raise InputError("the policy resolve cannot be replayed.", "Use index or lagrangian.")
        for name in self.readouts:
            if name not in READOUTS:
                raise InputError(f"read-out {name!r} is not known.", f"Use one of {', '.join(READOUTS)}.")
        if self.replications < 2:
            raise InputError(
                f"{self.replications} replication has no interval.", "Give at least two, e.g. --replications 200."
            )


def make_backtest(
    recorded: Recorded,
    options: BacktestOptions | None = None,
    *,
    workers: Ints | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Replay ``recorded`` under every policy; ``workers`` (N, most) is who gave each label, for Dawid-Skene."""
    begin = perf_counter()
    options = options or BacktestOptions()
    policies, readouts, ties = options.policies, options.readouts, options.ties
    replications, seed = options.replications, options.seed
    if "dawid-skene" in readouts:
        needs_crowdkit()
        if workers is None:
            raise InputError(
                "the read-out dawid-skene needs to know who gave each label.", "Name the column with --worker-column."
            )
    truth = "gold" if (recorded.gold >= 0).any() else "consensus"
    learnt = hold_out(recorded, options.pilot, options.prior, options.threshold, options.method, seed)
    pool = recorded.subset(learnt.rest)
    undecided = 0
    if truth == "consensus":
        said = with_all_labels("posterior", pool, learnt.prior, learnt.threshold)
        undecided = int((said < 0).sum())
        pool = Recorded(pool.tasks, pool.labels, pool.counts, said)
    if not (pool.gold >= 0).any():
        raise InputError(
            "no replayed task has a known truth.", "Give gold for more tasks, or a smaller --pilot-tasks, or no --gold."
        )
    stage = BudgetStage(
        pool, learnt.prior, learnt.threshold, options.arrival_rate, options.completion_rate, options.order, seed
    )
    asked, grid, ks = _budgets(stage, options.labels_per_task, options.budgets)
    counting = [name for name in COUNTING if name in readouts or name == "posterior"]
    keep = min(FITS, replications) if "dawid-skene" in readouts else 0
    fixed = tally_overlap(stage, ks, replications, keep=keep, engine=engine)
    found = []
    for k, name in enumerate(policies):
        some = asked if make_policy(name).planned_ahead else grid
        mine = part(progress, k, len(policies) + (keep > 0))
        found.append(tally_policy(stage, name, some, replications, keep=keep, engine=engine, progress=mine))
    curves = {(tally.name, readout): _curve(stage, tally, readout, ties) for tally in found for readout in counting}
    flat = {readout: _curve(stage, fixed, readout, ties) for readout in counting}
    savings = _savings(found, fixed, curves, flat, [name for name in counting if name in readouts], seed)
    ceilings = {
        name: accuracy_of(with_all_labels(name, pool, learnt.prior, learnt.threshold), pool.gold, ties)
        for name in counting
        if name in readouts
    }
    if keep and workers is not None:
        who = workers[learnt.rest]
        fit = _fitter(stage, who, ties)
        everything = np.tile(np.arange(pool.labels.shape[1]), (len(pool), 1))
        ceilings["dawid-skene"] = accuracy_of(dawid_skene(pool, who, everything, pool.counts), pool.gold, ties)
        for tally in (*found, fixed):
            curves[tally.name, "dawid-skene"] = fit(tally, None if tally is fixed else asked)
    index = next((tally for tally in found if tally.name == "index"), None)
    points = [
        point
        for readout in readouts
        for tally in found
        for point in _points(stage, tally, readout, curves, asked, index)
    ]
    for readout in counting:
        curves[fixed.name, readout] = flat[readout]
    at_overlap = [p for readout in readouts for p in _points(stage, fixed, readout, curves, list(ks), None)]
    if progress is not None:
        progress(1.0)
    return Backtest(
        stage=stage,
        pilot=learnt,
        truth=truth,
        known=int((pool.gold >= 0).sum()),
        undecided=undecided,
        ties=ties,
        policies=tuple(policies),
        readouts=tuple(readouts),
        points=tuple(points),
        overlaps=tuple(at_overlap),
        ceilings=ceilings,
        savings=tuple(savings),
        replications=replications,
        seconds=perf_counter() - begin,
    )


def _budgets(
    stage: BudgetStage, labels_per_task: Sequence[float] | None, budgets: Sequence[int] | None
) -> tuple[list[int], list[int], tuple[int, ...]]:
    """Budgets asked for, the grid with them, and the overlaps to compare with."""
    K, most = len(stage.recorded), stage.most_labels
    if budgets is not None:
        asked = sorted(set(budgets))
    elif labels_per_task is not None:
        asked = sorted({round(x * K) for x in labels_per_task})
    else:
        asked = [round(x * K) for x in LABELS_PER_TASK if x * K <= most] or [most]
    for U in asked:
        if not 1 <= U <= most:
            raise InputError(
                f"a budget of {U:,} labels ({U / K:.3g} a task) is asked for, and the {K:,} replayed tasks have "
                f"{most:,} ({most / K:.3g} a task).",
                "Give fewer, e.g. --labels-per-task 3.",
            )
    top = max(asked[-1], min(LARGEST_OVERLAP * K, most))
    grid = np.unique(np.append(np.round(np.linspace(min(K, asked[0]), top, POINTS)), asked)).astype(np.int64)
    counts = stage.recorded.counts
    odd = range(1, min(stage.depth, -(-top // K)) + 1, 2)
    return asked, grid.tolist(), tuple(k for k in odd if k == 1 or (counts >= k).mean() >= ENOUGH_TASKS)


def _curve(stage: BudgetStage, tally: EndCounts, readout: str, ties: str) -> Floats:
    """(reps, B) accuracy."""
    decision = decisions(readout, stage.prior, stage.threshold, stage.depth)
    return accuracy_of_ends(tally.ends, credits(decision, ties))


def _fitter(stage: BudgetStage, workers: Ints, ties: str) -> Callable[[EndCounts, Sequence[int] | None], Floats]:
    """Dawid-Skene on the labels that a rule collected, at some of its budgets (nan at the others)."""
    orders: dict[int, Ints] = {}

    def fit(tally: EndCounts, only: Sequence[int] | None) -> Floats:
        out = np.full(tally.taken.shape[:2], np.nan)
        for rep in range(len(out)):
            if rep not in orders:
                orders[rep] = drawn_labels(stage.recorded, stage.order, stage.seed, rep)
            for b, U in enumerate(tally.budgets.tolist()):
                if only is None or U in only:
                    said = dawid_skene(stage.recorded, workers, orders[rep], tally.taken[rep, b])
                    out[rep, b] = accuracy_of(said, stage.recorded.gold, ties)
        return out

    return fit


def _points(
    stage: BudgetStage,
    tally: EndCounts,
    readout: str,
    curves: dict[tuple[str, str], Floats],
    asked: Sequence[int],
    index: EndCounts | None,
) -> list[Point]:
    curve, out = curves[tally.name, readout], []
    for b, U in enumerate(tally.budgets.tolist()):
        if np.isnan(curve[0, b]):
            continue
        against = None
        if index is not None and index is not tally:
            at = index.budgets.tolist().index(U)
            against = Estimate.of(curve[:, b] - curves[index.name, readout][:, at])
        used = float(tally.used[:, b].mean())
        out.append(
            Point(
                policy=tally.name if tally.name != FIXED else f"overlap {U}",
                readout=readout,
                budget=U,
                labels_per_task=used / len(stage.recorded),
                labels_used=used,
                accuracy=Estimate.of(curve[:, b]),
                minus_index=against,
                believed=_believed(stage, tally.ends[:, b]) if readout == "posterior" else None,
                asked=U in asked,
            )
        )
    return out


def _believed(stage: BudgetStage, ends: Ints) -> float:
    """Mean of max(I, 1 - I) over the tasks with a known truth."""
    above = stage.prior.above(stage.threshold, *triangle_counts(stage.depth))
    many = ends.sum(axis=(0, 2))
    return float(many @ np.maximum(above, 1.0 - above) / many.sum())


def _savings(
    found: Sequence[EndCounts],
    fixed: EndCounts,
    curves: dict[tuple[str, str], Floats],
    flat: dict[str, Floats],
    readouts: Sequence[str],
    seed: int,
) -> list[Saving]:
    out = []
    for tally in found:
        for readout in readouts:
            for b, k in enumerate(fixed.budgets.tolist()):
                for other in readouts if k > 1 else ():
                    level, labels = flat[other][:, b], float(fixed.used[:, b].mean())
                    numbers = saving(tally.budgets, curves[tally.name, readout], level, labels, seed)
                    rest: dict[str, object] = dict(numbers)
                    out.append(
                        Saving(tally.name, readout, k, other, float(level.mean()), labels, **rest)  # type: ignore[arg-type]
                    )
    return out
