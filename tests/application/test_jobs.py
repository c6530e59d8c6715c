"""Jobs are done fairly, each key once. Nothing here waits for a time: costs are given, and the order is what counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import pytest

from nextlabel.application.jobs import GiveWay, Jobs
from nextlabel.errors import UnavailableError

PATIENCE_S = 60.0
T = TypeVar("T")


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs("tables")
    yield made
    made.close()


def submit(jobs: Jobs, owner: str, cost: float, work: Callable[[GiveWay], T]) -> Future[T]:
    """A job with a key of its own."""
    return jobs.submit(object(), work, owner, cost)


@contextmanager
def held(jobs: Jobs) -> Iterator[None]:
    """The thread is busy while orders come in."""
    begun, go = threading.Event(), threading.Event()

    def busy(_: GiveWay) -> None:
        begun.set()
        assert go.wait(PATIENCE_S)

    future = submit(jobs, "busy", 0.0, busy)
    assert begun.wait(PATIENCE_S)
    yield
    go.set()
    future.result(PATIENCE_S)


def noting(log: list[str], name: str) -> Callable[[GiveWay], str]:
    def make(_: GiveWay) -> str:
        log.append(name)
        return name

    return make


def test_small_orders_come_first(jobs: Jobs) -> None:
    log: list[str] = []
    with held(jobs):
        futures = [submit(jobs, name, cost, noting(log, name)) for name, cost in (("c", 10), ("a", 1), ("b", 5))]
    assert [future.result(PATIENCE_S) for future in futures] == ["c", "a", "b"]
    assert log == ["a", "b", "c"]


def test_an_owner_of_many_orders_waits_behind_the_first_of_others(jobs: Jobs) -> None:
    log: list[str] = []
    with held(jobs):
        futures = [submit(jobs, "many", 1.0, noting(log, f"many {k}")) for k in range(4)]
        futures += [submit(jobs, name, 1.5, noting(log, name)) for name in ("ann", "bob")]
    for future in futures:
        future.result(PATIENCE_S)
    assert log == ["many 0", "ann", "bob", "many 1", "many 2", "many 3"]


def test_a_large_order_gives_way_between_its_slices(jobs: Jobs) -> None:
    log: list[str] = []
    futures = []

    def large(give_way: GiveWay) -> None:
        log.append("slice 1")
        futures.append(submit(jobs, "ann", 6.0, noting(log, "half as large, and more")))
        futures.append(submit(jobs, "bob", 1.0, noting(log, "small")))
        give_way()
        log.append("slice 2")

    submit(jobs, "large", 10.0, large).result(PATIENCE_S)
    for future in futures:
        future.result(PATIENCE_S)
    assert log == ["slice 1", "small", "slice 2", "half as large, and more"]


def test_an_order_that_gives_way_may_itself_be_interrupted(jobs: Jobs) -> None:
    log: list[str] = []

    def nested(name: str, cost: float, inner: Callable[[], None]) -> Callable[[GiveWay], None]:
        def make(give_way: GiveWay) -> None:
            log.append(f"{name} begins")
            inner()
            give_way()
            log.append(f"{name} ends")

        return make

    def small() -> None:
        submit(jobs, "small", 1.0, noting(log, "small"))

    def middle() -> None:
        submit(jobs, "middle", 3.0, nested("middle", 3.0, small))

    submit(jobs, "large", 10.0, nested("large", 10.0, middle)).result(PATIENCE_S)
    assert log == ["large begins", "middle begins", "small", "middle ends", "large ends"]


def test_a_large_order_is_not_put_off_for_ever(jobs: Jobs) -> None:
    """A newcomer of cost 3 at each slice: they go first for a total cost of at most 10, the large order's own."""
    log: list[str] = []
    futures = []

    def large(give_way: GiveWay) -> None:
        for k in range(6):
            futures.append(submit(jobs, f"newcomer {k}", 3.0, noting(log, f"newcomer {k}")))
            give_way()
        log.append("large")

    submit(jobs, "large", 10.0, large).result(PATIENCE_S)
    for future in futures:
        future.result(PATIENCE_S)
    assert log == ["newcomer 0", "newcomer 1", "newcomer 2", "large", "newcomer 3", "newcomer 4", "newcomer 5"]


def test_an_error_reaches_who_ordered_and_nobody_else(jobs: Jobs) -> None:
    def fails(_: GiveWay) -> None:
        raise ValueError("no table")

    with pytest.raises(ValueError, match="no table"):
        submit(jobs, "ann", 1.0, fails).result(PATIENCE_S)
    log: list[str] = []
    assert submit(jobs, "bob", 1.0, noting(log, "made")).result(PATIENCE_S) == "made"


def test_closing_ends_the_order_in_hand_with_its_slice() -> None:
    jobs, begun, closed = Jobs("tables"), threading.Event(), threading.Event()
    log: list[str] = []

    def large(give_way: GiveWay) -> None:
        begun.set()
        assert closed.wait(PATIENCE_S)
        give_way()
        log.append("slice 2")

    in_hand = submit(jobs, "large", 10.0, large)
    assert begun.wait(PATIENCE_S)
    waiting = submit(jobs, "ann", 1.0, noting(log, "small"))
    jobs.close()
    closed.set()
    for future in (in_hand, waiting):
        with pytest.raises(UnavailableError, match="no longer made"):
            future.result(PATIENCE_S)
    with pytest.raises(UnavailableError):
        submit(jobs, "bob", 1.0, noting(log, "late"))
    assert log == []


def test_a_key_is_under_way_once(jobs: Jobs) -> None:
    log: list[str] = []
    with held(jobs):
        one, other = jobs.submit("a", noting(log, "one")), jobs.submit("a", noting(log, "other"))
    assert one is other and one.result(PATIENCE_S) == "one" and not one.cancel()
    assert jobs.submit("a", noting(log, "again")).result(PATIENCE_S) == "again" and log == ["one", "again"]
