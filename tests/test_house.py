"""A habit of the house that a reader would have to check by hand: how long the contract of a store is."""

from __future__ import annotations

import inspect

from nextlabel.store.sql import SqlStore


def test_the_store_is_a_short_contract() -> None:
    """What another store would have to offer; records of access, visits, imports and webhooks stand on it."""
    methods = [name for name, one in vars(SqlStore).items() if inspect.isfunction(one) and not name.startswith("_")]
    assert 10 < len(methods) <= 20, methods
