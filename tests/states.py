"""The state of a campaign in memory, held against the two things that it must equal: its tables and its log."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sqlalchemy as sa

from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import CampaignState, new_campaign
from nextlabel.policies.ordered import OrderedPool
from nextlabel.store.campaign_tables import campaign_from, load_state
from nextlabel.store.engine import Runner
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import campaigns


def resident_state(store: SqlStore, id: str) -> CampaignState:
    """What this process has of a campaign, brought up to its last event."""
    with store.transaction(id) as state:
        return state


def loaded_state(store: SqlStore, id: str) -> CampaignState:
    """The campaign as a process reads it that has never seen it."""
    with store.read() as connection:
        found = connection.execute(sa.select(campaigns).where(campaigns.c.id == id)).one()
        return load_state(Runner(connection), *campaign_from(tuple(found)))


def replayed_state(store: SqlStore, id: str) -> CampaignState:
    """The campaign that has followed all of its log."""
    log = store.events(id, 0, 10**6)
    state = new_campaign(id, CampaignSettings.from_log(log[0].data["config"]), store.row(id).created_at)
    for event in log:
        state.apply(event)
    return state


def facts_of(state: CampaignState) -> dict[str, Any]:
    """All that a state says, by name."""
    pool = state.pool
    facts: dict[str, Any] = {
        "row": state.row, "classes": state.classes, "batches": state.batches, "comments": state.comments,
        "workers": state.workers, "numbers": state.numbers, "published": pool.published, "allocator": type(pool),
        "held": pool.held + [0] * (len(state.workers) - len(pool.held)),
        "groups": {state: count for state, count in pool.groups().items() if count},
        "open": {one.worker: state.open_leases(one.worker) for one in state.workers},
        "expiries": state.expired(math.inf, 10**6),
        "next expiry": state.next_expiry(),
        "controls": [state.control_for(one.worker, 0.5) for one in state.workers],
    }  # fmt: skip
    for name, some in {"tasks": pool.tasks, "leases": state.leases}.items():
        facts |= {f"{name}.{column}": values for column, values in some.arrays().items()}
    assert pool.entries is state.leases
    if isinstance(pool, OrderedPool):
        # Those that were looked into before, and those that are looked into now.
        facts["members"], facts["in lists"] = {k: list(pool._list(k)) for k in sorted(pool._counts)}, pool._counts
        facts["scores"] = pool._score
    return facts


def different(one: CampaignState, other: CampaignState) -> list[str]:
    """The names of all facts in which two states differ."""
    mine, theirs = facts_of(one), facts_of(other)
    assert mine.keys() == theirs.keys(), (type(one.pool), type(other.pool))
    return [name for name in mine if not _equal(mine[name], theirs[name])]


def differences(store: SqlStore, id: str) -> list[str]:
    """In what the state in memory differs from that of the tables, and from that of the log."""
    here = resident_state(store, id)
    tables, log = loaded_state(store, id), replayed_state(store, id)
    return [f"tables: {name}" for name in different(here, tables)] + [f"log: {name}" for name in different(here, log)]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return bool(one == other)
