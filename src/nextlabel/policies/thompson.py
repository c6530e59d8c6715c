"""Thompson sampling: draw theta from the posterior, and the labels in flight from it; largest theta R1 + (1-theta) R2.

'Largest theta' would leave tasks unlabelled and cannot be what the paper ran; this reading draws the gain of one more
label. Draws come from tabulated quantiles (LEVELS logit-spaced levels a node, linear between them).
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, expit

from nextlabel.arrays import Floats
from nextlabel.kernels.rollout import Z_END
from nextlabel.policies.base import ClassView, Policy, Scores, Setting

LEVELS = 241


class Thompson(Policy):
    """The best drawn gain first."""

    name = "thompson"
    in_flight = "draws its outcome"

    def scores(self, setting: Setting) -> list[Scores]:
        """Gains of both answers and quantiles of theta for each node."""
        return [
            Scores(np.zeros((view.flight + 1, view.nodes)), facts=view.gains, quantiles=quantiles(view))
            for view in setting.views
        ]


def quantiles(view: ClassView) -> Floats:
    """(nodes, LEVELS) posterior quantiles of theta."""
    prior = view.entry.prior
    level = expit(np.linspace(-Z_END, Z_END, LEVELS))
    alpha = prior.alpha + view.ones
    beta = prior.beta + view.level - view.ones
    return np.asarray(betaincinv(alpha[:, None], beta[:, None], level), dtype=np.float64)
