"""The digamma function, for Dirichlet expectations inside kernels.

    psi(x) = log x - 1/(2x) - sum_k B_2k / (2k x^2k),        psi(x) = psi(x + 1) - 1/x,

the series being used from x = 10 on. Guarantee: 12 digits for x > 0. Cost: one logarithm, up to ten divisions.
"""

from __future__ import annotations

import math

from nextlabel.kernels.jit import jit


@jit
def digamma(x: float) -> float:
    """The derivative of log Gamma at x > 0."""
    down = 0.0
    while x < 10.0:
        down += 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    tail = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f * (1.0 / 132.0)))))
    return math.log(x) - 0.5 / x - tail - down
