"""``python docs/images/webhook_shots.py``: the page of a campaign's webhooks, with a receiver that is told and one that
is down."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE.parent.parent / "tests")]

from browser import at, launched  # noqa: E402
from nextlabel.web.pages import mount_pages  # noqa: E402
from service_fixtures import on_sqlite  # noqa: E402

LABELS = 12


class Receiver(BaseHTTPRequestHandler):
    """Acknowledges everything."""

    def do_POST(self) -> None:
        """Acknowledge."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    """Take the picture."""
    server = HTTPServer(("127.0.0.1", 9000), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, on_sqlite(
        Path(folder), pages=mount_pages, webhook_hosts="127.0.0.1:9000, 127.0.0.1:9001"
    ) as service:  # fmt: skip
        id = service.campaign("reviews", tasks=20, name="Product reviews")
        with service.http() as http:
            path = f"/campaigns/{id}/webhooks"
            for url in ("http://127.0.0.1:9000/labels", "http://127.0.0.1:9001/archive"):
                http.post(path, json={"url": url, "types": ["label.created", "task.closed"]}).raise_for_status()
            for k in range(LABELS):
                lease = http.post(f"/campaigns/{id}/ask", json={"worker": f"w{k % 3}"}).json()["lease"]
                http.post(f"/leases/{lease['id']}/tell", json={"label": "yes"}).raise_for_status()
            while True:
                told, down = http.get(path).json()["webhooks"]
                if told["delivered"] == LABELS and down["failures"] > 1:
                    break
                time.sleep(0.2)
        with launched() as browser, at(browser, {"width": 1100, "height": 700}) as page:
            page.goto(f"{service.url}/sign-in")
            page.fill("[name=token]", service.token)
            page.click("button[type=submit]")
            page.goto(f"{service.url}/campaigns/{id}/webhooks")
            page.screenshot(path=str(HERE / "webhooks.png"), full_page=True)


if __name__ == "__main__":
    main()
