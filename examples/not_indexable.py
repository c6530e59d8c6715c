"""A proof by exact arithmetic that the problem need not be indexable: as the price grows a state stops, then resumes.

One task, Beta(1,1), threshold 1/2, mu = 2/5, every label awaited. The gain of assigning,
V(a,b,w+1,n-1) - price - V(a,b,w,n-1), is computed in fractions, so that its sign is certain: with r = 10 for a fresh
task with two labels in flight and four arrivals left; with the paper's r = 1/10 for four ones, six zeros, four labels
in flight and eight arrivals left.

python examples/not_indexable.py
"""

from fractions import Fraction
from functools import cache
from math import comb

import nextlabel as nl

mu = Fraction(2, 5)


def reward(a: int, b: int) -> Fraction:
    """P(theta > 1/2 | a ones, b zeros) or its complement; with whole numbers it is a binomial sum."""
    n = a + b + 1
    above = Fraction(sum(comb(n, k) for k in range(a + 1)), 2**n)
    return max(above, 1 - above)


def gain(price: Fraction, r: Fraction, a: int, b: int, w: int, n: int) -> Fraction:
    """The gain of giving the first of n arrivals to a task with a ones, b zeros and w labels in flight."""

    @cache
    def V(a: int, b: int, w: int, n: int) -> Fraction:
        if w == 0 and n == 0:
            return reward(a, b)
        p = Fraction(a + 1, a + b + 2)
        after = p * V(a + 1, b, w - 1, n) + (1 - p) * V(a, b + 1, w - 1, n) if w else Fraction(0)
        if n == 0:
            return after
        best = max(V(a, b, w, n - 1), V(a, b, w + 1, n - 1) - price)
        return (r * best + mu * w * after) / (r + mu * w)

    return V(a, b, w + 1, n - 1) - price - V(a, b, w, n - 1)


BUSY = (Fraction(10), 0, 0, 2, 4)
CALM = (Fraction(1, 10), 4, 6, 4, 8)
for case, prices in ((BUSY, (500, 850, 1000, 1500, 2000)), (CALM, (60, 70, 90, 130, 150))):
    r, *state = case
    print(f"r = {r}, (a, b, w, n) = {tuple(state)}")
    for price in (Fraction(k, 100_000) for k in prices):
        g = gain(price, *case)
        print(f"  price {float(price):.5f}   gain {float(g):+.3e}   {'assign' if g >= 0 else 'wait'}")
print(f"the gain at price 1/100 and r = 10 is exactly {gain(Fraction(1, 100), *BUSY)}")

problem = nl.Problem.identical(tasks=4, budget=10, arrival_rate=10, completion_rate=0.4)
print(f"index, the greatest of these prices: {nl.index_table(problem).index(0, (0, 0), 2, 4):.7f}")
print(f"the check finds it too: indexable = {nl.check_indexability(problem).indexable}")
