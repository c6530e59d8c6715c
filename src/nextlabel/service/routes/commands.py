"""Commands that are alike in a program and over HTTP, methods of ``Campaign``; and how a webhook is added and tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, get_type_hints

from anyio import to_thread
from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from nextlabel.application.guarantees import GuaranteeStatus
from nextlabel.application.imports import ImportStatus
from nextlabel.application.service import REQUESTS, CampaignService
from nextlabel.application.status import CampaignStatus
from nextlabel.application.worker_reports import WorkerReport
from nextlabel.campaign.replies import AuditItem, ChangedLabels
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


#: The models of what the methods return; other tables have none.
REPLIES: Final[dict[Any, Any]] = {
    CampaignStatus: CampaignResponse, GuaranteeStatus: GuaranteeResponse, WorkerReport: WorkerResponse,
    ChangedLabels: ChangedLabelsResponse, Webhook: WebhookResponse, int: GoldResponse,
    list[ImportStatus]: ImportsResponse, list[AuditItem]: AuditResponse, list[Webhook]: WebhooksResponse,
}  # fmt: skip
#: Commands on the campaign as a whole stand with the calls on campaigns.
WHOLE = ("pause", "resume")


def _json(done: Any) -> Any:
    if isinstance(done, Webhook | CampaignStatus):
        return webhook_json(done) if isinstance(done, Webhook) else status_json(done)
    return to_json(done) if is_dataclass(done) else done


def _endpoint(method: Callable[..., Any], path: str, reply: Any) -> Callable[..., Any]:
    body = body_model(method)

    def endpoint(campaign: str, service: CampaignService, id: str | None = None, body: Any = None) -> Any:
        given = {} if body is None else {name: getattr(body, name) for name in type(body).model_fields}
        done = method(service[campaign], **given, **({} if id is None else {"id": id}))
        if done is None:
            return Response(status_code=204)
        if isinstance(done, list):
            return {next(iter(reply.model_fields)): [_json(one) for one in done]}
        return {"changed": done} if isinstance(done, int) else _json(done)

    kinds = {"campaign": CampaignId, "service": Service}
    kinds |= {"id": WebhookId} if "{id}" in path else {}
    kinds |= {} if body is None else {"body": body}
    named = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in kinds.items()]
    vars(endpoint)["__signature__"] = Signature(named)
    endpoint.__name__, endpoint.__doc__ = method.__name__, method.__doc__
    return endpoint


for _method, _request in REQUESTS.items():
    _verb, _path = _request.split()
    _part, _reply = _path.split("/")[3], REPLIES.get(get_type_hints(_method)["return"])
    router.add_api_route(
        _path, _endpoint(_method, _path, _reply), methods=[_verb], response_model=_reply,
        status_code=204 if _verb == "DELETE" else 200, tags=["campaigns" if _part in WHOLE else _part],
        responses=problems(404, 409),
    )  # fmt: skip


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
