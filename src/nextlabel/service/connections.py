"""Connections that cost their senders more than the service: limits on the size and the time of what they send.

=========== ================= =================================================================================
limit       setting           what happens
=========== ================= =================================================================================
head_size   max_header_bytes  431: the address and the headers of a request are too large
head_time   head_seconds      408: the head of a request took too long; a connection that says nothing is closed
body_time   body_seconds      408: a body arrived with less than ``SLOWEST`` bytes a second
read_time   body_seconds      a response that nobody reads for ``READ_FACTOR`` times as long is broken off
connections max_connections   the connection that has been idle longest is closed for a new one; 503 if none is idle
=========== ================= =================================================================================

uvicorn has no such limits with httptools: an endless header is copied again with each piece that arrives, and a
connection that never sends anything stays for ever. Each connection knows until when something has to arrive or to be
read; every ``LOOK_S`` seconds all of them are looked at.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection
from http import HTTPStatus
from math import inf
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from nextlabel.service.problem_details import MEDIA_TYPE, TYPE
from nextlabel.service.settings import ServiceSettings

#: Bytes per second of a body, averaged over ``body_seconds``, below which it is given up.
SLOWEST = 500
#: How many times ``body_seconds`` a response waits to be read.
READ_FACTOR = 4
#: Seconds between two looks at the connections; after one that was later, what has arrived is taken first.
LOOK_S = 0.2
#: Open files that a process needs beside its connections.
OTHER_FILES = 128
#: Under this name the app's lifespan hands the limits to its connections.
STATE = "connection_limits"


class ConnectionLimits:
    """The limits, what counts a refusal by the name of the limit, and the watch over the connections."""

    def __init__(self, settings: ServiceSettings, count: Callable[[str], None] = lambda limit: None) -> None:
        self.settings, self.count = settings, count
        #: Connections at once: those of the settings, or as many as the process may have files open.
        self.most = max(1, min(settings.max_connections, open_files_allowed() - OTHER_FILES))
        self._watching = False

    def watch(self, loop: asyncio.AbstractEventLoop, connections: Collection[Any]) -> None:
        """Look at the connections again and again while there are any."""
        if not self._watching:
            self._watching = True
            loop.call_later(LOOK_S, self._look, loop, connections, time.monotonic())

    def _look(self, loop: asyncio.AbstractEventLoop, connections: Collection[Any], before: float) -> None:
        now = time.monotonic()
        if now < before + 2 * LOOK_S:  # else this process was busy
            for one in list(connections):
                one.look(now)
        self._watching = False
        if connections:
            self.watch(loop, connections)


def open_files_allowed() -> int:
    """Files that this process may have open, after asking for as many as it can get."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 1 << 20
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            return soft
    return 1 << 20 if hard == resource.RLIM_INFINITY else hard


class GuardedProtocol(HttpToolsProtocol):
    """One connection of the service."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits: ConnectionLimits = self.app_state.get(STATE) or ConnectionLimits(ServiceSettings())
        self._head_bytes = self._body_bytes = self._piece_bytes = 0
        self._in_head = True
        #: Until when the head or the next part of the body has to be there, and what was written be read.
        self._due = self._read_by = inf
        self.idle_since = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection if there is room."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.most and not self._make_room():
            self._refuse(503, "connections", "too many connections at once.", "Try again in a moment.")
            return
        self._expect_head()
        self._limits.watch(self.loop, self.connections)

    def look(self, now: float) -> None:
        """Close the connection if the time for its head, its body or its response is over."""
        if now > self._read_by:
            self._limits.count("read_time")
            self.transport.abort()
        elif now > self._due and self._in_head:
            self._refuse(
                408, "head_time", f"no complete request arrived within {self._limits.settings.head_seconds:g} seconds.",
                "Send it at once.",
            )  # fmt: skip
        elif now > self._due:  # what the service itself has not taken does not count
            if self.flow.read_paused or self._body_bytes >= SLOWEST * self._limits.settings.body_seconds:
                self._expect_body()
                return
            detail = f"the body arrives with less than {SLOWEST} bytes a second."
            self._refuse(408, "body_time", detail, "Send it faster.")

    def data_received(self, data: bytes) -> None:
        """Take what has arrived; the head of a request must not grow for ever."""
        if self.transport.is_closing():
            return
        self._piece_bytes = len(data)
        self._body_bytes += self._piece_bytes
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head_bytes += self._piece_bytes
            if self._head_bytes > self._limits.settings.max_header_bytes:
                self._refuse_head()

    def on_message_begin(self) -> None:
        """A request begins: its head has to arrive in time."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """The head is there: the body has to go on arriving."""
        limit = self._limits.settings.max_header_bytes
        is_short = self._head_bytes + self._piece_bytes <= limit  # with all that has arrived beside it
        self._in_head, self._head_bytes = False, 0
        if not is_short and len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > limit:
            self._refuse_head()
            return
        super().on_headers_complete()
        self._expect_body()

    def on_body(self, body: bytes) -> None:
        """A part of a body; nobody waits for that of a request that was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._due = inf
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """The request is answered."""
        self.idle_since = time.monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The sender does not read as fast as the service writes."""
        super().pause_writing()
        self._read_by = time.monotonic() + READ_FACTOR * self._limits.settings.body_seconds

    def resume_writing(self) -> None:
        """The sender has read what was written."""
        self._read_by = inf
        super().resume_writing()

    def _make_room(self) -> bool:
        """Close the connection that has been idle longest; False if there is none."""
        idle = [one for one in self.connections if isinstance(one, GuardedProtocol) and one is not self and one.is_idle]
        if not idle:
            return False
        oldest = min(idle, key=lambda one: one.idle_since)
        self._limits.count("connections")
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    def _expect_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._due = time.monotonic() + self._limits.settings.head_seconds

    def _expect_body(self) -> None:
        self._body_bytes = 0
        self._due = time.monotonic() + self._limits.settings.body_seconds

    def _refuse_head(self) -> None:
        self._refuse(
            431, "head_size",
            f"the address and the headers have more than {self._limits.settings.max_header_bytes:,} bytes.",
            "Send fewer or shorter headers.",
        )  # fmt: skip

    def _refuse(self, status: int, limit: str, detail: str, hint: str) -> None:
        """Say why, unless a response has begun, and close the connection."""
        self._due = inf
        if self.transport.is_closing():
            return
        self._limits.count(limit)
        if self.is_idle or not self.cycle.response_started:
            title = HTTPStatus(status).phrase
            problem = {"type": TYPE + limit.replace("_", "-"), "title": title, "status": status, "detail": detail,
                       "hint": hint, "request_id": ""}  # fmt: skip
            body = json.dumps(problem).encode()
            head = [f"HTTP/1.1 {status} {title}", f"content-type: {MEDIA_TYPE}", f"content-length: {len(body)}",
                    "connection: close", *(["retry-after: 1"] if status == 503 else [])]  # fmt: skip
            self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()
