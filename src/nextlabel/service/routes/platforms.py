"""Platforms that send workers: Prolific's webhook, visits, and what is to be paid."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.errors import NotFoundError, TokenError
from nextlabel.integrations import prolific
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import API, CampaignId
from nextlabel.service.limits import address_of
from nextlabel.service.models import (
    BonusesQuery,
    HookResponse,
    ProlificEventRequest,
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
def show_visits(campaign: CampaignId, request: Request, page: Annotated[VisitsQuery, Query()]) -> dict[str, Any]:
    """Show the submissions and assignments by which platforms sent workers, newest first."""
    store, id = app_state(request).campaign_service.store, campaign
    store.row(id)
    found = store.visits.of(id, page.platform)[::-1][: page.limit]
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
