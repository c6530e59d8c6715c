"""What workers do: ask, tell, release, renew, undo. Called most, hence thin and answered with ready JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease, NoTask, Told
from nextlabel.errors import InputError
from nextlabel.service.middleware import context_of, sender_of
from nextlabel.service.openapi import body_of, problems
from nextlabel.service.path_names import CampaignName, LeaseName, campaign_for, campaign_of_lease
from nextlabel.service.pending_tables import TablesPendingError
from nextlabel.service.request_models import Answer, WhoAsks
from nextlabel.service.response_models import AskReply, ToldReply
from nextlabel.service.services import Services, services_of
from nextlabel.service.times import iso, iso_or_none

router = APIRouter(tags=["work"])
#: Seconds that an ask waits for tables that are being worked out, and after which it is worth asking again.
TABLES_S, PREPARING_S = 20.0, 2.0
_ASK: dict[int | str, dict[str, Any]] = {200: {"model": AskReply}, **problems(404, 409)}
_TOLD: dict[int | str, dict[str, Any]] = {200: {"model": ToldReply}, **problems(404, 409)}


@router.post("/campaigns/{campaign}/ask", responses=_ASK, openapi_extra=body_of(WhoAsks, False), response_model=None)
async def ask(campaign: CampaignName, request: Request) -> Response:
    """A task for a worker: the one that is out, or the one where a label is worth most; else the reason."""
    who, services = sender_of(request), services_of(request)
    id = campaign_for(campaign, who)
    worker = WhoAsks.read(await request.body()).worker
    if who.worker is not None:
        worker = who.worker
    elif worker is None:
        raise InputError("the ask does not name a worker.", 'Send {"worker": "ann"}, or use a worker\'s own token.')
    context_of(request).worker = worker
    reply = await _asked(services, id, worker)
    services.tally.asked("leased" if isinstance(reply, Lease) else reply.reason)
    return ask_response(reply)


async def _asked(services: Services, id: str, worker: str) -> Lease | NoTask:
    """An ask; only this worker waits while tables are worked out."""
    for _ in range(3):
        try:
            return await services.writer.run(id, lambda commands: commands.ask(worker))
        except TablesPendingError as pending:
            try:
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(pending.future)), TABLES_S)
            except TimeoutError:
                break
    return NoTask(id, "preparing", PREPARING_S)


@router.post("/leases/{lease}/tell", responses=_TOLD, openapi_extra=body_of(Answer, True), response_model=None)
async def tell(lease: LeaseName, request: Request) -> Response:
    """The answer to a lease; saying it again changes nothing, a late one is kept and counted if the budget allows."""
    who = sender_of(request)
    campaign_of_lease(lease, who)
    label = Answer.read(await request.body()).label
    told = await _run(lease, request, lambda commands: commands.tell(lease, label, who.worker))
    services_of(request).tally.told(told.status)
    return told_response(told)


@router.post("/leases/{lease}/release", responses=_TOLD, response_model=None)
async def release(lease: LeaseName, request: Request) -> Response:
    """Pass a task on; it does not come back to the same worker."""
    worker = sender_of(request).worker
    return told_response(await _run(lease, request, lambda commands: commands.release(lease, worker)))


@router.post("/leases/{lease}/renew", responses=_TOLD, response_model=None)
async def renew(lease: LeaseName, request: Request) -> Response:
    """More time for a lease that is out."""
    worker = sender_of(request).worker
    return told_response(await _run(lease, request, lambda commands: commands.renew(lease, worker)))


@router.post("/leases/{lease}/undo", responses=_TOLD, response_model=None)
async def undo(lease: LeaseName, request: Request) -> Response:
    """Take an answer back while its lease would still be out."""
    worker = sender_of(request).worker
    return told_response(await _run(lease, request, lambda commands: commands.undo(lease, worker)))


async def _run(lease: str, request: Request, command: Callable[[Commands], Told]) -> Told:
    campaign = campaign_of_lease(lease, sender_of(request))
    return await services_of(request).writer.run(campaign, command)


def ask_response(reply: Lease | NoTask) -> Response:
    """What an ask is answered with."""
    if isinstance(reply, NoTask):
        body: dict[str, Any] = {
            "lease": None, "reason": reply.reason, "detail": reply.sentence, "retry_after": reply.retry_after,
        }  # fmt: skip
        headers = {} if reply.retry_after is None else {"retry-after": str(int(reply.retry_after))}
        return Response(json.dumps(body), headers=headers, media_type="application/json")
    lease = {
        "id": reply.id, "campaign": reply.campaign, "task": reply.task, "payload": reply.payload,
        "worker": reply.worker, "status": reply.status, "leased_at": iso(reply.leased_at),
        "expires_at": iso(reply.expires_at),
    }  # fmt: skip
    body = {"lease": lease, "reason": None, "detail": None, "retry_after": None}
    return Response(json.dumps(body), media_type="application/json")


def told_response(told: Told) -> Response:
    """What a command on a lease is answered with."""
    body = {
        "lease": told.lease, "task": told.task, "status": told.status, "label": told.label, "counted": told.counted,
        "expires_at": iso_or_none(told.expires_at),
    }  # fmt: skip
    return Response(json.dumps(body), media_type="application/json")
