"""Commands that are alike in a program and over HTTP, methods of ``Campaign``; and how a webhook is added and tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, NamedTuple

from anyio import to_thread
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from nextlabel.application.service import Campaign, CampaignService
from nextlabel.application.status import CampaignStatus
from nextlabel.campaign.webhooks import Webhook
from nextlabel.service.app_state import Service, app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import (
    AuditResponse,
    CampaignResponse,
    ChangedLabelsResponse,
    CreateWebhookRequest,
    GoldResponse,
    GuaranteeResponse,
    ImportsResponse,
    NewWebhookResponse,
    TrialResponse,
    WebhookResponse,
    WebhooksResponse,
    WorkerResponse,
    body_model,
    status_json,
    to_json,
    webhook_json,
)
from nextlabel.service.openapi import problems
from nextlabel.service.webhooks import WebhookSender, checked_address, send_trial

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


@router.post(
    "/campaigns/{campaign}/webhooks", status_code=201, responses=problems(404, 409), response_model=NewWebhookResponse,
    tags=["webhooks"],
)  # fmt: skip
def create_webhook(campaign: CampaignId, body: CreateWebhookRequest, request: Request) -> dict[str, Any]:
    """Tell an address what happens from now on. The secret that messages are signed with is shown this once."""
    state = app_state(request)
    made = state.webhooks.add(campaign, checked_address(body.url, state.settings), body.types, body.from_start)
    sender = WebhookSender(state.campaign_service.store, state.settings)
    return {"webhook": webhook_json(made), "secret": sender.secret_of(made)}


@router.post(
    "/campaigns/{campaign}/webhooks/{id}/test", responses=problems(404), response_model=TrialResponse,
    tags=["webhooks"],
)  # fmt: skip
async def test_webhook(campaign: CampaignId, id: WebhookId, request: Request) -> dict[str, Any]:
    """Send a message of the type webhook.test now, and show what the receiver says."""
    state = app_state(request)
    webhook = await to_thread.run_sync(state.webhooks.get, campaign, id)
    store = state.campaign_service.store
    reply = await send_trial(store, state.settings, webhook, state.webhooks.trial(webhook))
    return {"ok": reply.ok, "said": reply.said}
