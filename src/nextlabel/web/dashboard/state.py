"""What the dashboard keeps between requests: values that are computed in the background, and uploaded files.

Values that take too long to compute within a request are computed in a thread while the last one is shown. One that
took t seconds is computed again after PATIENCE t seconds at the earliest, and only if somebody looks; but none is left
for longer than OLDEST_S seconds because it took long: the first one may have waited for the compiler.

Uploaded files from which campaigns are created are kept for a day in a private folder of this machine, which all its
processes share. Behind a load balancer, all requests of one browser must go to the same machine while a campaign is
created.
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
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Generic, TypeVar

import numpy as np
from starlette.requests import Request

from nextlabel.application.imports import ImportStatus, imports_of
from nextlabel.application.jobs import Jobs
from nextlabel.application.worker_reports import Learnt
from nextlabel.arrays import Floats, Ints
from nextlabel.campaign.records import ACTIVE
from nextlabel.campaign.results import truths
from nextlabel.campaign.rows import CampaignRow
from nextlabel.crowd.answers import Answer
from nextlabel.errors import ConflictError, FileFormatError, GoneError, NotFoundError
from nextlabel.files.tables import DelimitedTable, delimited
from nextlabel.files.tasks import check_names
from nextlabel.model.prior import Prior
from nextlabel.service.app_state import AppState
from nextlabel.service.links import LinkSigner
from nextlabel.web.dashboard.forecasts import (
    ACCURACY,
    FAILED,
    BudgetCurve,
    ForecastView,
    kinds_of,
    make_curve,
    make_forecast_view,
)

#: Threads for slow computations; campaigns whose priors are cached; tasks that are summed up at once.
THREADS, CACHED_CAMPAIGNS, QUICK = 2, 64, 20_000

#: Least seconds between two computations of forecasts and of worker summaries.
FORECAST_INTERVAL_S, WORKERS_INTERVAL_S = 2.0, 15.0

#: Seconds for which an import that failed is shown.
FAILURE_SHOWN_S = 600.0
T = TypeVar("T")
PATIENCE, OLDEST_S = 5.0, 60.0
_log = logging.getLogger("nextlabel.web")
MAX_AGE_S = 86_400

#: Bins of the probabilities; hard tasks; numbers of labels that are told apart; rows shown before a campaign is made.
BINS, HARD_TASKS, MOST_LABELS, PREVIEW = 20, 200, 12, 8
_ID = re.compile(r"[0-9a-f]{32}")


#: What is known of workers before anything was learnt.
NOTHING: tuple[Learnt, dict[str, float]] = Learnt({}, None), {}


class DashboardState:
    """Reads from the store, and values that are computed in the background."""

    def __init__(self, app: AppState) -> None:
        self.app, self.service, self.store = app, app.campaign_service, app.campaign_service.store
        self._jobs, self.uploads = Jobs("dashboard", THREADS), UploadedFiles(app.links)
        self._summaries = BackgroundCache(self._jobs, self._compute_summary, None, 0.0)
        self._forecasts = BackgroundCache(
            self._jobs, lambda id: make_forecast_view(self.service, id, self.classes(self.store.row(id))), FAILED,
            FORECAST_INTERVAL_S,
        )  # fmt: skip
        self._workers = BackgroundCache(self._jobs, self._compute_workers, NOTHING, WORKERS_INTERVAL_S)
        self._classes = lru_cache(CACHED_CAMPAIGNS)(lambda id, many: tuple(self.store.classes(id)))

    def classes(self, row: CampaignRow) -> Sequence[Prior]:
        """The priors of a campaign's tasks; new ones may be added, but none changes."""
        return self._classes(row.id, row.classes)

    def curve(
        self, tasks: int, answers: int, scores: Sequence[float] = (), accuracy: float = ACCURACY
    ) -> Future[BudgetCurve]:
        """What budgets buy for so many tasks; ``scores`` are some of theirs, none if all answers are equally likely."""
        key = (tasks, answers, kinds_of(scores), accuracy)
        return self._jobs.submit(key, lambda _: make_curve(*key))

    def summary(self, row: CampaignRow) -> StateSummary | None:
        """The current summary if it is quick to compute; else the latest, None while the first is computed."""
        return self._summaries.latest(row, wait=_is_quick(row)).value

    def forecast(self, row: CampaignRow) -> ForecastView | None:
        """The latest forecast, None while the first is computed."""
        known = self._forecasts.latest(row)
        if known.value is not None and known.value.pending:
            self._forecasts.latest(row, anew=True)  # tables become ready without an event
        return known.value

    def workers(self, row: CampaignRow) -> tuple[Learnt, dict[str, float]]:
        """What was learnt of workers, and their median seconds; empty while they are computed."""
        return self._workers.latest(row).value or NOTHING

    def imports(self, row: CampaignRow) -> list[ImportStatus]:
        """The import that is under way, or the last one if it failed a short time ago."""
        recent = self.store.clock() - FAILURE_SHOWN_S
        return [
            one
            for one in imports_of(self.store, row.id, 1)
            if one.state in ACTIVE or (one.state == "failed" and one.updated_at > recent)
        ]

    def version(self, row: CampaignRow) -> str:
        """A text that changes with every value computed in the background."""
        values = [self._forecasts.latest(row).at, self._workers.latest(row).at]
        values += [] if _is_quick(row) else [self._summaries.latest(row).at]
        certificate = self.service.certificates.look(row.id)
        proved = "0" if certificate is None else f"{certificate.seq}-{certificate.at}"
        return ".".join([proved, *(f"{one.state}{one.rows}" for one in self.imports(row)), *map(str, values)])

    def _compute_summary(self, id: str) -> StateSummary | None:
        row = self.store.row(id)
        if (crowd := self.service.crowd(row)) is None:
            tasks, *states = self.service.run(id, lambda commands: commands.state.states())
            row = self.store.row(id)
            beliefs = truths(row.config, self.classes(row), *states)
            return summarise(row.config.answer_type, tasks, states[-1], beliefs)
        found = summarise(crowd.kind, np.arange(len(crowd.told)), crowd.told, crowd.beliefs)
        low, high = crowd.expected.low, crowd.expected.high
        return found and replace(found, accuracy=crowd.expected_accuracy, low=low, high=high)

    def _compute_workers(self, id: str) -> tuple[Learnt, dict[str, float]]:
        medians = self.service.run(id, lambda commands: commands.state.median_seconds())
        return self.service.worker_reports.learnt(id), medians


def _is_quick(row: CampaignRow) -> bool:
    """Whether the tasks are summed up in milliseconds."""
    return row.tasks <= QUICK and not row.config.knows_workers


def dashboard_state(request: Request) -> DashboardState:
    """The dashboard's state in the app that a request came to."""
    dashboard: DashboardState = request.app.state.dashboard
    return dashboard


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[T]):
    """A value for a campaign, computed after event ``seq`` and there since ``at``, 0 before the first."""

    value: T | None = None
    seq: int = -1
    at: float = 0.0
    seconds: float = 0.0


class BackgroundCache(Generic[T]):
    """The latest value of one kind for each campaign; ``compute`` takes the campaign's id."""

    def __init__(self, jobs: Jobs, compute: Callable[[str], T], on_error: T, interval_s: float) -> None:
        self._jobs, self._compute, self._on_error, self._interval_s = jobs, compute, on_error, interval_s
        self._known: dict[str, CachedValue[T]] = {}

    def latest(self, row: CampaignRow, *, wait: bool = False, anew: bool = False) -> CachedValue[T]:
        """The latest value; if there were events since, a new one is computed in the background.

        With ``wait`` it is computed before, and with ``anew`` also if there were none.
        """
        known, now = self._known.get(row.id, CachedValue()), time.monotonic()
        if wait and known.seq != row.seq:
            return self._run(row)
        rests = known.at and now - known.at <= max(self._interval_s, min(PATIENCE * known.seconds, OLDEST_S))
        if not rests and (anew or known.seq != row.seq):
            self._jobs.submit((self, row.id), lambda _: self._run(row))
        return known

    def _run(self, row: CampaignRow) -> CachedValue[T]:
        begin = time.monotonic()
        try:
            value = self._compute(row.id)
        except GoneError:  # deleted meanwhile: nobody will look
            value = self._on_error
        except Exception as error:
            _log.warning("a value of campaign %s could not be computed", row.id, exc_info=error)
            value = self._on_error
        end = time.monotonic()
        made = self._known[row.id] = CachedValue(value, row.seq, end, end - begin)
        return made


@dataclass(frozen=True, slots=True)
class StateSummary:
    """A campaign's tasks summed up by state.

    =============== ===================================================================================
    field           meaning
    =============== ===================================================================================
    accuracy        expected share of tasks whose most likely label is right, if the campaign stopped here
    by_labels       tasks with 0, 1, 2, ... labels
    by_probability  tasks with a label, by the probability of the second of two labels, else of the best
    hardest         tasks with a label, by number, whose two likeliest labels are closest, closest first
    low, high       95% interval of the accuracy, where workers were learnt
    =============== ===================================================================================

    Cost: some milliseconds for 10,000 tasks.
    """

    tasks: int
    labelled: int
    accuracy: float
    by_labels: tuple[tuple[str, int], ...]
    by_probability: tuple[tuple[str, int], ...]
    hardest: tuple[int, ...]
    low: float | None = None
    high: float | None = None


def summarise(answers: Answer, tasks: Ints, labels: Ints, beliefs: Floats) -> StateSummary | None:
    """Tasks by number, with how many labels each has and what is believed of it; None without any."""
    if not len(tasks):
        return None
    told, best, margin = np.flatnonzero(labels > 0), answers.certainty(beliefs), np.round(answers.margin(beliefs), 12)
    bins = np.minimum(((beliefs[:, 1] if len(answers.labels) == 2 else best) * BINS).astype(np.int64), BINS - 1)
    many, width = np.bincount(np.minimum(labels, MOST_LABELS)).tolist(), 100 // BINS
    likely = np.bincount(bins[told], minlength=BINS).tolist()
    return StateSummary(
        tasks=len(tasks),
        labelled=len(told),
        accuracy=float(best.mean()),
        by_labels=tuple((f"{n}+" if n == MOST_LABELS else str(n), count) for n, count in enumerate(many)),
        by_probability=tuple((f"{width * n}–{width * (n + 1)}%", count) for n, count in enumerate(likely)),
        hardest=tuple(tasks[told[np.argsort(margin[told], kind="stable")[:HARD_TASKS]]].tolist()),
    )


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
