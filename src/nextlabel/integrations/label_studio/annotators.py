"""The people who label in a project: their names as workers, and each one's tab with the task that is theirs now.

Everybody in the project's organisation may label in it, and so is an annotator unless a few are named. A worker is
called by the e-mail address, which Label Studio asks everybody for.

One Data Manager tab per annotator, which shows the one task that is theirs now.

A tab's filter is fixed: the browser keeps its own copy of it and sends it with every request for the next task. So the
task changes instead: its data has the field ``nextlabel`` with the numbers of the people whose next task it is, each
between commas, and the tab of user 7 shows the tasks whose field contains ``,7,``. Label Studio gives nobody a task
that they have labelled, so that it may leave their tab later, when there is time or somebody else gets it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any, Final

from nextlabel.errors import InputError, NotFoundError
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.project import FIELD, user_of
from nextlabel.prose import listed

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
    """All that are known, by number and by name."""

    def __init__(self, studio: LabelStudio, organisation: int, tabs: Tabs, only: Collection[str] | None = None) -> None:
        self._studio, self._organisation, self.tabs = studio, organisation, tabs
        self._only = None if only is None else {name.strip().lower() for name in only}
        self._by_user: dict[int, Annotator] = {}
        self._lock = Lock()
        self._to_hide: deque[tuple[int, int]] = deque()
        self._to_tidy: deque[tuple[int, int]] = deque()

    @property
    def all(self) -> list[Annotator]:
        """Those who get tasks."""
        return [one for one in list(self._by_user.values()) if one.gets_tasks]

    def refresh(self) -> None:
        """Look who is in the organisation; newcomers get a tab."""
        with self._lock:
            for user in self._studio.members(self._organisation):
                if user["id"] not in self._by_user:
                    self._add(int(user["id"]), str(user.get("email") or ""))
        if self._only is not None:
            missing = self._only - {one.worker.lower() for one in self._by_user.values()}
            if missing:
                raise InputError(
                    f"there is nobody called {listed(sorted(missing))} in the project's organisation.",
                    "Give the e-mail addresses of its members, separated by commas.",
                )

    def of(self, user: int) -> Annotator:
        """Somebody by number, who may be new."""
        if user not in self._by_user:
            self.refresh()
        with self._lock:
            if user not in self._by_user:  # somebody who has left
                self._by_user[user] = Annotator(user, f"user {user}", gets_tasks=False)
            return self._by_user[user]

    def find(self, user: int) -> Annotator | None:
        """Somebody by number, if they are known."""
        return self._by_user.get(user)

    def named(self, worker: str) -> Annotator | None:
        """Somebody by name."""
        return next((one for one in list(self._by_user.values()) if one.worker == worker), None)

    def is_theirs(self, worker: str) -> bool:
        """Whether a worker of the campaign is one of these people, and not somebody who labels elsewhere."""
        return self.named(worker) is not None

    def show(self, annotator: Annotator, task: int | None, done: bool = False) -> None:
        """The annotator's tab shows a task or nothing; what it showed before leaves it, without hurry if ``done``."""
        before = annotator.shown
        if task is not None and task != before:
            self.tabs.show(annotator.user, task)
        annotator.shown = task
        if before is not None and before != task:
            self.hide_later(annotator.user, before, done)

    def hide_later(self, user: int, task: int, done: bool) -> None:
        """The task is to leave the user's tab; if they have labelled it, there is no hurry."""
        (self._to_tidy if done else self._to_hide).append((user, task))

    def hide_now(self, most: int) -> None:
        """Take away what is to leave the tabs, and of what was labelled at most so many."""
        for queue, many in ((self._to_hide, len(self._to_hide)), (self._to_tidy, most)):
            for _ in range(min(many, len(queue))):
                user, task = queue[0]
                annotator = self.find(user)
                if annotator is None or annotator.shown != task:  # else it has come back
                    with suppress(NotFoundError):
                        self.tabs.hide(user, task)
                queue.popleft()

    def _add(self, user: int, email: str) -> None:
        worker = email or f"user {user}"
        gets_tasks = self._only is None or worker.lower() in self._only
        if gets_tasks:
            self.tabs.make(user, worker)
        self._by_user[user] = Annotator(user, worker, gets_tasks)


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


class Tabs:
    """The tabs of one project."""

    def __init__(self, studio: LabelStudio, project: int) -> None:
        self._studio, self._project = studio, project
        self._numbers: dict[int, int] | None = None
        self._locks = tuple(Lock() for _ in range(_LOCKS))

    def lock(self, task: int) -> Lock:
        """What whoever compares or changes a task holds."""
        return self._locks[task % _LOCKS]

    def make(self, user: int, name: str) -> None:
        """The user's tab, unless it is there."""
        if self._numbers is None:
            there = {user_of_tab(tab): int(tab["id"]) for tab in reversed(self._studio.tabs(self._project))}
            self._numbers = {owner: number for owner, number in there.items() if owner is not None}
        if user not in self._numbers:
            self._numbers[user] = int(self._studio.create_tab(self._project, tab_data(user, name))["id"])

    def link(self, user: int) -> str:
        """The address at which the user labels."""
        return f"{self._studio.url}/projects/{self._project}/data?tab={(self._numbers or {})[user]}&labeling=1"

    def show(self, user: int, task: int) -> None:
        """The task is the user's; NotFoundError if it was deleted."""
        self._change(task, add=user)

    def hide(self, user: int, task: int) -> None:
        """The task is not the user's any more."""
        self._change(task, remove=user)

    def _change(self, task: int, add: int | None = None, remove: int | None = None) -> None:
        with self.lock(task):
            found = self._studio.task(task)
            data = found["data"]
            users = users_in(data.get(FIELD))
            done = {user_of(annotation) for annotation in found.get("annotations") or ()}
            wanted = (users - done | {add} if add is not None else users - done) - {remove}
            if wanted == users:
                return
            self._studio.change_task(task, {**data, FIELD: mark_of(wanted)})
