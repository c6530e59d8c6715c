"""Whether the service is well, and its numbers."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import Response

from nextlabel.service.openapi import problems
from nextlabel.service.response_models import Health
from nextlabel.service.services import services_of
from nextlabel.version import __version__

router = APIRouter(tags=["health"])
#: Prometheus' text format.
TEXT = "text/plain; version=0.0.4; charset=utf-8"
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
    **problems(),
}


@router.get("/healthz", responses=problems())
async def healthz(request: Request) -> Health:
    """Answers if the store does."""
    await to_thread.run_sync(services_of(request).campaign_service.store.ping)
    return Health(status="ok", version=__version__)


@router.get("/metrics", responses=_METRICS, response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters and gauges for Prometheus."""
    return Response(await to_thread.run_sync(services_of(request).tally.page), headers={"content-type": TEXT})
