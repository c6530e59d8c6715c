"""What every request to the dashboard goes through: the session and its role, the origin of forms, errors as pages.

Auditors and viewers see pages without forms; viewers see nothing in which workers are named (``service.auth``).

Who is signed in at the dashboard: a cookie with random bits, of which the store keeps the hash.

Nothing in the store is enough to make a cookie. A session ends at sign-out, after ``MAX_AGE_S`` seconds, and when the
token with which it began is revoked or replaced.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.records import AccessToken, Session
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import InputError, NotAllowedError, NotFoundError
from nextlabel.service.access import AccessCache, hashed
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import ROLES, Principal, Rights
from nextlabel.service.limits import address_of
from nextlabel.service.middleware import principal_of, request_context
from nextlabel.service.problem_details import problem_response, problem_type
from nextlabel.store.sql import SqlStore
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.render import check_origin, page

#: Addresses that do not need a session.
OPEN = ("/sign-in", "/sign-out")

#: Pages for requesters alone, because they make campaigns and links, and for those who may see who did what.
_REQUESTER_PAGES, _WORKERS_PAGES = (
    re.compile(r"/new.*|/access|/campaigns/[^/]+/(?:links|platforms|edit|delete|webhooks)"),
    re.compile(r"/campaigns/[^/]+/(?:audit|tasks/|labels\.|bonuses\.|workers?[.?/]|worker$).*"),
)
_AUDIT_PAGE = re.compile(r"/campaigns/[^/]+/audit")
_TITLES = {403: "Not allowed", 404: "Not found", 410: "Deleted", 413: "Too large", 503: "Temporarily unavailable"}
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
COOKIE = "nl_requester"
MAX_AGE_S = 12 * 3600


class GuardedRoute(APIRoute):
    """A route for those who are signed in and whose role allows it."""

    def get_route_handler(self) -> Handler:
        """The handler, with its checks."""
        inner = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                if request.method not in ("GET", "HEAD"):
                    check_origin(request)
                if request.url.path not in OPEN:
                    token = await to_thread.run_sync(sessions_of(request).token, request)
                    if token is None:
                        return _to_sign_in(request)
                    request_context(request).principal = Principal(role=token.role, token=token)
                    await app_state(request).access.check(token, request.method, request.url.path)
                    _check_rights(request, token.role)
                return await inner(request)
            except Exception as error:
                again: Callable[[str], Response] | None = getattr(request.state, "again", None)
                if again is None or not isinstance(error, InputError) or isinstance(error, NotFoundError):
                    return _error_response(request, error)
                return await to_thread.run_sync(again, f"{sentence(error.message)} {error.hint}".strip())

        return guarded


async def _sent(request: Request) -> AsyncIterator[FormData]:
    async with request.form(max_files=1) as form:
        yield form


#: What a browser sent; its file is closed when the request is answered.
Form = Annotated[FormData, Depends(_sent)]


def texts_of(form: FormData) -> dict[str, str]:
    """The fields of a form but for its file."""
    return {name: value for name, value in form.items() if isinstance(value, str)}


def file_of(form: FormData, hint: str) -> tuple[UploadFile, str]:
    """The file of a form, and its name."""
    given = form.get("file")
    if not isinstance(given, UploadFile) or not given.filename:
        raise InputError("no file was chosen.", hint)
    return given, given.filename


def campaign_page(template: str, request: Request, row: CampaignRow, **context: Any) -> Response:
    """A page about a campaign."""
    return page(f"dashboard/{template}.html", row=row, title=title_of(row), rights=rights_of(request), **context)


def when_refused(request: Request, again: Callable[[str], Response]) -> None:
    """From now on an InputError of this request is told on a page that ``again`` makes of its sentence."""
    request.state.again = again


def rights_of(request: Request) -> Rights:
    """What the sender of a request may do."""
    return ROLES[principal_of(request).role or "viewer"]


def _check_rights(request: Request, role: str) -> None:
    path, rights = request.url.path, rights_of(request)
    if _AUDIT_PAGE.fullmatch(path) is not None and rights.sees_workers:
        return  # an auditor answers there
    changes = request.method not in ("GET", "HEAD") or _REQUESTER_PAGES.fullmatch(path) is not None
    if (changes and not rights.changes) or (_WORKERS_PAGES.fullmatch(path) is not None and not rights.sees_workers):
        raise NotAllowedError(f"the role {role} does not allow this.", "Sign in with the token of a requester.")


def sessions_of(request: Request) -> DashboardSessions:
    """The sessions of the app that a request came to."""
    sessions: DashboardSessions = request.app.state.sessions
    return sessions


def local_path(address: str) -> str:
    """An address on this site; ``/`` if it is on another."""
    safe = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if safe else "/"


def wants_json(request: Request) -> bool:
    """Whether the request comes from a script."""
    return request.headers.get("accept", "").startswith("application/json")


def _to_sign_in(request: Request) -> Response:
    if wants_json(request):
        return Response(status_code=401)
    back = request.url.path if request.method == "GET" else "/"
    return RedirectResponse("/sign-in" + (f"?next={quote(back)}" if back != "/" else ""), 303)


def _error_response(request: Request, error: Exception) -> Response:
    status = problem_type(error).status
    if status >= 500 and status != 503:
        raise error
    request_context(request).cause = error
    if wants_json(request):
        return problem_response(error, request_context(request).request_id)
    retry = getattr(error, "retry_after", 5 if status == 503 else None)
    headers = {} if retry is None else {"retry-after": str(retry)}
    message = getattr(error, "message", "") or getattr(error, "detail", "") or "the request could not be carried out."
    if status == 503:
        message = "the database does not answer. Try again in a moment."
    title = _TITLES.get(status, "Request failed")
    return page("dashboard/error.html", status, headers, title=title, message=sentence(str(message)))


class DashboardSessions:
    """Begins, finds and ends sessions."""

    def __init__(self, store: SqlStore, access: AccessCache, secure: bool) -> None:
        self._store, self._access, self._secure = store, access, secure

    def sign_in(self, token: str, response: Response) -> AccessToken | None:
        """Give the browser a cookie, unless the token is unknown."""
        known = self._access.read().tokens.get(hashed(token))
        if known is None:
            return None
        cookie = secrets.token_urlsafe(32)
        self._store.access.end_sessions(time.time() - MAX_AGE_S)
        self._store.access.add_session(Session(hashed(cookie), known.hash, time.time()))
        response.set_cookie(
            COOKIE, cookie, max_age=MAX_AGE_S, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return known

    def token(self, request: Request) -> AccessToken | None:
        """The token with which the browser signed in that sent a request, None if it is not signed in."""
        cookie = request.cookies.get(COOKIE, "")
        session = self._store.access.session(hashed(cookie)) if cookie else None
        if session is None or time.time() - session.created_at >= MAX_AGE_S:
            return None
        return self._access.state.tokens.get(session.token_hash)

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session, in the store and in the browser."""
        cookie = request.cookies.get(COOKIE, "")
        if cookie:
            self._store.access.end_session(hashed(cookie))
        response.delete_cookie(COOKIE, path="/", secure=self._secure, httponly=True, samesite="strict")


router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """The form."""
    return _form(request.query_params.get("next", "/"))


@router.post("/sign-in")
def sign_in(request: Request, form: Form) -> Response:
    """Check the token and sign the browser in."""
    token, back = str(form.get("token", "")).strip(), local_path(str(form.get("next", "/")))
    response = RedirectResponse(back, 303)
    known = sessions_of(request).sign_in(token, response)
    if known is None:
        app_state(request).limits.failed_sign_in(address_of(request.scope))
        return _form(back, "This token is unknown, or was revoked. The command nextlabel token create makes one.", 403)
    request_context(request).principal = Principal(role=known.role, token=known)  # for the record of who did what
    return response


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Sign the browser out."""
    response = RedirectResponse("/sign-in", 303)
    sessions_of(request).sign_out(request, response)
    return response


def _form(back: str, problem: str = "", status: int | None = None) -> Response:
    return page("dashboard/sign_in.html", status, back=local_path(back), problem=problem)
