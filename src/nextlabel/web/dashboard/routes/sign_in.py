"""Signing in and out."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.web.dashboard.access import GuardedRoute, local, sessions_of
from nextlabel.web.dashboard.session import close
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """The form."""
    return _form(request.query_params.get("next", "/"))


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """A token from the form."""
    form = await request.form()
    token, back = str(form.get("token", "")).strip(), local(str(form.get("next", "/")))
    if not await to_thread.run_sync(sessions_of(request).known, token):
        return _form(back, "That is not the requester’s token. The service shows it once, when it first starts.", 403)
    response = RedirectResponse(back, 303)
    sessions_of(request).open(request, response)
    return response


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Back to the form."""
    response = RedirectResponse("/sign-in", 303)
    close(response)
    return response


def _form(back: str, problem: str = "", status: int = 200) -> Response:
    return page("dashboard/sign_in.html", status, back=local(back), problem=problem)
