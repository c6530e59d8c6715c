"""A campaign on Prolific and Mechanical Turk: what to enter there, who came, and what they are owed."""

from __future__ import annotations

from io import BytesIO
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from nextlabel.campaigns.visits import Platform
from nextlabel.errors import InputError
from nextlabel.integrations import mturk, prolific
from nextlabel.prose import counted
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.links import frame_url, join_url
from nextlabel.service.public_address import link_base, link_warning
from nextlabel.service.routes.platforms import bonus_file, hook_url
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Visits that the page shows.
SHOWN = 200


@router.get("/campaigns/{campaign}/platforms")
def platforms_page(campaign: str, request: Request) -> Response:
    """Both platforms."""
    return _page(request, campaign_id(campaign))


@router.post("/campaigns/{campaign}/platforms")
async def take_export(campaign: str, request: Request) -> Response:
    """Do what Prolific's webhook would have done, by a file that it exports."""
    async with request.form() as form:  # its file is closed at the end
        file = form.get("file")
        data = await file.read() if isinstance(file, UploadFile) else b""
        name = (file.filename if isinstance(file, UploadFile) else None) or "the file"
    return await to_thread.run_sync(_take, request, campaign_id(campaign), data, name)


@router.get("/campaigns/{campaign}/bonuses.csv")
def bonuses(
    campaign: str,
    request: Request,
    platform: Platform,
    reward: Annotated[float, Query(ge=0, le=100_000, allow_inf_nan=False)] = 0.0,
) -> Response:
    """Download what workers are owed beyond the reward."""
    return bonus_file(request, campaign_id(campaign), platform, reward)


def _take(request: Request, id: str, data: bytes, name: str) -> Response:
    state = app_state(request)
    state.campaign_service.store.row(id)
    try:
        changes = prolific.read_export(BytesIO(data), name[:100])
    except InputError as error:
        return _page(request, id, problem=f"{sentence(error.message)} {error.hint}", status=422)
    effects = state.campaign_service.visits.statuses_changed(id, changes, state.settings.drop_statuses)
    done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
    return _page(request, id, done=f"{counted(len(changes), 'submission')} read: {done}.")


def _page(request: Request, id: str, problem: str = "", done: str = "", status: int = 200) -> Response:
    state = app_state(request)
    row = dashboard_state(request).store.row(id)
    base, token = link_base(request), state.links.join_token(id)
    frame = frame_url(base, token)
    visits = state.campaign_service.store.visits.of(id)
    return page(
        "dashboard/platforms.html", status, row=row, title=title_of(row), problem=problem, done=done,
        study=join_url(base, token) + prolific.STUDY_QUERY, hook=hook_url(base),
        takes_events=bool(state.settings.prolific_secrets), visits=visits[::-1][:SHOWN], total=len(visits),
        question=mturk.external_question(frame),
        frame_hosts=state.settings.frame_hosts, https=base.startswith("https://"), warning=link_warning(base),
    )  # fmt: skip
