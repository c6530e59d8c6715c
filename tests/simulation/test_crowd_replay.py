"""Recorded labels replayed with their workers: what every replay must keep to, on small simulated crowds."""

from __future__ import annotations

import numpy as np
import pytest

from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable
from nextlabel.simulation.crowd_replay import CrowdReplayed, CrowdReplaySetup, labels_given, replay_crowd
from nextlabel.simulation.replay import CrowdRecord

RULES = ("crowd", "crowd-uncertainty", "uniform")


def simulated(tasks: int = 40, workers: int = 12, each: int = 6, answers: int = 2, seed: int = 1) -> CrowdRecord:
    """Tasks with ``each`` labels by different workers, of whom a third are at chance."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(answers, size=tasks)
    right = np.where(np.arange(workers) % 3 == 0, 1 / answers, 0.9)
    task = np.repeat(np.arange(tasks), each)
    worker = np.concatenate([rng.permutation(workers)[:each] for _ in range(tasks)])
    wrong = (truth[task] + rng.integers(1, answers, size=len(task))) % answers
    answer = np.where(rng.random(len(task)) < right[worker], truth[task], wrong)
    return CrowdRecord(CrowdLabels(task, worker, answer, tasks, workers, answers), truth)


def recorded_rows(record: CrowdRecord, given: CrowdLabels) -> list[int]:
    """Which recorded label each given one is."""
    row = {(x, j): i for i, (x, j) in enumerate(zip(record.labels.task, record.labels.worker, strict=True))}
    return [row[x, j] for x, j in zip(given.task, given.worker, strict=True)]


@pytest.mark.parametrize("policy", RULES)
@pytest.mark.parametrize(
    ("replay", "turn_away"), [("task-first", False), ("worker-first", False), ("worker-first", True)]
)
@pytest.mark.parametrize("answers", [2, 4])
@pytest.mark.no_cover
def test_a_recorded_label_is_used_once_and_the_budget_to_the_last(
    policy: str, replay: str, turn_away: bool, answers: int
) -> None:
    record = simulated(answers=answers)
    setup = CrowdReplaySetup(record, replay, turn_away, seed=3)
    found = list(labels_given(setup, policy, [50, 120, 240], 0))
    assert [len(given.task) for _, given, _ in found] == [50, 120, 240]
    for budget, given, turned in found:
        rows = recorded_rows(record, given)  # fails where a worker was given a task that they did not label
        assert len(set(rows)) == budget
        assert (record.labels.answer[rows] == given.answer).all()
        assert 0 <= turned <= len(record) - budget
        assert turn_away or turned == 0


def test_task_first_the_labels_of_a_task_come_in_the_same_order_under_every_policy() -> None:
    record = simulated()
    setup = CrowdReplaySetup(record, seed=5)
    drawn: dict[int, list[int]] = {}
    for policy in (*RULES, "index", "okg"):
        _, given, _ = next(labels_given(setup, policy, [150], 2))
        for x in range(record.labels.tasks):
            mine = given.worker[given.task == x].tolist()
            other = drawn.setdefault(x, mine)
            shorter = min(len(mine), len(other))
            assert mine[:shorter] == other[:shorter]
            drawn[x] = max(mine, other, key=len)
    again = {x: given.worker[given.task == x].tolist() for x in range(record.labels.tasks)}
    _, given, _ = next(labels_given(setup, "uniform", [240], 3))
    assert again != {x: given.worker[given.task == x].tolist() for x in range(record.labels.tasks)}


def test_results_depend_on_the_seed_alone() -> None:
    record = simulated()

    def found(seed: int) -> list[CrowdReplayed]:
        return replay_crowd(
            record, ["crowd"], [80, 120], replay="worker-first", turn_away=True, replications=2, seed=seed
        )

    one, two = found(4), found(4)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.right["workers"], b.right["workers"])
        assert np.array_equal(a.turned_away, b.turned_away)
    other = found(5)
    assert any(not np.array_equal(a.right["workers"], b.right["workers"]) for a, b in zip(one, other, strict=True))


def test_gold_is_scored_and_nothing_else() -> None:
    record = simulated()
    few = np.where(np.arange(len(record.gold)) < 10, record.gold, -1)
    known = CrowdRecord(record.labels, few)
    whole, part = (replay_crowd(r, ["crowd"], [120], replications=2)[0] for r in (record, known))
    for readout in ("workers", "majority"):
        assert np.array_equal(whole.right[readout][:, :10], part.right[readout][:, :10])
        assert np.isnan(part.right[readout][:, 10:]).all()
    assert np.array_equal(whole.expected, part.expected)


def test_one_budget_and_several_give_the_same_labels() -> None:
    record = simulated()
    together = replay_crowd(record, RULES, [60, 150], replications=2)
    apart = [replay_crowd(record, [p], [b], replications=2)[0] for p in RULES for b in (60, 150)]
    for a, b in zip(together, apart, strict=True):
        assert (a.policy, a.budget) == (b.policy, b.budget)
        if a.policy == "crowd":  # its plan depends on the budget; the others' refits come after as many labels
            assert np.array_equal(a.right["workers"], b.right["workers"])
        assert a.labels_used.tolist() == [a.budget] * 2


def test_all_labels_give_the_same_answers_whatever_the_policy() -> None:
    record = simulated()
    found = replay_crowd(record, [*RULES, "okg"], [len(record)], replications=1)
    for one in found:
        assert one.accuracy("majority").mean == pytest.approx(found[0].accuracy("majority").mean)
        assert one.accuracy().mean == pytest.approx(found[0].accuracy().mean)


def test_one_worker_only_can_be_replayed() -> None:
    rng = np.random.default_rng(0)
    labels = CrowdLabels(np.arange(20), np.zeros(20, dtype=np.int64), rng.integers(2, size=20), 20, 1, 2)
    found = replay_crowd(CrowdRecord(labels, labels.answer), ["crowd"], [20], replications=1)[0]
    assert found.accuracy("majority").mean == 1.0


def test_bad_input_is_one_clear_sentence() -> None:
    record = simulated()
    with pytest.raises(InputError, match="not known"):
        replay_crowd(record, ["crowd"], [10], replay="backwards")
    with pytest.raises(InputError, match="nobody can be turned away"):
        replay_crowd(record, ["crowd"], [10], turn_away=True)
    with pytest.raises(InputError, match="labels are recorded"):
        replay_crowd(record, ["crowd"], [len(record) + 1])
    with pytest.raises(InputError, match="no budget"):
        replay_crowd(record, ["crowd"], [])
    with pytest.raises(InputError, match="two answers"):
        replay_crowd(simulated(answers=3), ["index"], [10], replications=1)
    table = LabelTable(np.array([0, 1]), None, np.array([0, 1]), ("a", "b"), (), ("0", "1"))
    with pytest.raises(InputError, match="no column of workers"):
        CrowdRecord.from_table(table)
    with pytest.raises(InputError, match="more than once"):
        twice = CrowdLabels(np.array([0, 0]), np.array([0, 0]), np.array([0, 1]), 1, 1, 2)
        replay_crowd(CrowdRecord(twice, np.array([1])), ["crowd"], [1])


def test_labels_without_a_worker_are_those_of_strangers() -> None:
    table = LabelTable(
        np.array([0, 0, 1]), np.array([0, -1, -1]), np.array([0, 1, 1]), ("a", "b"), ("ann",), ("0", "1")
    )
    record = CrowdRecord.from_table(table)
    assert record.labels.worker.tolist() == [0, 1, 2]
    assert record.labels.workers == len(record.workers) == 3
