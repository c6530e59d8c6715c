"""Commands that are run together get the replies, and write the events, that they would get and write one by one."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign import scoring
from nextlabel.campaign.commands import Commands
from nextlabel.errors import NextlabelError, TablesPendingError
from nextlabel.policies import ordered
from nextlabel.store.engine import Runner
from nextlabel.store.sql import open_store
from stores import DATABASES, Clock, everything, opened, service_of_store, simple

CAMPAIGNS = ("one", "two", "three")
LABELS = ("no", "yes", "yes")
WORKERS = tuple(f"w{k}" for k in range(9))


@dataclass(frozen=True)
class Call:
    """A command on a campaign, by name and arguments."""

    campaign: str
    name: str
    arguments: tuple[Any, ...]

    def run(self, commands: Commands) -> Any:
        try:
            return getattr(commands, self.name)(*self.arguments)
        except TablesPendingError:
            raise  # the command is run again when they are there
        except NextlabelError as error:
            return type(error), str(error)


class History:
    """Random calls; ``replies`` says which leases there are."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.leases: list[Any] = []

    def calls(self, many: int) -> list[Call]:
        return [self._call() for _ in range(many)]

    def _call(self) -> Call:
        random = self.random
        name = random.choice(("ask",) * 6 + ("tell",) * 5 + ("release", "renew", "undo", "pause"))
        if name == "ask" or not self.leases:
            return Call(random.choice(CAMPAIGNS), "ask", (random.choice(WORKERS),))
        if name == "pause" and random.random() < 0.3:
            return Call(random.choice(CAMPAIGNS), random.choice(("pause", "resume", "resume")), ())
        lease = self.leases[max(len(self.leases) - 1 - int(random.expovariate(0.1)), 0)]
        who = lease.worker if random.random() < 0.95 else "stranger"
        arguments = (lease.id, who) if name in ("release", "renew", "undo") else (lease.id, random.choice(LABELS), who)
        return Call(lease.campaign, "tell" if name == "pause" else name, arguments)

    def heard(self, replies: Sequence[Any]) -> None:
        known = {lease.id for lease in self.leases}
        self.leases += [reply for reply in replies if hasattr(reply, "payload") and reply.id not in known]


def one_by_one(service: CampaignService, calls: Sequence[Call]) -> list[Any]:
    return [service.run(call.campaign, call.run) for call in calls]


def together(service: CampaignService, calls: Sequence[Call]) -> list[Any]:
    """Campaign by campaign in one transaction, as the command queue does."""
    wanted = {call.campaign for call in calls}
    replies: dict[int, Any] = {}
    try:
        with service.store.transactions(wanted) as states:
            assert set(states) == wanted
            for id, state in states.items():
                for place, call in enumerate(calls):
                    if call.campaign == id:
                        replies[place] = call.run(Commands(state, service.table_cache, service.clock()))
    except TablesPendingError as pending:
        pending.future.result()
        return together(service, calls)
    return [replies[place] for place in range(len(calls))]


@pytest.fixture(params=[(kind, few) for kind in DATABASES for few in (64, 2)], ids=str)
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[CampaignService, CampaignService]]:
    """A store in which commands are run one by one, and one in which they are run together; few classes: ranked."""
    kind, few = request.param
    monkeypatch.setattr(scoring, "FEW_CLASSES", few)
    monkeypatch.setattr(secrets, "randbits", lambda bits: 0)
    # windows that are too small for what workers have held
    monkeypatch.setattr(ordered, "LOOKED_AT", request.node.callspec.params.get("looked_at", 1))
    scoring.score_of_state.cache_clear()
    with opened(kind, tmp_path) as store:
        clock = Clock()
        alone, batch = service_of_store(open_store("memory:"), clock), service_of_store(store, clock)
        yield alone, batch
        for service in (alone, batch):
            service.table_cache.close()
    monkeypatch.undo()
    scoring.score_of_state.cache_clear()


def begin(services: Sequence[CampaignService], random: Random) -> None:
    for id in CAMPAIGNS:
        config = simple(random.randint(20, 60), seed=random.randint(0, 9), most_in_flight=random.randint(1, 3),
                        most_labels=random.randint(2, 6), label_cost=0.0)  # fmt: skip
        scores = [random.choice((0.3, 0.5, 0.7)) for _ in range(random.choice((3, 12, 30)))]
        for service in services:
            service.create(config, id, ({"id": f"t{k}", "score": score} for k, score in enumerate(scores)))


@pytest.mark.parametrize(("seed", "looked_at"), ((0, 1), (1, 1), (3, 100), (4, 100)))
def test_the_same_choices_and_events_as_one_by_one(
    pair: tuple[CampaignService, CampaignService], seed: int, looked_at: int
) -> None:
    random = Random(seed)
    begin(pair, random)
    alone, batch = pair
    history = History(random)
    for _ in range(14):
        calls = history.calls(random.choice((1, 4, 16, 40)))
        replies = one_by_one(alone, calls)
        assert together(batch, calls) == replies
        history.heard(replies)
        alone.clock.forward(random.choice((0.0, 1.0, 20.0)))  # type: ignore[attr-defined]  # one clock for both
    kinds: Counter[str] = Counter()
    for id in CAMPAIGNS:
        events = alone.store.events(id, 0, 10_000)
        assert batch.store.events(id, 0, 10_000) == events
        assert everything(batch.store, id) == everything(alone.store, id)
        assert batch[id].verify().right
        kinds.update(event.kind for event in events)
    assert kinds["leased"] > 15 and kinds["labelled"] > 8 and kinds["expired"] + kinds["released"] > 1


def counted_driver_calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the database is asked, and written to."""
    calls: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        plain = getattr(Runner, name)

        def method(self: Runner, *arguments: Any) -> Any:
            calls[name] += 1
            return plain(self, *arguments)

        return method

    for name in ("one", "all", "write_all"):
        monkeypatch.setattr(Runner, name, counting(name))
    return calls


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_commands_that_wait_together_are_read_and_written_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(kind, tmp_path) as store:
        service = service_of_store(store, Clock())
        service.create(simple(1000), "one", tasks=[f"item {k}" for k in range(2000)])
        asks = [Call("one", "ask", (f"w{k}",)) for k in range(64)]
        together(service, asks[:1])
        leases = together(service, asks[:32])
        tells = [Call("one", "tell", (le.id, "yes", le.worker)) for le in leases]
        calls = counted_driver_calls(monkeypatch)
        together(service, [*asks[32:], *tells])
        service.table_cache.close()
    assert calls["write_all"] == 1
    assert calls["one"] <= 1 + 32  # the campaign, locked, and the text of each new task
    assert calls["all"] == 0
