"""A policy's value as a function of the budget, from one campaign per replication where that can be.

A policy that plans for its budget from the first label on (``auto``) has a campaign of its own for each of them.
Guarantee: for each budget the mean of the policy with exactly that budget, unbiased, 95% normal intervals; the budgets
share their arrivals, durations and labels, so the curve is smooth and differences along it are paired.
Cost: one index table (of the largest budget) and one campaign of the largest budget per replication; for a policy that
plans, tables and campaigns for each budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import refuse
from nextlabel.model.estimate import Z95
from nextlabel.model.problem import PiecewiseRate, Problem
from nextlabel.model.tasks import ScoreClasses, TaskClass, counts_of, whole
from nextlabel.policies.base import Policy, Setting
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import FEW_CLASSES, Rollout, make_policy_arrays, make_problem_arrays
from nextlabel.simulation.engine import Engine, run_chunks
from nextlabel.simulation.ranked_tasks import RankedCampaigns
from nextlabel.solve.curve import overlap_values
from nextlabel.solve.progress import Progress, part

#: Tasks of a sample, at least; no more than twice as many are simulated.
SAMPLED_TASKS = 20_000


@dataclass(frozen=True, slots=True)
class ValueCurve:
    """Values per task, net of what labels cost, for each budget; ``sample`` has one row per replication."""

    budgets: Ints
    mean: Floats
    half_width: Floats
    labels_used: Floats
    sample: Floats

    @classmethod
    def of(cls, problem: Problem, budgets: Ints, rewards: Floats, labels: Floats) -> ValueCurve:
        """From rewards and labels used (replications, budgets)."""
        values = (rewards - problem.label_cost * labels) / problem.tasks
        half = Z95 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
        return cls(budgets, values.mean(axis=0), half, labels.mean(axis=0), values)


def value_curve(
    problem: Problem,
    policy: Policy | str,
    budgets: Sequence[int],
    *,
    replications: int = 200,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> ValueCurve:
    """The value of ``policy`` with each of the ``budgets`` (rising), everything else as ``problem`` has it."""
    wanted = np.array([whole("budget", b, 0, "Give numbers of labels.") for b in budgets], dtype=np.int64)
    falls = len(wanted) == 0 or np.any(np.diff(wanted) <= 0)
    refuse((falls, "the budgets do not rise.", "Give different numbers of labels, the smallest first."))
    count = whole("replications", replications, 2, "Give at least two replications, e.g. --replications 200.")
    rule, engine = make_policy(policy), engine or Engine()
    many = len(problem.classes) > FEW_CLASSES
    if rule.planned_ahead and not many:
        return _each_alone(problem, rule, wanted, count, seed, engine, progress)
    campaigns = (RankedCampaigns if many else Rollout).over_budgets(problem, rule, wanted.tolist())
    out = run_chunks(engine, partial(campaigns.play, seed), count, progress)[0]
    return ValueCurve.of(problem, wanted, out[:, :, 0], out[:, :, 1])


def _each_alone(
    problem: Problem, policy: Policy, budgets: Ints, count: int, seed: int, engine: Engine, progress: Progress | None
) -> ValueCurve:
    what = f"policy {policy.name!r} solves again and has no curve."
    refuse((policy.solves_again, what, "Use index, auto or another rule."))
    rewards, labels = np.empty((2, count, len(budgets)))
    for k, budget in enumerate(budgets.tolist()):
        if budget == 0:
            rewards[:, k], labels[:, k] = problem.tasks * overlap_values(problem, np.array([0]))[0], 0.0
            continue
        setting = Setting.of(problem.with_budget(budget))
        rollout = Rollout(make_problem_arrays(setting, True), make_policy_arrays(setting, policy))
        out = run_chunks(engine, partial(rollout.play, seed), count, part(progress, k, len(budgets)))[0][:, 0]
        rewards[:, k], labels[:, k] = out[:, 0], out[:, 1]
    return ValueCurve.of(problem, budgets, rewards, labels)


def sample_tasks(problem: Problem) -> tuple[Problem, int]:
    """A large campaign of many priors in small: every k-th task by score, a k-th of the labels and workers; and k.

    Labels per task and labels in flight per task stay the same, and the sample has all scores in their proportions, so
    that values per task are those of the large campaign but for its size: with 20,000 tasks the fifth decimal. It is
    the problem itself and 1 where that is small, or its priors are few.
    """
    step = problem.tasks // SAMPLED_TASKS
    if step < 2 or len(problem.classes) <= FEW_CLASSES:
        return problem, 1
    classes, counts = problem.classes, counts_of(problem.classes).astype(np.int64)
    scores = classes.values if isinstance(classes, ScoreClasses) else np.zeros(len(classes))
    order = np.argsort(scores, kind="stable")
    which, kept = np.unique(np.repeat(np.arange(len(order)), counts[order])[step // 2 :: step], return_counts=True)
    some: Sequence[TaskClass] = (
        classes.of(scores[order][which], kept.astype(np.int64))
        if isinstance(classes, ScoreClasses)
        else tuple(replace(classes[k], count=n) for k, n in zip(which.tolist(), kept.tolist(), strict=True))
    )
    rate = problem.arrival_rate
    slower = (
        PiecewiseRate(tuple((start, r / step) for start, r in rate.pieces), rate.period)
        if isinstance(rate, PiecewiseRate)
        else rate / step
    )
    return replace(problem, classes=some, arrival_rate=slower, budget=problem.budget // step), step
