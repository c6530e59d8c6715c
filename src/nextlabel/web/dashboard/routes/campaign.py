"""The list of campaigns; one campaign with its updates, its items and its workers; and what a requester does to it."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from nextlabel.application import service
from nextlabel.application.service import CampaignService
from nextlabel.application.worker_reports import report_of
from nextlabel.campaign.commands import SAMPLE
from nextlabel.campaign.replies import Added
from nextlabel.campaign.results import results_of
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import ALL, CampaignSettings, columns_of, is_shown, looks_personal, shown_payload
from nextlabel.campaign.states import STANDINGS, Standing
from nextlabel.errors import InputError, NotFoundError
from nextlabel.files.columns import with_point
from nextlabel.files.predictions import read_predictions
from nextlabel.files.tables import delimited, uploaded_format
from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, Rights
from nextlabel.service.middleware import principal_of
from nextlabel.service.models import LabelsQuery, ResultsQuery, WorkersQuery
from nextlabel.service.openapi import api_view
from nextlabel.service.prefix import prefixed
from nextlabel.service.routes.campaigns import current_row
from nextlabel.service.routes.results import FileFormat, labels, results
from nextlabel.service.routes.workers import show_workers
from nextlabel.web.dashboard.access import Form, GuardedRoute, file_of, rights_of, texts_of, when_refused
from nextlabel.web.dashboard.access import campaign_page as about_campaign
from nextlabel.web.dashboard.formatting import plural, reason_of, title_of
from nextlabel.web.dashboard.routes.create import read_items
from nextlabel.web.dashboard.setting_form import (
    SettingField,
    changed_settings,
    current,
    offered,
    read_whole,
    setting_field,
)
from nextlabel.web.dashboard.state import DashboardState, dashboard_state
from nextlabel.web.dashboard.view import campaign_view, chart_data, comment_lines, fingerprints, render_parts
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

#: Campaigns on one page of the list.
PAGE_SIZE = 50

#: Cursors fit into the whole numbers of JavaScript.
LARGEST = 2**53
Cursor = Annotated[int | None, Query(ge=1, le=LARGEST)]

#: Comments that the page lists.
COMMENTS_SHOWN = 50
TaskNumber = Annotated[int, Path(ge=0, le=LARGEST)]
Count = Annotated[int | None, Query(ge=0, le=10**9)]
_STANDINGS: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}


@router.get("/")
def campaigns_page(request: Request, number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1) -> Response:
    """The campaigns, newest first."""
    dashboard = dashboard_state(request)
    access, token = dashboard.app.access, principal_of(request).token
    rows = access.opened(token, dashboard.store.campaigns())
    owners = {} if token is None or token.owner else dashboard.store.access.owners()
    shown = rows[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
    campaigns = [
        {
            "row": row,
            "title": title_of(row),
            "state": row.state,
            "reason": reason_of(row),
            "summary": dashboard.summary(row),
        }
        for row in shown
    ]
    further = number + 1 if number * PAGE_SIZE < len(rows) else None
    return page(
        "dashboard/list.html", campaigns=campaigns, total=len(rows), further=further, number=number,
        rights=rights_of(request), owners=owners,
    )  # fmt: skip


@router.get("/campaigns")
def campaigns_redirect() -> Response:
    """Redirect to the list."""
    return RedirectResponse("/", 303)


@router.get("/help/numbers")
async def numbers_page() -> Response:
    """Every number of the dashboard in a requester's words."""
    return page("dashboard/numbers.html")


@router.get("/help/api")
def api_page(request: Request) -> Response:
    """The API as its document describes it: every call with what it takes and answers."""
    return page("dashboard/api.html", **api_view(request.app.openapi()))


@router.get("/campaigns/{campaign}")
async def campaign_page(
    campaign: CampaignId,
    request: Request,
    before: Cursor = None,
    added: Count = None,
    known: Count = 0,
    alike: Count = 0,
    known_answers: Count = None,
) -> Response:
    """One campaign; the numbers are those of items that a form has just added."""
    row = await _row(request, campaign)
    done: list[str] = []
    if added is not None:
        done = [f"{plural(added, 'item')} added.", *Added(added, known or 0, row.tasks, alike or 0).notes()]
    if known_answers is not None:
        done = [f"{plural(known_answers, 'known answer')} new or corrected."]
    respond = partial(campaign_page_response, dashboard_state(request), row, rights_of(request), before)
    return await to_thread.run_sync(lambda: respond(done=" ".join(done)))


@router.get("/campaigns/{campaign}/live")
async def live(
    campaign: CampaignId, request: Request, after: Annotated[int, Query(ge=0, le=LARGEST)] = 0, seen: str = ""
) -> Response:
    """What has changed since event ``after``; ``seen`` is the version that the last reply named."""
    row = await _row(request, campaign)
    return await to_thread.run_sync(_changes, dashboard_state(request), row, rights_of(request), after, seen)


@router.get("/campaigns/{campaign}/results.{format}")
def download(campaign: CampaignId, format: FileFormat, request: Request) -> Response:
    """Download all results, in the API's formats."""
    return _for_spreadsheets(results(campaign, request, ResultsQuery.model_validate({"format": format})))


@router.get("/campaigns/{campaign}/labels.{format}")
def download_labels(campaign: CampaignId, format: FileFormat, request: Request) -> Response:
    """Download every worker's answers, those that were dropped too, in the API's formats."""
    query = LabelsQuery.model_validate({"format": format, "dropped": True})
    return _for_spreadsheets(labels(campaign, request, query))


@router.get("/campaigns/{campaign}/workers.{format}")
def download_workers(campaign: CampaignId, format: FileFormat, request: Request) -> Response:
    """Download what each worker did and is owed, in the API's formats."""
    return _for_spreadsheets(show_workers(campaign, request, WorkersQuery.model_validate({"format": format})))


def _for_spreadsheets(file: Response) -> Response:
    """A table with the mark by which Excel knows UTF-8."""
    if isinstance(file, StreamingResponse) and (file.media_type or "").startswith("text/csv"):
        file.body_iterator = _marked(file.body_iterator)
    return file


async def _marked(pieces: AsyncIterable[Any]) -> AsyncIterator[Any]:
    yield BOM_UTF8
    async for piece in pieces:
        yield piece


def campaign_page_response(
    dashboard: DashboardState,
    row: CampaignRow,
    rights: Rights,
    before: int | None = None,
    problem: str = "",
    done: str = "",
) -> Response:
    """The page of a campaign, with a message about a problem or about what was done if there is one."""
    version = dashboard.version(row)  # before the view: what arrives in between is new to the page
    view = campaign_view(dashboard, row, rights, before)
    parts, charts = render_parts(view), chart_data(view)
    seen = _seen(version, fingerprints(parts, charts))
    settings = [setting_field(name, text) for name, text in current(row, campaign_terms(row)).items()]
    disabled = [one for one in dashboard.app.webhooks.of(row.id) if one.disabled] if rights.changes else []
    return page(
        "dashboard/campaign.html", parts=parts, charts=charts, seen=seen, problem=problem, done=done,
        disabled_webhooks=disabled, settings=settings, **view,
    )  # fmt: skip


def campaign_terms(row: CampaignRow) -> list[str]:
    """The settings that the campaign's page asks for; without workers who differ, nobody can be turned away."""
    terms = ["budget", *offered("terms", changing=True)]
    return [name for name in terms if name != "turn_away" or row.config.knows_workers]


async def _row(request: Request, campaign: str) -> CampaignRow:
    """The campaign's row now; a command runs only if there are leases to expire."""
    state, dashboard, id = app_state(request), dashboard_state(request), campaign

    def look() -> tuple[CampaignRow, bool]:
        row, now = dashboard.store.row(id), dashboard.now()
        out = dashboard.store.leases(id, open=True, limit=1) if row.reserved else []
        late = any(lease.expires_at <= now for lease in out)
        return row, late or (row.deadline is not None and row.deadline <= now and row.closed_seq is None)

    row, over = await to_thread.run_sync(look)
    return await current_row(state, id) if over else row


def _changes(dashboard: DashboardState, row: CampaignRow, rights: Rights, after: int, seen: str) -> Response:
    known, _, hashes = seen.partition("~")
    version = dashboard.version(row)
    if row.seq == after and version == known:
        return Response(status_code=204)
    view = campaign_view(dashboard, row, rights)
    parts, charts = render_parts(view), chart_data(view)
    new = fingerprints(parts, charts)
    old = dict(pair.split(":", 1) for pair in hashes.split(",") if ":" in pair)
    changed = {name: prefixed(html) for name, html in parts.items() if old.get(name) != new[name]}
    body = {"seq": row.seq, "seen": _seen(version, new), "parts": changed}
    if old.get("charts") != new["charts"]:
        body["charts"] = charts
    return JSONResponse(body)


def _seen(version: str, hashes: dict[str, str]) -> str:
    """What a page has been sent, for it to send back."""
    return version + "~" + ",".join(f"{name}:{hash}" for name, hash in hashes.items())


@router.post("/campaigns/{campaign}/tasks/{number}")
def adjudicate(campaign: CampaignId, number: TaskNumber, request: Request, form: Form) -> Response:
    """Set the answer of the task, or take it back; ``back`` asks for the campaign's page."""
    service = dashboard_state(request).app.campaign_service
    task = service.store.tasks_by_number(campaign, [number]).get(number)
    when_refused(request, lambda problem: task_page(campaign, number, request, problem))
    if task is not None and "label" not in form:
        service.undo_adjudication(campaign, [task.key])
    elif task is not None:
        service.adjudicate(campaign, {task.key: str(form["label"])})
    back = "#h-hard" if form.get("back") == "campaign" else f"/tasks/{number}"
    return RedirectResponse(f"/campaigns/{campaign}{back}", 303)


@router.get("/campaigns/{campaign}/tasks/{number}")
def show_task(campaign: CampaignId, number: TaskNumber, request: Request) -> Response:
    """The task, the current belief, the labels by worker, and the form that sets its answer."""
    return task_page(campaign, number, request)


def task_page(id: str, number: int, request: Request, problem: str = "") -> Response:
    """The page of a task."""
    dashboard = dashboard_state(request)
    row = dashboard.store.row(id)
    task = dashboard.store.tasks_by_number(id, [number]).get(number)
    if task is None:
        raise NotFoundError(f"the campaign has no task number {number}.", "Go back to the campaign.")
    classes = dashboard.classes(row)
    crowd = dashboard.app.campaign_service.crowd(row, service.READ_PATIENCE_S)
    beliefs = None if crowd is None else crowd.beliefs
    final = dashboard.app.campaign_service.guarantees.final(row)
    result = results_of(row, classes, [task], beliefs, final)[0]
    shown = shown_payload(row.config.show, task.payload)
    rest = {n: task.payload[n] for n in task.payload if n not in shown} if isinstance(task.payload, dict) else {}
    return about_campaign(
        "task", request, row, problem=problem, task=task, fields=fields_of(shown), hidden=fields_of(rest),
        result=result, beliefs=[(name, p, result.counts[name]) for name, p in result.probabilities.items()],
        leases=dashboard.store.leases(id, [number]), dropped_models=row.rules.dropped_models,
    )  # fmt: skip


def fields_of(payload: Any) -> list[tuple[str, str]]:
    """A payload as pairs of name and text."""
    table = payload if isinstance(payload, dict) else {"": payload}
    return [
        (str(name), value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False))
        for name, value in table.items()
    ]


@router.get("/campaigns/{campaign}/worker")
def worker_page(
    campaign: CampaignId,
    request: Request,
    name: str = "",
    dropped: Count = None,
    restored: Count = None,
    left: Count = None,
) -> Response:
    """What the worker did, and the forms; the numbers are those of labels that a form has just changed."""
    parts = [
        (dropped, "dropped"),
        (restored, "restored"),
        (left, "not restored: their items have all labels they need"),
    ]
    done = [f"{plural(number, 'label')} {what}." for number, what in parts if number is not None]
    return _worker_page(request, campaign, name, done=" ".join(done))


@router.get("/campaigns/{campaign}/worker.json")
def worker_record(campaign: CampaignId, request: Request, name: str = "") -> Response:
    """Download all that is kept about a person."""
    record = dashboard_state(request).app.campaign_service.worker_reports.record(campaign, name)
    return JSONResponse(record, headers={"Content-Disposition": f'attachment; filename="{campaign}-worker.json"'})


@router.post("/campaigns/{campaign}/worker")
def change_worker(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Carry out what the requester chose."""
    name, action, reason = (str(form.get(one, "")) for one in ("name", "action", "reason"))
    when_refused(request, lambda problem: _worker_page(request, campaign, name, problem))
    done = _carry_out(dashboard_state(request).app.campaign_service, campaign, name, action, reason)
    if form.get("back") == "campaign" or action == "erase":
        return RedirectResponse(f"/campaigns/{campaign}", 303)
    return RedirectResponse(f"/campaigns/{campaign}/worker?{urlencode({'name': name, **done})}", 303)


def _carry_out(service: CampaignService, id: str, name: str, action: str, reason: str) -> dict[str, int]:
    """How many labels were changed."""
    if action in _STANDINGS:
        service.set_standing(id, name, _STANDINGS[action], reason)
        return {}
    if action == "erase":
        service.erase_worker(id, name)
        return {}
    if action == "block_and_drop":
        service.set_standing(id, name, "blocked", reason)
    if action in ("drop", "block_and_drop"):
        return {"dropped": service.drop_labels(id, name, reason).changed}
    if action == "restore_labels":
        done = service.restore_labels(id, name)
        return {"restored": done.changed} | ({"left": done.left} if done.left else {})
    raise InputError("the form does not say what to do.", "Use one of its buttons.")


def _worker_page(request: Request, id: str, name: str, problem: str = "", done: str = "") -> Response:
    dashboard = dashboard_state(request)
    row, reports = dashboard.store.row(id), dashboard.app.campaign_service.worker_reports
    skill = reports.skills(id).get(name)
    with dashboard.store.transaction(id) as state:
        found = state.find_worker(name)
        report = None if found is None else report_of(found, row.config.pay_per_label, skill)
    if report is None:
        raise NotFoundError(f"{name[:60]!r} has had no item of this campaign.", "Go back to the campaign.")
    comments = comment_lines(dashboard.store, row, name, COMMENTS_SHOWN)
    told = {"problem": problem, "done": done, "meaning": STANDINGS[report.standing], "comments": comments}
    return about_campaign("worker", request, row, worker=report, **told)


@router.post("/campaigns/{campaign}/pause")
def pause(campaign: CampaignId, request: Request) -> Response:
    """Grant no new leases."""
    return _changed(request, campaign, lambda service, row: service.pause(campaign))


@router.post("/campaigns/{campaign}/resume")
def resume(campaign: CampaignId, request: Request) -> Response:
    """Grant leases again."""
    return _changed(request, campaign, lambda service, row: service.resume(campaign))


@router.post("/campaigns/{campaign}/settings")
def settings(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Change settings; fields left as they were shown change nothing."""

    def change(service: CampaignService, row: CampaignRow) -> None:
        changes = changed_settings(current(row, campaign_terms(row)), texts_of(form))
        service.change(campaign, changes)

    return _changed(request, campaign, change)


def _changed(
    request: Request, campaign: str, change: Callable[[CampaignService, CampaignRow], object], part: str = ""
) -> Response:
    """The campaign's page after a change, which also tells of a refusal."""
    dashboard, rights = dashboard_state(request), rights_of(request)

    def again(problem: str) -> Response:
        return campaign_page_response(dashboard, dashboard.store.row(campaign), rights, None, problem)

    when_refused(request, again)
    done = change(dashboard.app.campaign_service, dashboard.store.row(campaign))
    query = f"?{urlencode(done)}" if isinstance(done, dict) else ""
    return RedirectResponse(f"/campaigns/{campaign}{query}{part}", 303)


@router.post("/campaigns/{campaign}/guarantee")
def change_guarantee(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Freeze the labels and draw, draw the next look, or reopen the labels."""

    def change(service: CampaignService, row: CampaignRow) -> None:
        does, given = form.get("do"), str(form.get("audits", "")).split(",")
        if does == "freeze":
            audits = [read_whole(part, "the number of items") for part in given if part.strip()]
            service.guarantees.freeze(campaign, audits or None, str(form.get("of", "")).strip() or None)
        elif does == "look":
            service.guarantees.next_look(campaign)
        elif does == "reopen":
            service.guarantees.reopen(campaign)
        else:
            raise InputError("the form does not say what to do.", "Use one of its buttons.")

    return _changed(request, campaign, change)


@router.get("/campaigns/{campaign}/guarantee.json")
def download_record(campaign: CampaignId, request: Request) -> Response:
    """Download what is needed to check the certificate."""
    record = dashboard_state(request).app.campaign_service.guarantees.record(campaign).record()
    return JSONResponse(record, headers={"Content-Disposition": f'attachment; filename="{campaign}.guarantee.json"'})


@router.get("/campaigns/{campaign}/delete")
def delete_page(campaign: CampaignId, request: Request) -> Response:
    """What will be gone, and the field to confirm it."""
    return about_campaign("delete", request, dashboard_state(request).store.row(campaign), problem="")


@router.post("/campaigns/{campaign}/delete")
def delete(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Delete the campaign, if its id was typed."""
    typed, dashboard = str(form.get("typed", "")).strip(), dashboard_state(request)
    if typed != campaign:
        problem = f"“{typed[:60]}” is not the campaign’s id: nothing was deleted. Type {campaign}."
        return about_campaign("delete", request, dashboard.store.row(campaign), problem=problem)
    dashboard.app.campaign_service.deletions.begin(campaign)
    return RedirectResponse("/", 303)


@router.post("/campaigns/{campaign}/items")
def add_items(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Add items of a file, or the known answers of items that are there."""

    def add(service: CampaignService, row: CampaignRow) -> dict[str, int]:
        given, name = file_of(form, "Choose one with a header.")
        ids, plain = str(form.get("id_column", "")).strip(), delimited(given.file, name)
        if "answers" in form:
            known: dict[str, str] = {}
            for one in read_predictions(TaskReader(plain, name, "csv").rows(), row.config.labels, ids or None):
                answer = row.config.labels[one.label]
                if known.setdefault(one.task, answer) != answer:
                    raise InputError(f"there are two answers to {one.task[:60]!r}.", "Give each item one.")
            return {"known_answers": service.set_gold(campaign, known)}
        added = service.add_checked(campaign, read_items(row.config, plain, ids))
        return {"added": added.added, "known": added.known, "alike": added.alike}

    return _changed(request, campaign, add)


@router.post("/campaigns/{campaign}/predictions")
def predictions(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Add what a model predicts."""

    def add(service: CampaignService, row: CampaignRow) -> None:
        price = _cost(str(form.get("cost", "")))
        given, name = file_of(form, "Choose one with the columns task and label.")
        rows = TaskReader(given.file, name, uploaded_format(given.file, name))
        service.add_predictions(campaign, str(form.get("model", "")), rows.rows(), price)

    return _changed(request, campaign, add, "#h-workers")


@router.post("/campaigns/{campaign}/features")
def features(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Add features of the items."""

    def add(service: CampaignService, row: CampaignRow) -> None:
        given, _ = file_of(form, "Choose one with a column task and columns of features.")
        service.add_features(campaign, given.file, bool(form.get("replace")))

    return _changed(request, campaign, add, "#log")


def _cost(text: str) -> float:
    try:
        return float(with_point(text)) if text.strip() else 0.0
    except ValueError:
        raise InputError(f"cost {text[:40]!r} is not a number.", "Give e.g. 0.01, or leave it empty.") from None


@router.get("/campaigns/{campaign}/edit")
def edit_page(campaign: CampaignId, request: Request, saved: str = "") -> Response:
    """The form as the campaign stands."""
    return _edit_page(request, campaign, saved=bool(saved))


@router.post("/campaigns/{campaign}/edit")
def edit(campaign: CampaignId, request: Request, sent: Form) -> Response:
    """Save the changes, or show what the instructions will look like."""
    dashboard, shown = dashboard_state(request), [str(value) for value in sent.getlist("shown")]
    row = dashboard.store.row(campaign)
    form = PageForm.read(texts_of(sent), shown, len(row.config.labels))
    if sent.get("action") == "preview":
        return _edit_page(request, campaign, form)
    columns = columns_to_show(row.config, [task.payload for task in dashboard.store.tasks(campaign, limit=SAMPLE)])
    when_refused(request, lambda problem: _edit_page(request, campaign, form, problem))
    dashboard.app.campaign_service.change(campaign, form.changes(row, columns))
    return RedirectResponse(f"/campaigns/{campaign}/edit?saved=1", 303)


def _edit_page(
    request: Request, id: str, form: PageForm | None = None, problem: str = "", saved: bool = False
) -> Response:
    dashboard = dashboard_state(request)
    row = dashboard.store.row(id)
    columns = columns_to_show(row.config, [task.payload for task in dashboard.store.tasks(id, limit=SAMPLE)])
    shown = PageForm.of(row, columns) if form is None else form
    return about_campaign(
        "edit", request, row, form=shown, columns=columns, problem=problem, saved=saved, unsaved=form is not None,
        preview=safe_html(shown.texts.get("instructions", "")), personal=looks_personal,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageForm:
    """Texts of settings, what workers read for each label (empty for the label itself), and the columns shown."""

    texts: Mapping[str, str]
    names: tuple[str, ...]
    shown: tuple[str, ...]

    @classmethod
    def of(cls, row: CampaignRow, columns: Sequence[str]) -> PageForm:
        """The form as the campaign stands."""
        config = row.config
        names = config.display_names or ("",) * len(config.labels)
        shown = tuple(name for name in columns if is_shown(config.show, name))
        return cls(current(row, offered("workers", changing=True)), names, shown)

    @classmethod
    def read(cls, form: Mapping[str, str], shown: Sequence[str], answers: int) -> PageForm:
        """The form as it was sent."""
        names = tuple(form.get(f"label{number}", "").strip() for number in range(answers))
        return cls(form, names, tuple(shown))

    @property
    def fields(self) -> list[SettingField]:
        """The fields of settings."""
        return [setting_field(name, self.texts.get(name, "")) for name in offered("workers", changing=True)]

    def changes(self, row: CampaignRow, columns: Sequence[str]) -> dict[str, Any]:
        """The settings that the form asks for, as far as they differ from those that are there."""
        before, labels = PageForm.of(row, columns), row.config.labels
        new = changed_settings(before.texts, self.texts)
        if self.names != before.names:
            given = [name or label for name, label in zip(self.names, labels, strict=True)]
            new["display_names"] = None if given == list(labels) else given
        if columns and self.shown != before.shown:
            new["show"] = list(self.shown)
        return new


def columns_to_show(config: CampaignSettings, payloads: Sequence[Any]) -> list[str]:
    """The columns that a requester may have shown: those of the first tasks, and those that are named already."""
    named = [name for name in config.show or () if name != ALL]
    return list(dict.fromkeys([*columns_of(payloads), *named]))
