"""What the dashboard keeps between requests: uploaded files, and values that are computed in the background.

Values that take too long to compute within a request: computed in a thread while the last one is shown.

A value that took t seconds is computed again after PATIENCE t seconds at the earliest, and only if somebody looks; but
no value is left for longer than OLDEST_S seconds because it took long: the first one may have waited for the compiler.

Uploaded files from which campaigns are created: kept for a day in a private folder of this machine.

All processes on one machine share the folder. Behind a load balancer, all requests of one browser must go to the same
machine while a campaign is created.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import IO, Generic, TypeVar

import numpy as np
from starlette.requests import Request

from nextlabel.application.certificate import Certificate
from nextlabel.application.imports import ImportStatus, imports_of
from nextlabel.application.jobs import Jobs
from nextlabel.application.worker_reports import WorkerReport
from nextlabel.campaign.records import ACTIVE
from nextlabel.campaign.results import truths
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import ConflictError, FileFormatError, GoneError, NotFoundError
from nextlabel.files.tables import DelimitedTable, delimited
from nextlabel.files.tasks import check_names
from nextlabel.model.prior import Prior
from nextlabel.service.app_state import AppState
from nextlabel.service.links import LinkSigner
from nextlabel.web.dashboard.forecasts import FAILED, Curves, ForecastView, make_forecast_view
from nextlabel.web.dashboard.summaries import StateSummary, summarise

#: Threads for slow computations; campaigns whose priors are cached; workers that are shown; tasks that are summed up at
#: once.
THREADS, CACHED_CAMPAIGNS, MOST_WORKERS, QUICK = 2, 64, 50, 20_000

#: Least seconds between two computations of forecasts and of worker summaries.
FORECAST_INTERVAL_S, WORKERS_INTERVAL_S = 2.0, 15.0

#: Seconds for which an import that failed is shown.
FAILURE_SHOWN_S = 600.0
T = TypeVar("T")
PATIENCE, OLDEST_S = 5.0, 60.0
_log = logging.getLogger("nextlabel.web")
MAX_AGE_S = 86_400

#: Rows that are shown before a campaign is created.
PREVIEW = 8
_ID = re.compile(r"[0-9a-f]{32}")


class DashboardState:
    """Reads from the store, and values that are computed in the background."""

    def __init__(self, app: AppState) -> None:
        self.app, self.store = app, app.campaign_service.store
        jobs = Jobs("dashboard", THREADS)
        self.curves, self.uploads = Curves(jobs), UploadedFiles(app.links)
        self._summaries: BackgroundCache[StateSummary | None] = BackgroundCache(jobs, self._compute_summary, None, 0.0)
        self._forecasts: BackgroundCache[ForecastView] = BackgroundCache(
            jobs, self._compute_forecast, FAILED, FORECAST_INTERVAL_S
        )
        self._workers: BackgroundCache[dict[str, tuple[WorkerReport, float | None]]] = BackgroundCache(
            jobs, self._compute_workers, {}, WORKERS_INTERVAL_S
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

    def workers(self, row: CampaignRow) -> dict[str, tuple[WorkerReport, float | None]] | None:
        """Reports on workers and their median seconds, None while they are computed."""
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
        service, row = self.app.campaign_service, self.store.row(id)
        if (crowd := service.crowd(row)) is None:
            tasks, *states = service.run(id, lambda commands: commands.state.states())
            row = self.store.row(id)
            beliefs = truths(row.config, self.classes(row), *states)
            return summarise(row.config.answer_type, tasks, states[-1], beliefs)
        found = summarise(crowd.kind, np.arange(len(crowd.told)), crowd.told, crowd.beliefs)
        if found is None:
            return None
        return replace(found, accuracy=crowd.expected_accuracy, low=crowd.expected.low, high=crowd.expected.high)

    def _compute_forecast(self, id: str) -> ForecastView:
        row, groups = self.store.row(id), self.app.campaign_service.groups(id)
        return make_forecast_view(
            row, self.classes(row), groups, self.now(), self.app.campaign_service.table_cache, self.store
        )

    def _compute_workers(self, id: str) -> dict[str, tuple[WorkerReport, float | None]]:
        service = self.app.campaign_service
        medians = service.run(id, lambda commands: commands.state.median_seconds())
        return {one.worker: (one, medians.get(one.worker)) for one in service.worker_reports.of(id, MOST_WORKERS)}


def _is_quick(row: CampaignRow) -> bool:
    """Whether the tasks are summed up in milliseconds."""
    return row.tasks <= QUICK and not row.config.knows_workers


def dashboard_state(request: Request) -> DashboardState:
    """The dashboard's state in the app that a request came to."""
    dashboard: DashboardState = request.app.state.dashboard
    return dashboard


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[T]):
    """A value for a campaign, computed after event ``seq``; ``version`` counts different values."""

    value: T
    seq: int
    version: int
    at: float
    seconds: float


class BackgroundCache(Generic[T]):
    """The latest value of one kind for each campaign; ``compute`` takes the campaign's id."""

    def __init__(self, jobs: Jobs, compute: Callable[[str], T], on_error: T, interval_s: float = 1.0) -> None:
        self._jobs, self._compute, self._on_error, self._interval_s = jobs, compute, on_error, interval_s
        self._known: dict[str, CachedValue[T]] = {}
        self._lock = Lock()

    def latest(self, id: str, seq: int) -> CachedValue[T] | None:
        """The latest value; if there were events since, a new one is computed in the background."""
        known, now = self._known.get(id), time.monotonic()
        rests = known is not None and now - known.at <= max(self._interval_s, min(PATIENCE * known.seconds, OLDEST_S))
        if not rests and (known is None or known.seq != seq):
            self._jobs.submit((self, id), lambda _: self._run(id, seq))
        return known

    def current(self, id: str, seq: int) -> CachedValue[T]:
        """The value after event ``seq``, computed at once if need be."""
        known = self._known.get(id)
        if known is None or known.seq != seq:
            self._run(id, seq)
            known = self._known[id]
        return known

    def _run(self, id: str, seq: int) -> None:
        begin = time.monotonic()
        try:
            value = self._compute(id)
        except GoneError:  # deleted meanwhile: nobody will look
            value = self._on_error
        except Exception as error:
            _log.warning("a value of campaign %s could not be computed", id, exc_info=error)
            value = self._on_error
        end = time.monotonic()
        with self._lock:
            before = self._known.get(id)
            version = 1 if before is None else before.version + (before.value != value)
            self._known[id] = CachedValue(value, seq, version, end, end - begin)


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file that has been read once: its columns, its number of rows without the header, the first rows, and notes."""

    id: str
    name: str
    columns: list[str]
    rows: int
    first: list[list[str]]
    notes: list[str]


class UploadedFiles:
    """Uploaded files, by ids that cannot be guessed."""

    def __init__(self, links: LinkSigner) -> None:
        mark = hashlib.sha256(links.sign("draft", []).encode()).hexdigest()[:16]
        self._folder = Path(tempfile.gettempdir()) / f"nextlabel-{mark}"

    def keep(self, file: IO[bytes], name: str) -> UploadedFile:
        """Read and keep a file; raises FileFormatError if it is not a table."""
        file = delimited(file, name)
        table = DelimitedTable(file, "the file")
        check_names(table.columns, "the file")
        first: list[list[str]] = []
        for batch in table.batches():
            first += [list(cells) for cells in islice(zip(*batch.columns, strict=True), PREVIEW - len(first))]
        report = table.report
        if report.rows == 0:
            raise FileFormatError("the file has a header and no rows.", "Add one row per task.")
        upload = UploadedFile(
            secrets.token_hex(16), name[:200], table.columns, report.rows, first, [f"{report.form}.", *report.notes()]
        )
        folder = self._prepared_folder()
        file.seek(0)
        with (folder / f"{upload.id}.csv").open("xb") as copy:
            shutil.copyfileobj(file, copy)
        (folder / f"{upload.id}.json").write_text(json.dumps(asdict(upload)), encoding="utf-8")
        return upload

    def find(self, id: str) -> UploadedFile:
        """A file that was kept."""
        path = self._path(id, "json")
        return UploadedFile(**json.loads(path.read_text(encoding="utf-8")))

    def open(self, upload: UploadedFile) -> IO[bytes]:
        """Open its content."""
        return self._path(upload.id, "csv").open("rb")

    def drop(self, upload: UploadedFile) -> None:
        """Delete it."""
        for end in ("csv", "json"):
            (self._folder / f"{upload.id}.{end}").unlink(missing_ok=True)

    def _path(self, id: str, end: str) -> Path:
        path = self._folder / f"{id}.{end}"
        if _ID.fullmatch(id) is None or not path.is_file():
            raise NotFoundError("the uploaded file is no longer here.", "Upload it again.")
        return path

    def _prepared_folder(self) -> Path:
        """The folder, private to this user, without expired files."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        about = self._folder.lstat()
        if hasattr(os, "getuid") and (
            about.st_uid != os.getuid() or about.st_mode & 0o077 or self._folder.is_symlink()
        ):
            raise ConflictError(
                "the folder for uploads is not private to this user.", "Set TMPDIR to a folder of your own."
            )
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process may have deleted it
                if path.stat().st_mtime < time.time() - MAX_AGE_S:
                    path.unlink()
        return self._folder
