"""Signed tokens for workers' links: they say who may work on what, and are checked without the database.

========= ======================= =================================================================
token     payload                 stands for
========= ======================= =================================================================
``w2.``   [campaign, worker]      one worker of one campaign
``j2.``   [campaign]              any worker of one campaign: a platform adds the worker's id to the address
========= ======================= =================================================================

A token is its kind, a dot, and the payload signed by itsdangerous (HMAC-SHA256, the kind as salt). Pages sign their
cookies with the same secret and kinds of their own. A new secret invalidates all of them.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from itsdangerous import BadSignature, URLSafeTimedSerializer
from itsdangerous.url_safe import URLSafeSerializer

from nextlabel.campaign.commands import checked_worker
from nextlabel.campaign.ledger import Store
from nextlabel.errors import InputError, TokenError

#: Name of the store's setting that holds the secret.
NAME = "link_secret"
WORKER, JOIN = "w2", "j2"
#: The parameters in which platforms pass the worker's id, and the prefix of the worker's name: nobody can join under
#: the name of a worker who has a personal link.
PLATFORMS = {"PROLIFIC_PID": "prolific", "workerId": "mturk", "participant": "participant", "worker": "joined"}
#: Workers' tokens that are remembered as valid: a signature takes longer to check than everything else about a sender.
CACHED_TOKENS = 10_000
#: What Prolific's study address needs at the end of a platform's link.
PROLIFIC = "?PROLIFIC_PID={{%PROLIFIC_PID%}}"
#: Tokens of a service, for logs that must not show them.
TOKEN_PATTERN = r"\b(?:[wj]\d\.[\w.-]+|nl_[\w-]+)"
_PARTICIPANT = re.compile(r"[A-Za-z0-9._@-]{1,128}")
INVALID_LINK = (
    "this link was not issued by this service.",
    "Open it exactly as it was sent to you, or ask for a new one.",
)


class WorkerKey(NamedTuple):
    """One worker of one campaign."""

    campaign: str
    worker: str


class LinkSigner:
    """Signs and reads tokens with one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        #: The worker that a token stands for, None if the token is not valid.
        self.read_worker = lru_cache(CACHED_TOKENS)(self._read_worker)

    @classmethod
    def of(cls, store: Store) -> LinkSigner:
        """With the store's secret, which is created if there is none."""
        if store.setting(NAME) is None:
            store.first_setting(NAME, secrets.token_hex(32))
        secret = store.setting(NAME)
        assert secret is not None
        return cls(bytes.fromhex(secret))

    def worker_token(self, campaign: str, worker: str) -> str:
        """The token of one worker of one campaign."""
        return self.sign(WORKER, [campaign, checked_worker(worker)])

    def join_token(self, campaign: str) -> str:
        """The token for everybody whom a platform sends to one campaign."""
        return self.sign(JOIN, [campaign])

    def _read_worker(self, token: str) -> WorkerKey | None:
        payload = self.read(WORKER, token)
        return None if payload is None else WorkerKey(*payload)

    def read_join(self, token: str) -> str | None:
        """The campaign that a token lets people join, None if the token is not valid."""
        payload = self.read(JOIN, token)
        return None if payload is None else str(payload[0])

    def joined(self, token: str, parameters: Mapping[str, str]) -> str:
        """The worker's token for a join token and the parameters that a platform added to the address."""
        campaign = self.read_join(token)
        if campaign is None:
            raise TokenError(*INVALID_LINK)
        for name, platform in PLATFORMS.items():
            participant = parameters.get(name)
            if participant is not None:
                if _PARTICIPANT.fullmatch(participant) is None:
                    raise InputError(f"{name} is not a worker's id.", "Use 1 to 128 letters, digits and . _ @ -.")
                return self.worker_token(campaign, f"{platform}:{participant}")
        raise InputError("the address does not say who joins.", f"Add one of {', '.join(PLATFORMS)} to it.")

    def sign(self, kind: str, payload: list[str], *, timed: bool = False) -> str:
        """A token of some kind; a timed one also says when it was signed."""
        return f"{kind}.{self._serializer(kind, timed).dumps(payload)}"

    def read(self, kind: str, token: str, *, max_age_s: int | None = None) -> Any:
        """The payload of a token of that kind, None if it is not valid or, where an age is given, too old."""
        found, _, text = token.partition(".")
        if found != kind:
            return None
        serializer = self._serializer(kind, max_age_s is not None)
        try:
            return serializer.loads(text) if max_age_s is None else serializer.loads(text, max_age=max_age_s)
        except BadSignature:
            return None

    def _serializer(self, kind: str, timed: bool) -> Any:
        make = URLSafeTimedSerializer if timed else URLSafeSerializer
        return make(self._secret, salt=kind, signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256})


def new_secret(store: Store) -> None:
    """Invalidate all links; running processes keep the old secret until they are restarted."""
    store.change_setting(NAME, secrets.token_hex(32))


def worker_url(base: str, token: str) -> str:
    """The address of the worker's page."""
    return f"{base}/w/{token}"


def join_url(base: str, token: str) -> str:
    """The address for a platform, which adds one of the parameters of ``PLATFORMS``."""
    return f"{base}/j/{token}"
