"""What a model among the workers is worth: items right without it, with its labels, with its probabilities.

A model whose probabilities are right (drawn from Beta(0.6, 0.6)), five people who are right 75% to 90% of the time, one
person's label per item on average. ``python -m benchmarks.live.model_worker --seeds 6``; some minutes.
"""

from __future__ import annotations

import argparse

import numpy as np

import nextlabel as nl

LABELS = ("no", "yes")
PEOPLE = (0.8, 0.85, 0.75, 0.9, 0.8)


def share_right(seed: int, kind: str, items: int, budget: int) -> float:
    """One campaign, played to the end of its budget."""
    rng = np.random.default_rng(seed)
    sure = np.clip(rng.beta(0.6, 0.6, size=items), 0.01, 0.99)
    truth = (rng.random(items) < sure).astype(int)
    tasks = [{"id": f"t{k}", "text": "x"} for k in range(items)]
    with nl.Campaign.create("memory:", tasks, budget=budget, labels=LABELS, lease_seconds=600.0) as campaign:
        if kind == "labels":
            campaign.add_predictions(
                "m", [{"task": f"t{k}", "label": LABELS[int(p > 0.5)]} for k, p in enumerate(sure)]
            )
        elif kind == "probabilities":
            campaign.add_predictions("m", [{"task": f"t{k}", "probability": float(p)} for k, p in enumerate(sure)])
        for step in range(budget):
            who = step % len(PEOPLE)
            lease = campaign.ask(f"w{who}")
            if not lease:
                break
            right = int(truth[int(lease.task[1:])])
            campaign.tell(lease, LABELS[right if rng.random() < PEOPLE[who] else 1 - right])
        found = np.array([result.label == LABELS[1] for result in campaign.results()], dtype=int)
    return float((found == truth).mean())


def main() -> None:
    """Print one line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--budget", type=int, default=200)
    given = parser.parse_args()
    for kind in ("without a model", "labels", "probabilities"):
        shares = [share_right(seed, kind, given.items, given.budget) for seed in range(given.seeds)]
        print(f"{kind}: {np.mean(shares):.4f} right")


if __name__ == "__main__":
    main()
