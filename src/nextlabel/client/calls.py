"""The requests that a client sends, when they are sent again, and what their JSON becomes: shared by both clients.

Every request may be sent twice: campaigns have ids, batches of tasks have keys, and repeating a command on a lease
changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import count, islice
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx

from nextlabel.campaign.events import Event
from nextlabel.campaign.new_tasks import row_tables, task_tables
from nextlabel.campaign.replies import (
    Added,
    AddedPredictions,
    AuditItem,
    ChangedLabels,
    Lease,
    NoTask,
    Told,
    lease_id_of,
)
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.rows import new_campaign_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Standing
from nextlabel.campaigns.certificate import AuditedAccuracy, Certificate, More
from nextlabel.campaigns.imports import ImportStatus
from nextlabel.campaigns.status import CampaignLinks, CampaignStatus, JoinLink, WorkerLink
from nextlabel.campaigns.worker_reports import WorkerReport
from nextlabel.errors import (
    ConflictError,
    GoneError,
    InputError,
    NextlabelError,
    NotAllowedError,
    NotFoundError,
    TokenError,
    TooManyRequestsError,
    UnavailableError,
)

T = TypeVar("T")

#: Tasks per request, and results or events per page.
BATCH, PAGE = 5_000, 1_000

#: Statuses that mean: try again later.
RETRIED = frozenset({429, 502, 503, 504})

#: Seconds before the second attempt, doubled each time up to the longest wait; half of a wait is random.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0

_ERRORS: dict[int, type[NextlabelError]] = {
    **dict.fromkeys((400, 413, 415, 422), InputError),
    **dict.fromkeys(RETRIED, UnavailableError),
    429: TooManyRequestsError,
    401: TokenError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
}


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and the function that makes its JSON a value."""

    method: str
    path: str
    parse: Callable[[Any], T]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items, and the cursor of the next page, None on the last."""

    items: list[T]
    next: int | None


def create(id: str | None, settings: Mapping[str, Any]) -> Call[CampaignStatus]:
    """Create a campaign, or find the one with that id and these settings."""
    given = CampaignSettings.from_dict(settings).to_dict()
    body = {name: given[name] for name in settings}
    return Call("POST", "/campaigns", _status, {"json": {"id": id or new_campaign_id(), **body}})


def campaigns() -> Call[list[CampaignStatus]]:
    """List all campaigns."""
    return Call("GET", "/campaigns", lambda found: [_status(one) for one in found["campaigns"]])


def status(campaign: str) -> Call[CampaignStatus]:
    """Show one campaign."""
    return Call("GET", f"/campaigns/{campaign}", _status)


def change(campaign: str, values: Mapping[str, Any]) -> Call[CampaignStatus]:
    """Change a campaign's settings."""
    body = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
    return Call("PATCH", f"/campaigns/{campaign}", _status, {"json": body})


def delete(campaign: str) -> Call[None]:
    """Delete a campaign."""
    return Call("DELETE", f"/campaigns/{campaign}", lambda found: None)


def steer(campaign: str, verb: str) -> Call[CampaignStatus]:
    """Pause or resume a campaign."""
    return Call("POST", f"/campaigns/{campaign}/{verb}", _status)


def task_batches(campaign: str, tasks: Any, size: int) -> Iterator[Call[Added]]:
    """Add tasks in batches, each under a key that depends on its place and content only."""
    rest = iter(task_tables(tasks))
    for number in count():
        batch = list(islice(rest, size))
        if not batch:
            return
        body = "".join(json.dumps(task) + "\n" for task in batch).encode()
        key = f"{number}-{hashlib.sha256(body).hexdigest()}"
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        options = {"content": body, "headers": headers}
        yield Call("POST", f"/campaigns/{campaign}/tasks", lambda found: _made(Added, found), options)


def predictions(campaign: str, model: str, rows: Any, cost: float) -> Call[AddedPredictions]:
    """Add what a model predicts."""
    body = "".join(json.dumps(row) + "\n" for row in row_tables(rows)).encode()
    options = {
        "content": body, "headers": {"Content-Type": "application/x-ndjson"}, "params": {"model": model, "cost": cost},
    }  # fmt: skip
    path = f"/campaigns/{campaign}/predictions"
    return Call("POST", path, lambda found: _made(AddedPredictions, found), options)


def links(campaign: str, workers: Iterable[str]) -> Call[CampaignLinks]:
    """Create links for workers."""
    return Call("POST", f"/campaigns/{campaign}/links", _links, {"json": {"workers": list(workers)}})


def revoke_links(campaign: str, workers: Iterable[str], join: bool) -> Call[CampaignLinks]:
    """End links for workers."""
    body = {"workers": list(workers), "join": join}
    return Call("POST", f"/campaigns/{campaign}/links/revoke", _links, {"json": body})


def ask(campaign: str, worker: str | None) -> Call[Lease | NoTask]:
    """Ask for a task."""
    body = {} if worker is None else {"worker": worker}
    return Call("POST", f"/campaigns/{campaign}/ask", lambda found: _lease(campaign, found), {"json": body})


def tell(lease: Lease | str, label: str | int, comment: str | None) -> Call[Told]:
    """Answer a lease."""
    return on_lease(lease, "tell", {"label": label, **({} if comment is None else {"comment": comment})})


def release(lease: Lease | str, comment: str | None) -> Call[Told]:
    """Release a lease."""
    return on_lease(lease, "release", None if comment is None else {"comment": comment})


def on_lease(lease: Lease | str, verb: str, body: Mapping[str, Any] | None = None) -> Call[Told]:
    """A command on a lease."""
    options = {} if body is None else {"json": body}
    return Call("POST", f"/leases/{lease_id_of(lease)}/{verb}", lambda found: _made(Told, found), options)


def results(campaign: str, after: int) -> Call[Page[Result]]:
    """One page of results."""
    return _page(campaign, "results", after, Result)


def labels(campaign: str, after: int) -> Call[Page[GivenLabel]]:
    """One page of labels."""
    return _page(campaign, "labels", after, GivenLabel)


def events(campaign: str, after: int) -> Call[Page[Event]]:
    """One page of events."""
    return _page(campaign, "events", after, Event)


def imports(campaign: str) -> Call[list[ImportStatus]]:
    """Show the last imports."""
    path = f"/campaigns/{campaign}/imports"
    return Call("GET", path, lambda found: [_made(ImportStatus, one) for one in found["imports"]])


def workers(campaign: str) -> Call[list[WorkerReport]]:
    """Show what each worker has done."""
    path = f"/campaigns/{campaign}/workers"
    return Call(
        "GET", path, lambda found: [_made(WorkerReport, one, flags=tuple(one["flags"])) for one in found["workers"]]
    )


def set_standing(campaign: str, worker: str, standing: Standing, reason: str) -> Call[WorkerReport]:
    """Pause, block or restore a worker."""
    body = {"worker": worker, "standing": standing, "reason": reason}
    path = f"/campaigns/{campaign}/workers/standing"
    return Call("POST", path, lambda found: _made(WorkerReport, found, flags=tuple(found["flags"])), {"json": body})


def set_gold(campaign: str, answers: Mapping[str, str]) -> Call[int]:
    """Known answers by the ids of tasks."""
    body = {"answers": dict(answers)}
    return Call("POST", f"/campaigns/{campaign}/gold", lambda found: int(found["changed"]), {"json": body})


def draw_audit(campaign: str, items: int, seed: int) -> Call[list[AuditItem]]:
    """Draw items at random for an audit."""
    body = {"items": items, "seed": seed}
    path = f"/campaigns/{campaign}/audit/draw"
    return Call("POST", path, lambda found: [_made(AuditItem, one) for one in found["items"]], {"json": body})


def answer_audit(campaign: str, answers: Mapping[str, str]) -> Call[int]:
    """What the expert found."""
    body = {"answers": dict(answers)}
    return Call("POST", f"/campaigns/{campaign}/audit/answers", lambda found: int(found["changed"]), {"json": body})


def change_labels(campaign: str, verb: str, body: dict[str, str]) -> Call[ChangedLabels]:
    """Drop or restore the labels of a worker."""
    path = f"/campaigns/{campaign}/workers/{verb}"
    return Call("POST", path, lambda found: _made(ChangedLabels, found), {"json": body})


def certificate(campaign: str) -> Call[Certificate]:
    """Show what a campaign is worth now, and the most it can be worth."""
    return Call("GET", f"/campaigns/{campaign}/certificate", _certificate)


def _page(campaign: str, name: str, after: int, kind: type[T]) -> Call[Page[T]]:
    def parse(found: Any) -> Page[T]:
        return Page([_made(kind, one) for one in found[name]], found["next"])

    return Call("GET", f"/campaigns/{campaign}/{name}", parse, {"params": {"after": after, "limit": PAGE}})


def _made(kind: type[T], found: Mapping[str, Any], **replaced: Any) -> T:
    """A dataclass from a table, its times as seconds since 1970; fields that are not known are left out."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    values = {name: _seconds(name, value) for name, value in found.items() if name in names}
    return kind(**{**values, **replaced})


def _seconds(name: str, value: Any) -> Any:
    if isinstance(value, str) and (name in ("at", "deadline") or name.endswith("_at")):
        return datetime.fromisoformat(value).timestamp()
    return value


def _status(found: Mapping[str, Any]) -> CampaignStatus:
    rates = found["rates"]
    settings = CampaignSettings.from_dict(found["settings"])
    learnt = {"arrival_rate": rates["arrivals"], "completion_rate": rates["completions"]}
    return _made(CampaignStatus, found, settings=settings, **learnt)


def _lease(campaign: str, found: Mapping[str, Any]) -> Lease | NoTask:
    if found["lease"] is None:
        return NoTask(campaign, found["reason"], found["retry_after"])
    return _made(Lease, found["lease"])


def _links(found: Mapping[str, Any]) -> CampaignLinks:
    personal = tuple(_made(WorkerLink, one) for one in found["links"])
    return CampaignLinks(found["campaign"], personal, _made(JoinLink, found["join"]), found.get("warning"))


def _certificate(found: Mapping[str, Any]) -> Certificate:
    audit = None if found["audit"] is None else _made(AuditedAccuracy, found["audit"])
    return _made(Certificate, found, more=tuple(_made(More, one) for one in found["more"]), audit=audit)


def connection(url: str, token: str, timeout: float, tries: int) -> dict[str, Any]:
    """The arguments of an httpx client."""
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url!r} is not the address of a service.", "Give e.g. http://127.0.0.1:8000.")
    if tries < 1:
        raise InputError(f"tries is {tries}.", "Give at least 1.")
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "nextlabel"}
    return {"base_url": f"{url.rstrip('/')}/api/v1", "headers": headers, "timeout": timeout}


class Attempts:
    """The attempts at one request.

    ::

        attempts = Attempts(tries)
        while attempts.left:
            with attempts:
                attempts.response = http.request(...)
            sleep(attempts.wait)
        return attempts.result()
    """

    def __init__(self, tries: int) -> None:
        self.left, self.wait = tries, 0.0
        self.response: httpx.Response | None = None
        self._made = 0
        self._error: httpx.TransportError | None = None

    def __enter__(self) -> Self:
        self.response = self._error = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, httpx.TransportError):
            return False
        self._error = error
        self._made, self.left = self._made + 1, self.left - 1
        told = 0.0
        if self.response is not None:
            if self.response.status_code not in RETRIED:
                self.left = 0
            asked = self.response.headers.get("retry-after", "")
            told = min(float(asked), LONGEST_WAIT_S) if asked.isdigit() else 0.0
        wait = min(FIRST_WAIT_S * 2.0 ** (self._made - 1), LONGEST_WAIT_S) * random.uniform(0.5, 1.0)
        self.wait = max(wait, told) if self.left else 0.0
        return True

    def result(self) -> Any:
        """The JSON of the last response, or the error."""
        if self.response is None:
            error = self._error
            address = error.request.url.copy_with(path="/") if error is not None else "the address"
            raise UnavailableError(
                f"the service at {address} does not answer: {str(error) or type(error).__name__}.",
                "Check the address, and that the service runs.",
            ) from error
        if self.response.is_success:
            return self.response.json()
        status = self.response.status_code
        try:
            problem = self.response.json()
            detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
        except (ValueError, KeyError, TypeError):
            detail, hint = f"the service answered with status {status}.", "See its log."
        raise _ERRORS.get(status, NextlabelError)(detail, hint)
