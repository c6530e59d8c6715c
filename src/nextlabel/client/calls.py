"""What the clients can do: each call is a request, and the function that makes its JSON a value.

Every request may be sent twice: campaigns have ids, batches of tasks have keys, and repeating a command on a lease
changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from itertools import count, islice
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, Unpack

import httpx

from nextlabel.campaign.declaration import ChangeOptions, SettingOptions, spells_settings
from nextlabel.campaign.events import Event
from nextlabel.campaign.new_tasks import row_tables, task_tables
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.replies import (
    Added,
    AddedPredictions,
    AuditItem,
    ChangedLabels,
    Lease,
    NoTask,
    Receipt,
    lease_id_of,
)
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.rows import new_campaign_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Standing
from nextlabel.campaign.webhooks import Webhook
from nextlabel.campaigns.certificate import AuditedAccuracy, Certificate, More
from nextlabel.campaigns.frames import Library, ResultTable, make_frame
from nextlabel.campaigns.guarantees import GuaranteeStatus
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

_NDJSON: Final = {"Content-Type": "application/x-ndjson"}

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

    def following(self, page: Page[Any]) -> Self | None:
        """The call for the page after this one, None on the last."""
        if page.next is None:
            return None
        return replace(self, options={"params": {**self.options["params"], "after": page.next}})


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items, and the cursor of the next page, None on the last."""

    items: list[T]
    next: int | None


@spells_settings()
def create(*, id: str | None = None, **settings: Unpack[SettingOptions]) -> Call[CampaignStatus]:
    """Create a campaign, or find the one with that id and these settings; ``budget`` is required."""
    given = CampaignSettings.from_dict(settings).to_dict()
    body = {name: given[name] for name in settings}
    return Call("POST", "/campaigns", _status, {"json": {"id": id or new_campaign_id(), **body}})


def campaigns() -> Call[list[CampaignStatus]]:
    """All campaigns, newest first."""
    return Call("GET", "/campaigns", lambda reply: [_status(one) for one in reply["campaigns"]])


def status(campaign: str) -> Call[CampaignStatus]:
    """State, settings and counters of a campaign."""
    return Call("GET", f"/campaigns/{campaign}", _status)


@spells_settings(changing=True)
def change(campaign: str, **values: Unpack[ChangeOptions]) -> Call[CampaignStatus]:
    """Change settings that may change; None removes those that need not be there."""
    body = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
    return Call("PATCH", f"/campaigns/{campaign}", _status, {"json": body})


def delete(campaign: str) -> Call[None]:
    """Delete a campaign with its tasks, labels, log and links, for good; a second time, nothing happens."""
    return Call("DELETE", f"/campaigns/{campaign}", _nothing)


def pause(campaign: str) -> Call[CampaignStatus]:
    """Hand out no tasks until ``resume``."""
    return Call("POST", f"/campaigns/{campaign}/pause", _status)


def resume(campaign: str) -> Call[CampaignStatus]:
    """Hand out tasks again."""
    return Call("POST", f"/campaigns/{campaign}/resume", _status)


def task_batches(campaign: str, tasks: Any, score_column: str | None, key: str, size: int) -> Iterator[Call[Added]]:
    """Add tasks in batches, each under a key that depends on ``key``, its place and its content only."""
    rest = iter(task_tables(tasks, score_column))
    for number in count():
        batch = list(islice(rest, size))
        if not batch:
            return
        body = _lines(batch)
        once = f"{key}{number}-{hashlib.sha256(body).hexdigest()}"
        options = {"content": body, "headers": {**_NDJSON, "Idempotency-Key": once}}
        yield Call("POST", f"/campaigns/{campaign}/tasks", partial(_made, Added), options)


def added(replies: Sequence[Added]) -> Added:
    """What all batches have added together."""
    return Added(sum(one.added for one in replies), sum(one.known for one in replies), replies[-1].tasks)


def add_predictions(campaign: str, model: str, predictions: Any, *, cost: float = 0.0) -> Call[AddedPredictions]:
    """Add what a model predicts as labels of worker ``model:NAME``: tables with task and label or probabilities.

    ``cost`` is what one prediction costs in labels of the budget. The same predictions again change nothing.
    """
    options = {
        "content": _lines(row_tables(predictions)), "headers": _NDJSON, "params": {"model": model, "cost": cost},
    }  # fmt: skip
    return Call("POST", f"/campaigns/{campaign}/predictions", partial(_made, AddedPredictions), options)


def imports(campaign: str) -> Call[list[ImportStatus]]:
    """The last imports of many tasks, and how far each has got."""
    return Call("GET", f"/campaigns/{campaign}/imports", partial(_each, ImportStatus, "imports"))


def links(campaign: str, workers: Iterable[str] = ()) -> Call[CampaignLinks]:
    """A personal link for each worker, and the link for platforms."""
    return Call("POST", f"/campaigns/{campaign}/links", _links, {"json": {"workers": list(workers)}})


def revoke_links(
    campaign: str, workers: Iterable[str] = (), *, join: bool = False, audit: bool = False
) -> Call[CampaignLinks]:
    """End the links of workers, with ``join`` the one for platforms, with ``audit`` those of experts.

    The links that are valid instead are returned.
    """
    body = {"workers": list(workers), "join": join, "audit": audit}
    return Call("POST", f"/campaigns/{campaign}/links/revoke", _links, {"json": body})


def ask(campaign: str, worker: str | None = None) -> Call[Lease | NoTask]:
    """A task for a worker, or the reason why there is none; a worker's own token already names the worker."""
    body = {} if worker is None else {"worker": worker}
    return Call("POST", f"/campaigns/{campaign}/ask", partial(_lease, campaign), {"json": body})


def tell(lease: Lease | str, label: object, comment: str | None = None) -> Call[Receipt]:
    """Answer a lease, given by itself or by its id, perhaps with a comment on the task."""
    return _on_lease(lease, "tell", {"label": label, **_comment(comment)})


def release(lease: Lease | str, comment: str | None = None) -> Call[Receipt]:
    """Give a task back, perhaps with a comment; the same worker does not get it again."""
    return _on_lease(lease, "release", _comment(comment))


def renew(lease: Lease | str) -> Call[Receipt]:
    """Give the worker more time."""
    return _on_lease(lease, "renew", {})


def undo(lease: Lease | str) -> Call[Receipt]:
    """Take the worker's answer back."""
    return _on_lease(lease, "undo", {})


def results(campaign: str) -> Call[Page[Result]]:
    """Every task with its most likely label."""
    return _page(Result, campaign, "results", after=-1)


def labels(campaign: str, *, unanswered: bool = False, dropped: bool = False) -> Call[Page[GivenLabel]]:
    """Every worker's answer, one by one; also leases without one, and labels that were dropped, if asked for."""
    return _page(GivenLabel, campaign, "labels", after=-1, unanswered=unanswered, dropped=dropped)


def events(campaign: str, after: int = 0) -> Call[Page[Event]]:
    """The log, from the event after number ``after`` on."""
    return _page(Event, campaign, "events", after=after)


def results_frame(status: CampaignStatus, results: Sequence[Result], library: Library) -> Any:
    """A data frame with a row for each result."""
    table = ResultTable(status.settings.labels, [result.payload for result in results])
    return make_frame(table.header, [table.cells(result) for result in results], library)


def workers(campaign: str) -> Call[list[WorkerReport]]:
    """What each worker did, is owed and is worth, those with the most labels first."""
    return Call("GET", f"/campaigns/{campaign}/workers", partial(_each, WorkerReport, "workers"))


def pause_worker(campaign: str, worker: str, reason: str = "") -> Call[WorkerReport]:
    """Give this worker no new task until ``restore_worker``; an item that they hold is theirs to finish."""
    return _standing(campaign, worker, "paused", reason)


def block_worker(campaign: str, worker: str, reason: str = "") -> Call[WorkerReport]:
    """Give this worker no task, take back what they hold, and count no answer that still comes."""
    return _standing(campaign, worker, "blocked", reason)


def restore_worker(campaign: str, worker: str) -> Call[WorkerReport]:
    """Give a worker who was paused or blocked tasks again."""
    return _standing(campaign, worker, "active", "")


def drop_labels(campaign: str, worker: str, reason: str = "") -> Call[ChangedLabels]:
    """Leave the labels of a worker out of the results; they stay spent, and their tasks may get others."""
    body = {"worker": worker, "reason": reason}
    return Call("POST", f"/campaigns/{campaign}/workers/drop-labels", partial(_made, ChangedLabels), {"json": body})


def restore_labels(campaign: str, worker: str) -> Call[ChangedLabels]:
    """Take dropped labels in again, where their tasks have room for them."""
    path = f"/campaigns/{campaign}/workers/restore-labels"
    return Call("POST", path, partial(_made, ChangedLabels), {"json": {"worker": worker}})


def set_gold(campaign: str, answers: Mapping[str, object]) -> Call[int]:
    """Known answers by the ids of tasks, which are control questions from now on; how many are new or corrected."""
    return Call("POST", f"/campaigns/{campaign}/gold", _changed, {"json": {"answers": dict(answers)}})


def adjudicate(campaign: str, answers: Mapping[str, object]) -> Call[int]:
    """Set the answers of tasks by their ids: final, known to the model, marked in the results; how many are new."""
    return Call("POST", f"/campaigns/{campaign}/adjudicate", _changed, {"json": {"answers": dict(answers)}})


def undo_adjudication(campaign: str, tasks: Sequence[str]) -> Call[int]:
    """Let the labels decide about tasks again."""
    return Call("POST", f"/campaigns/{campaign}/adjudicate/undo", _changed, {"json": {"tasks": list(tasks)}})


def freeze(campaign: str, audits: int | None = None) -> Call[GuaranteeStatus]:
    """Freeze the labels and draw items for an expert, for at most ``at_most_wrong`` wrong labels."""
    path = f"/campaigns/{campaign}/guarantee/freeze"
    return Call("POST", path, partial(_made, GuaranteeStatus), {"json": {"audits": audits}})


def guarantee(campaign: str) -> Call[GuaranteeStatus]:
    """How far the guarantee is, and its sentence."""
    return Call("GET", f"/campaigns/{campaign}/guarantee", partial(_made, GuaranteeStatus))


def guarantee_items(campaign: str) -> Call[list[AuditItem]]:
    """The items that the expert was asked for so far, with the answers."""
    return Call("GET", f"/campaigns/{campaign}/guarantee/items", partial(_each, AuditItem, "items"))


def guarantee_record(campaign: str) -> Call[dict[str, Any]]:
    """Frozen labels, draw and answers, with which anybody can check the certificate."""
    return Call("GET", f"/campaigns/{campaign}/guarantee/record", dict)


def answer_guarantee(campaign: str, answers: Mapping[str, object]) -> Call[int]:
    """The expert's answers by the ids of the items that are asked for."""
    return Call("POST", f"/campaigns/{campaign}/guarantee/answers", _changed, {"json": {"answers": dict(answers)}})


def reopen_labels(campaign: str) -> Call[GuaranteeStatus]:
    """Let labels decide again, which voids the certificate."""
    return Call("POST", f"/campaigns/{campaign}/guarantee/reopen", partial(_made, GuaranteeStatus))


def draw_audit(campaign: str, items: int, seed: int = 0) -> Call[list[AuditItem]]:
    """Draw tasks at random for an expert; all that are drawn so far."""
    body = {"items": items, "seed": seed}
    return Call("POST", f"/campaigns/{campaign}/audit/draw", partial(_each, AuditItem, "items"), {"json": body})


def answer_audit(campaign: str, answers: Mapping[str, object]) -> Call[int]:
    """The expert's answers by the ids of drawn tasks; the certificate follows them."""
    return Call("POST", f"/campaigns/{campaign}/audit/answers", _changed, {"json": {"answers": dict(answers)}})


def audit_items(campaign: str) -> Call[list[AuditItem]]:
    """The tasks that were drawn for an audit, with the answers so far."""
    return Call("GET", f"/campaigns/{campaign}/audit", partial(_each, AuditItem, "items"))


def certificate(campaign: str) -> Call[Certificate]:
    """Expected accuracy now, and the most that any policy can reach if workers are alike."""
    return Call("GET", f"/campaigns/{campaign}/certificate", _certificate)


def webhooks(campaign: str) -> Call[list[Webhook]]:
    """The addresses that are told what happens, and how far each has got."""
    return Call("GET", f"/campaigns/{campaign}/webhooks", lambda reply: [_webhook(one) for one in reply["webhooks"]])


def add_webhook(
    campaign: str, url: str, types: Iterable[str] | None = None, *, from_start: bool = False
) -> Call[tuple[Webhook, str]]:
    """Tell an address what happens from now on; with ``from_start`` also what has happened before.

    The webhook, and the secret that its messages are signed with, which is shown only this once.
    """
    body = {"url": url, "types": None if types is None else list(types), "from_start": from_start}
    path = f"/campaigns/{campaign}/webhooks"
    return Call("POST", path, lambda reply: (_webhook(reply["webhook"]), str(reply["secret"])), {"json": body})


def enable_webhook(campaign: str, id: str) -> Call[Webhook]:
    """Go on with a webhook that was disabled, or try one that fails at once; it is told all that it has missed."""
    return Call("POST", f"/campaigns/{campaign}/webhooks/{id}/enable", _webhook)


def test_webhook(campaign: str, id: str) -> Call[bool]:
    """Send a signed message now; whether the receiver has acknowledged it."""
    return Call("POST", f"/campaigns/{campaign}/webhooks/{id}/test", lambda reply: bool(reply["ok"]))


def remove_webhook(campaign: str, id: str) -> Call[None]:
    """Send an address no more messages."""
    return Call("DELETE", f"/campaigns/{campaign}/webhooks/{id}", _nothing)


def _page(kind: type[T], campaign: str, name: str, **params: Any) -> Call[Page[T]]:
    def parse(reply: Any) -> Page[T]:
        return Page([_made(kind, one) for one in reply[name]], reply["next"])

    return Call("GET", f"/campaigns/{campaign}/{name}", parse, {"params": {**params, "limit": PAGE}})


def _on_lease(lease: Lease | str, verb: str, body: Mapping[str, Any]) -> Call[Receipt]:
    options = {"json": body} if body else {}
    return Call("POST", f"/leases/{lease_id_of(lease)}/{verb}", partial(_made, Receipt), options)


def _comment(comment: str | None) -> dict[str, str]:
    return {} if comment is None else {"comment": comment}


def _standing(campaign: str, worker: str, standing: Standing, reason: str) -> Call[WorkerReport]:
    body = {"worker": worker, "standing": standing, "reason": reason}
    return Call("POST", f"/campaigns/{campaign}/workers/standing", partial(_made, WorkerReport), {"json": body})


def _lines(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _made(kind: type[T], reply: Mapping[str, Any], **replaced: Any) -> T:
    """A dataclass from a table, times as seconds since 1970, lists as tuples; unknown fields are left out."""
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    values = {name: _value(name, value) for name, value in reply.items() if name in names}
    return kind(**{**values, **replaced})


def _each(kind: type[T], name: str, reply: Mapping[str, Any]) -> list[T]:
    return [_made(kind, one) for one in reply[name]]


def _value(name: str, value: Any) -> Any:
    if isinstance(value, str) and (name in ("at", "deadline") or name.endswith("_at")):
        return datetime.fromisoformat(value).timestamp()
    return tuple(value) if name in ("flags", "types") else value


def _nothing(reply: Any) -> None:
    """A reply that says nothing more."""


def _changed(reply: Mapping[str, Any]) -> int:
    return int(reply["changed"])


def _webhook(reply: Mapping[str, Any]) -> Webhook:
    return _made(Webhook, reply, next_at=_value("next_at", reply["next_at"]) or 0.0)


def _status(reply: Mapping[str, Any]) -> CampaignStatus:
    rates = reply["rates"]
    settings = CampaignSettings.from_dict(reply["settings"])
    learnt = {"arrival_rate": rates["arrivals"], "completion_rate": rates["completions"]}
    notices = tuple(Notice(one["kind"], one["worker"], one["labels"]) for one in reply["notices"])
    return _made(CampaignStatus, reply, settings=settings, notices=notices, **learnt)


def _lease(campaign: str, reply: Mapping[str, Any]) -> Lease | NoTask:
    if reply["lease"] is None:
        return NoTask(campaign, reply["reason"], reply["retry_after"])
    return _made(Lease, reply["lease"])


def _links(reply: Mapping[str, Any]) -> CampaignLinks:
    personal = tuple(_made(WorkerLink, one) for one in reply["links"])
    return CampaignLinks(reply["campaign"], personal, _made(JoinLink, reply["join"]), reply.get("warning"))


def _certificate(reply: Mapping[str, Any]) -> Certificate:
    audit = None if reply["audit"] is None else _made(AuditedAccuracy, reply["audit"])
    return _made(Certificate, reply, more=tuple(_made(More, one) for one in reply["more"]), audit=audit)


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
            return self.response.json() if self.response.content else None
        status = self.response.status_code
        try:
            problem = self.response.json()
            detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
        except (ValueError, KeyError, TypeError):
            detail, hint = f"the service answered with status {status}.", "See its log."
        raise _ERRORS.get(status, NextlabelError)(detail, hint)
