"""A campaign's settings (``declaration`` has the fields), checked once, and what may change while it runs.

As JSON they open the log, and what changes later is an event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import field_serializer, field_validator, model_validator

from nextlabel.campaign.declaration import (
    MOST_LABELS,
    DeclaredSettings,
    checked,
    declared,
    in_labels,
    names,
    offer,
    spoken,
)
from nextlabel.crowd.answers import OPTIONS, Answer, Number, Rating, answer_type, check_options
from nextlabel.crowd.questions import Form, Question
from nextlabel.errors import ConflictError, InputError, ProblemError
from nextlabel.files.tasks import SCORE_NAMES
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import Fact
from nextlabel.model.prior import Prior
from nextlabel.model.rewards import Accuracy, Reward, Utility
from nextlabel.model.simplex import deepest
from nextlabel.model.tables import prior_from, prior_table, reward_from, reward_table
from nextlabel.model.tasks import TaskClass
from nextlabel.money import Price
from nextlabel.policies.base import MOST_NODES, Policy
from nextlabel.policies.registry import CROWD_POLICIES, POLICIES, knows_workers, make_policy
from nextlabel.wording import listed

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow

#: Settings that may open a campaign which has ended, or end it.
DECIDING: Final = frozenset({"budget", "deadline", "lease_seconds"})
ALL: Final = "*"
#: The columns of a pair: what is shown of both items, and what they are called.
SIDES, ITEMS = ("first", "second"), "items"

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


class CampaignSettings(DeclaredSettings):
    """A campaign's settings, checked; ``DeclaredSettings`` has the fields."""

    @field_validator("policy", mode="before")
    @classmethod
    def _policy(cls, policy: Any) -> str:
        return policy_name(policy)

    @field_validator("prior", mode="before")
    @classmethod
    def _prior(cls, prior: Any) -> Prior | None:
        if prior is None or isinstance(prior, Prior):
            return prior
        return prior_from(list(prior) if isinstance(prior, tuple) else prior)

    @field_validator("reward", mode="before")
    @classmethod
    def _reward(cls, reward: Any) -> Reward:
        made: Reward = reward_from(reward) if isinstance(reward, str | dict) else reward
        return made

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse settings that contradict each other."""
        self._check_answer()
        check_names_fit(self.display_names, self.labels)
        most = min(MOST_LABELS, deepest(self.answers, MOST_NODES))
        if self.most_labels > most:
            if self.most_labels < MOST_LABELS:
                raise ProblemError(
                    f"most labels is {self.most_labels}, more than can be planned for.", f"Give at most {most}."
                )
            self.__dict__["most_labels"] = most
        if self.prior is not None and self.prior.answers != self.answers:
            raise ProblemError(
                f"the prior {self.prior.describe()} has {self.prior.answers} answers and the campaign {self.answers}.",
                "Give one weight for each label.",
            )
        self._check_policy()
        self.class_of(None)
        return self

    def _check_answer(self) -> None:
        """The labels of a rating are the steps of its scale, numbers have none, and those of a form are its options."""
        several = self.answer == "multi" or bool(self.questions)
        given = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) != declared(name).default}
        check_options("multi" if several else self.answer, **given)
        kind = self.answer_type
        own = kind.name != "choice" and (kind.name != "multi" or self.questions)
        if own and "labels" in self.model_fields_set and self.labels != kind.labels:
            raise InputError(f"answers of the kind {kind.name} have no other labels.", "Leave the labels out.")
        self.__dict__.update(labels=kind.labels, answer=kind.name)
        if isinstance(kind, Rating):
            self.__dict__["scale"] = f"{kind.low:g}..{kind.high:g}"
        if isinstance(kind, Number):
            self.__dict__["range"] = "{:g}..{:g}".format(*kind.ends)
        if kind.noun and self.policy != declared("policy").default:
            raise InputError(f"policy {self.policy!r} does not ask for {kind.noun}.", "Leave it out.")
        check_meaning(kind, {name: getattr(self, name) for name in kind.refuses})

    @cached_property
    def answer_type(self) -> Answer:
        """What an answer is: how it is checked, kept in the log, read out and written."""
        if self.questions:
            return Form.parse(self.questions)
        if self.answer == "multi":
            return Form((Question("", "multi", self.labels),))
        loss, utility = self.loss if self.answer == "rating" else None, None
        if self.answer == "choice" and isinstance(self.reward, Utility) and self.reward.abstain is None:
            utility = self.reward.matrix if len(self.reward.matrix) == len(self.labels) else None
        return answer_type(self.answer, self.labels, self.scale, self.range, loss, utility)

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
        if "turn_away" not in self.model_fields_set and not self.knows_workers:
            self.__dict__["turn_away"] = False
        if self.features and not self.learns_from_features:
            raise InputError(f"policy {self.policy!r} does not learn from features.", "Use the policy crowd.")
        check_turning_away(self.turn_away, self.policy)
        if self.known_workers and not (self.knows_workers and self.answer == "choice"):
            raise InputError("known workers are for a choice of labels with the policy crowd.", "Leave it out.")
        policy.check_answers(self.answers)
        if self.label_cost > 0 and not policy.priced:
            raise InputError(
                f"policy {self.policy!r} does not say what a label is worth, so a label cost means nothing to it.",
                "Use index, or leave the label cost out.",
            )

    def _check_crowd(self) -> None:
        """Refuse what the model of workers who differ has no place for."""
        hint = "Leave it out, or choose the policy index, which takes workers to be alike."
        if not make_policy(self.policy).live:
            raise InputError(f"policy {self.policy!r} is for recorded labels.", "Use crowd or crowd-uncertainty.")
        if self.threshold != declared("threshold").default:
            raise InputError(f"policy {self.policy!r} has no threshold: each task has one true answer.", hint)
        if self.reward != Accuracy() and self.answer_type.utility is None:
            raise InputError(
                f"policy {self.policy!r} takes accuracy or, for a choice, a utility with a row for each label.", hint
            )
        if self.label_cost > 0:
            raise InputError(f"policy {self.policy!r} spends its budget and takes no label cost.", hint)

    @property
    def price(self) -> Price:
        """What a label costs."""
        return Price(self.pay_per_label, self.platform_fee, self.currency)

    @property
    def follows_load(self) -> bool:
        """Whether the policy's tables are for a number of tasks and of labels per task."""
        return self.policy in POLICIES and POLICIES[self.policy].follows_load

    @property
    def knows_workers(self) -> bool:
        """Whether the policy tells workers apart and learns them from their labels."""
        return knows_workers(self.policy)

    @property
    def counts_right(self) -> bool:
        """Whether certificates count right answers: they do for workers who differ, whatever answers are worth."""
        return self.knows_workers or self.reward == Accuracy()

    @property
    def learns_from_features(self) -> bool:
        """Whether features of items mean something to the model."""
        return self.knows_workers and "features" not in self.answer_type.refuses

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """What workers read in place of the labels."""
        return self.labels if self.display_names is None else self.display_names

    def shown(self, answer: int) -> str:
        """What workers read of an answer."""
        names = self.display_names
        if names is None or isinstance(self.answer_type, Form):
            return self.answer_type.shown(answer)
        return names[answer]

    @property
    def answers(self) -> int:
        """J, the number of answers that are counted apart: one where they are numbers."""
        return self.answer_type.counted

    @cached_property
    def default_prior(self) -> Prior:
        """The prior of a task without one; nobody asks for it where answers are numbers."""
        if self.prior is not None:
            return self.prior
        return Beta(1, 1) if self.answers <= 2 else Dirichlet((1.0,) * self.answers)

    def class_of(self, prior: Prior | None, count: int = 1) -> TaskClass:
        """The class of ``count`` tasks with that prior."""
        return TaskClass(count, prior or self.default_prior, self.threshold, self.reward)

    @field_serializer("prior")
    def _prior_table(self, prior: Any) -> Any:
        return None if prior is None else prior_table(prior)

    @field_serializer("reward")
    def _reward_table(self, reward: Any) -> Any:
        return reward_table(reward)

    def to_dict(self) -> dict[str, Any]:
        """The settings in the types of JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> CampaignSettings:
        """The inverse of ``to_dict``, checked; keys may be left out, unknown ones are refused."""
        return cls.model_validate(dict(table))

    @classmethod
    def from_log(cls, table: Mapping[str, Any]) -> CampaignSettings:
        """What ``to_dict`` wrote once, as it was then: later ranges and lists of policies are not asked."""
        prior, reward = table["prior"], reward_from(table["reward"])
        prior = None if prior is None else prior_from(prior)
        return cls.model_construct(**{**_from_json(table), "prior": prior, "reward": reward})

    def with_changes(self, changes: Mapping[str, Any]) -> CampaignSettings:
        """The same with other values of what may change, which were checked when they changed."""
        return self.model_copy(update=_from_json(changes)) if changes else self

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), sort_keys=True)


def _from_json(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def policy_name(policy: Any) -> str:
    """How the log names a policy: a built-in name, or ``module:Class`` for one of the user's own, or an instance."""
    if isinstance(policy, str):
        return policy
    if not isinstance(policy, Policy):
        raise InputError(f"policy {policy!r} is not a policy.", "Give a name such as index, or module:Class.")
    kind = type(policy)
    known: dict[str, type[Policy]] = {**POLICIES, **CROWD_POLICIES}
    name = policy.name if known.get(policy.name) is kind else f"{kind.__module__}:{kind.__qualname__}"
    if kind.__module__ == "__main__" or repr(vars(make_policy(name))) != repr(vars(policy)):
        raise InputError(
            f"policy {name!r} cannot be made again from its name.",
            "Put the class into a module that can be imported, with a constructor that needs no arguments.",
        )
    return name


def check_meaning(kind: Answer, values: Mapping[str, Any]) -> None:
    """Refuse settings that mean nothing to the kind of answers."""
    given = [name for name in kind.refuses if values.get(name) is not None]
    if given:
        raise InputError(f"a campaign for {kind.noun} takes no {spoken(given[0])}.", "Leave it out.")


def check_names_fit(names: Sequence[str] | None, labels: Sequence[str]) -> None:
    """Refuse display names of another number than the labels."""
    if names is not None and len(names) != len(labels):
        raise InputError(
            f"{len(names)} display names were given for {len(labels)} labels.",
            f"Give one name for each of {', '.join(labels)}, in this order.",
        )


def check_turning_away(turn_away: bool, policy: str) -> None:
    """Refuse to turn workers away where nobody knows what a worker's label is worth."""
    if turn_away and not knows_workers(policy):
        raise InputError(
            f"policy {policy!r} takes workers to be alike and cannot tell whom to turn away.",
            "Use the policy crowd, or leave turn_away out.",
        )


def changes_of(row: CampaignRow, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of new values those that change something, checked, in the types of JSON."""
    new: dict[str, Any] = {}
    changeable = [name for name in names() if offer(name).changeable]
    for name, given in in_labels(values, row.config).items():
        if name not in changeable:
            raise InputError(f"{name[:60]!r} cannot be changed.", f"It can be {', '.join(changeable)}.")
        value = checked(name, given)
        if value != getattr(row.config, name):
            new[name] = list(value) if isinstance(value, tuple) else value
    check_meaning(row.config.answer_type, new)
    check_names_fit(new.get("display_names"), row.config.labels)
    check_turning_away(new.get("turn_away", False), row.config.policy)
    if new.get("budget", row.budget) < row.spent:
        raise ConflictError(
            f"{row.spent} labels have been bought already, more than a budget of {new['budget']}.",
            f"Give at least {row.spent}.",
        )
    return new


@lru_cache(maxsize=1024)
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
    """The part of a payload that workers are shown; of a pair both sides, and not what its items are called."""
    if is_pair(payload):
        return {
            name: shown_payload(show, value) if name in SIDES else value
            for name, value in payload.items()
            if name in SIDES or (name != ITEMS and is_shown(show, name))
        }
    if not isinstance(payload, Mapping) or (show is not None and ALL in show):
        return payload
    return {name: value for name, value in payload.items() if is_shown(show, name)}


def is_pair(payload: Any) -> bool:
    """Whether a payload is one of two items to compare."""
    return isinstance(payload, Mapping) and all(side in payload for side in SIDES)


def columns_of(payloads: Iterable[Any]) -> list[str]:
    """The columns of some payloads, those that come first first."""
    whole = (side for one in payloads for side in ([one, *map(one.get, SIDES)] if is_pair(one) else [one]))
    return list(dict.fromkeys(name for one in whole if isinstance(one, Mapping) for name in one))


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
