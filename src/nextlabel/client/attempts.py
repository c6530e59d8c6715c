"""When a request is sent again, and what its errors become: shared by ``Client`` and ``AsyncClient``."""

from __future__ import annotations

import random
from types import TracebackType
from typing import Any, Self

import httpx

from nextlabel.errors import (
    ConflictError,
    GoneError,
    InputError,
    NextlabelError,
    NotAllowedError,
    NotFoundError,
    TokenError,
    TooManyRequestsError,
    UnavailableError,
)

#: Statuses that mean: try again later.
RETRIED = frozenset({429, 502, 503, 504})
#: Seconds before the second attempt, doubled each time up to the longest wait; half of a wait is random.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0

_ERRORS: dict[int, type[NextlabelError]] = {
    **dict.fromkeys((400, 413, 415, 422), InputError),
    **dict.fromkeys(RETRIED, UnavailableError),
    429: TooManyRequestsError,
    401: TokenError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
}


def connection(url: str, token: str, timeout: float, tries: int) -> dict[str, Any]:
    """The arguments of an httpx client."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url!r} is not the address of a service.", "Give e.g. http://127.0.0.1:8000.")
    if tries < 1:
        raise InputError(f"tries is {tries}.", "Give at least 1.")
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "nextlabel"}
    return {"base_url": f"{url.rstrip('/')}/api/v1", "headers": headers, "timeout": timeout}


class Attempts:
    """The attempts at one request.

    ::

        attempts = Attempts(tries)
        while attempts.left:
            with attempts:
                attempts.response = http.request(...)
            sleep(attempts.wait)
        return attempts.result()
    """

    def __init__(self, tries: int) -> None:
        self.left, self.wait = tries, 0.0
        self.response: httpx.Response | None = None
        self._made = 0
        self._error: httpx.TransportError | None = None

    def __enter__(self) -> Self:
        self.response = self._error = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, httpx.TransportError):
            return False
        self._error = error
        self._made, self.left = self._made + 1, self.left - 1
        told = 0.0
        if self.response is not None:
            if self.response.status_code not in RETRIED:
                self.left = 0
            asked = self.response.headers.get("retry-after", "")
            told = min(float(asked), LONGEST_WAIT_S) if asked.isdigit() else 0.0
        wait = min(FIRST_WAIT_S * 2.0 ** (self._made - 1), LONGEST_WAIT_S) * random.uniform(0.5, 1.0)
        self.wait = max(wait, told) if self.left else 0.0
        return True

    def result(self) -> Any:
        """The JSON of the last response, or the error."""
        if self.response is None:
            error = self._error
            address = error.request.url.copy_with(path="/") if error is not None else "the address"
            raise UnavailableError(
                f"the service at {address} does not answer: {str(error) or type(error).__name__}.",
                "Check the address, and that the service runs.",
            ) from error
        if self.response.is_success:
            return self.response.json()
        status = self.response.status_code
        try:
            problem = self.response.json()
            detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
        except (ValueError, KeyError, TypeError):
            detail, hint = f"the service answered with status {status}.", "See its log."
        raise _ERRORS.get(status, NextlabelError)(detail, hint)
