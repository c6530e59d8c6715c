"""``python -m benchmarks.live.crowd_replay rte temp``: the policy ``crowd`` live against the simulator's, on records.

Worker first: the workers of recorded labels arrive in the random order of ``nextlabel.simulation.crowd_replay``, the
same for both; tasks are in random order too. In the live campaign a worker asks and skips until the task is one of
their own record, and then gives the recorded answer. Accuracy is against gold, mean over the orders; of ``mre`` the
items whose truth is known are played. Differences have a standard error over the orders.

With ``--http`` the campaign runs on the real service in a process of its own, with its background refits
(``benchmarks.live.http_campaign``), and 60 of its results are audited: once over HTTP, and a hundred times with the
items drawn anew. Without, it runs in this process, on virtual time. ``--turn-away``: both may turn workers away.

``--own-items``, in this process alone: a worker is offered items of their own record only, as in the simulator. Then
nobody skips, which takes most of the time of a replay (each skip is an ask and a release), and rates of arrival are
those of the workers. With ``--deadline`` the campaign has the last recorded arrival for its deadline, so that asks to
come are expected from the rate that was learnt; ``--asks-per-label`` sets what is expected without one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

import nextlabel as nl
from benchmarks.live.http_campaign import Given, HttpCampaign, RunningService
from nextlabel.arrays import Floats, Ints
from nextlabel.campaign import crowd_model, rates
from nextlabel.crowd.audit import audited_accuracy
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.files.labels import read_gold, read_labels
from nextlabel.kernels.crowd_rollout import draw_arrivals
from nextlabel.policies.allocation import Outlook, Refusal
from nextlabel.policies.crowd.allocator import GrowingCrowd
from nextlabel.simulation.crowd_replay import replay_crowd, share_right
from nextlabel.simulation.replay import CrowdRecord

DATA = Path(os.environ.get("NEXTLABEL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
#: When virtual time begins, and seconds of it between two asks.
BEGUN, ASK_S = 1.8e9, 1.0
#: Audited items, and how often they are drawn anew.
ITEMS, REPETITIONS = 60, 100


@dataclass(frozen=True, slots=True)
class Played:
    """One live campaign on a record: share right, expected accuracy, labels, tasks skipped, workers turned away (of
    so many arrivals), seconds it took; of a hundred audits those that hold the truth, and whether the one made live
    does."""

    right: float
    expected: float
    labels: int
    skipped: int
    turned_away: int
    arrivals: int
    seconds: float
    held: int = 0
    held_live: bool = False


class FacadeCampaign:
    """A campaign in this process, on virtual time."""

    def __init__(self, url: str, tasks: list[int], own: dict[str, Ints] | None = None, **settings: object) -> None:
        self.now = BEGUN
        self._own = {name: _places(tasks)[items] for name, items in own.items()} if own else None
        items = [{"id": str(x), "payload": x} for x in tasks]
        self.campaign = nl.Campaign.create(url, items, clock=lambda: self.now, **settings)  # type: ignore[arg-type]
        self.order = tasks

    def ask(self, worker: str) -> Given:
        """The next item for a worker."""
        self.now += ASK_S
        if self._own is not None:
            OwnItems.items = self._own[worker]
        lease = self.campaign.ask(worker)
        return Given(lease.id, int(lease.payload)) if lease else Given(reason=lease.reason)

    def tell(self, lease: str, answer: int) -> None:
        """The answer."""
        self.campaign.tell(lease, str(answer))

    def release(self, lease: str) -> None:
        """Pass the item on."""
        self.campaign.release(lease)

    def wait_for_refit(self) -> None:
        """Refits are made at once."""

    @property
    def closed(self) -> bool:
        """Whether nothing more can happen."""
        return self.campaign.status().state == "closed"

    def beliefs(self, tasks: int) -> Floats:
        """(K, C) of the items by number."""
        crowd = self.campaign._service.crowd(self.campaign._service.store.row(self.campaign.id))
        assert crowd is not None
        out = np.empty_like(crowd.beliefs)
        out[self.order] = crowd.beliefs
        return out

    def close(self) -> None:
        """Close the store."""
        self.campaign.close()


def _places(tasks: list[int]) -> Ints:
    """(K,) the number in the campaign of each item."""
    out = np.empty(len(tasks), dtype=np.int64)
    out[tasks] = np.arange(len(tasks))
    return out


class OwnItems(GrowingCrowd):
    """A crowd that offers the worker who asks ``items`` alone."""

    items: ClassVar[Ints]

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The best of the items that they may have."""
        return super().choose(worker, outlook._replace(eligible=self.items))


def play_live(
    record: CrowdRecord, budget: int, seed: int, replication: int, url: str = "memory:", turn_away: bool = False,
    service: RunningService | None = None, own_items: bool = False, deadline: bool = False,
) -> Played:  # fmt: skip
    """A live campaign in which the workers of the record come in random order; on a service, if one is given."""
    task, worker, answer, tasks, _, answers = record.labels
    said = {(int(x), int(j)): int(y) for x, j, y in zip(task, worker, answer, strict=True)}
    left = np.bincount(worker)
    begun, skipped, turned, came = time.perf_counter(), 0, 0, 0
    order = np.random.default_rng((seed, replication)).permutation(tasks).tolist()
    settings = {"budget": budget, "labels": [str(y) for y in range(answers)], "seed": seed, "lease_seconds": 3600.0}
    settings |= {"turn_away": turn_away} | ({"deadline": BEGUN + ASK_S * len(task)} if deadline else {})
    own = {f"w{j}": task[worker == j] for j in range(len(left))} if own_items else None
    campaign: FacadeCampaign | HttpCampaign
    if service is None:
        campaign = FacadeCampaign(url, order, own, **settings)
    else:
        campaign = HttpCampaign(service, order, **settings)
    spent = 0
    for row in draw_arrivals(len(task), seed, replication):
        name = int(worker[row])
        came += 1
        while left[name] and spent < budget:
            given = campaign.ask(f"w{name}")
            campaign.wait_for_refit()
            turned += given.reason == "turned_away"
            if given.reason:
                break
            found = said.get((given.item, name))
            if found is not None:
                campaign.tell(given.lease, found)
                left[name], spent = left[name] - 1, spent + 1
                break
            skipped += 1
            campaign.release(given.lease)
        if spent >= budget:
            break
    while spent >= budget and not campaign.closed:
        time.sleep(0.05)
    beliefs = campaign.beliefs(tasks)
    right = float(np.nanmean(share_right(beliefs, record.gold)))
    held, live = 0, False
    if isinstance(campaign, HttpCampaign) and (record.gold >= 0).all():
        held = audits_that_hold(beliefs, record, replication)
        found_live = campaign.audit(ITEMS, record.gold.tolist())
        live = found_live.low <= right <= found_live.high
    expected = float(beliefs.max(axis=1).mean())
    campaign.close()
    return Played(right, expected, spent, skipped, turned, came, time.perf_counter() - begun, held, live)


def audits_that_hold(beliefs: Floats, record: CrowdRecord, seed: int) -> int:
    """Of a hundred audits of these results, those whose interval holds the share that is right."""
    right = float((beliefs.argmax(axis=1) == record.gold).mean())
    held = 0
    for repetition in range(REPETITIONS):
        drawn = np.random.default_rng((seed, repetition)).choice(len(beliefs), ITEMS, replace=False)
        found = audited_accuracy(beliefs, {int(k): int(record.gold[k]) for k in drawn})
        assert found is not None
        held += found.low <= right <= found.high
    return held


def recorded(name: str) -> CrowdRecord:
    """A set of recorded labels with its gold; where gold is known of some items alone, these items."""
    table = read_labels(DATA / name / "labels.csv")
    record = CrowdRecord.from_table(table, read_gold(DATA / name / "gold.csv", table).label)
    known = np.flatnonzero(record.gold >= 0)
    if len(known) == record.labels.tasks:
        return record
    number = np.full(record.labels.tasks, -1, dtype=np.int64)
    number[known] = np.arange(len(known))
    kept = np.flatnonzero(number[record.labels.task] >= 0)
    _, worker = np.unique(record.labels.worker[kept], return_inverse=True)
    labels = CrowdLabels(
        number[record.labels.task[kept]], worker.astype(np.int64), record.labels.answer[kept], len(known),
        int(worker.max()) + 1, record.labels.answers,
    )  # fmt: skip
    return CrowdRecord(labels, record.gold[known])


def compare(record: CrowdRecord, budget: int, orders: int, turn_away: bool, play: Callable[[int], Played]) -> str:
    """The cells of a line."""
    (simulated,) = replay_crowd(
        record, ["crowd"], [budget], replay="worker-first", turn_away=turn_away, replications=orders
    )
    live = [play(k) for k in range(orders)]
    there, here = simulated.accuracies(), np.array([one.right for one in live])
    error = float((here - there).std(ddof=1) / np.sqrt(orders)) if orders > 1 else float("nan")
    labels = sum(one.labels for one in live)
    cells = [
        f"{there.mean():.4f}", f"{here.mean():.4f}", f"{(here - there).mean():+.4f} ± {error:.4f}",
        f"{np.mean([one.expected for one in live]):.4f}", f"{sum(one.skipped for one in live) / labels:.1f}",
    ]  # fmt: skip
    if turn_away:
        visits = simulated.labels_used + simulated.turned_away
        cells.append(f"{np.mean(visits) / budget:.2f}, {np.mean([one.arrivals for one in live]) / budget:.2f}")
    if live[0].held:
        cells.append(f"{', '.join(str(one.held) for one in live)}")
        cells.append(f"{sum(one.held_live for one in live)} of {orders}")
    return " | ".join([*cells, f"{np.mean([one.seconds for one in live]):.0f}"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", metavar="SET", help="rte, temp or mre")
    parser.add_argument("--each", type=float, nargs="+", default=[2.0, 3.0, 5.0], help="labels per task")
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--http", action="store_true", help="on the real service, with audits")
    parser.add_argument("--turn-away", action="store_true", help="workers may be turned away")
    parser.add_argument("--own-items", action="store_true", help="workers are offered items of their record alone")
    parser.add_argument("--deadline", action="store_true", help="the campaign ends with the last recorded arrival")
    parser.add_argument("--asks-per-label", type=float, help="asks that are expected where there is no deadline")
    given = parser.parse_args()
    if given.http and (given.own_items or given.deadline):
        parser.error("--own-items and --deadline are for replays in this process")
    if given.own_items:
        crowd_model.GrowingCrowd = OwnItems  # type: ignore[attr-defined]
    if given.asks_per_label is not None:
        rates.ASKS_PER_LABEL = given.asks_per_label
    more = " arrivals per label, simulator and live |" * given.turn_away
    more += " audits that hold, of 100, by order | live audits that hold |" * given.http
    print(f"| record | labels per task | simulator | live | difference | expected live | skipped per label |{more} s |")
    print("|---" * (8 + given.turn_away + 2 * given.http) + "|")
    with tempfile.TemporaryDirectory() as folder:
        service = RunningService(f"sqlite:///{folder}/replay.db") if given.http else None
        try:
            for name in given.sets:
                record = recorded(name)
                for each in given.each:
                    budget = int(each * record.labels.tasks)

                    def play(k: int, record: CrowdRecord = record, budget: int = budget) -> Played:
                        return play_live(
                            record, budget, 0, k, turn_away=given.turn_away, service=service,
                            own_items=given.own_items, deadline=given.deadline,
                        )  # fmt: skip

                    cells = compare(record, budget, given.replications, given.turn_away, play)
                    print(f"| {name} | {each:g} | {cells} |", flush=True)
        finally:
            if service is not None:
                service.close()


if __name__ == "__main__":
    main()
