"""What the dashboard keeps between requests, put together once by ``mount_dashboard``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from starlette.requests import Request

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.scoring import FEW_CLASSES
from nextlabel.service.services import Services
from nextlabel.store.overview import overview_of
from nextlabel.web.dashboard.background import Background
from nextlabel.web.dashboard.curves import Curves
from nextlabel.web.dashboard.drafts import Drafts
from nextlabel.web.dashboard.figures import Figures, figures
from nextlabel.web.dashboard.forecasts import FAILED, Heading, make_heading
from nextlabel.web.dashboard.outlook import Outlook, make_outlook
from nextlabel.web.dashboard.team import MOST_WORKERS, Pace, make_team

#: Threads for what takes long; campaigns whose priors are remembered.
THREADS, MOST_CLASSES_KEPT = 2, 64
#: Seconds after which agreement is worked out again at the earliest.
TEAM_S = 15.0


class Room:
    """Reads, and answers that are worked out in the background."""

    def __init__(self, services: Services) -> None:
        self.services, self.store = services, services.office.store
        self.overview = overview_of(self.store)
        pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dashboard")
        self.curves, self.drafts = Curves(pool), Drafts(services.links)
        self._figures: Background[Figures | None] = Background(pool, self._work_figures, None, 0.0)
        self._outlook: Background[Outlook | None] = Background(pool, self._work_outlook, None)
        self._heading: Background[Heading] = Background(pool, self._work_heading, FAILED, 2.0)
        self._team: Background[dict[str, Pace]] = Background(pool, self._work_team, {}, TEAM_S)
        self._classes: dict[str, Sequence[Prior]] = {}
        self._lock = Lock()

    def now(self) -> float:
        """Seconds since 1970."""
        return self.services.office.clock()

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

    def figures(self, row: CampaignRow) -> Figures | None:
        """Worked out at once where that is quick; else the last ones, None at first."""
        if row.classes <= FEW_CLASSES:
            return self._figures.now(row.id, row.seq).value
        known = self._figures.look(row.id, row.seq)
        return None if known is None else known.value

    def outlook(self, row: CampaignRow) -> Outlook | None:
        """The last one, None while the first is worked out; with a deadline it ages."""
        known = self._outlook.look(row.id, row.seq, None if row.deadline is None else 60.0)
        return None if known is None else known.value

    def heading(self, row: CampaignRow) -> Heading | None:
        """The last forecast, None while the first is worked out."""
        last = self._heading.look(row.id, row.seq)
        if last is not None and last.value.pending:
            self._heading.look(row.id, -1)  # tables come without an event
        return None if last is None else last.value

    def team(self, row: CampaignRow) -> dict[str, Pace] | None:
        """Pace and agreement of workers, None while they are worked out."""
        known = self._team.look(row.id, row.seq)
        return None if known is None else known.value

    def version(self, row: CampaignRow) -> str:
        """Changes with whatever was worked out in the background."""
        looks = (
            self._figures.look(row.id, row.seq) if row.classes > FEW_CLASSES else None,
            self._outlook.look(row.id, row.seq),
            self._heading.look(row.id, row.seq),
            self._team.look(row.id, row.seq),
        )
        return ".".join("0" if one is None else str(one.version) for one in looks)

    def _work_figures(self, id: str) -> Figures | None:
        row = self.store.row(id)
        return figures(row.config, self.classes(row), self.store.groups(id))

    def _work_outlook(self, id: str) -> Outlook | None:
        row, groups = self.store.row(id), self.store.groups(id)
        return make_outlook(row, self.classes(row), groups, self.now())

    def _work_heading(self, id: str) -> Heading:
        row, groups = self.store.row(id), self.store.groups(id)
        return make_heading(row, self.classes(row), groups, self.now(), self.services.office.desk, self.store)

    def _work_team(self, id: str) -> dict[str, Pace]:
        row = self.store.row(id)
        return make_team(row, self.classes(row), self.store.workers(id, MOST_WORKERS), self.overview)


def room_of(request: Request) -> Room:
    """The room of the app that a request came to."""
    room: Room = request.app.state.dashboard
    return room
