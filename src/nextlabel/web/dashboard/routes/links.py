"""How workers come to a campaign, by links of their own or from platforms, and who is told what happens in it."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Annotated, Any

from anyio import from_thread
from fastapi import APIRouter, Query, Request
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from nextlabel.application.status import questions_lacking
from nextlabel.campaign.records import Visit
from nextlabel.campaign.replies import Added
from nextlabel.campaign.webhooks import TYPES
from nextlabel.errors import InputError
from nextlabel.integrations import mturk, prolific
from nextlabel.integrations.platforms import PLATFORMS, PlatformName
from nextlabel.service.app_state import Service, app_state, link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import link_url, revoke_links
from nextlabel.service.routes.platforms import bonus_file, hook_url
from nextlabel.service.webhooks import WebhookSender, checked_address, send_trial
from nextlabel.web.dashboard.access import NO_ACTION, Form, GuardedRoute, Told, campaign_page
from nextlabel.wording import counted, listed

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

#: The most links that one form creates.
MAX_LINKS = 1000

#: Visits that the page shows.
SHOWN = 200
Count = Annotated[int, Query(ge=0, le=10**9)]


@router.get("/campaigns/{campaign}/links")
def links_page(
    campaign: CampaignId, request: Request, made: str = "", known: Count = 0, alike: Count = 0,
    text: Told = "", links: Told = "", problem: Told = "", done: Told = "",
) -> Response:  # fmt: skip
    """The link for platforms, and a form for personal links."""
    row = app_state(request).campaign_service.store.row(campaign)
    join = link_url(link_base(request), app_state(request).links.join_token(campaign))
    return campaign_page(
        "links", request, row, given=text, links=links, problem=problem, done=done, new=bool(made),
        notes=[*Added(0, known, 0, alike).notes(), *questions_lacking(row)],
        join=join, prolific=prolific.Prolific().link(join), platforms=PLATFORMS, warning=link_warning(join),
    )  # fmt: skip


@router.post("/campaigns/{campaign}/links")
def make_links(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Create a link for each name; the same every time."""
    text, base, links = str(form.get("workers", "")), link_base(request), app_state(request).links
    request.state.again = lambda problem: links_page(campaign, request, text=text, problem=problem)
    made = [(name, link_url(base, links.worker_token(campaign, name))) for name in _names(text)]
    return links_page(campaign, request, text=text, links=made)


@router.post("/campaigns/{campaign}/links/revoke")
def end_links(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """End the links of each name, or the link for platforms."""
    text, join = str(form.get("workers", "")), bool(form.get("join"))
    request.state.again = lambda problem: links_page(campaign, request, text=text, problem=problem)
    service.store.row(campaign)
    names = [] if join and not text.strip() else _names(text)
    revoke_links(service.store, campaign, names, join)
    app_state(request).access.read()
    ended = "The link for platforms has" if join else f"The links of {listed(names)} have"
    done = f"{ended} ended. Links that you make from now on are new."
    return links_page(campaign, request, text=text, done=done)


def _names(text: str) -> list[str]:
    """Different names, one per line or between commas."""
    names = list(dict.fromkeys(name.strip() for name in re.split(r"[\n,;]", text) if name.strip()))
    if not 0 < len(names) <= MAX_LINKS:
        raise InputError(f"give 1 to {MAX_LINKS:,} names, one per line.")
    return names


@router.get("/campaigns/{campaign}/platforms")
def platforms_page(campaign: CampaignId, request: Request, problem: Told = "", done: Told = "") -> Response:
    """The campaign as a study or a HIT, and who came from where."""
    state, base = app_state(request), link_base(request)
    known, row = state.campaign_service.visits, state.campaign_service.store.row(campaign)
    token = state.links.join_token(campaign)
    visits = state.campaign_service.store.records.find(Visit, campaign=campaign)
    drawn = (prolific.Prolific.name, mturk.MechanicalTurk.name)
    return campaign_page(
        "platforms", request, row, problem=problem, done=done,
        study=prolific.Prolific().link(link_url(base, token)), hook=hook_url(base),
        unconfirmed=known.unconfirmed(campaign, prolific.Prolific.name) if row.config.pay_per_label > 0 else "",
        takes_events=bool(state.settings.prolific_secrets), visits=visits[::-1][:SHOWN], total=len(visits),
        question=mturk.external_question(link_url(base, token, "f")),
        others=[(one, one.link(link_url(base, token))) for one in PLATFORMS.values() if one.name not in drawn],
        frame_hosts=state.settings.frame_hosts, https=base.startswith("https://"), warning=link_warning(base),
    )  # fmt: skip


@router.post("/campaigns/{campaign}/platforms")
def take_export(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """Do what Prolific's webhook would have done, by a file that it exports."""
    file = form.get("file")
    data, name = (file.file, file.filename) if isinstance(file, UploadFile) else (BytesIO(), None)
    service.store.row(campaign)
    request.state.again = lambda problem: platforms_page(campaign, request, problem)
    changes = prolific.read_export(data, (name or "the file")[:100])
    drops = app_state(request).settings.drop_statuses
    effects = service.visits.statuses_changed(campaign, prolific.Prolific.name, changes, drops)
    done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
    return platforms_page(campaign, request, done=f"{counted(len(changes), 'submission')} read: {done}.")


@router.get("/campaigns/{campaign}/bonuses.csv")
def bonuses(
    campaign: CampaignId,
    request: Request,
    platform: PlatformName,
    reward: Annotated[float, Query(ge=0, le=100_000, allow_inf_nan=False)] = 0.0,
) -> Response:
    """Download what workers are owed beyond the reward."""
    return bonus_file(request, campaign, platform, reward)


@router.get("/campaigns/{campaign}/webhooks")
def webhooks_page(
    campaign: CampaignId, request: Request, problem: Told = "", done: Told = "", secret: Told = "", url: Told = ""
) -> Response:
    """The webhooks of a campaign, and a form for another one."""
    state = app_state(request)
    return campaign_page(
        "webhooks", request, state.campaign_service.store.row(campaign), status=422 if problem and url else 200,
        problem=problem, done=done, secret=secret, url=url, types=TYPES, webhooks=state.webhooks.of(campaign),
        now=state.campaign_service.clock(),
    )  # fmt: skip


@router.post("/campaigns/{campaign}/webhooks")
def change_webhooks(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Add a webhook, or try, enable or remove one; a secret is shown on the page that follows, and nowhere else."""
    state, given = app_state(request), str(form.get("url", ""))
    hooks, settings, store = state.webhooks, state.settings, state.campaign_service.store
    store.row(campaign)
    request.state.again = lambda problem: webhooks_page(campaign, request, problem, url=given)
    told: dict[str, Any] = {}
    if "test" in form:
        webhook = hooks.get(campaign, str(form["test"]))
        reply = from_thread.run(send_trial, store, settings, webhook, hooks.trial(webhook))
        said = f"{'The trial arrived' if reply.ok else 'The trial failed'}. {webhook.url}: {reply.said}."
        told = {"done" if reply.ok else "problem": said}
    elif "url" in form:
        types = [str(one) for one in form.getlist("types")]
        if not types:
            raise InputError("no event is ticked.", "Tick what the address is to be told.")
        made = hooks.add(campaign, checked_address(given.strip(), settings), types, "from_start" in form)
        done = f"{made.url} is told what happens from now on."
        told = {"done": done, "secret": WebhookSender(store, settings).secret_of(made)}
    elif "remove" in form:
        hooks.remove(campaign, str(form["remove"]))
    elif "enable" in form:
        hooks.enable(campaign, str(form["enable"]))
    else:
        raise InputError(*NO_ACTION)
    if told:
        return webhooks_page(campaign, request, **told)
    return RedirectResponse(f"/campaigns/{campaign}/webhooks", 303)
