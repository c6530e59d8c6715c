"""Replay with real times, on small simulated records whose batches overlap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nextlabel.arrays import Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError
from nextlabel.files.labels import read_labels
from nextlabel.simulation.crowd_replay import (
    CrowdReplaySetup,
    Schedule,
    labels_given,
    replay_crowd,
    shared_out,
)
from nextlabel.simulation.replay import CrowdRecord

RULES = ("crowd", "crowd-uncertainty", "uniform")


def timed_record(seconds: float = 30.0, seed: int = 2) -> CrowdRecord:
    """Three batches of ten tasks, the second beginning before the first ends; eight workers label most tasks."""
    rng = np.random.default_rng(seed)
    tasks, workers = 30, 8
    pairs = [(x, j) for x in range(tasks) for j in range(workers) if rng.random() < 0.8]
    task, worker = np.array(pairs, dtype=np.int64).T
    truth = rng.integers(2, size=tasks)
    right = np.where(np.arange(workers) < 2, 0.5, 0.85)
    answer = np.where(rng.random(len(task)) < right[worker], truth[task], 1 - truth[task])
    batch = task // 10
    started = batch * 700.0 + rng.random(len(task)) * 1000.0
    labels = CrowdLabels(task.copy(), worker.copy(), answer, tasks, workers, 2)
    return CrowdRecord(labels, truth, started=started, submitted=started + seconds, batch=batch)


def given_by(record: CrowdRecord, policy: str, budget: int, turn_away: bool = True) -> tuple[CrowdLabels, int]:
    ((_, given, turned),) = labels_given(CrowdReplaySetup(record, "timed", turn_away), policy, [budget], 0)
    return given, turned


@pytest.mark.parametrize("policy", RULES)
@pytest.mark.parametrize("turn_away", [False, True])
def test_every_batch_spends_its_share_on_labels_of_its_record(policy: str, turn_away: bool) -> None:
    record = timed_record()
    given, turned = given_by(record, policy, 90, turn_away)
    rows = {(x, j): i for i, (x, j) in enumerate(zip(record.labels.task, record.labels.worker, strict=True))}
    used = [rows[x, j] for x, j in zip(given.task, given.worker, strict=True)]
    assert len(set(used)) == len(used) == 90
    assert (record.labels.answer[used] == given.answer).all()
    assert np.bincount(given.task // 10).tolist() == [30, 30, 30]
    assert turned >= 0 if turn_away else turned == 0


def test_without_turning_away_the_first_arrivals_of_each_batch_are_served() -> None:
    record = timed_record()
    given, _ = given_by(record, "crowd-uncertainty", 90, turn_away=False)
    assert record.started is not None and record.batch is not None
    for batch in range(3):
        mine = np.flatnonzero(record.batch == batch)
        first = mine[np.argsort(record.started[mine])][:30]
        assert sorted(given.worker[given.task // 10 == batch]) == sorted(record.labels.worker[first])


def flipped(record: CrowdRecord) -> CrowdRecord:
    """The same record with every answer of the worker 3 turned round, and one worker's answers at random."""
    answer: Ints = np.where(record.labels.worker == 3, 1 - record.labels.answer, record.labels.answer)
    answer = np.where(record.labels.worker == 4, record.labels.task % 2, answer)
    return replace(record, labels=record.labels._replace(answer=answer))


@pytest.mark.parametrize("policy", ["crowd", "crowd-uncertainty"])
def test_no_answer_is_used_before_it_was_handed_in(policy: str) -> None:
    """If every label takes longer than the campaign, answers cannot change a single decision; else they do."""
    late, soon = timed_record(1e6), timed_record(1.0)
    one, two = (given_by(record, policy, 90)[0] for record in (late, flipped(late)))
    assert np.array_equal(one.task, two.task)
    assert np.array_equal(one.worker, two.worker)
    one, two = (given_by(record, policy, 90)[0] for record in (soon, flipped(soon)))
    assert not (np.array_equal(one.task, two.task) and np.array_equal(one.worker, two.worker))


def test_a_timed_replay_is_made_once_whatever_the_seed() -> None:
    record = timed_record()
    found = [
        replay_crowd(record, ["crowd-uncertainty"], [60, 90], replay="timed", replications=9, seed=seed)
        for seed in (0, 1)
    ]
    for a, b in zip(*found, strict=True):
        assert a.right["workers"].shape == (1, 30)
        assert np.array_equal(a.right["workers"], b.right["workers"])


def test_the_budget_is_shared_out_by_tasks_and_what_there_is() -> None:
    assert shared_out(10, np.array([1, 1, 2]), np.array([9, 9, 9])).tolist() == [3, 2, 5]
    assert shared_out(10, np.array([1, 1, 2]), np.array([9, 9, 3])).tolist() == [4, 3, 3]
    assert shared_out(21, np.array([1, 1, 2]), np.array([9, 9, 3])).tolist() == [9, 9, 3]


def test_a_record_without_usable_times_is_refused() -> None:
    record = timed_record()
    with pytest.raises(InputError, match="no times"):
        replay_crowd(replace(record, started=None), ["crowd"], [30], replay="timed")
    assert record.submitted is not None
    with pytest.raises(InputError, match=r"1 of .* lack a time"):
        broken = record.submitted.copy()
        broken[3] = np.nan
        replay_crowd(replace(record, submitted=broken), ["crowd"], [30], replay="timed")
    with pytest.raises(InputError, match="task-first only"):
        replay_crowd(record, ["index"], [30], replay="timed")


def test_times_and_batches_are_read_from_a_table() -> None:
    table = read_labels(
        {
            "task": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], "label": ["1", "0", "1"],
            "batch": ["x", "x", "y"],
            "started": ["2024-01-01T00:00:00", "2024-01-01T00:00:10", "2024-01-01T00:00:20"],
            "submitted": ["2024-01-01T00:00:05", "2024-01-01T00:00:40", "2024-01-01T00:00:30"],
        }
    )  # fmt: skip
    record = CrowdRecord.from_table(table, np.array([1, 0]))
    schedule = Schedule.of(record, 3)
    assert schedule.seconds.tolist() == [5.0, 30.0, 10.0]
    assert schedule.batch.tolist() == [0, 0, 1]
    assert schedule.budgets.tolist() == [2, 1]
