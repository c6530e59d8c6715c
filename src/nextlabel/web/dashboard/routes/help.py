"""The page that says what the numbers mean."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.numbers import NUMBERS
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/help/numbers")
async def numbers_page() -> Response:
    """Every number of the dashboard in a requester's words."""
    return page("dashboard/numbers.html", numbers=NUMBERS)
