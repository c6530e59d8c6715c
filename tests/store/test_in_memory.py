"""The address ``memory:``: a database of its own for each store that is opened, which threads share."""

from __future__ import annotations

import threading

from nextlabel.store.open import open_store
from stores import Clock, service_of_store, simple


def test_each_store_is_a_database_of_its_own() -> None:
    one, other = open_store("memory:"), open_store(" memory: ", create=False)
    one.change_setting("name", "one")
    assert (one.setting("name"), other.setting("name")) == ("one", None)
    one.close()
    other.close()


def test_a_transaction_reads_its_store_and_others_wait_for_its_end() -> None:
    store = open_store("memory:")
    service = service_of_store(store, Clock())
    id = service.create(simple(), tasks=["a", "b"]).id
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.append(store.row(id).budget))
    with store.transaction(id) as ledger:
        assert len(store.tasks(id)) == 2
        ledger.row.budget = 9
        ledger.flush()
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
        with store.transaction(id) as ledger:
            ledger.append(ledger.row.last_at, "paused", {})
            ledger.row.paused = True
            ledger.flush()
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert (store.events(id), store.row(id)) == before and service.verify(id).right
    service.close()
