"""Deleting a campaign: the requester types its id."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.service.auth import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import title_of
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/delete")
def delete_page(campaign: str, request: Request) -> Response:
    """What will be gone, and the field to confirm it."""
    return _page(request, campaign_id(campaign))


@router.post("/campaigns/{campaign}/delete")
async def delete(campaign: str, request: Request) -> Response:
    """Delete the campaign, if its id was typed."""
    typed = str((await request.form()).get("typed", "")).strip()
    return await to_thread.run_sync(_delete, request, campaign_id(campaign), typed)


def _delete(request: Request, id: str, typed: str) -> Response:
    if typed != id:
        return _page(request, id, f"“{typed[:60]}” is not the campaign’s id: nothing was deleted. Type {id}.", 422)
    dashboard_state(request).app.campaign_service.deletions.begin(id)
    return RedirectResponse("/", 303)


def _page(request: Request, id: str, problem: str = "", status: int = 200) -> Response:
    row = dashboard_state(request).store.row(id)
    return page("dashboard/delete.html", status, row=row, title=title_of(row), problem=problem)
