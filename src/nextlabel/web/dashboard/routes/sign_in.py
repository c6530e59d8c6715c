"""Signing in and out."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.service.app_state import app_state
from nextlabel.service.limits import address_of
from nextlabel.web.dashboard.access import GuardedRoute, local_path, sessions_of
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """The form."""
    return _form(request.query_params.get("next", "/"))


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Check the token and sign the browser in."""
    form = await request.form()
    token, back = str(form.get("token", "")).strip(), local_path(str(form.get("next", "/")))
    response = RedirectResponse(back, 303)
    if not await to_thread.run_sync(sessions_of(request).sign_in, token, response):
        app_state(request).limits.failed_sign_in(address_of(request.scope))
        return _form(back, "This token is unknown, or was revoked. The command nextlabel token makes one.", 403)
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Sign the browser out."""
    response = RedirectResponse("/sign-in", 303)
    await to_thread.run_sync(sessions_of(request).sign_out, request, response)
    return response


def _form(back: str, problem: str = "", status: int = 200) -> Response:
    return page("dashboard/sign_in.html", status, back=local_path(back), problem=problem)
