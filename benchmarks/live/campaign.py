"""Campaigns for load, and the comparison of what was acknowledged with what is there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from benchmarks.live.crowd import Account
from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.service.links import LinkSigner
from nextlabel.store.sql import open_store

#: Tasks that a worker holds in one transaction.
HELD_AT_ONCE = 1000


def prepare(url: str, tasks: int, budget: int, workers: int, **settings: object) -> tuple[str, dict[str, str]]:
    """A new campaign, and a token for each worker."""
    (made,) = prepare_many(url, 1, tasks, budget, workers, **settings).items()
    return made


def prepare_many(
    url: str, campaigns: int, tasks: int, budget: int, workers: int, **settings: object
) -> dict[str, dict[str, str]]:
    """New campaigns, and a token for each worker of each of them."""
    campaign_service = CampaignService(open_store(url))
    links = LinkSigner.of(campaign_service.store)
    given: dict[str, Any] = {
        "budget": budget, "labels": ("no", "yes"), "policy": "index", "lease_seconds": 600.0, **settings
    }  # fmt: skip
    config = CampaignSettings(**given)
    made: dict[str, dict[str, str]] = {}
    for _ in range(campaigns):
        items = ({"id": f"t{k}", "text": f"Is item {k} good?"} for k in range(tasks))
        id = campaign_service.create(config, tasks=items).id
        if config.policy == "index":
            campaign_service.table_cache.prepare(config, campaign_service.store.classes(id), config.rho).result()
        made[id] = {f"w{k}": links.worker_token(id, f"w{k}") for k in range(workers)}
    campaign_service.close()
    return made


def hold_everything(url: str, worker: str) -> None:
    """Give the worker every task of all campaigns; each is passed on at once."""
    campaign_service = CampaignService(open_store(url))

    def hold(commands: Commands) -> int:
        for held in range(HELD_AT_ONCE):
            lease = commands.ask(worker)
            if not isinstance(lease, Lease):
                return held
            commands.release(lease.id)
        return HELD_AT_ONCE

    for row in campaign_service.store.campaigns():
        while campaign_service.run(row.id, hold) == HELD_AT_ONCE:
            pass
    campaign_service.close()


@dataclass(frozen=True)
class Verdict:
    """What went wrong, all of it zero or True if nothing did."""

    spent: int
    budget: int
    double: int
    lost: int
    different: int
    replay_is_state: bool

    @property
    def good(self) -> bool:
        """Nothing lost, nothing double, nothing overspent, and the state is what the events say."""
        return self.double == self.lost == self.different == 0 and self.spent <= self.budget and self.replay_is_state


def judge(url: str, id: str, account: Account) -> Verdict:
    """Compare the store with what the crowd was told."""
    campaign_service = CampaignService(open_store(url))
    try:
        before = snapshot(campaign_service, id)
        leases = {lease.id: lease for lease in before["leases"]}
        names = campaign_service.store.row(id).config.labels
        keys = {task.number: task.key for task in before["tasks"]}
        pairs = Counter((lease.task, lease.worker) for lease in leases.values())
        lost = sum(1 for key in account.labels if key not in leases or leases[key].label is None)
        different = sum(
            1
            for key, (task, worker, label, counted) in account.labels.items()
            if key in leases
            and (keys[leases[key].task], leases[key].worker, names[leases[key].label or 0], leases[key].counted)
            != (task, worker, label, counted)
        )
        row = campaign_service.store.row(id)
        counted = sum(1 for lease in leases.values() if lease.counted)
        campaign_service[id].rebuild()
        return Verdict(
            row.spent, row.budget, sum(n - 1 for n in pairs.values()), lost, different + abs(counted - row.spent),
            snapshot(campaign_service, id) == before,
        )  # fmt: skip
    finally:
        campaign_service.close()


def snapshot(campaign_service: CampaignService, id: str) -> dict[str, list[Any]]:
    """All that the store shows of a campaign but its events."""
    store = campaign_service.store
    tasks = store.tasks(id, -1, 10**7)
    leases = []
    for start in range(0, len(tasks), 10_000):
        leases += store.leases(id, [task.number for task in tasks[start : start + 10_000]])
    return {
        "row": [store.row(id)],
        "tasks": tasks,
        "groups": sorted(campaign_service.groups(id).items()),
        "leases": sorted(leases, key=lambda lease: lease.seq),
        "workers": store.workers(id, 10**6),
    }
