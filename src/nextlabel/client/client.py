"""Campaigns of a service from a program, with the methods and types of ``Campaign``.

``Client`` is for plain programs, ``AsyncClient`` for asyncio::

    with Client("http://127.0.0.1:8000", token) as client:
        id = client.create(budget=1200, labels=["no", "yes"]).id
        client.add_tasks(id, [{"id": "a", "text": "Good film"}])
        if lease := client.ask(id, worker="ann"):
            client.tell(lease, "yes")

Each method is a call: a request, and what its reply becomes. A method of ``Campaign`` is a call too (``command``): its
arguments go into the address, the body or the query, and the reply is read as the type that the method returns. Every
request may be sent twice: campaigns have ids, batches of tasks have keys, and repeating a command on a lease changes
nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime
from functools import cache, partial, wraps
from itertools import count, islice
from string import Formatter
from types import NoneType
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import httpx

from nextlabel.application import frames
from nextlabel.application.certificate import Certificate
from nextlabel.application.frames import ResultTable
from nextlabel.application.service import REQUESTS, Campaign
from nextlabel.application.status import CampaignLinks, CampaignStatus
from nextlabel.campaign.declaration import ChangeOptions, SettingOptions, spells_settings
from nextlabel.campaign.new_tasks import row_tables, task_tables
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.records import Activity, Role
from nextlabel.campaign.replies import Added, AddedFeatures, AddedPredictions, Lease, NoTask, lease_id_of
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
A = TypeVar("A")

#: Tasks per request, and results or events per page.
BATCH, PAGE = 5_000, 1_000

#: Seconds that a request waits for a certificate at most.
LONGEST_WAIT = 30

#: What is in JSON as it is here.
_PLAIN: Final = (str, int, bool, Any)
#: Under which names replies have what is no table.
_NAMED: Final = {int: "changed", bool: "ok", str: "token"}
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
    method: Callable[Concatenate[Any, P], T], request: str = "", **constants: Any
) -> Callable[Concatenate[str, P], Call[T]]:
    """A method of a campaign as a request, that of ``REQUESTS`` or another one, on the campaign of an id."""
    return _call(request or REQUESTS[method], method, "campaign", constants)


def plain(request: str, method: Callable[Concatenate[Any, P], T]) -> Callable[P, Call[T]]:
    """The same of a method of the service, or of a lease, which says which campaign it is of."""
    return _call(request, method, "", {})


def pages(
    request: str, method: Callable[Concatenate[Any, P], Iterator[T]]
) -> Callable[Concatenate[str, P], Call[Page[T]]]:
    """The same of a method of a campaign that returns many rows, for the first page of them."""
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
        given = {name: _sent(value) for name, value in bound.arguments.items() if value is not None} | dict(constants)
        if "lease" in given:
            given["lease"] = lease_id_of(given["lease"])
        where = path.format(**{name: given.pop(name) for name in placed})
        returned = get_type_hints(method)["return"]
        if "limit" in constants:
            options = {"params": {**given, "limit": PAGE}}
            return Call(verb, where, lambda reply: _page(get_args(returned)[0], reply), options)
        sent = {"params" if verb == "GET" else "json": given} if given or (own and verb == "POST") else {}
        return Call(verb, where, lambda reply: _read_reply(returned, reply), sent)

    vars(call)["__signature__"] = signature
    return call


def _sent(value: Any) -> Any:
    """An argument as JSON has it."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else value


def _read_reply(kind: Any, reply: Any) -> Any:
    """What a reply says: a list, a number and a text are under a name of their own."""
    if kind in _NAMED:
        return reply[_NAMED[kind]]
    if get_origin(kind) is tuple:
        return tuple(_read(one, value) for one, value in zip(get_args(kind), reply.values(), strict=True))
    if get_origin(kind) is list:
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


class ServedCampaign(Protocol):
    """What takes a service: an address that others reach."""

    def links(self, workers: Iterable[str] = ()) -> CampaignLinks:
        """A personal link for each worker, and the link for platforms."""

    def revoke_links(self, workers: Iterable[str] = (), *, join: bool = False, audit: bool = False) -> CampaignLinks:
        """End the links of workers, with ``join`` the one for platforms, with ``audit`` those of experts.

        The links that are valid instead are returned.
        """

    def add_webhook(
        self, url: str, types: Iterable[str] | None = None, *, from_start: bool = False
    ) -> tuple[Webhook, str]:
        """Tell an address what happens from now on; with ``from_start`` also what has happened before.

        The webhook, and the secret that its messages are signed with, which is shown only this once.
        """

    def test_webhook(self, id: str) -> bool:
        """Send a signed message now; whether the receiver has acknowledged it."""

    def set_owner(self, owner: str) -> None:
        """Hand a campaign over to another owner."""


class Served(Protocol):
    """What a service has beside its campaigns."""

    def campaigns(self) -> list[CampaignStatus]:
        """All campaigns, newest first."""

    def tokens(self) -> list[dict[str, Any]]:
        """The tokens of the same owner, or for an administrator all: name, role, owner and campaigns."""

    def create_token(
        self, name: str, role: Role = "requester", *, owner: str | None = None, campaigns: Iterable[str] = ()
    ) -> str:
        """Make a token, perhaps limited to some campaigns; it is shown only this once."""

    def revoke_token(self, name: str) -> None:
        """End a token."""

    def activity(self, campaign: str = "", *, limit: int = 200) -> list[Activity]:
        """Who changed what, newest first."""


@spells_settings()
def create(*, id: str | None = None, **settings: Unpack[SettingOptions]) -> Call[CampaignStatus]:
    """Create a campaign, or find the one with that id and these settings; ``budget`` is required."""
    config = CampaignSettings.from_dict(settings)
    body = {name: value for name, value in config.to_dict().items() if name in config.model_fields_set}
    return Call("POST", "/campaigns", partial(_read, CampaignStatus), {"json": {"id": id or new_campaign_id(), **body}})


@spells_settings(changing=True)
def change(campaign: str, **values: Unpack[ChangeOptions]) -> Call[CampaignStatus]:
    """Change settings that may change; None removes those that need not be there."""
    body = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
    return Call("PATCH", f"/campaigns/{campaign}", partial(_read, CampaignStatus), {"json": body})


def add_predictions(campaign: str, model: str, predictions: Any, *, cost: float = 0.0) -> Call[AddedPredictions]:
    """Add what a model predicts as labels of worker ``model:NAME``: tables with task and label or probabilities.

    ``cost`` is what one prediction costs in labels of the budget. The same predictions again change nothing.
    """
    options = {
        "content": _lines(row_tables(predictions)), "headers": _NDJSON, "params": {"model": model, "cost": cost},
    }  # fmt: skip
    return Call("POST", f"/campaigns/{campaign}/predictions", partial(_read, AddedPredictions), options)


def add_features(campaign: str, features: Any, *, replace: bool = False) -> Call[AddedFeatures]:
    """Add what is known of items beside their labels, in a form of ``files.features`` but a callable.

    Items may come later than their features; all have the same columns, unless ``replace`` takes the old ones away.
    """
    options = {
        "content": read_features(features).dump(), "headers": {"Content-Type": "application/octet-stream"},
        "params": {"replace": replace},
    }  # fmt: skip
    return Call("POST", f"/campaigns/{campaign}/features", partial(_read, AddedFeatures), options)


def ask(campaign: str, worker: str | None = None) -> Call[Lease | NoTask]:
    """A task for a worker, or the reason why there is none; a worker's own token already names the worker."""

    def parse(reply: Any) -> Lease | NoTask:
        if reply["lease"] is None:
            return NoTask(campaign, reply["reason"], reply["retry_after"])
        return cast("Lease", _read(Lease, reply["lease"]))

    return Call("POST", f"/campaigns/{campaign}/ask", parse, {"json": {} if worker is None else {"worker": worker}})


def certificate(campaign: str, *, wait: bool = False) -> Call[Certificate]:
    """What the campaign is worth now and in the end; with ``wait`` all of it by the labels that are there now."""

    def parse(reply: Any) -> Certificate:
        if "now" not in reply:
            raise BusyError("the certificate by all labels is still being computed.", "Ask again in a moment.")
        return cast("Certificate", _read(Certificate, reply))

    options = {"params": {"wait": LONGEST_WAIT}} if wait else {}
    return Call("GET", f"/campaigns/{campaign}/certificate", parse, options)


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


#: What a client does: it sends calls and requests, and waits for so many seconds; it is told what came of each.
Script = Generator["Call[Any] | httpx.Request | float", Any, T]


def attempts(call: Call[T], build: Callable[..., httpx.Request], tries: int) -> Script[T]:
    """The attempts at one call, until there is a reply."""
    came: httpx.Response | httpx.TransportError
    for made in range(tries):
        came = yield build(call.method, call.path, **call.options)
        told, failed = "", not isinstance(came, httpx.Response)
        if isinstance(came, httpx.Response):
            told, failed = came.headers.get("retry-after", ""), came.status_code in RETRIED
        if not failed or made == tries - 1:
            break
        wait = min(FIRST_WAIT_S * 2.0**made, LONGEST_WAIT_S) * random.uniform(0.5, 1.0)
        yield max(wait, min(float(told), LONGEST_WAIT_S) if told.isdigit() else 0.0)
    if not isinstance(came, httpx.Response):
        address, why = came.request.url.copy_with(path="/"), str(came) or type(came).__name__
        raise UnavailableError(
            f"the service at {address} does not answer: {why}.", "Check the address, and that the service runs."
        ) from came
    if came.is_success:
        return call.parse(came.json() if came.content else None)
    try:
        problem = came.json()
        detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        detail, hint = f"the service answered with status {came.status_code}.", "See its log."
    raise _ERRORS.get(came.status_code, NextlabelError)(detail, hint)


class Method(Generic[P, T, A]):
    """A call, or a script of calls, as a method of both clients, which ``send`` it: one has a T of it, the other an A.

    Of the class it is the call itself.
    """

    def __init__(self, call: Callable[P, Any], send: str) -> None:
        self.call, self.send = call, send

    @overload
    def __get__(self, client: Client, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, kind: type) -> Callable[P, A]: ...
    @overload
    def __get__(self, client: None, kind: type) -> Callable[P, Any]: ...
    def __get__(self, client: Any, kind: type) -> Any:
        call, send = self.call, self.send
        if client is None:
            return call
        return wraps(call)(lambda *args, **given: getattr(client, send)(call(*args, **given)))


def single(call: Callable[P, Call[T] | Script[T]]) -> Method[P, T, Awaitable[T]]:
    """A method that returns what the reply becomes."""
    return Method(call, "_do")


def paged(call: Callable[P, Call[Page[T]]]) -> Method[P, Iterator[T], AsyncIterator[T]]:
    """A method that iterates over the items of all pages; the call is for the first of them."""
    return Method(call, "_pages")


status = command(Campaign.status, "GET /campaigns/{campaign}")
results = pages("GET /campaigns/{campaign}/results", Campaign.results)
labels = pages("GET /campaigns/{campaign}/labels", Campaign.labels)


def add_tasks(
    campaign: str, tasks: Any, *, score_column: str | None = None, key: str = "", batch_size: int = BATCH
) -> Script[Added]:
    """Add tasks (``campaign.new_tasks``), ``batch_size`` per request, each batch as a whole or not at all.

    The same tasks under the same ``key`` and in the same batches are added once, even if a program is run again.
    """
    total, rest, number = Added(0, 0, -1), iter(task_tables(tasks, score_column)), count()
    while batch := list(islice(rest, batch_size)):
        body = _lines(batch)
        once = f"{key}{next(number)}-{hashlib.sha256(body).hexdigest()}"  # by its place and its content only
        options = {"content": body, "headers": {**_NDJSON, "Idempotency-Key": once}}
        new: Added = yield Call("POST", f"/campaigns/{campaign}/tasks", partial(_read, Added), options)
        total = Added(total.added + new.added, total.known + new.known, new.tasks, total.alike + new.alike)
    return total if total.tasks >= 0 else replace(total, tasks=(yield status(campaign)).tasks)


def results_frame(campaign: str, library: Library = "pandas") -> Script[Any]:
    """The results as a data frame of pandas or Polars, with the columns that the tasks came with."""
    rows = yield from _all_of(results(campaign))
    table = ResultTable((yield status(campaign)).settings.answer_type, [row.payload for row in rows])
    return make_frame(table.header, [table.cells(row) for row in rows], library)


def labels_frame(
    campaign: str, library: Library = "pandas", *, unanswered: bool = False, dropped: bool = False
) -> Script[Any]:
    """The labels as a data frame in crowd-kit's columns (``task``, ``worker``, ``label``) and ours after them."""
    return frames.labels_frame((yield from _all_of(labels(campaign, unanswered=unanswered, dropped=dropped))), library)


def _all_of(call: Call[Page[T]] | None) -> Script[list[T]]:
    """The items of all pages."""
    found: list[T] = []
    while call is not None:
        page: Page[T] = yield call
        found += page.items
        call = call.following(page)
    return found


STANDING = "POST /campaigns/{campaign}/workers/standing"


class _Methods:
    """What both clients can do; ``calls`` and ``Campaign`` document each of them."""

    create = single(create)
    campaigns = single(plain("GET /campaigns", Served.campaigns))
    status = single(status)
    change = single(change)
    delete = single(command(Campaign.delete, "DELETE /campaigns/{campaign}"))
    pause = single(command(Campaign.pause))
    resume = single(command(Campaign.resume))
    add_tasks = single(add_tasks)
    add_predictions = single(add_predictions)
    add_features = single(add_features)
    imports = single(command(Campaign.imports))
    links = single(command(ServedCampaign.links, "POST /campaigns/{campaign}/links"))
    revoke_links = single(command(ServedCampaign.revoke_links, "POST /campaigns/{campaign}/links/revoke"))
    ask = single(ask)
    tell = single(plain("POST /leases/{lease}/tell", Campaign.tell))
    release = single(plain("POST /leases/{lease}/release", Campaign.release))
    renew = single(plain("POST /leases/{lease}/renew", Campaign.renew))
    undo = single(plain("POST /leases/{lease}/undo", Campaign.undo))
    results = paged(results)
    labels = paged(labels)
    results_frame = single(results_frame)
    labels_frame = single(labels_frame)
    events = paged(pages("GET /campaigns/{campaign}/events", Campaign.events))
    workers = single(command(Campaign.workers, "GET /campaigns/{campaign}/workers"))
    order = single(command(Campaign.order))
    agreement = single(command(Campaign.agreement))
    set_standing = single(command(Campaign.set_standing))
    pause_worker = single(command(Campaign.pause_worker, STANDING, standing="paused"))
    block_worker = single(command(Campaign.block_worker, STANDING, standing="blocked"))
    restore_worker = single(command(Campaign.restore_worker, STANDING, standing="active"))
    drop_labels = single(command(Campaign.drop_labels))
    restore_labels = single(command(Campaign.restore_labels))
    erase_worker = single(command(Campaign.erase_worker))
    worker_record = single(command(Campaign.worker_record))
    set_gold = single(command(Campaign.set_gold))
    adjudicate = single(command(Campaign.adjudicate))
    undo_adjudication = single(command(Campaign.undo_adjudication))
    freeze = single(command(Campaign.freeze))
    next_look = single(command(Campaign.next_look))
    guarantee = single(command(Campaign.guarantee))
    guarantee_items = single(command(Campaign.guarantee_items))
    guarantee_record = single(command(Campaign.guarantee_record))
    answer_guarantee = single(command(Campaign.answer_guarantee))
    reopen_labels = single(command(Campaign.reopen_labels))
    draw_audit = single(command(Campaign.draw_audit))
    answer_audit = single(command(Campaign.answer_audit))
    audit_items = single(command(Campaign.audit_items))
    certificate = single(certificate)
    webhooks = single(command(Campaign.webhooks))
    enable_webhook = single(command(Campaign.enable_webhook))
    remove_webhook = single(command(Campaign.remove_webhook))
    add_webhook = single(command(ServedCampaign.add_webhook, "POST /campaigns/{campaign}/webhooks"))
    test_webhook = single(command(ServedCampaign.test_webhook, "POST /campaigns/{campaign}/webhooks/{id}/test"))
    tokens = single(plain("GET /tokens", Served.tokens))
    create_token = single(plain("POST /tokens", Served.create_token))
    revoke_token = single(plain("DELETE /tokens/{name}", Served.revoke_token))
    set_owner = single(command(ServedCampaign.set_owner, "PUT /campaigns/{campaign}/owner"))
    activity = single(plain("GET /activity", Served.activity))


class Client(_Methods):
    """The campaigns of one service; a request is sent up to ``tries`` times if the connection breaks."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._http, self._tries = httpx.Client(**connection(url, token, timeout, tries)), tries

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _do(self, asked: Call[T] | Script[T]) -> T:
        script: Script[T] = attempts(asked, self._http.build_request, self._tries) if isinstance(asked, Call) else asked
        reply: Any = None
        try:
            while True:
                step = script.send(reply)
                reply = None
                if isinstance(step, float):
                    time.sleep(step)
                elif isinstance(step, Call):
                    reply = self._do(step)
                else:
                    try:
                        reply = self._http.send(step)
                    except httpx.TransportError as error:
                        reply = error
        except StopIteration as end:
            return cast("T", end.value)

    def _pages(self, call: Call[Page[T]] | None) -> Iterator[T]:
        while call is not None:
            page = self._do(call)
            yield from page.items
            call = call.following(page)


class AsyncClient(_Methods):
    """The campaigns of one service, for asyncio; ``Client`` documents the methods."""

    def __init__(self, url: str, token: str, *, timeout: float = 60.0, tries: int = 6) -> None:
        self._http, self._tries = httpx.AsyncClient(**connection(url, token, timeout, tries)), tries

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _do(self, asked: Call[T] | Script[T]) -> T:
        script: Script[T] = attempts(asked, self._http.build_request, self._tries) if isinstance(asked, Call) else asked
        reply: Any = None
        try:
            while True:
                step = script.send(reply)
                reply = None
                if isinstance(step, float):
                    await asyncio.sleep(step)
                elif isinstance(step, Call):
                    reply = await self._do(step)
                else:
                    try:
                        reply = await self._http.send(step)
                    except httpx.TransportError as error:
                        reply = error
        except StopIteration as end:
            return cast("T", end.value)

    async def _pages(self, call: Call[Page[T]] | None) -> AsyncIterator[T]:
        while call is not None:
            page = await self._do(call)
            for item in page.items:
                yield item
            call = call.following(page)


class ServiceCampaign:
    """One campaign of a service, with the methods of ``Campaign``: the client's, with the campaign's id given."""

    #: Methods whose lease says which campaign it is of.
    _OF_LEASES = ("tell", "release", "renew", "undo")

    def __init__(self, client: Client, id: str) -> None:
        self._client, self.id = client, id

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        return method if name in self._OF_LEASES else partial(method, self.id)
