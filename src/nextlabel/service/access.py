"""Who may use the service now: tokens, the secret of links and their versions, read from the store every few seconds.

Requests are checked against this copy, in memory. A token or a link that is revoked therefore stops working within
``CACHE_S`` seconds in every process. A token that is unknown may be new: it is looked for in the store, for all unknown
tokens together once in ``MISMATCH_CACHE_S`` seconds.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

from anyio import to_thread

from nextlabel.campaign.access import AccessToken
from nextlabel.campaign.ledger import Store
from nextlabel.service.tokens import hashed

CACHE_S, MISMATCH_CACHE_S = 2.0, 1.0
#: Name of the store's setting that holds the database's part of the links' key.
SECRET = "link_secret"


@dataclass(frozen=True, slots=True)
class AccessState:
    """What the store says about access at one time; tokens by their hashes."""

    secret: str = ""
    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)


def read_access(store: Store) -> AccessState:
    """The state of a store, whose secret is made if there is none."""
    if store.setting(SECRET) is None:
        store.first_setting(SECRET, secrets.token_hex(32))
    tokens = {token.hash: token for token in store.access.tokens()}
    return AccessState(str(store.setting(SECRET)), store.access.link_versions(), tokens)


def rotate_secrets(store: Store) -> None:
    """Invalidate all links and end all sessions, of workers and of browsers at the dashboard; tokens stay."""
    store.change_setting(SECRET, secrets.token_hex(32))
    store.access.end_sessions(float("inf"))


class AccessCache:
    """The newest state that this process has read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at = self._looked_at = float("-inf")
        self._state = AccessState()
        self.read()

    @property
    def state(self) -> AccessState:
        """The state that was read last."""
        return self._state

    def read(self) -> AccessState:
        """Read the state from the store."""
        before, self._read_at = self._read_at, time.monotonic()  # meanwhile, others use the state that is there
        try:
            self._state = read_access(self._store)
        except BaseException:
            self._read_at = before
            raise
        return self._state

    async def refresh(self) -> None:
        """Read the state again if it is old."""
        if time.monotonic() - self._read_at >= CACHE_S:
            await to_thread.run_sync(self.read)

    async def find_token(self, token: str) -> AccessToken | None:
        """The record of a token, None if there is none."""
        hash = hashed(token)
        if hash not in self._state.tokens and time.monotonic() - self._looked_at >= MISMATCH_CACHE_S:
            self._looked_at = time.monotonic()
            await to_thread.run_sync(self.read)
        return self._state.tokens.get(hash)
