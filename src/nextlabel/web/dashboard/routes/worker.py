"""One worker of a campaign, and what a requester may do about them: forms that work without scripts."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.standing import STANDINGS, Standing
from nextlabel.campaigns.service import CampaignService
from nextlabel.campaigns.worker_reports import report_of
from nextlabel.errors import InputError, NotFoundError
from nextlabel.service.auth import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute, rights_of
from nextlabel.web.dashboard.formatting import plural, sentence, title_of
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.dashboard.view import comment_lines
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Comments that the page lists.
COMMENTS_SHOWN = 50
Count = Annotated[int | None, Query(ge=0, le=10**9)]
_STANDINGS: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}


@router.get("/campaigns/{campaign}/worker")
def worker_page(
    campaign: str,
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
    return _page(request, campaign_id(campaign), name, done=" ".join(done))


@router.post("/campaigns/{campaign}/worker")
async def change_worker(campaign: str, request: Request) -> Response:
    """Carry out what the requester chose."""
    form = {name: str(value) for name, value in (await request.form()).items()}
    return await to_thread.run_sync(_change, request, campaign_id(campaign), form)


def _change(request: Request, id: str, form: dict[str, str]) -> Response:
    name, action, reason = form.get("name", ""), form.get("action", ""), form.get("reason", "")
    service = dashboard_state(request).app.campaign_service
    try:
        done = _carry_out(service, id, name, action, reason)
    except NotFoundError:
        raise
    except InputError as error:
        return _page(request, id, name, f"{sentence(error.message)} {error.hint}", status=422)
    return RedirectResponse(f"/campaigns/{id}/worker?{urlencode({'name': name, **done})}", 303)


def _carry_out(service: CampaignService, id: str, name: str, action: str, reason: str) -> dict[str, int]:
    """How many labels were changed."""
    if action in _STANDINGS:
        service.set_standing(id, name, _STANDINGS[action], reason)
        return {}
    if action == "drop":
        return {"dropped": service.drop_labels(id, name, reason).changed}
    if action == "restore_labels":
        done = service.restore_labels(id, name)
        return {"restored": done.changed} | ({"left": done.left} if done.left else {})
    raise InputError("the form does not say what to do.", "Use one of its buttons.")


def _page(request: Request, id: str, name: str, problem: str = "", done: str = "", status: int = 200) -> Response:
    dashboard = dashboard_state(request)
    row, reports = dashboard.store.row(id), dashboard.app.campaign_service.worker_reports
    skill = reports.skills(id).get(name)
    with dashboard.store.transaction(id) as ledger:
        found = ledger.find_worker(name)
        report = None if found is None else report_of(found, row.config.pay_per_label, skill)
    if report is None:
        raise NotFoundError(f"{name[:60]!r} has had no item of this campaign.", "Go back to the campaign.")
    return page(
        "dashboard/worker.html", status, row=row, title=title_of(row), worker=report, rights=rights_of(request),
        problem=problem, done=done, meaning=STANDINGS[report.standing],
        comments=comment_lines(dashboard.overview, row, name, COMMENTS_SHOWN),
    )  # fmt: skip
