"""Errors as problem details (RFC 9457): one table from error to status, one place where the body is made.

====== ============== ======================================================
status type           when
====== ============== ======================================================
401    no-token       no token, or one that is not ours
403    not-allowed    a worker's token where the requester's is needed
404    not-found      no such campaign or lease, or another worker's
409    conflict       it contradicts what is recorded
413    too-large      a body over the limit
415    media-type     a body of a kind that is not read
422    invalid        it is not allowed; the sentence names the field
500    unexpected     a fault of the service; the log has the rest
503    unavailable    the database does not answer: try again
====== ============== ======================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from nextlabel.errors import ConflictError, InputError, NextlabelError, NotFoundError

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:nextlabel:"


class TokenError(NextlabelError):
    """No token, or one that is not ours."""


class NotAllowedError(NextlabelError):
    """The token is good, but not for this."""


class MediaTypeError(NextlabelError):
    """A body of a kind that is not read."""


class BodyTooLargeError(HTTPException):
    """A body over the limit; an HTTPException so that it comes through where frameworks read bodies."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"the body has more than {most:,} bytes.")
        self.hint = "Send it in parts, or raise the service's limit."


class Kind(NamedTuple):
    """What an error is to a client."""

    status: int
    type: str
    title: str


UNEXPECTED = Kind(500, "unexpected", "Fault of the service")
UNAVAILABLE = Kind(503, "unavailable", "Not available now")
INVALID = Kind(422, "invalid", "Not allowed")

#: Looked up along the classes that an error is of.
KINDS: dict[type[BaseException], Kind] = {
    TokenError: Kind(401, "no-token", "Token missing or unknown"),
    NotAllowedError: Kind(403, "not-allowed", "Not for this token"),
    NotFoundError: Kind(404, "not-found", "Not found"),
    ConflictError: Kind(409, "conflict", "Conflict"),
    BodyTooLargeError: Kind(413, "too-large", "Too large"),
    MediaTypeError: Kind(415, "media-type", "Media type not read"),
    InputError: INVALID,
    RequestValidationError: INVALID,
    OperationalError: UNAVAILABLE,
    InterfaceError: UNAVAILABLE,
    PoolTimeoutError: UNAVAILABLE,
    ClientDisconnect: Kind(499, "disconnected", "Client gone"),
    Exception: UNEXPECTED,
}


#: What the framework refuses by itself.
_HTTP = {
    400: ("the body cannot be read.", "Send JSON."),
    404: ("there is nothing at this address.", "See /api/v1/openapi.json for those that there are."),
    405: ("this address does not take this method.", "Use one of those that the header Allow names."),
}


def kind_of(error: BaseException) -> Kind:
    """The row of the table for an error."""
    if isinstance(error, HTTPException) and not isinstance(error, BodyTooLargeError):
        return Kind(error.status_code, "http", str(error.detail))
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def problem(error: BaseException, request_id: str) -> Response:
    """The response to an error."""
    kind = kind_of(error)
    detail, hint = _words(error, kind)
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    if kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if kind.status == 503:
        headers["Retry-After"] = "1"
    body = {
        "type": TYPE + kind.type if kind.type != "http" else "about:blank",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "hint": hint,
        "request_id": request_id,
    }
    return Response(json.dumps(body), kind.status, headers, MEDIA_TYPE)


def _words(error: BaseException, kind: Kind) -> tuple[str, str]:
    if isinstance(error, RequestValidationError):
        return _sentence(error.errors()), "See /api/v1/openapi.json for what is allowed."
    if kind.status == 503:
        return "the database does not answer.", "Try again in a moment."
    if isinstance(error, BodyTooLargeError):
        return str(error.detail), error.hint
    if isinstance(error, HTTPException):
        return _HTTP.get(error.status_code, (str(error.detail), ""))
    if isinstance(error, NextlabelError) and kind.status < 500:
        return error.message, error.hint
    return "the service failed at this.", "Give the request_id to whoever runs the service."


def _sentence(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first thing that is wrong, by its field."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"]) or "body"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where[:200]}: {str(first['msg'])[:300].rstrip('.')}{more}."
