"""Commands that are alike in a program and over HTTP: methods of ``Campaign``, given the fields of the body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, NamedTuple

from anyio import to_thread
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from nextlabel.campaign.webhooks import Webhook
from nextlabel.campaigns.facade import Campaign
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import (
    AuditResponse,
    ChangedLabelsResponse,
    DrawAuditRequest,
    DropLabelsRequest,
    FreezeRequest,
    GoldRequest,
    GoldResponse,
    GuaranteeResponse,
    ImportsResponse,
    RequestBody,
    UndoAdjudicationRequest,
    WebhookResponse,
    WebhooksResponse,
    WorkerRequest,
    WorkerResponse,
    to_json,
    webhook_json,
)
from nextlabel.service.openapi import problems

router = APIRouter()
WebhookId = Annotated[str, Path(pattern="^wh_[0-9a-f]{24}$", description="The webhook's id")]


class Command(NamedTuple):
    """A request on a campaign: its method and the rest of its address, what is called, the reply and the body."""

    request: str
    method: Callable[..., Any]
    reply: Any = None
    body: type[RequestBody] | None = None


COMMANDS = (
    Command("POST /gold", Campaign.set_gold, GoldResponse, GoldRequest),
    Command("POST /adjudicate", Campaign.adjudicate, GoldResponse, GoldRequest),
    Command("POST /adjudicate/undo", Campaign.undo_adjudication, GoldResponse, UndoAdjudicationRequest),
    Command("GET /imports", Campaign.imports, ImportsResponse),
    Command("GET /audit", Campaign.audit_items, AuditResponse),
    Command("POST /audit/draw", Campaign.draw_audit, AuditResponse, DrawAuditRequest),
    Command("POST /audit/answers", Campaign.answer_audit, GoldResponse, GoldRequest),
    Command("GET /guarantee", Campaign.guarantee, GuaranteeResponse),
    Command("POST /guarantee/freeze", Campaign.freeze, GuaranteeResponse, FreezeRequest),
    Command("POST /guarantee/look", Campaign.next_look, GuaranteeResponse),
    Command("GET /guarantee/items", Campaign.guarantee_items, AuditResponse),
    Command("GET /guarantee/record", Campaign.guarantee_record),
    Command("POST /guarantee/answers", Campaign.answer_guarantee, GoldResponse, GoldRequest),
    Command("POST /guarantee/reopen", Campaign.reopen_labels, GuaranteeResponse),
    Command("GET /order", Campaign.order),
    Command("GET /workers/agreement", Campaign.agreement),
    Command("POST /workers/erase", Campaign.erase_worker, WorkerResponse, WorkerRequest),
    Command("POST /workers/record", Campaign.worker_record, None, WorkerRequest),
    Command("POST /workers/drop-labels", Campaign.drop_labels, ChangedLabelsResponse, DropLabelsRequest),
    Command("POST /workers/restore-labels", Campaign.restore_labels, ChangedLabelsResponse, WorkerRequest),
    Command("GET /webhooks", Campaign.webhooks, WebhooksResponse),
    Command("DELETE /webhooks/{id}", Campaign.remove_webhook),
    Command("POST /webhooks/{id}/enable", Campaign.enable_webhook, WebhookResponse),
)


def _json(done: Any) -> Any:
    if isinstance(done, Webhook):
        return webhook_json(done)
    return to_json(done) if is_dataclass(done) else done


def _endpoint(command: Command, path: str) -> Callable[..., Any]:
    async def endpoint(campaign: str, request: Request, id: str | None = None, body: Any = None) -> Any:
        given = {} if body is None else {name: getattr(body, name) for name in type(body).model_fields}
        given |= {} if id is None else {"id": id}
        on = Campaign(app_state(request).campaign_service, campaign)
        done = await to_thread.run_sync(lambda: command.method(on, **given))
        if done is None:
            return Response(status_code=204)
        if isinstance(done, list):
            return {next(iter(command.reply.model_fields)): [_json(one) for one in done]}
        return {"changed": done} if isinstance(done, int) else _json(done)

    kinds = {"campaign": CampaignId, "request": Request}
    kinds |= {"id": WebhookId} if "{id}" in path else {}
    kinds |= {} if command.body is None else {"body": command.body}
    named = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in kinds.items()]
    vars(endpoint)["__signature__"] = Signature(named)
    endpoint.__name__, endpoint.__doc__ = command.method.__name__, command.method.__doc__
    return endpoint


def _add(command: Command) -> None:
    verb, path = command.request.split()
    router.add_api_route(
        "/campaigns/{campaign}" + path, _endpoint(command, path), methods=[verb], response_model=command.reply,
        status_code=204 if verb == "DELETE" else 200, tags=[path.split("/")[1]],
        responses=problems(404, 409),
    )  # fmt: skip


for _command in COMMANDS:
    _add(_command)
