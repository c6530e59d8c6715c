"""Knowledge gradient: the largest expected gain of one label, p R1 + (1-p) R2.

With whole-number priors the gain is 0 off ties, so that a fixed order of ties starves all tasks but one: ``kg-random``
breaks ties by lot. Neither sees labels in flight.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, StaticPolicy


class KG(StaticPolicy):
    """Ties to the lowest state."""

    name = "kg"
    in_flight = "nothing"
    random_ties = False

    def score(self, view: ClassView) -> Floats:
        """sum_j p_j R(child_j) - R, whatever is in flight."""
        return view.whatever_in_flight(np.sum(view.lattice.prob * view.gains, axis=1))


class KGRandom(KG):
    """Ties by lot."""

    name = "kg-random"
    random_ties = True
