"""A model labels the tasks of a campaign as worker ``model:NAME``: ``nextlabel annotate`` (docs/annotate.md).

*A function* labels all tasks, the least certain first, as predictions (``predict_tasks``), or asks for tasks one by one
and has each label bought like a person's (``buy_labels``). Predictions are sent some at a time: a sending is charged in
whole labels, rounded up, so that its size is chosen to lose next to nothing to rounding. The function is not called for
tasks that the budget cannot pay for. Whatever was answered is sent before the run ends, also after Ctrl-C; tasks that
the model has answered in an earlier run are left out, so that a run that was broken off is finished by running it
again. A lease keeps a second run from doing the same work, and is given back when the function fails, returns nothing
or is interrupted.

A call that raises is made again after 1, 2, 4 ... seconds, or after the seconds that the error's own ``retry_after``
says. A task on which all tries fail is given up and counted; ``MOST_IN_A_ROW`` such tasks one after another end the
run, because then the function is broken and not the task. What a function may return for a task:

============================== ==================================================================================
returned                       meaning
============================== ==================================================================================
``"yes"`` or ``1``             a label by its name
``{"no": 0.2, "yes": 0.8}``    a probability for each label; a label that is left out has 0
``[0.2, 0.8]``                 the same in the order of the campaign's labels; NumPy arrays too
``None``                       no answer: the task is left to others
============================== ==================================================================================

*A learner* is taught by people's labels as they come in (``Learning``): it is the joint model's (``crowd.learner``),
fitted here, where its code is; each fifth of the tasks is foretold by one that has not seen its labels. What it says of
every task goes to the campaign as features, from which the campaign's refits learn how far to believe it. It is fitted
anew when there are ``refit_every`` more labels of people, and a quarter more than it saw.
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

import numpy as np

from nextlabel.application.service import Campaign
from nextlabel.application.status import CampaignStatus
from nextlabel.campaign.predictions import checked_cost, checked_model, workers_of
from nextlabel.campaign.replies import Lease
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.settings import shown_payload
from nextlabel.campaign.states import PREFIX, Reason
from nextlabel.client.client import ServiceCampaign
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.learner import learn_jointly
from nextlabel.errors import ConflictError, InputError, NextlabelError
from nextlabel.files.features import Features
from nextlabel.files.predictions import SLACK
from nextlabel.wording import counted, listed

#: A campaign on a database, or behind a service's address: both have the same methods.
AnnotatedCampaign = Campaign | ServiceCampaign


def check_annotatable(status: CampaignStatus) -> None:
    """Refuse campaigns in which a model would count like a person, and those without tasks."""
    if not status.settings.knows_workers:
        raise ConflictError(
            f"campaign {status.id!r} has the policy {status.settings.policy!r}, which takes all workers to be alike: a "
            "model among them would count like a person.",
            "Use a campaign with the policy crowd, which is the default.",
        )
    if status.tasks == 0:
        raise ConflictError(f"campaign {status.id!r} has no tasks.", "Add them first: nextlabel campaign add.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """``labels`` that the model gave and that the campaign has now, ``known`` tasks that it had answered before,
    ``failed`` tasks on which its function was given up, ``passed`` tasks for which it returned None, ``charged`` labels
    of the budget; ``taught``: labels of people by which a learner was taught; why the run ended, as a sentence."""

    model: str
    labels: int
    ended: str
    known: int = 0
    failed: int = 0
    passed: int = 0
    charged: int = 0
    taught: int | None = None


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
        if self.batches:
            return self._answers(tasks, given)
        return [self._answers([task], one)[0] for task, one in zip(tasks, given, strict=True)]

    def handed_over(self, payload: Any) -> Any:
        """What the function gets of a task: its payload, or the one column that was named."""
        if self.column is None:
            return payload
        if not isinstance(payload, dict) or self.column not in payload:
            known = f"It has {', '.join(map(str, payload))}." if isinstance(payload, dict) else "Leave --column out."
            raise InputError(f"a task has no column {self.column[:60]!r} that workers are shown.", known)
        return payload[self.column]

    def _answers(self, tasks: Sequence[str], given: Any) -> list[Answer | None]:
        for made in range(1, self.tries + 1):
            self.pace.wait(len(tasks))
            try:
                found = self.function(given)
                break
            except Exception as error:
                if made == self.tries:
                    self._give_up(tasks, error)
                    return [None] * len(tasks)
                self.sleep(_wait_after(error, made))
        self._in_a_row = 0
        answers = found if self.batches else [found]
        if not hasattr(answers, "__iter__") or len(answers := list(answers)) != len(tasks):
            many = len(answers) if isinstance(answers, list) else 1
            raise InputError(
                f"the function returned {counted(many, 'answer')} for a list of {counted(len(tasks), 'task')}.",
                "Return one answer for each, in the same order, or leave --batch out.",
            )
        return [checked_answer(one, self.labels) for one in answers]

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
        named = {str(name): p for name, p in returned.items()}
        unknown = next((name for name in named if name not in labels), None)
        if unknown is not None:
            raise InputError(
                f"the function returned a probability for {unknown[:60]!r}, which is not one of the campaign's labels.",
                f"They are {listed(labels)}.",
            )
        returned = [named.get(label, 0.0) for label in labels]
    if isinstance(returned, list | tuple):
        return _from_probabilities(returned, labels)
    name = str(returned)
    if isinstance(returned, bool) or name not in labels:
        raise InputError(
            f"the function returned {name[:60]!r}, which is not one of the campaign's labels.",
            f"Return one of {listed(labels)}, probabilities, or None for no answer.",
        )
    return Answer(name)


def _from_probabilities(found: Sequence[Any], labels: Sequence[str]) -> Answer:
    if len(found) != len(labels):
        raise InputError(
            f"the function returned {len(found)} probabilities, and the campaign has {len(labels)} labels.",
            f"Return one for each of {listed(labels)}, in this order.",
        )
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
    return Answer(labels[shares.index(max(shares))], shares)


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


#: Predictions that are sent together, about; and seconds after which free ones are sent although they are fewer.
TOGETHER: Final = 100
PATIENCE_S: Final = 20.0
INTERRUPTED: Final = "Stopped on request; what was answered is saved, and the same command goes on."

#: Reasons after which asking again is of use; after all others the run ends.
WAITED_OUT: Final[tuple[Reason, ...]] = ("all_leased", "paused", "preparing", "worker_paused", "turned_away")

#: Seconds between two asks where the campaign does not say.
USUAL_WAIT_S: Final = 10.0


def predict_tasks(
    campaign: AnnotatedCampaign,
    model: str,
    calls: ModelCalls,
    *,
    cost: float = 0.0,
    most: int | None = None,
    batch: int = 1,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Outcome:
    """Have the function label every task that it has not labelled yet, at most ``most`` of them."""
    name, price = checked_model(model), checked_cost(cost)
    status = campaign.status()
    check_annotatable(status)
    names = set(workers_of(name))
    known = {one.task for one in campaign.labels() if one.worker in names}
    todo = [  # the least certain first, and controls before them
        (task, payload)
        for *_, task, payload in sorted(
            (not one.control, one.probability, number, one.task, shown_payload(status.settings.show, one.payload))
            for number, one in enumerate(campaign.results())
            if one.task not in known
        )
    ]
    ended = "The function has seen every task."
    if most is not None and most < len(todo):
        todo, ended = todo[:most], f"The function has seen the {most:,} tasks of --most."
    sending = _Sending(campaign, name, price, status.settings.labels)
    done = passed = 0
    try:
        while done < len(todo):
            paid = math.inf if price == 0.0 else math.floor(campaign.status().left / price + 1e-9)
            some = todo[done : done + min(together(price), int(min(paid, len(todo))))]
            if not some:
                ended = "The budget does not pay for another prediction."
                break
            for part in (some[k : k + batch] for k in range(0, len(some), batch)):
                tasks, payloads = zip(*part, strict=True)
                answers = calls.answers(tasks, payloads)
                passed += answers.count(None)
                sending.add(tasks, answers)
                done += len(part)
                progress(done / len(todo))
            if not sending.send():
                ended = "The budget was spent by others before all predictions were paid for."
                break
    except KeyboardInterrupt:
        ended = INTERRUPTED
        sending.send()
    except BaseException:
        sending.send()
        raise
    return Outcome(name, sending.sent, ended, len(known), calls.failed, passed - calls.failed, sending.charged)


def together(cost: float) -> int:
    """How many predictions are sent together: about ``TOGETHER``, costing as near to whole labels as can be."""
    if cost == 0.0:
        return TOGETHER
    whole = max(1, math.ceil(TOGETHER * cost - 1e-9))
    return max(1, math.floor(whole / cost + 1e-9))


@dataclass(slots=True)
class _Sending:
    """Answers that wait to be sent, and what became of those that were."""

    campaign: AnnotatedCampaign
    model: str
    cost: float
    labels: tuple[str, ...]
    sent: int = 0
    charged: int = 0
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _last: float = field(default_factory=time.monotonic)

    def add(self, tasks: Sequence[str], answers: list[Answer | None]) -> None:
        """Keep answers; free ones are sent when they have waited for long."""
        found = zip(tasks, answers, strict=True)
        self._rows += [answer.row(task, self.labels) for task, answer in found if answer is not None]
        if self.cost == 0.0 and time.monotonic() - self._last > PATIENCE_S:
            self.send()

    def send(self) -> bool:
        """Send what waits; False if the budget could not pay for all of it."""
        for rows in ([r for r in self._rows if "label" in r], [r for r in self._rows if "label" not in r]):
            if rows and not self._send(rows):
                self._rows = []
                return False
        self._rows, self._last = [], time.monotonic()
        return True

    def _send(self, rows: list[dict[str, Any]]) -> bool:
        """All rows have the same columns. People may have spent the budget meanwhile: then as many as it pays for."""
        while rows:
            left = math.inf if self.cost == 0.0 else math.floor(self.campaign.status().left / self.cost + 1e-9)
            paid = rows if left >= len(rows) else rows[: int(left)]
            if not paid:
                return False
            try:
                added = self.campaign.add_predictions(self.model, paid, cost=self.cost)
            except ConflictError:
                if self.cost == 0.0 or self.campaign.status().left >= math.ceil(self.cost * len(paid) - 1e-9):
                    raise  # not for want of budget
                continue
            self.sent, self.charged = self.sent + added.added, self.charged + added.charged
            return len(paid) == len(rows)
        return True


def buy_labels(
    campaign: AnnotatedCampaign,
    model: str,
    calls: ModelCalls,
    *,
    most: int | None = None,
    progress: Callable[[float], None] = lambda fraction: None,
    sleep: Sleep = time.sleep,
) -> Outcome:
    """Ask and tell until the campaign has no task for the model, or ``most`` labels were given."""
    name = checked_model(model)
    status = campaign.status()
    check_annotatable(status)
    wanted = min(most or status.left, status.left)
    given, passed, ended = 0, 0, f"The model has given the {most or 0:,} labels of --most."
    try:
        while most is None or given < most:
            lease = campaign.ask(PREFIX + name)
            if not isinstance(lease, Lease):
                if lease.reason not in WAITED_OUT:
                    ended = lease.sentence
                    break
                sleep(lease.retry_after or USUAL_WAIT_S)
                continue
            answer = None
            try:
                (answer,) = calls.answers([lease.task], [lease.payload])
            finally:
                if answer is None:  # whatever went wrong
                    campaign.release(lease)
            if answer is None:
                passed += 1
                continue
            campaign.tell(lease, answer.label)
            given += 1
            progress(given / max(wanted, given))
    except KeyboardInterrupt:
        ended = INTERRUPTED
    return Outcome(name, given, ended, failed=calls.failed, passed=passed - calls.failed, charged=given)


#: A learner is fitted anew when people's labels have grown by this share since.
GROWTH: Final = 0.25
#: Seconds between two looks at the campaign.
POLL_S: Final = 5.0


@dataclass(slots=True)
class Learning:
    """A learner on its way through a campaign; ``column`` is what it sees of a task, None for the whole payload."""

    campaign: AnnotatedCampaign
    learner: Any
    refit_every: int = 100
    column: str | None = None
    say: Say = lambda sentence: None
    #: People's labels that it was last taught by, and those at which it is due again.
    fitted: int = 0
    due: int = 0
    _look_at: int = 0

    def __post_init__(self) -> None:
        check_annotatable(self.campaign.status())
        self.due = self.refit_every

    def step(self, final: bool = False) -> bool:
        """Teach it if it is time, or with ``final`` if there are labels that it has not seen."""
        spent = self.campaign.status().spent
        if not final and spent < self._look_at:
            return False
        labels = self.campaign.labels()  # no model's, which a learner must not be taught by
        people = [one for one in labels if one.counted and not one.worker.startswith(PREFIX)]
        if len(people) < (max(self.fitted + 1, 2) if final else self.due):
            self._look_at = spent + self.due - len(people)  # all labels of people are bought
            return False
        self.due = len(people) + max(self.refit_every, int(GROWTH * len(people)))
        if len({one.label for one in people}) < 2:
            self.say(f"All of the {len(people):,} labels so far are the same: the learner waits for others.")
            return False
        try:
            said = self._foretell(people, list(self.campaign.results()))
        except InputError as error:
            if self.fitted or final:
                raise
            self.say(f"The learner waits for more than {len(people):,} labels: {error.message}")
            return False
        if said is None:
            self.say(f"{len(people):,} labels are too few for a learner, which waits for more.")
            return False
        self.campaign.add_features(said)
        self.fitted = len(people)
        self.say(f"The learner was taught by {len(people):,} labels and foretold {len(said):,} tasks.")
        return True

    def _foretell(self, people: list[GivenLabel], tasks: list[Result]) -> Features | None:
        """Log probabilities of each task's answers, by a learner that has not seen its labels; None for too few."""
        settings = self.campaign.status().settings
        reader = ModelCalls(lambda payload: None, settings.labels, column=self.column)
        inputs = tuple(reader.handed_over(shown_payload(settings.show, one.payload)) for one in tasks)
        number = {one.task: k for k, one in enumerate(tasks)}
        answer = {label: k for k, label in enumerate(settings.labels)}
        worker: dict[str, int] = {}
        rows = [(number[one.task], worker.setdefault(one.worker, len(worker)), answer[one.label]) for one in people]
        task, who, label = np.array(rows).T
        labels = CrowdLabels(task, who, label, len(tasks), len(worker), len(answer))
        gold = np.array([answer[one.label] if one.control else -1 for one in tasks])
        seen = Features(tuple(number), np.zeros((len(tasks), 0), dtype=np.float32), inputs=inputs)
        chance = learn_jointly(labels, gold, seen, seen.tasks, self.learner)[1].chance
        return Features(seen.tasks, np.log(chance).astype(np.float32)) if np.isfinite(chance).all() else None


def learn_along(
    learning: Learning,
    name: str,
    *,
    once: bool = False,
    progress: Callable[[float], None] = lambda fraction: None,
    sleep: Sleep = time.sleep,
) -> Outcome:
    """Teach the learner again and again until the campaign is closed; with ``once``, a single time."""
    campaign, ended = learning.campaign, "The campaign is closed."
    try:
        while True:
            status = campaign.status()
            closed = status.state == "closed"
            learning.step(final=closed or once)
            if closed or once:
                ended = "The campaign is closed." if closed else "The learner was taught once."
                break
            progress(status.spent / max(status.budget, 1))
            sleep(POLL_S)
    except KeyboardInterrupt:
        ended = INTERRUPTED
    if once and not learning.fitted:
        raise ConflictError(
            f"campaign {campaign.id!r} has no labels that the learner could be taught by.",
            "Wait until people have labelled ten items or more, with every label among them.",
        )
    return Outcome(name, 0, ended, taught=learning.fitted)
