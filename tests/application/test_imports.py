"""Imports of many tasks: checked before anything is in the log, published at once, and finished whatever ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nextlabel.application import imports
from nextlabel.application import service as service_module
from nextlabel.application.service import CampaignService
from nextlabel.campaign import intake
from nextlabel.campaign.records import ACTIVE, ImportRow
from nextlabel.errors import BusyError, ConflictError, InputError, NotFoundError, UnavailableError
from nextlabel.store.sql import SqlStore
from stores import DATABASES, Clock, opened, service_of_store, simple

#: Tasks of an import here, in chunks of ten.
MANY = 45


class Killed(BaseException):
    """Ends an import without a chance to tidy up, as ``kill -9`` does."""


@pytest.fixture(params=DATABASES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        campaign_service = service_of_store(store, Clock())
        yield campaign_service
        campaign_service.table_cache.close()


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CHUNK", 10)
    monkeypatch.setattr(imports, "CLEARED", 2)
    monkeypatch.setattr(service_module, "AT_ONCE", 20)


def tasks(many: int = MANY, first: int = 0, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"t{k}", "text": f"item {k}", **more} for k in range(first, first + many)]


def scored(many: int = MANY, first: int = 0) -> list[dict[str, Any]]:
    return [{"id": f"s{k}", "score": 0.2 + 0.6 * k / 100} for k in range(first, first + many)]


def at(state: str, step: int, action: Callable[[], Any]) -> imports.Progress:
    """Calls ``action`` at the given step of a state."""
    steps = iter(range(10**6))

    def progress(row: ImportRow, published: int) -> None:
        if row.state == state and next(steps) == step:
            action()

    return progress


def kill() -> None:
    raise Killed


def contents(service: CampaignService, id: str) -> dict[str, Any]:
    """All that a campaign is."""
    row, store = service.store.row(id), service.store
    return {
        "tasks": [
            (t.number, t.key, t.payload, t.class_number, t.place, t.node, t.w, t.labels) for t in store.tasks(id)
        ],
        "groups": service.groups(id),
        "classes": list(store.classes(id)),
        "row": (row.tasks, row.full, row.classes, row.spent, row.reserved, row.ranked),
    }


def staged_chunks(service: CampaignService) -> int:
    found = 0
    for campaign in service.store.campaigns():
        for row in service.store.records.find(ImportRow, campaign=campaign.id, limit=100):
            found += sum(1 for first in range(0, 100, 10) if service.store.records.staged(row.id, first) is not None)
    return found


def test_an_import_in_steps_is_the_same_as_one_in_a_transaction(
    service: CampaignService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, given in (
        ("some", tasks()),
        ("scored", scored(90)),
        ("unnamed", [{"text": f"{k}"} for k in range(MANY)]),
    ):
        one, other = f"{name}_1", f"{name}_2"
        for id in (one, other):
            service.create(simple(), id, tasks(3, first=500))
        in_steps = service.add_tasks(one, given, "key")
        with monkeypatch.context() as at_once:
            at_once.setattr(service_module, "AT_ONCE", 1000)
            at_once.setattr(intake, "CHUNK", 1000)
            assert service.add_tasks(other, given, "key") == in_steps
        assert contents(service, one) == contents(service, other)
        assert [event.kind for event in service.store.events(one)].count("tasks_published") == 1
        assert [event.kind for event in service.store.events(other)].count("tasks_published") == 0
        assert staged_chunks(service) == 0
        for id in (one, other):
            assert service[id].verify().right
            assert service.add_tasks(id, given, "key").added == 0
            with pytest.raises(ConflictError, match="other tasks"):
                service.add_tasks(id, given[:-1], "key")
        before = contents(service, one)
        service[one].rebuild()
        assert contents(service, one) == before


def test_nobody_sees_half_an_import(service: CampaignService) -> None:
    id = service.create(simple(budget=100), "demo", tasks(2, first=500)).id
    seen: list[str] = []

    def look(row: ImportRow, published: int) -> None:
        assert service.store.row(id).tasks == 2 and len(service.store.tasks(id)) == 2
        assert sum(service.groups(id).values()) == 2 and len(service.store.classes(id)) == 1
        assert service.store.tasks_by_key(id, ["t0", "t500"]).keys() == {"t500"}
        lease = service[id].ask(f"ann {len(seen)}")
        assert lease and lease.task in ("t500", "t501")
        assert service[id].ask(f"ann {len(seen)}") == lease
        service[lease.campaign].release(lease.id)
        seen.append(row.state)
        with pytest.raises(BusyError, match="being imported"):
            service.add_tasks(id, ["one more"])
        if published == 20:
            assert service[id].verify().right

    service.add_tasks(id, tasks(), "key", look)
    assert seen == ["staging"] * 5 + ["publishing"] * 5
    given = {service[id].ask(f"bob {k}").task for k in range(47)}  # type: ignore[union-attr]
    assert len(given) > 30  # and then all of it
    assert service.add_tasks(id, ["one more"]).tasks == 48
    assert service[id].verify().right


def test_an_error_in_the_last_row_leaves_nothing(service: CampaignService) -> None:
    id = service.create(simple(), "demo", tasks(3)).id
    before = service.store.row(id)
    for bad, error in (({"id": "x", "score": 7}, InputError), ({"id": "t1", "text": "other"}, ConflictError)):
        with pytest.raises(error):
            service.add_tasks(id, [*tasks(), bad], "key")
        with pytest.raises(error):
            service.create(simple(), "new", [*tasks(), bad])
        with pytest.raises(NotFoundError):
            service.store.row("new")
    assert service.store.row(id) == before and len(service.store.tasks(id)) == 3
    assert staged_chunks(service) == 0 and service.store.records.find(ImportRow, state=ACTIVE) == []
    last = service.store.records.find(ImportRow, campaign=id, limit=1)[0]
    assert last.state == "failed" and "another payload" in str(last.error)
    assert service.add_tasks(id, tasks(), "key").added == 42


def test_after_a_kill_a_retry_adds_everything_once(service: CampaignService) -> None:
    places = [("few", "staging", 0), ("few", "staging", 3), ("few", "publishing", 0), ("many", "publishing", 3)]
    for many, state, step in places:
        given = tasks() if many == "few" else scored(90)
        id = service.create(simple(), f"{many}_{state}_{step}", tasks(3, first=500)).id
        with pytest.raises(Killed):
            service.add_tasks(id, given, "key", at(state, step, kill))
        assert len(service.store.records.find(ImportRow, state=ACTIVE)) == 1 and service.store.row(id).tasks == 3
        assert service[id].ask("ann")
        added = service.add_tasks(id, given, "key")
        assert added.tasks == 3 + len(given) and service.store.records.find(ImportRow, state=ACTIVE) == []
        assert [event.kind for event in service.store.events(id)].count("tasks_published") == 1
        assert [task.key for task in service.store.tasks(id)][3:] == [one["id"] for one in given]
        assert staged_chunks(service) == 0 and service[id].verify().right


def test_a_start_finishes_what_was_checked_and_throws_away_what_was_not(service: CampaignService) -> None:
    for state, there in (("staging", 0), ("publishing", MANY)):
        with pytest.raises(Killed):
            service.create(simple(), state, tasks(), at(state, 2, kill))
        assert len(service.imports.recover()) == 1 and service.imports.recover() == []
        if there:
            assert service.store.row(state).tasks == there and service[state].verify().right
        else:
            with pytest.raises(NotFoundError):
                service.store.row(state)
        assert service.create(simple(), state, tasks()).added.tasks == MANY


def test_an_import_that_is_told_to_stop(service: CampaignService) -> None:
    id = service.create(simple(), "demo").id
    for state, step in (("staging", 1), ("publishing", 1)):
        other = CampaignService(service.store, service.clock, service.table_cache)
        with pytest.raises(UnavailableError, match="stopping"):
            other.add_tasks(id, tasks(), "key", at(state, step, other.imports.stop))
        assert service.store.row(id).tasks == 0
    assert service.add_tasks(id, tasks(), "key").tasks == MANY


def test_a_small_addition_after_a_kill_finishes_the_import_first(service: CampaignService) -> None:
    id = service.create(simple(), "demo").id
    with pytest.raises(Killed):
        service.add_tasks(id, tasks(), None, at("publishing", 2, kill))
    assert service.add_tasks(id, ["one more"]).tasks == MANY + 1
    assert service[id].verify().right


def test_tasks_that_are_there_are_ranked_with_those_that_make_the_priors_many(service: CampaignService) -> None:
    id = service.create(simple(budget=500), "demo", tasks(18)).id
    held = service[id].ask("ann")
    assert held
    for k in range(4):
        service.add_tasks(id, scored(17, first=17 * k))
        assert service.store.row(id).ranked == (k == 3)
    given = {service[id].release(service[id].ask("bob").id).task for _ in range(86)}  # type: ignore[union-attr]
    assert len(given) == 86 and service[id].ask("bob").reason == "nothing_left_for_you"  # type: ignore[union-attr]
    assert service[held.campaign].tell(held.id, "yes").counted and service[id].verify().right


CHILD = """
import os, signal, sys
from nextlabel.campaign import intake
from nextlabel.application import service
from nextlabel.store.sql import open_store
intake.CHUNK, service.AT_ONCE = 10, 20
def progress(row, published):
    if row.state == "publishing" and published == 20:
        os.kill(os.getpid(), signal.SIGKILL)
tasks = [{"id": f"t{k}", "text": f"item {k}"} for k in range(60)]
service.CampaignService(open_store(sys.argv[1])).add_tasks("demo", tasks, "key", progress)
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_process_that_is_killed(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = CampaignService(store)
        id = service.create(simple(), "demo", tasks(3, first=5000)).id
        child = subprocess.run([sys.executable, "-c", CHILD, store.url], env=os.environ, timeout=120, check=False)
        assert child.returncode == -signal.SIGKILL
        assert store.row(id).tasks == 3 and store.row(id).hidden == 30 and service[id].ask("ann")
        added = service.add_tasks(id, tasks(60), "key")
        assert (added.added, added.known, added.tasks) == (0, 60, 63) and service[id].verify().right
        service.close()
