"""The OpenAPI document: the errors that routes can answer with, and who may call them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from nextlabel.service.auth import API
from nextlabel.service.models import AskRequest, ProblemDetails, ProlificEventRequest, ReleaseRequest, TellRequest
from nextlabel.service.problem_details import MEDIA_TYPE

_SCHEMAS = "#/components/schemas/"
_DESCRIPTIONS = {
    400: "The body cannot be read",
    401: "Token missing or unknown",
    403: "Not allowed with this token",
    404: "Not found",
    409: "It contradicts what is recorded",
    410: "The campaign was deleted",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid input",
    429: "Too many requests",
    500: "Internal error",
    503: "The database does not answer",
}
_OPEN = (f"{API}/healthz", f"{API}/readyz", f"{API}/hooks/prolific")
#: Models that FastAPI does not see because routes parse them themselves.
_EXTRA: tuple[type[BaseModel], ...] = (
    ProblemDetails,
    AskRequest,
    TellRequest,
    ReleaseRequest,
    ProlificEventRequest,
)

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """The documentation of errors: those given, and those that every route can answer with."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{_SCHEMAS}{ProblemDetails.__name__}"}}}
    gone = {410} if 404 in statuses else set()
    every = sorted({*statuses, *gone, 400, 401, 403, 413, 422, 429, 500, 503})
    return {status: {"description": _DESCRIPTIONS[status], "content": content} for status in every}


def body_of(model: type[BaseModel], required: bool) -> dict[str, Any]:
    """The documentation of a body that the route parses itself."""
    content = {"application/json": {"schema": {"$ref": f"{_SCHEMAS}{model.__name__}"}}}
    return {"requestBody": {"content": content, "required": required}}


def complete_document(app: FastAPI) -> None:
    """Add to the app's document who may call what, and what errors look like."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            components = document.setdefault("components", {})
            for model in _EXTRA:
                schema = model.model_json_schema(ref_template=_SCHEMAS + "{model}")
                components.setdefault("schemas", {}).update(schema.pop("$defs", {}))
                components["schemas"][model.__name__] = schema
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    operation["security"] = [] if path in _OPEN else [{"token": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def api_view(document: dict[str, Any]) -> dict[str, Any]:
    """The document for people: calls by their subject, each with its parameters, body and answers, and the models."""
    calls: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, one in operations.items():
            bodies = one.get("requestBody", {}).get("content", {})
            call = {
                "id": one["operationId"], "method": method.upper(), "path": path, "said": one.get("description", ""),
                "parameters": [
                    {"name": it["name"], "where": it["in"], "needed": it.get("required", False),
                     "kind": _kind(it["schema"]), "said": it.get("description", "")}
                    for it in one.get("parameters", [])
                ],
                "bodies": {kind: _kind(it.get("schema", {})) for kind, it in bodies.items()},
                "answers": {
                    status: (it["description"], [_kind(found["schema"]) for found in it.get("content", {}).values()
                                                 if "schema" in found][:1])
                    for status, it in one["responses"].items()
                },
            }  # fmt: skip
            calls.setdefault((one.get("tags") or ["other"])[0], []).append(call)
    models = {
        name: [
            {"name": field, "kind": _kind(it), "needed": field in schema.get("required", []),
             "said": it.get("description", "")}
            for field, it in schema.get("properties", {}).items()
        ]
        for name, schema in sorted(document["components"]["schemas"].items())
    }  # fmt: skip
    return {"calls": calls, "models": models, "version": document["info"]["version"], "address": API}


def _kind(schema: dict[str, Any]) -> str:
    """The type of a value in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_SCHEMAS)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_kind, schema["anyOf"])))
    if "enum" in schema:
        return " or ".join(map(repr, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
