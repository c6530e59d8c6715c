"""``python -m benchmarks.live.crowd_calibration``: what a campaign with the policy ``crowd`` expects, and what is so.

500 items, three answers, six workers who are right 92% of the time and one who guesses, 1,500 labels, default settings.
At each tenth of the budget: share right, expected accuracy, and the largest distance between mean probability and share
right over tenths of the probabilities with 30 items or more; of all items, and of those that have a label.
"""

from __future__ import annotations

import argparse

import numpy as np

import nextlabel as nl
from nextlabel.arrays import Floats, Ints

ITEMS, ANSWERS, BUDGET, GOOD, RIGHT = 500, 3, 1500, 6, 0.92
#: Items in a tenth of the probabilities before it is looked at.
ENOUGH = 30


def calibration(beliefs: Floats, truth: Ints) -> float:
    """The largest distance between probability and share right over tenths with enough items."""
    sure, right = beliefs.max(axis=1), beliefs.argmax(axis=1) == truth
    tenth = np.minimum((10 * sure).astype(int), 9)
    groups = [tenth == k for k in range(10) if (tenth == k).sum() >= ENOUGH]
    return max((abs(float(sure[g].mean() - right[g].mean())) for g in groups), default=0.0)


def play(seed: int) -> list[tuple[float, ...]]:
    """(budget spent, share right, expected, both calibrations) at every tenth; prints who is the worst worker."""
    rng, now = np.random.default_rng(seed), 1.8e9
    truth = rng.integers(0, ANSWERS, ITEMS)
    names = [str(y) for y in range(ANSWERS)]
    items = [{"id": str(x)} for x in range(ITEMS)]
    rows = []
    with nl.Campaign.create("memory:", items, budget=BUDGET, labels=names, clock=lambda: now) as campaign:
        while lease := campaign.ask(f"w{(worker := int(rng.integers(GOOD + 1)))}"):
            now += 8.0
            x = int(lease.task)
            wrong = (truth[x] + 1 + rng.integers(ANSWERS - 1)) % ANSWERS
            said = truth[x] if rng.random() < RIGHT else wrong
            campaign.tell(lease, names[int(rng.integers(ANSWERS)) if worker == GOOD else int(said)])
            spent = campaign.status.spent
            if spent % (BUDGET // 10) == 0:
                crowd = campaign._service.crowd(campaign._service.store.row(campaign.id))
                assert crowd is not None
                right = float((crowd.beliefs.argmax(axis=1) == truth).mean())
                told = crowd.told > 0
                far = calibration(crowd.beliefs, truth), calibration(crowd.beliefs[told], truth[told])
                rows.append((spent / BUDGET, right, crowd.expected_accuracy, *far))
        worst = int(np.argmin(crowd.accuracies))
        print(
            f"seed {seed}: {crowd.workers[worst]} is right {crowd.accuracies[worst]:.0%} of the time (w{GOOD} guesses)"
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    found = np.array([play(seed) for seed in range(given.first, given.first + given.seeds)])
    print("| budget spent | right | expected | largest difference | farthest tenth | of labelled items |")
    print("|---|---|---|---|---|---|")
    for k in range(found.shape[1]):
        share, right, expected = found[:, k, :3].mean(axis=0)
        apart, (far, told) = np.abs(found[:, k, 1] - found[:, k, 2]).max(), found[:, k, 3:].max(axis=0)
        print(f"| {share:.0%} | {right:.3f} | {expected:.3f} | {apart:.3f} | {far:.3f} | {told:.3f} |")


if __name__ == "__main__":
    main()
