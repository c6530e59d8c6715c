"""A campaign's settings, checked once (``declaration`` says what each means); as JSON they open the log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Required, TypedDict

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.fact import Fact
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.rewards import Accuracy, Reward
from nextlabel.beliefs.simplex import deepest
from nextlabel.campaign.declaration import LONGEST_LABEL, MOST_IN_FLIGHT, MOST_LABELS, SETTINGS
from nextlabel.campaign.setting_checks import (
    at_most,
    check_names_fit,
    check_turning_away,
    checked_budget,
    checked_completion_code,
    checked_deadline,
    checked_display_names,
    checked_instructions,
    checked_labels,
    checked_language,
    checked_lease_seconds,
    checked_name,
    checked_pay,
    checked_question,
    checked_quota,
    checked_show,
    checked_switch,
    in_range,
    policy_name,
)
from nextlabel.errors import InputError, ProblemError
from nextlabel.files.tasks import SCORE_NAMES
from nextlabel.policies.base import MOST_NODES, Policy
from nextlabel.policies.registry import POLICIES, knows_workers, make_policy
from nextlabel.problem.tables import prior_from, prior_table, reward_from, reward_table
from nextlabel.problem.tasks import TaskClass, positive, whole
from nextlabel.prose import listed

#: Settings that are lists of texts, or nothing.
LISTS: Final = ("display_names", "show")
ALL: Final = "*"

#: Words that make a column's name look personal.
_PERSONAL: Final = frozenset({
    "email", "mail", "phone", "telephone", "tel", "mobile", "fax", "ip", "address", "street", "postcode", "zip",
    "zipcode", "ssn", "passport", "iban", "birth", "birthday", "birthdate", "birthplace", "dob", "surname", "firstname",
    "lastname", "fullname", "username", "nickname", "forename", "salary", "gender", "religion", "ethnicity", "latitude",
    "longitude",
})  # fmt: skip

#: Words before 'name' that make it a person's; 'name' alone is one too.
_WHOSE: Final = frozenset({
    "first", "last", "full", "middle", "given", "family", "user", "nick", "maiden", "customer", "client", "patient",
    "person", "author", "employee", "student", "contact", "sender", "recipient", "worker", "reviewer", "member",
    "owner",
})  # fmt: skip
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")


class Changeable(TypedDict, total=False):
    """The settings that need not be given and may change while a campaign runs, as keyword arguments."""

    deadline: datetime | str | float | None
    lease_seconds: float | None
    pay_per_label: float
    most_labels_per_worker: int | None
    completion_code: str
    name: str
    question: str
    display_names: Sequence[str] | None
    instructions: str
    language: str | None
    show: Sequence[str] | None
    turn_away: bool


class ChangeOptions(Changeable, total=False):
    """All settings that may change while a campaign runs."""

    budget: int


class SettingOptions(Changeable, total=False):
    """A campaign's settings as keyword arguments: the types that ``CampaignSettings.from_dict`` takes."""

    budget: Required[int]
    labels: Sequence[str]
    policy: str | Policy
    prior: Prior | tuple[float, ...] | list[float] | Mapping[str, Any] | None
    threshold: float
    reward: Reward | str | Mapping[str, Any]
    strength: float
    accuracy: float | None
    label_cost: float
    most_labels: int
    most_in_flight: int
    rho: float
    seed: int
    gold_in_budget: bool


@dataclass(frozen=True)
class CampaignSettings:
    """A campaign's settings; ``campaign.declaration`` has the help text and range of each."""

    budget: int
    labels: tuple[str, ...] = SETTINGS["labels"].default
    name: str = SETTINGS["name"].default
    question: str = SETTINGS["question"].default
    display_names: tuple[str, ...] | None = SETTINGS["display_names"].default
    instructions: str = SETTINGS["instructions"].default
    language: str | None = SETTINGS["language"].default
    show: tuple[str, ...] | None = SETTINGS["show"].default
    deadline: float | None = SETTINGS["deadline"].default
    lease_seconds: float | None = SETTINGS["lease_seconds"].default
    policy: str = SETTINGS["policy"].default
    prior: Prior | None = SETTINGS["prior"].default
    threshold: float = SETTINGS["threshold"].default
    reward: Reward = field(default_factory=Accuracy)
    strength: float = SETTINGS["strength"].default
    accuracy: float | None = SETTINGS["accuracy"].default
    label_cost: float = SETTINGS["label_cost"].default
    most_labels: int = SETTINGS["most_labels"].default
    most_in_flight: int = SETTINGS["most_in_flight"].default
    rho: float = SETTINGS["rho"].default
    seed: int = SETTINGS["seed"].default
    gold_in_budget: bool = SETTINGS["gold_in_budget"].default
    turn_away: bool = SETTINGS["turn_away"].default
    pay_per_label: float = SETTINGS["pay_per_label"].default
    most_labels_per_worker: int | None = SETTINGS["most_labels_per_worker"].default
    completion_code: str = SETTINGS["completion_code"].default

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "labels", checked_labels(self.labels))
        set_(self, "policy", policy_name(self.policy))
        prior: Any = self.prior
        if prior is not None and not isinstance(prior, Prior):
            set_(self, "prior", prior_from(list(prior) if isinstance(prior, tuple) else prior))
        set_(self, "budget", checked_budget(self.budget))
        set_(self, "name", checked_name(self.name))
        set_(self, "question", checked_question(self.question))
        set_(self, "display_names", checked_display_names(self.display_names))
        check_names_fit(self.display_names, self.labels)
        set_(self, "instructions", checked_instructions(self.instructions))
        set_(self, "language", checked_language(self.language))
        set_(self, "show", checked_show(self.show))
        set_(self, "deadline", checked_deadline(self.deadline))
        set_(self, "lease_seconds", checked_lease_seconds(self.lease_seconds))
        set_(self, "rho", positive("rho", self.rho, "Give the labels expected in flight at once, e.g. 1."))
        set_(self, "gold_in_budget", checked_switch("gold_in_budget", self.gold_in_budget))
        set_(self, "turn_away", checked_switch("turn_away", self.turn_away))
        set_(self, "pay_per_label", checked_pay(self.pay_per_label))
        set_(self, "most_labels_per_worker", checked_quota(self.most_labels_per_worker))
        set_(self, "completion_code", checked_completion_code(self.completion_code))
        set_(self, "seed", whole("seed", self.seed, 0, "Give a whole number such as 0."))
        most = min(MOST_LABELS, deepest(self.answers, MOST_NODES))
        set_(self, "most_labels", at_most("most_labels", self.most_labels, most, self.most_labels == MOST_LABELS))
        set_(self, "most_in_flight", at_most("most_in_flight", self.most_in_flight, MOST_IN_FLIGHT, False))
        if self.prior is not None and self.prior.answers != self.answers:
            raise ProblemError(
                f"the prior {self.prior.describe()} has {self.prior.answers} answers and the campaign {self.answers}.",
                "Give one weight for each label.",
            )
        for name in ("label_cost", "strength", "accuracy"):
            set_(self, name, in_range(name, getattr(self, name)))
        self._check_policy()
        self.class_of(None)

    def _check_policy(self) -> None:
        policy = make_policy(self.policy)
        if self.knows_workers:
            self._check_crowd()
        elif isinstance(self.prior, Fact):
            raise InputError(
                f"policy {self.policy!r} takes workers to be alike, and a fact prior does not say how good they are.",
                'Use the policy crowd, or a prior such as kind = "one-coin".',
            )
        elif not policy.live:
            raise InputError(
                f"policy {self.policy!r} plans for one budget and set of tasks, and a live campaign's may change.",
                "Use auto or index, which follow both.",
            )
        check_turning_away(self.turn_away, self.policy)
        policy.check_answers(self.answers)
        if self.label_cost > 0 and not policy.priced:
            raise InputError(
                f"policy {self.policy!r} does not say what a label is worth, so a label cost means nothing to it.",
                "Use index, or leave the label cost out.",
            )

    def _check_crowd(self) -> None:
        """Refuse what the model of workers who differ has no place for."""
        hint = "Leave it out, or choose the policy index, which takes workers to be alike."
        if self.threshold != SETTINGS["threshold"].default:
            raise InputError(f"policy {self.policy!r} has no threshold: each task has one true answer.", hint)
        if self.reward != Accuracy():
            raise InputError(f"policy {self.policy!r} maximises accuracy and takes no other reward.", hint)
        if self.label_cost > 0:
            raise InputError(f"policy {self.policy!r} spends its budget and takes no label cost.", hint)

    @property
    def follows_load(self) -> bool:
        """Whether the policy's tables are for a number of tasks and of labels per task."""
        return self.policy in POLICIES and POLICIES[self.policy].follows_load

    @property
    def knows_workers(self) -> bool:
        """Whether the policy tells workers apart and learns them from their labels."""
        return knows_workers(self.policy)

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """What workers read in place of the labels."""
        return self.labels if self.display_names is None else self.display_names

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
        """The settings in the types of JSON."""
        out: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        out["labels"] = list(self.labels)
        for name in LISTS:
            out[name] = None if out[name] is None else list(out[name])
        out["prior"] = None if self.prior is None else prior_table(self.prior)
        out["reward"] = reward_table(self.reward)
        return out

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> CampaignSettings:
        """The inverse of ``to_dict``, checked; keys may be left out, unknown ones are refused."""
        unknown = sorted(set(table) - set(SETTINGS))
        if unknown:
            raise InputError(f"unknown setting {unknown[0]!r}.", f"Known settings: {', '.join(sorted(SETTINGS))}.")
        if "budget" not in table:
            raise InputError("the campaign has no budget.", "Give the number of labels that may be bought.")
        values = dict(table)
        if isinstance(values.get("reward"), str | dict):
            values["reward"] = reward_from(values["reward"])
        return cls(**values)

    @classmethod
    def from_log(cls, table: Mapping[str, Any]) -> CampaignSettings:
        """What ``to_dict`` wrote once, as it was then: later ranges and lists of policies are not asked."""
        values = dict(table)
        values["labels"] = tuple(values["labels"])
        values |= tuples_of(values)
        values["prior"] = None if values["prior"] is None else prior_from(values["prior"])
        values["reward"] = reward_from(values["reward"])
        return unchecked({f.name: values[f.name] for f in fields(cls)})

    def updated(self, *, budget: int, deadline: float | None, lease_seconds: float | None) -> CampaignSettings:
        """The same with the current values of what may change, which were checked when they changed."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return unchecked({**own, "budget": budget, "deadline": deadline, "lease_seconds": lease_seconds})

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)


def tuples_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``LISTS`` that a table from JSON has, as they are in settings."""
    return {name: None if table[name] is None else tuple(table[name]) for name in LISTS if name in table}


def unchecked(values: dict[str, Any]) -> CampaignSettings:
    """Settings from values that were checked before."""
    settings = object.__new__(CampaignSettings)
    settings.__dict__.update(values)
    return settings


def looks_personal(column: str) -> bool:
    """Whether a column's name says that it is about a person: an address, a name, a number to call ..."""
    words = [word.lower() for word in _WORD.findall(column)]
    if not _PERSONAL.isdisjoint(words):
        return True
    return any(word == "name" and (k == 0 or words[k - 1] in _WHOSE) for k, word in enumerate(words))


def is_shown(show: Sequence[str] | None, column: str) -> bool:
    """Whether workers are shown a column."""
    if show is None:
        return not looks_personal(column) and column.strip().lower() not in SCORE_NAMES
    return ALL in show or column in show


def shown_payload(show: Sequence[str] | None, payload: Any) -> Any:
    """The part of a payload that workers are shown."""
    if not isinstance(payload, Mapping) or (show is not None and ALL in show):
        return payload
    return {name: value for name, value in payload.items() if is_shown(show, name)}


def columns_of(payloads: Iterable[Any]) -> list[str]:
    """The columns of some payloads, those that come first first."""
    return list(dict.fromkeys(name for one in payloads if isinstance(one, Mapping) for name in one))


def check_columns(show: Sequence[str], payloads: Sequence[Any]) -> None:
    """Refuse columns that none of the first tasks has: workers would be shown less than was meant."""
    known = columns_of(payloads)
    unknown = [name for name in show if name != ALL and name not in known]
    if known and unknown:
        raise InputError(f"the tasks have no column {unknown[0][:60]!r}.", f"They have {listed(known)}.")


def columns_notes(show: Sequence[str] | None, columns: Iterable[str], score_column: str | None) -> list[str]:
    """What whoever added a table should know: columns that workers are not shown, and a score that was not used."""
    names = list(columns)
    score = next((name for name in names if name.lower() == SCORE_NAMES[0]), None) if score_column is None else None
    used = "" if score is None else f"Column {score!r} was not used: name it as the score column to start from it."
    return [note for note in (columns_sentence(show, names), used) if note]


def columns_sentence(show: Sequence[str] | None, columns: Iterable[str]) -> str:
    """Which of some columns workers are shown and which not, for whoever added them; empty if there are none."""
    names = list(columns)
    seen, hidden = [n for n in names if is_shown(show, n)], [n for n in names if not is_shown(show, n)]
    if not hidden:
        return ""
    why = ""
    if show is None:
        personal = [name for name in hidden if looks_personal(name)]
        scores = [name for name in hidden if name not in personal]
        said = [f"{listed(personal)}: looks personal"] if personal else []
        said += [f"{listed(scores)}: looks like a model's score"] if scores else []
        why = f" ({'; '.join(said)})"
    return f"Workers are shown {listed(seen) or 'nothing'}; kept but not shown: {listed(hidden)}{why}."
