"""Creating a campaign: upload a file, then describe it in a form; with all its tasks, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.application.imports import Progress, import_status
from nextlabel.campaign.declaration import MOST_ANSWERS, declared
from nextlabel.campaign.new_tasks import NewTask, read_task
from nextlabel.campaign.records import ImportRow
from nextlabel.campaign.settings import CampaignSettings, is_shown, looks_personal
from nextlabel.errors import FileFormatError, InputError, NotFoundError
from nextlabel.files.columns import number, with_point
from nextlabel.files.tables import DelimitedTable
from nextlabel.files.tasks import guess_columns
from nextlabel.service.access import campaign_in
from nextlabel.service.app_state import app_state
from nextlabel.service.background import in_background
from nextlabel.service.middleware import principal_of, request_context
from nextlabel.web.dashboard.access import Form, GuardedRoute, Told, file_of, texts_of
from nextlabel.web.dashboard.forecasts import ACCURACY, BudgetCurve
from nextlabel.web.dashboard.setting_form import offered, read_setting, setting_field
from nextlabel.web.dashboard.state import DashboardState, UploadedFile, dashboard_state
from nextlabel.web.render import page
from nextlabel.wording import listed

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
def choose_file(request: Request, problem: Told = "") -> Response:
    """The first step: choose a file."""
    most = app_state(request).settings.max_upload_bytes  # as ``service.middleware`` allows at this address
    return page("dashboard/new_file.html", problem=problem, most=most)


@router.post("/new")
def take_file(request: Request, form: Form) -> Response:
    """Read the file and keep it."""
    request.state.again = lambda problem: choose_file(request, problem)
    given, name = file_of(form, "Choose a CSV file with a header.")
    upload = dashboard_state(request).uploads.keep(given.file, name)
    return RedirectResponse(f"/new/{upload.id}", 303)


@router.get("/new/{upload}")
def describe(upload: str, request: Request, curve: str = "") -> Response:
    """The second step: columns, question, labels and budget."""
    dashboard = dashboard_state(request)
    kept = dashboard.uploads.find(upload)
    texts, shown = suggested(kept)
    if not curve:
        return _page(kept, texts, shown)
    try:
        known = dashboard.curve(kept.rows, 2).result(CURVE_WAIT_S)
    except TimeoutError:
        said = "The curve is still being computed. Load this page again in a moment."
        return _page(kept, texts, shown, said, status=200)
    return _page(kept, texts, shown, curve=known)


@router.post("/new/{upload}")
def create(upload: str, request: Request, form: Form) -> Response:
    """Create the campaign, with all its tasks or not at all."""
    dashboard, token = dashboard_state(request), principal_of(request).token
    texts, shown = texts_of(form), [str(name) for name in form.getlist("shown")]
    kept = dashboard.uploads.find(upload)

    def run(progress: Progress) -> str:
        config = form_settings(texts, shown, dashboard.service.clock())
        columns = [texts.get(name, "") for name in ("id_column", "score_column")]
        for name in (*shown, *columns):
            if name and name not in kept.columns:
                raise InputError(f"the file has no column {name[:60]!r}.", "Choose one of its columns.")
        if not shown:
            raise InputError("no column is shown to workers.", "Tick at least one.")
        if columns[1] and config.answers != 2:
            raise InputError("a model's score needs two labels.", "Choose no score, or give two labels.")
        with dashboard.uploads.open(kept) as file:
            items, owner = read_items(config, file, *columns), "" if token is None else token.owner
            made, added = dashboard.service.create(config, None, items, progress, owner)
        dashboard.uploads.drop(kept)
        return _made(made, added.known, added.alike)

    request.state.again = lambda problem: _page(kept, texts, shown, problem)
    begun = in_background(run)
    address = f"/new/{kept.id}/import/{begun.id}" if isinstance(begun, ImportRow) else begun
    request_context(request).created = begun.campaign if isinstance(begun, ImportRow) else campaign_in(begun)
    return RedirectResponse(address, 303)


@router.get("/new/{upload}/import/{id}")
def importing(upload: str, id: str, request: Request) -> Response:
    """How far the import of a campaign's items has got; then its links."""
    dashboard, token = dashboard_state(request), principal_of(request).token
    row = next(iter(dashboard.store.records.find(ImportRow, id=id)), None)
    if row is None or (token is not None and token.owner not in ("", dashboard.store.records.owner(row.campaign))):
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
        return dashboard.curve(kept.rows, answers, scores, accuracy)

    future = await to_thread.run_sync(ask)
    done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=CURVE_WAIT_S)
    return JSONResponse(asdict(future.result())) if done else Response(status_code=202)


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
        cells = (cell for _, cell in DelimitedTable(file, "the file").rows([place]))
        for cell in islice(cells, SCORES):
            with suppress(ValueError):
                found.append(number(cell))
    return [score for score in found if 0 <= score <= 1]


def _page(
    upload: UploadedFile, texts: Mapping[str, str], shown: Sequence[str], problem: str = "",
    curve: BudgetCurve | None = None, status: int | None = None,
) -> Response:  # fmt: skip
    fields = {
        part: [setting_field(name, texts.get(name, "")) for name in asked]
        for part, asked in (("workers", offered("workers")), ("terms", offered("terms")), ("budget", BUDGET))
    }
    said = any(one.text != _usual(one.name) for one in fields["terms"])  # ticks that are there from the beginning
    return page(
        "dashboard/new.html", status, upload=upload, texts=texts, shown=shown, fields=fields, has_terms=said,
        curve=curve, problem=problem, personal=looks_personal,
    )  # fmt: skip


#: Settings that the form asks for beside the curve.
BUDGET = ["budget", "accuracy"]


def _usual(name: str) -> str:
    """What a field holds that nobody has touched."""
    return "on" if declared(name).default is True else ""


def suggested(upload: UploadedFile) -> tuple[dict[str, str], list[str]]:
    """Texts of settings and columns to show, suggested for a file; columns are recognised by their names."""
    id_column = guess_columns(upload.columns)[0]
    title = upload.name.removesuffix(".csv").removesuffix(".xlsx").replace("_", " ").replace("-", " ").strip()
    texts = {name: _usual(name) for name in (*offered("workers"), *offered("terms"))} | {
        "name": title[:1].upper() + title[1:],
        "budget": str(LABELS_PER_TASK * upload.rows),
        "labels": "\n".join((declared("labels").examples or [])[0]),
        "id_column": id_column,
    }
    return texts, [name for name in upload.columns if name not in (id_column, GOLD) and is_shown(None, name)]


def form_settings(texts: Mapping[str, str], shown: Sequence[str], now: float) -> CampaignSettings:
    """The settings that the texts of a form say, with the columns to show."""
    asked = [*BUDGET, *offered("workers"), *offered("terms")]
    given = {name: read_setting(name, texts.get(name, "")) for name in asked}
    if given["deadline"] is not None and given["deadline"] <= now:
        raise InputError("the deadline is in the past.", "Give a later one, or leave it empty.")
    cost, answers = given["label_cost"], max(len(given["labels"]), 2)
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
    return CampaignSettings.from_dict({**given, "show": tuple(shown) or None, "policy": policy})


def read_items(config: CampaignSettings, file: IO[bytes], id_column: str, score_column: str = "") -> Iterator[NewTask]:
    """The items of a file: a column of known answers makes control questions, unless workers are shown it."""
    table = DelimitedTable(file, "the file")
    for name in (id_column, score_column):
        if name and name not in table.columns:
            raise InputError(f"the file has no column {name[:60]!r}.", f"It has {listed(table.columns)}.")
    for row, *cells in table.rows():
        payload = dict(zip(table.columns, cells, strict=True))
        given: dict[str, Any] = {"payload": payload, "id": payload.get(id_column)}
        if score_column:
            given["score"] = with_point(payload[score_column])
        if GOLD in payload and GOLD not in (config.show or ()):
            given["gold"] = payload.pop(GOLD)
        try:
            yield read_task(config, given, row)
        except InputError as error:
            raise InputError(error.message.replace(f"task {row}", f"row {row:,}"), error.hint) from None
    if table.report.rows == 0:
        raise FileFormatError("the file has a header and no rows.", "Add one row per item.")
