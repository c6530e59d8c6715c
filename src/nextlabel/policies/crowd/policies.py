"""Policies that know who is there: which task a worker gets depends on the worker too, or there is none for them.

A policy of this kind says what a label of each type of worker is worth at each belief (``WorkerPolicy.score``). The
allocator (``policies.crowd.allocator``) groups workers into types, keeps beliefs, labels in flight and turns, and asks
again as labels come in; so the same few lines play in the simulator, in a replay and in a backtest.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.kernels.crowd_campaign import CrowdPlan
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.crowd.relaxation import ranked_plan, scored_plan

if TYPE_CHECKING:
    from nextlabel.policies.crowd.allocator import CrowdAllocator


class CrowdView(NamedTuple):
    """What a policy that knows workers looks at: beliefs of tasks as G points, workers in M types."""

    grid: Floats  # (G,) P(truth = 1) for two answers, the largest probability for more
    reward: Floats  # (G,) the chance that the likeliest answer is right
    to: Ints  # (M, G, E) beliefs after a label of each type, as points of the grid
    weight: Floats  # (M, G, E) and with which probability
    share: Floats  # (M,) of the arrivals to come
    cost: Floats  # (M,) of a label
    supply: Floats  # (M,) labels that each type can still give
    members: Floats  # (G,) tasks at each belief
    left: float  # labels left

    def after(self, values: Floats) -> Floats:
        """(M, G) E[values after a label of each type]."""
        return np.asarray(np.sum(self.weight * values[self.to], axis=2))


class WorkerPolicy(Policy):
    """A rule that looks at who has come, and so has no table by the state of the task alone."""

    in_flight = "all of it, in expectation"
    by_table = False
    knows_workers = True

    @abstractmethod
    def score(self, view: CrowdView) -> Floats:
        """(types, beliefs) what a label of a worker of the type is worth; the worker gets the task with the largest.

        Where workers may be turned away, one for whom no score is above 0 is.
        """

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """The scores as the decision core reads them."""
        view = crowd.view()
        score, shape = np.asarray(self.score(view), dtype=np.float64), view.to.shape[:2]
        if score.shape != shape or not np.isfinite(score).all():
            raise InputError(
                f"policy {self.name!r} returns scores of shape {score.shape}, and finite ones of {shape} are needed.",
                "Return one row for each type of worker and one column for each belief.",
            )
        return scored_plan(view.grid, score)

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Refused: there is nobody to tell apart."""
        raise InputError(
            f"the policy {self.name} is for workers who differ, and the problem does not say who they are.",
            "Add [[workers]] tables with accuracy and supply to the problem file, or use index.",
        )


class Crowd(WorkerPolicy):
    """Follows the relaxation with a price for each type of worker, solved again as labels come in."""

    name = "crowd"
    priced = True
    planned_ahead = True
    solves_again = True

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """The relaxation for the tasks as they stand."""
        return crowd.relaxation()

    def score(self, view: CrowdView) -> Floats:
        """What a label adds to the chance that the task is right, less its cost: the relaxation looks further."""
        return view.after(view.reward) - view.reward - view.cost[:, None]


class CrowdUncertainty(WorkerPolicy):
    """The task whose truth is least certain, whoever the worker is."""

    name = "crowd-uncertainty"

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """All workers are of one type."""
        return ranked_plan(crowd.grid, -crowd.certainty)

    def score(self, view: CrowdView) -> Floats:
        """How far the likeliest answer is from certain."""
        return np.tile(1.0 - view.reward, (len(view.cost), 1))
