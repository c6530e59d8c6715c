"""Start from what a model already says: one score an item in a CSV file, worth so many labels.

A score p with strength s is the prior Beta(s p, s (1 - p)): four means that the model's word is worth four labels. The
same on the command line: nextlabel bound --scores items.csv --strength 4 --budget 360; in a problem file:
scores = {file = "items.csv", column = "probability", strength = 4}.

python examples/scores.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import nextlabel as nl

with TemporaryDirectory() as folder:
    path = Path(folder) / "items.csv"
    scores = np.random.default_rng(0).beta(0.8, 0.8, size=120).round(3)
    path.write_text("item,probability\n" + "".join(f"item-{k},{p}\n" for k, p in enumerate(scores)), encoding="utf-8")
    read = nl.read_scores(path, "probability")

print(f"{len(read.values)} items, scores that were moved away from 0 or 1: {read.moved}")
for strength in (2, 4, 8):
    classes = nl.score_classes(read.values, strength=strength)
    bound = nl.upper_bound(nl.Problem(classes, budget=360))
    print(f"strength {strength}: {len(classes)} classes, at most {bound.per_task:.4f} of each item right")

problem = nl.Problem(nl.score_classes(read.values, strength=4), budget=360)
study = nl.simulate(problem, ["index", "uniform"], replications=10, seed=0)
for result in study.results:
    print(f"{result.name:8s} {result.per_task.mean:.4f} of each item right")
print("as a problem file:", *nl.problem_to_toml(problem).splitlines()[:11], "...", sep="\n  ")
