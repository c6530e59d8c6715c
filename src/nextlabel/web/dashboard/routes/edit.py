"""What workers see of a campaign, and changes to it while it runs: a form that works without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.commands import SAMPLE
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import ALL, CampaignSettings, columns_of, is_shown, looks_personal
from nextlabel.errors import InputError, NotFoundError
from nextlabel.service.auth import CampaignId
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.dashboard.setting_form import SettingField, changed_settings, current, offered, setting_field
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/edit")
def edit_page(campaign: CampaignId, request: Request, saved: str = "") -> Response:
    """The form as the campaign stands."""
    return _page(request, campaign, saved=bool(saved))


@router.post("/campaigns/{campaign}/edit")
async def edit(campaign: CampaignId, request: Request) -> Response:
    """Save the changes, or show what the instructions will look like."""
    form = await request.form(max_files=0)
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    shown = [str(value) for value in form.getlist("shown")]
    return await to_thread.run_sync(_save, request, campaign, fields, shown)


def _save(request: Request, id: str, fields: dict[str, str], shown: list[str]) -> Response:
    dashboard = dashboard_state(request)
    row = dashboard.store.row(id)
    form = PageForm.read(fields, shown, row.config.answers)
    if fields.get("action") == "preview":
        return _page(request, id, form)
    columns = columns_to_show(row.config, [task.payload for task in dashboard.store.tasks(id, limit=SAMPLE)])
    try:
        dashboard.app.campaign_service.change(id, form.changes(row, columns))
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
    shown = PageForm.of(row, columns) if form is None else form
    return page(
        "dashboard/edit.html", status, row=row, title=title_of(row), form=shown, columns=columns, problem=problem,
        saved=saved, unsaved=form is not None, preview=safe_html(shown.texts.get("instructions", "")),
        personal=looks_personal,
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
        names = config.display_names or ("",) * config.answers
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
