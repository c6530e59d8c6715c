"""Who sends a request, and whether they may: decided from the path and the token, before the body is read.

============================================ ===========================================================
path                                         open to
============================================ ===========================================================
healthz, readyz, openapi.json; all outside   everybody
the API
hooks/prolific                               everybody: the request is signed by Prolific
campaigns/{id}/ask, leases/{id}/...          requesters, and workers with a link to that campaign
everything else                              requesters; auditors and viewers may read (below); of campaigns, only
                                             those that the token opens (``service.access``)
============================================ ===========================================================

When a token or a link is revoked, running processes notice within seconds (``service.access``). Text in a path that
cannot be the id of a campaign or a lease is not looked up, and leases of other campaigns do not exist for a worker.

What the holder of a token may do.

============= =====================================================================================
role          may
============= =====================================================================================
administrator do everything, with the campaigns of all owners
requester     do everything with their own campaigns, and make tokens for them
auditor       read everything: campaigns, results, the log, what each worker did; answer the items of an audit
viewer        read how campaigns stand and what they resulted in, but not the log and not who did what
============= =====================================================================================

Links for workers are credentials: only a requester sees them.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from fastapi import Path
from pydantic import AfterValidator
from starlette.types import Scope

from nextlabel.campaign.records import AccessToken, Role, no_campaign
from nextlabel.campaign.rows import PATTERN, campaign_of
from nextlabel.errors import NotAllowedError, NotFoundError, TokenError
from nextlabel.service.access import PREFIX, AccessCache, campaign_in
from nextlabel.service.limits import RequestLimits, address_of
from nextlabel.service.links import LinkSigner

API = "/api/v1"

#: Prolific signs what it sends to its address.
_OPEN = frozenset(
    {"/healthz", "/readyz", f"{API}/healthz", f"{API}/readyz", f"{API}/openapi.json", f"{API}/hooks/prolific"}
)
_STATIC = "/static/"
_METRICS = frozenset({"/metrics", f"{API}/metrics"})
_WORK = re.compile(rf"{API}/(?:campaigns/[^/]+/ask|leases/[^/]+/(?:tell|release|renew|undo))")
_CAMPAIGN = re.compile(PATTERN)
_LEASE = re.compile(rf"{PATTERN}-[0-9]{{1,18}}-[0-9a-f]{{1,40}}")
_HINT = "Send the header 'Authorization: Bearer TOKEN'."
LeaseId = Annotated[str, Path(description="The lease's id")]


class Principal(NamedTuple):
    """The sender of a request: one worker of one campaign, or the holder of a token with a role."""

    campaign: str | None = None
    worker: str | None = None
    role: Role | None = "administrator"
    token: AccessToken | None = None


REQUESTER = Principal()


class Authenticator:
    """Finds the sender of each request."""

    def __init__(
        self, access: AccessCache, links: LinkSigner, limits: RequestLimits, open_metrics: bool = False
    ) -> None:
        self._access, self._links, self._limits = access, links, limits
        self._open = _OPEN | _METRICS if open_metrics else _OPEN
        #: Workers by what they send, as long as the state of access is the one that they were found by.
        self._workers: dict[bytes | None, Principal] = {}
        self._workers_of = access.state

    async def authenticate(self, scope: Scope, authorization: bytes | None) -> Principal | None:
        """The sender, None where no token is needed; raises TokenError, NotAllowedError or TooManyRequestsError."""
        method, path = scope["method"], scope["path"]
        if path in self._open or path.startswith(_STATIC):
            return None
        await self._access.refresh()
        if not path.startswith(API + "/") and path not in _METRICS:
            return None
        principal = await self._principal(scope, authorization)
        await self._access.check(principal.token, method, path)
        if principal.role is None:
            if _WORK.fullmatch(path) is None:
                raise NotAllowedError("a worker's link only allows work on tasks.", "Use the requester's token.")
        elif not may_call(principal.role, method, path.removeprefix(API)):
            raise NotAllowedError(
                f"a token of the role {principal.role} does not allow this.", "Use the token of a requester."
            )
        return principal

    async def note(self, scope: Scope, token: AccessToken, status: int, created: str) -> None:
        """Keep who changed what, but for the work on tasks, which is in the campaign's log."""
        path = scope["path"]
        if status >= 400 or scope["method"] in ("GET", "HEAD") or _WORK.fullmatch(path):
            return
        route = str(getattr(scope.get("route"), "path", path)).replace("/{campaign}", "")
        await self._access.note(token, campaign_in(path) or created, f"{scope['method']} {route}")

    async def _principal(self, scope: Scope, authorization: bytes | None) -> Principal:
        if self._access.state is not self._workers_of:
            self._workers, self._workers_of = {}, self._access.state
        if (known_worker := self._workers.get(authorization)) is not None:
            return known_worker
        scheme, _, token = (authorization or b"").decode("latin-1").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise TokenError("the request has no token.", _HINT)
        if not token.startswith(PREFIX):
            key = self._links.read_worker(token)
            if key is None:
                self._limits.failed_sign_in(address_of(scope))
                raise TokenError("the token was not issued by this service, or was revoked.", _HINT)
            self._workers[authorization] = worker = Principal(key.campaign, key.worker, role=None)
            return worker
        known = await self._access.find_token(token)
        if known is None:
            self._limits.failed_sign_in(address_of(scope))
            raise TokenError("the token is unknown or was revoked.", "Create a new one with nextlabel token create.")
        return Principal(role=known.role, token=known)


def campaign_id(text: str) -> str:
    """The id in a path, if a campaign can have it."""
    if _CAMPAIGN.fullmatch(text) is None:
        raise no_campaign(text)
    return text


CampaignId = Annotated[str, Path(description="The campaign's id"), AfterValidator(campaign_id)]


def campaign_id_of_lease(lease: str, principal: Principal) -> str:
    """The campaign of a lease; for a worker, leases of other campaigns do not exist."""
    campaign = campaign_of(lease)
    if _LEASE.fullmatch(lease) is None or (principal.campaign is not None and principal.campaign != campaign):
        raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
    return campaign


class Rights(NamedTuple):
    """What a role includes; ``sees_workers`` covers the log too, in which workers are named."""

    changes: bool
    sees_workers: bool
    administers: bool = False


ROLES: dict[Role, Rights] = {
    "administrator": Rights(changes=True, sees_workers=True, administers=True),
    "requester": Rights(changes=True, sees_workers=True),
    "auditor": Rights(changes=False, sees_workers=True),
    "viewer": Rights(changes=False, sees_workers=False),
}

#: Paths of the API, without its prefix, that a viewer may read.
_AUDIT = re.compile(r"/campaigns/[^/]+/(?:audit|guarantee)/answers")
_TOKENS, _OWNER = re.compile(r"/tokens(?:/.*)?"), re.compile(r"/campaigns/[^/]+/owner")
_VIEWABLE = re.compile(
    r"/(?:campaigns(?:/[^/]+(?:/(?:certificate|results|guarantee(?:/record)?|imports(?:/[^/]+)?))?)?|metrics)"
)


def may_call(role: Role, method: str, path: str) -> bool:
    """Whether a role may send this request to the API; ``path`` is without the API's prefix."""
    rights = ROLES[role]
    if rights.changes:
        return rights.administers or _OWNER.fullmatch(path) is None
    if _TOKENS.fullmatch(path) is not None:
        return False
    if rights.sees_workers and method == "POST" and _AUDIT.fullmatch(path) is not None:
        return True
    return method in ("GET", "HEAD") and (rights.sees_workers or _VIEWABLE.fullmatch(path) is not None)
