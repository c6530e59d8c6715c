"""A campaign on the real service, over HTTP with the requester's token: what a replay of recorded labels does to it.

A replay is quicker than people: after a label at which a refit is due, it waits until the refit is there, as it would
be if labels came every few seconds.
"""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.live.server import Server
from nextlabel.arrays import Floats
from nextlabel.service.access import first_token
from nextlabel.store.sql import open_store

#: Seconds between two looks at whether a refit is there, or a campaign ready.
LOOK_S = 0.02


class Given(NamedTuple):
    """A lease and the item that it is for, or the reason why there is none."""

    lease: str = ""
    item: int = -1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Audited:
    """What the certificate says of an audit."""

    accuracy: float
    low: float
    high: float


class RunningService:
    """``nextlabel serve`` in a process of its own, on a new database."""

    def __init__(self, url: str) -> None:
        store = open_store(url)
        self.token = first_token(store) or ""
        store.close()
        self.server = Server(url)
        self.server.start()

    def close(self) -> None:
        """Stop it."""
        self.server.stop()


class HttpCampaign:
    """One campaign; items are called by their numbers."""

    def __init__(self, service: RunningService, tasks: list[int], **settings: Any) -> None:
        self._headers = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", service.server.port, timeout=300)
        self.id = str(self.call("POST", "/campaigns", settings)["id"])
        self.call("POST", f"/campaigns/{self.id}/tasks", [{"id": str(x), "payload": x} for x in tasks])
        self.spent, self._due, self._seq = 0, 0, 0
        self._labels: list[str] = list(settings["labels"])

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The reply's JSON; what is not ready yet is asked for again."""
        while True:
            data = None if body is None else json.dumps(body)
            self._connection.request(method, f"/api/v1{path}", data, self._headers)
            reply = self._connection.getresponse()
            said = json.loads(reply.read())
            if reply.status == 503:
                time.sleep(LOOK_S)
                continue
            if reply.status not in (200, 201):
                raise RuntimeError(f"{method} {path}: {reply.status} {said}")
            return said

    def ask(self, worker: str) -> Given:
        """The next item for a worker."""
        while True:
            said = self.call("POST", f"/campaigns/{self.id}/ask", {"worker": worker})
            if said["lease"] is not None:
                return Given(said["lease"]["id"], int(said["lease"]["payload"]))
            if said["reason"] != "preparing":
                return Given(reason=said["reason"])
            time.sleep(LOOK_S)

    def tell(self, lease: str, answer: int) -> None:
        """The answer; a refit that is due is waited for at the next ask."""
        self.spent += bool(self.call("POST", f"/leases/{lease}/tell", {"label": self._labels[answer]})["counted"])

    def release(self, lease: str) -> None:
        """Pass the item on."""
        self.call("POST", f"/leases/{lease}/release")

    def wait_for_refit(self) -> None:
        """Wait for the refit that is due, if one is; asks begin it, so one must have been made since the last label."""
        while self.spent >= self._due:
            for event in self._news():
                if event["kind"] == "refitted":
                    self._due = int(event["data"]["next"])
            if self.spent >= self._due:
                time.sleep(LOOK_S)

    def _news(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while some := self.call("GET", f"/campaigns/{self.id}/events?after={self._seq}&limit=1000")["events"]:
            self._seq = some[-1]["seq"]
            found += some
        return found

    @property
    def closed(self) -> bool:
        """Whether nothing more can happen."""
        return bool(self.call("GET", f"/campaigns/{self.id}")["state"] == "closed")

    def beliefs(self, tasks: int) -> Floats:
        """(K, C) of the items by number, from the results: the likeliest answer's probability, the rest shared."""
        out = np.zeros((tasks, len(self._labels)))
        after: int | None = -1
        while after is not None:
            some = self.call("GET", f"/campaigns/{self.id}/results?after={after}&limit=1000")
            for one in some["results"]:
                answer, p = self._labels.index(one["label"]), float(one["probability"])
                out[int(one["task"])] = (1.0 - p) / (len(self._labels) - 1)
                out[int(one["task"]), answer] = p
            after = some["next"]
        return out

    def audit(self, items: int, truth: list[int]) -> Audited:
        """Draw items, answer them with the truth, and read the certificate."""
        drawn = self.call("POST", f"/campaigns/{self.id}/audit/draw", {"items": items})["items"]
        answers = {one["task"]: self._labels[truth[int(one["task"])]] for one in drawn}
        self.call("POST", f"/campaigns/{self.id}/audit/answers", {"answers": answers})
        found = self.call("GET", f"/campaigns/{self.id}/certificate")["audit"]
        return Audited(found["accuracy"], found["low"], found["high"])

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()
