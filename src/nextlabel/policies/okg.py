"""Optimistic knowledge gradient (Chen, Lin and Zhou 2013): the largest gain that the luckier answer could bring.

    score = max(R1, R2),  R1 = R(a+1,b) - R(a,b),  R2 = R(a,b+1) - R(a,b).

As published it does not see labels in flight. Two fair forms: ``okg-idle`` prefers tasks with nothing in flight,
``okg-pending`` takes the expectation of the score over the outcomes of the labels in flight.
"""

from __future__ import annotations

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, StaticPolicy


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
