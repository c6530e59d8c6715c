"""Links for workers."""

from __future__ import annotations

import re

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from nextlabel.errors import InputError
from nextlabel.integrations.prolific import STUDY_QUERY
from nextlabel.prose import listed
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.links import PLATFORMS, join_url, revoke_links, worker_url
from nextlabel.service.public_address import link_base, link_warning
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: The most links that one form creates.
MAX_LINKS = 1000


@router.get("/campaigns/{campaign}/links")
def links_page(campaign: str, request: Request, made: str = "") -> Response:
    """The link for platforms, and a form for personal links."""
    return _page(request, campaign, new=bool(made))


@router.post("/campaigns/{campaign}/links")
async def make_links(campaign: str, request: Request) -> Response:
    """Create a link for each name; the same every time."""
    text = str((await request.form()).get("workers", ""))
    return await to_thread.run_sync(_create, request, campaign, text, _names(text))


@router.post("/campaigns/{campaign}/links/revoke")
async def end_links(campaign: str, request: Request) -> Response:
    """End the links of each name, or the link for platforms."""
    form = await request.form()
    text, join = str(form.get("workers", "")), bool(form.get("join"))
    return await to_thread.run_sync(_revoke, request, campaign, text, join)


def _revoke(request: Request, campaign: str, text: str, join: bool) -> Response:
    state, id, names = app_state(request), campaign_id(campaign), _names(text)
    state.campaign_service.store.row(id)
    if len(names) > MAX_LINKS or not (names or join):
        return _page(request, id, text, problem=f"Give 1 to {MAX_LINKS:,} names, one per line.", status=422)
    try:
        revoke_links(state.campaign_service.store, id, names, join)
    except InputError as error:
        return _page(request, id, text, problem=sentence(error.message), status=422)
    state.access.read()
    ended = "The link for platforms has" if join else f"The links of {listed(names)} have"
    return _page(request, id, text, done=f"{ended} ended. Links that you make from now on are new.")


def _names(text: str) -> list[str]:
    """Different names, one per line or between commas."""
    return list(dict.fromkeys(name.strip() for name in re.split(r"[\n,;]", text) if name.strip()))


def _create(request: Request, campaign: str, text: str, names: list[str]) -> Response:
    state, id = app_state(request), campaign_id(campaign)
    if not names or len(names) > MAX_LINKS:
        return _page(request, id, text, problem=f"Give 1 to {MAX_LINKS:,} names, one per line.", status=422)
    base = link_base(request)
    try:
        links = [(name, worker_url(base, state.links.worker_token(id, name))) for name in names]
    except InputError as error:
        return _page(request, id, text, problem=sentence(error.message), status=422)
    return _page(request, id, text, links)


def _page(
    request: Request,
    campaign: str,
    text: str = "",
    links: list[tuple[str, str]] | None = None,
    problem: str = "",
    done: str = "",
    new: bool = False,
    status: int = 200,
) -> Response:
    state, id = app_state(request), campaign_id(campaign)
    row = dashboard_state(request).store.row(id)
    join = join_url(link_base(request), state.links.join_token(id))
    return page(
        "dashboard/links.html", status, row=row, title=title_of(row), given=text, links=links or [], problem=problem,
        done=done, new=new, join=join, prolific=join + STUDY_QUERY, platforms=PLATFORMS, warning=link_warning(join),
    )  # fmt: skip
