"""What the dashboard keeps between requests, put together once by ``mount_dashboard``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from starlette.requests import Request

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.scoring import FEW_CLASSES
from nextlabel.campaigns.certificate import Certificate
from nextlabel.campaigns.overview import overview_of
from nextlabel.service.app_state import AppState
from nextlabel.web.dashboard.background import Background
from nextlabel.web.dashboard.budget_curve import Curves
from nextlabel.web.dashboard.drafts import UploadedFiles
from nextlabel.web.dashboard.forecast_view import FAILED, ForecastView, make_forecast_view
from nextlabel.web.dashboard.state_summary import StateSummary, figures
from nextlabel.web.dashboard.worker_summaries import MOST_WORKERS, WorkerSummary, summarise_workers

#: Threads for what takes long; campaigns whose priors are remembered.
THREADS, MOST_CLASSES_KEPT = 2, 64
#: Seconds after which agreement is worked out again at the earliest.
TEAM_S = 15.0


class DashboardState:
    """Reads, and answers that are worked out in the background."""

    def __init__(self, services: AppState) -> None:
        self.services, self.store = services, services.campaign_service.store
        self.overview = overview_of(self.store)
        pool = self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dashboard")
        self.curves, self.drafts = Curves(pool), UploadedFiles(services.links)
        self._figures: Background[StateSummary | None] = Background(pool, self._work_figures, None, 0.0)
        self._heading: Background[ForecastView] = Background(pool, self._work_heading, FAILED, 2.0)
        self._team: Background[dict[str, WorkerSummary]] = Background(pool, self._work_team, {}, TEAM_S)
        self._classes: dict[str, Sequence[Prior]] = {}
        self._lock = Lock()

    def now(self) -> float:
        """Seconds since 1970."""
        return self.services.campaign_service.clock()

    def classes(self, row: CampaignRow) -> Sequence[Prior]:
        """Priors of a campaign's tasks; more may come, none changes."""
        with self._lock:
            known = self._classes.get(row.id)
        if known is None or len(known) < row.classes:
            known = tuple(self.store.classes(row.id))
            with self._lock:
                if len(self._classes) >= MOST_CLASSES_KEPT:
                    self._classes.clear()
                self._classes[row.id] = known
        return known

    def figures(self, row: CampaignRow) -> StateSummary | None:
        """Worked out at once where that is quick; else the last ones, None at first."""
        if row.classes <= FEW_CLASSES:
            return self._figures.now(row.id, row.seq).value
        known = self._figures.look(row.id, row.seq)
        return None if known is None else known.value

    def certificate(self, row: CampaignRow) -> Certificate | None:
        """The last certificate, None while the first is computed."""
        return self.services.campaign_service.certificates.look(row.id, self._pool)

    def heading(self, row: CampaignRow) -> ForecastView | None:
        """The last forecast, None while the first is worked out."""
        last = self._heading.look(row.id, row.seq)
        if last is not None and last.value.pending:
            self._heading.look(row.id, -1)  # tables come without an event
        return None if last is None else last.value

    def team(self, row: CampaignRow) -> dict[str, WorkerSummary] | None:
        """Pace and agreement of workers, None while they are worked out."""
        known = self._team.look(row.id, row.seq)
        return None if known is None else known.value

    def version(self, row: CampaignRow) -> str:
        """Changes with whatever was worked out in the background."""
        looks = (
            self._figures.look(row.id, row.seq) if row.classes > FEW_CLASSES else None,
            self._heading.look(row.id, row.seq),
            self._team.look(row.id, row.seq),
        )
        certificate = self.certificate(row)
        proved = "0" if certificate is None else f"{certificate.seq}-{certificate.at:.0f}"
        return ".".join([proved, *("0" if one is None else str(one.version) for one in looks)])

    def _work_figures(self, id: str) -> StateSummary | None:
        row = self.store.row(id)
        return figures(row.config, self.classes(row), self.store.groups(id))

    def _work_heading(self, id: str) -> ForecastView:
        row, groups = self.store.row(id), self.store.groups(id)
        return make_forecast_view(
            row, self.classes(row), groups, self.now(), self.services.campaign_service.table_cache, self.store
        )

    def _work_team(self, id: str) -> dict[str, WorkerSummary]:
        row = self.store.row(id)
        return summarise_workers(row, self.classes(row), self.store.workers(id, MOST_WORKERS), self.overview)


def dashboard_state(request: Request) -> DashboardState:
    """The room of the app that a request came to."""
    room: DashboardState = request.app.state.dashboard
    return room
