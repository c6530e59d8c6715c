"""Scores of ranked tasks, those of campaigns with many priors (``policies.ordered``).

The index is here that of the settled table without delay, which depends on neither the labels left nor the rates
(``simulation.ranked_tasks``), so that a label changes the score of one task only. Scores order the candidates of an
ask and nothing else: the log does not hold them, and they may be computed anew at any time.
Tasks with a model's score each have as many priors as there are tasks: their scores are interpolated between those of
the two nearest of a grid of priors, in the same state. What is believed about a task is by its own prior all the same.
Cost: a state of one prior 0.2 ms, once; from then on it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.campaign.new_tasks import LEAST_SCORE
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import InputError
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.no_delay import least_limit_index, new_workspace
from nextlabel.model.beta import Beta
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior import Prior
from nextlabel.model.problem import Problem, reward_unit
from nextlabel.model.simplex import simplex
from nextlabel.model.tasks import ScoreClasses, TaskState, prior_of_score, stack_classes
from nextlabel.policies.auto import Auto
from nextlabel.policies.base import ClassView, StaticPolicy
from nextlabel.policies.index import Index
from nextlabel.policies.ordered import Scores
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import AHEAD, FEW_CLASSES
from nextlabel.solve.grouping import make_score_grid, same_strength

__all__ = ["FEW_CLASSES", "TIED", "check_policy", "ranked_by_grid", "score", "scores_for"]

#: Levels that the index looks ahead from a fresh task; from others 12 levels at least, and no fewer in all.
LEVELS = 24
#: Campaigns with more priors than the grid has points rank tasks by the grid.
GRID = 400


def check_policy(config: CampaignSettings) -> None:
    """Refuse a policy that has no score for a task alone."""
    if not isinstance(make_policy(config.policy), StaticPolicy | Index | Auto):
        raise InputError(
            f"policy {config.policy!r} cannot be used with more than {FEW_CLASSES} kinds of tasks.",
            "Use index, okg, uncertainty, uniform or another rule that looks at the task alone.",
        )


def ranked_by_grid(classes: Sequence[Prior]) -> bool:
    """Whether tasks with these priors are ranked by the grid."""
    return len(classes) > GRID


def scores_for(config: CampaignSettings, classes: Sequence[Prior]) -> Scores:
    """Scores of tasks by class, labels, node and labels in flight (n,) each; ``classes`` may grow."""
    places: list[tuple[int, float]] = []  # the cell of the grid of each class, and the share of its lower end

    def scores(class_id: Any, labels: Any, node: Any, w: Any) -> Floats:
        gridded, out = ranked_by_grid(classes), np.empty(len(class_id))
        if len(class_id) == 1:
            state = TaskState(int(node[0]), int(w[0]))
            return np.array([score(config, classes[int(class_id[0])], int(labels[0]), state, gridded)])
        while gridded and len(places) < len(classes):
            places.append(_cell(config, classes[len(places)]))
        states, which = np.unique(np.stack([labels, node, w]), axis=1, return_inverse=True)
        for k, (m, i, flight) in enumerate(states.T.tolist()):
            some, state = np.flatnonzero(which.ravel() == k), TaskState(i, flight)
            used, place = np.unique(class_id[some], return_inverse=True)
            if gridded:
                out[some] = _by_grid(config, classes, used, np.array(places)[used], m, state)[place]
            else:
                out[some] = np.array([score_of_state(config, classes[c], m, state) for c in used.tolist()])[place]
        return out

    return scores


def _by_grid(
    config: CampaignSettings, classes: Sequence[Prior], used: Any, places: Any, labels: int, state: TaskState
) -> Floats:
    """Scores of classes in one state, interpolated where their priors lie between those of the grid."""
    cell, share, out = places[:, 0].astype(np.int64), places[:, 1], np.empty(len(used))
    points, priors = score_grid(config)
    on = cell >= 0
    at = np.full(len(points) + 1, np.nan)
    for point in np.unique(np.concatenate([cell[on], cell[on] + 1])).tolist():
        at[point] = score_of_state(config, priors[point], labels, state)
    out[on] = np.where(share[on] == 1.0, at[cell[on]], share[on] * at[cell[on]] + (1.0 - share[on]) * at[cell[on] + 1])
    out[~on] = [score_of_state(config, classes[c], labels, state) for c in used[~on].tolist()]
    return out


def score(config: CampaignSettings, prior: Prior, labels: int, state: TaskState, by_grid: bool = False) -> float:
    """The score of one task with so many labels; ``by_grid``: interpolated between priors of a grid, if it can be."""
    cell, share = _cell(config, prior) if by_grid else (-1, 1.0)
    if cell < 0:
        return score_of_state(config, prior, labels, state)
    priors = score_grid(config)[1]
    one = score_of_state(config, priors[cell], labels, state)
    return (
        one if share == 1.0 else share * one + (1.0 - share) * score_of_state(config, priors[cell + 1], labels, state)
    )


def _cell(config: CampaignSettings, prior: Prior) -> tuple[int, float]:
    """Where the prior of a task with a model's score lies on the grid: the point before it, and that point's share."""
    if isinstance(prior, OneCoin) and prior.accuracy == config.accuracy:
        p = prior.probability
    elif isinstance(prior, Beta) and config.accuracy is None and same_strength(prior, config.strength):
        p = prior.alpha / config.strength
    else:
        return -1, 1.0
    points = score_grid(config)[0]
    cell = int(np.searchsorted(points, p, side="right")) - 1
    if not 0 <= cell < len(points) - 1:
        return -1, 1.0
    return cell, float((points[cell + 1] - p) / (points[cell + 1] - points[cell]))


@lru_cache(maxsize=16)
def score_grid(config: CampaignSettings) -> tuple[Floats, tuple[Prior, ...]]:
    """Scores from the least to the largest that there can be, and their priors."""
    ends = np.array([LEAST_SCORE, 1.0 - LEAST_SCORE])
    strength = None if config.accuracy is not None else config.strength
    pattern = config.class_of(prior_of_score(0.5, strength, config.accuracy))
    points = make_score_grid(ScoreClasses(ends, np.ones(2), pattern, strength, config.accuracy), GRID)
    return points, tuple(prior_of_score(p, strength, config.accuracy) for p in points.tolist())


@lru_cache(maxsize=65_536)
def score_of_state(config: CampaignSettings, prior: Prior, labels: int, state: TaskState) -> float:
    given = labels + state.w
    policy = make_policy(config.policy)
    if isinstance(policy, StaticPolicy):
        entry = config.class_of(prior)
        view = ClassView(entry, 4 * (given // 4 + 1), max(state.w, 1), reward_unit(Problem((entry,), 1)))
        return float(policy.score(view)[state.w, state.node])
    depth = max(LEVELS, 4 * (given // 4 + 1) + AHEAD)
    first, child, _ = simplex(config.answers, depth)
    known = np.full(int(first[given + 1]), np.nan)
    room = new_workspace(int(first[-1]), config.answers)
    ahead = np.zeros(int(first[state.w + 1]), dtype=np.int64)
    facts = facts_of(config, prior, depth)
    return float(least_limit_index(first, child, facts, labels, state.node, state.w, room, ahead, known))


@lru_cache(maxsize=4096)
def facts_of(config: CampaignSettings, prior: Prior, depth: int) -> Floats:
    """Rewards and cumulative probabilities of the answers, as ``kernels.no_delay`` has them."""
    lattices = stack_classes([config.class_of(prior)], depth, lumped=False)
    return np.column_stack([lattices.reward[0], np.cumsum(lattices.prob[0, :, :-1], axis=1)])
