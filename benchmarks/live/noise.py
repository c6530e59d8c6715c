"""Who is paid when one worker answers at random, and whether honest average workers are starved, with the defaults.

``python -m benchmarks.live.noise``: 300 items, 900 labels; six workers at .9 and one who guesses; then two at .92 and
three at .8. Workers take turns in a random order; a worker who gets nothing asks again in the next round.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import nextlabel as nl


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def play(
    accuracies: Sequence[float], seed: int, items: int = 300, budget: int = 900, answers: int = 2, **settings: Any
) -> tuple[list[int], float, float]:
    """Labels of each worker, the share of items right, and the share expected."""
    rng = np.random.default_rng(seed)
    words = [chr(ord("a") + k) for k in range(answers)]
    truth = rng.integers(0, answers, items)
    clock = Clock()
    tasks = [{"id": f"t{k}", "text": f"item {k}"} for k in range(items)]
    campaign = nl.Campaign.create(
        "memory:", tasks=tasks, labels=words, budget=budget, clock=clock, seed=seed, **settings
    )
    given = [0] * len(accuracies)
    idle = 0
    while idle < 40:
        any_label = False
        for j in rng.permutation(len(accuracies)):
            clock.now += 5.0
            lease = campaign.ask(worker=f"w{j}")
            if not lease:
                continue
            right = int(truth[int(lease.task[1:])])
            said = right
            if rng.random() >= accuracies[j]:
                said = int((right + 1 + rng.integers(0, answers - 1)) % answers)
            clock.now += 5.0
            campaign.tell(lease.id, label=words[said])
            given[j] += 1
            any_label = True
        idle = 0 if any_label else idle + 1
        if not any_label:
            clock.now += 30.0
    results = {row.task: row for row in campaign.results()}
    share = float(np.mean([results[f"t{k}"].label == words[truth[k]] for k in range(items)]))
    expected = float(campaign.certificate().now)
    campaign.close()
    return given, share, expected


def main() -> None:
    """Print a row for each campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--turn-away", choices=["default", "on", "off"], default="default")
    given = parser.parse_args()
    more: dict[str, Any] = {} if given.turn_away == "default" else {"turn_away": given.turn_away == "on"}
    for name, crowd in (("spammer last", [0.9] * 6 + [0.5]), ("average last three", [0.92] * 2 + [0.8] * 3)):
        for seed in range(given.seeds):
            labels, right, expected = play(crowd, seed, **more)
            print(
                f"{name}: labels {labels}, spent {sum(labels)}, right {right:.3f}, expected {expected:.3f}", flush=True
            )


if __name__ == "__main__":
    main()
