"""Calls of the user's function: not more of them than a pace allows, tried again when they fail, given up in the end.

A call that raises is made again after 1, 2, 4 ... seconds, or after the seconds that the error's own ``retry_after``
says. A task on which all tries fail is given up and counted; ``MOST_IN_A_ROW`` such tasks one after another end the
run, because then the function is broken and not the task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nextlabel.client.annotation.answers import Answer, checked_answer
from nextlabel.client.annotation.model_loading import said
from nextlabel.errors import InputError, NextlabelError
from nextlabel.prose import counted

#: Seconds before the second try, doubled each time up to the longest wait.
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
#: Tasks given up one after another before the run ends.
MOST_IN_A_ROW: Final = 10

Sleep = Callable[[float], None]
Say = Callable[[str], None]


class Pace:
    """At most ``per_minute`` tasks in a minute, evenly spaced; None for no limit."""

    def __init__(
        self, per_minute: float | None, sleep: Sleep = time.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = 0.0 if per_minute is None else 60.0 / per_minute
        self._sleep, self._clock, self._next = sleep, clock, 0.0

    def wait(self, tasks: int) -> None:
        """Wait until so many tasks may be begun."""
        now = self._clock()
        if self._next > now:
            self._sleep(self._next - now)
        self._next = max(self._next, now) + tasks * self._seconds


@dataclass(slots=True)
class ModelCalls:
    """The user's function, called with one payload, or with a list of them where it takes ``batches``."""

    function: Callable[[Any], Any]
    labels: Sequence[str]
    batches: bool = False
    column: str | None = None
    tries: int = 4
    pace: Pace = field(default_factory=lambda: Pace(None))
    say: Say = lambda sentence: None
    sleep: Sleep = time.sleep
    failed: int = 0
    _in_a_row: int = 0

    def answers(self, tasks: Sequence[str], payloads: Sequence[Any]) -> list[Answer | None]:
        """An answer for each task, None where there is none."""
        given = [self.handed_over(payload) for payload in payloads]
        if not self.batches:
            return [
                self._answers([task], one, lambda found: [found])[0] for task, one in zip(tasks, given, strict=True)
            ]
        return self._answers(tasks, given, lambda found: self._one_each(found, len(tasks)))

    def handed_over(self, payload: Any) -> Any:
        """What the function gets of a task: its payload, or the one column that was named."""
        if self.column is None:
            return payload
        if not isinstance(payload, dict) or self.column not in payload:
            known = f"It has {', '.join(map(str, payload))}." if isinstance(payload, dict) else "Leave --column out."
            raise InputError(f"a task has no column {self.column[:60]!r} that workers are shown.", known)
        return payload[self.column]

    def _answers(self, tasks: Sequence[str], given: Any, unpack: Callable[[Any], list[Any]]) -> list[Answer | None]:
        for made in range(1, self.tries + 1):
            self.pace.wait(len(tasks))
            try:
                found = self.function(given)
            except Exception as error:
                if made < self.tries:
                    self.sleep(_wait_after(error, made))
                    continue
                self._give_up(tasks, error)
                return [None] * len(tasks)
            self._in_a_row = 0
            return [checked_answer(one, self.labels) for one in unpack(found)]
        raise AssertionError("tries is at least 1")

    def _one_each(self, found: Any, tasks: int) -> list[Any]:
        try:
            answers = list(found)
        except TypeError:
            answers = [found]
        if len(answers) != tasks:
            raise InputError(
                f"the function returned {counted(len(answers), 'answer')} for a list of {counted(tasks, 'task')}.",
                "Return one answer for each, in the same order, or leave --batch out.",
            )
        return answers

    def _give_up(self, tasks: Sequence[str], error: Exception) -> None:
        self.failed += len(tasks)
        self._in_a_row += 1
        which = f"task {tasks[0][:60]!r}" if len(tasks) == 1 else f"{len(tasks):,} tasks from {tasks[0][:60]!r} on"
        self.say(f"{which}: the function failed {counted(self.tries, 'time')} and was given up: {said(error)}.")
        if self._in_a_row >= MOST_IN_A_ROW:
            raise NextlabelError(
                f"the function failed on {MOST_IN_A_ROW} calls one after another, last with {said(error)}.",
                "What was answered before is saved. Mend the function and run the command again.",
            ) from error


def _wait_after(error: Exception, made: int) -> float:
    """Seconds to wait after a call that failed."""
    told = getattr(error, "retry_after", None)
    if isinstance(told, int | float) and not isinstance(told, bool) and 0.0 <= told < float("inf"):
        return float(told)
    return float(min(FIRST_WAIT_S * 2.0 ** (made - 1), LONGEST_WAIT_S))
