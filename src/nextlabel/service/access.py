"""Who may use the service: tokens with a name, a role and an owner, and the copy of them in each process's memory.

A campaign belongs to whoever created it. A token opens the campaigns of its owner alone, or those that it is limited
to; to it, the others do not exist. Tokens of administrators, and those that an administrator makes for no owner, open
all. ``AccessCache.check`` sees every request that names a campaign, to the API and to the dashboard.

Requests are checked against this copy, in memory. A token or a link that is revoked therefore stops working within
``CACHE_S`` seconds in every process. A token that is unknown may be new: it is looked for in the store, for all unknown
tokens together once in ``MISMATCH_CACHE_S`` seconds.

Each token is shown once, and is stored as a hash.

A token has 256 random bits, so a plain SHA-256 is as hard to invert as the token is to guess.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from anyio import to_thread

from nextlabel.campaign.records import AccessToken, Activity, Role, Session, no_campaign
from nextlabel.campaign.rows import LINK_SECRET, PATTERN, CampaignRow, campaign_of
from nextlabel.errors import ConflictError, InputError, NextlabelError, NotAllowedError, NotFoundError
from nextlabel.store.sql import SqlStore

CACHE_S, MISMATCH_CACHE_S = 2.0, 1.0

#: Names of the store's settings that hold the database's part of the links' key, and the fingerprint of the other one.
SECRET, FINGERPRINT = LINK_SECRET, "key_fingerprint"

#: Name of the token that the service makes at its first start.
FIRST = "administrator"
PREFIX = "nl_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
#: Addresses that name a campaign, or a lease of one.
_CAMPAIGN = re.compile(r"(?:/api/v1)?/(campaigns|leases)/([^/]+)(?:/.*)?", re.DOTALL)
_log = logging.getLogger("nextlabel.service")


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
    tokens = {token.hash: token for token in store.records.find(AccessToken)}
    return AccessState((store.get(SECRET) or b"").hex(), store.records.link_versions(), tokens)


def rotate_secrets(store: SqlStore) -> None:
    """Invalidate all links and end all sessions, of workers and of browsers at the dashboard; tokens stay.

    Another key file may be used from now on.
    """
    store.put(FINGERPRINT, b"", replace=True)
    store.put(SECRET, secrets.token_bytes(32), replace=True)
    store.records.remove(Session)


class AccessCache:
    """The newest state that this process has read."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._read_at = self._looked_at = float("-inf")
        self._owners: dict[str, str] = {}  # of the state below
        self.state = self.read()

    def read(self) -> AccessState:
        """Read the state from the store."""
        before, self._read_at = self._read_at, time.monotonic()  # meanwhile, others use the state that is there
        try:
            self.state, self._owners = read_access(self._store), {}
        except BaseException:
            self._read_at = before
            raise
        return self.state

    async def refresh(self) -> None:
        """Read the state again if it is old."""
        if time.monotonic() - self._read_at >= CACHE_S:
            await to_thread.run_sync(self.read)

    async def find_token(self, token: str) -> AccessToken | None:
        """The record of a token, None if there is none."""
        hash = hashed(token)
        if hash not in self.state.tokens and time.monotonic() - self._looked_at >= MISMATCH_CACHE_S:
            self._looked_at = time.monotonic()
            await to_thread.run_sync(self.read)
        return self.state.tokens.get(hash)

    async def check(self, token: AccessToken | None, method: str, path: str) -> None:
        """Refuse a request to a campaign that a token does not open, or with a limited one to change anything else."""
        named = campaign_in(path)
        if token is None or not (token.owner or token.campaigns):
            return
        if named:
            if named not in self._owners and token.owner:
                self._owners[named] = await to_thread.run_sync(self._store.records.owner, named)
            if not _opens(token, named, self._owners):
                raise no_campaign(named)
        elif token.campaigns and method not in ("GET", "HEAD"):
            raise NotAllowedError(
                f"the token {token.name} is limited to {', '.join(token.campaigns)}.", "Use one without that limit."
            )

    def opened(self, token: AccessToken | None, rows: Iterable[CampaignRow]) -> list[CampaignRow]:
        """Those of some campaigns that a token opens."""
        if token is None or not (token.owner or token.campaigns):
            return list(rows)
        owners = self._store.records.owners()
        return [row for row in rows if _opens(token, row.id, owners)]

    def activity(self, token: AccessToken | None, campaign: str = "", limit: int = 200) -> list[Activity]:
        """What was done to the campaigns that a token opens, newest first."""
        owner, within = ("", ()) if token is None else (token.owner, token.campaigns)
        if campaign and within and campaign not in within:
            return []
        return self._store.records.activity(owner, within, campaign, limit)

    async def note(self, token: AccessToken, campaign: str, request: str) -> None:
        """Keep who changed what."""
        action = Activity(time.time(), token.name, token.owner, campaign, request)
        try:
            await to_thread.run_sync(self._store.records.add, action)
        except NextlabelError as error:
            _log.warning("%s by %s was not noted", request, token.name, exc_info=error)


def campaign_in(path: str) -> str:
    """The campaign that an address names; empty if it names none."""
    found = _CAMPAIGN.fullmatch(path)
    return "" if found is None else campaign_of(found[2]) if found[1] == "leases" else found[2]


def _opens(token: AccessToken, campaign: str, owners: Mapping[str, str]) -> bool:
    own = not token.owner or owners.get(campaign) == token.owner
    return own and (not token.campaigns or campaign in token.campaigns)


def first_token(store: SqlStore) -> str | None:
    """A first token, to be shown to whoever started the service; None if the store has one already."""
    return None if store.records.find(AccessToken) else create_token(store, FIRST, "administrator")


def create_token(
    store: SqlStore,
    name: str = FIRST,
    role: Role = "administrator",
    owner: str | None = None,
    campaigns: Collection[str] = (),
    replace: bool = False,
    by: AccessToken | None = None,
) -> str:
    """A further token, whose name must be new, or which replaces the one of that name within seconds.

    A requester is an owner by the token's name, unless ``owner`` is another one; the others see all owners' campaigns.
    Administrators make any; ``by`` a requester one is made for their own campaigns.
    """
    if by is not None and by.owner:
        if role == "administrator" or (owner or by.owner) != by.owner:
            raise NotAllowedError(
                "a requester makes tokens for their own campaigns alone.", "Ask an administrator for others."
            )
        owner = by.owner
    if owner and role == "administrator":
        raise InputError("an administrator's token is for all owners.", "Leave the owner out, or choose another role.")
    for campaign in campaigns:
        if re.fullmatch(PATTERN, campaign) is None:
            raise no_campaign(campaign)
    token, own = PREFIX + secrets.token_urlsafe(32), owner or (name if role == "requester" else "")
    own, limits = own and checked_name(own), tuple(sorted(set(campaigns)))
    record = AccessToken(checked_name(name), role, hashed(token), time.time(), own, limits)
    if not store.records.add(record, replace):
        raise ConflictError(f"there is a token {name!r} already.", "Choose another name, or revoke that token first.")
    return token


def tokens_of(store: SqlStore, by: AccessToken | None) -> list[AccessToken]:
    """The tokens that somebody may see and end: an administrator all, a requester those for their own campaigns."""
    return [one for one in store.records.find(AccessToken) if by is None or by.owner in ("", one.owner)]


def revoke_token(store: SqlStore, name: str, by: AccessToken | None = None) -> None:
    """End a token, and with it the sessions of browsers that signed in with it."""
    if name not in {one.name for one in tokens_of(store, by)} or not store.records.remove(AccessToken, name=name):
        raise NotFoundError(f"there is no token {name[:64]!r}.", "nextlabel token list shows the names.")


def give_campaign(store: SqlStore, campaign: str, owner: str) -> None:
    """Hand a campaign over to an owner, or with an empty name to nobody."""
    store.row(campaign)
    store.records.set_owner(campaign, checked_name(owner) if owner else "")


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
