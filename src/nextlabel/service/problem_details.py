"""Errors as problem details (RFC 9457): one table from errors to statuses, one place that writes the body.

====== ============== ===========================================================
status type           when
====== ============== ===========================================================
401    no-token       no token, or one that this service did not issue
403    not-allowed    a worker's token where the requester's is needed
404    not-found      no such campaign or lease, or a lease of another worker
409    conflict       it contradicts what is recorded
410    gone           the campaign was deleted
413    too-large      a body over the limit
415    media-type     a body of an unsupported type
422    invalid        invalid input; the sentence names the field
429    too-many       more in a short time than the service allows: Retry-After says when to go on
500    unexpected     an internal error; the log has the details
503    unavailable    the database does not answer, or the clock is far from a campaign's last event: try again
====== ============== ===========================================================
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

from nextlabel.errors import (
    BusyError,
    ClockError,
    ConflictError,
    GoneError,
    InputError,
    MediaTypeError,
    NextlabelError,
    NotAllowedError,
    NotFoundError,
    StorageFullError,
    TablesPendingError,
    TokenError,
    TooManyRequestsError,
    UnavailableError,
)

MEDIA_TYPE = "application/problem+json"
#: Invalid fields that one reply names.
MOST_SAID = 5
TYPE = "urn:nextlabel:"


class BodyTooLargeError(HTTPException):
    """A body over the limit; an HTTPException so that it passes through the frameworks' body parsers."""

    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the body has more than {limit:,} bytes.")
        self.hint = "Send it in parts, or raise the service's limit."


class ProblemType(NamedTuple):
    """How an error is reported to a client."""

    status: int
    type: str
    title: str


UNEXPECTED = ProblemType(500, "unexpected", "Internal error")
UNAVAILABLE = ProblemType(503, "unavailable", "Temporarily unavailable")
INVALID = ProblemType(422, "invalid", "Invalid input")

#: An error is reported as the first of its classes that is in this table.
PROBLEM_TYPES: dict[type[BaseException], ProblemType] = {
    TokenError: ProblemType(401, "no-token", "Token missing or unknown"),
    NotAllowedError: ProblemType(403, "not-allowed", "Not allowed with this token"),
    NotFoundError: ProblemType(404, "not-found", "Not found"),
    GoneError: ProblemType(410, "gone", "Deleted"),
    ConflictError: ProblemType(409, "conflict", "Conflict"),
    BodyTooLargeError: ProblemType(413, "too-large", "Too large"),
    MediaTypeError: ProblemType(415, "media-type", "Unsupported media type"),
    InputError: INVALID,
    RequestValidationError: INVALID,
    TooManyRequestsError: ProblemType(429, "too-many", "Too many requests"),
    UnavailableError: UNAVAILABLE,
    OperationalError: UNAVAILABLE,
    InterfaceError: UNAVAILABLE,
    PoolTimeoutError: UNAVAILABLE,
    ClientDisconnect: ProblemType(499, "disconnected", "Client disconnected"),
    Exception: UNEXPECTED,
}


#: Message and hint for errors that the framework raises itself.
_FRAMEWORK_ERRORS = {
    400: ("the body cannot be read.", "Send JSON."),
    404: ("there is nothing at this address.", "See /api/v1/openapi.json for the addresses of the API."),
    405: ("this address does not support this method.", "Use one of the methods in the header Allow."),
}


def problem_type(error: BaseException) -> ProblemType:
    """How an error is reported."""
    if isinstance(error, HTTPException) and not isinstance(error, BodyTooLargeError):
        return ProblemType(error.status_code, "http", str(error.detail))
    return next(PROBLEM_TYPES[cls] for cls in type(error).__mro__ if cls in PROBLEM_TYPES)


def problem_response(error: BaseException, request_id: str) -> Response:
    """The response that reports an error."""
    kind = problem_type(error)
    detail, hint = _message(error, kind)
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    if kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if kind.status == 503:
        headers["Retry-After"] = "1"
    if isinstance(error, TooManyRequestsError):
        headers["Retry-After"] = str(error.retry_after)
    body = {
        "type": TYPE + kind.type if kind.type != "http" else "about:blank",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "hint": hint,
        "request_id": request_id,
    }
    return Response(json.dumps(body), kind.status, headers, MEDIA_TYPE)


def _message(error: BaseException, kind: ProblemType) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    if isinstance(error, RequestValidationError):
        return _first_error(error.errors()), "See /api/v1/openapi.json for what is allowed."
    if isinstance(error, BusyError | ClockError | StorageFullError | TablesPendingError):
        return error.message, error.hint
    if kind.status == 503:
        return "the database does not answer.", "Try again in a moment."
    if isinstance(error, BodyTooLargeError):
        return str(error.detail), error.hint
    if isinstance(error, HTTPException):
        return _FRAMEWORK_ERRORS.get(error.status_code, (str(error.detail), ""))
    if isinstance(error, NextlabelError) and kind.status < 500:
        return error.message, error.hint
    return "the service failed to handle this request.", "Give the request_id to whoever runs the service."


def _first_error(errors: Sequence[Mapping[str, Any]]) -> str:
    """The invalid fields, and how many more there are of many; of a field of two types, what the first of them says."""
    named: dict[str, str] = {}
    for one in errors:
        field = ".".join(str(part) for part in one["loc"] if not str(part).startswith("constrained-"))
        named.setdefault(field[:200] or "body", str(one["msg"])[:300].rstrip("."))
    said = [f"{field}: {message}" for field, message in named.items()]
    more = f" (and {len(said) - MOST_SAID} more)" if len(said) > MOST_SAID else ""
    said = said[:MOST_SAID]
    return f"{'; '.join(said)}{more}."
