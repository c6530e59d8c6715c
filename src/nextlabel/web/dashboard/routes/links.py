"""Links for workers."""

from __future__ import annotations

import re

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from nextlabel.errors import InputError
from nextlabel.service.app_state import app_state
from nextlabel.service.links import PLATFORMS, join_url, worker_url
from nextlabel.service.path_ids import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Links that one form makes.
MOST = 1000


@router.get("/campaigns/{campaign}/links")
def links_page(campaign: str, request: Request, made: str = "") -> Response:
    """The join link, and a form for links of one worker each."""
    return _page(request, campaign, new=bool(made))


@router.post("/campaigns/{campaign}/links")
async def make_links(campaign: str, request: Request) -> Response:
    """A link for each name; the same each time."""
    given = str((await request.form()).get("workers", ""))
    names = list(dict.fromkeys(name.strip() for name in re.split(r"[\n,;]", given) if name.strip()))
    return await to_thread.run_sync(_made, request, campaign, given, names)


def _made(request: Request, campaign: str, given: str, names: list[str]) -> Response:
    services, id = app_state(request), campaign_id(campaign)
    if not names or len(names) > MOST:
        return _page(request, id, given, problem=f"Give 1 to {MOST:,} names, one a line.", status=422)
    base = services.settings.base_url
    try:
        links = [(name, worker_url(base, services.links.worker_token(id, name))) for name in names]
    except InputError as error:
        return _page(request, id, given, problem=sentence(error.message), status=422)
    return _page(request, id, given, links)


def _page(
    request: Request,
    campaign: str,
    given: str = "",
    links: list[tuple[str, str]] | None = None,
    problem: str = "",
    new: bool = False,
    status: int = 200,
) -> Response:
    services, id = app_state(request), campaign_id(campaign)
    row = dashboard_state(request).store.row(id)
    join = join_url(services.settings.base_url, services.links.join_token(id))
    return page(
        "dashboard/links.html", status, row=row, title=title_of(row), given=given, links=links or [], problem=problem,
        new=new, join=join, prolific=join + "?PROLIFIC_PID={{%PROLIFIC_PID%}}", platforms=PLATFORMS,
    )  # fmt: skip
