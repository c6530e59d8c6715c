"""Fill binary belief triangles from their last level: I(a,b) = p I(a+1,b) + (1-p) I(a,b+1).

The same for 1 - I, which is carried along so that small probabilities of either truth keep their digits.
Guarantee: convex combinations only, so the relative error of both is that of the last level.
Cost: six flops and four writes per node.
"""

from __future__ import annotations

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


@jit
def fill_triangles(
    alpha: Floats, beta: Floats, first: Ints, below: Floats, above: Floats, truth: Floats, prob: Floats,
) -> None:  # fmt: skip
    """``below`` and ``above`` (B, D+1) hold 1 - I and I on the last level and are used up; the others (B, N, 2)."""
    D = first.shape[0] - 2
    for c in range(alpha.shape[0]):
        for m in range(D, -1, -1):
            total = alpha[c] + beta[c] + m
            for a in range(m + 1):
                p = (alpha[c] + a) / total
                q = (beta[c] + m - a) / total
                i = first[m] + a
                prob[c, i, 0] = q
                prob[c, i, 1] = p
                if m < D:
                    above[c, a] = p * above[c, a + 1] + q * above[c, a]
                    below[c, a] = p * below[c, a + 1] + q * below[c, a]
                less, more = below[c, a], above[c, a]  # the smaller one has the digits, and both sum to 1
                truth[c, i, 0] = less if less < more else 1.0 - more
                truth[c, i, 1] = more if more <= less else 1.0 - less


@jit
def sum_last_level(alpha: Floats, beta: Floats, odds: Floats, term: Floats, above: Floats) -> None:
    """Fill between above[:, 0] and above[:, D] from the first difference, odds = d / (1 - d).

    The error of ``term`` is a factor common to all differences, which the known end takes out.
    """
    D = above.shape[1] - 1
    for c in range(alpha.shape[0]):
        t = term[c]
        start, end = above[c, 0], above[c, D]
        total = 0.0
        for a in range(D):
            total += t
            above[c, a + 1] = total
            t *= odds[c] * (beta[c] + D - a - 1.0) / (alpha[c] + a + 1.0)
        scale = (end - start) / total
        for a in range(1, D + 1):
            above[c, a] = min(start + scale * above[c, a], 1.0)
