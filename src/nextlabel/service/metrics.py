"""Counters of the service and gauges of its campaigns, for Prometheus.

Counters belong to this process, or to all processes together if ``PROMETHEUS_MULTIPROC_DIR`` is set (``service.run``
sets it). Gauges are read from the store on request.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from nextlabel.campaign.rows import CampaignRow

disable_created_metrics()  # type: ignore[no-untyped-call] # they would add a second series to every counter
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60)
SERIES = 4096
METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
#: Gauges of a campaign: attribute of its row, and description.
GAUGES = {
    "tasks": "Tasks",
    "full": "Tasks that can have no more labels",
    "budget": "Labels that may be bought",
    "spent": "Labels bought",
    "reserved": "Leases held by workers",
    "left": "Labels that can still be leased",
    "given": "Leases granted so far",
    "late": "Labels that arrived after their lease had expired",
    "expired": "Leases that expired",
    "released": "Leases released by workers",
    "paused": "Whether the campaign is paused",
}


class Metrics:
    """The counters of this process."""

    def __init__(self) -> None:
        self._shared = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        self._registry = CollectorRegistry()
        own = self._registry
        self._requests = Counter("nextlabel_requests", "Requests answered", ("method", "route", "status"), registry=own)
        self._seconds = Histogram(
            "nextlabel_request_seconds",
            "Seconds to respond",
            ("method", "route"),
            registry=own,
            buckets=SECONDS,
        )
        #: What a request is counted by: to find it anew costs more than to count.
        self._series = lru_cache(SERIES)(lambda *by: (self._requests.labels(*by), self._seconds.labels(*by[:2])))
        #: Asks by outcome (``leased``, or why there was no task), labels told, and limits that were exceeded.
        self.asks = Counter("nextlabel_asks", "Asks by outcome", ("outcome",), registry=own)
        self.tells = Counter("nextlabel_tells", "Labels told, by status", ("status",), registry=own)
        self.refusals = Counter("nextlabel_limits_exceeded", "Limits that were exceeded", ("limit",), registry=own)
        self.commits = Histogram(
            "nextlabel_commands_per_commit",
            "Commands committed together",
            registry=own,
            buckets=(1, 2, 4, 8, 16, 32, 64),
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        known = method if method in METHODS else "other"  # others could be any number of texts
        requests, duration = self._series(known, route, status)
        requests.inc()
        duration.observe(seconds)

    def count_limit(self, limit: str) -> None:
        """A limit was exceeded (``service.limits``, ``service.connections``)."""
        self.refusals.labels(limit).inc()

    def page(self, rows: list[CampaignRow]) -> bytes:
        """All metrics in Prometheus' text format; of campaigns, those given."""
        if self._shared:
            together = CollectorRegistry()
            MultiProcessCollector(together)  # type: ignore[no-untyped-call]
            counters = generate_latest(together)
        else:
            counters = generate_latest(self._registry)
        now = CollectorRegistry()
        now.register(_Campaigns(rows))
        return counters + generate_latest(now)


class _Campaigns(Collector):
    """The gauges of all campaigns."""

    def __init__(self, rows: list[CampaignRow]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        """One metric family per attribute."""
        for name, text in GAUGES.items():
            family = GaugeMetricFamily(f"nextlabel_campaign_{name}", text, labels=["campaign"])
            for row in self._rows:
                family.add_metric([row.id], float(getattr(row, name)))
            yield family
