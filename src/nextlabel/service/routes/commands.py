"""Commands that are alike in a program and over HTTP: methods of ``Campaign``, given the fields of the body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Path
from starlette.responses import Response

from nextlabel.application.facade import Campaign
from nextlabel.application.service import CampaignService
from nextlabel.application.status import CampaignStatus
from nextlabel.campaign.webhooks import Webhook
from nextlabel.service.app_state import Service
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import (
    AuditResponse,
    CampaignResponse,
    ChangedLabelsResponse,
    GoldResponse,
    GuaranteeResponse,
    ImportsResponse,
    WebhookResponse,
    WebhooksResponse,
    WorkerResponse,
    body_model,
    status_json,
    to_json,
    webhook_json,
)
from nextlabel.service.openapi import problems

router = APIRouter()
WebhookId = Annotated[str, Path(pattern="^wh_[0-9a-f]{24}$", description="The webhook's id")]


class Command(NamedTuple):
    """A request on a campaign: its method and the rest of its address, what is called, and the reply."""

    request: str
    method: Callable[..., Any]
    reply: Any = None


COMMANDS = (
    Command("POST /pause", Campaign.pause, CampaignResponse),
    Command("POST /resume", Campaign.resume, CampaignResponse),
    Command("POST /gold", Campaign.set_gold, GoldResponse),
    Command("POST /adjudicate", Campaign.adjudicate, GoldResponse),
    Command("POST /adjudicate/undo", Campaign.undo_adjudication, GoldResponse),
    Command("GET /imports", Campaign.imports, ImportsResponse),
    Command("GET /audit", Campaign.audit_items, AuditResponse),
    Command("POST /audit/draw", Campaign.draw_audit, AuditResponse),
    Command("POST /audit/answers", Campaign.answer_audit, GoldResponse),
    Command("GET /guarantee", Campaign.guarantee, GuaranteeResponse),
    Command("POST /guarantee/freeze", Campaign.freeze, GuaranteeResponse),
    Command("POST /guarantee/look", Campaign.next_look, GuaranteeResponse),
    Command("GET /guarantee/items", Campaign.guarantee_items, AuditResponse),
    Command("GET /guarantee/record", Campaign.guarantee_record),
    Command("POST /guarantee/answers", Campaign.answer_guarantee, GoldResponse),
    Command("POST /guarantee/reopen", Campaign.reopen_labels, GuaranteeResponse),
    Command("GET /order", Campaign.order),
    Command("GET /workers/agreement", Campaign.agreement),
    Command("POST /workers/erase", Campaign.erase_worker, WorkerResponse),
    Command("POST /workers/record", Campaign.worker_record),
    Command("POST /workers/drop-labels", Campaign.drop_labels, ChangedLabelsResponse),
    Command("POST /workers/restore-labels", Campaign.restore_labels, ChangedLabelsResponse),
    Command("GET /webhooks", Campaign.webhooks, WebhooksResponse),
    Command("DELETE /webhooks/{id}", Campaign.remove_webhook),
    Command("POST /webhooks/{id}/enable", Campaign.enable_webhook, WebhookResponse),
)
#: Commands on the campaign as a whole stand with the calls on campaigns.
WHOLE = ("pause", "resume")


def _json(done: Any) -> Any:
    if isinstance(done, Webhook | CampaignStatus):
        return webhook_json(done) if isinstance(done, Webhook) else status_json(done)
    return to_json(done) if is_dataclass(done) else done


def _endpoint(command: Command, path: str) -> Callable[..., Any]:
    body = body_model(command.method)

    def endpoint(campaign: str, service: CampaignService, id: str | None = None, body: Any = None) -> Any:
        given = {} if body is None else {name: getattr(body, name) for name in type(body).model_fields}
        done = command.method(Campaign(service, campaign), **given, **({} if id is None else {"id": id}))
        if done is None:
            return Response(status_code=204)
        if isinstance(done, list):
            return {next(iter(command.reply.model_fields)): [_json(one) for one in done]}
        return {"changed": done} if isinstance(done, int) else _json(done)

    kinds = {"campaign": CampaignId, "service": Service}
    kinds |= {"id": WebhookId} if "{id}" in path else {}
    kinds |= {} if body is None else {"body": body}
    named = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in kinds.items()]
    vars(endpoint)["__signature__"] = Signature(named)
    endpoint.__name__, endpoint.__doc__ = command.method.__name__, command.method.__doc__
    return endpoint


def _add(command: Command) -> None:
    verb, path = command.request.split()
    part = path.split("/")[1]
    router.add_api_route(
        "/campaigns/{campaign}" + path, _endpoint(command, path), methods=[verb], response_model=command.reply,
        status_code=204 if verb == "DELETE" else 200, tags=["campaigns" if part in WHOLE else part],
        responses=problems(404, 409),
    )  # fmt: skip


for _command in COMMANDS:
    _add(_command)
