"""One Data Manager tab per annotator, which shows the one task that is theirs now.

A tab's filter is fixed: the browser keeps its own copy of it and sends it with every request for the next task. So the
task changes instead: its data has the field ``nextlabel`` with the numbers of the people whose next task it is, each
between commas, and the tab of user 7 shows the tasks whose field contains ``,7,``. Label Studio gives nobody a task
that they have labelled, so that it may leave their tab later, when there is time or somebody else gets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, Final

from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.project import FIELD, user_of

FILTER: Final = f"filter:tasks:data.{FIELD}"
#: Locks of tasks, by the remainder of their numbers.
_LOCKS: Final = 64


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
