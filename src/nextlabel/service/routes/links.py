"""Links for workers."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request

from nextlabel.service.links import join_url, worker_url
from nextlabel.service.openapi import problems
from nextlabel.service.path_names import CampaignName, campaign_named
from nextlabel.service.request_models import NewLinks
from nextlabel.service.response_models import Join, Link, LinksMade
from nextlabel.service.services import services_of

router = APIRouter(tags=["links"])


@router.post("/campaigns/{campaign}/links", responses=problems(404))
async def links(campaign: CampaignName, given: NewLinks, request: Request) -> LinksMade:
    """A link for each worker, and one for platforms that add the worker's id themselves. The same each time."""
    services, id = services_of(request), campaign_named(campaign)
    await to_thread.run_sync(services.campaign_service.store.row, id)
    base = services.settings.base_url
    tokens = [(worker, services.links.worker_token(id, worker)) for worker in given.workers]
    join = services.links.join_token(id)
    url = join_url(base, join)
    return LinksMade(
        campaign=id,
        links=[Link(worker=worker, token=token, url=worker_url(base, token)) for worker, token in tokens],
        join=Join(token=join, url=url, prolific=url + "?PROLIFIC_PID={{%PROLIFIC_PID%}}"),
    )
