"""Every command in any order, on every store, against a model that knows nothing of events or tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from nextlabel.application import imports, service
from nextlabel.application.service import CampaignService
from nextlabel.campaign import scoring
from nextlabel.campaign.external_answers import SKIPPED
from nextlabel.errors import ClockError, ConflictError, NotFoundError
from states import differences
from stores import DATABASES, Clock, everything, opened, simple

WORKERS = st.sampled_from(["ann", "bob", "cy", "di"])
LABELS = st.sampled_from(["no", "yes"])
WHICH = st.integers(0, 10**6)
LEASE_S, YEAR_S = 60.0, 365 * 86_400.0


@dataclass
class Known:
    """A lease as the model has it."""

    task: str
    worker: str
    expires: float
    status: str = "leased"
    label: str | None = None
    counted: bool | None = None
    dropped: bool = False
    free: bool = False


class Machine(RuleBasedStateMachine):
    campaign_service: ClassVar[CampaignService]
    clock: ClassVar[Clock]

    @initialize(
        budget=st.integers(1, 12), tasks=st.integers(0, 5), most=st.integers(1, 4), flight=st.integers(1, 3),
        many=st.booleans(),
    )  # fmt: skip
    def begin(self, budget: int, tasks: int, most: int, flight: int, many: bool) -> None:
        self.most, self.flight, self.budget = most, flight, budget
        config = simple(budget, most_labels=most, most_in_flight=flight, lease_seconds=LEASE_S)
        self.id = self.campaign_service.create(config).id
        self.leases: dict[str, Known] = {}
        self.tasks: list[str] = []
        self.deadline: float | None = None
        self.paused = False
        self.standing: dict[str, str] = {}
        self.gold: dict[str, str] = {}
        if tasks:
            self.add(tasks, many)

    @rule(number=st.integers(1, 3), many=st.booleans(), in_steps=st.booleans())
    def add(self, number: int, many: bool, in_steps: bool = False) -> None:
        """With ``many`` each task has a prior of its own, which after a few turns is another way to keep them.

        With ``in_steps`` they are imported as many tasks are, one by one.
        """
        keys = [f"t{len(self.tasks) + k}" for k in range(number)]
        more = [{"id": key, **({"score": 0.3 + len(self.tasks) / 1000} if many else {})} for key in keys]
        with pytest.MonkeyPatch.context() as patch:
            if in_steps:
                patch.setattr(service, "AT_ONCE", 0)
                patch.setattr(imports, "STEP", 1)
            assert self.campaign_service.add_tasks(self.id, more).added == number
        self.tasks += keys

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, LEASE_S, 1000.0]))
    def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)

    @rule(worker=WORKERS, off=st.sampled_from([-YEAR_S, YEAR_S]))
    def glitch(self, worker: str, off: float) -> None:
        """A clock that is a year off for one reading changes nothing, whether the command is refused or not."""
        before = everything(self.campaign_service.store, self.id)
        self.clock.forward(off)
        with suppress(ClockError):
            self.campaign_service[self.id].ask(worker)
        self.clock.forward(-off)
        assert everything(self.campaign_service.store, self.id) == before

    @rule(turns=st.lists(st.tuples(WORKERS, st.sampled_from(["no", "yes", "hold", "pass"])), min_size=3, max_size=12))
    def work(self, turns: list[tuple[str, str]]) -> None:
        """Workers come one after another, answer, keep the task for a while or pass it on."""
        for worker, does in turns:
            self.ask(worker)
            out = [id for id, lease in self.leases.items() if lease.worker == worker and lease.status == "leased"]
            if out and does == "pass":
                self.release(list(self.leases).index(out[0]))
            elif out and does != "hold":
                self.tell(list(self.leases).index(out[0]), does)
            self.counters_are_right()

    @rule(worker=WORKERS)
    def ask(self, worker: str) -> None:
        self.expire()
        answer = self.campaign_service[self.id].ask(worker)
        out = [id for id, lease in self.leases.items() if lease.worker == worker and lease.status == "leased"]
        if out:
            assert answer and answer.id == out[0]
            return
        free = [task for task in self.tasks if self.room(task) and task not in self.gold]
        mine = [task for task in free if not self.held(task, worker)]
        if not answer:
            now = self.clock.now
            if self.standing.get(worker, "active") != "active":
                expected = f"worker_{self.standing[worker]}"
            elif self.deadline is not None and now >= self.deadline:
                expected = "deadline_passed"
            elif self.spent >= self.budget:
                expected = "budget_spent"
            elif not self.tasks:
                expected = "preparing"
            elif all(self.labels(task) >= self.most for task in self.tasks if task not in self.gold):
                expected = "finished"
            elif self.paused:
                expected = "paused"
            elif self.spent + self.out >= self.budget or not free:
                expected = "all_leased"
            else:
                assert not mine
                expected = "nothing_left_for_you"
            assert answer.reason == expected
            return
        assert self.standing.get(worker, "active") == "active"
        control = answer.task in self.gold
        assert not self.held(answer.task, worker) and (control or answer.task in mine)
        assert not self.paused and self.spent + self.out < self.budget
        until = self.clock.now + LEASE_S
        self.leases[answer.id] = Known(answer.task, worker, min(until, self.deadline or until), free=control)

    @precondition(lambda self: self.leases)
    @rule(which=WHICH, label=LABELS)
    def tell(self, which: int, label: str) -> None:
        id = list(self.leases)[which % len(self.leases)]
        self.expire()
        lease = self.leases[id]
        if lease.status in ("labelled", "late"):
            if label == lease.label:
                assert self.campaign_service[id].tell(id, label).counted == lease.counted
            else:
                with pytest.raises(ConflictError):
                    self.campaign_service[id].tell(id, label)
            return
        told = self.campaign_service[id].tell(id, label, comment=f"{label}, I think" if which % 3 == 0 else None)
        self.heard(lease, label)
        assert (told.status, told.label, told.counted) == (lease.status, label, lease.counted)

    def heard(self, lease: Known, label: str) -> None:
        """The model has an answer to a lease without one."""
        if lease.task in self.gold:
            counted = (lease.free or self.spent < self.budget) and self.standing.get(lease.worker) != "blocked"
        elif lease.status == "leased":
            counted = self.spent < self.budget and self.labels(lease.task) < self.most
        else:
            taken = self.labels(lease.task) + self.in_flight(lease.task)
            counted = self.spent + self.out < self.budget and taken < self.most
            counted = counted and self.standing.get(lease.worker) != "blocked"
        lease.status = "labelled" if lease.status == "leased" else "late"
        lease.label, lease.counted = label, counted

    @precondition(lambda self: self.leases)
    @rule(which=WHICH)
    def release(self, which: int) -> None:
        id = list(self.leases)[which % len(self.leases)]
        self.expire()
        lease = self.leases[id]
        if lease.status in ("labelled", "late"):
            with pytest.raises(ConflictError):
                self.campaign_service[id].release(id, comment="what is this?")
            return
        self.campaign_service[id].release(id, comment="what is this?")
        if lease.status == "leased":
            lease.status = "released"

    @precondition(lambda self: self.leases)
    @rule(which=WHICH)
    def renew(self, which: int) -> None:
        id = list(self.leases)[which % len(self.leases)]
        self.expire()
        lease = self.leases[id]
        if lease.status != "leased":
            with pytest.raises(ConflictError):
                self.campaign_service[id].renew(id)
            return
        until = self.clock.now + LEASE_S
        lease.expires = max(lease.expires, min(until, self.deadline or until))
        assert self.campaign_service[id].renew(id).expires_at == lease.expires

    @precondition(lambda self: self.leases)
    @rule(which=WHICH)
    def undo(self, which: int) -> None:
        id = list(self.leases)[which % len(self.leases)]
        self.expire()
        lease = self.leases[id]
        may = not lease.dropped and self.standing.get(lease.worker) != "blocked"
        if lease.status == "leased" or (lease.status == "labelled" and not self.over(lease) and may):
            assert self.campaign_service[id].undo(id).status == "leased"
            lease.status, lease.label, lease.counted = "leased", None, None
        else:
            with pytest.raises(ConflictError):
                self.campaign_service[id].undo(id)

    @precondition(lambda self: self.tasks)
    @rule(worker=WORKERS, which=WHICH, says=st.sampled_from(["no", "yes", None, SKIPPED]))
    def follow(self, worker: str, which: int, says: object) -> None:
        """Another tool says what a worker answered, whether or not they were given the task."""
        task = self.tasks[which % len(self.tasks)]
        self.expire()
        mine = [lease for lease in self.leases.values() if (lease.task, lease.worker) == (task, worker)]
        told = self.campaign_service[self.id].set_answer(worker, task, says)
        assert self.campaign_service[self.id].set_answer(worker, task, says) == told  # twice is once
        if not mine and says is None:
            assert told is None
            return
        if not mine:
            assert told is not None
            mine = [Known(task, worker, self.clock.now, "released")]
            self.leases[told.lease] = mine[0]
        lease = mine[0]
        if lease.dropped:
            assert told is None
            return
        assert told is not None
        if lease.label not in (None, says):
            lease.status, lease.label, lease.counted = "released", None, None
        if isinstance(says, str) and lease.label is None:
            self.heard(lease, says)
        elif says is SKIPPED and lease.status == "leased":
            lease.status = "released"
        assert (told.status, told.label, told.counted) == (lease.status, lease.label, lease.counted)

    @rule()
    def pause(self) -> None:
        self.campaign_service[self.id].pause()
        self.paused = True

    @rule()
    def resume(self) -> None:
        self.campaign_service[self.id].resume()
        self.paused = False

    @rule(worker=WORKERS, standing=st.sampled_from(["active", "paused", "blocked"]))
    def stand(self, worker: str, standing: str) -> None:
        self.expire()
        if not any(lease.worker == worker for lease in self.leases.values()):
            with pytest.raises(NotFoundError):
                self.campaign_service[self.id].set_standing(worker, standing)
            return
        assert self.campaign_service[self.id].set_standing(worker, standing, "a reason").standing == standing
        self.standing[worker] = standing
        for lease in self.leases.values():
            if standing == "blocked" and lease.worker == worker and lease.status == "leased":
                lease.status = "released"

    @rule(worker=WORKERS)
    def drop(self, worker: str) -> None:
        """All bought labels of a worker leave the results; what was spent stays spent."""
        self.expire()
        mine = [lease for lease in self.leases.values() if lease.worker == worker]
        if mine:
            bought = [lease for lease in mine if lease.counted and not lease.dropped]
            assert self.campaign_service[self.id].drop_labels(worker, "guesses").changed == len(bought)
            for lease in bought:
                lease.dropped = True

    @rule(worker=WORKERS)
    def take_in(self, worker: str) -> None:
        """Labels that were dropped come back where their tasks have room."""
        self.expire()
        mine = [lease for lease in self.leases.values() if lease.worker == worker]
        if mine:
            gone = [lease for lease in mine if lease.dropped]
            most = {lease.task: self.most for lease in gone}
            fits = [
                one
                for one in gone
                if one.task in self.gold or self.labels(one.task) + self.in_flight(one.task) < most[one.task]
            ]
            done = self.campaign_service[self.id].restore_labels(worker)
            assert (done.changed, done.left) == (len(fits), len(gone) - len(fits))
            for lease in fits:
                lease.dropped = False

    @precondition(lambda self: self.tasks)
    @rule(which=WHICH, label=LABELS)
    def know(self, which: int, label: str) -> None:
        """A task becomes a control question, or its answer is corrected."""
        self.expire()
        task = self.tasks[which % len(self.tasks)]
        assert self.campaign_service[self.id].set_gold({task: label}) == (self.gold.get(task) != label)
        self.gold[task] = label

    @rule(budget=st.integers(1, 12))
    def change_budget(self, budget: int) -> None:
        self.expire()
        if budget < self.spent:
            with pytest.raises(ConflictError):
                self.campaign_service[self.id].change(budget=budget)
            return
        self.campaign_service[self.id].change(budget=budget)
        self.budget = budget

    @rule(seconds=st.sampled_from([None, 10.0, 500.0]))
    def change_deadline(self, seconds: float | None) -> None:
        self.deadline = None if seconds is None else self.clock.now + seconds
        self.campaign_service[self.id].change(deadline=self.deadline)

    @rule()
    def rebuild(self) -> None:
        before = everything(self.campaign_service.store, self.id)
        self.campaign_service[self.id].rebuild()
        assert everything(self.campaign_service.store, self.id) == before

    @invariant()
    def counters_are_right(self) -> None:
        if not hasattr(self, "id"):
            return
        row = self.campaign_service.store.row(self.id)
        assert (row.budget, row.tasks, row.paused) == (self.budget, len(self.tasks), self.paused)
        assert row.spent == self.spent <= row.budget
        assert row.given == len(self.leases)
        held = self.campaign_service.store.leases(self.id, range(row.tasks))
        assert row.reserved == sum(1 for lease in held if lease.status == "leased" and not lease.free)
        assert row.controls == len(self.gold)
        for lease in held:
            known = self.leases[lease.id]
            # What is over is noticed, here and there, at the next command that does something.
            noticed = {lease.status, known.status} == {"leased", "expired"} and self.over(known)
            assert lease.status == known.status or noticed
        assert sum(self.campaign_service.groups(self.id).values()) == row.tasks - row.controls
        told = [lease for lease in self.leases.values() if lease.label is not None]
        assert row.kept == len(told) and row.late == sum(1 for lease in told if lease.status == "late")
        asked = [task for task in self.tasks if task not in self.gold]
        assert row.full == sum(1 for task in asked if self.labels(task) >= self.most)
        for tally in self.campaign_service.store.workers(self.id):
            mine = [lease for lease in told if lease.worker == tally.worker and lease.counted]
            bought = [lease for lease in mine if not lease.free]
            assert (tally.bought, tally.free) == (len(bought), len(mine) - len(bought))
            assert tally.dropped == sum(lease.dropped for lease in mine)
            assert tally.standing == self.standing.get(tally.worker, "active")
        for result in self.campaign_service[self.id].results():
            assert result.control == (result.task in self.gold)
            if result.control:
                assert (result.label, result.probability) == (self.gold[result.task], 1.0)
                continue
            said = [lease.label for lease in told if lease.task == result.task and lease.counted and not lease.dropped]
            assert result.labels == len(said) <= self.most
            assert result.counts == {"no": said.count("no"), "yes": said.count("yes")}

    def teardown(self) -> None:
        if hasattr(self, "id"):
            assert differences(self.campaign_service.store, self.id) == []
            self.rebuild()

    def expire(self) -> None:
        for lease in self.leases.values():
            if lease.status == "leased" and self.over(lease):
                lease.status = "expired"

    def over(self, lease: Known) -> bool:
        return lease.expires <= self.clock.now or (self.deadline is not None and self.deadline <= self.clock.now)

    def labels(self, task: str) -> int:
        return sum(1 for one in self.leases.values() if one.task == task and one.counted and not one.dropped)

    def in_flight(self, task: str) -> int:
        return sum(1 for lease in self.leases.values() if lease.task == task and lease.status == "leased")

    def room(self, task: str) -> bool:
        most, flight = self.most, self.flight
        return self.in_flight(task) < flight and self.labels(task) + self.in_flight(task) < most

    def held(self, task: str, worker: str) -> bool:
        return any(lease.task == task and lease.worker == worker for lease in self.leases.values())

    @property
    def spent(self) -> int:
        return sum(1 for lease in self.leases.values() if lease.counted and not lease.free)

    @property
    def out(self) -> int:
        out = [lease for lease in self.leases.values() if lease.status == "leased" and not lease.free]
        return sum(1 for lease in out if not self.over(lease))


@pytest.fixture(params=[(kind, few) for kind in DATABASES for few in (64, 2)], ids=str)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Machine]]:
    """With two classes at most in groups, campaigns soon keep tasks by score, and limits are lower from then on, as
    they were in earlier versions."""
    kind, few = request.param
    monkeypatch.setattr(scoring, "FEW_CLASSES", few)
    with tempfile.TemporaryDirectory() as folder, opened(kind, Path(folder)) as store:
        clock = Clock()
        campaign_service = CampaignService(store, clock)
        yield type("M", (Machine,), {"campaign_service": campaign_service, "clock": clock})
        campaign_service.table_cache.close()


def test_every_command_in_any_order(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=10, stateful_step_count=25))


MOVES = ("ask",) * 8 + ("tell",) * 6 + ("wait", "release", "renew", "undo", "undo", "change_budget", "change_deadline")
RARE = ("add", "pause", "resume", "rebuild", "glitch", "stand", "drop", "take_in", "take_in", "know")


def walk(machine: Machine, random: Random, steps: int, budgets: tuple[int, int] = (1, 12)) -> None:
    """Hypothesis looks for short stories; this one goes on for long, with few tasks."""
    for _ in range(steps):
        move = random.choice(RARE if random.random() < 0.08 else MOVES)
        if move in ("tell", "release", "renew", "undo") and not machine.leases:
            continue
        recent = max(len(machine.leases) - 1 - int(random.expovariate(0.7)), 0)
        arguments: dict[str, tuple[object, ...]] = {
            "ask": (random.choice(["ann", "bob", "cy", "di"]),),
            "tell": (recent, random.choice(["no", "yes"])),
            "wait": (random.choice([1.0, 30.0, LEASE_S]),),
            "change_budget": (random.randint(*budgets),),
            "change_deadline": (random.choice([None, None, 500.0]),),
            "add": (1, random.random() < 0.5),
            "stand": (random.choice(["ann", "bob"]), random.choice(["active", "active", "paused", "blocked"])),
            "know": (random.randrange(10**6), random.choice(["no", "yes"])),
            "drop": (random.choice(["ann", "bob", "cy", "di"]),),
            "take_in": (random.choice(["ann", "bob", "cy", "di"]),),
            "glitch": (random.choice(["ann", "bob", "cy", "di"]), random.choice([-YEAR_S, YEAR_S])),
        }
        which = (recent,) if move in ("release", "renew", "undo") else ()
        getattr(machine, move)(*arguments.get(move, which))
        machine.counters_are_right()


@pytest.mark.parametrize(
    "machine",
    [
        *[pytest.param(("memory", few), marks=pytest.mark.slow) for few in (64, 2)],
        *[pytest.param((kind, few), marks=pytest.mark.long) for kind in DATABASES for few in (64, 2)],
    ],
    indirect=True,
    ids=str,
)
def test_long_walks(machine: type[Machine]) -> None:
    """With little budget."""
    for seed in range(4):
        one, random = machine(), Random(seed)
        one.begin(random.randint(1, 6), random.randint(1, 4), random.randint(1, 3), random.randint(1, 3), True)
        walk(one, random, 120)
        one.teardown()


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(("memory", 2), marks=pytest.mark.slow),
        *[pytest.param((kind, 2), marks=pytest.mark.long) for kind in DATABASES],
    ],
    indirect=True,
    ids=str,
)
def test_walks_that_cross_to_many_priors(machine: type[Machine]) -> None:
    """Tasks that have labels, some of them in flight, are ranked from then on."""
    for seed in range(3):
        one, random = machine(), Random(seed)
        one.begin(60, 3, 4, 3, False)
        walk(one, random, 30, (40, 60))
        for _ in range(3):
            one.add(1, True)
        walk(one, random, 90, (40, 60))
        one.teardown()
