"""The policy ``crowd`` live and in the simulator on the same recorded arrivals: one policy, one accuracy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.live.crowd_replay import play_live

from nextlabel.crowd.fit import CrowdLabels
from nextlabel.files.labels import read_gold, read_labels
from nextlabel.simulation.crowd_replay import replay_crowd
from nextlabel.simulation.replay import CrowdRecord

TASKS, BUDGET = 160, 400


def cut(data: Path) -> CrowdRecord:
    """The first batches of RTE: every worker has labelled a good part of the tasks."""
    table = read_labels(data / "rte" / "labels.csv")
    gold = read_gold(data / "rte" / "gold.csv", table).label
    assert table.worker is not None
    kept = np.flatnonzero(table.task < TASKS)
    _, worker = np.unique(table.worker[kept], return_inverse=True)
    labels = CrowdLabels(table.task[kept], worker.astype(np.int64), table.label[kept], TASKS, int(worker.max()) + 1, 2)
    return CrowdRecord(labels, gold[:TASKS])


@pytest.mark.long
def test_live_is_as_accurate_as_the_simulator(data: Path) -> None:
    """The full record is for ``python -m benchmarks.live.crowd_replay rte``."""
    record = cut(data)
    simulated = replay_crowd(record, ["crowd"], [BUDGET], replay="worker-first", replications=4)[0].accuracies()
    live = [play_live(record, BUDGET, 0, k) for k in range(2)]
    assert all(one.labels == BUDGET for one in live)
    right = float(np.mean([one.right for one in live]))
    majority = replay_crowd(record, ["uniform"], [BUDGET], replay="worker-first", replications=4)[0]
    assert abs(right - simulated.mean()) < 0.03, (right, simulated)
    assert right > majority.accuracy("majority").mean + 0.02
