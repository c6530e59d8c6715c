"""What can be had page by page as JSON, or whole as a file of CSV or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Literal, TypeVar

from starlette.responses import StreamingResponse

from nextlabel.files.write import export_text
from nextlabel.service.openapi import Responses

T = TypeVar("T")
#: Rows that are streamed together.
CHUNK = 500
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}


def page_or_file(page: Any) -> Responses:
    """The documentation of a reply that is one page of JSON, or a file."""
    text = {"schema": {"type": "string"}}
    return {200: {"model": page, "content": {"text/csv": text, "application/x-ndjson": text}}}


def file_response(
    name: str,
    format: Literal["csv", "jsonl"],
    rows: Iterable[T],
    header: Sequence[str],
    cells: Callable[[T], Sequence[Any]],
) -> StreamingResponse:
    """All rows (dataclasses) as a file: a line of ``cells`` below a ``header``, or one JSON object for each."""
    lines = _csv(rows, header, cells) if format == "csv" else _jsonl(rows)
    attached = {"content-disposition": f'attachment; filename="{name}.{format}"'}
    return StreamingResponse(lines, media_type=_TYPES[format], headers=attached)


def _jsonl(rows: Iterable[Any]) -> Iterator[bytes]:
    for chunk in _chunks(rows):
        yield "".join(json.dumps(asdict(row)) + "\n" for row in chunk).encode()


def _csv(rows: Iterable[T], header: Sequence[str], cells: Callable[[T], Sequence[Any]]) -> Iterator[bytes]:
    yield export_text([header]).encode()
    for chunk in _chunks(rows):
        yield export_text(cells(row) for row in chunk).encode()


def _chunks(rows: Iterable[T]) -> Iterator[list[T]]:
    found = iter(rows)
    while chunk := list(islice(found, CHUNK)):
        yield chunk
