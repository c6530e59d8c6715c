"""Requests to the server of another tool, sent again where that is safe, with errors that say what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self

import httpx

from nextlabel.errors import InputError, NotFoundError, UnavailableError

#: Times that a request is sent, and the seconds before the second one; each further wait is twice as long.
TRIES, FIRST_WAIT_S = 4, 0.2
_LATER: Final = frozenset({429, 500, 502, 503, 504})


#: How requests are signed.
Auth = httpx.Auth | Callable[[httpx.Request], httpx.Request]


class Tool:
    """A server at ``url``; a subclass is one tool, and says how its address and credentials are given."""

    title: ClassVar[str]
    #: An address as users type it, and what to do if the credentials are refused.
    example: ClassVar[str]
    credentials: ClassVar[str]

    def __init__(self, url: str, auth: Auth | None, timeout: float = 30.0) -> None:
        self.url = checked_url(url, self.example)
        self._http = httpx.Client(base_url=self.url, auth=auth, timeout=timeout)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def send(self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        """One request, again if the server cannot answer now; POST is not repeated once it may have been received."""
        wait, problem = FIRST_WAIT_S, ""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(wait)
                wait *= 2
            try:
                response = self._http.request(method, path, json=body, params=params)
            except httpx.TransportError as error:
                problem = str(error) or type(error).__name__
                if method == "POST" and not isinstance(error, httpx.ConnectError):
                    break
                continue
            if response.status_code not in _LATER:
                return self._read(response)
            problem = f"HTTP {response.status_code}"
            if method == "POST":
                break
        raise UnavailableError(f"{self.title} at {self.url} does not answer ({problem}).", "Is it running there?")

    def _read(self, response: httpx.Response) -> Any:
        status = response.status_code
        if status in (401, 403):
            raise InputError(
                f"{self.title} at {self.url} does not accept the token ({_detail(response)}).", self.credentials
            )
        if status == 404:
            raise NotFoundError(f"{self.title} has no {response.request.url.path}.", "Was it deleted there?")
        if status >= 400:
            raise InputError(f"{self.title} refused {response.request.url.path}: {_detail(response)}.")
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise InputError(
                f"what answers at {self.url} is not {self.title}.", f"Give its address, e.g. {self.example}."
            ) from None


def _detail(response: httpx.Response) -> str:
    """What the server says is wrong."""
    try:
        found = response.json()
        text = str(found.get("validation_errors") or found.get("detail") or found.get("message") or found)
    except (ValueError, AttributeError):
        text = f"HTTP {response.status_code}"
    return " ".join(text.split())[:200].rstrip(".")


def checked_url(url: str, example: str = "http://localhost:8080") -> str:
    """The address of a server, as it is spelt everywhere."""
    try:
        parts = httpx.URL(url.strip())
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.scheme not in ("http", "https") or not parts.host or parts.query or parts.fragment:
        raise InputError(f"--url {url!r} is not the address of a server.", f"Give e.g. --url {example}.")
    return str(parts).rstrip("/")
