"""How workers come: links of their own, and platforms with their visits, Prolific's webhook and what is to be paid."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.application.status import AuditLink, CampaignLinks, JoinLink, WorkerLink
from nextlabel.campaign.known_answers import check_drawn
from nextlabel.campaign.records import Visit
from nextlabel.errors import NotFoundError, TokenError
from nextlabel.integrations import prolific
from nextlabel.integrations.prolific import Prolific
from nextlabel.service.app_state import Service, app_state, link_base, link_warning
from nextlabel.service.auth import API, CampaignId
from nextlabel.service.limits import address_of
from nextlabel.service.links import link_url, revoke_links
from nextlabel.service.models import (
    AuditLinkResponse,
    BonusesQuery,
    CampaignLinksResponse,
    CreateLinksRequest,
    HookResponse,
    ProlificEventRequest,
    RevokeLinksRequest,
    VisitsQuery,
    VisitsResponse,
    to_json,
)
from nextlabel.service.openapi import Responses, body_of, problems

router = APIRouter(tags=["platforms"])
#: Where Prolific sends its events.
PROLIFIC = prolific.Prolific.name
HOOK = f"/hooks/{PROLIFIC}"
_NO_SECRET = (
    "this service takes no events of Prolific.",
    "Put the secret of Prolific's webhooks into NEXTLABEL_PROLIFIC_SECRET.",
)
_CSV: Responses = {200: {"description": "A file", "content": {"text/csv": {"schema": {"type": "string"}}}}}


def hook_url(base: str) -> str:
    """The address for a subscription at Prolific."""
    return f"{base}{API}{HOOK}"


@router.post(
    HOOK,
    responses=problems(404),
    response_model=HookResponse,
    openapi_extra=body_of(ProlificEventRequest, required=True),
)
async def prolific_event(request: Request) -> dict[str, Any]:
    """Take an event of Prolific, which has signed it; a token is not needed.

    Only submission.status.change of a submission that began here does something.
    """
    state, body = app_state(request), await request.body()
    settings, service = state.settings, state.campaign_service
    if not settings.prolific_secrets:
        raise NotFoundError(*_NO_SECRET)
    now = service.clock()
    try:
        at = prolific.check_signature(settings.prolific_secrets, request.headers, body, now)
    except TokenError:
        state.limits.failed_sign_in(address_of(request.scope))
        raise
    change = prolific.read_status_change(body)
    if change is None:
        return {"effect": "unknown"}
    take = service.visits.status_changed
    return {"effect": await to_thread.run_sync(take, PROLIFIC, change, at, settings.drop_statuses)}


@router.get("/campaigns/{campaign}/visits", responses=problems(404), response_model=VisitsResponse)
def show_visits(campaign: CampaignId, service: Service, page: Annotated[VisitsQuery, Query()]) -> dict[str, Any]:
    """Show the submissions and assignments by which platforms sent workers, newest first."""
    service.store.row(campaign)
    found = service.store.records.find(Visit, campaign=campaign, platform=page.platform)[::-1][: page.limit]
    return {"visits": [to_json(one) for one in found]}


@router.get("/campaigns/{campaign}/bonuses", responses={**problems(404), **_CSV}, response_class=Response)
def show_bonuses(campaign: CampaignId, request: Request, page: Annotated[BonusesQuery, Query()]) -> Response:
    """Download what workers are owed beyond the platform's reward, as the platform's bulk payment takes it."""
    return bonus_file(request, campaign, page.platform, page.reward)


def bonus_file(request: Request, id: str, platform: str, reward: float) -> Response:
    """The file of bonuses."""
    text = app_state(request).campaign_service.visits.bonus_csv(id, platform, reward)
    attached = {"content-disposition": f'attachment; filename="{id}-{platform}-bonuses.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=attached)


@router.post("/campaigns/{campaign}/links", responses=problems(404), response_model=CampaignLinksResponse)
def links(campaign: CampaignId, body: CreateLinksRequest, request: Request, service: Service) -> CampaignLinks:
    """Create a link for each worker, and one to which platforms add the worker's id. They are the same every time."""
    service.store.row(campaign)
    return _links(request, campaign, body.workers)


@router.post("/campaigns/{campaign}/links/revoke", responses=problems(404), response_model=CampaignLinksResponse)
def revoke(campaign: CampaignId, body: RevokeLinksRequest, request: Request, service: Service) -> CampaignLinks:
    """End links; those that are valid instead are in the response. Other processes notice within seconds."""
    service.store.row(campaign)
    revoke_links(service.store, campaign, body.workers, body.join, body.audit)
    app_state(request).access.read()
    return _links(request, campaign, body.workers)


def _links(request: Request, id: str, workers: list[str]) -> CampaignLinks:
    state, base = app_state(request), link_base(request)
    tokens = [(worker, state.links.worker_token(id, worker)) for worker in workers]
    join = state.links.join_token(id)
    url = link_url(base, join)
    return CampaignLinks(
        id,
        tuple(WorkerLink(worker, token, link_url(base, token)) for worker, token in tokens),
        JoinLink(join, url, Prolific().link(url), link_url(base, join, "f")),
        link_warning(base) or None,
    )


@router.post("/campaigns/{campaign}/audit/link", responses=problems(404, 409), response_model=AuditLinkResponse)
def audit_link(campaign: CampaignId, request: Request) -> AuditLink:
    """A link by which an expert answers the items drawn so far, without a token; it is the same until items are drawn.

    It ends by ``links/revoke`` with ``audit``.
    """
    row = app_state(request).campaign_service.store.row(campaign)
    check_drawn(row)
    return _audit_link(request, campaign, len(row.audit), len(row.audit))


@router.post("/campaigns/{campaign}/guarantee/link", responses=problems(404, 409), response_model=AuditLinkResponse)
def guarantee_link(campaign: CampaignId, request: Request) -> AuditLink:
    """A link by which an expert answers what the guarantee asks for, without a token; new items appear there.

    It ends by ``links/revoke`` with ``audit``.
    """
    return _audit_link(request, campaign, 0, app_state(request).campaign_service[campaign].guarantee().to_answer)


def _audit_link(request: Request, campaign: str, end: int, items: int) -> AuditLink:
    base, token = link_base(request), app_state(request).links.audit_token(campaign, end)
    return AuditLink(token, link_url(base, token), items, link_warning(base) or None)
