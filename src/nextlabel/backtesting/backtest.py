"""What each policy would have made of labels that were really given, and how many of them it would have saved.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
K         tasks        tasks that are replayed; a pilot's are not among them
U         budgets      labels to buy; the asked ones and a fine grid, for the savings
k         overlaps     odd numbers of labels for every task: an even one wastes its last label
d         threshold    the share of ones above which a task is a 1, for rules that count
========= ============ ==========================================================================

Where it is known who gave which label, policies that learn workers are replayed, and labels are read out by the model
of workers; nothing is held out and gold only judges. Where it is not, fifty random tasks, the pilot, give the prior of
rules that count. Labels come in random order unless told otherwise, none is used twice. Accuracy is against gold or,
without gold, against what all recorded labels say together, which flatters every rule.
Guarantee: exact for these recorded labels up to the orders replayed; intervals cover other orders and other tasks of
the same kind (``curves``), not another crowd. Cost: one campaign per policy and replication, and one fit of the workers
per replication and budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from nextlabel.backtesting.pilot import PilotFit, from_all_labels, hold_out
from nextlabel.backtesting.play import (
    COUNTING_REPLICATIONS,
    CROWD,
    PILOT,
    BacktestOptions,
    Play,
    accuracies,
    check_times,
    choose_budgets,
    default_replications,
    each_once,
    play_counting,
    play_with_workers,
    savings,
)
from nextlabel.backtesting.readout import beliefs_of, everything, needs_crowdkit, winners, with_all_labels
from nextlabel.backtesting.result import Backtest
from nextlabel.beliefs.prior import Prior
from nextlabel.errors import InputError
from nextlabel.files.labels import Gold, LabelTable, as_label_table, read_gold
from nextlabel.policies.base import Policy
from nextlabel.policies.crowd.policies import WorkerPolicy
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import as_prior
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.replay import Recorded, ReplaySetup, to_recorded
from nextlabel.solve.progress import Progress


@dataclass(frozen=True, slots=True)
class Rules:
    """What is played: names in the order asked for, those that count, those that learn workers; how it is read out."""

    names: tuple[str, ...]
    counting: tuple[Policy, ...]
    crowd: tuple[Policy, ...]
    readouts: tuple[str, ...]

    @property
    def use_prior(self) -> bool:
        """Whether a policy or a read-out looks at the prior."""
        return "posterior" in self.readouts or any(policy.uses_prior for policy in self.counting)

    @property
    def know_workers(self) -> bool:
        """Whether anything is learnt about workers."""
        return bool(self.crowd) or "workers" in self.readouts


def backtest(
    labels: Any,
    gold: Any = None,
    *,
    policies: Sequence[Policy | str] | None = None,
    labels_per_task: Sequence[float] | None = None,
    budgets: Sequence[int] | None = None,
    prior: Prior | tuple[float, float] | None = None,
    threshold: float | None = None,
    replications: int | None = None,
    seed: int = 0,
    options: BacktestOptions | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Replay ``labels`` under every policy.

    ``labels`` is the path of a file, a data frame, a ``LabelTable`` or ``Recorded`` labels; ``gold`` is the truth where
    it is known, a path, a data frame or what ``read_gold`` returned, and only judges. Budgets are labels per task or
    labels in all. With workers the policies are ``crowd``, ``crowd-uncertainty`` and ``index``, four to ten
    replications of each, and nothing is held out. Without them they are policies that count votes, 200 replications of
    each; without a ``prior`` some tasks are held out to learn it and, where gold clearly says so, the ``threshold``.
    """
    begin = perf_counter()
    how = options or BacktestOptions()
    recorded, table = _recorded(labels, gold)
    rules = _rules(policies, how, recorded)
    if how.replay == "timed":
        check_times(table)
    count = _count(replications, rules, int(recorded.counts.sum()))
    truth = "gold" if (recorded.gold >= 0).any() else "consensus"
    learnt = _learnt(recorded, rules, how, _two_answers(prior), threshold, seed)
    pool, undecided = _judged(recorded.subset(learnt.rest), truth, learnt, rules)
    setting = ReplaySetup(pool, learnt.prior, learnt.threshold, how.arrival_rate, how.completion_rate, how.order, seed)
    asked, grid, overlaps = choose_budgets(setting, labels_per_task, budgets, crowd=bool(rules.crowd))
    play = Play(setting, how, rules.readouts, asked, grid, overlaps, count, engine)
    if rules.know_workers:
        played = play_with_workers(play, rules.counting, rules.crowd, table, progress)
    else:
        played = play_counting(play, rules.counting, progress)
    found = sorted(played.rules, key=lambda one: rules.names.index(one.name))
    index = next((one for one in found if one.name == "index"), None)
    points = [
        point
        for name in rules.readouts
        for one in found
        for point in accuracies(one, name, len(pool), asked, (index, found[0]))
    ]
    fixed = [
        p for name in rules.readouts for p in accuracies(played.fixed, name, len(pool), list(overlaps), (None, None))
    ]
    saved = [
        one
        for one in savings(found, played.fixed, seed)
        if one.readout in rules.readouts and one.overlap_readout in rules.readouts
    ]
    if progress is not None:
        progress(1.0)
    return Backtest(
        setting=setting,
        pilot=learnt,
        truth=truth,
        known=int((pool.gold >= 0).sum()),
        undecided=undecided,
        ties=how.ties,
        policies=rules.names,
        without_prior=tuple(policy.name for policy in rules.counting if not policy.uses_prior),
        readouts=rules.readouts,
        points=tuple(points),
        overlaps=tuple(fixed),
        ceilings=played.ceilings,
        savings=tuple(saved),
        replications=count,
        seconds=perf_counter() - begin,
        workers=None if pool.workers is None else int(np.unique(pool.workers[pool.workers >= 0]).size),
        crowd=tuple(policy.name for policy in rules.crowd),
        replay=how.replay,
        turn_away=how.turn_away,
        uses_prior=rules.use_prior or not rules.know_workers,
    )


def _two_answers(prior: Prior | tuple[float, float] | None) -> Prior | None:
    found = None if prior is None else as_prior(prior)
    if found is not None and found.answers != 2:
        raise InputError(f"a replay has two answers, and the prior is {found.describe()}.", "Give two weights: (1, 1).")
    return found


def _recorded(labels: Any, gold: Any) -> tuple[Recorded, LabelTable | None]:
    """The labels task by task, and as they were read."""
    if isinstance(labels, Recorded):
        recorded, table = labels, None
    else:
        table = as_label_table(labels)
        truth = gold if gold is None or isinstance(gold, Gold) else read_gold(gold, table)
        recorded = to_recorded(table, truth, any_answers=True)
    said = np.unique(recorded.labels[recorded.labels >= 0])
    if len(said) < 2:
        raise InputError(
            "every label is the same answer, so that there is nothing to tell apart.",
            "Give labels with at least two different answers.",
        )
    return recorded, table


def _rules(policies: Sequence[Policy | str] | None, how: BacktestOptions, recorded: Recorded) -> Rules:
    """Policies and read-outs, checked against what is known."""
    given = policies or how.default_policies(recorded.workers is not None, recorded.answers)
    each_once("policy", [policy for policy in given if isinstance(policy, str)])
    chosen = [make_policy(policy) for policy in given]
    crowd = tuple(policy for policy in chosen if isinstance(policy, WorkerPolicy))
    counting = tuple(policy for policy in chosen if not isinstance(policy, WorkerPolicy))
    learners = [policy.name for policy in crowd]
    names = tuple(policy.name for policy in chosen)
    each_once("policy", list(names))
    for policy in counting:
        if policy.solves_again:
            raise InputError(f"the policy {policy.name} cannot be replayed.", "Use index or lagrangian.")
    readouts = tuple(how.readouts or how.default_readouts(bool(crowd)))
    _check_workers(learners, readouts, how, recorded)
    how.check_crowd(learners or (["the read-out workers"] if "workers" in readouts else []), bool(learners))
    if recorded.answers > 2 and (counting or "posterior" in readouts or "dawid-skene" in readouts):
        what = counting[0].name if counting else "the read-out posterior or dawid-skene"
        raise InputError(
            f"the labels have {recorded.answers} answers, and {what} knows two.",
            "Name the one that counts as 1 with --positive, or use crowd and the read-outs workers and majority.",
        )
    if how.replay != "task-first" and counting:
        raise InputError(
            f"{counting[0].name} does not look at who is there, so that it cannot be replayed {how.replay}.",
            f"Use {', '.join(CROWD)}, or --replay task-first.",
        )
    if crowd and "posterior" in readouts:
        raise InputError(
            f"{crowd[0].name} has no read-out by posterior, which takes workers to be alike.",
            "Use the read-outs workers and majority.",
        )
    return Rules(names, counting, crowd, readouts)


def _check_workers(crowd: Sequence[str], readouts: Sequence[str], how: BacktestOptions, recorded: Recorded) -> None:
    if "dawid-skene" in readouts:
        needs_crowdkit()
    who = [*crowd[:1], *(f"the read-out {name}" for name in ("workers", "dawid-skene") if name in readouts)]
    if how.replay != "task-first":
        who.append(f"--replay {how.replay}")
    if who and recorded.workers is None:
        raise InputError(
            f"{who[0]} needs to know who gave each label, and the labels do not say.",
            "Name the column of workers with --worker-column.",
        )


def _count(replications: int | None, rules: Rules, labels: int) -> int:
    if replications is None:
        return default_replications(labels) if rules.know_workers else COUNTING_REPLICATIONS
    if replications < 2:
        raise InputError(f"{replications} replication has no interval.", "Give at least two, e.g. --replications 200.")
    return replications


def _learnt(
    recorded: Recorded, rules: Rules, how: BacktestOptions, prior: Prior | None, threshold: float | None, seed: int
) -> PilotFit:
    """What rules that count are told beforehand."""
    if how.pilot is not None and not rules.use_prior and rules.know_workers:
        raise InputError(
            "a pilot gives rules that count votes their prior, and none of them is played.",
            "Leave --pilot-tasks out, or add a policy such as index.",
        )
    if rules.know_workers and how.pilot is None:
        known = prior if rules.use_prior else as_prior((1, 1))
        return from_all_labels(recorded, known, threshold, how.method, seed)
    return hold_out(recorded, how.pilot or PILOT, prior, threshold, how.method, seed)


def _judged(pool: Recorded, truth: str, learnt: PilotFit, rules: Rules) -> tuple[Recorded, int]:
    """The tasks with what they are judged by, and how many of them all labels together leave undecided."""
    undecided = 0
    if truth == "consensus":
        if rules.know_workers:
            said = winners(beliefs_of(pool, *everything(pool)))
        else:
            said = with_all_labels("posterior", pool, learnt.prior, learnt.threshold)
        undecided = int((said < 0).sum())
        pool = Recorded(pool.tasks, pool.labels, pool.counts, said, pool.workers, pool.answers)
    if not (pool.gold >= 0).any():
        raise InputError(
            "no replayed task has a known truth.", "Give gold for more tasks, or hold out fewer, or give no gold."
        )
    return pool, undecided
