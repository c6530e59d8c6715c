"""``python -m benchmarks.live.own_model``: live campaigns of drawn crowds, what is expected and what is so.

300 items, 900 labels, 20 workers, default settings, 2, 3 or 10 answers; workers are drawn from the prior, or all are
right .6 or .95 of the time. At six points of the budget, over ``--seeds`` campaigns each: right, expected less right in
points with its standard error, and how often the 95% interval holds what is so.
"""

from __future__ import annotations

import argparse

import numpy as np

import nextlabel as nl
from nextlabel.arrays import Floats
from nextlabel.crowd.prior import CrowdPrior

ITEMS, BUDGET, PEOPLE = 300, 900, 20
POINTS = (150, 180, 300, 450, 600, 900)


def play(answers: int, kind: str, seed: int) -> list[tuple[float, float, bool]]:
    """At each point: right, expected less right, whether the interval holds it."""
    rng, now = np.random.default_rng(seed), 1.8e9
    weights = CrowdPrior.default(answers).pseudo
    channels: Floats = np.array([[rng.dirichlet(row) for row in weights] for _ in range(PEOPLE)])
    if kind != "prior":
        channels[:] = np.where(np.eye(answers) > 0, float(kind), (1.0 - float(kind)) / (answers - 1))
    truth, names = rng.integers(0, answers, ITEMS), [str(y) for y in range(answers)]
    items, out, in_vain, told = [{"id": str(x)} for x in range(ITEMS)], [], 0, 0
    with nl.Campaign.create("memory:", items, budget=BUDGET, labels=names, clock=lambda: now, seed=seed) as campaign:
        while in_vain < 200 and told < BUDGET:
            worker = int(rng.integers(PEOPLE))
            now += 8.0
            lease = campaign.ask(f"w{worker}")
            in_vain = 0 if lease else in_vain + 1
            if not lease:
                continue
            campaign.tell(lease, names[int(rng.choice(answers, p=channels[worker, truth[int(lease.task)]]))])
            told += 1
            if told in POINTS:
                crowd = campaign._service.crowd(campaign._service.store.row(campaign.id))
                assert crowd is not None
                found, right = crowd.expected, float((crowd.beliefs.argmax(axis=1) == truth).mean())
                out.append((right, found.mean - right, found.low <= right <= found.high))
    return out


def main() -> None:
    """Print a line for each crowd and point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    seeds = parser.parse_args().seeds
    for answers in (2, 3, 10):
        for kind in ("prior", "0.6", "0.95"):
            played = [play(answers, kind, seed) for seed in range(seeds)]
            for k, point in enumerate(POINTS):
                found = np.array([one[k] for one in played if len(one) > k], dtype=np.float64)
                right, apart, held = found.mean(axis=0)
                error = found[:, 1].std(ddof=1) / np.sqrt(len(found))
                print(
                    f"{answers} answers, workers {kind}, {point} labels: right {right:.3f}, expected less right "
                    f"{100 * apart:+.1f} ± {100 * error:.1f} points, intervals hold {held:.0%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
