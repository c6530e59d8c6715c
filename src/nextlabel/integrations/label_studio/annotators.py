"""The people who label in a project: their names as workers, their tabs, and the task that each tab shows.

Everybody in the project's organisation may label in it, and so is an annotator unless a few are named. A worker is
called by the e-mail address, which Label Studio asks everybody for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock, RLock

from nextlabel.errors import InputError, NotFoundError
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.tabs import Tabs
from nextlabel.prose import listed


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
