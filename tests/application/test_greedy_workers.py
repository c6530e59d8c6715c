"""Workers who have held nearly every task get what is left for them at once, and are told when nothing is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign import scoring
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import lease_id
from nextlabel.policies.ordered import LOOKED_AT
from stores import DATABASES, Clock, opened, service_of_store, simple


def begin(service: CampaignService, tasks: int, spared: int) -> str:
    """A campaign in which ``greedy`` has held all tasks but ``spared`` ones, which are full."""
    id = service.create(simple(tasks, most_labels=1), tasks=[f"item {k}" for k in range(tasks)]).id
    for k in range(spared):
        service[id].tell(service[id].ask(f"ann{k}").id, "yes")  # type: ignore[union-attr]

    def hold_and_release(commands: Commands) -> None:
        while lease := commands.ask("greedy"):
            commands.release(lease.id)

    service.run(id, hold_and_release)
    return id


@pytest.mark.parametrize("kind", DATABASES)
def test_a_worker_gets_what_is_new_for_them(kind: str, tmp_path: Path) -> None:
    """Tasks that come, and tasks that were full and are not any more."""
    with opened(kind, tmp_path) as store:
        service = service_of_store(store, Clock())
        id = begin(service, LOOKED_AT + 20, spared=2)
        refused: Any = service[id].ask("greedy")
        assert refused.reason == "nothing_left_for_you"
        assert service[id].ask("bob")
        service.add_tasks(id, ["one more"])
        lease: Any = service[id].ask("greedy")
        assert lease.payload == "one more"
        service[id].release(lease.id)
        assert service[id].ask("greedy").reason == "nothing_left_for_you"  # type: ignore[union-attr]
        (told,) = store.leases(id, worker="ann0")
        service[id].undo(told.id)
        service[id].release(told.id)
        lease = service[id].ask("greedy")
        assert lease.task == store.tasks(id)[told.task].key
        assert service[id].verify().right
        service.table_cache.close()


@pytest.mark.parametrize(
    ("kind", "tasks"),
    [*((kind, 3 * LOOKED_AT) for kind in DATABASES), pytest.param("sqlite", 20_000, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("ranked", [False, True], ids=["groups", "ranked"])
def test_the_last_tasks_are_found(kind: str, tasks: int, ranked: bool, tmp_path: Path) -> None:
    """``greedy`` has held all but three of many: each of their next asks gets one of those, whichever it is."""
    with opened(kind, tmp_path) as store:
        service = service_of_store(store, Clock())
        scores = [{"score": 0.5 + k / 300} for k in range(2 * scoring.FEW_CLASSES)] if ranked else [{}]
        given = [{"id": f"t{k}", "text": "x", **scores[k % len(scores)]} for k in range(tasks)]
        id = service.create(simple(10 * tasks, policy="okg", most_in_flight=1), tasks=given).id
        left = {5, tasks // 2, tasks - 1}

        def hold_others(commands: Commands) -> None:
            """As asks that happen to find them."""
            until = commands.now + 60
            for task in sorted({*range(tasks)} - left):
                lease = lease_id(id, commands.state.row.given)
                data = {"lease": lease, "task": task, "worker": "greedy", "expires_at": until, "left": 1}
                commands.record("leased", {**data, "state": list(commands.state.group_of(task))})
                commands.record("released", {"lease": lease})

        service.run(id, hold_others)
        assert store.row(id).ranked == ranked
        found = set()
        for _ in left:
            lease: Any = service[id].ask("greedy")
            found.add(lease.task)
            assert service[id].ask(f"bob {len(found)}")  # others are not kept from anything
            service[id].release(lease.id)
        assert found == {f"t{task}" for task in left}
        assert service[id].ask("greedy").reason == "nothing_left_for_you"  # type: ignore[union-attr]
        if tasks < 1000:
            assert service[id].verify().right
        service.table_cache.close()
