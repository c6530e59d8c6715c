"""``python -m benchmarks.live.crowd_replay rte temp``: the policy ``crowd`` live against the simulator's, on records.

Worker first: the workers of recorded labels arrive in the random order of ``nextlabel.simulation.crowd_replay``, the
same for both; tasks are in random order too. In the live campaign (Python facade, virtual time) a worker asks and skips
until the task is one of their own record, and then gives the recorded answer. Accuracy is against gold, mean over the
orders; nobody is turned away.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nextlabel as nl
from nextlabel.files.gold import read_gold
from nextlabel.files.labels import read_labels
from nextlabel.kernels.crowd_replay import draw_arrivals
from nextlabel.simulation.crowd_readout import share_right
from nextlabel.simulation.crowd_record import CrowdRecord
from nextlabel.simulation.crowd_replay import replay_crowd

DATA = Path(os.environ.get("NEXTLABEL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SKIP_S, WORK_S = 1.0, 20.0


@dataclass(frozen=True, slots=True)
class Played:
    """One live campaign on a record: share right, expected accuracy, labels, tasks skipped, seconds it took."""

    right: float
    expected: float
    labels: int
    skipped: int
    seconds: float


def play_live(record: CrowdRecord, budget: int, seed: int, replication: int, url: str = "memory:") -> Played:
    """A live campaign in which the workers of the record come in random order."""
    task, worker, answer, tasks, _, answers = record.labels
    said = {(int(x), int(j)): int(y) for x, j, y in zip(task, worker, answer, strict=True)}
    left = np.bincount(worker)
    begun, now, skipped = time.perf_counter(), 1.8e9, 0

    def clock() -> float:
        return now

    order = np.random.default_rng((seed, replication)).permutation(tasks)
    with nl.Campaign.create(
        url, [{"id": str(x), "payload": int(x)} for x in order], budget=budget, clock=clock, policy="crowd",
        labels=[str(y) for y in range(answers)], seed=seed, lease_seconds=3600.0,
    ) as campaign:  # fmt: skip
        for row in draw_arrivals(len(task), seed, replication):
            name = int(worker[row])
            while left[name]:
                lease = campaign.ask(f"w{name}")
                if not lease:
                    break
                found = said.get((int(lease.payload), name))
                if found is not None:
                    now += WORK_S
                    campaign.tell(lease, str(found))
                    left[name] -= 1
                    break
                now += SKIP_S
                skipped += 1
                campaign.release(lease)
            if campaign.status.state == "closed":
                break
        crowd = campaign._service.crowd(campaign._service.store.row(campaign.id))
        assert crowd is not None
        right = float(np.nanmean(share_right(crowd.beliefs, record.gold[order])))
        spent = campaign.status.spent
        return Played(right, crowd.expected_accuracy, spent, skipped, time.perf_counter() - begun)


def recorded(name: str) -> CrowdRecord:
    """A set of recorded labels with its gold."""
    table = read_labels(DATA / name / "labels.csv")
    return CrowdRecord.from_table(table, read_gold(DATA / name / "gold.csv", table).label)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", metavar="SET", help="rte, temp or mre")
    parser.add_argument("--each", type=float, nargs="+", default=[2.0, 3.0, 5.0], help="labels per task")
    parser.add_argument("--replications", type=int, default=3)
    given = parser.parse_args()
    print("| record | labels per task | simulator | live | difference | expected live | skipped per label | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.sets:
        record = recorded(name)
        for each in given.each:
            budget = int(each * record.labels.tasks)
            (simulated,) = replay_crowd(
                record, ["crowd"], [budget], replay="worker-first", replications=given.replications
            )
            live = [play_live(record, budget, 0, k) for k in range(given.replications)]
            there, here = float(simulated.accuracies().mean()), float(np.mean([one.right for one in live]))
            print(
                f"| {name} | {each:g} | {there:.4f} | {here:.4f} | {here - there:+.4f} | "
                f"{np.mean([one.expected for one in live]):.4f} | "
                f"{sum(one.skipped for one in live) / sum(one.labels for one in live):.1f} | "
                f"{np.mean([one.seconds for one in live]):.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
