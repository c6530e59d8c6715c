"""What a requester does to a campaign: forms that work without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import InputError, NotFoundError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.status import row_after
from nextlabel.web.dashboard.access import GuardedRoute, rights_of
from nextlabel.web.dashboard.campaign_form import read_budget, read_time
from nextlabel.web.dashboard.formatting import sentence, stamp
from nextlabel.web.dashboard.routes.campaign import campaign_page_response
from nextlabel.web.dashboard.state import dashboard_state

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.post("/campaigns/{campaign}/pause")
async def pause(campaign: str, request: Request) -> Response:
    """Grant no new leases."""
    return await _run(request, campaign, Commands.pause)


@router.post("/campaigns/{campaign}/resume")
async def resume(campaign: str, request: Request) -> Response:
    """Grant leases again."""
    return await _run(request, campaign, Commands.resume)


@router.post("/campaigns/{campaign}/settings")
async def settings(campaign: str, request: Request) -> Response:
    """Change settings; fields left as they were shown change nothing."""
    fields = {name: str(value).strip() for name, value in (await request.form()).items()}
    row = await to_thread.run_sync(dashboard_state(request).store.row, campaign_id(campaign))
    try:
        changes = _changes(row, fields)
    except InputError as error:
        return await _refused(request, row, error)
    return await _run(request, campaign, lambda commands: commands.change(**changes))


def field_time(seconds: float | None) -> str:
    """A deadline as the form shows it."""
    return "" if seconds is None else stamp(seconds)[:16]


def field_seconds(seconds: float | None) -> str:
    """A lease time as the form shows it."""
    return "" if seconds is None else f"{seconds:g}"


def _changes(row: CampaignRow, fields: dict[str, str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "budget" in fields:
        changes["budget"] = read_budget(fields["budget"])
    if fields.get("deadline", field_time(row.deadline)) != field_time(row.deadline):
        changes["deadline"] = read_time(fields["deadline"])
    if fields.get("lease_seconds", field_seconds(row.lease_seconds)) != field_seconds(row.lease_seconds):
        changes["lease_seconds"] = _seconds(fields["lease_seconds"])
    config = row.config
    if "pay_per_label" in fields:
        changes["pay_per_label"] = _number("pay per label", fields["pay_per_label"] or "0")
    if "most_labels_per_worker" in fields:
        most = fields["most_labels_per_worker"]
        changes["most_labels_per_worker"] = read_budget(most, "the limit per worker") if most else None
    if "completion_code" in fields:
        changes["completion_code"] = fields["completion_code"]
    if "turn_away" in fields:
        changes["turn_away"] = fields["turn_away"] == "on"
    amended = ("pay_per_label", "most_labels_per_worker", "completion_code", "turn_away")
    same = {name for name in amended if changes.get(name) == getattr(config, name)}
    return {name: value for name, value in changes.items() if name not in same}


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} {text[:40]!r} is not a number.", "Give e.g. 0.05.") from None


def _seconds(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"lease time {text[:40]!r} is not a number of seconds.", "Give e.g. 600.") from None


async def _run(request: Request, campaign: str, command: Callable[[Commands], None]) -> Response:
    state, id = app_state(request), campaign_id(campaign)
    try:
        await row_after(state, id, command)
    except NotFoundError:
        raise
    except InputError as error:
        return await _refused(request, await to_thread.run_sync(dashboard_state(request).store.row, id), error)
    return RedirectResponse(f"/campaigns/{id}", 303)


async def _refused(request: Request, row: CampaignRow, error: InputError) -> Response:
    message = f"{sentence(error.message)} {error.hint}"
    return await to_thread.run_sync(
        campaign_page_response, dashboard_state(request), row, rights_of(request), None, message, 422
    )
