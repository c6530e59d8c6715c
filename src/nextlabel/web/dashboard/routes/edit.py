"""What workers see of a campaign, and changes to it while it runs: a form that works without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.commands import SAMPLE
from nextlabel.campaign.declaration import LANGUAGES, declared
from nextlabel.campaign.settings import ALL, CampaignSettings, columns_of, is_shown, looks_personal
from nextlabel.errors import InputError, NotFoundError
from nextlabel.service.auth import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
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


@dataclass(frozen=True, slots=True)
class PageForm:
    """The fields; ``names`` has what workers read for each label, empty for the label itself."""

    name: str
    question: str
    names: tuple[str, ...]
    instructions: str
    language: str
    shown: tuple[str, ...]

    @classmethod
    def of(cls, config: CampaignSettings, columns: Sequence[str]) -> PageForm:
        """The fields as they stand."""
        names = config.display_names or ("",) * config.answers
        shown = tuple(name for name in columns if is_shown(config.show, name))
        return cls(config.name, config.question, names, config.instructions, config.language or "", shown)

    @classmethod
    def read(cls, form: Mapping[str, str], shown: Sequence[str], answers: int) -> PageForm:
        """The fields as they were sent; browsers end lines with two characters."""
        text = {name: value.replace("\r\n", "\n").strip() for name, value in form.items()}
        names = tuple(text.get(f"label{number}", "") for number in range(answers))
        return cls(
            text.get("name", ""), text.get("question", ""), names, text.get("instructions", ""),
            text.get("language", ""), tuple(shown),
        )  # fmt: skip

    def changes(self, config: CampaignSettings, columns: Sequence[str]) -> dict[str, Any]:
        """The settings that the fields ask for, as far as they differ from those that are there."""
        before = PageForm.of(config, columns)
        new: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("name", "question", "instructions")
            if getattr(self, name) != getattr(before, name)
        }
        if self.names != before.names:
            given = [name or label for name, label in zip(self.names, config.labels, strict=True)]
            new["display_names"] = None if given == list(config.labels) else given
        if self.language != before.language:
            new["language"] = self.language or None
        if columns and self.shown != before.shown:
            new["show"] = list(self.shown)
        return new


def columns_to_show(config: CampaignSettings, payloads: Sequence[Any]) -> list[str]:
    """The columns that a requester may have shown: those of the first tasks, and those that are named already."""
    named = [name for name in config.show or () if name != ALL]
    return list(dict.fromkeys([*columns_of(payloads), *named]))
