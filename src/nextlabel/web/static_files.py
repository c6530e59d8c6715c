"""Style sheets, scripts and images of the pages: read once, each with an address that changes with its content."""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
ADDRESS = "/static"
CACHE_FOREVER, REVALIDATE = "public, max-age=31536000, immutable", "no-cache"


class StaticFile(NamedTuple):
    """One file, ready to be sent."""

    data: bytes
    media_type: str
    version: str


@cache
def static_files() -> dict[str, StaticFile]:
    """All files, by their path in the folder."""
    return {path.relative_to(FOLDER).as_posix(): _read(path) for path in sorted(FOLDER.rglob("*")) if path.is_file()}


def static_url(name: str) -> str:
    """The address of a file."""
    return f"{ADDRESS}/{name}?v={static_files()[name].version}"


def mount_static(app: FastAPI) -> None:
    """Serve the files."""
    app.add_api_route(f"{ADDRESS}/{{name:path}}", _serve, methods=["GET", "HEAD"], include_in_schema=False)


async def _serve(name: str, request: Request) -> Response:
    file = static_files().get(name)
    if file is None:
        raise HTTPException(404)
    versioned = request.query_params.get("v") == file.version
    headers = {"cache-control": CACHE_FOREVER if versioned else REVALIDATE, "etag": f'"{file.version}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers, media_type=file.media_type)


def _read(path: Path) -> StaticFile:
    data = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return StaticFile(data, kind, hashlib.sha256(data).hexdigest()[:12])
