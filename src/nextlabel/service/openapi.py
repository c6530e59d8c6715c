"""The OpenAPI document: what routes can answer beside what they should, and who may call them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from nextlabel.service.auth import API
from nextlabel.service.problem_details import MEDIA_TYPE
from nextlabel.service.request_models import Answer, WhoAsks
from nextlabel.service.response_models import ProblemDetails

_SCHEMAS = "#/components/schemas/"
_WORDS = {
    400: "The body cannot be read",
    401: "Token missing or unknown",
    403: "Not for this token",
    404: "Not found",
    409: "It contradicts what is recorded",
    413: "Too large",
    415: "Media type not read",
    422: "Not allowed",
    500: "Fault of the service",
    503: "The store does not answer",
}
_OPEN = (f"{API}/healthz",)
#: Models that routes read by themselves.
_EXTRA: tuple[type[BaseModel], ...] = (ProblemDetails, WhoAsks, Answer)

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """Documentation of errors: those named, and those that any route can answer."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{_SCHEMAS}Problem"}}}
    every = sorted({*statuses, 400, 401, 403, 413, 422, 500, 503})
    return {status: {"description": _WORDS[status], "content": content} for status in every}


def body_of(model: type[BaseModel], required: bool) -> dict[str, Any]:
    """Documentation of a body that the route reads by itself."""
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{model.__name__}"}}}
    return {"requestBody": {"content": content, "required": required}}


def complete(app: FastAPI) -> None:
    """Have the app's document say who may call what, and what errors look like."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            parts = document.setdefault("components", {})
            for model in _EXTRA:
                made = model.model_json_schema(ref_template=_SCHEMAS + "{model}")
                parts.setdefault("schemas", {}).update(made.pop("$defs", {}))
                parts["schemas"][model.__name__] = made
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    operation["security"] = [] if path in _OPEN else [{"token": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
