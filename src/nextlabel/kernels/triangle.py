"""Fill binary belief triangles from their last level: I(a,b) = p I(a+1,b) + (1-p) I(a,b+1).

Guarantee: convex combinations only, so the absolute error is that of the last level.
Cost: three flops and three writes per node.
"""

from __future__ import annotations

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


@jit
def fill_triangles(alpha: Floats, beta: Floats, first: Ints, above: Floats, truth: Floats, prob: Floats) -> None:
    """``above`` (B, D+1) holds I on the last level and is used up; truth and prob (B, N, 2) are filled."""
    D = first.shape[0] - 2
    for c in range(alpha.shape[0]):
        for m in range(D, -1, -1):
            total = alpha[c] + beta[c] + m
            for a in range(m + 1):
                p = (alpha[c] + a) / total
                i = first[m] + a
                prob[c, i, 0] = (beta[c] + m - a) / total
                prob[c, i, 1] = p
                if m < D:
                    above[c, a] = p * above[c, a + 1] + (1.0 - p) * above[c, a]
                truth[c, i, 0] = 1.0 - above[c, a]
                truth[c, i, 1] = above[c, a]


@jit
def sum_last_level(alpha: Floats, beta: Floats, d: Floats, term: Floats, above: Floats) -> None:
    """Fill between above[:, 0] and above[:, D] from the first difference; all terms are positive.

    The error of ``term`` is a factor common to all differences, which the known end takes out.
    """
    D = above.shape[1] - 1
    for c in range(alpha.shape[0]):
        t = term[c]
        odds = d[c] / (1.0 - d[c])
        start, end = above[c, 0], above[c, D]
        total = 0.0
        for a in range(D):
            total += t
            above[c, a + 1] = total
            t *= odds * (beta[c] + D - a - 1.0) / (alpha[c] + a + 1.0)
        scale = (end - start) / total
        for a in range(1, D + 1):
            above[c, a] = min(start + scale * above[c, a], 1.0)
