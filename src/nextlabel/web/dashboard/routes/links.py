"""How workers come to a campaign, by links of their own or from platforms, and who is told what happens in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Annotated

from anyio import from_thread
from fastapi import APIRouter, Query, Request
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from nextlabel.application.status import questions_lacking
from nextlabel.campaign.replies import Added
from nextlabel.campaign.webhooks import TYPES
from nextlabel.errors import InputError
from nextlabel.integrations import mturk, prolific
from nextlabel.integrations.platforms import PLATFORMS, PlatformName
from nextlabel.prose import counted, listed
from nextlabel.service.app_state import app_state, link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import link_url, revoke_links
from nextlabel.service.routes.platforms import bonus_file, hook_url
from nextlabel.service.webhooks import WebhookSender, checked_address, send_trial
from nextlabel.web.dashboard.access import Form, GuardedRoute, campaign_page, when_refused
from nextlabel.web.dashboard.state import dashboard_state

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

#: The most links that one form creates.
MAX_LINKS = 1000

#: Visits that the page shows.
SHOWN = 200
Count = Annotated[int, Query(ge=0, le=10**9)]


@router.get("/campaigns/{campaign}/links")
def links_page(campaign: CampaignId, request: Request, made: str = "", known: Count = 0, alike: Count = 0) -> Response:
    """The link for platforms, and a form for personal links."""
    return _links_page(request, campaign, new=bool(made), notes=Added(0, known, 0, alike).notes())


@router.post("/campaigns/{campaign}/links")
def make_links(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Create a link for each name; the same every time."""
    text = str(form.get("workers", ""))
    names, base, links = _names(text), link_base(request), app_state(request).links
    when_refused(request, lambda problem: _links_page(request, campaign, text, problem=problem))
    _check_number(names)
    made = [(name, link_url(base, links.worker_token(campaign, name))) for name in names]
    return _links_page(request, campaign, text, made)


@router.post("/campaigns/{campaign}/links/revoke")
def end_links(campaign: CampaignId, request: Request, form: Form) -> Response:
    """End the links of each name, or the link for platforms."""
    text, join = str(form.get("workers", "")), bool(form.get("join"))
    state, names = app_state(request), _names(text)
    when_refused(request, lambda problem: _links_page(request, campaign, text, problem=problem))
    state.campaign_service.store.row(campaign)
    _check_number(names or [""] if join else names)
    revoke_links(state.campaign_service.store, campaign, names, join)
    state.access.read()
    ended = "The link for platforms has" if join else f"The links of {listed(names)} have"
    return _links_page(request, campaign, text, done=f"{ended} ended. Links that you make from now on are new.")


def _check_number(names: list[str]) -> None:
    if not 0 < len(names) <= MAX_LINKS:
        raise InputError(f"give 1 to {MAX_LINKS:,} names, one per line.")


def _names(text: str) -> list[str]:
    """Different names, one per line or between commas."""
    return list(dict.fromkeys(name.strip() for name in re.split(r"[\n,;]", text) if name.strip()))


def _links_page(
    request: Request,
    campaign: str,
    text: str = "",
    links: list[tuple[str, str]] | None = None,
    problem: str = "",
    done: str = "",
    new: bool = False,
    notes: Sequence[str] = (),
) -> Response:
    row = dashboard_state(request).store.row(campaign)
    join = link_url(link_base(request), app_state(request).links.join_token(campaign))
    return campaign_page(
        "links", request, row, given=text, links=links or [], problem=problem, done=done, new=new,
        notes=[*notes, *questions_lacking(row)],
        join=join, prolific=prolific.Prolific().link(join), platforms=PLATFORMS, warning=link_warning(join),
    )  # fmt: skip


@router.get("/campaigns/{campaign}/platforms")
def platforms_page(campaign: CampaignId, request: Request) -> Response:
    """Both platforms."""
    return _platforms_page(request, campaign)


@router.post("/campaigns/{campaign}/platforms")
def take_export(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Do what Prolific's webhook would have done, by a file that it exports."""
    state, file = app_state(request), form.get("file")
    data, name = (file.file, file.filename) if isinstance(file, UploadFile) else (BytesIO(), None)
    state.campaign_service.store.row(campaign)
    when_refused(request, lambda problem: _platforms_page(request, campaign, problem=problem))
    changes = prolific.read_export(data, (name or "the file")[:100])
    visits, drops = state.campaign_service.visits, state.settings.drop_statuses
    effects = visits.statuses_changed(campaign, prolific.Prolific.name, changes, drops)
    done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
    return _platforms_page(request, campaign, done=f"{counted(len(changes), 'submission')} read: {done}.")


@router.get("/campaigns/{campaign}/bonuses.csv")
def bonuses(
    campaign: CampaignId,
    request: Request,
    platform: PlatformName,
    reward: Annotated[float, Query(ge=0, le=100_000, allow_inf_nan=False)] = 0.0,
) -> Response:
    """Download what workers are owed beyond the reward."""
    return bonus_file(request, campaign, platform, reward)


def _platforms_page(request: Request, id: str, problem: str = "", done: str = "") -> Response:
    state = app_state(request)
    row = dashboard_state(request).store.row(id)
    base, token = link_base(request), state.links.join_token(id)
    frame = link_url(base, token, "f")
    drawn = (prolific.Prolific.name, mturk.MechanicalTurk.name)
    others = [(one, one.link(link_url(base, token))) for one in PLATFORMS.values() if one.name not in drawn]
    known = state.campaign_service.visits
    visits = state.campaign_service.store.visits.of(id)
    return campaign_page(
        "platforms", request, row, problem=problem, done=done,
        study=prolific.Prolific().link(link_url(base, token)), hook=hook_url(base),
        unconfirmed=known.unconfirmed(id, prolific.Prolific.name) if row.config.pay_per_label > 0 else "",
        takes_events=bool(state.settings.prolific_secrets), visits=visits[::-1][:SHOWN], total=len(visits),
        question=mturk.external_question(frame), others=others,
        frame_hosts=state.settings.frame_hosts, https=base.startswith("https://"), warning=link_warning(base),
    )  # fmt: skip


@router.get("/campaigns/{campaign}/webhooks")
def webhooks_page(campaign: CampaignId, request: Request) -> Response:
    """The webhooks of a campaign, and a form for another one."""
    return _webhooks_page(request, campaign)


@router.post("/campaigns/{campaign}/webhooks")
def change_webhooks(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Add a webhook, or try, enable or remove one; a secret is shown on the page that follows, and nowhere else."""
    state, id, given = app_state(request), campaign, str(form.get("url", ""))
    store = state.campaign_service.store
    store.row(id)
    when_refused(request, lambda problem: _webhooks_page(request, id, problem, url=given))
    if "test" in form:
        webhook = state.webhooks.get(id, str(form["test"]))
        reply = from_thread.run(send_trial, store, state.settings, webhook, state.webhooks.trial(webhook))
        said = f"{webhook.url}: {reply.said}."
        done, problem = (f"The trial arrived. {said}", "") if reply.ok else ("", f"The trial failed. {said}")
        return _webhooks_page(request, id, problem, done)
    if "remove" in form:
        state.webhooks.remove(id, str(form["remove"]))
    elif "enable" in form:
        state.webhooks.enable(id, str(form["enable"]))
    elif "url" in form:
        types = [str(one) for one in form.getlist("types")]
        if not types:
            raise InputError("no event is ticked.", "Tick what the address is to be told.")
        made = state.webhooks.add(id, checked_address(given.strip(), state.settings), types, "from_start" in form)
        secret = WebhookSender(store, state.settings).secret_of(made)
        return _webhooks_page(request, id, done=f"{made.url} is told what happens from now on.", secret=secret)
    else:
        raise InputError("the form does not say what to do.", "Use one of its buttons.")
    return RedirectResponse(f"/campaigns/{id}/webhooks", 303)


def _webhooks_page(
    request: Request, id: str, problem: str = "", done: str = "", secret: str = "", url: str = ""
) -> Response:
    state = app_state(request)
    row = state.campaign_service.store.row(id)
    return campaign_page(
        "webhooks", request, row, status=422 if problem and url else 200, problem=problem, done=done, secret=secret,
        url=url, types=TYPES, webhooks=state.webhooks.of(id), now=state.campaign_service.clock(),
    )  # fmt: skip
