"""A real Label Studio server in a process of its own, with people and projects, to be used and killed.

It lives in a virtual environment of its own (``.venv-label-studio``, made by ``make test-label-studio``).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.live.server import free_port

PROGRAM = Path(__file__).parents[2] / ".venv-label-studio" / "bin" / "label-studio"
TOKEN = "0123456789abcdef0123456789abcdef01234567"
OWNER, PASSWORD = "owner@example.org", "a-long-password"
CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="sentiment" toName="text" choice="single">'
    '<Choice value="negative"/><Choice value="positive"/></Choices></View>'
)


class StudioServer:
    """``label-studio start`` on a port, with its data in a folder."""

    def __init__(self, folder: Path, port: int | None = None, **environment: str) -> None:
        self.folder, self.port = folder, port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **os.environ,
            "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
            "LABEL_STUDIO_USERNAME": OWNER,
            "LABEL_STUDIO_PASSWORD": PASSWORD,
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "SECRET_KEY": "the same after a restart, so that sessions go on",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "SSRF_PROTECTION_ENABLED": "false",  # nextlabel is on this machine
            "WEBHOOK_TIMEOUT": "60",  # this machine may be busy
            **environment,
        }
        self._environment.pop("PYTHONPATH", None)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, patience: float = 600.0) -> float:
        """Start and wait until it answers; returns the seconds it took."""
        begun = time.monotonic()
        command = [str(PROGRAM), "start", "--no-browser", "--port", str(self.port), "--internal-host", "127.0.0.1"]
        with (self.folder / "server.log").open("ab") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env=self._environment, cwd=self.folder, start_new_session=True
            )
        while time.monotonic() - begun < patience:
            if self.process.poll() is not None:
                raise RuntimeError(f"Label Studio ended: see {self.folder / 'server.log'}")
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return time.monotonic() - begun
            except httpx.TransportError:
                time.sleep(0.2)
        raise RuntimeError("Label Studio did not answer")

    def kill(self) -> None:
        """kill -9 of the server and all its processes."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def client(self, token: str = TOKEN) -> httpx.Client:
        """Requests as the holder of a token."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Token {token}"}, timeout=300)

    def sign_up(self, email: str) -> str:
        """Somebody joins by the invitation's link; returns their token."""
        with self.client() as owner:
            link = owner.get("/api/invite").json()["invite_url"]
        with httpx.Client(base_url=self.url, timeout=300) as person:
            found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', person.get(link).text)
            assert found is not None
            form = {"csrfmiddlewaretoken": found[1], "email": email, "password": PASSWORD, "allow_newsletters": "false"}
            person.post(link, data=form, headers={"Referer": self.url + link})
            return str(person.get("/api/current-user/token").raise_for_status().json()["token"])

    def make_project(self, texts: list[str], config: str = CONFIG, title: str = "Reviews") -> int:
        """A project with one task for each text."""
        with self.client() as owner:
            made = owner.post("/api/projects", json={"title": title, "label_config": config}).raise_for_status().json()
            tasks = [{"text": text} for text in texts]
            owner.post(f"/api/projects/{made['id']}/import", json=tasks).raise_for_status()
        return int(made["id"])

    def annotations(self, project: int) -> list[dict[str, Any]]:
        """All annotations: task, user, label (None if it was skipped)."""
        found: list[dict[str, Any]] = []
        with self.client() as owner:
            page = 0
            while True:
                page += 1
                options: dict[str, str | int] = {"project": project, "page": page, "page_size": 100, "fields": "all"}
                some = owner.get("/api/tasks", params=options).raise_for_status().json()
                for task in some["tasks"]:
                    for one in task["annotations"]:
                        choices = [choice for part in one["result"] for choice in part["value"]["choices"]]
                        found.append(
                            {
                                "id": one["id"], "task": task["id"], "user": one["completed_by"],
                                "label": choices[0] if choices and not one["was_cancelled"] else None,
                                "at": one["created_at"],
                            }
                        )  # fmt: skip
                if page * 100 >= some["total"]:
                    return found


class Person:
    """Somebody who labels in their tab through the API as the labelling page does."""

    def __init__(self, server: StudioServer, token: str, project: int) -> None:
        self.http, self.project = server.client(token), project
        self.user = int(self.http.get("/api/current-user/whoami").raise_for_status().json()["id"])
        self._filters: dict[str, Any] | None = None

    def next_task(self) -> dict[str, Any] | None:
        """What the page asks for, with the filter of the person's tab; None if there is none."""
        if self._filters is None:
            tabs = self.http.get("/api/dm/views", params={"project": self.project}).raise_for_status().json()
            mine = [tab for tab in tabs if f",{self.user}," in str(tab["data"].get("filters"))]
            if not mine:
                return None
            self._filters, self._tab = mine[0]["data"]["filters"], mine[0]["id"]
        path = f"/api/dm/actions?id=next_task&tabID={self._tab}&project={self.project}"
        body: dict[str, Any] = {"filters": self._filters, "ordering": [], "project": str(self.project)}
        found = self.http.post(path, json=body)
        return None if found.status_code == 404 else dict(found.raise_for_status().json())

    def submit(self, task: int, label: str | None) -> int:
        """Label a task, or skip it; returns the annotation's number."""
        body = {"result": result_of(label), "was_cancelled": label is None, "lead_time": 2.0}
        made = self.http.post(f"/api/tasks/{task}/annotations/", params={"project": self.project}, json=body)
        return int(made.raise_for_status().json()["id"])

    def change(self, annotation: int, label: str) -> None:
        """Another label."""
        self.http.patch(f"/api/annotations/{annotation}/", json={"result": result_of(label)}).raise_for_status()

    def delete(self, annotation: int) -> None:
        """Delete an annotation."""
        self.http.delete(f"/api/annotations/{annotation}/").raise_for_status()

    def close(self) -> None:
        """Close the connections."""
        self.http.close()


def result_of(label: str | None) -> list[dict[str, Any]]:
    """A result with one choice, or none."""
    value = {"choices": [label]}
    one = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": value}
    return [] if label is None else [one]
