"""Fill binary belief triangles from their last level: I(a,b) = p I(a+1,b) + (1-p) I(a,b+1), R = max(I, 1-I).

Guarantee: convex combinations only, so the absolute error is that of the last level.
Cost: three flops and three writes a node.
"""

from __future__ import annotations

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


@jit
def fill_triangles(alpha: Floats, beta: Floats, first: Ints, above: Floats, reward: Floats, prob: Floats) -> None:
    """``above`` (B, D+1) holds I on the last level and is used up; reward (B, N) and prob (B, N, 2) are filled."""
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
                reward[c, i] = max(above[c, a], 1.0 - above[c, a])
