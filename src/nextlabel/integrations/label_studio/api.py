"""Requests to a Label Studio server: version 1.23's API, by a legacy token or a personal access token.

A personal access token is a JSON web token that is exchanged for short-lived ones; a legacy token is sent as it is.
Requests that may be repeated are, where the server does not answer or answers that it cannot now.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, Self

import httpx

from nextlabel.errors import InputError, NotFoundError, UnavailableError

#: Tasks and members that are read at once.
PAGE: Final = 100
#: Times that a request is sent, and the seconds before the second one; each further wait is twice as long.
TRIES, FIRST_WAIT_S = 4, 0.2
_LATER: Final = frozenset({429, 500, 502, 503, 504})


class _Token(httpx.Auth):
    """The header that a token needs."""

    requires_response_body = True

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._is_jwt = token.count(".") == 2
        self._header = "" if self._is_jwt else f"Token {token}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the request; with a web token, exchange it first if there is no short-lived one that is accepted."""
        if self._header:
            request.headers["Authorization"] = self._header
            response = yield request
            if not self._is_jwt or response.status_code != 401:
                return
        exchanged = yield httpx.Request("POST", f"{self._url}/api/token/refresh", json={"refresh": self._token})
        if exchanged.status_code == 200:
            self._header = f"Bearer {exchanged.json()['access']}"
            request.headers["Authorization"] = self._header
        yield request


class LabelStudio:
    """A server at ``url`` as the holder of a token sees it."""

    def __init__(self, url: str, token: str, timeout: float = 30.0) -> None:
        self.url = checked_url(url)
        if not token.strip():
            raise InputError("there is no token for Label Studio.", "Give --token, or set LABEL_STUDIO_API_KEY.")
        self._http = httpx.Client(base_url=self.url, auth=_Token(self.url, token.strip()), timeout=timeout)

    def project(self, number: int) -> dict[str, Any]:
        """A project's settings."""
        try:
            found = self._send("GET", f"/api/projects/{number}/")
        except NotFoundError:
            raise NotFoundError(
                f"there is no project {number} at {self.url}, or the token's owner may not see it.",
                "Give the number in the project's address: .../projects/NUMBER/data.",
            ) from None
        return dict(found)

    def change_project(self, number: int, values: Mapping[str, Any]) -> None:
        """Change settings of a project."""
        self._send("PATCH", f"/api/projects/{number}/", dict(values))

    def tasks(self, project: int, changed_after: str | None = None) -> Iterator[list[dict[str, Any]]]:
        """Tasks with their annotations and predictions, some at a time, oldest first; all, or those changed later."""
        query: dict[str, Any] = {"ordering": ["tasks:id"]}
        if changed_after is not None:
            item = {"filter": "filter:tasks:updated_at", "operator": "greater", "type": "Datetime"}
            query["filters"] = {"conjunction": "and", "items": [{**item, "value": changed_after}]}
        page = 0
        while True:
            page += 1
            options = {
                "project": project, "page": page, "page_size": PAGE, "fields": "all", "resolve_uri": "false",
                "query": json.dumps(query),
            }  # fmt: skip
            found = self._send("GET", "/api/tasks", params=options)
            yield list(found["tasks"])
            if page * PAGE >= found["total"]:
                return

    def task(self, number: int) -> dict[str, Any]:
        """One task with its annotations."""
        return dict(self._send("GET", f"/api/tasks/{number}/", params={"resolve_uri": "false"}))

    def change_task(self, number: int, data: Mapping[str, Any]) -> None:
        """Replace the data of a task."""
        self._send("PATCH", f"/api/tasks/{number}/", {"data": dict(data)})

    def members(self, organisation: int) -> list[dict[str, Any]]:
        """The people of an organisation, all of whom may label in its projects."""
        found: list[dict[str, Any]] = []
        page = 0
        while True:
            page += 1
            path = f"/api/organizations/{organisation}/memberships"
            some = self._send("GET", path, params={"page": page, "page_size": PAGE})
            found += [member["user"] for member in some["results"]]
            if some["next"] is None:
                return found

    def tabs(self, project: int) -> list[dict[str, Any]]:
        """The Data Manager's tabs."""
        return list(self._send("GET", "/api/dm/views/", params={"project": project}))

    def create_tab(self, project: int, data: Mapping[str, Any]) -> dict[str, Any]:
        """A new tab."""
        return dict(self._send("POST", "/api/dm/views/", {"project": project, "data": dict(data)}))

    def webhooks(self, project: int) -> list[dict[str, Any]]:
        """What Label Studio tells others about a project."""
        found = self._send("GET", "/api/webhooks/", params={"project": project})
        return [hook for hook in found if hook["project"] == project]

    def create_webhook(self, values: Mapping[str, Any]) -> None:
        """Have Label Studio tell of more."""
        self._send("POST", "/api/webhooks/", dict(values))

    def change_webhook(self, number: int, values: Mapping[str, Any]) -> None:
        """Change where or what Label Studio tells."""
        self._send("PATCH", f"/api/webhooks/{number}/", dict(values))

    def predictions(self, project: int) -> list[dict[str, Any]]:
        """All predictions of a project."""
        return list(self._send("GET", "/api/predictions/", params={"project": project}))

    def add_predictions(self, project: int, predictions: list[dict[str, Any]]) -> None:
        """More predictions."""
        self._send("POST", f"/api/projects/{project}/import/predictions", predictions)

    def change_prediction(self, number: int, values: Mapping[str, Any]) -> None:
        """Another result or score."""
        self._send("PATCH", f"/api/predictions/{number}/", dict(values))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> Any:
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
        raise UnavailableError(f"Label Studio at {self.url} does not answer ({problem}).", "Is it running there?")

    def _read(self, response: httpx.Response) -> Any:
        status = response.status_code
        if status in (401, 403):
            raise InputError(
                f"Label Studio at {self.url} does not accept the token ({_detail(response)}).",
                "Give --token or LABEL_STUDIO_API_KEY as Account & Settings shows it; legacy tokens must be allowed.",
            )
        if status == 404:
            raise NotFoundError(f"Label Studio has no {response.request.url.path}.", "Was it deleted there?")
        if status >= 400:
            raise InputError(f"Label Studio refused {response.request.url.path}: {_detail(response)}.")
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise InputError(
                f"what answers at {self.url} is not Label Studio.", "Give its address, e.g. http://localhost:8080."
            ) from None


def _detail(response: httpx.Response) -> str:
    """What the server says is wrong."""
    try:
        found = response.json()
        text = str(found.get("validation_errors") or found.get("detail") or found)
    except (ValueError, AttributeError):
        text = f"HTTP {response.status_code}"
    return " ".join(text.split())[:200].rstrip(".")


def checked_url(url: str) -> str:
    """The address of a server, as it is spelt everywhere."""
    try:
        parts = httpx.URL(url.strip())
    except httpx.InvalidURL:
        parts = httpx.URL()
    if parts.scheme not in ("http", "https") or not parts.host or parts.query or parts.fragment:
        raise InputError(f"--url {url!r} is not the address of a server.", "Give e.g. --url http://localhost:8080.")
    return str(parts).rstrip("/")
