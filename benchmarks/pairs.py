"""``python -m benchmarks.pairs``: 600 comparisons that are chosen against 600 and 1,200 random ones; Kendall's tau.

50 items with normal scores of some spread; 20 workers who come in random order. Workers are exact (Bradley and Terry's
model), or say what they see with a probability drawn from Beta(6, 1.5), .8 on average. One fit reads all of them out.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import kendalltau

from nextlabel.arrays import Floats
from nextlabel.crowd.pairs import LEAST_TRUST, Comparisons, PairFit, choose_pairs, fit_pairs

ITEMS, WORKERS, BUDGET, BATCH = 50, 20, 600, 10
CROWDS = {"exact": None, "Beta(6, 1.5)": (6.0, 1.5)}


class World(NamedTuple):
    """True scores, and how often each worker says what they see."""

    score: Floats
    right: Floats

    def compare(self, pairs: list[tuple[int, int]], rng: np.random.Generator) -> tuple[list[int], list[int]]:
        """Who compares, and what they say."""
        workers = rng.integers(len(self.right), size=len(pairs))
        i, j = np.array(pairs).T
        ahead = rng.random(len(pairs)) < expit(self.score[i] - self.score[j])
        told = ahead == (rng.random(len(pairs)) < self.right[workers])
        return workers.tolist(), np.where(told, 1, -1).tolist()


def play(world: World, budget: int, chosen: bool, seed: int) -> Floats:
    """The scores that are read out of so many comparisons."""
    rng, fit = np.random.default_rng([seed, 1]), None
    pairs: list[tuple[int, int]] = []
    workers: list[int] = []
    said: list[int] = []
    while len(pairs) < budget:
        if chosen and fit is not None:
            more = choose_pairs(fit, BATCH, max(LEAST_TRUST, float(fit.trust.mean())))
        else:
            drawn = [rng.choice(len(world.score), 2, replace=False) for _ in range(BATCH)]
            more = [(int(a), int(b)) for a, b in drawn]
        new = world.compare(more, rng)
        pairs, workers, said = pairs + more, workers + new[0], said + new[1]
        if chosen or len(pairs) >= budget:
            fit = refit(world, pairs, workers, said, fit, 12 if len(pairs) >= budget else 3)
    assert fit is not None
    return fit.score


def refit(
    world: World, pairs: list[tuple[int, int]], workers: list[int], said: list[int], before: PairFit | None, rounds: int
) -> PairFit:
    """What is known after these comparisons."""
    i, j = np.array(pairs).T
    data = Comparisons(i, j, np.array(workers), np.array(said), len(world.score), len(world.right))
    return fit_pairs(data, before, rounds)


def taus(spread: float, crowd: str, seeds: int) -> dict[str, Floats]:
    """Kendall's tau of each rule, seed by seed."""
    found: dict[str, list[float]] = {"random 600": [], "random 1,200": [], "chosen 600": []}
    for seed in range(seeds):
        rng, law = np.random.default_rng([seed, 0]), CROWDS[crowd]
        world = World(rng.normal(0, spread, ITEMS), np.ones(WORKERS) if law is None else rng.beta(*law, WORKERS))
        for name, budget, chosen in zip(found, (BUDGET, 2 * BUDGET, BUDGET), (False, False, True), strict=True):
            found[name].append(float(kendalltau(play(world, budget, chosen, seed), world.score)[0]))
    return {name: np.array(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    for crowd in CROWDS:
        for spread in (1.0, 2.0, 3.0, 4.0):
            found = taus(spread, crowd, seeds)
            short = found["chosen 600"] - found["random 1,200"]
            cells = "  ".join(f"{name} {values.mean():.3f}" for name, values in found.items())
            error = short.std(ddof=1) / np.sqrt(seeds)
            sys.stdout.write(
                f"{crowd:>12}, spread {spread:g}: {cells}  difference {short.mean():+.3f} +- {error:.3f}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
