"""The user's function: loaded by its name, called at a pace and again when it fails, and its answers checked.

A call that raises is made again after 1, 2, 4 ... seconds, or after the seconds that the error's own ``retry_after``
says. A task on which all tries fail is given up and counted; ``MOST_IN_A_ROW`` such tasks one after another end the
run, because then the function is broken and not the task.

What a user's function may return for a task, checked against the campaign's labels.

============================== ==================================================================================
returned                       meaning
============================== ==================================================================================
``"yes"`` or ``1``             a label by its name
``{"no": 0.2, "yes": 0.8}``    a probability for each label; a label that is left out has 0
``[0.2, 0.8]``                 the same in the order of the campaign's labels; NumPy arrays too
``None``                       no answer: the task is left to others
============================== ==================================================================================
"""

from __future__ import annotations

import importlib
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from nextlabel.errors import InputError, NextlabelError
from nextlabel.files.predictions import SLACK
from nextlabel.prose import counted, listed

#: Seconds before the second try, doubled each time up to the longest wait.
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0

#: Tasks given up one after another before the run ends.
MOST_IN_A_ROW: Final = 10
Sleep = Callable[[float], None]
Say = Callable[[str], None]

#: Before a label's name in a prediction's column of probabilities (``files.predictions``).
COLUMN = "p_"
_EXAMPLE: Final = "Give e.g. --model my_model:label for the function label in my_model.py in this folder."

#: Of a foreign error's text, so much is shown.
SHOWN: Final = 200


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


class Answer(NamedTuple):
    """A label, and the probabilities of all labels where the function gave them."""

    label: str
    probabilities: tuple[float, ...] | None = None

    def row(self, task: str, labels: Sequence[str]) -> dict[str, Any]:
        """The prediction as ``add_predictions`` reads it."""
        if self.probabilities is None:
            return {"task": task, "label": self.label}
        named = {COLUMN + label: p for label, p in zip(labels, self.probabilities, strict=True)}
        return {"task": task, **named}


def checked_answer(returned: Any, labels: Sequence[str]) -> Answer | None:
    """What was returned as an answer; None for none, an InputError for what is neither."""
    if returned is None:
        return None
    if hasattr(returned, "tolist"):  # NumPy's arrays and numbers
        returned = returned.tolist()
    if isinstance(returned, Mapping):
        return _from_probabilities(_in_order({str(name): p for name, p in returned.items()}, labels), labels)
    if isinstance(returned, list | tuple):
        if len(returned) != len(labels):
            raise InputError(
                f"the function returned {len(returned)} probabilities, and the campaign has {len(labels)} labels.",
                f"Return one for each of {listed(labels)}, in this order.",
            )
        return _from_probabilities(list(returned), labels)
    name = str(returned)
    if isinstance(returned, bool) or name not in labels:
        raise InputError(
            f"the function returned {name[:60]!r}, which is not one of the campaign's labels.",
            f"Return one of {listed(labels)}, probabilities, or None for no answer.",
        )
    return Answer(name)


def _in_order(named: dict[str, Any], labels: Sequence[str]) -> list[Any]:
    unknown = next((name for name in named if name not in labels), None)
    if unknown is not None:
        raise InputError(
            f"the function returned a probability for {unknown[:60]!r}, which is not one of the campaign's labels.",
            f"They are {listed(labels)}.",
        )
    return [named.get(label, 0.0) for label in labels]


def _from_probabilities(found: list[Any], labels: Sequence[str]) -> Answer:
    for p in found:
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0.0 <= float(p) <= 1.0 + SLACK:
            raise InputError(
                f"the function returned {str(p)[:40]!r}, which is no probability.", "Return numbers from 0 to 1."
            )
    total = math.fsum(map(float, found))
    if abs(total - 1.0) > SLACK:
        raise InputError(
            f"the function returned probabilities that add up to {total:.4g}.", "Return such that add up to 1."
        )
    shares = tuple(float(p) / total for p in found)
    return Answer(labels[max(range(len(shares)), key=lambda k: shares[k])], shares)


def load_model(given: str) -> Any:
    """The object that ``module:name`` names; a class is called without arguments to make one.

    The current folder is searched first, so that a file beside the data needs no installation.
    """
    module_name, _, name = given.partition(":")
    if not module_name or not name.isidentifier():
        raise InputError(f"--model {given[:SHOWN]!r} is not of the form module:function.", _EXAMPLE)
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise InputError(
                f"module {module_name!r} needs {error.name!r}, which is not installed.", "Install it."
            ) from error
        raise InputError(f"there is no module {module_name[:SHOWN]!r}.", _EXAMPLE) from error
    except Exception as error:
        raise InputError(f"module {module_name!r} cannot be imported: {said(error)}.", "Mend it first.") from error
    if not hasattr(module, name):
        raise InputError(f"module {module_name!r} has no {name!r}.", "Give the name of a function or object in it.")
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise InputError(
                f"{given!r} cannot be made without arguments: {said(error)}.", "Give a function or an instance."
            ) from error
    if not (callable(found) or is_learner(found)):
        raise InputError(
            f"{given!r} is neither a function nor an object with fit and predict_proba.",
            "See docs/annotate.md for both.",
        )
    return found


def is_learner(model: Any) -> bool:
    """Whether a model learns from labels: it has ``fit``, and ``predict_proba`` or ``predict``, as in scikit-learn."""
    return hasattr(model, "fit") and (hasattr(model, "predict_proba") or hasattr(model, "predict"))


def default_name(given: str) -> str:
    """The name under which a model labels if none is given: its module's."""
    return given.partition(":")[0].rpartition(".")[2]


def said(error: BaseException) -> str:
    """A foreign error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:SHOWN].rstrip(".") if text else type(error).__name__
