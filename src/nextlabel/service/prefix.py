"""The service below a path of a site, as at ``https://example.org/labels``.

Inside, every address begins at the root. Requests lose the path here, unless a proxy has taken it off already: that of
the setting ``public_url``, or the ``root_path`` by which another application has mounted this one. Addresses in replies
get it: ``Location``, the paths of cookies, and, by ``prefixed``, what pages refer to.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

from starlette.types import Message, Scope, Send

_prefix: ContextVar[str] = ContextVar("prefix", default="")
_ADDRESS = re.compile(r'(\s(?:href|src|action|formaction|data-[a-z-]+)=")/(?!/)')
_COOKIE_PATH = re.compile(rb"(; *path=)/", re.IGNORECASE)


def current_prefix() -> str:
    """The path below which the service is, as this request came; empty for none."""
    return _prefix.get()


def prefixed(html: str) -> str:
    """A page, or a part of one, with its addresses below the path."""
    prefix = _prefix.get()
    return _ADDRESS.sub(lambda found: f"{found[1]}{prefix}/", html) if prefix else html


def without_prefix(public_path: str, scope: Scope, send: Send) -> tuple[Scope, Send]:
    """A request as if the service were at the root of its site, and how to send its reply."""
    prefix = (scope.get("root_path") or public_path).rstrip("/")
    _prefix.set(prefix)
    if not prefix:
        return scope, send
    path: str = scope["path"]
    if path == prefix or path.startswith(prefix + "/"):
        path = path[len(prefix) :] or "/"
    below = prefix.encode()

    async def send_below(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [_with_prefix(below, *header) for header in message.get("headers", ())]}
        await send(message)

    return {**scope, "path": path, "root_path": ""}, send_below


def _with_prefix(prefix: bytes, name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
        return name, prefix + value
    if name.lower() == b"set-cookie":
        return name, _COOKIE_PATH.sub(rb"\1" + prefix + b"/", value)
    return name, value
