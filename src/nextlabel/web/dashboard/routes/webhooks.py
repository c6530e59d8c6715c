"""Webhooks: addresses that are told what happens in a campaign."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.webhooks import TYPES
from nextlabel.errors import InputError, NextlabelError, NotFoundError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.webhooks import WebhookSender, checked_url, send_trial
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/webhooks")
def webhooks_page(campaign: CampaignId, request: Request) -> Response:
    """The webhooks of a campaign, and a form for another one."""
    return _page(request, campaign)


@router.post("/campaigns/{campaign}/webhooks")
async def change_webhooks(campaign: CampaignId, request: Request) -> Response:
    """Add a webhook, or try, enable or remove one; a secret is shown on the page that follows, and nowhere else."""
    id, form = campaign, await request.form()
    state = app_state(request)
    await to_thread.run_sync(state.campaign_service.store.row, id)
    try:
        if "test" in form:
            webhook = await to_thread.run_sync(state.webhooks.get, id, str(form["test"]))
            message = state.webhooks.trial(webhook)
            reply = await send_trial(state.campaign_service.store, state.settings, webhook, message)
            said = f"{webhook.url}: {reply.said}."
            done, problem = (f"The trial arrived. {said}", "") if reply.ok else ("", f"The trial failed. {said}")
            return await to_thread.run_sync(_page, request, id, problem, done)
        return await to_thread.run_sync(_change, request, id, form)
    except NotFoundError:
        raise
    except NextlabelError as error:
        problem = f"{sentence(error.message)} {error.hint}"
        return await to_thread.run_sync(_page, request, id, problem, "", "", str(form.get("url", "")))


def _change(request: Request, id: str, form: FormData) -> Response:
    state = app_state(request)
    if "remove" in form:
        state.webhooks.remove(id, str(form["remove"]))
    elif "enable" in form:
        state.webhooks.enable(id, str(form["enable"]))
    elif "url" in form:
        types = [str(one) for one in form.getlist("types")]
        if not types:
            raise InputError("no event is ticked.", "Tick what the address is to be told.")
        url = str(checked_url(str(form["url"]).strip(), state.settings))
        made = state.webhooks.add(id, url, types, "from_start" in form)
        secret = WebhookSender(state.campaign_service.store, state.settings).secret_of(made.id)
        return _page(request, id, done=f"{made.url} is told what happens from now on.", secret=secret)
    else:
        raise InputError("the form does not say what to do.", "Use one of its buttons.")
    return RedirectResponse(f"/campaigns/{id}/webhooks", 303)


def _page(request: Request, id: str, problem: str = "", done: str = "", secret: str = "", url: str = "") -> Response:
    state = app_state(request)
    row = state.campaign_service.store.row(id)
    return page(
        "dashboard/webhooks.html", 422 if problem and url else 200, row=row, title=title_of(row), problem=problem,
        done=done, secret=secret, url=url, types=TYPES, webhooks=state.webhooks.of(id),
        now=state.campaign_service.clock(),
    )  # fmt: skip
