"""A command that fails leaves no trace: neither in the tables nor in the campaign that this process has in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.events import Event
from nextlabel.campaign.external_answers import SKIPPED
from nextlabel.campaign.state import CampaignState
from nextlabel.errors import NotFoundError
from nextlabel.policies.ordered import OrderedPool
from nextlabel.store.campaign_tables import ADD_EVENTS
from nextlabel.store.engine import Runner
from nextlabel.store.sql import SqlStore
from states import differences, different, loaded_state, resident_state
from stores import START, Clock, everything, opened, service_of_store, simple

sys.path.insert(0, str(Path(__file__).parent))

import traces

#: Events after which the campaign is read again, as they change too much of it.
LARGE = {"tasks_added"}
Command = Callable[[], Any]


class Stop(Exception):
    """What goes wrong."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        service = service_of_store(store, Clock())
        yield service
        service.table_cache.close()


class Failing:
    """Runs commands that fail: at the commit, after everything was written, or after one of their events."""

    def __init__(self, service: CampaignService, id: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service, self.id, self.monkeypatch = service, id, monkeypatch
        self.kinds: set[str] = set()

    def __call__(self, command: Command) -> Any:
        """Let the command fail in every way that there is, and then succeed."""
        kinds = self.at_commit(command)
        for after in range(1, len(kinds) + 1):
            self.in_the_middle(command, after)
        self.kinds.update(kinds)
        done = command()
        assert different(resident_state(self.service.store, self.id), loaded_state(self.service.store, self.id)) == []
        return done

    def at_commit(self, command: Command) -> list[str]:
        """Returns the kinds of events that the command would have written."""
        write_all, kinds = Runner.write_all, list[str]()

        def fail(runner: Runner, pending: Any) -> None:
            write_all(runner, pending)
            kinds.extend(row[3] for row in pending.get(ADD_EVENTS, ()))
            if kinds:
                raise Stop

        with self.leaving_no_trace(kinds) as patch:
            patch.setattr(Runner, "write_all", fail)
            with suppress(Stop):
                command()
        return kinds

    def in_the_middle(self, command: Command, after: int) -> None:
        record, kinds = CampaignState.record, list[str]()

        def fail(state: CampaignState, at: float, kind: str, data: dict[str, Any]) -> Event:
            event = record(state, at, kind, data)
            kinds.append(event.kind)
            if len(kinds) == after:
                raise Stop
            return event

        with self.leaving_no_trace(kinds) as patch:
            patch.setattr(CampaignState, "record", fail)
            with pytest.raises(Stop):
                command()

    def leaving_no_trace(self, kinds: list[str]) -> Any:
        return _LeavingNoTrace(self, kinds)


class _LeavingNoTrace:
    """Nothing is other than it was before."""

    def __init__(self, failing: Failing, kinds: list[str]) -> None:
        self.store, self.id, self.kinds = failing.service.store, failing.id, kinds
        self.patch = failing.monkeypatch.context()

    def __enter__(self) -> pytest.MonkeyPatch:
        self.resident, self.before = resident_state(self.store, self.id), everything(self.store, self.id)
        self.log = self.store.events(self.id, 0, 10**6)
        return self.patch.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.patch.__exit__(*error)
        if error[0] is None:
            now = resident_state(self.store, self.id)
            assert (now is self.resident) == LARGE.isdisjoint(self.kinds), self.kinds
            assert different(now, loaded_state(self.store, self.id)) == [], self.kinds
            assert now.crowd is None or now.crowd.seq <= now.row.seq
            assert everything(self.store, self.id) == self.before
            assert self.store.events(self.id, 0, 10**6) == self.log


def leased(service: CampaignService, id: str, worker: str) -> str:
    lease = service[id].ask(worker)
    assert lease
    return lease.id


TASKS: dict[str, list[dict[str, Any]]] = {
    "tables": [{"id": f"t{k}", "text": "x"} for k in range(8)],
    "ranked": [{"id": f"t{k}", "score": round(0.2 + 0.008 * k, 4)} for k in range(70)],
    "crowd": [{"id": f"t{k}", "text": "x"} for k in range(8)],
}


@pytest.mark.parametrize(
    ("service", "chosen_by"),
    [("memory", "tables"), ("sqlite", "ranked"), ("sqlite", "crowd"), ("postgresql", "crowd")],
    indirect=["service"],
)
def test_every_command_that_fails(service: CampaignService, chosen_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {"tables": "okg-pending", "ranked": "okg", "crowd": "crowd"}[chosen_by]
    id = service.create(simple(40, policy=policy, most_labels=2), tasks=TASKS[chosen_by], id="c").id
    clock, failing = service.clock, Failing(service, id, monkeypatch)
    assert isinstance(clock, Clock)
    first = failing(lambda: service[id].ask("ann")).id
    failing(lambda: service[first].tell(first, "yes", comment="sure"))
    failing(lambda: service[first].undo(first))
    failing(lambda: service[first].renew(first))
    clock.forward(5.0)
    failing(lambda: service[first].renew(first))
    failing(lambda: service[first].release(first, comment="what is this?"))
    failing(lambda: service[first].tell(first, "no"))  # late
    second = failing(lambda: service[id].ask("ann")).id
    clock.forward(100.0)
    failing(lambda: service[id].ask("bob"))  # ann's lease expires
    failing(lambda: service[second].tell(second, "yes"))
    third = leased(service, id, "cy")
    failing(lambda: service[third].tell(third, "yes"))
    failing(lambda: service[id].drop_labels("cy", "guesses"))
    failing(lambda: service[id].restore_labels("cy"))
    failing(lambda: service[id].set_answer("di", "t3", "yes"))  # nobody gave it to them
    failing(lambda: service[id].set_answer("di", "t3", "no"))  # withdrawn, and another one
    failing(lambda: service[id].set_answer("di", "t3", None))
    failing(lambda: service[id].set_answer("di", "t4", SKIPPED))
    leased(service, id, "di")
    failing(lambda: service[id].set_standing("di", "paused", "a reason"))
    failing(lambda: service[id].set_standing("di", "blocked", "another one"))  # di's lease ends
    failing(lambda: service[id].set_standing("di", "active"))
    failing(lambda: service[id].pause())
    failing(lambda: service[id].resume())
    failing(lambda: service[id].change(budget=50, question="Is it?"))
    failing(lambda: service[id].set_gold({"t0": "yes", "t5": "no"}))
    control = failing(lambda: service[id].ask("eve")).id
    failing(lambda: service[control].tell(control, "no"))
    failing(lambda: service[id].adjudicate({"t1": "yes", "t2": "no"}))
    failing(lambda: service[id].undo_adjudication(["t1"]))
    failing(lambda: service[id].draw_audit(3, 1))
    failing(lambda: service[id].answer_audit({service[id].audit_items()[0].task: "yes"}))
    failing(lambda: service.add_tasks(id, [{"id": "new", "score": 0.77}], batch="more"))
    if chosen_by == "crowd":
        rows = [{"task": f"t{k}", "no": 0.8, "yes": 0.2} for k in range(4)]
        failing(lambda: service[id].add_predictions("m", rows))
        model = next(one.worker for one in service.store.workers(id) if one.worker.startswith("model:"))
        failing(lambda: service[id].drop_labels(model))
        failing(lambda: service[id].restore_labels(model))
    failing(lambda: service[id].change(budget=service.store.row(id).spent))  # closes it
    failing(lambda: service[id].change(budget=60))
    leased(service, id, "fay")
    clock.now = START - 5000.0
    failing(lambda: service[id].accept_clock())
    assert differences(service.store, id) == [] and service[id].verify().right
    wanted = {
        "leased", "labelled", "undone", "renewed", "released", "late", "expired", "labels_dropped", "labels_restored",
        "self_assigned", "withdrawn", "worker_paused", "worker_blocked", "worker_restored", "paused", "resumed",
        "changed", "adjudicated", "adjudication_undone",
        "gold_set", "audit_drawn", "audit_answered", "tasks_added", "closed", "reopened", "clock_accepted",
    }  # fmt: skip
    crowd = {"refitted", "predicted", "predictions_dropped", "predictions_restored"}
    assert failing.kinds >= wanted | (crowd if chosen_by == "crowd" else set())


def test_what_the_database_refuses(service: CampaignService) -> None:
    """An event has that number already: the transaction's last statements fail, or its commit does."""
    store, id = service.store, service.create(simple(60), tasks=["a", "b", "c"]).id
    lease, seq = leased(service, id, "ann"), service.store.row(id).seq
    with store.write() as connection:
        connection.execute(sa.text(f"INSERT INTO events VALUES (1, {seq + 1}, {START}, 'paused', '{{}}')"))
    for command in (
        lambda: service[lease].tell(lease, "yes"),
        lambda: service[id].ask("bob"),
        lambda: service[id].pause(),
    ):
        with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
            command()
    with store.write() as connection:
        connection.execute(sa.text(f"DELETE FROM events WHERE seq = {seq + 1}"))
    assert differences(store, id) == []
    assert service[lease].tell(lease, "yes").counted and service[id].verify().right


def failing_half_way(patch: pytest.MonkeyPatch) -> None:
    """Tasks that change leave their group and enter no other."""

    def fail(pool: OrderedPool, task: int) -> None:
        raise Stop

    patch.setattr(OrderedPool, "_enter", fail)


def test_an_event_that_is_followed_half_way(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    store, id = service.store, service.create(simple(60), tasks=["a", "b", "c"]).id
    lease = leased(service, id, "ann")
    for command in (lambda: service[lease].tell(lease, "yes"), lambda: service[id].ask("bob")):
        with monkeypatch.context() as patch, pytest.raises(Stop):
            failing_half_way(patch)
            command()
        assert differences(store, id) == []
    if not store.in_memory:
        other = service_of_store(SqlStore(store.url), service.clock)  # type: ignore[arg-type]
        assert resident_state(other.store, id) is not None
        assert service[lease].tell(lease, "yes").counted
        with monkeypatch.context() as patch, pytest.raises(Stop):
            failing_half_way(patch)
            other[id].ask("bob")  # follows what ann told
        assert differences(other.store, id) == []
        other.close()
    assert service[id].verify().right


def test_a_creation_that_fails(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(runner: Runner, pending: Any) -> None:
        raise Stop

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Runner, "write_all", fail)
        service.create(simple(60), "c", tasks=["a", "b"])
    with pytest.raises(NotFoundError):
        service["c"].ask("ann")
    assert service.create(simple(60), "c", tasks=["a"]).added.tasks == 1
    assert differences(service.store, "c") == []


def test_of_several_campaigns_that_are_changed_together_all_are_undone(service: CampaignService) -> None:
    store = service.store
    ids = [service.create(simple(60), id, tasks=["a", "b"]).id for id in ("one", "other")]
    service.table_cache.prepare(simple(60), store.classes("one"), simple(60).rho).result()
    before = [everything(store, id) for id in ids]
    with pytest.raises(Stop), store.transactions(ids) as states:
        for id in ids:
            Commands(states[id], service.table_cache, START).ask("ann")
        raise Stop
    assert [everything(store, id) for id in ids] == before
    assert [differences(store, id) for id in ids] == [[], []]


@pytest.mark.parametrize("name", ["limits", "many priors", pytest.param("crowd with controls", marks=pytest.mark.slow)])
def test_decisions_are_the_same_after_failures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command is refused once, at its end, before it is let through."""
    expected, run = json.loads(traces.FILE.read_text())[name], CampaignService.run

    def run_twice(service: CampaignService, id: str, command: Callable[[Commands], Any], *more: Any) -> Any:
        def failing(commands: Commands) -> None:
            command(commands)
            raise Stop

        with suppress(Stop):
            run(service, id, failing, *more)
        return run(service, id, command, *more)

    monkeypatch.setattr(CampaignService, "run", run_twice)
    assert json.loads(json.dumps(traces.play(name))) == expected


def test_what_was_learnt_outlives_a_failure(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign with a long log is of use again at once: nothing is learnt a second time."""
    id = service.create(simple(40, policy="crowd"), tasks=TASKS["crowd"], id="c").id
    leased(service, id, "ann")
    learnt = resident_state(service.store, id).crowd
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Runner, "write_all", raising)
        service[id].ask("bob")
    assert learnt is not None and resident_state(service.store, id).crowd is learnt
    leased(service, id, "bob")
    assert service[id].verify().right


def raising(runner: Runner, pending: Any) -> None:
    raise Stop
