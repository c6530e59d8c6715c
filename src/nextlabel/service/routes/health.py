"""Health and metrics."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from nextlabel.service.app_state import app_state
from nextlabel.service.models import HealthResponse
from nextlabel.service.openapi import problems
from nextlabel.version import __version__

router = APIRouter(tags=["health"])
#: Prometheus' text format.
TEXT = "text/plain; version=0.0.4; charset=utf-8"
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **problems(),
}


@router.get("/healthz", responses=problems())
async def healthz(request: Request) -> HealthResponse:
    """Report that the service runs and its database answers."""
    await to_thread.run_sync(app_state(request).campaign_service.store.get, "health")
    return HealthResponse(status="ok", version=__version__)


@router.get("/metrics", responses=_METRICS, response_class=Response)
async def metrics(request: Request) -> Response:
    """Report counters and gauges for Prometheus."""
    return Response(await to_thread.run_sync(app_state(request).metrics.page), headers={"content-type": TEXT})
