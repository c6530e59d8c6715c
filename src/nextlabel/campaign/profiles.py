"""What campaigns teach about workers who come back: kept when one ends, and copied by those that begin with it.

A campaign keeps two tables, by the hash of a worker's name: ``profiles``, how often each gave an answer to a truth
here, and ``known``, what it began with. The second goes into the log when the worker gets their first task, so that a
replay needs neither, and erasing somebody from both changes none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.campaign.rows import ERASED
from nextlabel.campaign.states import PREFIX
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.campaign.state import CampaignState

#: The tables' names; counts by hash.
PROFILES, KNOWN = "profiles", "known"
Profiles = dict[str, list[list[float]]]


def name_hash(worker: str) -> str:
    """What a worker is known by in both tables."""
    return sha256(f"nextlabel profile {worker}".encode()).hexdigest()[:32]


def read_profiles(data: bytes | None) -> Profiles:
    """A table that was kept."""
    found: Profiles = {} if data is None else json.loads(data)
    return found


def merged(tables: Iterable[Profiles]) -> Profiles:
    """Their counts added up."""
    out: dict[str, Any] = {}
    for table in tables:
        for name, counts in table.items():
            out[name] = np.add(out[name], counts) if name in out else np.asarray(counts)
    return {name: np.round(counts, 4).tolist() for name, counts in out.items()}


def keep_profiles(state: CampaignState) -> None:
    """Keep what the campaign has taught, now that it ends."""
    if state.crowd is None or state.row.config.answer != "choice":
        return
    people = [(one.worker, counts) for one, counts in zip(state.workers, state.crowd.profiles(), strict=False)]
    table = {
        name_hash(name): counts.round(4).tolist()
        for name, counts in people
        if counts.any() and not name.startswith((PREFIX, ERASED))
    }
    _write(state, PROFILES, table)


def _write(state: CampaignState, part: str, table: Profiles) -> None:
    state.source.drop(part)  # what is kept is not replaced otherwise
    state.source.keep(part, json.dumps(table).encode())


def profile_of(state: CampaignState, worker: str) -> dict[str, Any]:
    """What is known of a worker who is about to get their first task, for the event."""
    found = read_profiles(state.source.kept(KNOWN)).get(name_hash(worker))
    return {} if found is None else {"profile": found}


def add_known(state: CampaignState, table: Profiles) -> int:
    """Know more about workers who have not come yet; returns how many are known."""
    known = merged([read_profiles(state.source.kept(KNOWN)), table])
    _write(state, KNOWN, known)
    return len(known)


def forget(state: CampaignState, worker: str) -> bool:
    """Take a worker out of both tables; whether they were in one."""
    found = False
    for part in (PROFILES, KNOWN):
        table = read_profiles(state.source.kept(part))
        if table.pop(name_hash(worker), None) is not None:
            _write(state, part, table)
            found = True
    return found


def profiles_from_rows(rows: Iterable[Mapping[str, Any]], labels: tuple[str, ...]) -> Profiles:
    """Rows with worker, truth, answer and count, as the export writes them."""
    place, out = {label: k for k, label in enumerate(labels)}, dict[str, Any]()
    for number, row in enumerate(rows, start=1):
        try:
            c, y, count = place[str(row["truth"])], place[str(row["answer"])], float(row["count"])
            worker = str(row["worker"])
        except (KeyError, ValueError, TypeError):
            raise InputError(
                f"row {number:,} is no profile.", "Give worker, truth and answer (labels of the campaign), and count."
            ) from None
        if not worker:
            raise InputError(f"row {number:,} names no worker.", "Give worker, truth, answer and count.")
        if not 0 <= count < 1e9:
            raise InputError(f"row {number:,}: count is {count:g}.", "Give a number from 0.")
        out.setdefault(name_hash(worker), np.zeros((len(labels), len(labels))))[c, y] += count
    return {name: counts.tolist() for name, counts in out.items()}
