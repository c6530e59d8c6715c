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
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.backtesting.accuracy import accuracies, savings
from nextlabel.backtesting.budgets import choose_budgets
from nextlabel.backtesting.options import BacktestOptions, each_once
from nextlabel.backtesting.pilot import hold_out
from nextlabel.backtesting.played import collected_curve, count_votes, followed, judged
from nextlabel.backtesting.readout import COUNTING, accuracy_of, dawid_skene, needs_crowdkit, with_all_labels
from nextlabel.backtesting.replays import BacktestSetup, replay_overlaps, replay_policy
from nextlabel.backtesting.result import Backtest
from nextlabel.beliefs.prior import Prior
from nextlabel.errors import InputError
from nextlabel.files.gold import read_gold
from nextlabel.files.labels import as_label_table
from nextlabel.policies.base import Policy
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import as_prior
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.from_labels import to_recorded
from nextlabel.simulation.replay import Recorded, credits
from nextlabel.solve.progress import Progress, part

POLICIES = ("index", "okg", "okg-pending", "ucb1-tuned", "uncertainty", "uniform")
#: Dawid-Skene is fitted for so many replications.
FITS = 5


def backtest(
    labels: Any,
    gold: Any = None,
    *,
    policies: Sequence[Policy | str] = POLICIES,
    labels_per_task: Sequence[float] | None = None,
    budgets: Sequence[int] | None = None,
    prior: Prior | tuple[float, float] | None = None,
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
    learnt = hold_out(recorded, how.pilot, _two_answers(prior), threshold, how.method, seed)
    pool, undecided = _judged(recorded.subset(learnt.rest), truth, learnt.prior, learnt.threshold)
    setting = BacktestSetup(
        pool, learnt.prior, learnt.threshold, how.arrival_rate, how.completion_rate, how.order, seed
    )
    asked, grid, overlaps = choose_budgets(setting, labels_per_task, budgets)
    readouts = tuple(how.readouts or COUNTING)
    counting = [name for name in COUNTING if name in readouts or name == "posterior"]
    keep = followed(len(pool), len(grid), replications)
    fixed = replay_overlaps(setting, overlaps, replications, keep=keep, engine=engine)
    outcomes = []
    for k, policy in enumerate(chosen):
        some = asked if policy.planned_ahead else grid
        mine = part(progress, k, len(chosen) + ("dawid-skene" in readouts))
        outcomes.append(replay_policy(setting, policy, some, replications, keep=keep, engine=engine, progress=mine))
    played = [count_votes(setting, one, counting, how.ties) for one in (*outcomes, fixed)]
    found, at_overlap = played[:-1], played[-1]
    saved = [
        one for one in savings(found, at_overlap, seed) if one.readout in readouts and one.overlap_readout in readouts
    ]
    ceilings = {
        name: accuracy_of(with_all_labels(name, pool, learnt.prior, learnt.threshold), pool.gold, how.ties)
        for name in counting
        if name in readouts
    }
    if "dawid-skene" in readouts and pool.workers is not None:
        said = partial(_dawid_skene_credit, pool, pool.workers, how.ties)
        everything = np.tile(np.arange(pool.labels.shape[1]), (len(pool), 1))
        ceilings["dawid-skene"] = float(said(everything, pool.counts)[judged(pool)].mean())
        for one, rule in zip((*outcomes, fixed), played, strict=True):
            some_fits = replace(one, taken=one.taken[:FITS])
            rule.curves["dawid-skene"] = collected_curve(setting, some_fits, said, None if one is fixed else asked)
    index = next((one for one in found if one.name == "index"), None)
    points = [point for name in readouts for one in found for point in accuracies(one, name, len(pool), asked, index)]
    overlap_points = [p for name in readouts for p in accuracies(at_overlap, name, len(pool), list(overlaps), None)]
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
        readouts=readouts,
        points=tuple(points),
        overlaps=tuple(overlap_points),
        ceilings=ceilings,
        savings=tuple(saved),
        replications=replications,
        seconds=perf_counter() - begin,
    )


def _two_answers(prior: Prior | tuple[float, float] | None) -> Prior | None:
    found = None if prior is None else as_prior(prior)
    if found is not None and found.answers != 2:
        raise InputError(f"a replay has two answers, and the prior is {found.describe()}.", "Give two weights: (1, 1).")
    return found


def _recorded(labels: Any, gold: Any) -> Recorded:
    if isinstance(labels, Recorded):
        return labels
    table = as_label_table(labels)
    return to_recorded(table, None if gold is None else read_gold(gold, table))


def _judged(pool: Recorded, truth: str, prior: Prior, threshold: float) -> tuple[Recorded, int]:
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
    each_once("policy", [policy for policy in policies if isinstance(policy, str)])
    chosen = [make_policy(policy) for policy in policies]
    each_once("policy", [policy.name for policy in chosen])
    for policy in chosen:
        if policy.solves_again:
            raise InputError(f"the policy {policy.name} cannot be replayed.", "Use index or lagrangian.")
    if replications < 2:
        raise InputError(f"{replications} replication has no interval.", "Give at least two, e.g. --replications 200.")
    if "dawid-skene" in (options.readouts or ()):
        needs_crowdkit()
        if recorded.workers is None:
            raise InputError(
                "the read-out dawid-skene needs to know who gave each label.", "Name the column with --worker-column."
            )
    return chosen


def _dawid_skene_credit(pool: Recorded, workers: Ints, ties: str, drawn: Ints, taken: Ints) -> Floats:
    """(K,) what each task is worth that Dawid-Skene decides from these labels; nothing where the truth is not known."""
    credit = credits(dawid_skene(pool, workers, drawn, taken), ties)
    return np.where(pool.gold < 0, 0.0, credit[np.arange(len(pool)), np.maximum(pool.gold, 0)])
