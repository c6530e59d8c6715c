"""Requests to a Label Studio server: version 1.23's API, by a legacy token or a personal access token.

A personal access token is a JSON web token that is exchanged for short-lived ones; a legacy token is sent as it is.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from itertools import count
from typing import Any, Final, Literal

import httpx

from nextlabel.errors import InputError, NotFoundError
from nextlabel.integrations.tool import Tool, checked_url

#: Tasks and members that are read at once.
PAGE: Final = 100


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


class LabelStudio(Tool):
    """A server at ``url`` as the holder of a token sees it."""

    title, example = "Label Studio", "http://localhost:8080"
    credentials = "Give --token or LABEL_STUDIO_API_KEY as Account & Settings shows it; legacy tokens must be allowed."

    def __init__(self, url: str, token: str, timeout: float = 30.0) -> None:
        address = checked_url(url)
        if not token.strip():
            raise InputError("there is no token for Label Studio.", "Give --token, or set LABEL_STUDIO_API_KEY.")
        super().__init__(address, _Token(address, token.strip()), timeout)

    def project(self, number: int) -> dict[str, Any]:
        """A project's settings."""
        try:
            found = self.send("GET", f"/api/projects/{number}/")
        except NotFoundError:
            raise NotFoundError(
                f"there is no project {number} at {self.url}, or the token's owner may not see it.",
                "Give the number in the project's address: .../projects/NUMBER/data.",
            ) from None
        return dict(found)

    def change(
        self, kind: Literal["projects", "tasks", "webhooks", "predictions"], number: int, values: Mapping[str, Any]
    ) -> None:
        """Change some values of one of a kind."""
        self.send("PATCH", f"/api/{kind}/{number}/", dict(values))

    def tasks(self, project: int, changed_after: str | None = None) -> Iterator[list[dict[str, Any]]]:
        """Tasks with their annotations and predictions, some at a time, oldest first; all, or those changed later."""
        query: dict[str, Any] = {"ordering": ["tasks:id"]}
        if changed_after is not None:
            item = {"filter": "filter:tasks:updated_at", "operator": "greater", "type": "Datetime"}
            query["filters"] = {"conjunction": "and", "items": [{**item, "value": changed_after}]}
        for page in count(1):
            options = {
                "project": project, "page": page, "page_size": PAGE, "fields": "all", "resolve_uri": "false",
                "query": json.dumps(query),
            }  # fmt: skip
            found = self.send("GET", "/api/tasks", params=options)
            yield list(found["tasks"])
            if page * PAGE >= found["total"]:
                return

    def task(self, number: int) -> dict[str, Any]:
        """One task with its annotations."""
        return dict(self.send("GET", f"/api/tasks/{number}/", params={"resolve_uri": "false"}))

    def members(self, organisation: int) -> list[dict[str, Any]]:
        """The people of an organisation, all of whom may label in its projects."""
        found: list[dict[str, Any]] = []
        path = f"/api/organizations/{organisation}/memberships"
        for page in count(1):
            some = self.send("GET", path, params={"page": page, "page_size": PAGE})
            found += [member["user"] for member in some["results"]]
            if some["next"] is None:
                break
        return found

    def tabs(self, project: int) -> list[dict[str, Any]]:
        """The Data Manager's tabs."""
        return list(self.send("GET", "/api/dm/views/", params={"project": project}))

    def create_tab(self, project: int, data: Mapping[str, Any]) -> dict[str, Any]:
        """A new tab."""
        return dict(self.send("POST", "/api/dm/views/", {"project": project, "data": dict(data)}))

    def webhooks(self, project: int) -> list[dict[str, Any]]:
        """What Label Studio tells others about a project."""
        found = self.send("GET", "/api/webhooks/", params={"project": project})
        return [hook for hook in found if hook["project"] == project]

    def create_webhook(self, values: Mapping[str, Any]) -> None:
        """Have Label Studio tell of more."""
        self.send("POST", "/api/webhooks/", dict(values))

    def predictions(self, project: int) -> list[dict[str, Any]]:
        """All predictions of a project."""
        return list(self.send("GET", "/api/predictions/", params={"project": project}))

    def add_predictions(self, project: int, predictions: list[dict[str, Any]]) -> None:
        """More predictions."""
        self.send("POST", f"/api/projects/{project}/import/predictions", predictions)
