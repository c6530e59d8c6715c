"""What every request to the dashboard goes through: the session and its role, errors as pages; and who has tokens.

Auditors and viewers see pages without forms; viewers see nothing in which workers are named (``service.auth``).

Who is signed in at the dashboard: a cookie with random bits, of which the store keeps the hash.

Nothing in the store is enough to make a cookie. A session ends at sign-out, after ``MAX_AGE_S`` seconds, and when the
token with which it began is revoked or replaced.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, get_args
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Depends
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.records import AccessToken, Role, Session
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import InputError, NotAllowedError, NotFoundError
from nextlabel.service.access import create_token, give_campaign, hashed, revoke_token, tokens_of
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import ROLES, Principal, Rights
from nextlabel.service.limits import address_of
from nextlabel.service.middleware import principal_of, request_context
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.render import PageRoute, page, wants_json

#: Addresses that do not need a session.
OPEN = ("/sign-in", "/sign-out")

#: Pages for requesters alone, because they make campaigns and links, and for those who may see who did what.
_REQUESTER_PAGES, _WORKERS_PAGES = (
    re.compile(r"/new.*|/access|/campaigns/[^/]+/(?:links|platforms|edit|delete|webhooks)"),
    re.compile(r"/campaigns/[^/]+/(?:audit|tasks/|labels\.|bonuses\.|workers?[.?/]|worker$).*"),
)
_AUDIT_PAGE = re.compile(r"/campaigns/[^/]+/audit")
_TITLES = {403: "Not allowed", 404: "Not found", 410: "Deleted", 413: "Too large", 503: "Temporarily unavailable"}
NO_ACTION = ("the form does not say what to do.", "Use one of its buttons.")
COOKIE = "nl_requester"
MAX_AGE_S = 12 * 3600


class GuardedRoute(PageRoute):
    """A route for those who are signed in and whose role allows it.

    A handler says by ``request.state.again`` which page tells of a refusal: a function of the sentence.
    """

    async def before(self, request: Request) -> Response | None:
        """The way to the sign-in, for those who are not signed in."""
        if request.url.path in OPEN:
            return None
        token = await to_thread.run_sync(_token_of, request)
        if token is None and wants_json(request):
            return Response(status_code=401)
        if token is None:
            back = request.url.path if request.method == "GET" else "/"
            return RedirectResponse("/sign-in" + (f"?next={quote(back)}" if back != "/" else ""), 303)
        request_context(request).principal = Principal(role=token.role, token=token)
        await app_state(request).access.check(token, request.method, request.url.path)
        _check_rights(request, token.role)
        return None

    async def error_page(self, request: Request, error: Exception, status: int, headers: dict[str, str]) -> Response:
        """The page that the form is on, with a sentence about it; or one that has nothing else."""
        again = getattr(request.state, "again", None)  # what its handler shows the form on
        if again is not None and isinstance(error, InputError) and not isinstance(error, NotFoundError):
            refused: Response = await to_thread.run_sync(again, f"{sentence(error.message)} {error.hint}".strip())
            return refused
        said = getattr(error, "message", "") or getattr(error, "detail", "") or "the request could not be carried out."
        if status == 503:
            said = "the database does not answer. Try again in a moment."
        title = _TITLES.get(status, "Request failed")
        return page("dashboard/error.html", status, headers, title=title, message=sentence(str(said)))


async def _sent(request: Request) -> AsyncIterator[FormData]:
    async with request.form(max_files=1) as form:
        yield form


#: What a browser sent; its file is closed when the request is answered.
Form = Annotated[FormData, Depends(_sent)]
#: What the handler of a form tells on its page, where no address can say it; empty otherwise.
Told = Annotated[Any, Depends(lambda: "")]


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


def _token_of(request: Request) -> AccessToken | None:
    """The token with which the browser signed in that sent a request, None if it is not signed in."""
    state, cookie = app_state(request), request.cookies.get(COOKIE, "")
    for session in state.campaign_service.store.records.find(Session, hash=hashed(cookie)):
        if time.time() - session.created_at < MAX_AGE_S:
            return state.access.state.tokens.get(session.token_hash)
    return None


def local_path(address: str) -> str:
    """An address on this site; ``/`` if it is on another."""
    safe = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if safe else "/"


router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(request: Request, problem: Told = "", next: str = "/") -> Response:
    """The form."""
    return page("dashboard/sign_in.html", 403 if problem else 200, back=local_path(next), problem=problem)


@router.post("/sign-in")
def sign_in(request: Request, form: Form) -> Response:
    """Check the token, and give the browser a cookie."""
    back, state = str(form.get("next", "/")), app_state(request)
    known = state.access.read().tokens.get(hashed(str(form.get("token", "")).strip()))
    if known is None:
        state.limits.failed_sign_in(address_of(request.scope))
        problem = "This token is unknown, or was revoked. The command nextlabel token create makes one."
        return sign_in_page(request, problem, back)
    request_context(request).principal = Principal(role=known.role, token=known)  # for the record of who did what
    cookie, records = secrets.token_urlsafe(32), state.campaign_service.store.records
    records.forget(Session, time.time() - MAX_AGE_S)
    records.add(Session(hashed(cookie), known.hash, time.time()))
    response = RedirectResponse(local_path(back), 303)
    response.set_cookie(COOKIE, cookie, max_age=MAX_AGE_S, **_cookie(request))
    return response


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """End the session, in the store and in the browser."""
    records, cookie = app_state(request).campaign_service.store.records, request.cookies.get(COOKIE, "")
    records.remove(Session, hash=hashed(cookie))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE, **_cookie(request))
    return response


def _cookie(request: Request) -> Any:
    return {
        "path": "/",
        "secure": bool(app_state(request).settings.cookie_secure),
        "httponly": True,
        "samesite": "strict",
    }


#: Actions that the page shows.
ACTIONS_SHOWN = 200


@router.get("/access")
def access_page(request: Request, problem: Told = "", made: Told = "") -> Response:
    """The tokens, a form for another one, and the last activity."""
    state, by, rights = app_state(request), principal_of(request).token, rights_of(request)
    roles = [role for role in get_args(Role) if rights.administers or role != "administrator"]
    return page(
        "dashboard/access.html", problem=problem, made=made, rights=rights, roles=roles, by=by,
        tokens=tokens_of(state.campaign_service.store, by), activity=state.access.activity(by, limit=ACTIONS_SHOWN),
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
        made = create_token(store, form.get("name", ""), role, form.get("owner") or None, limits, by=by)
    else:
        raise InputError(*NO_ACTION)
    state.access.read()
    return access_page(request, made=made) if made else RedirectResponse("/access", 303)
