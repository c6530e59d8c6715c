"""Tokens, whose campaigns are whose, and who changed what."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.service.access import give_campaign, make_token, revoke_token, tokens_of
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.middleware import principal_of
from nextlabel.service.models import (
    ActivityListResponse,
    ActivityQuery,
    CreateTokenRequest,
    NewTokenResponse,
    OwnerRequest,
    TokensResponse,
    to_json,
)
from nextlabel.service.openapi import problems

router = APIRouter(tags=["access"])


@router.get("/tokens", responses=problems(), response_model=TokensResponse)
def tokens(request: Request) -> dict[str, Any]:
    """List the tokens of the same owner, or those of all; the tokens themselves are not stored."""
    by, store = principal_of(request).token, app_state(request).campaign_service.store
    return {"tokens": [token_json(one) for one in tokens_of(store, by)]}


@router.post("/tokens", status_code=201, responses=problems(409), response_model=NewTokenResponse)
async def create_token(body: CreateTokenRequest, request: Request) -> dict[str, Any]:
    """Make a token and show it, this once; a requester makes them for their own campaigns."""
    by, state = principal_of(request).token, app_state(request)
    store, given = state.campaign_service.store, (body.name, body.role, body.owner, body.campaigns)
    made = await to_thread.run_sync(make_token, store, by, *given)
    known = await to_thread.run_sync(state.access.read)
    record = next(one for one in known.tokens.values() if one.name == body.name)
    return {**token_json(record), "token": made}


@router.delete("/tokens/{name}", status_code=204, responses=problems(404))
async def end_token(name: str, request: Request) -> Response:
    """End a token, and the sessions of browsers that signed in with it."""
    state = app_state(request)
    await to_thread.run_sync(revoke_token, state.campaign_service.store, name, principal_of(request).token)
    await to_thread.run_sync(state.access.read)
    return Response(status_code=204)


@router.put("/campaigns/{campaign}/owner", responses=problems(404), response_model=OwnerRequest)
async def set_owner(campaign: CampaignId, body: OwnerRequest, request: Request) -> dict[str, Any]:
    """Hand a campaign over to another owner; with an empty name it is nobody's, for administrators alone."""
    state = app_state(request)
    await to_thread.run_sync(give_campaign, state.campaign_service.store, campaign, body.owner)
    await to_thread.run_sync(state.access.read)
    return {"owner": body.owner}


@router.get("/activity", responses=problems(), response_model=ActivityListResponse)
def activity(request: Request, page: Annotated[ActivityQuery, Query()]) -> dict[str, Any]:
    """Show who changed what, newest first. Workers' answers are in the logs of campaigns."""
    found = app_state(request).access.activity(principal_of(request).token, page.campaign, page.limit)
    return {"activity": [to_json(one) for one in found]}


def token_json(token: Any) -> dict[str, Any]:
    """What is told of a token."""
    told = to_json(token, campaigns=sorted(token.limited))
    del told["hash"]
    return told
