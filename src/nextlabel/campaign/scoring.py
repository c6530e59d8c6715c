"""Scores of ranked tasks, those of campaigns with many priors: stored with each task, so that an index has the best.

The index is here that of the settled table without delay, which depends on neither the labels left nor the rates
(``simulation.own_priors``), so that a label changes the score of one task only. Scores order the candidates of the next
ask and nothing else: the log does not hold them, and they may be computed anew at any time.
Cost: a state of one task 0.2 ms, fresh tasks 40 µs each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.simplex import simplex
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rows import TaskRow
from nextlabel.campaign.rules import Limits
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import InputError
from nextlabel.kernels.limit_index import least_limit_index, new_workspace
from nextlabel.kernels.ties import TIED
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import ClassView, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.own_priors import AHEAD, FEW_CLASSES, class_arrays
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import Problem
from nextlabel.problem.state import TaskState
from nextlabel.problem.units import reward_unit

__all__ = ["FEW_CLASSES", "TIED", "check_policy", "limits_for", "rank", "rank_all", "score"]

#: Labels of a ranked task, and of them in flight.
DEPTH, FLIGHT = 12, 4


def limits_for(config: CampaignSettings, first: int, ranked: bool) -> Limits:
    """The limits of tasks that are added now, from number ``first`` on; lower where tasks are ranked."""
    if not ranked:
        return Limits(first, config.most_labels, config.most_in_flight)
    return Limits(first, min(config.most_labels, DEPTH), min(config.most_in_flight, FLIGHT))


def check_policy(config: CampaignSettings) -> None:
    """Refuse a policy that has no score for a task alone."""
    if not isinstance(make_policy(config.policy), StaticPolicy | Index | Auto):
        raise InputError(
            f"policy {config.policy!r} cannot be used with more than {FEW_CLASSES} kinds of tasks.",
            "Use index, okg, uncertainty, uniform or another rule that looks at the task alone.",
        )


def rank(ledger: Ledger, task: TaskRow, state: TaskState) -> float | None:
    """The score of a task that gets into a state; None if tasks are not ranked, or it can have no label now."""
    row, rules = ledger.row, ledger.row.rules
    if not rules.ranked or (rules.unranked_from is not None and task.number >= rules.unranked_from):
        return None
    if task.gold is not None or (rules.hidden and task.number >= row.tasks):
        return None
    limits = rules.limits_of(task.number)
    if task.labels + state.w >= limits.most_labels or state.w >= limits.most_in_flight:
        return None
    return score(row.config, ledger.classes()[task.class_number], task.labels, state)


def rank_all(ledger: Ledger) -> None:
    """Give every task its score, if tasks are ranked."""
    if ledger.row.rules.ranked:
        ledger.rescore(lambda tasks: _ranks(ledger, tasks))


def _ranks(ledger: Ledger, tasks: Sequence[TaskRow]) -> list[float | None]:
    return [rank(ledger, task, task.state) for task in tasks]


@lru_cache(maxsize=16_384)
def score(config: CampaignSettings, prior: Prior, labels: int, state: TaskState) -> float:
    """The score of one task with so many labels."""
    deep = labels + state.w >= DEPTH or state.w >= FLIGHT  # a task from before the campaign had many priors
    depth, flight = (config.most_labels, config.most_in_flight) if deep else (DEPTH, FLIGHT)
    policy = make_policy(config.policy)
    if isinstance(policy, StaticPolicy):
        entry = config.class_of(prior)
        view = ClassView(entry, depth, flight, reward_unit(Problem((entry,), 1)))
        return float(policy.score(view)[state.w, state.node])
    first, child, _ = simplex(config.answers, depth + AHEAD)
    known = np.full(int(first[depth + 1]), np.nan)
    room = new_workspace(int(first[-1]), config.answers)
    ahead = np.zeros(int(first[flight + 1]), dtype=np.int64)
    facts = _facts(config, prior, depth + AHEAD)
    return float(least_limit_index(first, child, facts, labels, state.node, state.w, room, ahead, known))


@lru_cache(maxsize=4096)
def _facts(config: CampaignSettings, prior: Prior, depth: int) -> Floats:
    """Rewards and cumulative probabilities of the answers, as ``kernels.limit_index`` has them."""
    reward_of, _, prob = class_arrays([config.class_of(prior)], depth)
    facts = np.empty((reward_of.shape[1], config.answers))
    facts[:, 0] = reward_of[0]
    facts[:, 1:] = np.cumsum(prob[0, :, :-1], axis=1)
    return facts
