"""Tokens, whose campaigns are whose, and who changed what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.service import access
from nextlabel.service.access import give_campaign, revoke_token, tokens_of
from nextlabel.service.app_state import Service, app_state
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
def tokens(request: Request, service: Service) -> dict[str, Any]:
    """List the tokens of the same owner, or those of all; the tokens themselves are not stored."""
    return {"tokens": [to_json(one) for one in tokens_of(service.store, principal_of(request).token)]}


@router.post("/tokens", status_code=201, responses=problems(404, 409), response_model=NewTokenResponse)
def create_token(body: CreateTokenRequest, request: Request, service: Service) -> dict[str, Any]:
    """Make a token and show it, this once; a requester makes them for their own campaigns."""
    by = principal_of(request).token
    made = access.create_token(service.store, body.name, body.role, body.owner, body.campaigns, by=by)
    known = app_state(request).access.read()
    record = next(one for one in known.tokens.values() if one.name == body.name)
    return {**to_json(record), "token": made}


@router.delete("/tokens/{name}", status_code=204, responses=problems(404))
def end_token(name: str, request: Request, service: Service) -> Response:
    """End a token, and the sessions of browsers that signed in with it."""
    revoke_token(service.store, name, principal_of(request).token)
    app_state(request).access.read()
    return Response(status_code=204)


@router.put("/campaigns/{campaign}/owner", responses=problems(404), response_model=OwnerRequest)
def set_owner(campaign: CampaignId, body: OwnerRequest, request: Request, service: Service) -> dict[str, Any]:
    """Hand a campaign over to another owner; with an empty name it is nobody's, for administrators alone."""
    give_campaign(service.store, campaign, body.owner)
    app_state(request).access.read()
    return {"owner": body.owner}


@router.get("/activity", responses=problems(), response_model=ActivityListResponse)
def activity(request: Request, page: Annotated[ActivityQuery, Query()]) -> dict[str, Any]:
    """Show who changed what, newest first. Workers' answers are in the logs of campaigns."""
    found = app_state(request).access.activity(principal_of(request).token, page.campaign, page.limit)
    return {"activity": [to_json(one) for one in found]}
