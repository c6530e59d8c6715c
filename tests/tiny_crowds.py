"""Random crowds so small that their optimum can be found in fractions (``crowd_oracle``)."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

import nextlabel as nl
from crowd_oracle import optimum

#: Denominator of all probabilities.
PARTS = 20


class TinyCrowd(NamedTuple):
    """Everything in twentieths."""

    priors: tuple[tuple[Fraction, ...], ...]
    channels: tuple[tuple[tuple[Fraction, ...], ...], ...]
    supply: tuple[int, ...]
    budget: int
    costs: tuple[Fraction, ...]

    def problem(self) -> nl.Problem:
        classes = tuple(nl.TaskClass(1, nl.priors.Fact.of([float(p) for p in law])) for law in self.priors)
        workers = tuple(
            nl.WorkerType(tuple(tuple(float(p) for p in row) for row in channel), supply=n, cost=float(cost))
            for channel, n, cost in zip(self.channels, self.supply, self.costs, strict=True)
        )
        return nl.Problem(classes, self.budget, workers=workers)

    def optimum(self) -> Fraction:
        return optimum(self.priors, self.channels, self.supply, self.budget, self.costs)


def draw_law(chance: np.random.Generator, answers: int) -> tuple[Fraction, ...]:
    """Probabilities in twentieths, some of them 0 now and then."""
    counts = chance.multinomial(PARTS, chance.dirichlet(np.full(answers, 1.0)))
    return tuple(Fraction(int(n), PARTS) for n in counts)


def draw_crowd(seed: int, answers: int) -> TinyCrowd:
    """A crowd, with costs, unequal priors, perfect, useless and inverted workers now and then."""
    chance = np.random.default_rng([seed, answers])
    types = int(chance.integers(1, 4 if answers == 2 else 3))
    tasks = int(chance.integers(1, 4 if answers == 2 else 3))
    supply = tuple(int(n) for n in chance.integers(1, 3, types))
    paid = chance.random() < 0.4
    costs = tuple(Fraction(int(n), 100) if paid else Fraction(0) for n in chance.integers(0, 10, types))
    alike = chance.random() < 0.5
    laws = [draw_law(chance, answers)] * tasks if alike else [draw_law(chance, answers) for _ in range(tasks)]
    channels = tuple(tuple(draw_law(chance, answers) for _ in range(answers)) for _ in range(types))
    budget = int(chance.integers(1, 1 + min(sum(supply), 4 if answers == 2 else 3)))
    return TinyCrowd(tuple(laws), channels, supply, budget, costs)
