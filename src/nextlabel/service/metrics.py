"""Counters of the service and gauges of its campaigns, for Prometheus.

Counters are of this process, or of all processes together where ``PROMETHEUS_MULTIPROC_DIR`` is set (``service.run``
sets it). Gauges are read from the store when they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from nextlabel.campaign.ledger import Store
from nextlabel.campaign.rows import CampaignRow

disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter that nobody reads
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
#: Gauges of a campaign: the row's attribute and what it is.
GAUGES = {
    "tasks": "Tasks",
    "full": "Tasks that can have no more labels",
    "budget": "Labels that may be bought",
    "spent": "Labels bought",
    "reserved": "Leases that are out",
    "left": "Labels that can still be given out",
    "given": "Leases ever given out",
    "late": "Labels that came after their lease",
    "expired": "Leases that expired",
    "released": "Leases passed on",
    "paused": "Whether the campaign is paused",
}


class Metrics:
    """What this process counts."""

    def __init__(self, store: Store) -> None:
        self._shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        self._registry = CollectorRegistry()
        self._store = store
        own = self._registry
        self._requests = Counter("nextlabel_requests", "Requests answered", ("method", "route", "status"), registry=own)
        self._seconds = Histogram(
            "nextlabel_request_seconds", "Time to the answer", ("method", "route"), registry=own, buckets=SECONDS
        )
        self._asks = Counter("nextlabel_asks", "Asks by what came of them", ("outcome",), registry=own)
        self._tells = Counter("nextlabel_tells", "Labels told by what became of them", ("status",), registry=own)
        self._commits = Histogram(
            "nextlabel_commands_per_commit",
            "Commands committed together",
            registry=own,
            buckets=(1, 2, 4, 8, 16, 32, 64),
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        method = method if method in METHODS else "other"
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)

    def asked(self, outcome: str) -> None:
        """A worker asked and got a lease (``leased``) or a reason."""
        self._asks.labels(outcome).inc()

    def told(self, status: str) -> None:
        """A label came in."""
        self._tells.labels(status).inc()

    def committed(self, commands: int) -> None:
        """Commands were made durable together."""
        self._commits.observe(commands)

    def page(self) -> bytes:
        """All of it in Prometheus' text format."""
        if self._shared:
            together = CollectorRegistry()
            MultiProcessCollector(together)  # type: ignore[no-untyped-call]
            counters = generate_latest(together)
        else:
            counters = generate_latest(self._registry)
        now = CollectorRegistry()
        now.register(_Campaigns(self._store.campaigns()))
        return counters + generate_latest(now)


class _Campaigns(Collector):
    """Gauges of all campaigns as they stand."""

    def __init__(self, rows: list[CampaignRow]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        """One family an attribute."""
        for name, text in GAUGES.items():
            family = GaugeMetricFamily(f"nextlabel_campaign_{name}", text, labels=["campaign"])
            for row in self._rows:
                family.add_metric([row.id], float(getattr(row, name)))
            yield family
