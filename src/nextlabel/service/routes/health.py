"""Health and metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from nextlabel.application.table_cache import crowd_compiled
from nextlabel.errors import BusyError
from nextlabel.service.app_state import Service, app_state
from nextlabel.service.middleware import principal_of
from nextlabel.service.models import HealthResponse
from nextlabel.service.openapi import problems
from nextlabel.store.engine import check_room
from nextlabel.version import __version__

router = APIRouter(tags=["health"])
#: Prometheus' text format.
TEXT = "text/plain; version=0.0.4; charset=utf-8"
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **problems(),
}


@router.get("/healthz", responses=problems())
def healthz(service: Service) -> HealthResponse:
    """Report that the service runs and its database answers (liveness)."""
    service.store.get("health")
    check_room(service.store.engine)
    return HealthResponse(status="ok", version=__version__)


@router.get("/readyz", responses=problems())
def readyz(service: Service) -> HealthResponse:
    """Report that workers get tasks without waiting for compilation (readiness); 503 until then."""
    if not crowd_compiled().done():
        raise BusyError("the service is compiling.", "Ask again in a moment; nextlabel warm compiles ahead.")
    return healthz(service)


@router.get("/metrics", responses=_METRICS, response_class=Response)
def metrics(request: Request, service: Service) -> Response:
    """Report counters and gauges for Prometheus."""
    state, token = app_state(request), principal_of(request).token
    page = state.metrics.page(state.access.opened(token, service.store.campaigns()))
    return Response(page, headers={"content-type": TEXT})
