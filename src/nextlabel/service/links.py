"""Signed tokens for workers' links, which are checked without the database, and the key that signs them.

========= ============================ ============================================================
token     payload                      stands for
========= ============================ ============================================================
``w3.``   [campaign, worker, version]  one worker of one campaign
``j3.``   [campaign, version]          any worker of one campaign: a platform adds the worker's id to the address
``a3.``   [campaign, end, version]     an expert, who answers the first ``end`` items that were drawn for an audit
========= ============================ ============================================================

A token is its kind, a dot, and the payload signed by itsdangerous (HMAC-SHA256, the kind as salt). The key is made of
two parts: the key file, which is not in the database, and a secret in the database, which a command can replace. Both
are needed to make a link. A link whose version is not the current one has been revoked. Pages sign their cookies in
the same way with kinds of their own.

The key that signs workers' links and cookies: in a file of its own, so that a copy of the database opens nothing.

================== =================================================================================
store              the key's place, unless ``NEXTLABEL_KEY_FILE`` names another
================== =================================================================================
SQLite             beside the database: ``labels.db.key``
PostgreSQL         ``~/.config/nextlabel/``, one file per database; machines that serve the same
                   database need the same file
memory             the process, with the store
================== =================================================================================

The file is made at the first start, for its owner alone. The database has its fingerprint, so that another key is
refused until ``rotate_secrets``, after which all links have to be made again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from itsdangerous import BadSignature
from itsdangerous.url_safe import URLSafeSerializer

from nextlabel.campaign.commands import checked_worker, coming_worker
from nextlabel.campaign.records import AUDIT_LINK, JOIN_LINK
from nextlabel.campaign.rows import link_name
from nextlabel.errors import InputError, TokenError
from nextlabel.integrations.platforms import PLATFORMS
from nextlabel.service.access import FINGERPRINT, SECRET, AccessState, read_access
from nextlabel.service.settings import PREFIX
from nextlabel.store.sql import SqlStore

WORKER, JOIN, AUDIT = "w3", "j3", "a3"
#: The links that several people have, each with one version for all of them.
SHARED = {JOIN: JOIN_LINK, AUDIT: AUDIT_LINK}

#: Workers' tokens that are remembered as valid: a signature takes longer to check than everything else about a sender.
CACHED_TOKENS = 10_000

_PARTICIPANT = re.compile(r"[A-Za-z0-9._@-]{1,128}")

INVALID_LINK = (
    "this link was not issued by this service, or is no longer valid.",
    "Open it exactly as it was sent to you, or ask for a new one.",
)
VARIABLE = f"{PREFIX}KEY_FILE"

#: Characters that a key must have at least.
SHORTEST = 32

#: Name of the setting that holds the key of a store in memory.
IN_MEMORY = "key"


class WorkerKey(NamedTuple):
    """One worker of one campaign."""

    campaign: str
    worker: str


class AuditKey(NamedTuple):
    """An expert who answers the first ``end`` items drawn for a campaign's audit; 0: those of its guarantee."""

    campaign: str
    end: int


class LinkSigner:
    """Signs and reads tokens with a key and the current state of access, which ``state`` gives."""

    def __init__(self, key: bytes, state: Callable[[], AccessState] = AccessState) -> None:
        self._key, self._state = key, state
        self._payload = lru_cache(CACHED_TOKENS)(self._verified)

    @classmethod
    def of(cls, store: SqlStore, key_file: str = "") -> LinkSigner:
        """With the store's key and its state now; both are made if there are none."""
        now = read_access(store)
        return cls(signing_key(store, key_file), lambda: now)

    def worker_token(self, campaign: str, worker: str) -> str:
        """The token of one worker of one campaign."""
        return self._current(WORKER, campaign, coming_worker(worker))

    def join_token(self, campaign: str) -> str:
        """The token for everybody whom a platform sends to one campaign."""
        return self._current(JOIN, campaign)

    def audit_token(self, campaign: str, end: int) -> str:
        """The token of an expert for the first ``end`` items that were drawn."""
        return self._current(AUDIT, campaign, end)

    def _current(self, kind: str, *said: Any) -> str:
        return self.sign(kind, [*said, self.version(said[0], SHARED.get(kind, said[-1]))])

    def version(self, campaign: str, worker: str) -> int:
        """The current version of a worker's link, or of the platforms' link (``JOIN_LINK``)."""
        state = self._state()
        return state.versions.get((campaign, link_name(bytes.fromhex(state.secret), campaign, worker)), 0)

    def read_worker(self, token: str) -> WorkerKey | None:
        """The worker that a token stands for, None if it is not valid."""
        found = self._read_current(WORKER, token)
        return None if found is None else WorkerKey(*found)

    def read_join(self, token: str) -> str | None:
        """The campaign that a token lets people join, None if the token is not valid."""
        found = self._read_current(JOIN, token)
        return None if found is None else str(found[0])

    def read_audit(self, token: str) -> AuditKey | None:
        """What an expert may answer by a token, None if it is not valid."""
        found = self._read_current(AUDIT, token)
        return None if found is None else AuditKey(*found)

    def _read_current(self, kind: str, token: str) -> list[Any] | None:
        """What a token says, without its version; None if that is not the current one."""
        payload = self.read(kind, token)
        if payload is None:
            return None
        *said, version = payload
        return said if version == self.version(said[0], SHARED.get(kind, said[-1])) else None

    def joined(self, token: str, parameters: Mapping[str, str]) -> str:
        """The worker's token for a join token and the parameters that a platform added to the address."""
        campaign = self.read_join(token)
        if campaign is None:
            raise TokenError(*INVALID_LINK)
        for platform in PLATFORMS.values():
            participant = parameters.get(platform.worker)
            if participant is not None:
                if not is_participant(participant):
                    what = f"{platform.worker} is not a worker's id."
                    raise InputError(what, "Use 1 to 128 letters, digits and . _ @ -.")
                return self.worker_token(campaign, platform.prefix + participant)
        known = ", ".join(platform.worker for platform in PLATFORMS.values())
        raise InputError("the address does not say who joins.", f"Add one of {known} to it.")

    def sign(self, kind: str, payload: list[Any]) -> str:
        """A token of some kind."""
        return f"{kind}.{self._serializer(self._state().secret, kind).dumps(payload)}"

    def read(self, kind: str, token: str) -> Any:
        """The payload of a token of that kind, None if it is not valid."""
        return self._payload(self._state().secret, kind, token)

    def _verified(self, secret: str, kind: str, token: str) -> Any:
        found, _, text = token.partition(".")
        if found != kind:
            return None
        try:
            return self._serializer(secret, kind).loads(text)
        except BadSignature:
            return None

    def _serializer(self, secret: str, kind: str) -> URLSafeSerializer:
        key = hmac.digest(self._key, secret.encode(), "sha256")
        return URLSafeSerializer(
            key, salt=kind, signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256}
        )


def is_participant(text: str) -> bool:
    """Whether a text can be an id that a platform has given."""
    return _PARTICIPANT.fullmatch(text) is not None


def link_url(base: str, token: str, page: str = "") -> str:
    """The address that a token opens: a worker's page, that of a platform, which adds the worker's id, or an audit's.

    ``page`` is "f" for an external question of Mechanical Turk, which shows the platform's page in a frame.
    """
    return f"{base}/{page or token[0]}/{token}"


def revoke_links(store: SqlStore, campaign: str, workers: Iterable[str], join: bool, audit: bool = False) -> None:
    """End the links of workers and, with ``join``, the platforms' link, with ``audit`` those of experts.

    Running processes notice within seconds.
    """
    secret = store.get(SECRET) or b""
    names = [link_name(secret, campaign, checked_worker(worker)) for worker in workers]
    for name in [*names, *([JOIN_LINK] if join else []), *([AUDIT_LINK] if audit else [])]:
        store.records.revoke_link(campaign, name)


def signing_key(store: SqlStore, key_file: str = "") -> bytes:
    """The key of a store, made at its first use; later another one is refused, by its fingerprint in the database."""
    if store.in_memory and not key_file:
        store.put(IN_MEMORY, secrets.token_bytes(32))
        return store.get(IN_MEMORY) or b""
    path, known = Path(key_file) if key_file else default_path(store), store.get(FINGERPRINT)
    key = b"" if known and not path.exists() else _read_or_make(path)
    mine = hmac.digest(key, FINGERPRINT.encode(), "sha256")
    if not known:
        store.put(FINGERPRINT, mine, replace=True)
    elif not hmac.compare_digest(known, mine):
        raise InputError(
            f"the key file {path} {'is not that of this database' if key else 'is missing'}, without which links and "
            "webhooks' secrets are not valid.",
            f"Restore it from a backup or name its place in {VARIABLE}; if it is lost, nextlabel token revoke --links "
            "lets another one be made, and links and secrets are new.",
        )
    return key


def default_path(store: SqlStore) -> Path:
    """Where the key of a database is."""
    url = store.engine.url
    if store.engine.dialect.name == "sqlite":
        return Path(f"{url.database}.key").absolute()
    place = f"{url.host or url.query.get('host', '')}:{url.port or ''}/{url.database}"
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "nextlabel"
    with suppress(OSError):  # a folder that cannot be made is reported with the file below
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(place.encode()).hexdigest()[:16]}.key"


def _read_or_make(path: Path) -> bytes:
    try:
        if not path.exists():
            _make(path)
        mode, key = path.stat().st_mode, path.read_bytes().strip()
    except OSError as error:
        raise InputError(
            f"the key file {path} cannot be read or made: {(error.strerror or str(error)).lower()}.",
            f"Name another one in {VARIABLE}.",
        ) from None
    if os.name == "posix" and mode & 0o007:
        raise InputError(f"the key file {path} can be read by everybody on this machine.", f"Run: chmod 600 {path}.")
    if len(key) < SHORTEST:
        raise InputError(
            f"the key file {path} has {len(key)} characters, and a key has at least {SHORTEST}.",
            "Restore it from a backup, or delete it and run nextlabel token revoke --links.",
        )
    return key


def _make(path: Path) -> None:
    """Make the file whole or not at all; of several processes, the first one wins."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".nextlabel-key-")  # for its owner alone
    try:
        with os.fdopen(number, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
