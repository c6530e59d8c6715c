"""``python -m benchmarks.learner``: the learner beside people on drawn crowds, and how long it takes.

``constants``: which ``MODEST`` and ``ALIKE`` (``crowd.learner``) make the truth most probable, on drawn sets alone.
Every answer has a centre in 16 dimensions and items lie around theirs; each of the workers has an accuracy of their
own, and a share of the errors (``follows``) goes to the answer whose centre is next, as features suggest it. Printed:
the mean log loss of the truth by each value of one constant, the other as it is, in nats above the best value of each
cell: mean and largest over the cells. ``large``: one joint fit of many items. ``asks``: how long workers wait beside
refits that teach.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from collections.abc import Sequence

import numpy as np

from nextlabel.application.service import CampaignService
from nextlabel.arrays import Floats, Ints
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd import learner
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.files.features import Features
from nextlabel.store.sql import open_store

#: Cells of ``constants``: answers, share of the errors that follow the features, mean accuracy from chance (0) to
#: perfect (1), labels per item.
ANSWERS, FOLLOWS, RIGHT, EACH = (2, 4, 8), (0.0, 0.3, 0.6), (0.3, 0.5, 0.7), (1, 2)
VALUES = {"MODEST": (0.2, 0.3, 0.4, 0.5, 0.6, 0.8), "ALIKE": (0.0, 0.15, 0.3, 0.45, 0.6)}
ITEMS, WORKERS, SIZE = 300, 20, 16


def drawn(answers: int, follows: float, right: float, each: int, seed: int) -> tuple[CrowdLabels, Features, Ints]:
    """Labels, features and truths of one set."""
    rng = np.random.default_rng((seed, answers, int(10 * follows), int(10 * right), each))
    centre = rng.normal(size=(answers, SIZE))
    truth = rng.integers(0, answers, ITEMS)
    numbers = centre[truth] + 1.2 * rng.normal(size=(ITEMS, SIZE))
    far = ((numbers[:, None] - centre) ** 2).sum(axis=2)
    far[np.arange(ITEMS), truth] = np.inf
    # Some workers guess and some are careful, so that accuracies spread around their mean.
    skill = rng.beta(4.0 * right, 4.0 * (1.0 - right), WORKERS)
    task = np.repeat(np.arange(ITEMS), each)
    worker = np.concatenate([rng.choice(WORKERS, each, replace=False) for _ in range(ITEMS)])
    wrong = (truth[task] + rng.integers(1, answers, len(task))) % answers
    wrong = np.where(rng.random(len(task)) < follows, far.argmin(axis=1)[task], wrong)
    is_right = rng.random(len(task)) < 1.0 / answers + skill[worker] * (1.0 - 1.0 / answers)
    labels = CrowdLabels(task, worker, np.where(is_right, truth[task], wrong), ITEMS, WORKERS, answers)
    return labels, Features(tuple(f"t{k}" for k in range(ITEMS)), numbers.astype(np.float32)), truth


def constants(seeds: int) -> None:
    """Log loss by the value of each constant."""
    cells = [c for c in itertools.product(ANSWERS, FOLLOWS, RIGHT, EACH) if c[0] > 2 or c[1] == 0.0]
    for name, values in VALUES.items():
        kept, loss = getattr(learner, name), np.zeros((len(values), len(cells), seeds))
        some = [place for place, cell in enumerate(cells) if name == "MODEST" or cell[0] > 2]
        for (k, value), place, seed in itertools.product(enumerate(values), some, range(seeds)):
            setattr(learner, name, value)
            loss[k, place, seed] = _loss(*drawn(*cells[place], seed))
        setattr(learner, name, kept)
        mean = loss[:, some].mean(axis=2)
        above = mean - mean.min(axis=0)
        print(f"| {name} (now {kept}) | log loss above the best: mean | largest | mean where errors follow .6 |")
        print("|---|---|---|---|")
        follow = np.array([cells[place][1] == FOLLOWS[-1] for place in some])
        for value, row in zip(values, above, strict=True):
            print(f"| {value} | {row.mean():.4f} | {row.max():.4f} | {row[follow].mean():.4f} |", flush=True)


def _loss(labels: CrowdLabels, features: Features, truth: Ints) -> float:
    fit, _ = learner.learn_jointly(labels, np.full(ITEMS, -1), features, features.tasks)
    return float(-np.log(np.maximum(fit.beliefs[np.arange(ITEMS), truth], 1e-6)).mean())


def large(items: int, labels: int, size: int) -> None:
    """One joint fit: processor time, and the most memory that the process has had."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, items)
    numbers = rng.normal(size=(items, size)).astype(np.float32)
    numbers[:, :8] += rng.normal(size=(4, 8)).astype(np.float32)[truth]
    task, worker = rng.integers(0, items, labels), rng.integers(0, 500, labels)
    answer = np.where(rng.random(labels) < 0.7, truth[task], rng.integers(0, 4, labels))
    given = CrowdLabels(task, worker, answer, items, 500, 4)
    features = Features(tuple(f"t{k}" for k in range(items)), numbers)
    learner.learn_jointly(*_small(given, features))  # what is compiled at first is not counted
    begun, used = time.perf_counter(), time.process_time()
    fit, taught = learner.learn_jointly(given, np.full(items, -1), features, features.tasks)
    right = float((fit.beliefs.argmax(axis=1) == truth).mean())
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{items:,} items, {labels:,} labels, {size} features: {time.process_time() - used:.1f} s of processor, "
        f"{time.perf_counter() - begun:.1f} s in all, {most:.2f} GB; {taught.bits:.2f} bits, {right:.3f} right."
    )


def _small(labels: CrowdLabels, features: Features) -> tuple[CrowdLabels, Ints, Features, Sequence[str]]:
    kept = labels.task < 200
    some = CrowdLabels(labels.task[kept], labels.worker[kept], labels.answer[kept], 200, *labels[4:])
    return some, np.full(200, -1), features.kept(np.arange(200)), features.tasks[:200]


def asks(items: int, size: int, pairs: int) -> None:
    """Milliseconds that workers wait for a task without features, and beside refits in the background that teach."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, items)
    vectors = rng.normal(size=(items, size)).astype(np.float32)
    vectors[:, :8] += 0.5 * truth[:, None]
    for way in ("without features", "with features"):
        with tempfile.TemporaryDirectory() as folder:
            service = CampaignService(open_store(f"sqlite:///{folder}/asks.db"))
            service.refit_in_background()
            settings = CampaignSettings.from_dict({"budget": 3 * items, "labels": ["no", "yes"]})
            id = service.create(settings, tasks=[{"id": f"t{k}", "text": f"item {k}"} for k in range(items)]).id
            if way == "with features":
                service[id].add_features(Features(tuple(f"t{k}" for k in range(items)), vectors))
            seconds: list[float] = []
            for k in range(pairs):
                begun = time.perf_counter()
                lease = service[id].ask(f"w{k % 40}")
                seconds.append(time.perf_counter() - begun)
                if lease:
                    said = truth[int(lease.task[1:])] ^ int(rng.random() < 0.2)
                    service[lease.campaign].tell(lease.id, ("no", "yes")[said])
            refits = sum(event.kind == "refitted" for event in service.store.events(id, 0, 10 * pairs))
            _say(way, np.array(seconds[20:]), refits)
            service.close()


def _say(way: str, seconds: Floats, refits: int) -> None:
    half, high = 1e3 * np.quantile(seconds, [0.5, 0.99])
    print(f"{way}: {len(seconds):,} asks, median {half:.1f} ms, p99 {high:.1f} ms, {refits} refits.", flush=True)


def main() -> None:
    """Print the figures of one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["constants", "large", "asks"])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--items", type=int)
    parser.add_argument("--size", type=int, help="numbers per item")
    parser.add_argument("--pairs", type=int, default=2_000, help="asks and tells")
    given = parser.parse_args()
    if given.part == "constants":
        constants(given.seeds)
    elif given.part == "large":
        large(given.items or 100_000, 3 * (given.items or 100_000), given.size or 512)
    else:
        asks(given.items or 10_000, given.size or 64, given.pairs)


if __name__ == "__main__":
    main()
