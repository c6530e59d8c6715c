"""Tables are made fairly. Nothing here waits for a time: costs are given, and the order of the work is what counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from nextlabel.campaigns.table_cache import GiveWay, TableMaker
from nextlabel.errors import UnavailableError

PATIENCE_S = 60.0


@pytest.fixture
def maker() -> Iterator[TableMaker]:
    made = TableMaker()
    yield made
    made.close()


@contextmanager
def held(maker: TableMaker) -> Iterator[None]:
    """The thread is busy while orders come in."""
    begun, go = threading.Event(), threading.Event()

    def busy(_: GiveWay) -> None:
        begun.set()
        assert go.wait(PATIENCE_S)

    future = maker.order("busy", 0.0, busy)
    assert begun.wait(PATIENCE_S)
    yield
    go.set()
    future.result(PATIENCE_S)


def noting(log: list[str], name: str) -> Callable[[GiveWay], str]:
    def make(_: GiveWay) -> str:
        log.append(name)
        return name

    return make


def test_small_orders_come_first(maker: TableMaker) -> None:
    log: list[str] = []
    with held(maker):
        futures = [maker.order(name, cost, noting(log, name)) for name, cost in (("c", 10), ("a", 1), ("b", 5))]
    assert [future.result(PATIENCE_S) for future in futures] == ["c", "a", "b"]
    assert log == ["a", "b", "c"]


def test_an_owner_of_many_orders_waits_behind_the_first_of_others(maker: TableMaker) -> None:
    log: list[str] = []
    with held(maker):
        futures = [maker.order("many", 1.0, noting(log, f"many {k}")) for k in range(4)]
        futures += [maker.order(name, 1.5, noting(log, name)) for name in ("ann", "bob")]
    for future in futures:
        future.result(PATIENCE_S)
    assert log == ["many 0", "ann", "bob", "many 1", "many 2", "many 3"]


def test_a_large_order_gives_way_between_its_slices(maker: TableMaker) -> None:
    log: list[str] = []
    futures = []

    def large(give_way: GiveWay) -> None:
        log.append("slice 1")
        futures.append(maker.order("ann", 6.0, noting(log, "half as large, and more")))
        futures.append(maker.order("bob", 1.0, noting(log, "small")))
        give_way()
        log.append("slice 2")

    maker.order("large", 10.0, large).result(PATIENCE_S)
    for future in futures:
        future.result(PATIENCE_S)
    assert log == ["slice 1", "small", "slice 2", "half as large, and more"]


def test_an_order_that_gives_way_may_itself_be_interrupted(maker: TableMaker) -> None:
    log: list[str] = []

    def nested(name: str, cost: float, inner: Callable[[], None]) -> Callable[[GiveWay], None]:
        def make(give_way: GiveWay) -> None:
            log.append(f"{name} begins")
            inner()
            give_way()
            log.append(f"{name} ends")

        return make

    def small() -> None:
        maker.order("small", 1.0, noting(log, "small"))

    def middle() -> None:
        maker.order("middle", 3.0, nested("middle", 3.0, small))

    maker.order("large", 10.0, nested("large", 10.0, middle)).result(PATIENCE_S)
    assert log == ["large begins", "middle begins", "small", "middle ends", "large ends"]


def test_a_large_order_is_not_put_off_for_ever(maker: TableMaker) -> None:
    """A newcomer of cost 3 at each slice: they go first for a total cost of at most 10, the large order's own."""
    log: list[str] = []
    futures = []

    def large(give_way: GiveWay) -> None:
        for k in range(6):
            futures.append(maker.order(f"newcomer {k}", 3.0, noting(log, f"newcomer {k}")))
            give_way()
        log.append("large")

    maker.order("large", 10.0, large).result(PATIENCE_S)
    for future in futures:
        future.result(PATIENCE_S)
    assert log == ["newcomer 0", "newcomer 1", "newcomer 2", "large", "newcomer 3", "newcomer 4", "newcomer 5"]


def test_an_error_reaches_who_ordered_and_nobody_else(maker: TableMaker) -> None:
    def fails(_: GiveWay) -> None:
        raise ValueError("no table")

    with pytest.raises(ValueError, match="no table"):
        maker.order("ann", 1.0, fails).result(PATIENCE_S)
    log: list[str] = []
    assert maker.order("bob", 1.0, noting(log, "made")).result(PATIENCE_S) == "made"


def test_closing_ends_the_order_in_hand_with_its_slice() -> None:
    maker, begun, closed = TableMaker(), threading.Event(), threading.Event()
    log: list[str] = []

    def large(give_way: GiveWay) -> None:
        begun.set()
        assert closed.wait(PATIENCE_S)
        give_way()
        log.append("slice 2")

    in_hand = maker.order("large", 10.0, large)
    assert begun.wait(PATIENCE_S)
    waiting = maker.order("ann", 1.0, noting(log, "small"))
    maker.close()
    closed.set()
    for future in (in_hand, waiting):
        with pytest.raises(UnavailableError, match="no longer made"):
            future.result(PATIENCE_S)
    with pytest.raises(UnavailableError):
        maker.order("bob", 1.0, noting(log, "late"))
    assert log == []
