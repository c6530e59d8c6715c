"""Knowledge gradients: the gain of one label, expected, or with the luckier answer.

    kg    largest p R1 + (1-p) R2
    okg   largest max(R1, R2)                (optimistic: Chen, Lin and Zhou 2013)
    R1 = R(a+1,b) - R(a,b),  R2 = R(a,b+1) - R(a,b)

With whole-number priors the gain of ``kg`` is 0 off ties, so that a fixed order of ties starves all tasks but one:
``kg-random`` breaks ties by lot. As published neither sees labels in flight. Two fair forms of ``okg``: ``okg-idle``
prefers tasks with nothing in flight, ``okg-pending`` takes the expectation over the outcomes of the labels in flight.
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


class OKG(StaticPolicy):
    """The published rule, ties by lot."""

    name = "okg"
    in_flight = "nothing"

    def score(self, view: ClassView) -> Floats:
        """max_j R(child_j) - R, whatever is in flight."""
        return view.whatever_in_flight(view.gains.max(axis=1))


class OKGIdle(StaticPolicy):
    """The published rule among tasks with nothing in flight, if there are any."""

    name = "okg-idle"
    in_flight = "whether there is any"

    def score(self, view: ClassView) -> Floats:
        """The gain g >= 0 when nothing is in flight; otherwise -u^2 / (u + g) < 0, u the unit of the rewards."""
        out = view.whatever_in_flight(view.gains.max(axis=1))
        out[1:] = -(view.unit**2) / (view.unit + out[1:])
        return out


class OKGPending(StaticPolicy):
    """The expected score after the labels in flight."""

    name = "okg-pending"
    in_flight = "all of it, in expectation"

    def score(self, view: ClassView) -> Floats:
        """E[max_j R(child_j) - R] over the outcomes of the labels in flight."""
        return view.after_flight(view.gains.max(axis=1))
