"""What the dashboard keeps between requests, created once by ``mount_dashboard``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from starlette.requests import Request

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.imports import ACTIVE
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.scoring import FEW_CLASSES
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.import_status import ImportStatus, imports_of
from nextlabel.campaigns.overview import overview_of
from nextlabel.service.app_state import AppState
from nextlabel.web.dashboard.background import BackgroundCache
from nextlabel.web.dashboard.budget_curve import Curves
from nextlabel.web.dashboard.forecast_view import FAILED, ForecastView, make_forecast_view
from nextlabel.web.dashboard.state_summary import StateSummary, summarise_crowd, summarise_states
from nextlabel.web.dashboard.uploads import UploadedFiles
from nextlabel.web.dashboard.worker_summaries import (
    MOST_WORKERS,
    WorkerSummary,
    summarise_workers,
    with_agreement,
    with_skills,
)

#: Threads for slow computations; campaigns whose priors are cached.
THREADS, CACHED_CAMPAIGNS = 2, 64
#: Least seconds between two computations of forecasts and of worker summaries.
FORECAST_INTERVAL_S, WORKERS_INTERVAL_S = 2.0, 15.0
#: Seconds for which an import that failed is shown.
FAILURE_SHOWN_S = 600.0


class DashboardState:
    """Reads from the store, and values that are computed in the background."""

    def __init__(self, app: AppState) -> None:
        self.app, self.store = app, app.campaign_service.store
        self.overview = overview_of(self.store)
        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dashboard")
        self.curves, self.uploads = Curves(pool), UploadedFiles(app.links)
        self._summaries: BackgroundCache[StateSummary | None] = BackgroundCache(pool, self._compute_summary, None, 0.0)
        self._forecasts: BackgroundCache[ForecastView] = BackgroundCache(
            pool, self._compute_forecast, FAILED, FORECAST_INTERVAL_S
        )
        self._workers: BackgroundCache[dict[str, WorkerSummary]] = BackgroundCache(
            pool, self._compute_workers, {}, WORKERS_INTERVAL_S
        )
        self._classes: dict[str, Sequence[Prior]] = {}
        self._lock = Lock()

    def now(self) -> float:
        """Seconds since 1970."""
        return self.app.campaign_service.clock()

    def classes(self, row: CampaignRow) -> Sequence[Prior]:
        """The priors of a campaign's tasks; new ones may be added, but none changes."""
        with self._lock:
            known = self._classes.get(row.id)
        if known is None or len(known) < row.classes:
            known = tuple(self.store.classes(row.id))
            with self._lock:
                if len(self._classes) >= CACHED_CAMPAIGNS:
                    self._classes.clear()
                self._classes[row.id] = known
        return known

    def summary(self, row: CampaignRow) -> StateSummary | None:
        """The current summary if it is quick to compute; else the latest, None while the first is computed."""
        if _is_quick(row):
            return self._summaries.current(row.id, row.seq).value
        known = self._summaries.latest(row.id, row.seq)
        return None if known is None else known.value

    def certificate(self, row: CampaignRow) -> Certificate | None:
        """The last certificate, None while the first is computed."""
        return self.app.campaign_service.certificates.look(row.id)

    def forecast(self, row: CampaignRow) -> ForecastView | None:
        """The latest forecast, None while the first is computed."""
        known = self._forecasts.latest(row.id, row.seq)
        if known is not None and known.value.pending:
            self._forecasts.latest(row.id, -1)  # tables become ready without an event
        return None if known is None else known.value

    def worker_summaries(self, row: CampaignRow) -> dict[str, WorkerSummary] | None:
        """Speed and agreement by worker, None while they are computed."""
        known = self._workers.latest(row.id, row.seq)
        return None if known is None else known.value

    def imports(self, row: CampaignRow) -> list[ImportStatus]:
        """The import that is under way, or the last one if it failed a short time ago."""
        last = imports_of(self.store, row.id, 1)
        recent = [one for one in last if one.updated_at > self.store.clock() - FAILURE_SHOWN_S]
        return [one for one in last if one.state in ACTIVE] or [one for one in recent if one.state == "failed"]

    def version(self, row: CampaignRow) -> str:
        """A text that changes with every value computed in the background."""
        values = (
            None if _is_quick(row) else self._summaries.latest(row.id, row.seq),
            self._forecasts.latest(row.id, row.seq),
            self._workers.latest(row.id, row.seq),
        )
        certificate = self.certificate(row)
        proved = "0" if certificate is None else f"{certificate.seq}-{certificate.at}"
        imported = "".join(f"{one.state}{one.rows}" for one in self.imports(row))
        return ".".join([proved, imported, *("0" if value is None else str(value.version) for value in values)])

    def _compute_summary(self, id: str) -> StateSummary | None:
        row = self.store.row(id)
        crowd = self.app.campaign_service.crowd(row)
        if crowd is not None:
            return summarise_crowd(crowd)
        return summarise_states(row.config, self.classes(row), self.store.groups(id))

    def _compute_forecast(self, id: str) -> ForecastView:
        row, groups = self.store.row(id), self.store.groups(id)
        return make_forecast_view(
            row, self.classes(row), groups, self.now(), self.app.campaign_service.table_cache, self.store
        )

    def _compute_workers(self, id: str) -> dict[str, WorkerSummary]:
        row = self.store.row(id)
        found = summarise_workers(row, self.classes(row), self.store.workers(id, MOST_WORKERS), self.overview)
        crowd = self.app.campaign_service.crowd(row)
        found = found if crowd is None else with_agreement(found, crowd)
        return with_skills(found, self.app.campaign_service.worker_reports.skills(id))


def _is_quick(row: CampaignRow) -> bool:
    """Whether the tasks are summed up in milliseconds."""
    return row.classes <= FEW_CLASSES and not row.config.knows_workers


def dashboard_state(request: Request) -> DashboardState:
    """The dashboard's state in the app that a request came to."""
    dashboard: DashboardState = request.app.state.dashboard
    return dashboard
