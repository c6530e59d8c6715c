"""A campaign service on each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nextlabel.application.service import CampaignService
from stores import DATABASES, Clock, opened, service_of_store


@pytest.fixture(params=DATABASES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        found = service_of_store(store, Clock())
        yield found
        found.table_cache.close()
