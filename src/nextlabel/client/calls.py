"""Requests that are sent again until they are answered, and errors of the service as those of nextlabel.

Every request may be sent twice: campaigns have ids, batches keys, and saying the same of a lease again changes nothing.
"""

from __future__ import annotations

import random
import time
from typing import Any

import httpx

from nextlabel.errors import (
    ConflictError,
    InputError,
    NextlabelError,
    NotAllowedError,
    NotFoundError,
    TokenError,
    UnavailableError,
)

#: Statuses that mean: not now.
AGAIN = frozenset({429, 502, 503, 504})
#: Seconds before the second try, doubled each time up to the longest; a wait is by lot from half of it to all.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0

_ERRORS: dict[int, type[NextlabelError]] = {
    **dict.fromkeys((400, 413, 415, 422), InputError),
    **dict.fromkeys(AGAIN, UnavailableError),
    401: TokenError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
}


class Calls:
    """HTTP to one service with one token."""

    def __init__(self, url: str, token: str, timeout: float, tries: int) -> None:
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{url!r} is not the address of a service.", "Give e.g. http://127.0.0.1:8000.")
        if tries < 1:
            raise InputError(f"{tries} tries are none.", "Give at least 1.")
        self._tries = tries
        self.http = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}", "User-Agent": "nextlabel"},
            timeout=timeout,
        )

    def send(self, method: str, path: str, **given: Any) -> Any:
        """The JSON that a request is answered with, or the error."""
        for left in reversed(range(self._tries)):
            wait = _wait(self._tries - 1 - left)
            try:
                response = self.http.request(method, path, **given)
            except httpx.TransportError as error:
                if left == 0:
                    raise UnavailableError(
                        f"the service at {self.http.base_url} does not answer: {str(error) or type(error).__name__}.",
                        "Check the address and that it runs.",
                    ) from error
            else:
                if response.status_code not in AGAIN or left == 0:
                    return answer_of(response)
                wait = max(wait, _told_wait(response))
            time.sleep(wait)
        raise AssertionError("unreachable")


def answer_of(response: httpx.Response) -> Any:
    """The JSON of a good response; a problem is raised."""
    if response.is_success:
        return response.json()
    try:
        problem = response.json()
        detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        detail, hint = f"the service answered {response.status_code}.", "Look into its log."
    raise _ERRORS.get(response.status_code, NextlabelError)(detail, hint)


def _wait(before: int) -> float:
    return min(FIRST_WAIT_S * 2.0**before, LONGEST_WAIT_S) * random.uniform(0.5, 1.0)


def _told_wait(response: httpx.Response) -> float:
    told = response.headers.get("retry-after", "")
    return min(float(told), LONGEST_WAIT_S) if told.isdigit() else 0.0
