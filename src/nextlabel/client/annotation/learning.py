"""A learner is fitted to people's labels as they come in, and votes on tasks that it was not fitted to.

The campaign takes a worker's errors to be independent of other workers' errors on the same task. Three things would
break that, and are kept out (docs/decisions/0056):

- *A vote on a task that the learner was fitted to* repeats people's labels for it. The tasks are split into ``FOLDS``
  parts by their ids; the vote on a task comes from a learner that was fitted to the other parts only.
- *A learner that was taught by its own votes*. The targets are what people's labels say together (``crowd.fit``),
  and labels of models have no part in them.
- *Votes of several versions*, which repeat each other. When a new version votes on all tasks, the labels of the one
  before are dropped.

A version votes as ``model:NAME vK`` with its probabilities, so that the campaign learns each level of its confidence
for itself. It is fitted anew when there are ``refit_every`` more labels of people, and a quarter more than it saw.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np

from nextlabel.campaign.predictions import checked_model, workers_of
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.settings import shown_payload
from nextlabel.campaign.states import PREFIX
from nextlabel.client.annotation.calls import Answer, ModelCalls, Say, Sleep, checked_answer, said
from nextlabel.client.annotation.campaign import AnnotatedCampaign, Outcome, by_people, check_annotatable
from nextlabel.client.annotation.predicting import INTERRUPTED
from nextlabel.crowd.learn import learn_crowd
from nextlabel.errors import ConflictError, InputError

FOLDS: Final = 5
#: A learner is fitted anew when people's labels have grown by this share since.
GROWTH: Final = 0.25
#: Seconds between two looks at the campaign.
POLL_S: Final = 5.0


@dataclass(slots=True)
class Learning:
    """A learner on its way through a campaign; ``column`` is what it sees of a task, None for the whole payload."""

    campaign: AnnotatedCampaign
    model: str
    learner: Any
    refit_every: int = 100
    column: str | None = None
    say: Say = lambda sentence: None
    version: int = 0
    votes: int = 0
    #: People's labels that the last version was fitted to, and those at which the next one is due.
    fitted: int = 0
    due: int = 0
    _look_at: int = 0

    def __post_init__(self) -> None:
        self.model = checked_model(self.model)
        check_annotatable(self.campaign.status())
        self.version = max(self._versions(), default=0)
        self.due = self.refit_every

    def step(self, final: bool = False) -> bool:
        """Fit and vote if it is time, or with ``final`` if there are labels that the last version has not seen."""
        spent = self.campaign.status().spent
        if not final and spent < self._look_at:
            return False
        people = list(by_people(self.campaign))
        if len(people) < (max(self.fitted + 1, 2) if final else self.due):
            self._look_at = spent + self.due - len(people)  # all labels of people are bought
            return False
        tasks = list(self.campaign.results())
        self.due = len(people) + max(self.refit_every, int(GROWTH * len(people)))
        if len({one.label for one in people}) < 2:
            self.say(f"All of the {len(people):,} labels so far are the same: the learner waits for others.")
            return False
        try:
            answers = self._answers_to(tasks, _targets(people, tasks))
        except (InputError, KeyboardInterrupt):
            raise
        except Exception as error:
            self.say(f"The learner could not be fitted to {len(people):,} labels and waits for more: {said(error)}.")
            return False
        self.fitted = len(people)
        self._vote(tasks, answers)
        return True

    def _answers_to(self, tasks: list[Result], targets: dict[str, str]) -> list[Answer]:
        """What is said of each task by a learner that was not fitted to it."""
        status = self.campaign.status()
        reader = ModelCalls(lambda payload: None, status.settings.labels, column=self.column)
        inputs = [reader.handed_over(shown_payload(status.settings.show, one.payload)) for one in tasks]
        fold = np.array([crc32(one.task.encode()) % FOLDS for one in tasks])
        taught = np.array([one.task in targets for one in tasks])
        out: dict[int, Answer] = {}
        for part in range(FOLDS):
            train = np.flatnonzero(taught & (fold != part))
            fitted = _fit(self.learner, [inputs[k] for k in train], [targets[tasks[k].task] for k in train])
            test = np.flatnonzero(fold == part).tolist()
            found = _answers_of(fitted, [inputs[k] for k in test], status.settings.labels) if test else []
            out.update(zip(test, found, strict=True))
        return [out[k] for k in range(len(tasks))]

    def _vote(self, tasks: list[Result], answers: list[Answer]) -> None:
        """Drop what earlier versions said, then say the new."""
        labels = self.campaign.status().settings.labels
        older = self._versions()
        self.version = max(self.version, *older, 0) + 1
        for worker in [name for names in older.values() for name in names]:
            self.campaign.drop_labels(worker, f"version {self.version} follows")
        rows = [answer.row(one.task, labels) for one, answer in zip(tasks, answers, strict=True)]
        self.campaign.add_predictions(f"{self.model} v{self.version}", rows)
        self.votes = len(rows)

    def _versions(self) -> dict[int, list[str]]:
        """The workers of each version whose labels count."""
        found: dict[int, list[str]] = {}
        pattern = re.compile(re.escape(PREFIX + self.model) + r" v(\d+)(?: \([a-z ]+\))?")
        for one in self.campaign.workers():
            match = pattern.fullmatch(one.worker)
            if match is not None and one.worker in workers_of(f"{self.model} v{match[1]}"):
                found.setdefault(int(match[1]), []).extend([one.worker] if one.dropped < one.labels else [])
        return found


def learn_along(
    learning: Learning,
    *,
    once: bool = False,
    progress: Callable[[float], None] = lambda fraction: None,
    sleep: Sleep = time.sleep,
) -> Outcome:
    """Fit and vote again and again until the campaign is closed; with ``once``, a single time."""
    campaign, ended = learning.campaign, "The campaign is closed."
    try:
        while True:
            status = campaign.status()
            closed = status.state == "closed"
            if learning.step(final=closed or once):
                learning.say(
                    f"Version {learning.version} was fitted to {learning.fitted:,} labels and voted on "
                    f"{learning.votes:,} tasks."
                )
            if closed or once:
                ended = "The campaign is closed." if closed else "The learner was fitted once."
                break
            progress(status.spent / max(status.budget, 1))
            sleep(POLL_S)
    except KeyboardInterrupt:
        ended = INTERRUPTED
    if once and not learning.fitted:
        raise ConflictError(
            f"campaign {campaign.id!r} has no labels that the learner could be fitted to.",
            "Wait until people have given some, with every label among them.",
        )
    return Outcome(learning.model, learning.votes, ended, version=learning.version or None)


def _targets(people: list[GivenLabel], tasks: list[Result]) -> dict[str, str]:
    """What people's labels say together of each task that has one; control questions are what they are."""
    columns = {name: [getattr(one, name) for one in people] for name in ("task", "worker", "label")}
    crowd = learn_crowd(columns)
    known = {one.task: one.label for one in tasks if one.control}
    return {**dict(zip(crowd.task_names, crowd.predict(), strict=True)), **known}


def _fit(learner: Any, inputs: list[Any], labels: list[str]) -> Any:
    """A copy of the learner, fitted."""
    fitted = deepcopy(learner)
    done = fitted.fit(inputs, labels)
    return fitted if done is None else done


def _answers_of(fitted: Any, inputs: list[Any], labels: tuple[str, ...]) -> list[Answer]:
    """What a fitted learner says; a label that it has not seen has probability 0."""
    if not hasattr(fitted, "predict_proba"):
        return [_checked(one, labels) for one in fitted.predict(inputs)]
    found = np.asarray(fitted.predict_proba(inputs), dtype=float)
    names = [str(one) for one in getattr(fitted, "classes_", labels)]
    if found.shape != (len(inputs), len(names)) or not set(names) <= set(labels):
        raise InputError(
            f"predict_proba returned an array of shape {found.shape} for {len(inputs):,} tasks and the classes "
            f"{', '.join(names)[:120]}.",
            "It has a row for each task and a column for each label, named by classes_ as in scikit-learn.",
        )
    return [_checked(dict(zip(names, row, strict=True)), labels) for row in found.tolist()]


def _checked(returned: Any, labels: tuple[str, ...]) -> Answer:
    answer = checked_answer(returned, labels)
    if answer is None:
        raise InputError("the learner predicted None for a task.", f"It has to predict one of {', '.join(labels)}.")
    return answer
