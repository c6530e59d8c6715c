"""The address ``memory:``: a database of its own for each store that is opened, which threads share."""

from __future__ import annotations

import threading

from nextlabel.store.sql import open_store
from stores import Clock, service_of_store, simple


def test_each_store_is_a_database_of_its_own() -> None:
    one, other = open_store("memory:"), open_store(" memory: ", create=False)
    assert one.put("name", b"one") and not one.put("name", b"two")
    assert (one.get("name"), other.get("name")) == (b"one", None)
    one.close()
    other.close()


def test_a_transaction_reads_its_store_and_others_wait_for_its_end() -> None:
    store = open_store("memory:")
    service = service_of_store(store, Clock())
    id = service.create(simple(), tasks=["a", "b"]).id
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.append(store.row(id).budget))
    with store.transaction(id) as state:
        assert len(store.tasks(id)) == 2
        state.record(state.row.last_at, "changed", {"budget": 9})
        reader.start()
        reader.join(0.2)
        assert seen == []
    reader.join(10)
    assert seen == [9]
    service.close()


def test_a_transaction_that_fails_is_undone() -> None:
    store = open_store("memory:")
    service = service_of_store(store, Clock())
    id = service.create(simple(), tasks=["a", "b"]).id
    before = store.events(id), store.row(id)
    try:
        with store.transaction(id) as state:
            state.record(state.row.last_at, "paused", {})
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert (store.events(id), store.row(id)) == before and service[id].verify().right
    service.close()
