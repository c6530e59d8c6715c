"""The OpenAPI document holds: requests made from it, good ones and bad ones, get answers that it names."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkdtemp

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import crowd_compiled
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.service.access import first_token
from nextlabel.service.app import create_app
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.sql import open_store
from service_fixtures import QUICK

SERVICE = CampaignService(open_store(f"sqlite:///{Path(mkdtemp()) / 'labels.db'}"))
TOKEN = first_token(SERVICE.store)
SERVICE.create(CampaignSettings.from_dict(QUICK), "demo")
SERVICE.add_tasks("demo", [{"id": f"t{k}", "text": "x"} for k in range(50)])
LEASE = SERVICE["demo"].ask("ann")
assert isinstance(LEASE, Lease)
THERE = {"campaign": "demo", "lease": LEASE.id}
SERVICE.create(CampaignSettings.from_dict(QUICK), "to_be_deleted")

CONFIG = schemathesis.Config.from_dict(
    {
        "request-timeout": 120,
        "auth": {"openapi": {"token": {"bearer": TOKEN}}},
        # What settings mean goes beyond their schema: names that differ, a policy that there is, a day of the calendar.
        "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "409", "422"]}},
    }
)
#: Schemathesis tries many wrong tokens, which the service would soon refuse with 429.
SETTINGS = ServiceSettings(failed_sign_ins_per_minute=1_000_000)
schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", create_app(SERVICE, SETTINGS), config=CONFIG)


@schemathesis.serializer("application/x-ndjson", "text/csv")
def as_text(context: schemathesis.SerializationContext, value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """While kernels are compiled for the first time the service answers 503, which Schemathesis takes for a fault."""
    crowd_compiled().result()
    SERVICE.worker_reports.of("demo")
    SERVICE["demo"].certificate()


@schema.parametrize()
@settings(
    max_examples=int(os.environ.get("NEXTLABEL_EXAMPLES", "20")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_those_of_the_document(case: schemathesis.Case) -> None:
    for name, value in THERE.items():  # made-up names are never there; every second case gets one that is
        if len(str(case.path_parameters.get(name, ""))) % 2:
            case.path_parameters[name] = "to_be_deleted" if case.method == "DELETE" else value
    case.call_and_validate()
