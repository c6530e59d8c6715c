"""The list of campaigns, one campaign, and its updates."""

from __future__ import annotations

from typing import Annotated, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.rows import CampaignRow
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Rights, campaign_id
from nextlabel.service.models import LabelsQuery, ResultsQuery, WorkersQuery
from nextlabel.service.routes.campaigns import current_row
from nextlabel.service.routes.results import labels, results
from nextlabel.service.routes.workers import show_workers
from nextlabel.web.dashboard.access import GuardedRoute, rights_of
from nextlabel.web.dashboard.formatting import reason_of, title_of
from nextlabel.web.dashboard.state import DashboardState, dashboard_state
from nextlabel.web.dashboard.view import campaign_view, chart_data, fingerprints, render_parts
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Campaigns on one page of the list.
PAGE_SIZE = 50
#: Cursors fit into the whole numbers of JavaScript.
LARGEST = 2**53
Cursor = Annotated[int | None, Query(ge=1, le=LARGEST)]


@router.get("/")
def campaigns_page(request: Request, number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1) -> Response:
    """The campaigns, newest first."""
    dashboard = dashboard_state(request)
    rows = dashboard.store.campaigns()
    shown = rows[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    campaigns = [
        {
            "row": row,
            "title": title_of(row),
            "state": row.state,
            "reason": reason_of(row),
            "summary": dashboard.summary(row),
        }
        for row in shown
    ]
    further = number + 1 if number * PAGE_SIZE < len(rows) else None
    return page(
        "dashboard/list.html", campaigns=campaigns, total=len(rows), further=further, number=number,
        rights=rights_of(request),
    )  # fmt: skip


@router.get("/campaigns")
def campaigns_redirect() -> Response:
    """Redirect to the list."""
    return RedirectResponse("/", 303)


@router.get("/campaigns/{campaign}")
async def campaign_page(campaign: str, request: Request, before: Cursor = None) -> Response:
    """One campaign."""
    row = await _row(request, campaign)
    return await to_thread.run_sync(campaign_page_response, dashboard_state(request), row, rights_of(request), before)


@router.get("/campaigns/{campaign}/live")
async def live(
    campaign: str, request: Request, after: Annotated[int, Query(ge=0, le=LARGEST)] = 0, seen: str = ""
) -> Response:
    """What has changed since event ``after``; ``seen`` is the version that the last reply named."""
    row = await _row(request, campaign)
    return await to_thread.run_sync(_changes, dashboard_state(request), row, rights_of(request), after, seen)


@router.get("/campaigns/{campaign}/results.{format}")
def download(campaign: str, format: Literal["csv", "jsonl"], request: Request) -> Response:
    """Download all results, in the API's formats."""
    return results(campaign, request, ResultsQuery.model_validate({"format": format}))


@router.get("/campaigns/{campaign}/labels.{format}")
def download_labels(campaign: str, format: Literal["csv", "jsonl"], request: Request) -> Response:
    """Download every worker's answers, in the API's formats."""
    return labels(campaign, request, LabelsQuery.model_validate({"format": format}))


@router.get("/campaigns/{campaign}/workers.{format}")
def download_workers(campaign: str, format: Literal["csv", "jsonl"], request: Request) -> Response:
    """Download what each worker did and is owed, in the API's formats."""
    return show_workers(campaign, request, WorkersQuery.model_validate({"format": format}))


def campaign_page_response(
    dashboard: DashboardState,
    row: CampaignRow,
    rights: Rights,
    before: int | None = None,
    problem: str = "",
    status: int = 200,
) -> Response:
    """The page of a campaign, with a message about a problem if there is one."""
    version = dashboard.version(row)  # before the view: what arrives in between is new to the page
    view = campaign_view(dashboard, row, rights, before)
    parts, charts = render_parts(view), chart_data(view)
    seen = _seen(version, fingerprints(parts, charts))
    disabled = [one for one in dashboard.app.webhooks.of(row.id) if one.disabled] if rights.changes else []
    return page(
        "dashboard/campaign.html", status, parts=parts, charts=charts, seen=seen, problem=problem,
        disabled_webhooks=disabled, **view,
    )  # fmt: skip


async def _row(request: Request, campaign: str) -> CampaignRow:
    """The campaign's row now; a command runs only if there are leases to expire."""
    state, dashboard, id = app_state(request), dashboard_state(request), campaign_id(campaign)

    def look() -> tuple[CampaignRow, bool]:
        row, now = dashboard.store.row(id), dashboard.now()
        out = dashboard.overview.open_leases(id, 1) if row.reserved else []
        late = any(lease.expires_at <= now for lease in out)
        return row, late or (row.deadline is not None and row.deadline <= now and row.closed_seq is None)

    row, over = await to_thread.run_sync(look)
    return await current_row(state, id) if over else row


def _changes(dashboard: DashboardState, row: CampaignRow, rights: Rights, after: int, seen: str) -> Response:
    known, _, hashes = seen.partition("~")
    version = dashboard.version(row)
    if row.seq == after and version == known:
        return Response(status_code=204)
    view = campaign_view(dashboard, row, rights)
    parts, charts = render_parts(view), chart_data(view)
    new = fingerprints(parts, charts)
    old = dict(pair.split(":", 1) for pair in hashes.split(",") if ":" in pair)
    changed = {name: html for name, html in parts.items() if old.get(name) != new[name]}
    body = {"seq": row.seq, "seen": _seen(version, new), "parts": changed}
    if old.get("charts") != new["charts"]:
        body["charts"] = charts
    return JSONResponse(body)


def _seen(version: str, hashes: dict[str, str]) -> str:
    """What a page has been sent, for it to send back."""
    return version + "~" + ",".join(f"{name}:{hash}" for name, hash in hashes.items())
