"""What the crowd is like on average, learnt from the expected counts of all workers and held to a prior idea of it.

====== ======= ======== =======================================================================
symbol code    shape    meaning
====== ======= ======== =======================================================================
n      seen    (W C, C) expected counts: row = worker and answer, column = truth
a      pseudo  (C, C)   pseudo-counts of a channel; a[c, :] = s_c m_c with the strength s_c fixed
m0     base    (C, C)   the prior idea of m, as pseudo-counts
k      hold    --       labels that each row of m0 is worth
r      part    (W,)     how far each worker is one of those whose mean it is; 1 where all are
====== ======= ======== =======================================================================

    F(m_c) = sum_j r_j log [ B(a_c + n_jc) / B(a_c) ] + k sum_y m0_cy log(m_cy / m0_cy),

B being the multivariate beta function, is the evidence bound as a function of m_c, the channels being at their optimum.
One step of the fixed point

    m_cy ~ k m0_cy + sum_j r_j a_cy [ psi(a_cy + n_jcy) - psi(a_cy) ]

of [Min00] is proposed and taken as far as F does not fall, within m_cc >= m0_cc: a crowd may turn out better than
thought, not worse. Where labels are few, a row at chance with nearly all tasks in its class explains random answers
better than the truth does, and a fit that may go there does (docs/decisions/0027). Guarantee: F never falls. Cost:
O(W C^2) digamma and log Gamma.
"""

from __future__ import annotations

import math

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.digamma import digamma
from nextlabel.kernels.jit import jit

#: A step that would lower F is halved so many times before it is left out.
HALVINGS = 4


@jit
def learn_crowd_mean(seen: Floats, base: Floats, hold: float, pseudo: Floats, part: Floats) -> float:
    """One step for each row of ``pseudo``; returns the log prior density of where it stands, relative to ``base``."""
    if hold == math.inf:
        return 0.0
    C = base.shape[0]
    away = 0.0
    wish, trial = np.empty(C), np.empty(C)
    for c in range(C):
        strength = base[c].sum()
        whole = 0.0
        for y in range(C):
            level = digamma(pseudo[c, y])
            wish[y] = hold * base[c, y] / strength
            for k in range(y, seen.shape[0], C):
                if seen[k, c] > 0.0:
                    wish[y] += part[k // C] * (pseudo[c, y] * (digamma(pseudo[c, y] + seen[k, c]) - level))
            whole += wish[y]
        now = _bound(seen, c, pseudo[c], base[c], hold, part)
        scale = strength / whole
        for y in range(C):
            wish[y] *= scale
        if wish[c] < base[c, c]:
            for y in range(C):
                wish[y] = base[c, y]
        step = 1.0
        for _ in range(HALVINGS + 1):
            for y in range(C):
                trial[y] = (1.0 - step) * pseudo[c, y] + step * wish[y]
            if _bound(seen, c, trial, base[c], hold, part) >= now:
                pseudo[c] = trial
                break
            step *= 0.5
        for y in range(C):
            away += hold * base[c, y] / strength * math.log(pseudo[c, y] / base[c, y])
    return away


@jit
def _bound(seen: Floats, c: int, row: Floats, base: Floats, hold: float, part: Floats) -> float:
    """F of one row."""
    C = row.shape[0]
    strength = 0.0
    for y in range(C):
        strength += row[y]
    start = math.lgamma(strength)
    found = 0.0
    for y in range(C):
        found += hold * base[y] / strength * math.log(row[y] / base[y])
    for j in range(seen.shape[0] // C):
        said = 0.0
        for y in range(C):
            n = seen[j * C + y, c]
            if n > 0.0:
                said += n
                found += part[j] * (math.lgamma(row[y] + n) - math.lgamma(row[y]))
        if said > 0.0:
            found += part[j] * (start - math.lgamma(strength + said))
    return found
