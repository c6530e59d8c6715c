"""How the logs beside this file were recorded: ``python record.py FOLDER [NAME ...]``.

Every campaign is a random walk over all commands in virtual time. A log means what it meant when it was recorded:
record anew only where what an event says has changed on purpose.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

START = 1_800_000_000.0


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def scored(first: int, count: int, low: float = 0.2) -> list[dict[str, Any]]:
    """Tasks with a score of their own each."""
    return [
        {"id": f"s{k}", "text": f"item {k}", "score": round(low + 0.005 * k, 4)} for k in range(first, first + count)
    ]


def plain(first: int, count: int) -> list[dict[str, Any]]:
    """Tasks with the campaign's prior."""
    return [{"id": f"p{k}", "text": f"thing {k}"} for k in range(first, first + count)]


#: Name: settings, batches by step, steps, seed of the walk, workers, mean seconds between arrivals.
CAMPAIGNS: dict[str, tuple[dict[str, Any], dict[int, list[dict[str, Any]]], int, int, int, float]] = {
    "few_priors": (
        {"budget": 90, "labels": ["no", "yes"], "policy": "okg-pending", "lease_seconds": 60.0, "most_labels": 4,
         "most_in_flight": 2, "seed": 3, "name": "few", "question": "Is it?"},
        {0: plain(0, 6), 120: scored(0, 5), 260: plain(6, 4)}, 420, 1, 6, 9.0,
    ),
    "index_tuned": (
        {"budget": 160, "labels": ["no", "yes"], "prior": [2, 1], "policy": "index", "label_cost": 0.004,
         "seed": 11, "rho": 0.25},
        {0: plain(0, 20), 150: plain(20, 6)}, 420, 2, 14, 4.0,
    ),
    "three_answers": (
        {"budget": 60, "labels": ["a", "b", "c"], "policy": "uncertainty", "most_labels": 3, "seed": 5,
         "deadline": START + 2500.0, "threshold": 0.5},
        {0: plain(0, 12), 90: [{"id": "w0", "prior": [2, 1, 1]}, {"id": "w1", "prior": [1, 3, 1], "payload": "why"}]},
        320, 3, 7, 12.0,
    ),
    "many_priors": (
        {"budget": 150, "labels": ["no", "yes"], "policy": "okg", "lease_seconds": 45.0, "seed": 8, "most_labels": 3},
        {0: scored(0, 70), 160: scored(70, 12)}, 420, 4, 9, 6.0,
    ),
    "crossing": (
        {"budget": 260, "labels": ["no", "yes"], "policy": "okg", "lease_seconds": 90.0, "seed": 21},
        {0: plain(0, 3), 220: scored(0, 70), 300: scored(70, 10)}, 560, 5, 22, 3.0,
    ),
}  # fmt: skip


def walk(service: Any, clock: Clock, id: str, batches: dict[int, Any], steps: int, random: Random, workers: int,
         gap: float, labels: list[str]) -> None:  # fmt: skip
    """Commands at random; refusals are part of the story."""
    from nextlabel.campaign.rates import wanted_rho
    from nextlabel.errors import InputError

    leases: list[str] = []
    out: list[str] = []
    for step in range(steps):
        if step in batches and step > 0:
            service.add_tasks(id, batches[step], f"batch{step}")
        clock.now += random.expovariate(1.0 / gap)
        move = random.choices(
            ("ask", "tell", "late", "release", "renew", "undo", "wait", "pause", "budget", "deadline", "lease"),
            (40, 34, 4, 3, 3, 6, 2, 2, 2, 1.5, 1),
        )[0]
        try:
            if move == "ask":
                lease = service[id].ask(f"w{random.randrange(workers)}")
                if lease and lease.id not in leases:
                    leases.append(lease.id)
                    out.append(lease.id)
                row = service.store.row(id)
                if row.classes <= 64:
                    service.table_cache.prepare(row.config, service.store.classes(id), wanted_rho(row)).result()
            elif move == "tell" and out:
                service[id].tell(out.pop(random.randrange(len(out))), random.choice(labels))
            elif move in ("late", "release", "renew", "undo") and leases:
                lease_id = leases[max(len(leases) - 1 - int(random.expovariate(0.3)), 0)]
                if move == "late":
                    service[lease_id].tell(lease_id, random.choice(labels))
                else:
                    getattr(service[id], move)(lease_id)
                    if move == "undo" and lease_id not in out:
                        out.append(lease_id)
            elif move == "wait":
                clock.now += random.choice((20.0, 70.0, 200.0))
            elif move == "pause":
                (service[id].resume if service.store.row(id).paused else service[id].pause)()
            elif move == "budget":
                row = service.store.row(id)
                service[id].change(budget=random.choice((row.spent, row.budget + 20, row.spent + 5)))
            elif move == "deadline":
                service[id].change(deadline=random.choice((None, None, clock.now + 100.0)))
            elif move == "lease":
                service[id].change(lease_seconds=random.choice((None, 30.0, 120.0)))
        except InputError:
            continue
        row = service.store.row(id)
        if row.paused and random.random() < 0.4:
            service[id].resume()
        if row.deadline is not None and clock.now > row.deadline and random.random() < 0.3:
            service[id].change(deadline=None)
        if row.spent >= row.budget and random.random() < 0.3:
            service[id].change(budget=row.budget + 25)


def everything(store: Any, id: str) -> dict[str, Any]:
    """Rows of a campaign in the types of JSON."""
    from nextlabel.model.tables import prior_table

    row = asdict(store.row(id))
    row["config"] = store.row(id).config.to_dict()
    tasks = store.tasks(id, -1, 10**6)
    leases = sorted(store.leases(id, [task.number for task in tasks]), key=lambda lease: lease.seq)
    groups = Counter((task.class_number, task.node, task.w) for task in tasks if task.gold is None)
    return {
        "row": row,
        "classes": [prior_table(prior) for prior in store.classes(id)],
        "tasks": [asdict(task) for task in tasks],
        "groups": sorted([*group, count] for group, count in groups.items()),
        "leases": [{name: value for name, value in asdict(lease).items() if name != "number"} for lease in leases],
        "workers": [asdict(worker) for worker in store.workers(id)],
    }


def record(name: str, folder: Path) -> dict[str, int]:
    """One campaign; returns how many events of each kind it has."""
    from nextlabel.application.service import CampaignService
    from nextlabel.campaign.settings import CampaignSettings
    from nextlabel.store.sql import open_store

    config, batches, steps, seed, workers, gap = CAMPAIGNS[name]
    with tempfile.TemporaryDirectory() as scratch:
        clock = Clock()
        service = CampaignService(open_store(f"sqlite:///{scratch}/labels.db"), clock)
        service.create(CampaignSettings.from_dict(config), name, batches[0])
        walk(service, clock, name, batches, steps, Random(seed), workers, gap, config["labels"])
        events = [asdict(event) for event in service.store.events(name, 0, 10**6)]
        state = everything(service.store, name)
        state["results"] = [asdict(result) for result in service[name].results()]
        service.close()
    text = json.dumps({"events": events, "state": state})
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    counts: dict[str, int] = {}
    for event in events:
        counts[event["kind"]] = counts.get(event["kind"], 0) + 1
    return counts


if __name__ == "__main__":
    for campaign in sys.argv[2:] or CAMPAIGNS:
        sys.stderr.write(f"{campaign}: {record(campaign, Path(sys.argv[1]))}\n")
