"""All campaigns, one campaign, and what changed in it."""

from __future__ import annotations

from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.rows import CampaignRow
from nextlabel.service.app_state import app_state
from nextlabel.service.path_ids import campaign_id
from nextlabel.service.request_models import ResultsQuery
from nextlabel.service.routes.results import results
from nextlabel.service.status import current_row
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import reason_of, title_of
from nextlabel.web.dashboard.state import DashboardState, dashboard_state
from nextlabel.web.dashboard.view import campaign_view, charts_of, marks_of, parts_of
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Campaigns on one page of the list.
A_PAGE = 50
#: Cursors that are numbers to everybody.
LARGEST = 2**53
Cursor = Annotated[int | None, Query(ge=1, le=LARGEST)]


@router.get("/")
def campaigns(request: Request, number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1) -> Response:
    """The list, newest first."""
    room = dashboard_state(request)
    rows = room.store.campaigns()
    some = rows[(number - 1) * A_PAGE : number * A_PAGE]
    shown = [
        {
            "row": row,
            "title": title_of(row),
            "state": row.state,
            "reason": reason_of(row),
            "figures": room.figures(row),
        }
        for row in some
    ]
    further = number + 1 if number * A_PAGE < len(rows) else None
    return page("dashboard/list.html", campaigns=shown, total=len(rows), further=further, number=number)


@router.get("/campaigns")
def campaigns_too() -> Response:
    """Where people look for the list."""
    return RedirectResponse("/", 303)


@router.get("/campaigns/{campaign}")
async def campaign_page(campaign: str, request: Request, before: Cursor = None) -> Response:
    """One campaign."""
    row = await _row(request, campaign)
    return await to_thread.run_sync(shown, dashboard_state(request), row, before)


@router.get("/campaigns/{campaign}/live")
async def live(
    campaign: str, request: Request, after: Annotated[int, Query(ge=0, le=LARGEST)] = 0, seen: str = ""
) -> Response:
    """What changed since event ``after``; ``seen`` is what the last answer said about itself."""
    row = await _row(request, campaign)
    return await to_thread.run_sync(_changes, dashboard_state(request), row, after, seen)


@router.get("/campaigns/{campaign}/results.{format}")
def download(campaign: str, format: Literal["csv", "jsonl"], request: Request) -> Response:
    """All results, as the API gives them."""
    return results(campaign, request, ResultsQuery.model_validate({"format": format}))


def shown(
    room: DashboardState, row: CampaignRow, before: int | None = None, problem: str = "", status: int = 200
) -> Response:
    """The page of a campaign, with a sentence about what went wrong if something did."""
    view = campaign_view(room, row, before)
    parts, charts = parts_of(view), charts_of(view)
    seen = _seen(room, row, marks_of(parts, charts))
    return page("dashboard/campaign.html", status, parts=parts, charts=charts, seen=seen, problem=problem, **view)


async def _row(request: Request, campaign: str) -> CampaignRow:
    """The campaign as it stands; leases that are over are expired only if there are any."""
    services, room, id = app_state(request), dashboard_state(request), campaign_id(campaign)

    def look() -> tuple[CampaignRow, bool]:
        row, now = room.store.row(id), room.now()
        out = room.overview.open_leases(id, 1) if row.reserved else []
        late = any(lease.expires_at <= now for lease in out)
        return row, late or (row.deadline is not None and row.deadline <= now and row.closed_seq is None)

    row, over = await to_thread.run_sync(look)
    return await current_row(services, id) if over else row


def _changes(room: DashboardState, row: CampaignRow, after: int, seen: str) -> Response:
    told, _, marks = seen.partition("~")
    if row.seq == after and told == room.version(row):
        return Response(status_code=204)
    view = campaign_view(room, row)
    parts, charts = parts_of(view), charts_of(view)
    new = marks_of(parts, charts)
    old = dict(pair.split(":", 1) for pair in marks.split(",") if ":" in pair)
    changed = {name: html for name, html in parts.items() if old.get(name) != new[name]}
    body = {"seq": row.seq, "seen": _seen(room, row, new), "parts": changed}
    if old.get("charts") != new["charts"]:
        body["charts"] = charts
    return JSONResponse(body)


def _seen(room: DashboardState, row: CampaignRow, marks: dict[str, str]) -> str:
    return room.version(row) + "~" + ",".join(f"{name}:{mark}" for name, mark in marks.items())
