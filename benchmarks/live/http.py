"""A small HTTP client for load: one connection, one request at a time, as little work a request as Python allows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

#: What a broken connection looks like.
BROKEN = (ConnectionError, asyncio.IncompleteReadError, OSError, TimeoutError)


class Connection:
    """Keeps one connection to a service open and makes it anew when it breaks."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._host, self._port, self.token = host, port, token
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: dict[str, Any] | None = None, timeout: float = 60.0) -> tuple[int, Any]:
        """Status and JSON of a POST; raises one of BROKEN if the connection breaks."""
        data = json.dumps(body or {}).encode()
        try:
            async with asyncio.timeout(timeout):
                if self._writer is None:
                    self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
                assert self._reader is not None
                self._writer.write(
                    f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nAuthorization: Bearer {self.token}\r\n"
                    f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                    + data
                )
                await self._writer.drain()
                head = await self._reader.readuntil(b"\r\n\r\n")
                status = int(head[9:12])
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                text = await self._reader.readexactly(length)
        except BROKEN:
            self.close()
            raise
        return status, json.loads(text) if text else None

    def close(self) -> None:
        """Drop the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None
