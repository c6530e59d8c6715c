"""Uncertainty sampling: the task whose posterior is nearest to a coin flip, smallest abs(I - 1/2). Never gives up on a
hard task; does not see labels in flight.
"""

from __future__ import annotations

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, StaticPolicy


class Uncertainty(StaticPolicy):
    """Least certain first."""

    name = "uncertainty"
    in_flight = "nothing"

    def score(self, view: ClassView) -> Floats:
        """What knowing the truth would add: 1 - R = 1/2 - abs(I - 1/2) where the reward is accuracy."""
        return view.whatever_in_flight(view.lattice.ceiling - view.lattice.reward)
