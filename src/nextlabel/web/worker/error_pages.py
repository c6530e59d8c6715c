"""Errors as pages in the worker's language, or as problem details to the page's script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any

from fastapi import Request
from starlette.responses import Response

from nextlabel.errors import NextlabelError
from nextlabel.service.app_state import app_state
from nextlabel.service.links import INVALID_LINK
from nextlabel.service.middleware import request_context
from nextlabel.service.problem_details import problem_type
from nextlabel.web.render import page
from nextlabel.web.worker.page_view import accepted_languages, wants_json
from nextlabel.web.worker.session import completion_of
from nextlabel.web.worker.texts import texts_for

#: The section of the texts' errors for a status; all others are refusals.
ERRORS = {401: "no_token", 403: "other_site", 404: "not_found", 410: "deleted", 429: "too_many", 503: "unavailable"}

Handler = Callable[..., Awaitable[Response]]


def with_error_pages(handler: Handler) -> Handler:
    """Show errors other than internal ones as a page, or as problem details to a script."""

    @wraps(handler)
    async def handle(*args: Any, **kwargs: Any) -> Response:
        request: Request = kwargs["request"]
        try:
            return await handler(*args, **kwargs)
        except Exception as error:
            status = problem_type(error).status
            if wants_json(request) or status == 500:
                raise
            request_context(request).cause = error
            retry = getattr(error, "retry_after", 5 if status == 503 else None)
            headers = {} if retry is None else {"retry-after": str(retry)}
            return error_page(request, _error_key(error, status), status, headers, error)

    return handle


def allow_framing(request: Request) -> None:
    """Let the page that answers a request, also one with an error, be framed by the sites of the settings."""
    request_context(request).framed = bool(app_state(request).settings.frame_origins)


def framed_policy(request: Request) -> dict[str, str]:
    """What a page in a frame may do that others may not: be framed by these sites, and send a form to them."""
    settings = app_state(request).settings
    framing = " ".join(settings.frame_origins) or "'none'"
    # Browsers hold redirects after a form to the same rule, and the sites of a platform redirect to one another.
    sites = dict.fromkeys(("'self'", *settings.submit_origins, *settings.frame_origins))
    return {"frame-ancestors": framing, "form-action": " ".join(sites)}


def _error_key(error: Exception, status: int) -> str:
    """The section of the texts' errors that says what happened."""
    if getattr(error, "message", "") == INVALID_LINK[0]:
        return "bad_link"
    return ERRORS.get(status, "refused")


def error_page(
    request: Request,
    key: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    error: Exception | None = None,
) -> Response:
    """A page in the browser's language; what a form or link has wrong is said in English as well."""
    texts = texts_for(None, accepted_languages(request))
    detail = str(error) if key == "refused" and isinstance(error, NextlabelError) else ""
    policy = framed_policy(request) if request_context(request).framed else None
    return page(
        "worker/error.html", status, headers, own_policy=policy, texts=texts, heading=texts(f"errors.{key}.heading"),
        text=texts(f"errors.{key}.text"), detail=detail[:1].upper() + detail[1:],
        completion=completion_of(request) if key == "deleted" else None,
    )  # fmt: skip
