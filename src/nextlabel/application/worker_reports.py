"""What each worker did, what they are owed, and how good they are, with intervals: tables, files and the dashboard.

====================== ==============================================================================================
field                  meaning
====================== ==============================================================================================
labels, bought         labels told; those that the budget paid for; ``dropped`` of these are left out of the results
seconds                time on labels told in time
amount                 bought labels, and those of control questions, times the pay per label; dropped ones have been
                       worked for, and are paid
agreement              share of the labels that agree with the likeliest truth, with Wilson's interval; of somebody
                       whose labels were all dropped, with what the others say
accuracy               chance that a label is right, with an interval (``crowd.skill``)
controls               answers to control questions, ``controls_right`` of them right
turned_away            how often they were told that there is nothing for them (setting ``turn_away``)
flags                  what stands out (``crowd.skill``)
====================== ==============================================================================================

Skill is learnt from the labels that count (``crowd.fit``), whatever the campaign's policy, and remembered until there
are others. Cost: 0.1 s for 10,000 labels; with more than ``MOST_LABELS`` it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from nextlabel.campaign.records import Visit
from nextlabel.campaign.rows import WorkerRow
from nextlabel.campaign.states import PREFIX, Standing
from nextlabel.crowd.agreement import Agreement, measure
from nextlabel.crowd.answers import Number, Pair
from nextlabel.crowd.controls import judge_by_truths
from nextlabel.crowd.copying import find_copying
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.numbers import LearntNumbers, NumberLabels, fit_numbers
from nextlabel.crowd.questions import Form, FormLabels, form_agreement
from nextlabel.crowd.skill import Intervals, accuracies, flags_by_worker
from nextlabel.errors import BusyError, NotFoundError
from nextlabel.wording import iso, iso_or_none

if TYPE_CHECKING:
    from nextlabel.application.service import CampaignService

#: Labels up to which workers' skill is learnt, and workers of one campaign at most.
MOST_LABELS, MOST_WORKERS = 300_000, 1_000_000
#: Tasks whose leases are read at once.
TASKS_WITH_LEASES: Final = 1_000
#: What took t seconds to learn is used for PATIENCE t seconds although labels came in, but not longer than for OLDEST_S
#: seconds (the first may have waited for the compiler), and of an open campaign alone.
PATIENCE, OLDEST_S = 10.0, 60.0
#: Seconds that somebody waits while others learn.
WAIT_S = 20.0
_Z: Final = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """One worker; what was not learnt is None, ``mean_seconds`` is over labels told in time."""

    worker: str
    labels: int
    bought: int
    dropped: int
    seconds: float
    mean_seconds: float | None
    amount: float
    agreement: float | None = None
    agreement_low: float | None = None
    agreement_high: float | None = None
    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    flags: tuple[str, ...] = ()
    controls: int | None = None
    controls_right: int | None = None
    standing: Standing
    reason: str
    given: int
    late: int
    expired: int
    released: int
    turned_away: int
    last_at: float


COLUMNS: Final = tuple(field.name for field in fields(WorkerReport))
#: What is the same in a worker's row.
_TALLIED: Final = tuple(field.name for field in fields(WorkerRow) if field.name in COLUMNS)


class Learnt(NamedTuple):
    """What reports say that was learnt of workers, by name, and how far their labels agree: None with too many."""

    skills: dict[str, dict[str, Any]]
    agreement: Agreement | None


def report_of(row: WorkerRow, pay: float = 0.0, skill: Mapping[str, Any] | None = None) -> WorkerReport:
    """The report of a worker's row, with what was learnt of them."""
    in_time = row.labels - row.late
    return WorkerReport(
        **{name: getattr(row, name) for name in _TALLIED},
        mean_seconds=row.seconds / in_time if in_time > 0 else None,
        amount=round((row.bought + row.free) * pay, 6),
        **(skill or {}),
    )


def _with_ends(name: str, share: Iterable[float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), map(float, share), strict=True))


def cells(report: WorkerReport) -> list[Any]:
    """A line of the file, in the order of ``COLUMNS``."""
    values = asdict(replace(report, seconds=round(report.seconds, 3)))
    values |= {"flags": "; ".join(report.flags), "last_at": iso(report.last_at)}
    return [round(one, 6) if isinstance(one, float) else one for one in values.values()]


def wilson(hits: int, of: int) -> tuple[float, float, float]:
    """The share with the ends of its 95% interval [Wil27]."""
    share, z2 = hits / of, _Z * _Z / of
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z / (1 + z2) * math.sqrt(share * (1 - share) / of + z2 / (4 * of))
    return share, max(middle - half, 0.0), min(middle + half, 1.0)


class WorkerReports:
    """Reports on the workers of each campaign; skill is learnt one campaign at a time."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service = campaign_service
        self._known: dict[str, tuple[int, float, float, Learnt]] = {}  # seq, when, seconds
        self._lock = Lock()

    def of(self, id: str, limit: int = MOST_WORKERS) -> list[WorkerReport]:
        """The workers with the most labels, first those with more."""
        row, skills = self._service.store.row(id), self.learnt(id).skills
        rows = self._service.store.workers(id, limit)
        return [report_of(one, row.config.pay_per_label, skills.get(one.worker)) for one in rows]

    def learnt(self, id: str) -> Learnt:
        """What the labels that count say of the workers, alone and together."""
        row = self._service.store.row(id)
        if not 0 < row.kept <= MOST_LABELS:
            return Learnt({}, None)
        last = self._known.get(id)
        if not self._lock.acquire(timeout=0.0 if last is not None else WAIT_S):  # others learn; one thread is enough
            if last is not None:
                return last[3]
            raise BusyError("what workers can do is still being computed.", "Ask again in a moment.")
        try:
            seq, at, seconds, found = self._known.get(id, (-1, 0.0, 0.0, None))
            begun = monotonic()
            good_enough = row.closed_seq is None and begun - at < min(PATIENCE * seconds, OLDEST_S)
            if found is None or not (seq == row.seq or good_enough):
                found = self._learn(id)
                self._known[id] = row.seq, monotonic(), monotonic() - begun, found
        finally:
            self._lock.release()
        return found

    def record(self, id: str, worker: str) -> dict[str, Any]:
        """All that is kept about a person, as JSON."""
        store, row = self._service.store, self._service.store.row(id)
        leases, visits = store.leases(id, worker=worker), store.records.find(Visit, campaign=id, worker=worker)
        if not leases and not visits:
            raise NotFoundError(f"nothing is kept about {worker[:60]!r} in campaign {id!r}.", "Check the name.")
        own = [one for one in self.of(id) if one.worker == worker]
        tasks = store.tasks_by_number(id, [lease.task for lease in leases])
        given = [
            {"task": tasks[one.task].key, "status": one.status, "at": iso(one.leased_at), "comment": one.comment,
             "label": None if one.label is None else row.config.answer_type.name_of(one.label)}
            for one in leases
        ]  # fmt: skip
        told = [
            asdict(one) | {"begun_at": iso(one.begun_at), "status_at": iso_or_none(one.status_at)} for one in visits
        ]
        return {
            "worker": worker, "campaign": id, "tallies": [asdict(one) | {"last_at": iso(one.last_at)} for one in own],
            "labels": given, "visits": told,
        }  # fmt: skip

    def forget(self, id: str) -> None:
        """Learn anew next time: somebody's name was erased."""
        self._known.pop(id, None)

    def _learn(self, id: str) -> Learnt:
        kind = self._service.store.row(id).config.answer_type
        rows: list[tuple[int, int, int, int]] = []
        dropped: list[tuple[int, str, int]] = []
        names: dict[str, int] = {}
        gold: dict[int, int] = {}
        tasks = 0
        for some in self._service.task_chunks(id, TASKS_WITH_LEASES):
            for lease in self._service.store.leases(id, [task.number for task in some]):
                if lease.label is None or not (lease.counted or lease.worker.startswith(PREFIX)):
                    continue  # not bought, and not a model's, which need not be
                if lease.dropped:
                    dropped.append((lease.task, lease.worker, lease.label))
                else:
                    rows.append((lease.number, lease.task, names.setdefault(lease.worker, len(names)), lease.label))
            tasks = some[-1].number + 1
            gold |= {task.number: task.gold for task in some if task.gold is not None}
        _, task, worker, answer = np.array(sorted(rows), dtype=np.int64).reshape(-1, 4).T
        width = kind.width
        known, (different, place) = (tuple(range(tasks)), tuple(names)), np.unique(answer, return_inverse=True)
        if isinstance(kind, Form):  # each part of an item is judged as an item of its own
            given = FormLabels(task, worker, answer, kind.digits(answer), tasks, len(names))
            alike, width = form_agreement(kind, given, *known), kind.usual_answers
            task, row, answer = kind.spread(task, answer)
            worker, away = worker[row], kind.spread([one[0] for one in dropped], [one[2] for one in dropped])
            dropped = [(int(x), dropped[k][1], int(y)) for x, k, y in zip(*away, strict=True)]
            gold = {int(x): int(y) for x, _, y in zip(*kind.spread(list(gold), list(gold.values())), strict=True)}
            tasks *= max(len(kind.parts), 1)
            kind = kind if kind.parts else kind.measures[0].number
        elif isinstance(kind, Number):
            alike = measure(task, worker, place, kind.value_of(different), kind.level, *known)
        else:
            alike = measure(task, worker, answer, kind.values, kind.level, *known)
        if len(np.unique(answer)) < 2:  # one answer throughout tells nobody apart
            return Learnt({}, alike)
        truth = np.full(tasks, -1, dtype=np.int64)
        truth[list(gold)] = list(gold.values())
        many, accuracy = np.bincount(worker, minlength=len(names)), None
        if isinstance(kind, Number):
            data = NumberLabels(task, worker, kind.value_of(answer), tasks, len(names))
            per_task = np.maximum(np.bincount(task, minlength=tasks), 1)
            found = LearntNumbers(kind, *known, per_task, data, fit_numbers(data, kind))
            marked = {one.name: one.flags for one in found.workers}
            flags = [marked[name] for name in names]
            best = np.where(truth >= 0, truth, kind.best(kind.beliefs(found.fit.estimate, found.fit.sd)))
        elif isinstance(kind, Pair):
            crowd = self._service.run(id, lambda commands: commands.crowd_snapshot())
            assert crowd.pairs is not None
            numbers = {name: k for k, name in enumerate(crowd.workers) if k < len(crowd.pairs.fit.posterior)}
            rows_of = [numbers.get(name, -1) for name in names]
            accuracy = Intervals(*(one[rows_of] for one in crowd.pairs.fit.skill))
            flags = [("noise",) if k >= 0 and crowd.pairs.fit.at_random[k] else () for k in rows_of]
            best = np.where(truth >= 0, truth, kind.best(crowd.beliefs))
        else:
            labels = CrowdLabels(task, worker, answer, tasks, len(names), width)
            fit = fit_crowd(labels, truth)
            accuracy, balanced = accuracies(labels, fit)
            copying, _ = find_copying(labels, fit)
            flags = flags_by_worker(labels, fit, balanced, copying, judge_by_truths(labels, fit, truth))
            best = fit.beliefs.argmax(axis=1)
        agreeing = np.bincount(worker, kind.agrees(answer, best[task]), len(names))
        tested = truth[task] >= 0
        controls = np.bincount(worker[tested], minlength=len(names))
        passed = np.bincount(worker[tested], kind.agrees(answer, truth[task])[tested], len(names)).astype(int)
        judged: dict[str, list[bool]] = {}
        for where, who, said in dropped:  # who has nothing else is held against what the others say
            judged.setdefault(who, []).append(bool(kind.agrees(best[[where]], np.array([said]))[0]))
        skills: dict[str, dict[str, Any]] = {
            who: {**_with_ends("agreement", wilson(sum(right), len(right))), "controls": 0, "controls_right": 0}
            for who, right in judged.items()
        }
        for name, j in names.items():
            skills[name] = _with_ends("agreement", wilson(int(agreeing[j]), int(many[j])))
            skills[name] |= {} if accuracy is None else _with_ends("accuracy", (one[j] for one in accuracy))
            skills[name] |= {"flags": flags[j], "controls": int(controls[j]), "controls_right": int(passed[j])}
        return Learnt(skills, alike)
