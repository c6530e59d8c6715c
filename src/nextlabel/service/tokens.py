"""Tokens for requesters, auditors and viewers: each has a name, is shown once, and is stored as a hash.

A token has 256 random bits, so a plain SHA-256 is as hard to invert as the token is to guess.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time

from nextlabel.campaign.access import AccessToken, Role
from nextlabel.campaign.ledger import Store
from nextlabel.errors import ConflictError, InputError, NotFoundError

#: Name of the token that the service makes at its first start.
FIRST = "requester"
PREFIX = "nl_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


def first_token(store: Store) -> str | None:
    """A first token, to be shown to whoever started the service; None if the store has one already."""
    if store.access.tokens():
        return None
    token = _random_token()
    return token if store.access.save_token(_record(FIRST, "requester", token)) else None


def new_token(store: Store, name: str = FIRST, role: Role = "requester") -> str:
    """A token that replaces the one of that name, which stops working in running processes within seconds."""
    token = _random_token()
    store.access.save_token(_record(checked_name(name), role, token), replace=True)
    return token


def create_token(store: Store, name: str, role: Role) -> str:
    """A further token; its name must be new."""
    token = _random_token()
    if not store.access.save_token(_record(checked_name(name), role, token)):
        raise ConflictError(f"there is a token {name!r} already.", "Choose another name, or revoke that token first.")
    return token


def revoke_token(store: Store, name: str) -> None:
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
