"""A site that stands for Mechanical Turk: it shows another page in a frame, and takes assignments that come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

GONE = "<p>Handed back.</p>"


@dataclass
class Platform:
    """A site that shows another page in a frame, and takes assignments that are handed back."""

    url: str = ""
    handed_back: list[dict[str, str]] = field(default_factory=list)

    def framing(self, address: str) -> str:
        """The page that frames an address."""
        return f"{self.url}/?frame={quote(address, safe='')}"

    def parameters(self, worker: str, assignment: str = "3ASSIGNMENT") -> dict[str, str]:
        """What Mechanical Turk adds to the address."""
        return {"assignmentId": assignment, "hitId": "HIT1", "workerId": worker, "turkSubmitTo": self.url}


@contextmanager
def platform(redirect: str = "", around: str = "{frame}") -> Iterator[Platform]:
    """The site while it runs; ``redirect`` is where it sends work that came back, ``around`` its page."""
    site = Platform()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = dict(parse_qsl(urlsplit(self.path).query))
            framed = given.get("frame", "").replace("&", "&amp;")
            shown = f'<iframe title="HIT" src="{framed}" width="900" height="700"></iframe>'
            self.answer(around.replace("{frame}", shown) if framed else GONE)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            site.handed_back.append({"path": self.path, **dict(parse_qsl(body))})
            if redirect:
                self.send_response(303)
                self.send_header("location", redirect)
                self.end_headers()
            else:
                self.answer()

        def answer(self, body: str = GONE) -> None:
            page = f"<!doctype html><html lang=en><title>Turk</title><body>{body}".encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    site.url = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
