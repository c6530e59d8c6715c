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
        """1/2 - abs(I - 1/2) = 1 - R."""
        return view.whatever_in_flight(1.0 - view.lattice.reward)
