"""``python -m benchmarks.recorded_crowds``: the model of workers against recorded truths, and against its own.

The data folder (``rte``, ``temp``, ``mre``, ``labelme``, each with labels.csv and gold.csv) is that of the environment
variable ``NEXTLABEL_DATA``, else ``../shared/data``. What is printed:

- ``sets``: all labels, no truth given: right, agreement, log loss per item with gold, majority (ties count for half);
- ``constants``: the same with the constants of the prior that are best on the other three sets, and the best in sight;
- ``gold``: the truth of 100 random items given: right on the others, and the majority's;
- ``headline``: the truth of 20 random items given: how far the accuracy shown is from the truth, how often its interval
  holds it;
- ``workers``: how many of the '95%' intervals of workers with 30 labels on items with gold hold their share right,
  without known truths and with 20 (labels on items with gold alone: those of MRE were not chosen at random);
- ``sybils``: honest workers, accounts with one shared wrong answer, 20 control questions;
- ``own``: drawn crowds: agreement less the share right, and how often its interval holds that.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.controls import judge_by_truths
from nextlabel.crowd.expected import expected_accuracy
from nextlabel.crowd.fit import CrowdLabels, crowd_labels, fit_crowd
from nextlabel.crowd.learn import _audit
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.crowd.skill import accuracies, flags_by_worker
from nextlabel.files.labels import read_gold, read_labels

DATA = Path(os.environ.get("NEXTLABEL_DATA", "../shared/data"))
SETS = ("rte", "temp", "mre", "labelme")


def load(name: str, judged_alone: bool = False) -> tuple[CrowdLabels, Ints]:
    """A recorded set and its gold; with ``judged_alone`` only the items that have gold."""
    table = read_labels(DATA / name / "labels.csv")
    gold = np.asarray(read_gold(DATA / name / "gold.csv", table).label)
    labels = crowd_labels(table)
    if judged_alone and (gold < 0).any():
        some, number = gold[labels.task] >= 0, np.cumsum(gold >= 0) - 1
        labels = labels._replace(
            task=number[labels.task[some]], worker=labels.worker[some], answer=labels.answer[some],
            tasks=int((gold >= 0).sum()),
        )  # fmt: skip
        gold = gold[gold >= 0]
    return labels, gold


def votes_right(labels: CrowdLabels, gold: Ints, of: Ints) -> float:
    """The majority's share right on the tasks ``of``, ties counting for their share."""
    votes = np.bincount(labels.task * labels.answers + labels.answer, minlength=labels.tasks * labels.answers)
    votes = votes.reshape(labels.tasks, labels.answers)[of]
    top = votes == votes.max(axis=1, keepdims=True)
    return float((top[np.arange(len(of)), gold[of]] / top.sum(axis=1)).mean())


def told(gold: Ints, which: Ints) -> Ints:
    """Gold of some items alone."""
    out = np.full(len(gold), -1, dtype=np.int64)
    out[which] = gold[which]
    return out


def sets() -> None:
    """All labels, no truth."""
    rights = []
    for name in SETS:
        labels, gold = load(name)
        of = np.flatnonzero(gold >= 0)
        fit = fit_crowd(labels)
        own = expected_accuracy(labels, fit.beliefs, CrowdPrior.default(labels.answers))
        rights.append(float((fit.beliefs[of].argmax(axis=1) == gold[of]).mean()))
        loss = -float(np.log(np.maximum(fit.beliefs[of, gold[of]], 1e-6)).mean())
        print(f"{name}: right {rights[-1]:.4f}, agreement {own.mean:.3f} [{own.low:.3f}, {own.high:.3f}], "
              f"log loss {loss:.3f}, majority {votes_right(labels, gold, of):.4f}")  # fmt: skip
    print(f"mean right {np.mean(rights):.4f}")


def constants() -> None:
    """Pseudo-labels right and wrong, pseudo-tasks and what the crowd's mean is held by, chosen on the other sets.

    What is compiled into ``kernels.crowd_fit`` (the worker's coin, items that are hard) is not varied.
    """
    grid = [
        (right, wrong, tasks, hold)
        for right, wrong in ((4.0, 2.0), (2.0, 1.0), (6.0, 2.0), (8.0, 4.0), (3.0, 2.0))
        for tasks in (4.0, 10.0, 40.0)
        for hold in (20.0, 60.0, 180.0)
    ]
    found = np.zeros((len(grid), len(SETS)))
    for s, name in enumerate(SETS):
        labels, gold = load(name)
        of, C = np.flatnonzero(gold >= 0), labels.answers
        for g, (right, wrong, tasks, hold) in enumerate(grid):
            pseudo = np.where(np.eye(C) > 0, right, wrong / (C - 1))
            fit = fit_crowd(labels, prior=CrowdPrior(pseudo, np.full(C, tasks / C), hold))
            found[g, s] = (fit.beliefs[of].argmax(axis=1) == gold[of]).mean()
    default = grid.index((4.0, 2.0, 10.0, 60.0))
    chosen = [int(np.delete(found, s, axis=1).mean(axis=1).argmax()) for s in range(len(SETS))]
    for s, name in enumerate(SETS):
        print(
            f"{name}: default {found[default, s]:.4f}, chosen on the others "
            f"{found[chosen[s], s]:.4f} {grid[chosen[s]]}, of all {found[:, s].min():.4f} to {found[:, s].max():.4f}"
        )
    means = found.mean(axis=1)
    held_out = np.mean([found[g, s] for s, g in enumerate(chosen)])
    print(
        f"mean: default {means[default]:.4f}, chosen on the others {held_out:.4f}, "
        f"of all {means.min():.4f} to {means.max():.4f}"
    )


def gold_given(draws: int, many: int = 100) -> None:
    """The truth of ``many`` random items."""
    for name in SETS:
        labels, gold = load(name)
        of, rng, found = np.flatnonzero(gold >= 0), np.random.default_rng(0), []
        for _ in range(draws):
            some = rng.choice(of, many, replace=False)
            rest = np.setdiff1d(of, some)
            best = fit_crowd(labels, told(gold, some)).beliefs.argmax(axis=1)
            found.append([(best[rest] == gold[rest]).mean(), votes_right(labels, gold, rest)])
        ours, votes = np.mean(found, axis=0)
        least = np.min(np.subtract(*np.transpose(found)))
        print(f"{name}, {many} truths, {draws} draws: right {ours:.4f}, majority {votes:.4f}, least gain {least:+.4f}")


def headline(draws: int, many: int = 20) -> None:
    """The truth of ``many`` random items: what is shown, and what is so."""
    for name in SETS:
        labels, gold = load(name, judged_alone=True)
        rng, apart, held = np.random.default_rng(1), [], 0
        for _ in range(draws):
            known = told(gold, rng.choice(labels.tasks, many, replace=False))
            fit = fit_crowd(labels, known)
            own = expected_accuracy(labels, fit.beliefs, CrowdPrior.default(labels.answers), known)
            shown = _audit(labels, fit, known, own, judge_by_truths(labels, fit, known).contradiction, None)
            assert shown is not None
            right = float((fit.beliefs.argmax(axis=1) == gold)[known < 0].mean())
            apart.append(shown.accuracy - right)
            held += shown.low <= right <= shown.high
        print(f"{name}, {many} truths, {draws} draws: off by {100 * np.mean(np.abs(apart)):.1f} points on average "
              f"(bias {100 * np.mean(apart):+.1f}), interval holds in {held / draws:.0%}")  # fmt: skip


def workers() -> None:
    """Intervals of workers' accuracy."""
    for name in SETS[:3]:
        for alone in (True, False) if name == "mre" else (True,):
            labels, gold = load(name, judged_alone=alone)
            judged = gold[labels.task] >= 0
            many = np.bincount(labels.worker[judged], minlength=labels.workers)
            hits = np.bincount(labels.worker[judged], (gold[labels.task] == labels.answer)[judged], labels.workers)
            enough, said = many >= 30, []
            for known in (0, 20):
                rng, held = np.random.default_rng(2), []
                for _ in range(1 if known == 0 else 10):
                    some = told(gold, rng.choice(np.flatnonzero(gold >= 0), known, replace=False))
                    shown = accuracies(labels, fit_crowd(labels, some))[0]
                    share = hits[enough] / many[enough]
                    held.append(((shown.low[enough] <= share) & (share <= shown.high[enough])).mean())
                said.append(f"{np.mean(held):.1%} with {known} truths")
            print(
                f"{name}{'' if alone else ', all items'}: {int(enough.sum())} workers, "
                f"intervals hold: {', '.join(said)}"
            )


def sybil_crowd(seed: int, accounts: int, answers: int = 2, each: int = 6) -> tuple[CrowdLabels, Ints, Ints]:
    """8 honest workers at .85, accounts with one shared wrong answer, 200 items, 20 controls answered by all."""
    rng = np.random.default_rng(seed)
    honest, tasks, controls = 8, 200, 20
    truth = rng.integers(0, answers, tasks + controls)
    shared = (truth + rng.integers(1, answers, tasks + controls)) % answers
    people = honest + accounts
    who = [rng.choice(people, each, replace=False) for _ in range(tasks)] + [np.arange(people)] * controls
    task, worker = np.repeat(np.arange(tasks + controls), [len(x) for x in who]), np.concatenate(who)
    wrong = (truth[task] + rng.integers(1, answers, len(task))) % answers
    said = np.where(rng.random(len(task)) < 0.85, truth[task], wrong)
    answer = np.where(worker < honest, said, shared[task])
    return (
        CrowdLabels(task, worker, answer, tasks + controls, people, answers),
        truth,
        told(truth, np.arange(tasks, tasks + controls)),
    )


def sybils(draws: int) -> None:
    """Whether accounts are found, honest people left alone, and what is read out."""
    for answers in (2, 3):
        for accounts in (12, 20, 30):
            found = []
            for seed in range(draws):
                labels, truth, known = sybil_crowd(seed, accounts, answers)
                fit = fit_crowd(labels, known)
                verdict = judge_by_truths(labels, fit, known)
                flags = flags_by_worker(labels, fit, accuracies(labels, fit)[1], (), verdict)
                right = (fit.beliefs.argmax(axis=1) == truth)[known < 0].mean()
                flagged = [bool(one) for one in flags]
                found.append([right, np.mean(flagged[8:]), np.mean(flagged[:8]), verdict.contradiction is not None])
            right, bad, good, withheld = np.mean(found, axis=0)
            print(f"{answers} answers, {accounts} accounts: right {right:.3f} (least {np.min(found, axis=0)[0]:.3f}), "
                  f"accounts flagged {bad:.0%}, honest flagged {good:.0%}, withheld {withheld:.0%}")  # fmt: skip


def drawn(answers: int, kind: str, each: float, rng: np.random.Generator) -> tuple[CrowdLabels, Ints]:
    """300 items, 20 workers: from the prior, or all right as often; pairs of labels first."""
    tasks, people = 300, 20
    truth = rng.integers(0, answers, tasks)
    weights = CrowdPrior.default(answers).pseudo
    channels = np.array([[rng.dirichlet(row) for row in weights] for _ in range(people)])
    if kind != "prior":
        p = float(kind)
        channels[:] = np.where(np.eye(answers) > 0, p, (1.0 - p) / (answers - 1))
    per = np.full(tasks, int(each)) if each >= 2 else np.where(np.arange(tasks) < each * tasks / 2, 2, 0)
    who: list[Ints] = [rng.choice(people, n, replace=False) for n in per]
    task, worker = np.repeat(np.arange(tasks), per), np.concatenate(who)
    chances: Floats = channels[worker, truth[task]].cumsum(axis=1)
    answer = np.minimum((chances < rng.random((len(task), 1))).sum(axis=1), answers - 1)
    return CrowdLabels(task, worker, answer, tasks, people, answers), truth


def own(draws: int) -> None:
    """Drawn crowds: what is expected and what is so, at 1 to 5 labels an item."""
    for answers in (2, 3, 10):
        for kind in ("prior", "0.6", "0.95"):
            for each in (1, 2, 3, 5):
                found = []
                for seed in range(draws):
                    labels, truth = drawn(answers, kind, each, np.random.default_rng(seed))
                    fit = fit_crowd(labels)
                    said = expected_accuracy(labels, fit.beliefs, CrowdPrior.default(answers))
                    right = (fit.beliefs.argmax(axis=1) == truth).mean()
                    found.append([right, said.mean - right, said.low <= right <= said.high])
                right, apart, held = np.mean(found, axis=0)
                print(f"{answers} answers, workers {kind}, {each} labels an item: right {right:.3f}, "
                      f"expected less right {100 * apart:+.1f} points, intervals hold {held:.0%}")  # fmt: skip


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", nargs="*", default=["sets", "constants", "gold", "headline", "workers", "sybils", "own"]
    )
    parser.add_argument("--draws", type=int, default=30)
    given = parser.parse_args()
    steps: dict[str, Callable[[], None]] = {
        "sets": sets, "constants": constants, "gold": lambda: gold_given(given.draws),
        "headline": lambda: headline(given.draws), "workers": workers,
        "sybils": lambda: sybils(given.draws), "own": lambda: own(given.draws),
    }  # fmt: skip
    for name in given.what:
        print(f"\n{name}")
        steps[name]()


if __name__ == "__main__":
    main()
