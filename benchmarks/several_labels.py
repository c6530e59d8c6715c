"""Any of 14 labels in one campaign against 14 campaigns of their own, on drawn crowds.

Workers have sensitivities and false alarms of their own, which differ from label to label; some come far more often
than others. One lease of the campaign ``multi`` asks all labels. The 14 campaigns (policy ``crowd``, one label each)
have as many leases *each* (the same number of answers), or as many *together* (the same money, where a lease has one
price whatever it asks).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.questions import Form, Question
from nextlabel.policies.allocation import Outlook
from nextlabel.policies.crowd.allocator import GrowingCrowd
from nextlabel.policies.crowd.forms import FormCrowd

LABELS, WORKERS = 14, 20
#: Items, leases per item, and how much workers differ from label to label, in log-odds.
CELLS = ((100, 3, 0.5), (150, 3, 0.3), (150, 4, 1.0))


def draw_crowd(rng: np.random.Generator, items: int, apart: float) -> tuple[Bools, Ints, Floats]:
    """Truths (K, L), what each worker says of each item (K, W, L), and how often each worker comes."""
    truth = rng.random((items, LABELS)) < rng.uniform(0.05, 0.4, LABELS)
    skill, bias = rng.normal(1.2, 1.0, WORKERS)[:, None], rng.normal(0.0, 0.7, WORKERS)[:, None]
    hit = expit(skill - bias + rng.normal(0.0, apart, (WORKERS, LABELS)))
    alarm = 1.0 - expit(skill + bias + 0.7 + rng.normal(0.0, apart, (WORKERS, LABELS)))
    said = rng.random((items, WORKERS, LABELS)) < np.where(truth[:, None], hit, alarm)
    comes = rng.pareto(1.5, WORKERS) + 0.2
    return truth, said.astype(np.int64), comes / comes.sum()


def play(crowd: GrowingCrowd, items: int, leases: int, visits: Ints, says: Callable[[int, int], int]) -> None:
    """Workers come and are given items until so many leases are answered, refitted as a live campaign is."""
    crowd.add_tasks(np.zeros((items, 2)), 64, 24)
    numbers: dict[int, int] = {}
    given = version = due = 0
    for worker in visits.tolist():
        if given >= leases:
            break
        if given >= due:
            version += 1
            crowd.learn(version, given, leases - given)
            due = given + max(4, int(min(leases / 40, max(10, given / 5))))
        if worker not in numbers:
            numbers[worker] = crowd.add_worker()
        task = crowd.choose(numbers[worker], Outlook(given, leases - given, given))
        if isinstance(task, str):
            continue
        crowd.assign(given, task, numbers[worker])
        crowd.complete(given, says(task, worker))
        given += 1
    crowd.learn(version + 1, given, 0)


def run(seed: int, items: int, each: int, apart: float) -> list[float]:
    """Mean accuracy per label: multi, 14 campaigns with as many answers, 14 campaigns with as many leases."""
    rng = np.random.default_rng([seed, items, each])
    truth, said, comes = draw_crowd(rng, items, apart)
    leases = items * each
    form = Form((Question("", "multi", tuple(f"label {k}" for k in range(LABELS))),))
    codes = said @ 2 ** np.arange(LABELS)
    several = FormCrowd(form, seed)
    visits = rng.choice(WORKERS, 20 * leases, p=comes)
    play(several, items, leases, visits, lambda x, j: int(codes[x, j]))
    found = [float(((several.read(items)[:, :LABELS] > 0.5) == truth).mean())]
    for budget in (leases, leases // LABELS):
        right = []
        for k in range(LABELS):
            alone: Any = GrowingCrowd(np.full(2, 0.5), seed=seed)
            visits = rng.choice(WORKERS, 20 * leases, p=comes)
            play(alone, items, budget, visits, lambda x, j, k=k: int(said[x, j, k]))  # type: ignore[misc]
            right.append(float((alone.beliefs[:items].argmax(axis=1) == truth[:, k]).mean()))
        found.append(float(np.mean(right)))
    return found


def main() -> None:
    """Print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    seeds = parser.parse_args().seeds
    print("items  leases per item  apart   multi  14 campaigns: answers alike  leases alike", flush=True)
    for items, each, apart in CELLS:
        rows = np.array([run(seed, items, each, apart) for seed in range(seeds)])
        mean, error = rows.mean(axis=0), (rows[:, :1] - rows).std(axis=0, ddof=1) / np.sqrt(seeds)
        print(
            f"{items:5d}  {each:15d}  {apart:5.1f}  {mean[0]:.4f}  {mean[1]:.4f} (+- {error[1]:.4f})  "
            f"{mean[2]:.4f} (+- {error[2]:.4f})",
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
