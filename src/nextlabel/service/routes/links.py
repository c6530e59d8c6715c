"""Links for workers."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request

from nextlabel.service.app_state import app_state
from nextlabel.service.links import join_url, worker_url
from nextlabel.service.openapi import problems
from nextlabel.service.path_ids import CampaignId, campaign_id
from nextlabel.service.request_models import CreateLinksRequest
from nextlabel.service.response_models import JoinLinkResponse, LinksResponse, WorkerLinkResponse

router = APIRouter(tags=["links"])


@router.post("/campaigns/{campaign}/links", responses=problems(404))
async def links(campaign: CampaignId, body: CreateLinksRequest, request: Request) -> LinksResponse:
    """Create a link for each worker, and one to which platforms add the worker's id. They are the same every time."""
    state, id = app_state(request), campaign_id(campaign)
    await to_thread.run_sync(state.campaign_service.store.row, id)
    base = state.settings.base_url
    tokens = [(worker, state.links.worker_token(id, worker)) for worker in body.workers]
    join = state.links.join_token(id)
    url = join_url(base, join)
    return LinksResponse(
        campaign=id,
        links=[WorkerLinkResponse(worker=worker, token=token, url=worker_url(base, token)) for worker, token in tokens],
        join=JoinLinkResponse(token=join, url=url, prolific=url + "?PROLIFIC_PID={{%PROLIFIC_PID%}}"),
    )
