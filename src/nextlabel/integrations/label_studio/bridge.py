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

An annotation is a label if it has exactly one of the choices. A skipped or empty one, or one with a choice that the
campaign does not know, is none (``SKIPPED``). Of several annotations of one person for one task the newest label
stands. Drafts are not looked at: nobody has submitted them.

Everybody in the project's organisation may label in it, and so is an annotator unless a few are named. A worker is
called by the e-mail address, which Label Studio asks everybody for. Each has a Data Manager tab, which shows the one
task that is theirs now. A tab's filter is fixed: the browser keeps its own copy of it and sends it with every request
for the next task. So the task changes instead: its data has the field ``nextlabel`` with the numbers of the people
whose next task it is, each between commas, and the tab of user 7 shows the tasks whose field contains ``,7,``. Label
Studio gives nobody a task that they have labelled, so that it may leave their tab later, when there is time or somebody
else gets it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Lock, RLock
from typing import Any, Final
from xml.etree import ElementTree

from nextlabel.application.service import CampaignService
from nextlabel.campaign.external_answers import SKIPPED, Skipped
from nextlabel.campaign.new_tasks import LARGEST_PAYLOAD
from nextlabel.campaign.predictions import workers_of
from nextlabel.campaign.rows import LeaseRow
from nextlabel.errors import ConflictError, InputError, NextlabelError, NotFoundError, UnavailableError
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.wording import listed

#: The field of a task's data that says whose next task it is.
FIELD: Final = "nextlabel"
#: How the model versions begin that nextlabel writes.
OWN_MODEL: Final = "nextlabel"

Answer = str | Skipped


@dataclass(frozen=True, slots=True)
class Control:
    """The choices that people have: the tag's name, what it is about, and its values."""

    name: str
    to_name: str
    labels: tuple[str, ...]

    def result(self, label: str) -> list[dict[str, Any]]:
        """The label as an annotation's or a prediction's result."""
        value = {"choices": [label]}
        return [{"from_name": self.name, "to_name": self.to_name, "type": "choices", "value": value}]

    def label_of(self, result: Any) -> str | None:
        """The one choice of a result, None if it has none, several or an unknown one."""
        chosen = [
            choice
            for part in result or ()
            if isinstance(part, Mapping) and part.get("from_name") == self.name
            for choice in part.get("value", {}).get("choices", ())
        ]
        return chosen[0] if len(chosen) == 1 and chosen[0] in self.labels else None


def control_of(project: Mapping[str, Any], name: str | None = None) -> Control:
    """The project's choices; ``name`` says which, if there are several."""
    number, parsed = project["id"], project.get("parsed_label_config") or {}
    found = {tag: one for tag, one in parsed.items() if one.get("type") == "Choices"}
    if not found:
        raise InputError(
            f"project {number} has no Choices in its labeling interface.",
            "Add a <Choices> tag with the labels, e.g. by the template Text Classification.",
        )
    if name is not None and name not in found:
        raise InputError(
            f"project {number} has no Choices called {name[:60]!r}.", f"Give --control {' or '.join(found)}."
        )
    if name is None and len(found) > 1:
        raise InputError(
            f"project {number} has several Choices: {listed(list(found))}.",
            f"Say which are the labels, e.g. --control {next(iter(found))}.",
        )
    tag = name if name is not None else next(iter(found))
    elements = ElementTree.fromstring(project["label_config"]).iter("Choices")
    for element in (one for one in elements if one.get("name") == tag):
        for attribute, bad in (("choice", "multiple"), ("perRegion", "true"), ("perItem", "true")):
            if element.get(attribute) == bad:
                raise InputError(
                    f'the Choices {tag!r} of project {number} have {attribute}="{bad}", so that a task can have '
                    "several of them.",
                    'nextlabel takes one label per person and task: set choice="single" in the labeling interface.',
                )
    return Control(tag, found[tag]["to_name"][0], tuple(found[tag]["labels"]))


def task_table(task: Mapping[str, Any], url: str) -> dict[str, Any]:
    """A task of the campaign; one with too much data is its address."""
    payload = {name: value for name, value in task["data"].items() if name != FIELD}
    if not payload or len(json.dumps(payload)) > LARGEST_PAYLOAD:
        payload = {"task": f"{url}/projects/{task['project']}/data?task={task['id']}"}
    return {"id": str(task["id"]), "payload": payload}


def user_of(annotation: Mapping[str, Any]) -> int | None:
    """Who made an annotation."""
    by = annotation.get("completed_by")
    found = by.get("id") if isinstance(by, Mapping) else by
    return found if isinstance(found, int) else None


def answer_of(annotation: Mapping[str, Any], control: Control) -> Answer:
    """What an annotation says."""
    label = None if annotation.get("was_cancelled") else control.label_of(annotation.get("result"))
    return SKIPPED if label is None else label


def answers_of(annotations: Iterable[Mapping[str, Any]], control: Control) -> dict[int, Answer]:
    """What each person says about a task."""
    found: dict[int, Answer] = {}
    for annotation in sorted(annotations, key=lambda one: int(one["id"])):
        user, answer = user_of(annotation), answer_of(annotation, control)
        if user is not None and (isinstance(answer, str) or user not in found):
            found[user] = answer
    return found


def prediction_rows(tasks: Sequence[Mapping[str, Any]], control: Control) -> dict[str, list[dict[str, Any]]]:
    """Predictions by the model's name, as ``campaigns.predictions`` takes them; of several for a task, the newest.

    A score is taken for the label's probability where all of a model's scores can be: between one in C and 1.
    """
    newest: dict[str, dict[int, Mapping[str, Any]]] = {}
    for task in tasks:
        for prediction in sorted(task.get("predictions") or (), key=lambda one: int(one["id"])):
            model = str(prediction.get("model_version") or "label-studio").strip()
            label = control.label_of(prediction.get("result"))
            if label is not None and not model.startswith(OWN_MODEL):
                newest.setdefault(model, {})[task["id"]] = {"label": label, "score": prediction.get("score")}
    return {model: _rows(found, control.labels) for model, found in newest.items()}


def _rows(found: Mapping[int, Mapping[str, Any]], labels: Sequence[str]) -> list[dict[str, Any]]:
    scores = [one["score"] for one in found.values()]
    if not all(isinstance(score, int | float) and 1 / len(labels) < score <= 1 for score in scores):
        return [{"task": str(task), "label": one["label"]} for task, one in found.items()]
    rows = []
    for task, one in found.items():
        others = (1 - one["score"]) / (len(labels) - 1)
        rows.append({"task": str(task), **dict.fromkeys(labels, others), one["label"]: one["score"]})
    return rows


FILTER: Final = f"filter:tasks:data.{FIELD}"

#: Locks of tasks, by the remainder of their numbers.
_LOCKS: Final = 64


@dataclass(eq=False)
class Annotator:
    """One person; ``shown`` is the task in their tab, ``waits`` that they should have one and have not."""

    user: int
    worker: str
    gets_tasks: bool
    shown: int | None = None
    waits: bool = True
    lock: RLock = field(default_factory=RLock)


class Annotators:
    """The people of a project, by number and by name, and their tabs."""

    def __init__(
        self, studio: LabelStudio, project: int, organisation: int, only: Collection[str] | None = None
    ) -> None:
        self._studio, self._project, self._organisation = studio, project, organisation
        self._only = None if only is None else {name.strip().lower() for name in only}
        self._tabs: dict[int, int] | None = None
        self._locks = tuple(Lock() for _ in range(_LOCKS))
        self._by_user: dict[int, Annotator] = {}
        self._lock = Lock()
        self._to_hide: deque[tuple[int, int, bool]] = deque()  # user, task, and whether there is no hurry

    @property
    def all(self) -> list[Annotator]:
        """Those who get tasks."""
        return [one for one in list(self._by_user.values()) if one.gets_tasks]

    def refresh(self) -> None:
        """Look who is in the organisation; newcomers get a tab."""
        with self._lock:
            for user in self._studio.members(self._organisation):
                if user["id"] not in self._by_user:
                    self._add(int(user["id"]), str(user.get("email") or f"user {user['id']}"))
        missing = (self._only or set()) - {one.worker.lower() for one in self._by_user.values()}
        if missing:
            raise InputError(
                f"there is nobody called {listed(sorted(missing))} in the project's organisation.",
                "Give the e-mail addresses of its members, separated by commas.",
            )

    def of(self, user: int) -> Annotator:
        """Somebody by number, who may be new, or may have left."""
        if user not in self._by_user:
            self.refresh()
        with self._lock:
            return self._by_user.setdefault(user, Annotator(user, f"user {user}", gets_tasks=False))

    def find(self, user: int) -> Annotator | None:
        """Somebody by number, if they are known."""
        return self._by_user.get(user)

    def named(self, worker: str) -> Annotator | None:
        """Somebody by name; None who labels elsewhere."""
        return next((one for one in list(self._by_user.values()) if one.worker == worker), None)

    def show(self, annotator: Annotator, task: int | None, done: bool = False) -> None:
        """The annotator's tab shows a task or nothing; what it showed before leaves it, without hurry if ``done``."""
        before = annotator.shown
        if task is not None and task != before:
            self._change(task, annotator.user, shown=True)
        annotator.shown = task
        if before is not None and before != task:
            self.hide_later(annotator.user, before, done)

    def hide_later(self, user: int, task: int, done: bool) -> None:
        """The task is to leave the user's tab; if they have labelled it, there is no hurry."""
        (self._to_hide.append if done else self._to_hide.appendleft)((user, task, done))

    def hide_now(self, most: int) -> None:
        """Take away what is to leave the tabs, and of what was labelled at most so many."""
        while self._to_hide and (most > 0 or not self._to_hide[0][2]):
            user, task, done = self._to_hide.popleft()
            annotator = self.find(user)
            if annotator is None or annotator.shown != task:  # else it has come back
                try:
                    self._change(task, user, shown=False)
                except NotFoundError:
                    pass
                except UnavailableError:
                    self.hide_later(user, task, done)
                    raise
            most -= done

    def _add(self, user: int, worker: str) -> None:
        gets_tasks = self._only is None or worker.lower() in self._only
        if gets_tasks:
            if self._tabs is None:
                there = {user_of_tab(tab): int(tab["id"]) for tab in reversed(self._studio.tabs(self._project))}
                self._tabs = {owner: number for owner, number in there.items() if owner is not None}
            if user not in self._tabs:
                self._tabs[user] = int(self._studio.create_tab(self._project, tab_data(user, worker))["id"])
        self._by_user[user] = Annotator(user, worker, gets_tasks)

    def lock(self, task: int) -> Lock:
        """What whoever compares or changes a task holds."""
        return self._locks[task % _LOCKS]

    def link(self, user: int) -> str:
        """The address at which the user labels."""
        return f"{self._studio.url}/projects/{self._project}/data?tab={(self._tabs or {})[user]}&labeling=1"

    def _change(self, task: int, user: int, shown: bool) -> None:
        with self.lock(task):
            found = self._studio.task(task)
            data, users = found["data"], users_in(found["data"].get(FIELD))
            done = {user_of(annotation) for annotation in found.get("annotations") or ()}
            wanted = users - done | {user} if shown else users - done - {user}
            if wanted != users:
                self._studio.change("tasks", task, {"data": {**data, FIELD: mark_of(wanted)}})


def users_in(mark: Any) -> frozenset[int]:
    """Whose next task it is, by its field."""
    parts = mark.split(",") if isinstance(mark, str) else ()
    return frozenset(int(part) for part in parts if part.isdigit())


def mark_of(users: Iterable[int]) -> str:
    """The field for these users; for nobody it is empty, and still there, or the Data Manager would lose its column."""
    numbers = sorted(users)
    return f",{','.join(map(str, numbers))}," if numbers else ""


def tab_data(user: int, name: str) -> dict[str, Any]:
    """The tab of a user."""
    item = {"filter": FILTER, "operator": "contains", "type": "String", "value": mark_of([user])}
    return {"title": f"nextlabel: {name}", "filters": {"conjunction": "and", "items": [item]}}


def user_of_tab(tab: Mapping[str, Any]) -> int | None:
    """Whose tab it is, None if it is not one of ours."""
    items: list[Any] = ((tab.get("data") or {}).get("filters") or {}).get("items") or []
    if len(items) != 1 or items[0].get("filter") != FILTER or items[0].get("operator") != "contains":
        return None
    users = list(users_in(items[0].get("value")))
    return users[0] if len(users) == 1 else None


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
        #: Annotations that were told since the start, and those that were found by reading before anybody told of them.
        self._told = self._untold = 0
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
            for task in tasks:  # a tab keeps one that is not labelled, all others leave it
                done = answers_of(task.get("annotations") or (), self.control)
                for user in users_in(task["data"].get(FIELD)):
                    annotator = self.annotators.find(user)
                    if user not in done and annotator is not None and annotator.shown is None:
                        annotator.shown = task["id"]
                    else:
                        self.annotators.hide_later(user, task["id"], user in done)
        for annotator in self.annotators.all:
            self._give(annotator)
        self.annotators.hide_now(0)

    # While it runs ----------------------------------------------------------------------------------------------

    def handle(self, action: str, payload: Mapping[str, Any]) -> None:
        """What Label Studio tells: a task with a new annotation is compared at once, all else is read soon.

        What is told is read back: whoever has the secret could tell what nobody has annotated.
        """
        annotation = payload.get("annotation")
        if action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED") and isinstance(annotation, Mapping):
            self._told += 1
            self._compare_again(int(annotation["task"]))
        else:
            self.read_soon()

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
        if self._told == 0 and self._untold >= UNTOLD and not self._silent:
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
        store, names = self.service.store, [str(task["id"]) for task in tasks]
        known = store.tasks_by_key(self.campaign, names)
        new = [task_table(task, self.studio.url) for task in tasks if str(task["id"]) not in known]
        if new:
            self.service.add_tasks(self.campaign, new)
            known = store.tasks_by_key(self.campaign, names)
        keys = {row.number: key for key, row in known.items()}
        leases: dict[str, list[LeaseRow]] = {}
        for lease in store.leases(self.campaign, list(keys)):
            leases.setdefault(keys[lease.task], []).append(lease)
        if store.row(self.campaign).config.knows_workers:
            self._add_predictions(tasks, leases)
        for task in tasks:
            changes = self._changes(task, leases.get(str(task["id"]), ()))
            if changes and not alone:
                self._untold += self._compare_again(int(task["id"]))
            for worker, answer in changes.items() if alone else ():
                self.service[self.campaign].set_answer(worker, str(task["id"]), answer)
            changed = datetime.fromisoformat(task["updated_at"])
            self._seen = changed if self._seen is None else max(self._seen, changed)

    def _add_predictions(self, tasks: Sequence[Mapping[str, Any]], leases: Mapping[str, Sequence[LeaseRow]]) -> None:
        """Add predictions of tasks that their model has none for; one that has changed its mind needs another name."""
        for model, predictions in prediction_rows(tasks, self.control).items():
            names = set(workers_of(model))
            new = [one for one in predictions if not any(it.worker in names for it in leases.get(one["task"], ()))]
            if new:
                try:
                    self.service[self.campaign].add_predictions(model, new)
                except ConflictError as error:
                    self._tell(f"Predictions of {model} were left out: {error}")

    def _changes(self, task: Mapping[str, Any], leases: Iterable[LeaseRow]) -> dict[str, Answer | None]:
        """What each worker says about a task where the campaign has it otherwise."""
        answers = answers_of(task.get("annotations") or (), self.control)
        says: dict[str, Answer | None] = {self.annotators.of(user).worker: answer for user, answer in answers.items()}
        changes = dict(says)
        for lease in leases:
            if lease.predicted or lease.dropped:
                changes.pop(lease.worker, None)
                continue
            label = None if lease.label is None else self.control.labels[lease.label]
            said = says.get(lease.worker)
            if lease.worker in says:
                same = said == label if isinstance(said, str) else label is None and lease.status != "leased"
                if same:
                    del changes[lease.worker]
            elif label is not None and self.annotators.named(lease.worker) is not None:
                changes[lease.worker] = None
        return changes

    def _compare_again(self, number: int) -> int:
        """Compare a task with the campaign as both are now; returns how many answers were followed."""
        with self.annotators.lock(number):
            try:
                task = self.studio.task(number)
            except NotFoundError:
                return 0
            row = self.service.store.tasks_by_key(self.campaign, [str(number)]).get(str(number))
            if row is None:  # it is not in the campaign yet
                self.read_soon()
                return 0
            changes = self._changes(task, self.service.store.leases(self.campaign, [row.number]))
            for worker, answer in changes.items():
                self.service[self.campaign].set_answer(worker, str(number), answer)
        for worker, answer in changes.items():
            annotator = self.annotators.named(worker)
            if annotator is not None and annotator.gets_tasks and annotator.shown in (None, number):
                self._give(annotator, done=answer is not None)
        return len(changes)

    # Next tasks -------------------------------------------------------------------------------------------------

    def _give(self, annotator: Annotator, done: bool = False) -> None:
        """The annotator's tab shows the task that the campaign has for them; ``done``: the one before is labelled."""
        with annotator.lock:
            annotator.waits = True
            for _ in range(MOST_DELETED):
                lease = self.service[self.campaign].ask(annotator.worker)
                if not lease:
                    self.annotators.show(annotator, None, done)
                    return
                try:
                    self.annotators.show(annotator, int(lease.task), done)
                    annotator.waits = False
                    return
                except NotFoundError:  # it was deleted in Label Studio: they get another one
                    self.service[lease.campaign].release(lease.id)


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
    changed = same = 0
    for result in service[campaign].results():
        if result.labels == 0:
            continue
        task, score = int(result.task), round(result.probability, 6)
        said, before = {"result": control.result(result.label), "score": score}, there.get(task)
        if before is None:
            new.append({"task": task, "model_version": version, **said})
        elif control.label_of(before["result"]) == result.label and abs((before["score"] or 0) - score) < SAME:
            same += 1
        else:
            studio.change("predictions", before["id"], said)
            changed += 1
    for first in range(0, len(new), AT_ONCE):
        studio.add_predictions(project, new[first : first + AT_ONCE])
    return Pushed(version, len(new), changed, same)
