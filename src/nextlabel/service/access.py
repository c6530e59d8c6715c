"""Who may use the service: tokens with a name and a role, and the copy of them in each process's memory.

Requests are checked against this copy, in memory. A token or a link that is revoked therefore stops working within
``CACHE_S`` seconds in every process. A token that is unknown may be new: it is looked for in the store, for all unknown
tokens together once in ``MISMATCH_CACHE_S`` seconds.

Tokens for requesters, auditors and viewers: each has a name, is shown once, and is stored as a hash.

A token has 256 random bits, so a plain SHA-256 is as hard to invert as the token is to guess.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass, field

from anyio import to_thread

from nextlabel.campaign.records import AccessToken, Role
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.store.sql import SqlStore

CACHE_S, MISMATCH_CACHE_S = 2.0, 1.0

#: Names of the store's settings that hold the database's part of the links' key, and the fingerprint of the other one.
SECRET, FINGERPRINT = "link_secret", "key_fingerprint"

#: Name of the token that the service makes at its first start.
FIRST = "requester"
PREFIX = "nl_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@dataclass(frozen=True, slots=True)
class AccessState:
    """What the store says about access at one time; tokens by their hashes."""

    secret: str = ""
    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)


def read_access(store: SqlStore) -> AccessState:
    """The state of a store, whose secret is made if there is none."""
    if store.get(SECRET) is None:
        store.put(SECRET, secrets.token_bytes(32))
    tokens = {token.hash: token for token in store.access.tokens()}
    return AccessState((store.get(SECRET) or b"").hex(), store.access.link_versions(), tokens)


def rotate_secrets(store: SqlStore) -> None:
    """Invalidate all links and end all sessions, of workers and of browsers at the dashboard; tokens stay.

    Another key file may be used from now on.
    """
    store.put(FINGERPRINT, b"", replace=True)
    store.put(SECRET, secrets.token_bytes(32), replace=True)
    store.access.end_sessions(float("inf"))


class AccessCache:
    """The newest state that this process has read."""

    def __init__(self, store: SqlStore) -> None:
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


def first_token(store: SqlStore) -> str | None:
    """A first token, to be shown to whoever started the service; None if the store has one already."""
    if store.access.tokens():
        return None
    token = _random_token()
    return token if store.access.save_token(_record(FIRST, "requester", token)) else None


def new_token(store: SqlStore, name: str = FIRST, role: Role = "requester") -> str:
    """A token that replaces the one of that name, which stops working in running processes within seconds."""
    token = _random_token()
    store.access.save_token(_record(checked_name(name), role, token), replace=True)
    return token


def create_token(store: SqlStore, name: str, role: Role) -> str:
    """A further token; its name must be new."""
    token = _random_token()
    if not store.access.save_token(_record(checked_name(name), role, token)):
        raise ConflictError(f"there is a token {name!r} already.", "Choose another name, or revoke that token first.")
    return token


def revoke_token(store: SqlStore, name: str) -> None:
    """End a token, and with it the sessions of browsers that signed in with it."""
    if not store.access.remove_token(name):
        raise NotFoundError(f"there is no token {name[:64]!r}.", "nextlabel token list shows the names.")


def checked_name(name: str) -> str:
    """A token's name."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"{name[:64]!r} is not a token's name.", "Use 1 to 64 letters, digits and . _ @ -, beginning with a letter."
        )
    return name


def hashed(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _record(name: str, role: Role, token: str) -> AccessToken:
    return AccessToken(name, role, hashed(token), time.time())


def _random_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)
