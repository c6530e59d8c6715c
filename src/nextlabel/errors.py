"""The errors of nextlabel: one root, each with a message and a hint, all of them public (``nl.errors``).

::

    NextlabelError
    ├── InputError                something that was given is not allowed (exit code 2, HTTP 422)
    │   ├── ProblemError          a rate, prior, budget, threshold ... outside its range
    │   ├── FileFormatError       a file that is missing, unreadable or not in the expected form
    │   ├── TooLargeError         an exact computation that does not fit
    │   ├── MediaTypeError        a request's body of an unsupported type (HTTP 415)
    │   ├── ConflictError         it contradicts what a campaign has recorded (HTTP 409)
    │   └── NotFoundError         no such campaign, task or lease (HTTP 404)
    │       └── GoneError         a campaign that was deleted (HTTP 410)
    ├── TokenError                no token, or one that the service did not issue (HTTP 401)
    ├── NotAllowedError           a valid token that does not allow this (HTTP 403)
    ├── UnavailableError          a service that does not answer: try again later (HTTP 503)
    │   ├── BusyError             a database that somebody else has locked, or a computation that is under way
    │   ├── StorageFullError      a disk without room
    │   ├── ClockError            a clock that is far from a campaign's last event
    │   ├── TablesPendingError    a policy's tables are still being computed
    │   └── TooManyRequestsError  more of something in a short time than the service allows (HTTP 429)
    └── SolverError               a computation that failed through no fault of the input (exit code 1, HTTP 500)

The message says what was given and what is allowed; ``hint`` says what to do. Errors of other packages become one of
these in one place per boundary: ``files`` for files, ``store.migrate`` and ``store.engine`` for databases,
``client.client`` for HTTP, ``policies.registry`` for a user's own policy, ``cli.app`` for the command line; errors of
nextlabel become HTTP responses in ``service.problem_details`` and exit codes in ``cli.app``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future


class NextlabelError(Exception):
    """Root of all errors that nextlabel raises on purpose."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InputError(NextlabelError):
    """The input is not allowed; nothing was computed or written."""


class ProblemError(InputError):
    """A labelling problem with an impossible number in it."""


class FileFormatError(InputError):
    """A file that is missing, unreadable or not in the expected form."""


def refuse(*checks: tuple[object, str, str]) -> None:
    """Raise an InputError for the first of the checks that holds: what is wrong, how to say it, and what to do."""
    for wrong, message, hint in checks:
        if wrong:
            raise InputError(message, hint)


def one_of(what: str, given: object, known: Collection[str]) -> None:
    """Refuse what is not one of the known names."""
    refuse((given not in known, f"{what} {given!r} is not known.", f"Use one of {', '.join(known)}."))


class TooLargeError(InputError):
    """An exact computation that would need too many states."""

    def __init__(self, message: str, hint: str = "", states: int = 0) -> None:
        super().__init__(message, hint)
        self.states = states


class MediaTypeError(InputError):
    """A request's body of an unsupported type."""


class ConflictError(InputError):
    """A request that contradicts what a campaign has recorded; nothing was changed."""


class NotFoundError(InputError):
    """There is no such campaign, task or lease."""


class GoneError(NotFoundError):
    """The campaign was deleted."""


class TokenError(NextlabelError):
    """No token, or one that the service did not issue."""


class NotAllowedError(NextlabelError):
    """The token is valid, but does not allow this."""


class UnavailableError(NextlabelError):
    """A service that does not answer; the same request may succeed later."""


class BusyError(UnavailableError):
    """Another process has locked what is needed, or it is still being computed; nothing was written."""


class StorageFullError(UnavailableError):
    """The disk of the database is full; nothing was written."""


class ClockError(UnavailableError):
    """The clock is far behind or far ahead of a campaign's last event; nothing was written."""


class TablesPendingError(UnavailableError):
    """A policy's tables are being computed; ``future`` is done when they are ready."""

    def __init__(self, future: Future[Any]) -> None:
        super().__init__("the tables of the campaign's policy are still being computed.", "Ask again in a moment.")
        self.future = future


class TooManyRequestsError(UnavailableError):
    """More of something in a short time than the service allows; ``retry_after`` is in seconds."""

    def __init__(self, message: str, hint: str = "", retry_after: int = 1) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class SolverError(NextlabelError):
    """A computation that failed for a reason that is not the user's."""
