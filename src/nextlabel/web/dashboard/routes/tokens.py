"""Who may see and change which campaigns, and who has changed what."""

from __future__ import annotations

import re
from typing import get_args

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.records import Role
from nextlabel.errors import InputError
from nextlabel.service.access import give_campaign, make_token, revoke_token, tokens_of
from nextlabel.service.app_state import app_state
from nextlabel.service.middleware import principal_of
from nextlabel.web.dashboard.access import Form, GuardedRoute, Told, rights_of, texts_of
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

#: Actions that the page shows.
SHOWN = 200


@router.get("/access")
def access_page(request: Request, problem: Told = "", made: Told = "") -> Response:
    """The tokens, a form for another one, and the last activity."""
    state, by, rights = app_state(request), principal_of(request).token, rights_of(request)
    roles = [role for role in get_args(Role) if rights.administers or role != "administrator"]
    return page(
        "dashboard/access.html", problem=problem, made=made, rights=rights, roles=roles, by=by,
        tokens=tokens_of(state.campaign_service.store, by), activity=state.access.activity(by, limit=SHOWN),
    )  # fmt: skip


@router.post("/access")
def change_access(request: Request, sent: Form) -> Response:
    """Make or end a token, or hand a campaign over; a token is shown on the page that follows, and nowhere else."""
    form = {name: value.strip() for name, value in texts_of(sent).items()}
    state, by = app_state(request), principal_of(request).token
    store = state.campaign_service.store
    request.state.again = lambda problem: access_page(request, problem)
    made = ""
    if "revoke" in form:
        revoke_token(store, form["revoke"], by)
    elif "campaign" in form and rights_of(request).administers:
        give_campaign(store, form["campaign"], form.get("owner", ""))
    elif form.get("role") in get_args(Role):
        role: Role = form["role"]  # type: ignore[assignment]
        limits = [name for name in re.split(r"[\s,;]+", form.get("campaigns", "")) if name]
        made = make_token(store, by, form.get("name", ""), role, form.get("owner") or None, limits)
    else:
        raise InputError("the form does not say what to do.", "Use one of its buttons.")
    state.access.read()
    return access_page(request, made=made) if made else RedirectResponse("/access", 303)
