"""Thompson sampling: draw theta from the posterior, and the labels in flight from it; largest theta R1 + (1-theta) R2.

'Largest theta' would leave tasks unlabelled and cannot be what the paper ran; this reading draws the gain of one more
label. Draws come from tabulated quantiles (LEVELS logit-spaced levels per node, linear between them).
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, expit, xlog1py, xlogy

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import Z_END
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.policies.base import ClassView, Policy, ScoreTables, Setting

LEVELS = 241


class Thompson(Policy):
    """The best drawn gain first."""

    name = "thompson"
    in_flight = "draws its outcome"
    two_answers = True
    by_table = False
    draws = True

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Gains of both answers and quantiles of theta for each node."""
        return [
            ScoreTables(np.zeros((view.flight + 1, view.nodes)), facts=view.gains, quantiles=quantiles(view))
            for view in setting.views
        ]


def quantiles(view: ClassView) -> Floats:
    """(nodes, LEVELS) posterior quantiles of theta."""
    prior = view.entry.prior
    if isinstance(prior, Dirichlet):
        prior = prior.as_beta()
    level = expit(np.linspace(-Z_END, Z_END, LEVELS))
    ones, zeros = view.ones, view.level - view.ones
    if isinstance(prior, Beta):
        return np.asarray(betaincinv(prior.alpha + ones[:, None], prior.beta + zeros[:, None], level), dtype=np.float64)
    return point_quantiles(*prior.points(), ones, zeros, level)


def point_quantiles(theta: Floats, weight: Floats, ones: Ints, zeros: Ints, level: Floats) -> Floats:
    """Posterior quantiles of a prior on points theta[:, 1], linear between the points' mid-levels."""
    order = np.argsort(theta[:, 1])
    x, w = theta[order, 1], weight[order]
    out = np.empty((len(ones), len(level)))
    for i, (a, b) in enumerate(zip(ones, zeros, strict=True)):
        log_mass = xlogy(a, x) + xlog1py(b, -x)
        most = log_mass.max()
        mass = w * np.exp(log_mass - most) if np.isfinite(most) else w  # labels that cannot occur teach nothing
        mass = mass / mass.sum() if mass.sum() > 0 else w
        out[i] = np.interp(level, np.cumsum(mass) - 0.5 * mass, x)
    return out
