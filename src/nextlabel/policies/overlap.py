"""Dynamic overlap as the industry does it: more labels for a task until its answer is confident enough.

    toloka   confidence = x^max_j c_j / sum_j x^c_j,  x = q (J-1) / (1-q),  q the accuracy of one label
    appen    confidence = share of the leading answer

Tasks are taken to ``least`` labels; then the open task of lowest confidence, fewest in flight, is next; a task closes
at ``confidence`` or at ``most`` labels. Labels left over go to the lowest confidence. It needs tuning to hit a budget.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, StaticPolicy


class Overlap(StaticPolicy):
    """Dynamic overlap with Toloka's or Appen's confidence."""

    name = "overlap"
    in_flight = "counts it"
    in_reward_units = False
    uses_prior = False

    def __init__(
        self, kind: str = "toloka", q: float = 0.75, confidence: float = 0.9, least: int = 1, most: int = 15
    ) -> None:
        self.kind, self.q, self.confidence, self.least, self.most = kind, q, confidence, least, most

    def score(self, view: ClassView) -> Floats:
        """Three tiers: below ``least`` (fewest first), open, closed; within the last two the least confident first."""
        most = view.counts.max(axis=1)
        if self.kind == "toloka":
            wrong = (1.0 - self.q) / (view.lattice.answers - 1)
            behind = view.counts - most[:, None]
            sure = 1.0 / np.sum((self.q / wrong) ** behind, axis=1)
        else:
            sure = np.where(view.level > 0, most / np.maximum(view.level, 1), 0.0)
        flight = np.arange(view.flight + 1)[:, None]
        start = view.given < self.least
        still_open = (sure[None, :] < self.confidence) & (view.given < self.most)
        rank = -sure[None, :] - 1e-3 * flight
        return np.where(start, 200.0 - view.given, np.where(still_open, 100.0 + rank, rank))
