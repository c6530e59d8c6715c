"""The exact optimum of a tiny crowd in plain fractions: shares no code with the package.

A task is the list of the joint probabilities of its truth and of all answers it got. Arrivals come in random order of
the supply and may be turned away; labels come at once.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

Law = tuple[Fraction, ...]
Channel = tuple[Law, ...]


def optimum(
    priors: tuple[Law, ...], channels: tuple[Channel, ...], supply: tuple[int, ...], budget: int, costs: Law
) -> Fraction:
    """The best expected number of right tasks less what the labels cost."""

    @cache
    def best(tasks: tuple[Law, ...], left: tuple[int, ...], labels: int) -> Fraction:
        # Weights of a task are scaled to sum to 1, exactly, so that equal beliefs are one.
        if labels == 0 or sum(left) == 0:
            return sum((max(task) for task in tasks), Fraction(0))
        mean = Fraction(0)
        for m, n in enumerate(left):
            if n == 0:
                continue
            rest = tuple(k - (j == m) for j, k in enumerate(left))
            choices = [best(tasks, rest, labels)]
            for x in range(len(tasks)):
                worth = -costs[m]
                for y in range(len(tasks[x])):
                    joint = tuple(p * channels[m][c][y] for c, p in enumerate(tasks[x]))
                    chance = sum(joint, Fraction(0))
                    if chance > 0:
                        after = tuple(j / chance for j in joint)
                        moved = tuple(sorted((*tasks[:x], after, *tasks[x + 1 :])))
                        worth += chance * best(moved, rest, labels - 1)
                choices.append(worth)
            mean += Fraction(n, sum(left)) * max(choices)
        return mean

    return best(tuple(sorted(priors)), supply, budget)
