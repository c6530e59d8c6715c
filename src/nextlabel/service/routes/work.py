"""What workers do: ask, tell, release, renew, undo. Called most often, hence thin and answered with ready JSON.

The short way to the routes of workers, which are called most: past FastAPI's layers, straight to the endpoints.

The routes are FastAPI's, which documents them and would find them too, but needs longer to find and call them
(docs/decisions/0022).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease, NoTask, Receipt
from nextlabel.errors import InputError, NotAllowedError, TablesPendingError
from nextlabel.service.app_state import AppState, app_state
from nextlabel.service.auth import API, CampaignId, LeaseId, campaign_id_of_lease
from nextlabel.service.middleware import principal_of, request_context
from nextlabel.service.models import AskRequest, AskResponse, ReceiptResponse, ReleaseRequest, TellRequest, to_json
from nextlabel.service.openapi import body_of, problems

router = APIRouter(tags=["work"])

#: Seconds that an ask waits for tables that are being computed, and after which the worker may ask again.
TABLES_WAIT_S, RETRY_AFTER_S = 20.0, 2.0
_ASK: dict[int | str, dict[str, Any]] = {200: {"model": AskResponse}, **problems(404, 409)}
_TELL: dict[int | str, dict[str, Any]] = {200: {"model": ReceiptResponse}, **problems(404, 409)}


@router.post("/campaigns/{campaign}/ask", responses=_ASK, openapi_extra=body_of(AskRequest, False), response_model=None)
async def ask(campaign: CampaignId, request: Request) -> Response:
    """Lease a task to a worker: the one they hold, or the one where a label is worth most; or say why there is none."""
    principal, state = principal_of(request), app_state(request)
    if principal.campaign not in (None, campaign):
        raise NotAllowedError("the link is for another campaign.", "Ask for a link to this one.")
    worker = AskRequest.parse(await request.body()).worker
    if principal.worker is not None:
        worker = principal.worker
    elif worker is None:
        raise InputError("the ask does not name a worker.", 'Send {"worker": "ann"}, or use a worker\'s own token.')
    request_context(request).worker = worker
    reply = await _ask(state, campaign, worker)
    state.metrics.asks.labels("leased" if isinstance(reply, Lease) else reply.reason).inc()
    return ask_response(reply)


async def _ask(state: AppState, id: str, worker: str) -> Lease | NoTask:
    """The reply; while tables are computed, only this worker waits."""
    for _ in range(3):
        try:
            return await state.command_queue.run(id, lambda commands: commands.ask(worker))
        except TablesPendingError as pending:
            try:
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(pending.future)), TABLES_WAIT_S)
            except TimeoutError:
                break
    return NoTask(id, "preparing", RETRY_AFTER_S)


@router.post("/leases/{lease}/tell", responses=_TELL, openapi_extra=body_of(TellRequest, True), response_model=None)
async def tell(lease: LeaseId, request: Request) -> Response:
    """Answer a lease; repeating an answer changes nothing, a late one is kept and counts if the budget allows it."""
    campaign_id_of_lease(lease, principal_of(request))
    body = TellRequest.parse(await request.body())
    told = await _run(lease, request, lambda commands, who: commands.tell(lease, body.label, who, body.comment), False)
    app_state(request).metrics.tells.labels(told.status).inc()
    return receipt_response(told)


@router.post(
    "/leases/{lease}/release", responses=_TELL, openapi_extra=body_of(ReleaseRequest, False), response_model=None
)
async def release(lease: LeaseId, request: Request) -> Response:
    """Release a task to other workers; the same worker does not get it again."""
    comment = ReleaseRequest.parse(await request.body()).comment
    return receipt_response(await _run(lease, request, lambda commands, who: commands.release(lease, who, comment)))


@router.post("/leases/{lease}/renew", responses=_TELL, response_model=None)
async def renew(lease: LeaseId, request: Request) -> Response:
    """Extend a lease that has not run out."""
    return receipt_response(await _run(lease, request, lambda commands, who: commands.renew(lease, who)))


@router.post("/leases/{lease}/undo", responses=_TELL, response_model=None)
async def undo(lease: LeaseId, request: Request) -> Response:
    """Take an answer back while its lease would still run."""
    return receipt_response(await _run(lease, request, lambda commands, who: commands.undo(lease, who)))


async def _run(
    lease: str, request: Request, command: Callable[[Commands, str | None], Receipt], limited: bool = True
) -> Receipt:
    """A command of the worker who sends it, None for a requester; of those that buy nothing not one too many."""
    principal, state = principal_of(request), app_state(request)
    campaign = campaign_id_of_lease(lease, principal)
    if limited and principal.worker is not None:
        state.limits.check_move(campaign, principal.worker)
    return await state.command_queue.run(campaign, lambda commands: command(commands, principal.worker))


def ask_response(reply: Lease | NoTask) -> Response:
    """The response to an ask."""
    if isinstance(reply, NoTask):
        body: dict[str, Any] = {
            "lease": None, "reason": reply.reason, "detail": reply.sentence, "retry_after": reply.retry_after,
        }  # fmt: skip
        return JsonReply(body, [] if reply.retry_after is None else [(b"retry-after", b"%d" % int(reply.retry_after))])
    return JsonReply({"lease": to_json(reply), "reason": None, "detail": None, "retry_after": None})


def receipt_response(told: Receipt) -> Response:
    """The response to a command on a lease."""
    return JsonReply(to_json(told))


class WorkRequest(Request):
    """A request whose body is read in one go: Starlette's own way is for bodies of any size."""

    async def body(self) -> bytes:
        """The whole body."""
        body, more = b"", True
        while more:
            message = await self.receive()
            if message["type"] != "http.request":
                raise ClientDisconnect
            body, more = body + message.get("body", b""), message.get("more_body", False)
        return body


class JsonReply(Response):
    """A table as JSON, with further headers: a response without what these routes do not use."""

    def __init__(self, value: dict[str, Any], headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status_code, self.background, self.body = 200, None, json.dumps(value).encode()
        size = b"%d" % len(self.body)
        self.raw_headers = [(b"content-length", size), (b"content-type", b"application/json"), *headers]


class WorkRouter:
    """Calls the endpoints of a router whose paths have one parameter."""

    def __init__(self, router: APIRouter) -> None:
        self._routes = [route for route in router.routes if isinstance(route, APIRoute)]

    def serves(self, scope: Scope) -> bool:
        """Whether a request is for one of the routes, which it then names."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(API):
            return False
        path = scope["path"][len(API) :]
        for route in self._routes:
            if match := route.path_regex.match(path):
                scope["route"], scope["path_params"] = route, match.groupdict()
                return True
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that is for one of the routes."""
        (id,) = scope["path_params"].values()
        response = await scope["route"].endpoint(id, WorkRequest(scope, receive))
        await response(scope, receive, send)
