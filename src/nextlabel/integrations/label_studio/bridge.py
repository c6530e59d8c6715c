"""Between Label Studio and a campaign: tasks and labels come in, next tasks go out, results go back as predictions.

======================= ===========================================================================================
when                    what happens
======================= ===========================================================================================
an annotation is told   the campaign follows it, and its author's tab shows the next task before Label Studio replies
every few seconds       tasks that changed in Label Studio are read again; who waited for a task asks again
at the start            all tasks are read, and the two are compared
======================= ===========================================================================================

An annotator is given a task ahead, because Label Studio does not say when somebody opens one. If their lease expires,
the task stays in their tab and its label counts while there is budget; they are given the next one when they label it.
Once the campaign is closed, nobody's tab shows a task. A label that nobody asked for counts like a late one.

Two threads may see the same annotation. Whoever compares a task with the campaign holds the task's lock and, unless
nothing else runs, has read it after taking the lock, so that nothing is undone by what was read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Lock
from typing import Any, Final

from nextlabel.campaign.predictions import workers_of
from nextlabel.campaign.rows import LeaseRow, is_prediction
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import ConflictError, NextlabelError, NotFoundError
from nextlabel.integrations.label_studio.annotators import Annotator, Annotators, users_in
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.project import (
    FIELD,
    OWN_MODEL,
    Answer,
    Control,
    answer_of,
    answers_of,
    prediction_rows,
    task_table,
    user_of,
)

#: Tasks that changed so long before the last one that was seen are read again: they may have been written later.
OVERLAP: Final = timedelta(seconds=10)

#: Labels that were found by reading, without one that was told, after which something seems wrong with the webhooks.
UNTOLD: Final = 5

#: Readings between two looks at who is in the organisation.
MEMBERS_EVERY: Final = 12

#: Tasks that leave tabs at one reading because they are labelled.
TIDIED: Final = 10

#: Tasks that were deleted in Label Studio that are passed over for one annotator at once.
MOST_DELETED: Final = 20
Tell = Callable[[str], None]

#: Predictions that are sent at once.
AT_ONCE: Final = 200

#: Scores that differ by less are the same.
SAME: Final = 1e-9


@dataclass
class Tally:
    """What came in since the start; ``untold`` labels were found by reading before anybody told of them."""

    told: int = 0
    untold: int = 0
    lock: Lock = field(default_factory=Lock)


class Bridge:
    """One project and its campaign."""

    def __init__(
        self,
        studio: LabelStudio,
        project: int,
        control: Control,
        service: CampaignService,
        campaign: str,
        annotators: Annotators,
        tell: Tell,
    ) -> None:
        self.studio, self.project, self.control = studio, project, control
        self.service, self.campaign, self.annotators, self._tell = service, campaign, annotators, tell
        self.tally = Tally()
        self._seen: datetime | None = None
        self._wake, self._stopped = Event(), Event()
        self._readings = 0
        self._silent, self._said = False, ""

    # At the start -----------------------------------------------------------------------------------------------

    def reconcile(self) -> None:
        """Compare everything, follow what differs, and give every annotator a task."""
        self.annotators.refresh()
        for tasks in self.studio.tasks(self.project):
            self._take_in(tasks, alone=True)
            for task in tasks:
                self._find_shown(task)
        for annotator in self.annotators.all:
            self._give(annotator)
        self.annotators.hide_now(0)

    def _find_shown(self, task: Mapping[str, Any]) -> None:
        """Whose tab shows a task: a tab keeps one that is not labelled, all others leave it."""
        done = answers_of(task.get("annotations") or (), self.control)
        for user in users_in(task["data"].get(FIELD)):
            annotator = self.annotators.find(user)
            if user not in done and annotator is not None and annotator.shown is None:
                annotator.shown = task["id"]
            else:
                self.annotators.hide_later(user, task["id"], user in done)

    # While it runs ----------------------------------------------------------------------------------------------

    def handle(self, action: str, payload: Mapping[str, Any]) -> None:
        """What Label Studio tells: an annotation at once, everything else is read soon."""
        annotation = payload.get("annotation")
        if action not in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED") or not isinstance(annotation, Mapping):
            self.read_soon()
            return
        task, user = int(annotation["task"]), user_of(annotation)
        if user is None:
            return
        with self.tally.lock:
            self.tally.told += 1
        annotator = self.annotators.of(user)
        try:
            with self.annotators.tabs.lock(task):
                self._follow(annotator.worker, str(task), answer_of(annotation, self.control))
            if annotator.gets_tasks and annotator.shown in (None, task):
                self._give(annotator, done=True)
        except NotFoundError:
            self.read_soon()  # a task that is not in the campaign yet

    def run(self, every_s: float) -> None:
        """Read again and again until ``stop``."""
        while not self._stopped.is_set():
            self._wake.wait(every_s)
            self._wake.clear()
            if self._stopped.is_set():
                return
            try:
                self.sweep()
                self._complain(None)
            except NextlabelError as error:
                self._complain(error)

    def read_soon(self) -> None:
        """Something has changed: it is read at once."""
        self._wake.set()

    def stop(self) -> None:
        """End ``run``."""
        self._stopped.set()
        self._wake.set()

    def sweep(self) -> None:
        """Read what has changed, give tasks to those who wait, and take them from everybody once all is over."""
        self._readings += 1
        if self._readings % MEMBERS_EVERY == 0:
            self.annotators.refresh()
        after = None if self._seen is None else (self._seen - OVERLAP).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        for tasks in self.studio.tasks(self.project, after):
            self._take_in(tasks)
        closed = self.service.store.row(self.campaign).closed_reason is not None
        for annotator in self.annotators.all:
            if annotator.waits or (closed and annotator.shown is not None):
                self._give(annotator)
        self.annotators.hide_now(TIDIED)
        if self.tally.told == 0 and self.tally.untold >= UNTOLD and not self._silent:
            self._silent = True
            self._tell(
                "Label Studio does not tell of annotations, so that they are read every few seconds instead. Can it "
                "reach this address? It refuses private ones unless it is started with SSRF_PROTECTION_ENABLED=false."
            )

    def _complain(self, error: NextlabelError | None) -> None:
        """Say once that something is wrong, and once that it is over."""
        said = "" if error is None else str(error)
        if said != self._said:
            self._tell(said or "Label Studio answers again.")
        self._said = said

    # One page of tasks ------------------------------------------------------------------------------------------

    def _take_in(self, tasks: Sequence[Mapping[str, Any]], alone: bool = False) -> None:
        """Tasks, predictions and answers that are new; ``alone``: nothing can have changed since they were read."""
        if not tasks:
            return
        add_new_tasks(self.service, self.campaign, tasks, self.studio.url)
        add_new_predictions(self.service, self.campaign, tasks, self.control, self._tell)
        there = self.service.store.tasks_by_key(self.campaign, [str(task["id"]) for task in tasks])
        keys = {row.number: key for key, row in there.items()}
        leases: dict[str, list[LeaseRow]] = {}
        for lease in self.service.store.leases(self.campaign, list(keys)):
            leases.setdefault(keys[lease.task], []).append(lease)
        for task in tasks:
            changes = self._changes(task, leases.get(str(task["id"]), ()))
            if changes and not alone:
                self._compare_again(int(task["id"]))
            elif changes:
                self._follow_all(str(task["id"]), changes)
            changed = datetime.fromisoformat(task["updated_at"])
            self._seen = changed if self._seen is None else max(self._seen, changed)

    def _changes(self, task: Mapping[str, Any], leases: Iterable[LeaseRow]) -> dict[str, Answer | None]:
        """What each worker says about a task where the campaign has it otherwise."""
        answers = answers_of(task.get("annotations") or (), self.control)
        says: dict[str, Answer | None] = {self.annotators.of(user).worker: answer for user, answer in answers.items()}
        changes = dict(says)
        for lease in leases:
            if is_prediction(lease.id) or lease.dropped:
                changes.pop(lease.worker, None)
                continue
            label = None if lease.label is None else self.control.labels[lease.label]
            said = says.get(lease.worker)
            if lease.worker in says:
                same = said == label if isinstance(said, str) else label is None and lease.status != "leased"
                if same:
                    del changes[lease.worker]
            elif label is not None and self.annotators.is_theirs(lease.worker):
                changes[lease.worker] = None
        return changes

    def _compare_again(self, number: int) -> None:
        """Compare a task with the campaign as both are now."""
        with self.annotators.tabs.lock(number):
            try:
                task = self.studio.task(number)
            except NotFoundError:
                return
            row = self.service.store.tasks_by_key(self.campaign, [str(number)])[str(number)]
            changes = self._changes(task, self.service.store.leases(self.campaign, [row.number]))
            with self.tally.lock:
                self.tally.untold += len(changes)
            self._follow_all(str(number), changes)
        for worker in changes:
            annotator = self.annotators.named(worker)
            if annotator is not None and annotator.gets_tasks and annotator.shown in (None, number):
                self._give(annotator, done=changes[worker] is not None)

    def _follow_all(self, task: str, changes: Mapping[str, Answer | None]) -> None:
        for worker, answer in changes.items():
            self._follow(worker, task, answer)

    def _follow(self, worker: str, task: str, answer: Answer | None) -> None:
        self.service.set_answer(self.campaign, worker, task, answer)

    # Next tasks -------------------------------------------------------------------------------------------------

    def _give(self, annotator: Annotator, done: bool = False) -> None:
        """The annotator's tab shows the task that the campaign has for them; ``done``: the one before is labelled."""
        with annotator.lock:
            annotator.waits = True
            for _ in range(MOST_DELETED):
                lease = self.service.ask(self.campaign, annotator.worker)
                if not lease:
                    self.annotators.show(annotator, None, done)
                    return
                try:
                    self.annotators.show(annotator, int(lease.task), done)
                    annotator.waits = False
                    return
                except NotFoundError:  # it was deleted in Label Studio: they get another one
                    self.service.release(lease.id)


def add_new_tasks(service: CampaignService, campaign: str, tasks: Sequence[Mapping[str, Any]], url: str) -> int:
    """Add the tasks that are not there; returns how many."""
    known = service.store.tasks_by_key(campaign, [str(task["id"]) for task in tasks])
    new = [task_table(task, url) for task in tasks if str(task["id"]) not in known]
    return service.add_tasks(campaign, new).added if new else 0


def add_new_predictions(
    service: CampaignService,
    campaign: str,
    tasks: Sequence[Mapping[str, Any]],
    control: Control,
    tell: Callable[[str], None],
) -> None:
    """Add predictions of tasks that their model has none for; a model that has changed its mind needs another name."""
    found = prediction_rows(tasks, control)
    if not found or not service.store.row(campaign).config.knows_workers:
        return
    rows = service.store.tasks_by_key(campaign, [str(task["id"]) for task in tasks])
    keys = {row.number: key for key, row in rows.items()}
    leases = service.store.leases(campaign, list(keys))
    for model, predictions in found.items():
        names = set(workers_of(model))
        there = {keys[lease.task] for lease in leases if lease.worker in names}
        new = [row for row in predictions if row["task"] not in there]
        if new:
            try:
                service.add_predictions(campaign, model, new)
            except ConflictError as error:
                tell(f"Predictions of {model} were left out: {error}")


@dataclass(frozen=True, slots=True)
class Pushed:
    """How many predictions are new, were changed, and were right before."""

    model_version: str
    created: int
    changed: int
    same: int


def push_results(
    studio: LabelStudio, project: int, control: Control, service: CampaignService, campaign: str
) -> Pushed:
    """Write the result of every task that somebody has labelled; the same again changes nothing."""
    version = f"{OWN_MODEL}:{campaign}"
    there = {int(one["task"]): one for one in studio.predictions(project) if one.get("model_version") == version}
    new: list[dict[str, Any]] = []
    created = changed = same = 0
    for result in service.results(campaign):
        if result.labels == 0:
            continue
        task, score = int(result.task), round(result.probability, 6)
        before = there.get(task)
        if before is None:
            new.append({"task": task, "result": control.result(result.label), "score": score, "model_version": version})
        elif control.label_of(before["result"]) == result.label and abs((before["score"] or 0) - score) < SAME:
            same += 1
        else:
            studio.change_prediction(before["id"], {"result": control.result(result.label), "score": score})
            changed += 1
    for first in range(0, len(new), AT_ONCE):
        studio.add_predictions(project, new[first : first + AT_ONCE])
        created += len(new[first : first + AT_ONCE])
    return Pushed(version, created, changed, same)
