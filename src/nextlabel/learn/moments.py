"""The prior whose first two moments are those of the tasks' shares.

====== ========= ============ =====================================================================
symbol code      shape        meaning
====== ========= ============ =====================================================================
s_ij   shares    (C, J)       share of answer j among the labels of task i
m_j    m         (J,)         mean of the shares over tasks
v      v         --           their variance (ddof 1), summed over j
k      k         --           mean of 1 / (labels of a task)
rho    rho       --           correlation of two labels of one task, 1 / (weight + 1)
====== ========= ============ =====================================================================

With theta ~ Dirichlet(alpha) the shares have mean m_j = alpha_j / weight and variance m_j (1 - m_j) (k + (1 - k) rho),
so

    rho = (v / sum_j m_j (1 - m_j) - k) / (1 - k),      alpha_j = m_j (1/rho - 1).

The term k is the labels' own noise; without it the prior would be too wide. With two answers both lines of the sum are
equal and this is the beta-binomial. Every task counts the same, however many labels it has.
Guarantee: consistent, with standard errors by the delta method; nothing beyond the moments. Cost: one pass.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.evidence import LEAST_RHO, MOST_RHO
from nextlabel.learn.walls import capped


def raw_rho(ratio: float, k: float) -> float:
    """rho before it is kept inside its limits; one label a task cannot tell, and counts as sure."""
    return (ratio - k) / (1.0 - k) if k < 1.0 else MOST_RHO


def moment_weights(counts: LabelCounts) -> tuple[Floats, float]:
    """The (J,) weights of the prior, that of answer 0 first, and rho before it was kept inside its limits."""
    m, v, k = _moments(counts)
    rho = raw_rho(v / float((m * (1.0 - m)).sum()), k)
    return m * (1.0 / min(max(rho, LEAST_RHO), MOST_RHO) - 1.0), rho


def standard_errors(counts: LabelCounts) -> Floats:
    """(J,) standard errors of the weights, by the delta method on the tasks as they are."""
    pull = influence(*_moments(counts), counts.shares, counts.labels)
    return np.asarray(np.sqrt(counts.tasks @ (pull - counts.tasks @ pull / len(counts)) ** 2) / len(counts))


def influence(m: Floats, v: float, k: float, shares: Floats, labels: Ints) -> Floats:
    """(C, J) by how much, times the number of tasks, one task moves the weights; a sum of them on its cap stays."""
    spread = float((m * (1.0 - m)).sum())
    rho = raw_rho(v / spread, k)
    rho = min(max(rho, LEAST_RHO), MOST_RHO)
    weight = 1.0 / rho - 1.0
    inside = capped(weight) == 0
    dm = shares - m
    dv = (dm**2).sum(axis=1) - v
    dspread = dm @ (1.0 - 2.0 * m)
    dk = 1.0 / labels - k
    drho = (dv / spread - v / spread**2 * dspread - (1.0 - rho) * dk) / (1.0 - k)
    dweight = -drho / rho**2 if inside else np.zeros(len(shares))
    return np.asarray(weight * dm + m * dweight[:, None], dtype=np.float64)


def model_influence(weights: Floats, shares: Floats, expected: Floats, labels: Ints) -> Floats:
    """``influence`` at tasks as the prior expects them."""
    k = float(expected @ (1.0 / labels) / expected.sum())
    m = weights / weights.sum()
    v = float((m * (1.0 - m)).sum()) * (k + (1.0 - k) / (weights.sum() + 1.0))
    return influence(m, v, k, shares, labels)


def _moments(counts: LabelCounts) -> tuple[Floats, float, float]:
    c, n, shares = counts.tasks, len(counts), counts.shares
    m = c @ shares / n
    v = float((c @ (shares - m) ** 2).sum() / (n - 1))
    return m, v, float(c @ (1.0 / counts.labels) / n)
