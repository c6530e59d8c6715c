"""Workers' links: tokens that say who may work on what, signed, so that no database is asked.

========= ======================= =================================================================
token     signed text             is
========= ======================= =================================================================
``w1.``   [campaign, worker]      one worker of one campaign
``j1.``   [campaign]              any worker of one campaign; a platform adds the worker's id to the address
========= ======================= =================================================================

A token is kind and version, text in base64url and HMAC-SHA256 of both, with dots between. Another secret
ends all links.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from nextlabel.campaign.commands import checked_worker
from nextlabel.campaign.ledger import Store
from nextlabel.errors import InputError
from nextlabel.service.problem_details import TokenError

#: Name of the setting that holds the secret.
NAME = "link_secret"
WORKER, JOIN = "w1", "j1"
#: Parameters in which platforms put the worker's id, and what the worker is then called: nobody can join as a worker
#: who has a link of their own.
PLATFORMS = {"PROLIFIC_PID": "prolific", "workerId": "mturk", "participant": "participant", "worker": "joined"}
#: Tokens that were found to be good are remembered, so many at most.
MOST_KNOWN = 10_000
_PARTICIPANT = re.compile(r"[A-Za-z0-9._@-]{1,128}")
_NO_LINK = "the link is not one of this service."
_HINT = "Open it again as it was sent to you, or ask for a new one."


class WorkerKey(NamedTuple):
    """One worker of one campaign."""

    campaign: str
    worker: str


class Links:
    """Tokens made and read with one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[str, WorkerKey] = {}

    @classmethod
    def of(cls, store: Store) -> Links:
        """With the store's secret, made if it has none."""
        if store.setting(NAME) is None:
            store.first_setting(NAME, secrets.token_hex(32))
        kept = store.setting(NAME)
        assert kept is not None
        return cls(bytes.fromhex(kept))

    def worker_token(self, campaign: str, worker: str) -> str:
        """For one worker of one campaign."""
        return self.sign(WORKER, [campaign, checked_worker(worker)])

    def join_token(self, campaign: str) -> str:
        """For whoever a platform sends to one campaign."""
        return self.sign(JOIN, [campaign])

    def read_worker(self, token: str) -> WorkerKey | None:
        """Who a token stands for, None if it is not one of ours."""
        key = self._known.get(token)
        if key is None:
            said = self.read(WORKER, token)
            if said is None:
                return None
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            key = self._known[token] = WorkerKey(*said)
        return key

    def read_join(self, token: str) -> str | None:
        """The campaign that may be joined, None if the token is not one of ours."""
        said = self.read(JOIN, token)
        return None if said is None else str(said[0])

    def joined(self, token: str, parameters: Mapping[str, str]) -> str:
        """The worker's token for a join token and the parameters that a platform put into the address."""
        campaign = self.read_join(token)
        if campaign is None:
            raise TokenError(_NO_LINK, _HINT)
        for name, platform in PLATFORMS.items():
            given = parameters.get(name)
            if given is not None:
                if _PARTICIPANT.fullmatch(given) is None:
                    raise InputError(f"{name} is not a worker's id.", "Use 1 to 128 letters, digits and . _ @ -.")
                return self.worker_token(campaign, f"{platform}:{given}")
        raise InputError("the address does not say who joins.", f"Add one of {', '.join(PLATFORMS)} to it.")

    def sign(self, kind: str, said: list[str]) -> str:
        """A token of some kind that says this."""
        text = f"{kind}.{_encoded(json.dumps(said, separators=(',', ':')).encode())}"
        return f"{text}.{_encoded(self._mac(text))}"

    def read(self, kind: str, token: str) -> Any:
        """What a token of that kind says, None if it is not one of ours."""
        text, _, mac = token.rpartition(".")
        if not text.startswith(kind + ".") or not token.isascii():
            return None
        if not hmac.compare_digest(_encoded(self._mac(text)), mac):
            return None
        try:
            return json.loads(_decoded(text.partition(".")[2]))
        except (binascii.Error, ValueError):
            return None

    def _mac(self, text: str) -> bytes:
        return hmac.digest(self._secret, text.encode(), hashlib.sha256)


def new_secret(store: Store) -> None:
    """End all links; processes that run keep the old secret until they are started again."""
    store.change_setting(NAME, secrets.token_hex(32))


def worker_url(base: str, token: str) -> str:
    """The address of the worker's page."""
    return f"{base}/w/{token}"


def join_url(base: str, token: str) -> str:
    """The address that a platform gets; it adds a parameter of ``PLATFORMS``."""
    return f"{base}/j/{token}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
