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
another crowd. Cost: one campaign per policy and replication, whatever the number of budgets; the index table first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.backtesting.accuracy import accuracies, accuracy_curve, dawid_skene_curves, savings
from nextlabel.backtesting.budgets import choose_budgets
from nextlabel.backtesting.pilot import hold_out
from nextlabel.backtesting.readout import COUNTING, READOUTS, accuracy_of, dawid_skene, needs_crowdkit, with_all_labels
from nextlabel.backtesting.replays import ARRIVALS, AT_ONCE_RATE, BacktestSetup, replay_overlaps, replay_policy
from nextlabel.backtesting.result import Backtest
from nextlabel.beliefs.beta import Beta
from nextlabel.errors import InputError
from nextlabel.files.gold import read_gold
from nextlabel.files.labels import as_label_table
from nextlabel.policies.base import Policy
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import as_prior
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.from_labels import to_recorded
from nextlabel.simulation.replay import ORDERS, TIES, Recorded
from nextlabel.solve.progress import Progress, part

POLICIES = ("index", "okg", "okg-pending", "ucb1-tuned", "uncertainty", "uniform")
#: Dawid-Skene is fitted for so many replications.
FITS = 5


@dataclass(frozen=True, slots=True)
class BacktestOptions:
    """How labels are replayed and judged.

    ``pilot`` tasks are held out to learn the prior by ``method`` ("moments" or "ml"), unless a prior is given. With the
    usual rates labels come back at once; ``order`` of a task's labels: "random", "file" or "reversed"; ``ties`` count
    "half", or are decided "positive" or "negative"; ``readouts``: "posterior", "majority", "dawid-skene".
    """

    pilot: int = 50
    method: str = "moments"
    arrival_rate: float = ARRIVALS
    completion_rate: float = AT_ONCE_RATE
    order: str = "random"
    ties: str = "half"
    readouts: Sequence[str] = field(default=COUNTING)

    def __post_init__(self) -> None:
        for what, given, known in (("order", self.order, ORDERS), ("ties", self.ties, TIES)):
            if given not in known:
                raise InputError(f"{what} {given!r} is not known.", f"Use one of {', '.join(known)}.")
        for name in self.readouts:
            if name not in READOUTS:
                raise InputError(f"read-out {name!r} is not known.", f"Use one of {', '.join(READOUTS)}.")
        _each_once("read-out", self.readouts)


def backtest(
    labels: Any,
    gold: Any = None,
    *,
    policies: Sequence[Policy | str] = POLICIES,
    labels_per_task: Sequence[float] | None = None,
    budgets: Sequence[int] | None = None,
    prior: Beta | tuple[float, float] | None = None,
    threshold: float | None = None,
    replications: int = 200,
    seed: int = 0,
    options: BacktestOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Replay ``labels`` under every policy.

    ``labels`` is the path of a file, a data frame, a ``LabelTable`` or ``Recorded`` labels; ``gold`` is the truth where
    it is known, a path or a data frame. Budgets are labels per task or labels in all. Without a ``prior`` some tasks
    are held out to learn it and, with gold, the ``threshold``.
    """
    begin = perf_counter()
    how = options or BacktestOptions()
    recorded = _recorded(labels, gold)
    chosen = _checked(policies, how, replications, recorded)
    truth = "gold" if (recorded.gold >= 0).any() else "consensus"
    learnt = hold_out(recorded, how.pilot, _beta(prior), threshold, how.method, seed)
    pool, undecided = _judged(recorded.subset(learnt.rest), truth, learnt.prior, learnt.threshold)
    setting = BacktestSetup(
        pool, learnt.prior, learnt.threshold, how.arrival_rate, how.completion_rate, how.order, seed
    )
    asked, grid, overlaps = choose_budgets(setting, labels_per_task, budgets)
    counting = [name for name in COUNTING if name in how.readouts or name == "posterior"]
    keep = min(FITS, replications) if "dawid-skene" in how.readouts else 0
    fixed = replay_overlaps(setting, overlaps, replications, keep=keep, engine=engine)
    found = []
    for k, policy in enumerate(chosen):
        some = asked if policy.planned_ahead else grid
        mine = part(progress, k, len(chosen) + (keep > 0))
        found.append(replay_policy(setting, policy, some, replications, keep=keep, engine=engine, progress=mine))
    played = [*found, fixed]
    curves = {(one.name, name): accuracy_curve(setting, one, name, how.ties) for one in played for name in counting}
    shown = [name for name in counting if name in how.readouts]
    saved = savings(found, fixed, curves, shown, seed)
    ceilings = {
        name: accuracy_of(with_all_labels(name, pool, learnt.prior, learnt.threshold), pool.gold, how.ties)
        for name in shown
    }
    if keep and pool.workers is not None:
        fit = dawid_skene_curves(setting, pool.workers, how.ties)
        everything = np.tile(np.arange(pool.labels.shape[1]), (len(pool), 1))
        all_labels = dawid_skene(pool, pool.workers, everything, pool.counts)
        ceilings["dawid-skene"] = accuracy_of(all_labels, pool.gold, how.ties)
        for one in played:
            curves[one.name, "dawid-skene"] = fit(one, None if one is fixed else asked)
    index = next((one for one in found if one.name == "index"), None)
    points = [
        point
        for name in how.readouts
        for one in found
        for point in accuracies(setting, one, name, curves, asked, index)
    ]
    at_overlap = [p for name in how.readouts for p in accuracies(setting, fixed, name, curves, list(overlaps), None)]
    if progress is not None:
        progress(1.0)
    return Backtest(
        setting=setting,
        pilot=learnt,
        truth=truth,
        known=int((pool.gold >= 0).sum()),
        undecided=undecided,
        ties=how.ties,
        policies=tuple(policy.name for policy in chosen),
        without_prior=tuple(policy.name for policy in chosen if not policy.uses_prior),
        readouts=tuple(how.readouts),
        points=tuple(points),
        overlaps=tuple(at_overlap),
        ceilings=ceilings,
        savings=tuple(saved),
        replications=replications,
        seconds=perf_counter() - begin,
    )


def _beta(prior: Beta | tuple[float, float] | None) -> Beta | None:
    found = None if prior is None else as_prior(prior)
    if found is not None and not isinstance(found, Beta):
        raise InputError(f"a replay has two answers, and the prior is {found.describe()}.", "Give two weights: (1, 1).")
    return found


def _recorded(labels: Any, gold: Any) -> Recorded:
    if isinstance(labels, Recorded):
        return labels
    table = as_label_table(labels)
    return to_recorded(table, None if gold is None else read_gold(gold, table))


def _judged(pool: Recorded, truth: str, prior: Beta, threshold: float) -> tuple[Recorded, int]:
    """The tasks with what they are judged by, and how many of them all labels together leave undecided."""
    undecided = 0
    if truth == "consensus":
        said = with_all_labels("posterior", pool, prior, threshold)
        undecided = int((said < 0).sum())
        pool = Recorded(pool.tasks, pool.labels, pool.counts, said, pool.workers)
    if not (pool.gold >= 0).any():
        raise InputError(
            "no replayed task has a known truth.", "Give gold for more tasks, or hold out fewer, or give no gold."
        )
    return pool, undecided


def _checked(
    policies: Sequence[Policy | str], options: BacktestOptions, replications: int, recorded: Recorded
) -> list[Policy]:
    _each_once("policy", [policy for policy in policies if isinstance(policy, str)])
    chosen = [make_policy(policy) for policy in policies]
    _each_once("policy", [policy.name for policy in chosen])
    for policy in chosen:
        if policy.solves_again:
            raise InputError(f"the policy {policy.name} cannot be replayed.", "Use index or lagrangian.")
    if replications < 2:
        raise InputError(f"{replications} replication has no interval.", "Give at least two, e.g. --replications 200.")
    if "dawid-skene" in options.readouts:
        needs_crowdkit()
        if recorded.workers is None:
            raise InputError(
                "the read-out dawid-skene needs to know who gave each label.", "Name the column with --worker-column."
            )
    return chosen


def _each_once(what: str, names: Sequence[str]) -> None:
    for name in names:
        if list(names).count(name) > 1:
            raise InputError(f"{what} {name!r} is given twice.", "Give each one once.")
