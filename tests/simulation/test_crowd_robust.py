"""Crowds that are unlike the recorded ones: nothing is tuned to RTE, TEMP or the medical relations."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.simulation.crowd_replay import replay_crowd
from nextlabel.simulation.replay import CrowdRecord

LABELS_PER_TASK = (1.0, 1.5, 3.0)
#: Three standard errors of the mean over 2 crowds and 2 orders of 300 tasks.
MARGIN = 0.035


def channel(right: float, answers: int, favours: int = -1, how_often: float = 0.0) -> Floats:
    """A worker who is right with that probability, and now and then gives the favourite answer unseen."""
    out = np.full((answers, answers), (1.0 - right) / (answers - 1))
    np.fill_diagonal(out, right)
    if favours >= 0:
        out *= 1.0 - how_often
        out[:, favours] += how_often
    return out


def channels(kind: str, answers: int, rng: np.random.Generator) -> Floats:
    """(W, C, C) of the crowd of that kind."""
    if kind == "at chance":
        return np.array([channel(1 / answers if j % 5 < 3 else 0.85, answers) for j in range(60)])
    if kind == "says yes":
        return np.array([channel(rng.beta(8, 2), answers, 1, rng.uniform(0.1, 0.5)) for _ in range(60)])
    if kind == "few and heavy":
        return np.array([channel(right, answers) for right in rng.uniform(0.55, 0.95, 12)])
    if kind == "many and tiny":
        return np.array([channel(rng.beta(5, 2), answers) for _ in range(600)])
    mixed = [channel(rng.beta(8, 2), answers) for _ in range(24)]
    mixed += [channel(1 / answers, answers) for _ in range(8)]
    return np.array(mixed + [channel(0.8, answers, int(rng.integers(answers)), 0.5) for _ in range(8)])


def crowd(kind: str, share: float, answers: int, seed: int, tasks: int = 300, each: int = 8) -> CrowdRecord:
    """``share`` of the tasks have the truth 0; every task has labels of ``each`` workers."""
    rng = np.random.default_rng(seed)
    rest = (1.0 - share) / (answers - 1)
    truth: Ints = rng.choice(answers, tasks, p=[share] + [rest] * (answers - 1))
    known = channels(kind, answers, rng)
    task = np.repeat(np.arange(tasks), each)
    worker = np.concatenate([rng.permutation(len(known))[:each] for _ in range(tasks)])
    reach = np.cumsum(known[worker, truth[task]], axis=1)
    answer = np.minimum((rng.random(len(task))[:, None] > reach).sum(axis=1), answers - 1)
    return CrowdRecord(CrowdLabels(task, worker, answer, tasks, len(known), answers), truth)


@pytest.mark.parametrize(
    ("kind", "share", "answers"),
    [
        ("at chance", 0.5, 2), ("says yes", 0.5, 2), ("says yes", 0.8, 2), ("few and heavy", 0.5, 2),
        ("many and tiny", 0.7, 2), ("mixed", 0.9, 2), ("mixed", 0.25, 4), ("mixed", 0.7, 3),
    ],
)  # fmt: skip
@pytest.mark.no_cover
def test_least_certain_first_is_safe_from_the_first_label_on(kind: str, share: float, answers: int) -> None:
    found: dict[str, list[list[float]]] = {"least certain": [], "going round": [], "majority": []}
    for seed in (1, 2):
        record = crowd(kind, share, answers, seed)
        budgets = [int(many * record.labels.tasks) for many in LABELS_PER_TASK]
        chosen = replay_crowd(record, ["crowd-uncertainty"], budgets, replications=2)
        round_ = replay_crowd(record, ["uniform"], budgets, replications=2)
        found["least certain"].append([one.accuracy().mean for one in chosen])
        found["going round"].append([one.accuracy().mean for one in round_])
        found["majority"].append([one.accuracy("majority").mean for one in round_])
    mean = {name: np.mean(runs, axis=0) for name, runs in found.items()}
    assert (mean["least certain"] >= mean["going round"] - MARGIN).all(), mean
    assert (mean["least certain"] >= mean["majority"] - MARGIN).all(), mean
    assert mean["least certain"][-1] > mean["majority"][-1], mean
