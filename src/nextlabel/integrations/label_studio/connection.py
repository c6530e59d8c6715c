"""Which campaign belongs to a project, made or joined when it is connected, and the webhook that tells of labels.

The store remembers the campaign of each project by the server's address and the project's number. Connecting
again changes nothing but what has changed.

Label Studio sends what it tells before it answers the annotator's browser, which then asks for the next task. It waits
a second by default (``WEBHOOK_TIMEOUT``), and what it cannot deliver is lost: the bridge reads it soon.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any, Final

from anyio import to_thread
from fastapi import FastAPI, Request
from starlette.responses import Response

from nextlabel.application.service import CampaignService
from nextlabel.campaign.rows import checked_campaign_id
from nextlabel.campaign.settings import ALL, CampaignSettings
from nextlabel.errors import ConflictError, InputError, NotFoundError, TokenError, UnavailableError
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.bridge import Annotators, Bridge, Control, control_of
from nextlabel.service.limits import address_of
from nextlabel.service.links import signing_key
from nextlabel.wording import listed

#: Annotations that Label Studio must allow for one task: it hands a task out until it has so many.
OVERLAP: Final = 1000

ACTIONS: Final = (
    "ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_DELETED", "TASKS_CREATED",
)  # fmt: skip
SECRET_HEADER: Final = "X-Nextlabel-Secret"


def read_project(studio: LabelStudio, project: int) -> dict[str, Any]:
    """The project; a server that cannot be reached is an error of whoever gave its address."""
    try:
        return studio.project(project)
    except UnavailableError as error:
        raise InputError(error.message, error.hint) from None


def connect(
    studio: LabelStudio,
    project: int,
    service: CampaignService,
    tell: Callable[[str], None],
    *,
    control: str | None = None,
    campaign: str | None = None,
    annotators: Collection[str] | None = None,
    **settings: Any,
) -> Bridge:
    """The bridge between a project and its campaign, which is made if there is none.

    ``settings`` of the campaign are as wished from now on: budget, policy, lease_seconds; None leaves one as it is.
    """
    found = read_project(studio, project)
    labels = control_of(found, control)
    wished = {name: value for name, value in settings.items() if value is not None}
    id = _campaign(studio, found, labels, service, campaign, wished)
    if found["maximum_annotations"] < OVERLAP:
        studio.change("projects", project, {"maximum_annotations": OVERLAP})
    return Bridge(
        studio, project, labels, service, id, Annotators(studio, project, found["organization"], annotators), tell
    )


def campaign_of_project(studio: LabelStudio, project: int, service: CampaignService) -> str:
    """The campaign that a project is connected with."""
    id = _connected(service, _setting(studio, project))
    if id is None:
        raise NotFoundError(
            f"project {project} at {studio.url} is not connected with a campaign of this database.",
            "Connect it first: nextlabel label-studio connect.",
        )
    return id


def register_webhook(bridge: Bridge, address: str, key_file: str = "") -> str:
    """Have Label Studio tell of annotations at ``address``; returns the secret that it sends along.

    It follows from the key file, so that a copy of the database does not have it.
    """
    key = signing_key(bridge.service.store, key_file)
    secret = hmac.digest(key, f"label-studio {bridge.campaign}".encode(), "sha256").hex()
    url = f"{address}{webhook_path(bridge.campaign)}"
    wanted = {
        "url": url, "send_payload": True, "send_for_all_actions": False, "is_active": True,
        "headers": {SECRET_HEADER: secret}, "actions": sorted(ACTIONS),
    }  # fmt: skip
    ours = [
        hook for hook in bridge.studio.webhooks(bridge.project) if hook["url"].endswith(webhook_path(bridge.campaign))
    ]
    if not ours:
        bridge.studio.create_webhook({**wanted, "project": bridge.project})
    elif {**ours[0], "actions": sorted(ours[0]["actions"])} != {**ours[0], **wanted}:
        bridge.studio.change("webhooks", ours[0]["id"], wanted)
    return secret


def webhook_path(campaign: str) -> str:
    """Where Label Studio tells of annotations."""
    return f"/label-studio/{campaign}/webhook"


def _setting(studio: LabelStudio, project: int) -> str:
    return f"label-studio:{studio.url}/projects/{project}"


def _connected(service: CampaignService, name: str) -> str | None:
    """The campaign that is kept under a name."""
    found = service.store.get(name)
    return None if found is None else found.decode()


def _campaign(
    studio: LabelStudio, project: dict[str, Any], control: Control, service: CampaignService, wanted: str | None,
    wished: dict[str, Any],
) -> str:  # fmt: skip
    """The project's campaign, which has its settings as wished from now on."""
    name = _setting(studio, project["id"])
    id = _connected(service, name)
    if wanted is not None and id is not None and wanted != id:
        raise ConflictError(
            f"project {project['id']} is connected with campaign {id!r}.", "Leave --campaign out, or use another --db."
        )
    if id is None:
        id = checked_campaign_id(wanted or f"label_studio_{project['id']}")
    row = next((row for row in service.store.campaigns() if row.id == id), None)
    if row is None:
        if "budget" not in wished:
            raise InputError("the campaign has no budget.", "Give --budget, the number of labels that may be bought.")
        settings = {
            "labels": control.labels, "name": str(project["title"])[:200], "lease_seconds": None, "show": [ALL],
            **wished,
        }  # fmt: skip
        config = CampaignSettings.from_dict(settings)
        service.store.put(name, id.encode())
        service.create(config, id)
        return id
    if _connected(service, name) is None:
        raise ConflictError(
            f"there is a campaign {id!r} that is not connected with project {project['id']} at {studio.url}.",
            "Choose an id for a new one with --campaign.",
        )
    if row.config.labels != control.labels:
        raise ConflictError(
            f"the choices of project {project['id']} are {listed(control.labels)}, and the campaign {id!r} has "
            f"{listed(row.config.labels)}.",
            "Put the choices back, or connect the project with another --db.",
        )
    if wished.pop("policy", row.config.policy) != row.config.policy:
        raise ConflictError(f"the campaign {id!r} has the policy {row.config.policy!r}.", "Leave --policy out.")
    there = {"budget": row.budget, "lease_seconds": row.config.lease_seconds}
    if changes := {key: value for key, value in wished.items() if there[key] != value}:
        service[id].change(**changes)
    return id


def mount_webhook(app: FastAPI, bridge: Bridge, secret: str, every_s: float) -> None:
    """Add the route, and have the bridge read what has changed while the service runs."""

    async def webhook(request: Request) -> Response:
        if not secrets.compare_digest(request.headers.get(SECRET_HEADER, "").encode(), secret.encode()):
            app.state.nextlabel.limits.failed_sign_in(address_of(request.scope))
            raise TokenError("the request does not have the secret of this connection.", "Connect the project again.")
        try:
            payload = await request.json()
            action = str(payload["action"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError("the body is not what Label Studio sends.", 'Give {"action": ...}.') from None
        try:
            await to_thread.run_sync(bridge.handle, action, payload)
        except (UnavailableError, NotFoundError):
            bridge.read_soon()  # nothing is lost: what has changed is read again
        return Response(status_code=204)

    app.add_api_route(webhook_path(bridge.campaign), webhook, methods=["POST"], include_in_schema=False)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with inner(app) as state:
            reading = Thread(target=bridge.run, args=(every_s,), name="label-studio", daemon=True)
            reading.start()
            try:
                yield state
            finally:
                bridge.stop()
                await to_thread.run_sync(reading.join)

    app.router.lifespan_context = lifespan
