"""The list of campaigns; one campaign with its updates, its items, workers and audit; and what a requester does to it.

In an audit a requester draws items, and an expert answers them one by one, without seeing the results.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from nextlabel.application import service as application
from nextlabel.application.service import CampaignService
from nextlabel.application.worker_reports import report_of
from nextlabel.campaign.commands import SAMPLE
from nextlabel.campaign.replies import Added
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import ALL, columns_of, is_shown, looks_personal, shown_payload
from nextlabel.campaign.states import STANDINGS, Standing
from nextlabel.errors import InputError, NotAllowedError, NotFoundError
from nextlabel.files.columns import with_point
from nextlabel.files.predictions import read_predictions
from nextlabel.files.tables import delimited, uploaded_format
from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import Service, app_state, link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import link_url, revoke_links
from nextlabel.service.middleware import prefixed, principal_of
from nextlabel.service.models import LabelsQuery, QueryParameters, ResultsQuery, WorkersQuery
from nextlabel.service.openapi import api_view
from nextlabel.service.routes.campaigns import current_row
from nextlabel.service.routes.results import FileFormat, labels, results, show_workers
from nextlabel.web.dashboard.access import NO_ACTION, Form, GuardedRoute, Told, file_of, rights_of, texts_of
from nextlabel.web.dashboard.access import campaign_page as about_campaign
from nextlabel.web.dashboard.formatting import reason_of, title_of
from nextlabel.web.dashboard.routes.create import read_items
from nextlabel.web.dashboard.setting_form import (
    changed_settings,
    current,
    offered,
    read_number,
    read_whole,
    setting_field,
)
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.dashboard.view import campaign_view, chart_data, fingerprints, render_parts, with_tasks
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import page
from nextlabel.web.worker.steps import answer_text
from nextlabel.wording import counted

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
    dashboard, token = dashboard_state(request), principal_of(request).token
    rows = dashboard.app.access.opened(token, dashboard.store.campaigns())
    owners = {} if token is None or token.owner else dashboard.store.records.owners()
    campaigns = [
        {"row": row, "title": title_of(row), "reason": reason_of(row), "summary": dashboard.summary(row)}
        for row in rows[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
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
def campaign_page(
    campaign: CampaignId,
    request: Request,
    before: Cursor = None,
    added: Count = None,
    known: Count = 0,
    alike: Count = 0,
    known_answers: Count = None,
    problem: Told = "",
) -> Response:
    """One campaign; the numbers are those of items that a form has just added."""
    row, dashboard = current_row(request, campaign), dashboard_state(request)
    done: list[str] = []
    if added is not None:
        done = [f"{counted(added, 'item')} added.", *Added(added, known or 0, row.tasks, alike or 0).notes()]
    if known_answers is not None:
        done = [f"{counted(known_answers, 'known answer')} new or corrected."]
    view, parts, charts, _, seen = _view(request, row, before)
    settings = [setting_field(name, text) for name, text in current(row, campaign_terms(row)).items()]
    hooks = dashboard.app.webhooks.of(row.id) if rights_of(request).changes else []
    return page(
        "dashboard/campaign.html", parts=parts, charts=charts, seen=seen, problem=problem, done=" ".join(done),
        disabled_webhooks=[one for one in hooks if one.disabled], settings=settings, **view,
    )  # fmt: skip


@router.get("/campaigns/{campaign}/live")
def live(
    campaign: CampaignId, request: Request, after: Annotated[int, Query(ge=0, le=LARGEST)] = 0, seen: str = ""
) -> Response:
    """What has changed since event ``after``; ``seen`` is what the last reply named."""
    row = current_row(request, campaign)
    version, _, hashes = seen.partition("~")
    if row.seq == after and dashboard_state(request).version(row) == version:
        return Response(status_code=204)
    _, parts, charts, new, seen = _view(request, row)
    old = dict(pair.split(":", 1) for pair in hashes.split(",") if ":" in pair)
    changed = {name: prefixed(html) for name, html in parts.items() if old.get(name) != new[name]}
    drawn = {} if old.get("charts") == new["charts"] else {"charts": charts}
    return JSONResponse({"seq": row.seq, "seen": seen, "parts": changed, **drawn})


def _view(
    request: Request, row: CampaignRow, before: int | None = None
) -> tuple[dict[str, Any], dict[str, str], dict[str, Any], dict[str, str], str]:
    """What the page shows, its parts and charts, a hash of each, and what a page sends back to say what it has."""
    dashboard = dashboard_state(request)
    version = dashboard.version(row)  # before the view: what arrives in between is new to the page
    view = campaign_view(dashboard, row, rights_of(request), before)
    parts, charts = render_parts(view), chart_data(view)
    hashes = fingerprints(parts, charts)
    return view, parts, charts, hashes, version + "~" + ",".join(f"{name}:{hash}" for name, hash in hashes.items())


def campaign_terms(row: CampaignRow) -> list[str]:
    """The settings that the campaign's page asks for; without workers who differ, nobody can be turned away."""
    terms = ["budget", *offered("terms", changing=True)]
    return [name for name in terms if name != "turn_away" or row.config.knows_workers]


def _download(show: Callable[[str, Request, Any], Response], query: type[QueryParameters], **asked: Any) -> Any:
    """A download in the formats of the API, which ``show`` makes; of labels those that were dropped too."""

    def download(campaign: CampaignId, format: FileFormat, request: Request) -> Response:
        return _for_spreadsheets(show(campaign, request, query.model_validate({"format": format, **asked})))

    return download


router.get("/campaigns/{campaign}/results.{format}")(_download(results, ResultsQuery))
router.get("/campaigns/{campaign}/labels.{format}")(_download(labels, LabelsQuery, dropped=True))
router.get("/campaigns/{campaign}/workers.{format}")(_download(show_workers, WorkersQuery))


def _for_spreadsheets(file: Response) -> Response:
    """A table with the mark by which Excel knows UTF-8."""
    if isinstance(file, StreamingResponse) and (file.media_type or "").startswith("text/csv"):
        file.body_iterator = _marked(file.body_iterator)
    return file


async def _marked(pieces: AsyncIterable[Any]) -> AsyncIterator[Any]:
    yield BOM_UTF8
    async for piece in pieces:
        yield piece


@router.get("/campaigns/{campaign}/tasks/{number}")
def task_page(campaign: CampaignId, number: TaskNumber, request: Request, problem: Told = "") -> Response:
    """The task, the current belief, the labels by worker, and the form that sets its answer."""
    dashboard = dashboard_state(request)
    row, store = dashboard.store.row(campaign), dashboard.store
    task = store.tasks_by_number(campaign, [number]).get(number)
    if task is None:
        raise NotFoundError(f"the campaign has no task number {number}.", "Go back to the campaign.")
    (result,) = dashboard.service.results_of(row, dashboard.classes(row), [task], application.READ_PATIENCE_S)
    shown = shown_payload(row.config.show, task.payload)
    rest = {n: task.payload[n] for n in task.payload if n not in shown} if isinstance(task.payload, dict) else {}
    return about_campaign(
        "task", request, row, problem=problem, task=task, fields=fields_of(shown), hidden=fields_of(rest),
        result=result, beliefs=[(name, p, result.counts[name]) for name, p in result.probabilities.items()],
        leases=store.leases(campaign, [number]), dropped_models=row.dropped_models,
    )  # fmt: skip


@router.post("/campaigns/{campaign}/tasks/{number}")
def adjudicate(campaign: CampaignId, number: TaskNumber, request: Request, form: Form, service: Service) -> Response:
    """Set the answer of the task, or take it back; ``back`` asks for the campaign's page."""
    task = service.store.tasks_by_number(campaign, [number]).get(number)
    request.state.again = lambda problem: task_page(campaign, number, request, problem)
    label = _answer_sent(service.store.row(campaign), form)
    if task is not None and label is None:
        service[campaign].undo_adjudication([task.key])
    elif task is not None:
        service[campaign].adjudicate({task.key: label})
    back = "#h-hard" if form.get("back") == "campaign" else f"/tasks/{number}"
    return RedirectResponse(f"/campaigns/{campaign}{back}", 303)


def _answer_sent(row: CampaignRow, form: Form) -> str | None:
    """The answer that a form gives, of several questions by the places of options; None without one."""
    if "form" not in form:
        return str(form["label"]) if "label" in form else None
    answers = row.config.answer_type
    return answers.name_of(answers.sent(answer_text(form.multi_items())))


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
    problem: Told = "",
) -> Response:
    """What the worker did, and the forms; the numbers are those of labels that a form has just changed."""
    parts = {"dropped": dropped, "restored": restored, "not restored: their items have all labels they need": left}
    done = " ".join(f"{counted(number, 'label')} {what}." for what, number in parts.items() if number is not None)
    dashboard = dashboard_state(request)
    row, skills = dashboard.store.row(campaign), dashboard.service.worker_reports.learnt(campaign).skills
    with dashboard.store.transaction(campaign) as state:
        found = state.find_worker(name)
        if found is None:
            raise NotFoundError(f"{name[:60]!r} has had no item of this campaign.", "Go back to the campaign.")
        report = report_of(found, row.config.pay_per_label, skills.get(name))
    leases = dashboard.store.leases(campaign, commented=True, worker=name, limit=COMMENTS_SHOWN)
    return about_campaign(
        "worker", request, row, worker=report, problem=problem, done=done, meaning=STANDINGS[report.standing],
        comments=with_tasks(dashboard.store, row, leases),
    )  # fmt: skip


@router.get("/campaigns/{campaign}/worker.json")
def worker_record(campaign: CampaignId, service: Service, name: str = "") -> Response:
    """Download all that is kept about a person."""
    return _attached(service.worker_reports.record(campaign, name), f"{campaign}-worker.json")


def _attached(record: Any, name: str) -> Response:
    return JSONResponse(record, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.post("/campaigns/{campaign}/worker")
def change_worker(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """Carry out what the requester chose."""
    name, action, reason = (str(form.get(one, "")) for one in ("name", "action", "reason"))
    request.state.again = lambda problem: worker_page(campaign, request, name, problem=problem)
    done: dict[str, int] = {}
    if action in _STANDINGS:
        service[campaign].set_standing(name, _STANDINGS[action], reason)
    elif action == "erase":
        service[campaign].erase_worker(name)
    elif action in ("drop", "block_and_drop"):
        if action == "block_and_drop":
            service[campaign].set_standing(name, "blocked", reason)
        done = {"dropped": service[campaign].drop_labels(name, reason).changed}
    elif action == "restore_labels":
        labels = service[campaign].restore_labels(name)
        done = {"restored": labels.changed} | ({"left": labels.left} if labels.left else {})
    else:
        raise InputError(*NO_ACTION)
    if form.get("back") == "campaign" or action == "erase":
        return _back(campaign)
    return _back(campaign, f"/worker?{urlencode({'name': name, **done})}")


def _back(campaign: str, rest: str = "") -> Response:
    return RedirectResponse(f"/campaigns/{campaign}{rest}", 303)


def _steered(campaign: CampaignId, request: Request) -> CampaignService:
    """The service, for a form on the campaign's page, which tells of a refusal too."""
    request.state.again = lambda problem: campaign_page(campaign, request, problem=problem)
    return app_state(request).campaign_service


Steered = Annotated[CampaignService, Depends(_steered)]


@router.post("/campaigns/{campaign}/pause")
def pause(campaign: CampaignId, service: Steered) -> Response:
    """Grant no new leases."""
    service[campaign].pause()
    return _back(campaign)


@router.post("/campaigns/{campaign}/resume")
def resume(campaign: CampaignId, service: Steered) -> Response:
    """Grant leases again."""
    service[campaign].resume()
    return _back(campaign)


@router.post("/campaigns/{campaign}/settings")
def settings(campaign: CampaignId, form: Form, service: Steered) -> Response:
    """Change settings; fields left as they were shown change nothing."""
    row = service.store.row(campaign)
    service[campaign].change(**changed_settings(current(row, campaign_terms(row)), texts_of(form)))
    return _back(campaign)


@router.post("/campaigns/{campaign}/guarantee")
def change_guarantee(campaign: CampaignId, form: Form, service: Steered) -> Response:
    """Freeze the labels and draw, draw the next look, or reopen the labels."""
    does, given = form.get("do"), str(form.get("audits", "")).split(",")
    if does == "freeze":
        audits = [read_whole(part, "the number of items") for part in given if part.strip()]
        service[campaign].freeze(audits or None, str(form.get("of", "")).strip() or None)
    elif does == "look":
        service[campaign].next_look()
    elif does == "reopen":
        service[campaign].reopen_labels()
    else:
        raise InputError(*NO_ACTION)
    return _back(campaign)


@router.get("/campaigns/{campaign}/guarantee.json")
def download_record(campaign: CampaignId, service: Service) -> Response:
    """Download what is needed to check the certificate."""
    return _attached(service[campaign].guarantee_record(), f"{campaign}.guarantee.json")


@router.get("/campaigns/{campaign}/delete")
def delete_page(campaign: CampaignId, request: Request, problem: Told = "") -> Response:
    """What will be gone, and the field to confirm it."""
    return about_campaign("delete", request, dashboard_state(request).store.row(campaign), problem=problem)


@router.post("/campaigns/{campaign}/delete")
def delete(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """Delete the campaign, if its id was typed."""
    typed = str(form.get("typed", "")).strip()
    if typed != campaign:
        problem = f"“{typed[:60]}” is not the campaign’s id: nothing was deleted. Type {campaign}."
        return delete_page(campaign, request, problem)
    service.deletions.begin(campaign)
    return RedirectResponse("/", 303)


@router.post("/campaigns/{campaign}/items")
def add_items(campaign: CampaignId, form: Form, service: Steered) -> Response:
    """Add items of a file, or the known answers of items that are there."""
    config = service.store.row(campaign).config
    given, name = file_of(form, "Choose one with a header.")
    ids, plain = str(form.get("id_column", "")).strip(), delimited(given.file, name)
    if "answers" not in form:
        added = service.add_tasks(campaign, read_items(config, plain, ids))
        return _back(campaign, f"?added={added.added}&known={added.known}&alike={added.alike}")
    known: dict[str, str] = {}
    for one in read_predictions(TaskReader(plain, name, "csv").rows(), config.labels, ids or None):
        if known.setdefault(one.task, config.labels[one.label]) != config.labels[one.label]:
            raise InputError(f"there are two answers to {one.task[:60]!r}.", "Give each item one.")
    return _back(campaign, f"?known_answers={service[campaign].set_gold(known)}")


@router.post("/campaigns/{campaign}/predictions")
def predictions(campaign: CampaignId, form: Form, service: Steered) -> Response:
    """Add what a model predicts."""
    price = with_point(str(form.get("cost", "")))
    cost = read_number(price, "cost") if price else 0.0
    given, name = file_of(form, "Choose one with the columns task and label.")
    rows = TaskReader(given.file, name, uploaded_format(given.file, name))
    service[campaign].add_predictions(str(form.get("model", "")), rows, cost=cost)
    return _back(campaign, "#h-workers")


@router.post("/campaigns/{campaign}/features")
def features(campaign: CampaignId, form: Form, service: Steered) -> Response:
    """Add features of the items."""
    given, _ = file_of(form, "Choose one with a column task and columns of features.")
    service[campaign].add_features(given.file, replace=bool(form.get("replace")))
    return _back(campaign, "#log")


@router.get("/campaigns/{campaign}/edit")
def edit_page(campaign: CampaignId, request: Request, saved: str = "", sent: Told = "", problem: Told = "") -> Response:
    """The form as the campaign stands, or as it was sent."""
    row = dashboard_state(request).store.row(campaign)
    columns, texts, read, shown = sent or _page_form(dashboard_state(request).service, row)
    return about_campaign(
        "edit", request, row, columns=columns, read=read, shown=shown, problem=problem, saved=bool(saved),
        fields=[setting_field(name, texts.get(name, "")) for name in offered("workers", changing=True)],
        unsaved=bool(sent), preview=safe_html(texts.get("instructions", "")), personal=looks_personal,
    )  # fmt: skip


@router.post("/campaigns/{campaign}/edit")
def edit(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """Save the changes, or show what the instructions will look like."""
    row, texts, shown = service.store.row(campaign), texts_of(form), [str(value) for value in form.getlist("shown")]
    columns, before, read_before, shown_before = _page_form(service, row)
    labels = list(row.config.labels)
    read = [texts.get(f"label{number}", "").strip() for number in range(len(labels))]

    def again(problem: str = "") -> Response:
        return edit_page(campaign, request, "", (columns, texts, read, shown), problem)

    request.state.again = again
    if form.get("action") == "preview":
        return again()
    new = changed_settings(before, texts)
    if read != read_before:
        names = [name or label for name, label in zip(read, labels, strict=True)]
        new["display_names"] = None if names == labels else names
    if columns and shown != shown_before:
        new["show"] = shown
    service[campaign].change(**new)
    return _back(campaign, "/edit?saved=1")


def _page_form(service: CampaignService, row: CampaignRow) -> tuple[list[str], dict[str, str], list[str], list[str]]:
    """The columns that may be shown, texts of settings, what workers read for each label, and the columns shown.

    Columns are those of the first tasks and those that are named already; what is read is empty for a label itself.
    """
    config = row.config
    payloads = [task.payload for task in service.store.tasks(row.id, limit=SAMPLE)]
    columns = list(dict.fromkeys([*columns_of(payloads), *(name for name in config.show or () if name != ALL)]))
    read = list(config.display_names or ("",) * len(config.labels))
    shown = [name for name in columns if is_shown(config.show, name)]
    return columns, current(row, offered("workers", changing=True)), read, shown


@router.get("/campaigns/{campaign}/audit")
def audit_page(campaign: CampaignId, request: Request, problem: Told = "") -> Response:
    """How far the audit has got, and the next item."""
    state, rights, base = app_state(request), rights_of(request), link_base(request)
    service = state.campaign_service
    row = service.store.row(campaign)
    promised = bool(row.guarantee)
    items = service[campaign].guarantee_items() if promised else service[campaign].audit_items()
    token = state.links.audit_token(campaign, 0 if promised else len(items)) if rights.changes and items else ""
    following = next((one for one in items if one.label is None), None)
    return about_campaign(
        "audit", request, row, problem=problem,
        standing=service[campaign].guarantee() if promised else None,
        link=link_url(base, token) if token else "", warning=link_warning(base),
        drawn=len(items), answered=sum(one.label is not None for one in items), item=following,
        fields=[] if following is None else fields_of(shown_payload(row.config.show, following.payload)),
    )  # fmt: skip


@router.post("/campaigns/{campaign}/audit")
def change_audit(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """Draw items, or take an answer."""
    request.state.again = lambda problem: audit_page(campaign, request, problem)
    if ("items" in form or "revoke" in form) and not rights_of(request).changes:
        raise NotAllowedError("only a requester draws items.", "Sign in with the token of a requester.")
    if "items" in form:
        service[campaign].draw_audit(read_whole(str(form["items"]), "the number of items"))
    elif "revoke" in form:
        revoke_links(service.store, campaign, [], join=False, audit=True)
        app_state(request).access.read()
    elif "task" in form:
        asked = service[campaign]
        row = service.store.row(campaign)
        answer = asked.answer_guarantee if row.guarantee else asked.answer_audit
        answer({str(form["task"]): _answer_sent(row, form) or ""})
    else:
        raise InputError(*NO_ACTION)
    return RedirectResponse(f"/campaigns/{campaign}/audit", 303)
