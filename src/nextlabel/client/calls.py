"""What the clients can do: each call is a request, and what its reply becomes.

A method of ``Campaign`` is a call too (``command``): its arguments go into the address, the body or the query, and the
reply is read as the type that the method returns. Every request may be sent twice: campaigns have ids, batches of tasks
have keys, and repeating a command on a lease changes nothing.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime
from functools import cache, wraps
from itertools import count, islice
from string import Formatter
from types import NoneType, TracebackType
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import httpx

from nextlabel.application.certificate import Certificate
from nextlabel.application.facade import Campaign
from nextlabel.application.frames import ResultTable
from nextlabel.application.status import CampaignLinks, CampaignStatus
from nextlabel.campaign.declaration import ChangeOptions, SettingOptions, spells_settings
from nextlabel.campaign.new_tasks import row_tables, task_tables
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.records import Activity, Role
from nextlabel.campaign.replies import Added, AddedFeatures, AddedPredictions, Lease, NoTask, lease_id_of
from nextlabel.campaign.results import Result
from nextlabel.campaign.rows import new_campaign_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.webhooks import Webhook
from nextlabel.errors import (
    BusyError,
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
from nextlabel.files.features import read_features
from nextlabel.files.frames import Library, make_frame

P = ParamSpec("P")
T = TypeVar("T")

#: Tasks per request, and results or events per page.
BATCH, PAGE = 5_000, 1_000

#: Seconds that a request waits for a certificate at most.
LONGEST_WAIT = 30

#: What is in JSON as it is here.
_PLAIN: Final = (str, int, bool, Any)
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


def command(
    request: str, method: Callable[Concatenate[Campaign, P], T], **constants: Any
) -> Callable[Concatenate[str, P], Call[T]]:
    """A method of ``Campaign`` as a request, e.g. ``POST /campaigns/{campaign}/pause``, on the campaign of that id."""
    return _call(request, method, "campaign", constants)


def on_lease(request: str, method: Callable[Concatenate[Campaign, P], T]) -> Callable[P, Call[T]]:
    """The same of a method whose lease says which campaign it is of."""
    return _call(request, method, "", {})


def pages(
    request: str, method: Callable[Concatenate[Campaign, P], Iterator[T]]
) -> Callable[Concatenate[str, P], Call[Page[T]]]:
    """The same of a method that returns many rows, for the first page of them."""
    return _call(request, method, "campaign", {"limit": None})


def _call(request: str, method: Callable[..., Any], first: str, constants: Mapping[str, Any]) -> Callable[..., Any]:
    verb, path = request.split()
    own = list(inspect.signature(method).parameters.values())[1:]
    named = [inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)] if first else []
    signature = inspect.Signature([*named, *own])
    placed = {name for _, name, _, _ in Formatter().parse(path) if name}

    @wraps(method)
    def call(*args: Any, **options: Any) -> Call[Any]:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if value is not None} | dict(constants)
        if "lease" in given:
            given["lease"] = lease_id_of(given["lease"])
        where = path.format(**{name: given.pop(name) for name in placed})
        returned = get_type_hints(method)["return"]
        if "limit" in constants:
            return Call(
                verb, where, lambda reply: _page(get_args(returned)[0], reply), {"params": {**given, "limit": PAGE}}
            )
        body = {name: list(value) if isinstance(value, tuple | set) else value for name, value in given.items()}
        sent = {"json": body} if body or (own and verb == "POST") else {}
        return Call(verb, where, lambda reply: _read_reply(returned, reply), sent)

    vars(call)["__signature__"] = signature
    return call


def _read_reply(kind: Any, reply: Any) -> Any:
    """What a reply says: a list and a number are under a name of their own."""
    if kind is int or get_origin(kind) is list:
        (reply,) = reply.values()
    return None if kind is NoneType else _read(kind, reply)


def _page(kind: Any, reply: Mapping[str, Any]) -> Page[Any]:
    (rows,) = (rows for name, rows in reply.items() if name != "next")
    return Page([_read(kind, one) for one in rows], reply["next"])


def _read(kind: Any, value: Any) -> Any:
    """JSON as a value of that kind: times are seconds since 1970, unknown fields are left out."""
    if value is None or kind in _PLAIN:
        return value
    kinds = [one for one in get_args(kind) if one is not NoneType]
    if NoneType in get_args(kind) and len(kinds) == 1:
        return _read(kinds[0], value)
    if kind is float and isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    if get_origin(kind) in (list, tuple):
        return get_origin(kind)(_read(kinds[0], one) for one in value)
    if kind is CampaignSettings:
        return CampaignSettings.from_dict(value)
    if kind is CampaignStatus:
        value = {**value, "arrival_rate": value["rates"]["arrivals"], "completion_rate": value["rates"]["completions"]}
    if isinstance(kind, type) and (is_dataclass(kind) or kind is Notice):
        hints = _fields(kind)
        there = {name: value[name] for name in hints if name in value}
        return kind(
            **{n: _read(hints[n], one) for n, one in there.items() if one is not None or NoneType in get_args(hints[n])}
        )
    return value


@cache
def _fields(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@spells_settings()
def create(*, id: str | None = None, **settings: Unpack[SettingOptions]) -> Call[CampaignStatus]:
    """Create a campaign, or find the one with that id and these settings; ``budget`` is required."""
    config = CampaignSettings.from_dict(settings)
    body = {name: value for name, value in config.to_dict().items() if name in config.model_fields_set}
    return Call("POST", "/campaigns", _status, {"json": {"id": id or new_campaign_id(), **body}})


def campaigns() -> Call[list[CampaignStatus]]:
    """All campaigns, newest first."""
    return Call("GET", "/campaigns", lambda reply: [_status(one) for one in reply["campaigns"]])


def tokens() -> Call[list[dict[str, Any]]]:
    """The tokens of the same owner, or for an administrator all: name, role, owner and campaigns."""
    return Call("GET", "/tokens", lambda reply: list(reply["tokens"]))


def create_token(
    name: str, role: Role = "requester", *, owner: str | None = None, campaigns: Iterable[str] = ()
) -> Call[str]:
    """Make a token, perhaps limited to some campaigns; it is shown only this once."""
    body = {"name": name, "role": role, "owner": owner, "campaigns": list(campaigns)}
    return Call("POST", "/tokens", lambda reply: str(reply["token"]), {"json": body})


def revoke_token(name: str) -> Call[None]:
    """End a token."""
    return Call("DELETE", f"/tokens/{name}", lambda reply: None)


def set_owner(campaign: str, owner: str) -> Call[None]:
    """Hand a campaign over to another owner."""
    return Call("PUT", f"/campaigns/{campaign}/owner", lambda reply: None, {"json": {"owner": owner}})


def activity(campaign: str = "", *, limit: int = 200) -> Call[list[Activity]]:
    """Who changed what, newest first."""
    options = {"params": {"campaign": campaign, "limit": limit}}
    return Call("GET", "/activity", lambda reply: [_read(Activity, one) for one in reply["activity"]], options)


@spells_settings(changing=True)
def change(campaign: str, **values: Unpack[ChangeOptions]) -> Call[CampaignStatus]:
    """Change settings that may change; None removes those that need not be there."""
    body = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
    return Call("PATCH", f"/campaigns/{campaign}", _status, {"json": body})


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
        yield Call("POST", f"/campaigns/{campaign}/tasks", lambda reply: _read(Added, reply), options)


def added(replies: Sequence[Added]) -> Added:
    """What all batches have added together."""
    new, known, alike = (sum(getattr(one, name) for one in replies) for name in ("added", "known", "alike"))
    return Added(new, known, replies[-1].tasks, alike)


def add_predictions(campaign: str, model: str, predictions: Any, *, cost: float = 0.0) -> Call[AddedPredictions]:
    """Add what a model predicts as labels of worker ``model:NAME``: tables with task and label or probabilities.

    ``cost`` is what one prediction costs in labels of the budget. The same predictions again change nothing.
    """
    options = {
        "content": _lines(row_tables(predictions)), "headers": _NDJSON, "params": {"model": model, "cost": cost},
    }  # fmt: skip
    return Call("POST", f"/campaigns/{campaign}/predictions", lambda reply: _read(AddedPredictions, reply), options)


def add_features(campaign: str, features: Any, *, replace: bool = False) -> Call[AddedFeatures]:
    """Add what is known of items beside their labels, in a form of ``files.features`` but a callable.

    Items may come later than their features; all have the same columns, unless ``replace`` takes the old ones away.
    """
    options = {
        "content": read_features(features).dump(), "headers": {"Content-Type": "application/octet-stream"},
        "params": {"replace": replace},
    }  # fmt: skip
    return Call("POST", f"/campaigns/{campaign}/features", lambda reply: _read(AddedFeatures, reply), options)


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

    def parse(reply: Any) -> Lease | NoTask:
        if reply["lease"] is None:
            return NoTask(campaign, reply["reason"], reply["retry_after"])
        lease: Lease = _read(Lease, reply["lease"])
        return lease

    return Call("POST", f"/campaigns/{campaign}/ask", parse, {"json": {} if worker is None else {"worker": worker}})


def certificate(campaign: str, *, wait: bool = False) -> Call[Certificate]:
    """What the campaign is worth now and in the end; with ``wait`` all of it by the labels that are there now."""

    def parse(reply: Any) -> Certificate:
        if "now" not in reply:
            raise BusyError("the certificate by all labels is still being computed.", "Ask again in a moment.")
        found: Certificate = _read(Certificate, reply)
        return found

    options = {"params": {"wait": LONGEST_WAIT}} if wait else {}
    return Call("GET", f"/campaigns/{campaign}/certificate", parse, options)


def results_frame(status: CampaignStatus, results: Sequence[Result], library: Library) -> Any:
    """A data frame with a row for each result."""
    table = ResultTable(status.settings.answer_type, [result.payload for result in results])
    return make_frame(table.header, [table.cells(result) for result in results], library)


def add_webhook(
    campaign: str, url: str, types: Iterable[str] | None = None, *, from_start: bool = False
) -> Call[tuple[Webhook, str]]:
    """Tell an address what happens from now on; with ``from_start`` also what has happened before.

    The webhook, and the secret that its messages are signed with, which is shown only this once.
    """
    body = {"url": url, "types": list(types or ()), "from_start": from_start}
    path = f"/campaigns/{campaign}/webhooks"
    return Call("POST", path, lambda reply: (_read(Webhook, reply["webhook"]), str(reply["secret"])), {"json": body})


def test_webhook(campaign: str, id: str) -> Call[bool]:
    """Send a signed message now; whether the receiver has acknowledged it."""
    return Call("POST", f"/campaigns/{campaign}/webhooks/{id}/test", lambda reply: bool(reply["ok"]))


def _status(reply: Any) -> CampaignStatus:
    status: CampaignStatus = _read(CampaignStatus, reply)
    return status


def _links(reply: Any) -> CampaignLinks:
    links: CampaignLinks = _read(CampaignLinks, reply)
    return links


def _lines(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


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
