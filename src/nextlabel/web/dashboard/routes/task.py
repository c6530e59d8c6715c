"""One task with its labels by worker."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from nextlabel.campaign.results import belief, label_counts, results_of
from nextlabel.campaigns import service
from nextlabel.errors import NotFoundError
from nextlabel.service.auth import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.formatting import title_of
from nextlabel.web.dashboard.routes.campaign import LARGEST
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/tasks/{number}")
def task_page(campaign: str, number: Annotated[int, Path(ge=0, le=LARGEST)], request: Request) -> Response:
    """The task, the current belief, and the labels by worker."""
    dashboard, id = dashboard_state(request), campaign_id(campaign)
    row = dashboard.store.row(id)
    task = dashboard.overview.tasks_numbered(id, [number]).get(number)
    if task is None:
        raise NotFoundError(f"the campaign has no task number {number}.", "Go back to the campaign.")
    classes = dashboard.classes(row)
    crowd = dashboard.app.campaign_service.crowd(row, service.READ_PATIENCE_S)
    beliefs = None if crowd is None else crowd.beliefs
    if beliefs is None:
        truth, counts = belief(row.config, classes[task.class_number], task.labels, task.node)
    else:
        truth, counts = beliefs[number], label_counts(row.config, task.labels, task.node)
    return page(
        "dashboard/task.html",
        title=title_of(row),
        row=row,
        task=task,
        fields=fields_of(task.payload),
        result=results_of(row, classes, [task], beliefs)[0],
        beliefs=list(zip(row.config.labels, (float(p) for p in truth), counts, strict=True)),
        leases=dashboard.store.leases(id, [number]),
    )


def fields_of(payload: Any) -> list[tuple[str, str]]:
    """A payload as pairs of name and text."""
    table = payload if isinstance(payload, dict) else {"": payload}
    return [
        (str(name), value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False))
        for name, value in table.items()
    ]
