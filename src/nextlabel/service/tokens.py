"""The requester's token: shown once, stored as a hash.

Whoever has it may do everything. It has 256 random bits, so a plain SHA-256 is as hard to invert as the token is to
guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from nextlabel.campaign.ledger import Store

#: Name of the store's setting that holds the hash.
NAME = "requester_token"
PREFIX = "nl_"


def first_token(store: Store) -> str | None:
    """A first token, to be shown to whoever started the service; None if the store has one already."""
    if store.setting(NAME) is not None:
        return None
    token = _random_token()
    return token if store.first_setting(NAME, hashed(token)) else None


def new_token(store: Store) -> str:
    """A new token; the old one stops working, in running processes within seconds."""
    token = _random_token()
    store.change_setting(NAME, hashed(token))
    return token


def hashed(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, token_hash: str | None) -> bool:
    """Whether a token has the stored hash, compared in constant time."""
    return token_hash is not None and hmac.compare_digest(hashed(token), token_hash)


def _random_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)
