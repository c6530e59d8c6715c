"""What a campaign is set up with, checked once; as JSON it is the first event of the log.

============= ======================================================================================
field         meaning
============= ======================================================================================
labels        names of the answers; with two the second is answer 1, the one a model's score is about
budget        labels that may be bought
deadline      no lease after it, and none outlives it (seconds since 1970, UTC); None: no deadline
lease_seconds how long a worker may hold a task; None: learnt from completion times
prior         of tasks that have none of their own; None: every answer equally likely
strength      labels that a task's ``score`` is worth (Beta), unless ``accuracy`` makes it a one-coin prior
most_labels   labels a task at most, ``most_in_flight`` of them at once
label_cost    in the unit of the reward: a worker is turned away when no label is worth it
rho           labels in flight expected before rates are learnt
============= ======================================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.rewards import Accuracy, Reward
from nextlabel.beliefs.simplex import deepest
from nextlabel.errors import InputError, ProblemError
from nextlabel.policies.base import MOST_IN_FLIGHT, MOST_LABELS, MOST_NODES
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import TaskClass, positive, whole
from nextlabel.problem.tables import prior_from, prior_table, reward_from, reward_table

#: Answers, and characters of a label's name, of the campaign's name and of its question.
MOST_ANSWERS, LONGEST_LABEL, LONGEST_NAME, LONGEST_QUESTION = 26, 200, 200, 5_000
#: A lease is held for at least a second and at most thirty days.
LEASE_RANGE = (1.0, 30 * 86_400.0)


@dataclass(frozen=True)
class CampaignSettings:
    """A campaign's settings."""

    budget: int
    labels: tuple[str, ...] = ("0", "1")
    name: str = ""
    question: str = ""
    deadline: float | None = None
    lease_seconds: float | None = None
    policy: str = "index"
    prior: Prior | None = None
    threshold: float = 0.5
    reward: Reward = field(default_factory=Accuracy)
    strength: float = 4.0
    accuracy: float | None = None
    label_cost: float = 0.0
    most_labels: int = MOST_LABELS
    most_in_flight: int = MOST_IN_FLIGHT
    rho: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "labels", checked_labels(self.labels))
        set_(self, "budget", checked_budget(self.budget))
        set_(self, "name", _text("name", self.name, LONGEST_NAME))
        set_(self, "question", _text("question", self.question, LONGEST_QUESTION))
        set_(self, "deadline", checked_deadline(self.deadline))
        set_(self, "lease_seconds", checked_lease_seconds(self.lease_seconds))
        set_(self, "rho", positive("rho", self.rho, "Give the labels expected in flight at once, e.g. 1."))
        set_(self, "seed", whole("seed", self.seed, 0, "Give a whole number such as 0."))
        most = min(MOST_LABELS, deepest(self.answers, MOST_NODES))
        set_(self, "most_labels", _at_most("most_labels", self.most_labels, most, self.most_labels == MOST_LABELS))
        set_(self, "most_in_flight", _at_most("most_in_flight", self.most_in_flight, MOST_IN_FLIGHT, False))
        if self.prior is not None and self.prior.answers != self.answers:
            raise ProblemError(
                f"the prior {self.prior.describe()} has {self.prior.answers} answers and the campaign {self.answers}.",
                "Give one weight for each label.",
            )
        cost: Any = self.label_cost
        if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
            raise ProblemError(f"label cost {cost!r} is not a number of at least 0.", "Give e.g. 0.02.")
        set_(self, "label_cost", float(cost))
        self._check_policy()
        self.class_of(None)

    def _check_policy(self) -> None:
        policy = make_policy(self.policy)
        if policy.planned_ahead:
            raise InputError(
                f"policy {self.policy!r} plans for one budget and set of tasks, and a live campaign's may change.",
                "Use index, which follows both.",
            )
        policy.check_answers(self.answers)
        if self.label_cost > 0 and not policy.priced:
            raise InputError(
                f"policy {self.policy!r} does not say what a label is worth, so a label cost means nothing to it.",
                "Use index, or leave the label cost out.",
            )

    @property
    def answers(self) -> int:
        """J, the number of answers."""
        return len(self.labels)

    @cached_property
    def default_prior(self) -> Prior:
        """The prior of a task without one."""
        if self.prior is not None:
            return self.prior
        return Beta(1, 1) if self.answers == 2 else Dirichlet((1.0,) * self.answers)

    def class_of(self, prior: Prior | None, count: int = 1) -> TaskClass:
        """The class of ``count`` tasks with that prior."""
        return TaskClass(count, prior or self.default_prior, self.threshold, self.reward)

    def answer(self, label: object) -> int:
        """Number of a label's name."""
        name = str(label)
        if isinstance(label, bool) or name not in self.labels:
            raise InputError(
                f"label {name[:LONGEST_LABEL]!r} is not one of the campaign's.",
                f"Give one of {', '.join(self.labels)}.",
            )
        return self.labels.index(name)

    def to_dict(self) -> dict[str, Any]:
        """In the types of JSON."""
        out: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        out["labels"] = list(self.labels)
        out["prior"] = None if self.prior is None else prior_table(self.prior)
        out["reward"] = reward_table(self.reward)
        return out

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> CampaignSettings:
        """The inverse of ``to_dict``; keys may be left out, unknown ones are refused."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(table) - known)
        if unknown:
            raise InputError(f"unknown setting {unknown[0]!r}.", f"Known settings: {', '.join(sorted(known))}.")
        if "budget" not in table:
            raise InputError("the campaign has no budget.", "Give the number of labels that may be bought.")
        given = dict(table)
        if given.get("prior") is not None:
            given["prior"] = prior_from(given["prior"])
        if "reward" in given:
            given["reward"] = reward_from(given["reward"])
        return cls(**given)

    def changed(self, **changes: Any) -> CampaignSettings:
        """The same with other values."""
        return replace(self, **changes)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)


def checked_labels(labels: Any) -> tuple[str, ...]:
    """Two or more different names."""
    hint = 'Give two or more names, e.g. ["no", "yes"].'
    if isinstance(labels, str) or not isinstance(labels, list | tuple):
        raise InputError("labels are not a list of names.", hint)
    names = tuple(_text("a label", name, LONGEST_LABEL) for name in labels)
    if not 2 <= len(names) <= MOST_ANSWERS:
        raise InputError(f"the campaign has {len(names)} labels: give 2 to {MOST_ANSWERS}.", hint)
    if "" in names or len(set(names)) < len(names):
        raise InputError("a label is empty or there twice.", hint)
    return names


def checked_budget(budget: Any) -> int:
    """Labels that may be bought."""
    return whole("budget", budget, 1, "Give the number of labels that may be bought, e.g. 1200.")


def checked_deadline(deadline: Any) -> float | None:
    """Seconds since 1970, or none."""
    if deadline is None:
        return None
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not 0 < deadline < 1e11:
        raise InputError(f"deadline {deadline!r} is not a time.", "Give seconds since 1970, or leave it out.")
    return float(deadline)


def checked_lease_seconds(seconds: Any) -> float | None:
    """Seconds that a worker may hold a task, or none to learn them."""
    if seconds is None:
        return None
    low, high = LEASE_RANGE
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not low <= seconds <= high:
        raise InputError(
            f"lease time {seconds!r} is not a number of seconds from {low:g} to {high:g}.",
            "Give e.g. 600, or leave it out to have it learnt.",
        )
    return float(seconds)


def _text(what: str, value: Any, longest: int) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > longest or "\x00" in value:
        raise InputError(f"{what} is not a text of at most {longest} characters.", "Give a shorter text.")
    return value.strip()


def _at_most(name: str, value: Any, most: int, clip: bool) -> int:
    number = whole(name, value, 1, f"Give a whole number from 1 to {most}.")
    if number > most and not clip:
        raise ProblemError(f"{name} is {number}, more than can be planned for.", f"Give at most {most}.")
    return min(number, most)
