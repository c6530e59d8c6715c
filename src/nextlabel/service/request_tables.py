"""A table in the body of a request: its format by the media type, and its bytes in a temporary file."""

from __future__ import annotations

import tempfile
from typing import IO

from fastapi import Request

from nextlabel.errors import MediaTypeError
from nextlabel.files.open_table import Format

#: The largest body that is held in memory instead of a file, in bytes.
IN_MEMORY = 4 << 20
#: Formats of a body by its media type.
FORMATS: dict[str, Format] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json": "json",
}


def table_format(request: Request) -> Format:
    """The format of the body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMATS:
        raise MediaTypeError(f"a body of type {kind[:60]!r} is not supported.", f"Send {', '.join(FORMATS)}.")
    return FORMATS[kind]


async def saved_body(request: Request) -> IO[bytes]:
    """The whole body in a file that the caller closes."""
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed by the caller
    try:
        async for piece in request.stream():
            file.write(piece)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
