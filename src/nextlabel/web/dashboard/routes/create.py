"""Creating a campaign: upload a file, then describe it in a form; with all its tasks, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.application.imports import Progress, import_status
from nextlabel.application.service import CampaignService
from nextlabel.campaign.declaration import MOST_ANSWERS, declared
from nextlabel.campaign.new_tasks import NewTask, read_task
from nextlabel.campaign.records import ImportRow
from nextlabel.campaign.replies import Added
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings, is_shown, looks_personal
from nextlabel.errors import FileFormatError, InputError, NotFoundError
from nextlabel.files.columns import number, with_point
from nextlabel.files.tables import DelimitedTable
from nextlabel.files.tasks import guess_columns
from nextlabel.prose import listed
from nextlabel.service.access import campaign_in
from nextlabel.service.app_state import app_state
from nextlabel.service.background import in_background
from nextlabel.service.middleware import principal_of, request_context
from nextlabel.web.dashboard.access import Form, GuardedRoute, file_of, when_refused
from nextlabel.web.dashboard.forecasts import ACCURACY, BudgetCurve
from nextlabel.web.dashboard.setting_form import SettingField, offered, read_setting, setting_field
from nextlabel.web.dashboard.state import DashboardState, UploadedFile, dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

#: Seconds that a request waits for a curve; rows whose scores are used for it.
CURVE_WAIT_S, SCORES = 20.0, 2000

#: Seconds after which the page of an import is loaded again.
RELOAD_S = 2

#: Labels per task in the suggested budget.
LABELS_PER_TASK = 3

#: The policy of a campaign whose labels have a cost: the usual one spends its budget.
PRICED_POLICY = "index"

#: The column of known answers, which make tasks control questions.
GOLD = "gold"


@router.get("/new")
async def choose_file(request: Request) -> Response:
    """The first step: choose a file."""
    return _first(request)


@router.post("/new")
def take_file(request: Request, form: Form) -> Response:
    """Read the file and keep it."""
    when_refused(request, lambda problem: _first(request, problem))
    given, name = file_of(form, "Choose a CSV file with a header.")
    upload = dashboard_state(request).uploads.keep(given.file, name)
    return RedirectResponse(f"/new/{upload.id}", 303)


@router.get("/new/{upload}")
def describe(upload: str, request: Request, curve: str = "") -> Response:
    """The second step: columns, question, labels and budget."""
    dashboard = dashboard_state(request)
    kept = dashboard.uploads.find(upload)
    form = CampaignForm.suggested(kept)
    known: BudgetCurve | None = None
    if curve:
        scores = _scores(dashboard, kept, form.score_column)
        try:
            known = dashboard.curves.ask(kept.rows, 2, scores).result(CURVE_WAIT_S)
        except TimeoutError:
            return _page(kept, form, None, "The curve is still being computed. Load this page again in a moment.", 200)
    return _page(kept, form, known)


@router.post("/new/{upload}")
def create(upload: str, request: Request, sent: Form) -> Response:
    """Create the campaign, with all its tasks or not at all."""
    dashboard, token = dashboard_state(request), principal_of(request).token
    form = CampaignForm.read(sent, [str(name) for name in sent.getlist("shown")])
    kept = dashboard.uploads.find(upload)
    owner = "" if token is None else token.owner

    def run(progress: Progress) -> str:
        with dashboard.uploads.open(kept) as file:
            service = app_state(request).campaign_service
            made, added = create_campaign(service, kept, file, form, progress, owner)
        dashboard.uploads.drop(kept)
        return _made(made.id, added.known, added.alike)

    when_refused(request, lambda problem: _page(kept, form, None, problem))
    begun = in_background(run)
    if isinstance(begun, ImportRow):
        request_context(request).created = begun.campaign
        return RedirectResponse(f"/new/{kept.id}/import/{begun.id}", 303)
    request_context(request).created = campaign_in(begun)
    return RedirectResponse(begun, 303)


@router.get("/new/{upload}/import/{id}")
def importing(upload: str, id: str, request: Request) -> Response:
    """How far the import of a campaign's items has got; then its links."""
    dashboard, token = dashboard_state(request), principal_of(request).token
    row = dashboard.store.imports.find(id)
    if row is None or (token is not None and token.owner not in ("", dashboard.store.access.owner(row.campaign))):
        raise NotFoundError("there is no such import.", "Look for the campaign in the list.")
    if row.state == "done":
        return RedirectResponse(_made(row.campaign, row.known, row.alike), 303)
    name = "" if row.state != "failed" else dashboard.uploads.find(upload).name
    headers = {} if row.state == "failed" else {"Refresh": str(RELOAD_S)}
    one = import_status(dashboard.store, row)
    return page("dashboard/importing.html", headers=headers, one=one, upload=upload, upload_name=name, seconds=RELOAD_S)


@router.get("/new/{upload}/curve")
async def curve(
    upload: str,
    request: Request,
    answers: Annotated[int, Query(ge=2, le=MOST_ANSWERS)] = 2,
    score: str = "",
    accuracy: Annotated[float, Query(gt=0.5, lt=1)] = ACCURACY,
) -> Response:
    """What a budget buys for the tasks of the file, as JSON."""
    dashboard = dashboard_state(request)

    def ask() -> Any:
        kept = dashboard.uploads.find(upload)
        scores = _scores(dashboard, kept, score) if answers == 2 else ()
        return dashboard.curves.ask(kept.rows, answers, scores, accuracy)

    future = await to_thread.run_sync(ask)
    done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=CURVE_WAIT_S)
    if not done:
        return Response(status_code=202)
    found: BudgetCurve = future.result()
    return JSONResponse({name: getattr(found, name) for name in ("budgets", "expected", "most", "scaled", "why")})


def _made(campaign: str, known: int, alike: int) -> str:
    """The address of a new campaign's links, which say what became of items that look alike."""
    return f"/campaigns/{campaign}/links?made=1&known={known}&alike={alike}"


def _scores(dashboard: DashboardState, upload: UploadedFile, column: str) -> list[float]:
    """The first scores of a file that are probabilities."""
    if column not in upload.columns:
        return []
    place = upload.columns.index(column)
    found: list[float] = []
    with dashboard.uploads.open(upload) as file:
        cells = chain.from_iterable(batch.columns[0] for batch in DelimitedTable(file, "the file").batches([place]))
        for cell in islice(cells, SCORES):
            with suppress(ValueError):
                found.append(number(cell))
    return [score for score in found if 0 <= score <= 1]


def _first(request: Request, problem: str = "") -> Response:
    most = app_state(request).settings.max_upload_bytes  # as ``service.middleware`` allows at this address
    return page("dashboard/new_file.html", problem=problem, most=most)


def _page(
    upload: UploadedFile, form: CampaignForm, known: BudgetCurve | None, problem: str = "", status: int | None = None
) -> Response:
    return page(
        "dashboard/new.html", status, upload=upload, form=form, curve=known, problem=problem, personal=looks_personal
    )


@dataclass(frozen=True, slots=True)
class CampaignForm:
    """The form: texts of settings, and columns; checked by ``settings`` and ``check_columns``."""

    texts: Mapping[str, str]
    shown: tuple[str, ...] = ()
    id_column: str = ""
    score_column: str = ""

    @classmethod
    def read(cls, fields: Mapping[str, Any], shown: Sequence[str]) -> CampaignForm:
        """Read a submitted form."""
        sent = {name: str(value) for name, value in fields.items()}
        return cls(sent, tuple(shown), sent.get("id_column", ""), sent.get("score_column", ""))

    @classmethod
    def suggested(cls, upload: UploadedFile) -> CampaignForm:
        """A suggestion for a file, with columns recognised by their names."""
        id_column = guess_columns(upload.columns)[0]
        shown = tuple(name for name in upload.columns if name not in (id_column, GOLD) and is_shown(None, name))
        title = upload.name.removesuffix(".csv").removesuffix(".xlsx").replace("_", " ").replace("-", " ").strip()
        texts = {
            **{name: "on" for name in (*offered("workers"), *offered("terms")) if declared(name).default is True},
            "name": title[:1].upper() + title[1:],
            "budget": str(LABELS_PER_TASK * upload.rows),
            "labels": "\n".join((declared("labels").examples or [])[0]),
        }
        return cls(texts, shown, id_column)

    def field(self, name: str) -> SettingField:
        """The field of a setting."""
        return setting_field(name, self.texts.get(name, ""))

    def fields(self, form: Literal["workers", "terms"]) -> list[SettingField]:
        """The fields of a part of the form."""
        return [self.field(name) for name in offered(form)]

    @property
    def has_terms(self) -> bool:
        """Whether something was said under More; ticks that are there from the beginning say nothing."""
        return any(
            field.text != ("on" if declared(field.name).default is True else "") for field in self.fields("terms")
        )

    def settings(self, now: float) -> CampaignSettings:
        """The campaign's settings."""
        asked = ["budget", "accuracy", *offered("workers"), *offered("terms")]
        given = {name: read_setting(name, self.texts.get(name, "")) for name in asked}
        if given["deadline"] is not None and given["deadline"] <= now:
            raise InputError("the deadline is in the past.", "Give a later one, or leave it empty.")
        cost = given["label_cost"]
        answers = max(len(given["labels"]), 2)
        most = 1 - 1 / answers  # guessing is right once in so many answers
        if not 0 <= cost < most:
            raise InputError(
                f"no label can add {cost:g} to the chance that its item is right: with {answers} labels all of them "
                f"together add at most {most:.2g}.",
                "Give e.g. 0.02, or leave it empty. What you pay workers goes into Pay per label.",
            )
        if given["answer"] not in ("choice", "multi") or given["questions"]:
            del given["labels"]  # they are the steps of the scale, or there are none
        policy = PRICED_POLICY if cost > 0 else declared("policy").default
        return CampaignSettings.from_dict({**given, "show": self.shown or None, "policy": policy})

    def check_columns(self, upload: UploadedFile) -> None:
        """Refuse columns that the file does not have, and a form that shows workers nothing."""
        for name in (*self.shown, self.id_column, self.score_column):
            if name and name not in upload.columns:
                raise InputError(f"the file has no column {name[:60]!r}.", "Choose one of its columns.")
        if not self.shown:
            raise InputError("no column is shown to workers.", "Tick at least one.")


def create_campaign(
    campaign_service: CampaignService,
    upload: UploadedFile,
    file: IO[bytes],
    form: CampaignForm,
    progress: Progress | None = None,
    owner: str = "",
) -> tuple[CampaignRow, Added]:
    """Create the campaign; and what became of its items."""
    now = campaign_service.clock()
    config = form.settings(now)
    form.check_columns(upload)
    if form.score_column and config.answers != 2:
        raise InputError("a model's score needs two labels.", "Choose no score, or give two labels.")
    return campaign_service.create_with(
        config, None, read_items(config, file, form.id_column, form.score_column), progress, owner
    )


def read_items(config: CampaignSettings, file: IO[bytes], id_column: str, score_column: str = "") -> Iterator[NewTask]:
    """The items of a file: a column of known answers makes control questions, unless workers are shown it."""
    table = DelimitedTable(file, "the file")
    for name in (id_column, score_column):
        if name and name not in table.columns:
            raise InputError(f"the file has no column {name[:60]!r}.", f"It has {listed(table.columns)}.")
    place = {name: n for n, name in enumerate(table.columns)}
    for row, cells in table:
        given: dict[str, Any] = {"payload": dict(zip(table.columns, cells, strict=True))}
        if GOLD in place and GOLD not in (config.show or ()):
            given["gold"] = given["payload"].pop(GOLD)
        if id_column:
            given["id"] = cells[place[id_column]]
        if score_column:
            given["score"] = with_point(cells[place[score_column]])
        yield _read_row(config, given, row)
    if table.report.rows == 0:
        raise FileFormatError("the file has a header and no rows.", "Add one row per item.")


def _read_row(config: CampaignSettings, given: dict[str, Any], row: int) -> NewTask:
    try:
        return read_task(config, given, row)
    except InputError as error:
        message = error.message.replace(f"task {row}", f"row {row:,}")
        raise InputError(message, error.hint) from None
