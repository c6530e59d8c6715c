"""Links for workers."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request

from nextlabel.campaigns.status import CampaignLinks, JoinLink, WorkerLink
from nextlabel.integrations.prolific import Prolific
from nextlabel.service.app_state import app_state, link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import frame_url, join_url, revoke_links, worker_url
from nextlabel.service.models import CampaignLinksResponse, CreateLinksRequest, RevokeLinksRequest
from nextlabel.service.openapi import problems

router = APIRouter(tags=["links"])


@router.post("/campaigns/{campaign}/links", responses=problems(404), response_model=CampaignLinksResponse)
async def links(campaign: CampaignId, body: CreateLinksRequest, request: Request) -> CampaignLinks:
    """Create a link for each worker, and one to which platforms add the worker's id. They are the same every time."""
    state, id = app_state(request), campaign
    await to_thread.run_sync(state.campaign_service.store.row, id)
    return _links(request, id, body.workers)


@router.post("/campaigns/{campaign}/links/revoke", responses=problems(404), response_model=CampaignLinksResponse)
async def revoke(campaign: CampaignId, body: RevokeLinksRequest, request: Request) -> CampaignLinks:
    """End links; those that are valid instead are in the response. Other processes notice within seconds."""
    state, id = app_state(request), campaign
    store = state.campaign_service.store

    def run() -> None:
        store.row(id)
        revoke_links(store, id, body.workers, body.join, body.audit)
        state.access.read()

    await to_thread.run_sync(run)
    return _links(request, id, body.workers)


def _links(request: Request, id: str, workers: list[str]) -> CampaignLinks:
    state, base = app_state(request), link_base(request)
    tokens = [(worker, state.links.worker_token(id, worker)) for worker in workers]
    join = state.links.join_token(id)
    url = join_url(base, join)
    return CampaignLinks(
        id,
        tuple(WorkerLink(worker, token, worker_url(base, token)) for worker, token in tokens),
        JoinLink(join, url, Prolific().link(url), frame_url(base, join)),
        link_warning(base) or None,
    )
