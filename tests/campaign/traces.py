"""Campaigns played by a script of chance: the events that they lead to are pinned in ``traces.json``.

``python tests/campaign/traces.py`` writes the file anew. What the code decides (which task, whether a label counts,
when a campaign closes) must stay as it is under the same seeds; ids of leases are random and are left out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import NextlabelError
from nextlabel.store.sql import open_store

FILE = Path(__file__).with_name("traces.json")
SERVES_ALL: dict[str, Any] = {"policy": "crowd", "turn_away": False}
#: Settings, tasks, workers and steps of each campaign.
CASES: dict[str, dict[str, Any]] = {
    "index": {"policy": "index", "budget": 120, "tasks": 40, "workers": 7},
    "auto": {"policy": "auto", "budget": 100, "tasks": 30, "workers": 6},
    "uniform": {"policy": "uniform", "budget": 90, "tasks": 30, "workers": 4, "rho": 2.0},
    "thompson": {"policy": "thompson", "budget": 60, "tasks": 20, "workers": 5},
    "few tasks, busy workers": {"policy": "okg-pending", "budget": 200, "tasks": 12, "workers": 9, "rho": 4.0},
    "limits": {"policy": "index", "budget": 80, "tasks": 20, "workers": 8, "most_labels": 3, "most_in_flight": 2},
    "price": {"policy": "index", "budget": 300, "tasks": 15, "workers": 20, "label_cost": 0.03},
    "five priors": {"policy": "index", "budget": 90, "tasks": 30, "workers": 6, "scores": 5},
    "many priors": {"policy": "index", "budget": 120, "tasks": 150, "workers": 6, "scores": 150},
    "many priors, few tasks each": {"policy": "uncertainty", "budget": 250, "tasks": 80, "workers": 5, "scores": 80},
    "controls": {"policy": "index", "budget": 80, "tasks": 25, "workers": 6, "controls": 4},
    "three answers": {"policy": "index", "budget": 60, "tasks": 20, "workers": 5, "labels": ("a", "b", "c")},
    "crowd": {**SERVES_ALL, "budget": 120, "tasks": 40, "workers": 7},
    "crowd with controls": {**SERVES_ALL, "budget": 90, "tasks": 30, "workers": 6, "controls": 5},
    "crowd turning away": {"policy": "crowd", "budget": 150, "tasks": 50, "workers": 8, "turn_away": True},
    "crowd with scores": {**SERVES_ALL, "budget": 80, "tasks": 30, "workers": 6, "scores": 30},
}
STEPS = 400
#: What events have that nobody decides, or that is large and follows from the rest.
UNDECIDED = ("history", "shares", "config", "places", "classes")


class Clock:
    """Seconds since 1970, as the script says."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def play(name: str, url: str = "memory:") -> list[list[Any]]:
    """The events of one campaign, without what is random in them, and short."""
    case = dict(CASES[name])
    chance, clock = random.Random(name), Clock()
    tasks, workers = case.pop("tasks"), case.pop("workers")
    scores, controls = case.pop("scores", 0), case.pop("controls", 0)
    config = CampaignSettings(**{"lease_seconds": 60.0, "seed": len(name), **case})
    service = CampaignService(open_store(url), clock)
    try:
        id = service.create(config, "trace").id
        table = [{"id": f"t{k}", "text": f"item {k}"} for k in range(tasks)]
        for k, one in enumerate(table):
            if scores:
                one["score"] = round(0.05 + 0.9 * (k % scores) / scores, 6)
            if k < controls:
                one["gold"] = config.labels[k % len(config.labels)]
        service.add_tasks(id, table[: 2 * tasks // 3])
        leases: list[str] = []
        for step in range(STEPS):
            clock.now += chance.expovariate(1 / 5.0)
            if step == STEPS // 4:
                service.add_tasks(id, table[2 * tasks // 3 :])
            _step(service, id, chance, workers, leases, config)
        log = [event for event in _events(service, id) if event.kind != "noticed"]  # decides nothing
        return [_plain(before.at, event) for before, event in zip([log[0], *log], log, strict=False)]
    finally:
        service.close()


def _step(
    service: CampaignService, id: str, chance: random.Random, workers: int, leases: list[str], config: CampaignSettings
) -> None:
    """One thing that a worker or the requester does; what is refused is refused."""
    draw, worker = chance.random(), f"w{int(workers * chance.random() ** 1.5)}"
    mine = [lease for lease in leases if chance.random() < 0.5] or leases
    try:
        if draw < 0.5 or not leases:
            found = service[id].ask(worker)
            if found:
                leases.append(found.id)
        elif draw < 0.88:
            label = config.labels[int(len(config.labels) * chance.random() ** 1.3)]
            service[mine[-1]].tell(mine[-1], label)
        elif draw < 0.91:
            service[mine[-1]].release(mine[-1], comment="not for me" if chance.random() < 0.3 else None)
        elif draw < 0.94:
            service[mine[-1]].undo(mine[-1])
        elif draw < 0.95:
            service[mine[-1]].renew(mine[-1])
        elif draw < 0.965:
            service[id].drop_labels(worker, "trial")
        elif draw < 0.98:
            service[id].restore_labels(worker)
        elif draw < 0.985:
            service[id].set_standing(worker, chance.choice(["paused", "blocked", "active"]))
        else:
            service[id].set_standing(worker, "active")
    except NextlabelError:
        pass


def _events(service: CampaignService, id: str) -> Iterator[Any]:
    after = 0
    while some := service.store.events(id, after, 1000):
        yield from some
        after = some[-1].seq


def _plain(at: float, event: Any) -> list[Any]:
    """Seconds since the event before, the kind, and the values of the rest by the names that they have in the log."""
    data = {key: value for key, value in event.data.items() if key not in UNDECIDED}
    if event.kind == "tasks_added":
        data = {"first": data["first"], "ranked": data["ranked"], "tasks": len(data["tasks"])}
    for key, value in data.items():
        if key in ("lease", "leases"):
            data[key] = _numbers(value)
        elif isinstance(value, float):
            data[key] = round(value - (event.at if key == "expires_at" else 0.0), 6)
    return [round(round(event.at, 6) - round(at, 6), 3), event.kind, *(data[key] for key in sorted(data))]


def _numbers(leases: Any) -> Any:
    if isinstance(leases, str):
        return int(leases.split("-")[1])
    return [_numbers(one[0]) if isinstance(one, list) else _numbers(one) for one in leases]


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(play(name), separators=(',', ':'))}" for name in CASES)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
