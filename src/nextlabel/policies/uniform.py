"""Uniform: the task with the fewest labels, those in flight counted. What 'n labels for everything' does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.crowd_campaign import CrowdPlan
from nextlabel.policies.base import ClassView, StaticPolicy
from nextlabel.policies.crowd.policies import ranked_plan

if TYPE_CHECKING:
    from nextlabel.policies.crowd.allocator import CrowdAllocator


class Uniform(StaticPolicy):
    """Fewest labels first."""

    name = "uniform"
    in_flight = "counts it"
    in_reward_units = False
    uses_prior = False
    knows_workers = True
    by_count = True

    def score(self, view: ClassView) -> Floats:
        """-(m + w)."""
        return -view.given.astype(np.float64)

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """Fewest labels first, whoever the worker is."""
        return ranked_plan(crowd.grid, -crowd.grid)
