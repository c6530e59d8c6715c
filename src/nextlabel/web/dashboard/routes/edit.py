"""What workers see of a campaign, and changes to it while it runs: a form that works without scripts."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.commands import SAMPLE
from nextlabel.campaign.declaration import LANGUAGES, declared
from nextlabel.campaign.shown_columns import looks_personal
from nextlabel.errors import InputError, NotFoundError
from nextlabel.service.auth import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.dashboard.page_form import PageForm, columns_to_show
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/edit")
def edit_page(campaign: str, request: Request, saved: str = "") -> Response:
    """The form as the campaign stands."""
    return _page(request, campaign_id(campaign), saved=bool(saved))


@router.post("/campaigns/{campaign}/edit")
async def edit(campaign: str, request: Request) -> Response:
    """Save the changes, or show what the instructions will look like."""
    form = await request.form(max_files=0)
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    shown = [str(value) for value in form.getlist("shown")]
    return await to_thread.run_sync(_save, request, campaign_id(campaign), fields, shown)


def _save(request: Request, id: str, fields: dict[str, str], shown: list[str]) -> Response:
    dashboard = dashboard_state(request)
    config = dashboard.store.row(id).config
    form = PageForm.read(fields, shown, config.answers)
    if fields.get("action") == "preview":
        return _page(request, id, form)
    columns = columns_to_show(config, [task.payload for task in dashboard.store.tasks(id, limit=SAMPLE)])
    try:
        dashboard.app.campaign_service.change(id, form.changes(config, columns))
    except NotFoundError:
        raise
    except InputError as error:
        return _page(request, id, form, f"{sentence(error.message)} {error.hint}", status=422)
    return RedirectResponse(f"/campaigns/{id}/edit?saved=1", 303)


def _page(
    request: Request, id: str, form: PageForm | None = None, problem: str = "", saved: bool = False, status: int = 200
) -> Response:
    dashboard = dashboard_state(request)
    row = dashboard.store.row(id)
    columns = columns_to_show(row.config, [task.payload for task in dashboard.store.tasks(id, limit=SAMPLE)])
    shown = PageForm.of(row.config, columns) if form is None else form
    return page(
        "dashboard/edit.html", status, row=row, title=title_of(row), form=shown, columns=columns, problem=problem,
        saved=saved, unsaved=form is not None, preview=safe_html(shown.instructions), languages=LANGUAGES,
        setting=declared, personal=looks_personal,
    )  # fmt: skip
