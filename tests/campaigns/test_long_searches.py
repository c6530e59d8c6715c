"""Workers who have held nearly all of many tasks: an ask of theirs looks at a limited number, and all are found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from campaigns.test_greedy_workers import poll, steps_of
from nextlabel.campaign.commands import Commands
from nextlabel.campaigns.service import CampaignService
from nextlabel.store import long_searches, questions
from nextlabel.store.sql import SqlStore
from stores import KINDS, Clock, opened, service_of_store, simple

EXAMINED, SEARCHED, LEFT = 10, 30, 3


def forget_questions() -> None:
    for question in vars(questions).values():
        if hasattr(question, "cache_clear"):
            question.cache_clear()


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(questions, "MOST_EXAMINED", EXAMINED)
    monkeypatch.setattr(long_searches, "MOST_SEARCHED", SEARCHED)
    monkeypatch.setattr(long_searches, "REVIEWED", EXAMINED)
    forget_questions()
    yield
    monkeypatch.undo()
    forget_questions()


def begin(service: CampaignService, tasks: int, ranked: bool) -> tuple[str, set[str]]:
    """A campaign in which ``greedy`` has held all tasks but LEFT, and those."""
    given = [{"id": f"t{k}", "text": "x", **({"score": 0.5 + k / (3 * tasks)} if ranked else {})} for k in range(tasks)]
    id = service.create(simple(10 * tasks, policy="okg", most_in_flight=1), tasks=given).id
    spared = given[-LEFT:] if ranked else given[5 :: tasks // LEFT]
    left = {str(task["id"]) for task in spared}

    def hold(commands: Commands) -> None:
        """As an ask that happens to find it."""
        for task in commands.ledger.tasks_by_key([str(task["id"]) for task in given]).values():
            if task.key not in left:
                lease = f"{id}.{task.number}"
                until, state = commands.now + 60, list(task.group)
                data = {"lease": lease, "task": task.number, "worker": "greedy", "expires_at": until, "state": state}
                commands.record("leased", {**data, "left": 1})
                commands.release(lease)

    service.run(id, hold)
    return id, left


def found_by(
    service: CampaignService, id: str, left: set[str], asks: int, cost: Callable[[Callable[[], Any]], int] | None = None
) -> tuple[set[str], int]:
    """What ``greedy`` gets of what is left for them, and what the dearest ask cost."""
    found: set[str] = set()
    dearest = 0
    for _ in range(asks):
        answers: list[Any] = []

        def ask(answers: list[Any] = answers) -> None:
            answers.append(poll(service, id, "greedy"))

        if cost is None:
            ask()
        else:
            dearest = max(dearest, cost(ask))
        (answer,) = answers
        if answer:
            found.add(answer.task)
            service.release(answer.id)
        elif found != left:
            assert (answer.reason, answer.retry_after) == ("all_leased", 1.0)  # the search goes on
    return found, dearest


def counted(store: Any) -> Callable[[Callable[[], Any]], int]:
    """How many instructions of SQLite, or of Python in the store in memory, a call needs."""

    def of_sqlite(call: Callable[[], Any]) -> int:
        with steps_of(store) as steps:
            call()
        return steps[0]

    def of_python(call: Callable[[], Any]) -> int:
        count = 0

        def see(frame: FrameType, kind: str, argument: Any) -> Any:
            nonlocal count
            frame.f_trace_opcodes, frame.f_trace_lines = "nextlabel/store" in frame.f_code.co_filename, False
            count += kind == "opcode"
            return see

        before = sys.gettrace()
        sys.settrace(see)
        try:
            call()
        finally:
            sys.settrace(before)
        return count

    return of_sqlite if isinstance(store, SqlStore) and store.kind == "sqlite" else of_python


@pytest.mark.parametrize("ranked", [False, True], ids=["groups", "ranked"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_ask_looks_at_no_more_tasks_where_there_are_more(kind: str, ranked: bool, tmp_path: Path) -> None:
    costs = []
    for tasks in (90, 450):
        (tmp_path / str(tasks)).mkdir()
        with opened(kind, tmp_path / str(tasks)) as store:
            service = service_of_store(store, Clock())
            id, left = begin(service, tasks, ranked)
            poll(service, id, "greedy")  # counts what they have held
            found, cost = found_by(service, id, left, 30, counted(store))
            assert found == left
            costs.append(cost)
            service.table_cache.close()
    assert costs[1] < 1.5 * costs[0]


@pytest.mark.parametrize("ranked", [False, True], ids=["groups", "ranked"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_task_is_found_in_the_end(kind: str, ranked: bool, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        service = service_of_store(store, Clock())
        id, left = begin(service, 120, ranked)
        found, _ = found_by(service, id, left, 40)
        assert found == left
        assert poll(service, id, "greedy").reason == "nothing_left_for_you"
        assert service.verify(id).right
        service.table_cache.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_ranked_task_that_became_better_is_found_above(kind: str, tmp_path: Path) -> None:
    """The search stands far down; a task that comes in above it is met by the review, not by a search from the top."""
    with opened(kind, tmp_path) as store:
        service = service_of_store(store, Clock())
        id, left = begin(service, 120, True)
        found: set[str] = set()
        while not found:
            found, _ = found_by(service, id, left, 1)
        service.add_tasks(id, [{"id": "new", "score": 0.5 + 60 / 360}])
        more, _ = found_by(service, id, {*left, "new"} - found, 20)
        assert more == {*left, "new"} - found
        service.table_cache.close()
