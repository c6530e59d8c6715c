"""The requester's token: shown once, kept as a hash.

Whoever has it may do everything. It has 256 random bits, so that a plain SHA-256 is as hard to turn round as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from nextlabel.campaign.ledger import Store

#: Name of the setting that holds the hash.
NAME = "requester_token"
PREFIX = "nl_"


def first_token(store: Store) -> str | None:
    """The requester's token if the store has none yet, to be shown to whoever started the service; else None."""
    if store.setting(NAME) is not None:
        return None
    token = _made()
    return token if store.first_setting(NAME, hashed(token)) else None


def new_token(store: Store) -> str:
    """Another token; the old one ends (in running processes within seconds)."""
    token = _made()
    store.change_setting(NAME, hashed(token))
    return token


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, kept: str | None) -> bool:
    """Whether the token is the one that was kept."""
    return kept is not None and hmac.compare_digest(hashed(token), kept)


def _made() -> str:
    return PREFIX + secrets.token_urlsafe(32)
