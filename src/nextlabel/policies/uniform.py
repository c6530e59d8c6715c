"""Uniform: the task with the fewest labels, those in flight counted. What 'n labels for everything' does."""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, StaticPolicy


class Uniform(StaticPolicy):
    """Fewest labels first."""

    name = "uniform"
    in_flight = "counts it"
    in_reward_units = False
    uses_prior = False
    knows_workers = True

    def score(self, view: ClassView) -> Floats:
        """-(m + w)."""
        return -view.given.astype(np.float64)
